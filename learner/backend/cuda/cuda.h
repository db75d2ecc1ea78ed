/* cuda: shared by the files of the CUDA backend; no other room includes it.
 *
 * One file for each family of operations (*.cu): kernels, then the functions of the table, which
 * launch them on struct rm_cuda's COMPUTE stream. ops.h, tables.h and the families' own headers
 * declare them; plugin.cu fills the tables.
 *
 * RULES OF KERNELS
 * - The CPU's numbers within 1e-5 (float32), and the same bits in every run: no atomics on
 *   floats; a sum has one order that depends on shapes alone.
 * - In operations: no allocation, no waiting by the host, nothing that a graph cannot capture.
 * - Beyond their arguments they read struct rm_cuda's `before` (draws) and nothing else.
 * - They compile for the host too (launch.h): no PTX but tensor.h's, no textures, no cooperative
 *   groups; warp shuffles with full masks; warpSize is 32.
 * - Shared memory is written before it is read, and all threads reach a barrier. */
#ifndef RM_LEARNER_BACKEND_CUDA_CUDA_H
#define RM_LEARNER_BACKEND_CUDA_CUDA_H

#include "learner/backend/cuda/launch.h"

#include <cublasLt.h>
#include <type_traits>

extern "C" {
#include "learner/backend/backend.h"
#include "learner/backend/device.h"
#include "learner/backend/plugin.h"
}

struct rm_cuda_products; /* product.cu: plans of cublasLt and their workspace */
struct rm_cuda_group;    /* collective.cu: devices that average together */

#define RM_CUDA_ROOMY 16u

struct rm_cuda {
    struct rm_backend backend; /* first */
    struct rm_device_info info;
    struct rm_device_spec spec;
    size_t shared_most;               /* bytes of shared memory that a block may ask for */
    const void *roomy[RM_CUDA_ROOMY]; /* kernels that may use so much */
    cudaStream_t streams[RM_QUEUES];
    bool capturing;
    uint64_t allocations_at_capture;
    struct rm_device_counts counts;

    /* The first error, and the call that returned it. */
    cudaError_t error;
    char call[64];
    struct rm_error shortage; /* of the last allocation that failed */
    char words[256];          /* the error's text, if a library other than the runtime gave it */

    /* draws() */
    const uint64_t *before;
    uint64_t times;

    struct rm_cuda_products *products;
    struct rm_cuda_group *group;    /* NULL: alone */
    struct rm_device_graph *graphs; /* all graphs */
    float *partials;                /* (RM_CUDA_PARTIALS, sums.h) of sums over rows */
    double *sums;                   /* (RM_CUDA_SUMS) partial sums of reductions */
    double *host_sums;              /* pinned: what sum_squares() fetches */
};

#define RM_CUDA_SUMS 4096u

/* The type of the function that a table's member points to. */
#define RM_CUDA_MEMBER(table, member) std::remove_pointer<decltype(table::member)>::type

/* Lets launches of the kernel use all the shared memory that a block may have, permanently: a lower
 * limit would hold for recorded launches too. */
bool rm_cuda_roomy(struct rm_cuda *c, const void *kernel);

/* Whether this process has backends of several devices. Then a thread's current device is the last
 * one it used, and every function of the tables first selects its own. */
extern bool rm_cuda_several;
void rm_cuda_use(const struct rm_cuda *c);

static inline struct rm_cuda *rm_cuda_of(struct rm_backend *b)
{
    struct rm_cuda *c = static_cast<struct rm_cuda *>(b->self);
    if (rm_cuda_several)
        rm_cuda_use(c);
    return c;
}

static inline cudaStream_t rm_cuda_stream(struct rm_cuda *c)
{
    return c->streams[RM_QUEUE_COMPUTE];
}

/* Keeps the first error. Returns whether there is none; rm_cuda_fails() always returns false. */
bool rm_cuda_ok(struct rm_cuda *c, cudaError_t error, const char *call);
bool rm_cuda_blas_ok(struct rm_cuda *c, cublasStatus_t status, const char *call);
bool rm_cuda_fails(struct rm_cuda *c, cudaError_t error, const char *call, const char *words);
#define RM_CUDA(c, call) rm_cuda_ok((c), (call), #call)

/* The result of a query; "not ready" is no error, so it must not be reported by a later call. */
static inline cudaError_t rm_cuda_asked(cudaError_t answer)
{
    if (answer == cudaErrorNotReady)
        cudaGetLastError();
    return answer;
}

/* Before a launch: false after an error. After a launch: counts it and checks that it started. */
static inline bool rm_cuda_ready(const struct rm_cuda *c)
{
    return c->error == cudaSuccess;
}
void rm_cuda_launched(struct rm_cuda *c, const char *kernel);

/* RM_RUN(c, kernel, grid, block, arguments...) launches on the COMPUTE stream, RM_RUN_SHARED with
 * shared memory of a given size. */
#define RM_RUN_SHARED(c, kernel, grid, block, shared, ...)                                         \
    do {                                                                                           \
        if (rm_cuda_ready(c)) {                                                                    \
            RM_LAUNCH(kernel, grid, block, shared, rm_cuda_stream(c), __VA_ARGS__);                \
            rm_cuda_launched(c, #kernel);                                                          \
        }                                                                                          \
    } while (0)
#define RM_RUN(c, kernel, grid, block, ...) RM_RUN_SHARED(c, kernel, grid, block, 0, __VA_ARGS__)

/* Number of blocks of `block` threads for n elements, limited so that a thread may have several
 * elements (kernels stride over the grid). */
static inline unsigned rm_cuda_blocks(const struct rm_cuda *c, size_t n, unsigned block)
{
    const size_t blocks = (n + block - 1) / block, most = (size_t)c->info.processors * 8;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/* The loop of an elementwise kernel. */
#define RM_EACH(i, n)                                                                              \
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (n);                        \
         i += (size_t)gridDim.x * blockDim.x)

#endif
