/* Tensor cores, copies that are waited for later, barriers of some of the threads. */
#include "learner/backend/cuda/tensor.h"
#include "probes.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace
{

__device__ uint16_t bits_of(rm_in_bf16, float x)
{
    return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}

__device__ uint16_t bits_of(rm_in_fp16, float x)
{
    return __half_as_ushort(__float2half_rn(x));
}

/* out(16, 8) = a(16, 16) b(16, 8): a has whole numbers, b too; b stands as rows (16, 8), and as
 * columns behind it. Both ways must give the same: the sum of the two, and their difference. */
template <class As>
__global__ void products(float *out)
{
    RM_SHARED(uint16_t, shared);
    uint16_t *a = shared, *b = a + 16 * 24, *columns = b + 16 * 8;
    const unsigned l = threadIdx.x;
    for (unsigned i = l; i < 256; i += 32)
        a[i / 16 * 24 + i % 16] = bits_of(As(), (float)((int)(i * 7 % 13) - 6));
    for (unsigned i = l; i < 128; i += 32) {
        const uint16_t x = bits_of(As(), (float)((int)(i * 5 % 11) - 4));
        b[i] = x;
        columns[i % 8 * 24 + i / 8] = x;
    }
    __syncwarp();
    uint32_t left[4], right[4], turned[4];
    float one[4] = {}, two[4] = {};
    rm_load_matrices(left, a + (l % 16) * 24 + l / 16 * 8);
    rm_load_matrices(right, columns + l % 8 * 24 + l / 8 % 2 * 8);
    rm_load_turned(turned, b + (l % 16) * 8);
    rm_multiply(As(), one, left, right);
    rm_load_turned_pair(turned, b + (l % 16) * 8);
    rm_multiply(As(), two, left, turned);
    rm_multiply(As(), two, left, turned);
    for (unsigned i = 0; i < 4; i++) {
        const unsigned at = (l / 4 + i / 2 * 8) * 8 + l % 4 * 2 + i % 2;
        out[at] = one[i];
        out[128 + at] = two[i] - one[i];
    }
}

/* 32 times 16 bytes there and back, the second half while the first is used. */
__global__ void copies(const float *from, float *out, bool waits)
{
    RM_SHARED(float, shared);
    const unsigned t = threadIdx.x;
    rm_copy_later(shared + 4 * t, from + 4 * t);
    rm_copies_close();
    rm_copy_later(shared + 128 + 4 * t, from + 128 + 4 * t);
    rm_copies_close();
    if (waits)
        rm_copies_wait<1>();
    __syncthreads();
    for (unsigned i = 0; i < 4; i++)
        out[4 * t + i] = shared[127 - 4 * t - i];
    rm_copies_wait<0>();
    __syncthreads();
    for (unsigned i = 0; i < 4; i++)
        out[128 + 4 * t + i] = shared[128 + 127 - 4 * t - i];
}

/* Two halves of a block, one of which meets more often. */
__global__ void halves(float *out, bool wrong)
{
    RM_SHARED(float, shared);
    const unsigned half = threadIdx.x / 64, own = threadIdx.x % 64;
    float sum = 0;
    for (unsigned round = 0; round < 3 + 2 * half; round++) {
        shared[threadIdx.x] = (float)(round + own);
        if (!wrong)
            rm_barrier_of(1 + half, 64);
        sum += shared[half * 64 + (own + 33) % 64];
        if (!wrong)
            rm_barrier_of(1 + half, 64);
    }
    out[threadIdx.x] = sum;
}

__global__ void wrong_halves(float *out)
{
    if (threadIdx.x < 64)
        rm_barrier_of(1, 64);
    else
        rm_barrier_of(1, 64);
    if (threadIdx.x < 32)
        rm_barrier_of(2, 64);
    out[threadIdx.x] = 1;
}

__global__ void matrix_beside(float *out)
{
    RM_SHARED(uint16_t, shared);
    uint32_t words[4];
    for (unsigned i = threadIdx.x; i < 1024; i += 32)
        shared[i] = 0;
    __syncwarp();
    rm_load_matrices(words, shared + threadIdx.x * 9);
    out[threadIdx.x] = (float)words[0];
}

int copy(float *out, bool waits)
{
    probe_memory m(out);
    float *from = nullptr, host[256];
    for (int i = 0; i < 256; i++)
        host[i] = (float)i;
    int rc = cudaMalloc(&from, sizeof host);
    if (!rc)
        rc = cudaMemcpy(from, host, sizeof host, cudaMemcpyHostToDevice);
    RM_LAUNCH(copies, 1, 32, 1024, 0, from, m.at, waits);
    rc = m.end(rc);
    cudaFree(from);
    return rc;
}
} // namespace

PROBE(products_bf16)
{
    probe_memory m(out);
    RM_LAUNCH(products<rm_in_bf16>, 1, 32, 2048, 0, m.at);
    return m.end();
}

PROBE(products_fp16)
{
    probe_memory m(out);
    RM_LAUNCH(products<rm_in_fp16>, 1, 32, 2048, 0, m.at);
    return m.end();
}

PROBE(copied_later)
{
    return copy(out, true);
}

PROBE(copied_too_late)
{
    return copy(out, false);
}

PROBE(some_threads)
{
    probe_memory m(out);
    RM_LAUNCH(halves, 2, 128, 512, 0, m.at, false);
    return m.end();
}

PROBE(halves_without_barriers)
{
    probe_memory m(out);
    RM_LAUNCH(halves, 1, 128, 512, 0, m.at, true);
    return m.end();
}

PROBE(wrong_halves)
{
    probe_memory m(out);
    RM_LAUNCH(wrong_halves, 1, 128, 0, 0, m.at);
    return m.end();
}

PROBE(matrix_beside)
{
    probe_memory m(out);
    RM_LAUNCH(matrix_beside, 1, 32, 2048, 0, m.at);
    return m.end();
}
