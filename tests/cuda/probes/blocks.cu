/* Threads of a block: barriers, warps, shared memory. */
#include "probes.h"

namespace
{

/* --- right ------------------------------------------------------------------------------------ */

template <int THREADS>
__global__ void sums(float *out)
{
    __shared__ float parts[THREADS / 32];
    float v = (float)(threadIdx.x + blockIdx.x);
    for (int by = 16; by; by /= 2)
        v += __shfl_down_sync(0xffffffffu, v, by);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    float all = 0;
    for (int i = 0; i < THREADS / 32; i++)
        all += parts[i];
    if (threadIdx.x == 0)
        out[blockIdx.x] = all;
}

/* What each vote, shuffle and count gives, a number of each thread's. */
__global__ void meetings(float *out)
{
    const unsigned t = threadIdx.x, full = 0xffffffffu;
    unsigned v = __ballot_sync(full, t % 3 == 0);
    v = v * 31 + (unsigned)__any_sync(full, t == 40) + 2u * (unsigned)__all_sync(full, t < 40);
    v = v * 31 + __shfl_sync(full, t * t, (int)(t + 5) % 32);
    v = v * 31 + __shfl_xor_sync(full, t, 9);
    v = v * 31 + __shfl_up_sync(full, t, 3u);
    v = v * 31 + __shfl_down_sync(full, t, 3u, 8);
    v = v * 31 + (unsigned)__syncthreads_count(t % 5 == 1);
    v = v * 31 + (unsigned)__syncthreads_or(t == 63) + 2u * (unsigned)__syncthreads_and(t != 7);
    if (t % 32 < 16)
        v = v * 31 + __shfl_sync(0x0000ffffu, t, 2);
    __syncwarp();
    out[t] = (float)(v % 65521u);
}

/* Each thread reverses what others wrote into shared memory of a size that the launch tells. */
__global__ void turned(float *out, unsigned n)
{
    RM_SHARED(float, kept);
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        kept[i] = (float)i;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = kept[n - 1 - i];
}

__global__ void places(float *out)
{
    const unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    out[b * blockDim.x * blockDim.y * blockDim.z + t] = (float)(b * 100 + t);
}

__global__ void counted(unsigned *at, unsigned long long *wide)
{
    atomicAdd(&at[0], threadIdx.x);
    atomicMax(&at[1], threadIdx.x);
    atomicAdd(wide, 1ull << 33);
    atomicExch(&at[4], 9u);
    for (unsigned old = at[5];;) { /* add two, the long way */
        const unsigned seen = atomicCAS(&at[5], old, old + 2);
        if (seen == old)
            break;
        old = seen;
    }
}

/* --- wrong ------------------------------------------------------------------------------------ */

__global__ void without_barrier(float *out)
{
    __shared__ float kept[64];
    kept[threadIdx.x] = (float)threadIdx.x;
    out[threadIdx.x] = kept[63 - threadIdx.x];
}

__global__ void without_second_barrier(float *out)
{
    __shared__ float kept;
    for (int i = 0; i < 4; i++) {
        if (threadIdx.x == (unsigned)i)
            kept = (float)i;
        __syncthreads();
        out[threadIdx.x] += kept; /* the next one writes while others still read */
    }
}

__global__ void exits_before_barrier(float *out)
{
    if (threadIdx.x == 5)
        return;
    __syncthreads();
    out[threadIdx.x] = 1;
}

__global__ void at_two_barriers(float *out)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    out[threadIdx.x] = 1;
}

__global__ void lane_stays_away(float *out)
{
    float v = 1;
    if (threadIdx.x != 3)
        v = __shfl_down_sync(0xffffffffu, v, 1);
    out[threadIdx.x] = v;
}

__global__ void meets_elsewhere(float *out)
{
    unsigned v;
    if (threadIdx.x < 16)
        v = __ballot_sync(0xffffffffu, 1);
    else
        v = (unsigned)__any_sync(0xffffffffu, 1);
    out[threadIdx.x] = (float)v;
}

__global__ void beyond_the_warp(float *out)
{
    out[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0f, 20); /* the block has 16 threads */
}

__global__ void uninitialised(float *out)
{
    __shared__ float kept[64];
    if (threadIdx.x < 32)
        kept[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = kept[threadIdx.x];
}

__global__ void uninitialised_dynamic(float *out)
{
    RM_SHARED(float, kept);
    __syncthreads();
    out[threadIdx.x] = kept[threadIdx.x];
}

__global__ void beyond_dynamic(float *out, unsigned n)
{
    RM_SHARED(float, kept);
    kept[threadIdx.x + n] = 1;
    out[threadIdx.x] = 1;
}

__global__ void beyond_static(float *out, unsigned by)
{
    __shared__ float kept[64];
    kept[threadIdx.x + by] = 1;
    __syncthreads();
    out[threadIdx.x] = kept[threadIdx.x];
}

__global__ void beyond_device(float *out, unsigned by)
{
    out[threadIdx.x + by] = 1;
}

__global__ void between_blocks(float *out)
{
    out[blockIdx.x] = blockIdx.x ? out[blockIdx.x - 1] + 1 : 1; /* the other may not have run */
}

__global__ void trapped(float *out)
{
    if (threadIdx.x == 2)
        __trap();
    out[threadIdx.x] = 1;
}
} // namespace

#define RUN(name, kernel, grid, block, shared, ...)                                                \
    PROBE(name)                                                                                    \
    {                                                                                              \
        probe_memory m(out);                                                                       \
        RM_LAUNCH(kernel, grid, block, shared, 0, m.at, ##__VA_ARGS__);                            \
        return m.end();                                                                            \
    }

RUN(sums, (sums<128>), 20, 128, 0)
RUN(meetings, meetings, 1, 64, 0)
RUN(turned, turned, 1, 96, 1000 * sizeof(float), 1000u)
RUN(places, places, dim3(2, 3, 2), dim3(4, 3, 5), 0)
RUN(without_barrier, without_barrier, 1, 64, 0)
RUN(without_second_barrier, without_second_barrier, 1, 64, 0)
RUN(exits_before_barrier, exits_before_barrier, 2, 64, 0)
RUN(at_two_barriers, at_two_barriers, 1, 64, 0)
RUN(lane_stays_away, lane_stays_away, 1, 32, 0)
RUN(meets_elsewhere, meets_elsewhere, 1, 32, 0)
RUN(beyond_the_warp, beyond_the_warp, 1, 16, 0)
RUN(uninitialised, uninitialised, 1, 64, 0)
RUN(uninitialised_dynamic, uninitialised_dynamic, 1, 64, 256)
RUN(beyond_dynamic, beyond_dynamic, 1, 64, 64 * sizeof(float), 1u)
RUN(beyond_static, beyond_static, 1, 64, 0, 1u)
RUN(beyond_device, beyond_device, 1, 64, 0, (unsigned)PROBE_OUT - 63u)
RUN(between_blocks, between_blocks, 8, 1, 0)
RUN(trapped, trapped, 1, 8, 0)
RUN(block_too_large, places, 1, 1025, 0)
RUN(grid_of_none, places, 0, 32, 0)
RUN(shared_too_large, turned, 1, 32, 50000, 4u)

PROBE(shared_allowed)
{
    probe_memory m(out);
    cudaFuncSetAttribute(turned, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000);
    RM_LAUNCH(turned, 1, 32, 50000, 0, m.at, 4u);
    return m.end();
}

PROBE(counted)
{
    probe_memory m(out);
    RM_LAUNCH(counted, 4, 64, 0, 0, reinterpret_cast<unsigned *>(m.at),
              reinterpret_cast<unsigned long long *>(m.at + 2));
    return m.end();
}
