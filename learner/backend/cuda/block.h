/* block: sums over the threads of a block. */
#ifndef RM_LEARNER_BACKEND_CUDA_BLOCK_H
#define RM_LEARNER_BACKEND_CUDA_BLOCK_H

#include "learner/backend/cuda/launch.h"

#define RM_WARP 32u
/* Shared memory that rm_block_sum() needs. */
#define RM_BLOCK_SUM_BYTES (RM_WARP * sizeof(double))

/* The sum of x over the block, in an order that depends on its size alone; every thread gets it.
 * The block is a multiple of a warp. scratch (RM_WARP) may be used again at once. */
static __device__ inline double rm_block_sum(double x, double *scratch)
{
    const unsigned warp_lane = threadIdx.x % RM_WARP, warp = threadIdx.x / RM_WARP;
    for (unsigned apart = RM_WARP / 2; apart; apart /= 2)
        x += __shfl_down_sync(0xffffffffu, x, apart);
    if (warp_lane == 0)
        scratch[warp] = x;
    __syncthreads();
    double sum = 0.0;
    for (unsigned w = 0; w < blockDim.x / RM_WARP; w++)
        sum += scratch[w];
    __syncthreads();
    return sum;
}

#endif
