/* map: kernels of operations whose elements do not depend on each other. An operation is a struct
 * with its pointers and numbers, and functions for one element.
 *
 * Flat: `in load(size_t i)` reads the input of element i, `store(size_t i, in value)` writes its
 * result. A thread reads all of its elements before it writes any, so that its reads overlap. So
 * input and output may be the same memory.
 *
 * Rows: `at(size_t row, uint32_t column)` computes one element of (rows, n). */
#ifndef RM_LEARNER_BACKEND_CUDA_MAP_H
#define RM_LEARNER_BACKEND_CUDA_MAP_H

#include "learner/backend/cuda/cuda.h"

#define RM_MAP_BLOCK 256u
#define RM_MAP_PER   4u /* elements of a thread at a time, a block apart */

template <class Op>
__global__ void rm_map_flat(Op op, size_t n)
{
    const size_t step = (size_t)gridDim.x * blockDim.x * RM_MAP_PER;
    for (size_t at = (size_t)blockIdx.x * blockDim.x * RM_MAP_PER + threadIdx.x; at < n;
         at += step) {
        typename Op::in taken[RM_MAP_PER];
#pragma unroll
        for (unsigned k = 0; k < RM_MAP_PER; k++)
            if (at + k * blockDim.x < n)
                taken[k] = op.load(at + k * blockDim.x);
#pragma unroll
        for (unsigned k = 0; k < RM_MAP_PER; k++)
            if (at + k * blockDim.x < n)
                op.store(at + k * blockDim.x, taken[k]);
    }
}

/* `name`: a literal, for the message about a failed launch. */
template <class Op>
static inline void rm_map(struct rm_cuda *c, const char *name, const Op &op, size_t n)
{
    if (!n || !rm_cuda_ready(c))
        return;
    const unsigned blocks = rm_cuda_blocks(c, (n + RM_MAP_PER - 1) / RM_MAP_PER, RM_MAP_BLOCK);
    RM_LAUNCH(rm_map_flat<Op>, blocks, RM_MAP_BLOCK, 0, rm_cuda_stream(c), op, n);
    rm_cuda_launched(c, name);
}

template <class Op>
__global__ void rm_map_rows(Op op, size_t rows, uint32_t n)
{
    const size_t step = (size_t)gridDim.x * blockDim.y;
    for (size_t r = (size_t)blockIdx.x * blockDim.y + threadIdx.y; r < rows; r += step)
        for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < n; i += gridDim.y * blockDim.x)
            op.at(r, i);
}

/* Threads run along columns first, so that neighbours read neighbours. */
template <class Op>
static inline void rm_map(struct rm_cuda *c, const char *name, const Op &op, size_t rows,
                          uint32_t n)
{
    if (!rows || !n || !rm_cuda_ready(c))
        return;
    unsigned wide = 1;
    while (wide < n && wide < RM_MAP_BLOCK)
        wide *= 2;
    const unsigned high = RM_MAP_BLOCK / wide, across = (n + wide - 1) / wide;
    const unsigned down = rm_cuda_blocks(c, rows, high);
    const dim3 grid(down, across < 64 ? across : 64), block(wide, high);
    RM_LAUNCH(rm_map_rows<Op>, grid, block, 0, rm_cuda_stream(c), op, rows, n);
    rm_cuda_launched(c, name);
}

#endif
