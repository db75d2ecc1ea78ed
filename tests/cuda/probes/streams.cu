/* Streams, events and memory: order of what is put on them, and pointers that are wrong. */
#include "probes.h"

#include <stdlib.h>
#include <string.h>

namespace
{
__global__ void add_to(float *x, float v, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] += v;
}

__global__ void copied(const float *from, float *to, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] = from[i];
}

struct parts {
    const float *from;
    float *to;
    unsigned n;
};

__global__ void copied_by_parts(parts p)
{
    for (unsigned i = threadIdx.x; i < p.n; i += blockDim.x)
        p.to[i] = p.from[i];
}

/* Two streams, a pinned batch, and where it goes. */
struct pipeline {
    cudaStream_t in, compute;
    cudaEvent_t arrived;
    float *pinned, *batch;
    pipeline()
    {
        cudaStreamCreateWithFlags(&in, cudaStreamNonBlocking);
        cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&arrived, cudaEventDisableTiming);
        cudaHostAlloc(&pinned, 256, cudaHostAllocDefault);
        cudaMalloc(&batch, 256);
        for (int i = 0; i < 64; i++)
            pinned[i] = (float)i;
    }
    ~pipeline()
    {
        cudaStreamDestroy(in);
        cudaStreamDestroy(compute);
        cudaEventDestroy(arrived);
        cudaFreeHost(pinned);
        cudaFree(batch);
    }
    void feed(float *to, bool wait)
    {
        cudaMemcpyAsync(batch, pinned, 256, cudaMemcpyHostToDevice, in);
        cudaEventRecord(arrived, in);
        if (wait)
            cudaStreamWaitEvent(compute, arrived, 0);
        RM_LAUNCH(copied, 1, 32, 0, compute, batch, to, 64u);
    }
};
} // namespace

PROBE(waits_for_the_copy)
{
    probe_memory m(out);
    pipeline p;
    p.feed(m.at, true);
    const int rc = cudaStreamSynchronize(p.compute);
    return m.end(rc);
}

PROBE(forgets_to_wait)
{
    probe_memory m(out);
    pipeline p;
    p.feed(m.at, false);
    const int rc = cudaStreamSynchronize(p.compute);
    cudaMemcpy(out, m.at, sizeof(float) * PROBE_OUT, cudaMemcpyDeviceToHost);
    cudaFree(m.at);
    return rc;
}

PROBE(writes_the_batch_too_early)
{
    probe_memory m(out);
    pipeline p;
    p.feed(m.at, true);
    for (int i = 0; i < 64; i++)
        p.pinned[i] = -1; /* the copy may not have been made */
    const int rc = cudaStreamSynchronize(p.compute);
    return m.end(rc);
}

/* out[0], out[1]: what the first and a later query say; out[2]: of an event never recorded. */
PROBE(queries)
{
    float *x;
    cudaStream_t s;
    cudaEvent_t e, never;
    cudaMalloc(&x, 256);
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    cudaEventCreate(&e);
    cudaEventCreate(&never);
    cudaMemsetAsync(x, 0, 256, s);
    cudaEventRecord(e, s);
    out[0] = (float)cudaEventQuery(e);
    while (cudaEventQuery(e) == cudaErrorNotReady)
        ;
    out[1] = (float)cudaEventQuery(e);
    out[2] = (float)cudaEventQuery(never);
    cudaMemsetAsync(x, 1, 256, s);
    cudaEvent_t later;
    cudaEventCreate(&later);
    cudaEventRecord(later, s);
    float ms = -1;
    out[3] = (float)cudaEventElapsedTime(&ms, e, later); /* not yet */
    cudaEventSynchronize(later);
    out[4] = (float)cudaEventElapsedTime(&ms, e, later);
    out[5] = ms >= 0;
    out[6] = (float)cudaStreamQuery(s);
    out[7] = (float)cudaGetLastError(); /* what the queries left */
    cudaEventDestroy(e);
    cudaEventDestroy(never);
    cudaEventDestroy(later);
    cudaStreamDestroy(s);
    cudaFree(x);
    return cudaGetLastError();
}

/* The null stream and a stream that is not apart from it wait for each other. */
PROBE(null_stream)
{
    probe_memory m(out);
    cudaStream_t s;
    cudaStreamCreate(&s);
    RM_LAUNCH(add_to, 1, 32, 0, s, m.at, 1.0f, 64u);
    cudaMemsetAsync(m.at, 0, 128, 0);
    RM_LAUNCH(add_to, 1, 32, 0, s, m.at, 2.0f, 64u);
    const int rc = m.end();
    cudaStreamDestroy(s);
    return rc;
}

/* Host memory that is not pinned: staged when the call is made, and waited for on the way back. */
PROBE(pageable)
{
    float *x, host[64];
    cudaStream_t s;
    cudaMalloc(&x, sizeof host);
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    for (int i = 0; i < 64; i++)
        host[i] = (float)i;
    cudaMemcpyAsync(x, host, sizeof host, cudaMemcpyHostToDevice, s);
    memset(host, 0, sizeof host);
    const int rc = cudaMemcpyAsync(out, x, sizeof host, cudaMemcpyDeviceToHost, s);
    cudaStreamDestroy(s);
    cudaFree(x);
    return rc;
}

/* --- pointers --------------------------------------------------------------------------------- */

PROBE(host_pointer_to_kernel)
{
    probe_memory m(out);
    float *host = static_cast<float *>(calloc(64, sizeof(float)));
    RM_LAUNCH(copied, 1, 32, 0, 0, host, m.at, 64u);
    const int rc = m.end();
    free(host);
    return rc;
}

PROBE(host_pointer_within)
{
    probe_memory m(out);
    float *host = static_cast<float *>(calloc(64, sizeof(float)));
    const parts p = {host, m.at, 64};
    RM_LAUNCH(copied_by_parts, 1, 32, 0, 0, p);
    const int rc = m.end();
    free(host);
    return rc;
}

PROBE(pinned_to_kernel)
{
    probe_memory m(out);
    float *host, *seen;
    cudaHostAlloc(&host, 256, cudaHostAllocMapped);
    for (int i = 0; i < 64; i++)
        host[i] = (float)i;
    cudaHostGetDevicePointer(&seen, host, 0);
    const parts p = {seen, m.at, 64};
    RM_LAUNCH(copied_by_parts, 1, 32, 0, 0, p);
    const int rc = m.end();
    cudaFreeHost(host);
    return rc;
}

PROBE(registered_to_kernel)
{
    probe_memory m(out);
    float *host = static_cast<float *>(calloc(64, sizeof(float))), *seen = nullptr;
    host[63] = 5;
    int rc = cudaHostRegister(host, 256, cudaHostRegisterMapped | cudaHostRegisterReadOnly);
    if (!rc)
        rc = cudaHostGetDevicePointer(&seen, host, 0);
    if (!rc && cudaHostRegister(host + 8, 64, 0) != cudaErrorHostMemoryAlreadyRegistered)
        rc = -1;
    cudaGetLastError();
    RM_LAUNCH(copied, 1, 32, 0, 0, seen, m.at, 64u);
    rc = m.end(rc);
    const int gone = cudaHostUnregister(host);
    free(host);
    return rc ? rc : gone;
}

PROBE(freed_to_kernel)
{
    probe_memory m(out);
    float *x;
    cudaMalloc(&x, 256);
    cudaFree(x);
    RM_LAUNCH(copied, 1, 32, 0, 0, x, m.at, 64u);
    return m.end();
}

PROBE(copies_too_much)
{
    probe_memory m(out);
    float *x;
    cudaMalloc(&x, 256);
    const int rc = cudaMemcpyAsync(m.at, x, 260, cudaMemcpyDeviceToDevice, 0);
    return m.end(rc);
}

PROBE(copies_the_wrong_way)
{
    float *x;
    cudaMalloc(&x, 256);
    return cudaMemcpyAsync(out, x, 256, cudaMemcpyHostToDevice, 0);
}

PROBE(frees_twice)
{
    (void)out;
    float *x;
    cudaMalloc(&x, 256);
    cudaFree(x);
    return cudaFree(x);
}

PROBE(host_reads_device)
{
    float *x;
    cudaMalloc(&x, 256);
    out[0] = x[0];
    return 0;
}

PROBE(fresh_memory)
{
    probe_memory m(out);
    float *x;
    cudaMalloc(&x, 256);
    cudaMemcpyAsync(m.at, x, 256, cudaMemcpyDeviceToDevice, 0);
    cudaFree(x);
    return m.end();
}

/* out[0]: whether all of the memory can be had; then errors of what is one byte too much. */
PROBE(all_memory)
{
    size_t before, total, after;
    char *x, *y;
    cudaMemGetInfo(&before, &total);
    out[0] = cudaMalloc(&x, before) == cudaSuccess;
    cudaMemGetInfo(&after, &total);
    out[1] = (float)after;
    out[2] = (float)cudaMalloc(&y, 1);
    out[3] = (float)cudaGetLastError();
    out[4] = (float)cudaGetLastError(); /* it is not sticky */
    cudaFree(x);
    cudaMemGetInfo(&after, &total);
    out[5] = after == before;
    return 0;
}
