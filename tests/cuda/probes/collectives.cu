/* One rank of collectives over NCCL, as a learner would be: its own device, stream and memory. */
#include "collectives.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

namespace
{
struct id {
    char bytes[COLLECTIVE_ID];
};

struct nccl {
    int (*init)(void **, int, id, int);
    int (*destroy)(void *);
    int (*all_reduce)(const void *, void *, size_t, int, int, void *, cudaStream_t);
    int (*broadcast)(const void *, void *, size_t, int, int, void *, cudaStream_t);
    int (*all_gather)(const void *, void *, size_t, int, void *, cudaStream_t);
    int (*reduce_scatter)(const void *, void *, size_t, int, int, void *, cudaStream_t);
};

bool open(const char *path, nccl *n)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct {
        const char *name;
        void *to;
    } functions[] = {
        {"ncclCommInitRank", &n->init},    {"ncclCommDestroy", &n->destroy},
        {"ncclAllReduce", &n->all_reduce}, {"ncclBroadcast", &n->broadcast},
        {"ncclAllGather", &n->all_gather}, {"ncclReduceScatter", &n->reduce_scatter},
    };
    for (const auto &f : functions) {
        void *symbol = object ? dlsym(object, f.name) : nullptr;
        if (!symbol)
            return false;
        memcpy(f.to, &symbol, sizeof symbol);
    }
    return true;
}

__global__ void first(float *x, float rank, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] = (float)(i % 100u) * 0.1f + rank * 0.37f;
}

#define FLOAT 7
#define SUM   0
} // namespace

/* out: a broadcast of the last rank's (64), its part of a reduce-scatter (64), a gathered word of
 * each rank, and from 256 on what three launches of a captured all-reduce in place left (512). */
extern "C" __attribute__((visibility("default"))) int
collective_rank(const char *path, const char *bytes, int ranks, int rank, int wrong, float *out)
{
    const unsigned n = 512;
    nccl lib;
    id id;
    void *comm;
    float *x, *y;
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    memcpy(id.bytes, bytes, sizeof id.bytes);
    if (!open(path, &lib) || cudaSetDevice(rank) || lib.init(&comm, ranks, id, rank))
        return -1;
    usleep(3000 * rank); /* so that the first one is ahead */
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    RM_LAUNCH(first, 4, 64, 0, s, x, (float)rank, n);
    int rc = lib.broadcast(x, y, 64, FLOAT, ranks - 1, comm, s);
    cudaMemcpyAsync(out, y, 64 * sizeof(float), cudaMemcpyDeviceToHost, s);
    rc |= lib.reduce_scatter(x, y, 64, FLOAT, SUM, comm, s);
    cudaMemcpyAsync(out + 64, y, 64 * sizeof(float), cudaMemcpyDeviceToHost, s);
    rc |= lib.all_gather(x, y, 1, FLOAT, comm, s);
    cudaMemcpyAsync(out + 128, y, (size_t)ranks * sizeof(float), cudaMemcpyDeviceToHost, s);
    if (wrong)
        rc |= lib.all_reduce(x, x, rank ? n : n - 1, FLOAT, SUM, comm, s);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    rc |= lib.all_reduce(x, x, n, FLOAT, SUM, comm, s);
    rc |= cudaStreamEndCapture(s, &graph);
    rc |= cudaGraphInstantiate(&exec, graph, 0);
    for (int i = 0; i < 3 && !rc; i++)
        cudaGraphLaunch(exec, s);
    cudaMemcpyAsync(out + 256, x, n * sizeof(float), cudaMemcpyDeviceToHost, s);
    const int waited = cudaStreamSynchronize(s);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaFree(x);
    cudaFree(y);
    cudaStreamDestroy(s);
    lib.destroy(comm);
    return rc ? rc : waited;
}
