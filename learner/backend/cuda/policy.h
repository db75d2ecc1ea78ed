/* policy: what device_policy.h asks for, function by function. */
#ifndef RM_LEARNER_BACKEND_CUDA_POLICY_H
#define RM_LEARNER_BACKEND_CUDA_POLICY_H

#include "learner/backend/cuda/cuda.h"

extern "C" {
#include "learner/backend/device_policy.h"
}

/* The table, for plugin.cu. */
extern const struct rm_device_policy_ops rm_cuda_policies;

/* scans.cu */
void rm_cuda_gae(struct rm_backend *b, const struct rm_rollout_rows *rows, float lambda,
                 float *advantage, float *target);
void rm_cuda_vtrace(struct rm_backend *b, const struct rm_rollout_rows *rows,
                    const struct rm_vtrace *vtrace, const float *logp_now, const float *logp_then,
                    float *advantage, float *target);
void rm_cuda_returns(struct rm_backend *b, const struct rm_device_returns *returns);

/* softmax.cu */
void rm_cuda_policy_values(struct rm_backend *b, const struct rm_device_values *values);
void rm_cuda_policy_loss(struct rm_backend *b, const struct rm_device_policy_loss *loss);

/* Threads of a block that adds up alone, so that a sum has one order. */
#define RM_SUM_THREADS 512u

#ifdef __cplusplus
/* The sum over the threads of a block of RM_SUM_THREADS, in one order; every thread gets it.
 * `room`: RM_SUM_THREADS doubles of shared memory, free again when it returns. */
__device__ inline double rm_block_sum(double x, double *room)
{
    const unsigned t = threadIdx.x;
    room[t] = x;
    __syncthreads();
    for (unsigned half = RM_SUM_THREADS / 2; half > 0; half /= 2) {
        if (t < half)
            room[t] += room[t + half];
        __syncthreads();
    }
    const double sum = room[0];
    __syncthreads();
    return sum;
}
#endif

#endif
