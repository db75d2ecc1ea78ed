/* block: numbers joined over the threads of a block. */
#ifndef RM_LEARNER_BACKEND_CUDA_BLOCK_H
#define RM_LEARNER_BACKEND_CUDA_BLOCK_H

#include "learner/backend/cuda/launch.h"

#include <stdint.h>

#define RM_WARP 32u
/* Shared memory that rm_block_sum() needs. */
#define RM_BLOCK_SUM_BYTES (RM_WARP * sizeof(double))

/* x of all threads of the block, joined by op(a, b), in an order that depends on the block's size
 * alone; every thread gets the result. The block is a multiple of a warp. scratch (RM_WARP) may be
 * reused at once. */
template <class T, class Op>
static __device__ inline T rm_block_join(T x, T *scratch, const Op &op)
{
    const unsigned warp_lane = threadIdx.x % RM_WARP, warp = threadIdx.x / RM_WARP;
    for (unsigned apart = RM_WARP / 2; apart; apart /= 2)
        x = op(x, __shfl_down_sync(0xffffffffu, x, apart));
    if (warp_lane == 0)
        scratch[warp] = x;
    __syncthreads();
    T all = scratch[0];
    for (unsigned w = 1; w < blockDim.x / RM_WARP; w++)
        all = op(all, scratch[w]);
    __syncthreads();
    return all;
}

template <class T>
static __device__ inline T rm_block_sum(T x, T *scratch)
{
    return rm_block_join(x, scratch, [](T a, T b) { return a + b; });
}

/* The sums of x(n) and of the n numbers after it, each as rm_block_sum() of the threads' own. */
struct rm_block_pair {
    double x, y;
};

static __device__ inline struct rm_block_pair rm_block_sum_pair(const double *x, uint32_t n,
                                                                double *scratch)
{
    struct rm_block_pair sums = {0.0, 0.0};
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        sums.x += x[i];
        sums.y += x[n + i];
    }
    sums.x = rm_block_sum(sums.x, scratch);
    sums.y = rm_block_sum(sums.y, scratch);
    return sums;
}

#endif
