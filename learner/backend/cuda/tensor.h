/* tensor: the operations of tensor cores, for kernels that compute products themselves; the only
 * PTX of the backend. For compute capability 8.0 and later.
 * tests/cuda/emulation/rm_emulated_tensor.h has the emulation.
 *
 * A matrix here is 8 by 8 numbers of 16 bits; a row is 16 bytes, at a multiple of that. In a warp,
 * lane l holds two neighbours in a word: row l / 4, columns 2 (l % 4) and the next. A tile of 16
 * rows and 16 columns is four matrices: (rows, columns) 0 0, 8 0, 0 8, 8 8. All lanes of a warp
 * call together. */
#ifndef RM_LEARNER_BACKEND_CUDA_TENSOR_H
#define RM_LEARNER_BACKEND_CUDA_TENSOR_H

#include "learner/backend/cuda/formats.h"
#include "learner/backend/cuda/launch.h"

#include <stdint.h>

#ifdef __CUDACC__
#define RM_TENSOR static __device__ __forceinline__

RM_TENSOR uint32_t rm_shared_at(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Loads four matrices of shared memory: lane l gives the address of row l % 8 of matrix l / 8. */
RM_TENSOR void rm_load_matrices(uint32_t to[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(rm_shared_at(row))
                 : "memory");
}

/* The same for transposed matrices: lanes give the addresses of columns. */
RM_TENSOR void rm_load_turned(uint32_t to[4], const void *column)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(rm_shared_at(column))
                 : "memory");
}

/* Two of them; lanes 0 to 15 give the addresses. */
RM_TENSOR void rm_load_turned_pair(uint32_t to[2], const void *column)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(rm_shared_at(column))
                 : "memory");
}

/* d(16, 8) += a(16, 16) b(16, 8), in float32: d[0], d[1] of row l / 4 and d[2], d[3] of the eighth
 * after it, columns 2 (l % 4) and the next. b is two matrices whose ROWS are b's columns. */
RM_TENSOR void rm_multiply(rm_in_bf16, float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

RM_TENSOR void rm_multiply(rm_in_fp16, float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Two numbers as a word, rounded to nearest even; `low` is the first in memory. */
RM_TENSOR uint32_t rm_pair(rm_in_bf16, float low, float high)
{
    uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

RM_TENSOR uint32_t rm_pair(rm_in_fp16, float low, float high)
{
    uint32_t word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

/* Copies 16 bytes from global to shared memory. The calling thread sees them after it has waited,
 * others after a later barrier. rm_copies_close() makes one group of all copies since the last;
 * rm_copies_wait<n>() waits for all but the last n groups. */
RM_TENSOR void rm_copy_later(void *shared, const void *global)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(rm_shared_at(shared)),
                 "l"(__cvta_generic_to_global(global))
                 : "memory");
}

RM_TENSOR void rm_copies_close()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int n>
RM_TENSOR void rm_copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
}

/* A barrier of `threads` of the block's, whole warps; `which` is 1 to 15. */
RM_TENSOR void rm_barrier_of(unsigned which, unsigned threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(which), "r"(threads) : "memory");
}
#else
#include "rm_emulated_tensor.h"
#endif

#endif
