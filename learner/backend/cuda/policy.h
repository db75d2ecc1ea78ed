/* policy: numbers of devices that have rows of their own (policy_ops.h), in kernels. */
#ifndef RM_LEARNER_BACKEND_CUDA_POLICY_H
#define RM_LEARNER_BACKEND_CUDA_POLICY_H

#include "learner/backend/cuda/block.h"
#include "learner/backend/cuda/tables.h"

/* Sets this device's line of the slots to `line` and clears the others; by one block. */
__device__ static inline void rm_fill_slots(const struct rm_device_slots *slots,
                                            const double line[RM_DEVICE_SLOT])
{
    for (uint32_t i = threadIdx.x; i < slots->count * RM_DEVICE_SLOT; i += blockDim.x)
        slots->at[i] = i / RM_DEVICE_SLOT == slots->own ? line[i % RM_DEVICE_SLOT] : 0;
}

/* Merges the lines: mean and sum of squared deviations of all devices' rows. A line has the number
 * of rows at 0, and the device's mean and sum at `mean` and `square`. */
struct rm_slot_moments {
    double n, mean, square;
};

__device__ static inline struct rm_slot_moments rm_merge_slots(const struct rm_device_slots *slots,
                                                               uint32_t mean, uint32_t square)
{
    struct rm_slot_moments all = {0, 0, 0};
    for (uint32_t d = 0; d < slots->count; d++) {
        const double *line = slots->at + d * RM_DEVICE_SLOT;
        all.n += line[0];
        all.mean += line[0] * line[mean];
    }
    all.mean /= all.n > 0 ? all.n : 1;
    for (uint32_t d = 0; d < slots->count; d++) {
        const double *line = slots->at + d * RM_DEVICE_SLOT;
        const double off = line[mean] - all.mean;
        all.square += line[0] > 0 ? line[square] + line[0] * off * off : 0;
    }
    return all;
}

/* Threads of a block that computes a sum alone, so that the sum has one order. */
#define RM_SUM_THREADS 512u

#endif
