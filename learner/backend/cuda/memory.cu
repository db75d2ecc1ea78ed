#include "learner/backend/cuda/memory.h"

#include "learner/backend/cuda/collective.h"

#include <errno.h>
#include <string.h>

static bool within_capture(struct rm_cuda *c, const char *call)
{
    if (!c->capturing)
        return false;
    rm_cuda_ok(c, cudaErrorStreamCaptureUnsupported, call);
    return true;
}

void *rm_cuda_alloc_bytes(struct rm_backend *b, size_t bytes, struct rm_error *error)
{
    struct rm_cuda *c = rm_cuda_of(b);
    void *p = NULL;
    const size_t size = bytes ? bytes : 1;
    if (within_capture(c, "cudaMalloc"))
        return NULL;
    const cudaError_t rc = cudaMalloc(&p, size);
    if (rc != cudaSuccess) {
        size_t free = 0, all = 0;
        cudaMemGetInfo(&free, &all);
        cudaGetLastError(); /* not sticky: the next call must not report it */
        rm_fail(&c->shortage, -ENOMEM, "%s (%s): %zu bytes asked for, %zu of %zu free: %s",
                c->info.name, c->info.uuid, size, free, all, cudaGetErrorString(rc));
        rm_fail(error, -ENOMEM, "%s", c->shortage.text);
        return NULL;
    }
    c->counts.allocations++;
    rm_cuda_clear(b, p, size);
    if (rm_cuda_ready(c)) /* because the first write may be on another stream */
        RM_CUDA(c, cudaStreamSynchronize(c->streams[RM_QUEUE_COMPUTE]));
    return p;
}

float *rm_cuda_alloc_floats(struct rm_backend *b, size_t floats)
{
    if (floats > SIZE_MAX / sizeof(float))
        return NULL;
    return static_cast<float *>(rm_cuda_alloc_bytes(b, floats * sizeof(float), NULL));
}

void rm_cuda_release(struct rm_backend *b, void *p)
{
    struct rm_cuda *c = rm_cuda_of(b);
    rm_cuda_abandon(c);
    if (p)
        RM_CUDA(c, cudaFree(p));
}

void *rm_cuda_alloc_host(struct rm_backend *b, size_t bytes, struct rm_error *error)
{
    struct rm_cuda *c = rm_cuda_of(b);
    void *p = NULL;
    if (within_capture(c, "cudaHostAlloc"))
        return NULL;
    const cudaError_t rc = cudaHostAlloc(&p, bytes ? bytes : 1, cudaHostAllocDefault);
    if (rc != cudaSuccess) {
        cudaGetLastError();
        rm_fail(&c->shortage, -ENOMEM,
                "no %zu bytes of pinned memory: %s. Is there a limit of locked memory (ulimit -l)?",
                bytes, cudaGetErrorString(rc));
        rm_fail(error, -ENOMEM, "%s", c->shortage.text);
        return NULL;
    }
    c->counts.allocations++;
    memset(p, 0, bytes);
    return p;
}

void rm_cuda_release_host(struct rm_backend *b, void *p)
{
    struct rm_cuda *c = rm_cuda_of(b);
    rm_cuda_abandon(c);
    if (p)
        RM_CUDA(c, cudaFreeHost(p));
}

int rm_cuda_register_host(struct rm_backend *b, void *at, size_t bytes, bool read_only,
                          void **device, struct rm_error *error)
{
    const unsigned flags =
        cudaHostRegisterMapped | (read_only ? (unsigned)cudaHostRegisterReadOnly : 0u);
    (void)rm_cuda_of(b);
    cudaError_t rc = cudaHostRegister(at, bytes, flags);
    if (rc == cudaSuccess) {
        rc = cudaHostGetDevicePointer(device, at, 0);
        if (rc != cudaSuccess)
            cudaHostUnregister(at);
    }
    if (rc == cudaSuccess)
        return 0;
    cudaGetLastError();
    return rm_fail(error, -ENOTSUP, "%zu bytes of shared memory cannot be read in place: %s", bytes,
                   cudaGetErrorString(rc));
}

void rm_cuda_unregister_host(struct rm_backend *b, void *at)
{
    RM_CUDA(rm_cuda_of(b), cudaHostUnregister(at));
}

void rm_cuda_copy_in(struct rm_backend *b, enum rm_queue stream, void *to, const void *from,
                     size_t bytes)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (!rm_cuda_ready(c) || !bytes)
        return;
    RM_CUDA(c, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, c->streams[stream]));
    c->counts.bytes_in += bytes;
}

void rm_cuda_copy_out(struct rm_backend *b, enum rm_queue stream, void *to, const void *from,
                      size_t bytes)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (!rm_cuda_ready(c) || !bytes)
        return;
    RM_CUDA(c, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, c->streams[stream]));
    c->counts.bytes_out += bytes;
}

void rm_cuda_copy(struct rm_backend *b, void *to, const void *from, size_t bytes)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (rm_cuda_ready(c) && bytes)
        RM_CUDA(c, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, rm_cuda_stream(c)));
}

void rm_cuda_clear(struct rm_backend *b, void *at, size_t bytes)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (rm_cuda_ready(c) && bytes)
        RM_CUDA(c, cudaMemsetAsync(at, 0, bytes, rm_cuda_stream(c)));
}

static void wait_for(struct rm_cuda *c)
{
    if (!rm_cuda_ready(c))
        return;
    c->counts.synchronizations++;
    rm_cuda_await_stream(c, RM_QUEUE_COMPUTE);
}

void rm_cuda_upload(struct rm_backend *b, float *to, const float *from, size_t floats)
{
    rm_cuda_copy_in(b, RM_QUEUE_COMPUTE, to, from, floats * sizeof(float));
    wait_for(rm_cuda_of(b));
}

void rm_cuda_download(struct rm_backend *b, float *to, const float *from, size_t floats)
{
    struct rm_cuda *c = rm_cuda_of(b);
    rm_cuda_copy_out(b, RM_QUEUE_COMPUTE, to, from, floats * sizeof(float));
    wait_for(c);
    if (!rm_cuda_ready(c)) /* no stale data after an error */
        memset(to, 0xff, floats * sizeof(float));
}
