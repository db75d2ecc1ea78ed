/* plugin: ringmaster-cuda.so's one symbol, devices, and the backend object. */
#include "learner/backend/cuda/collective.h"
#include "learner/backend/cuda/memory.h"
#include "learner/backend/cuda/ops.h"
#include "learner/backend/cuda/tables.h"
#include "learner/backend/cuda/product.h"
#include "learner/backend/cuda/sums.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* --- errors ---------------------------------------------------------------------------------- */

bool rm_cuda_fails(struct rm_cuda *c, cudaError_t error, const char *call, const char *words)
{
    if (c->error == cudaSuccess) {
        c->error = error;
        snprintf(c->call, sizeof c->call, "%s", call);
        snprintf(c->words, sizeof c->words, "%s", words);
        rm_cuda_members_fail(c);
    }
    return false;
}

bool rm_cuda_ok(struct rm_cuda *c, cudaError_t error, const char *call)
{
    char words[sizeof c->words];
    if (error == cudaSuccess || c->error != cudaSuccess)
        return c->error == cudaSuccess;
    snprintf(words, sizeof words, "%s (%s)", cudaGetErrorString(error), cudaGetErrorName(error));
    return rm_cuda_fails(c, error, call, words);
}

bool rm_cuda_blas_ok(struct rm_cuda *c, cublasStatus_t status, const char *call)
{
    char words[sizeof c->words];
    if (status == CUBLAS_STATUS_SUCCESS || c->error != cudaSuccess)
        return c->error == cudaSuccess;
    const cudaError_t below = cudaGetLastError();
    const cudaError_t error = below != cudaSuccess ? below : cudaErrorUnknown;
    snprintf(words, sizeof words, "cublas status %d, %s", (int)status, cudaGetErrorString(error));
    return rm_cuda_fails(c, error, call, words);
}

void rm_cuda_launched(struct rm_cuda *c, const char *kernel)
{
    rm_cuda_ok(c, cudaGetLastError(), kernel);
    if (!c->capturing)
        c->counts.launches++;
}

bool rm_cuda_failed(struct rm_backend *b, struct rm_error *error)
{
    struct rm_cuda *own = rm_cuda_of(b);
    rm_cuda_members_look(own);
    if (own->error == cudaSuccess)
        return false;
    const struct rm_cuda *c = rm_cuda_failing(own);
    rm_fail(error, -EIO, "CUDA error %d (%s) on %s, cuda:%u %.40s, in %s", (int)c->error, c->words,
            c->info.uuid, c->info.index, c->info.name, c->call);
    return true;
}

/* --- current devices ------------------------------------------------------------------------- */

bool rm_cuda_several;

/* Ignores errors: the next call reports them. */
void rm_cuda_use(const struct rm_cuda *c)
{
    cudaSetDevice((int)c->info.index);
}

static void take_note(uint32_t index)
{
    static bool any;
    static uint32_t first;
    if (!any)
        first = index;
    any = true;
    rm_cuda_several = rm_cuda_several || index != first;
}

/* --- devices --------------------------------------------------------------------------------- */

static void write_uuid(const cudaDeviceProp *p, char out[48])
{
    const unsigned char *u = reinterpret_cast<const unsigned char *>(p->uuid.bytes);
    snprintf(out, 48, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
             u[14], u[15]);
}

/* MPS is in use if its control daemon listens in the directory that this process would use. */
static bool under_mps(void)
{
    const char *given = getenv("CUDA_MPS_PIPE_DIRECTORY");
    struct sockaddr_un at = {};
    at.sun_family = AF_UNIX;
    const int length = snprintf(at.sun_path, sizeof at.sun_path, "%s/control",
                                given && *given ? given : "/tmp/nvidia-mps");
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool there = fd >= 0 && length < (int)sizeof at.sun_path &&
                       connect(fd, reinterpret_cast<const sockaddr *>(&at), sizeof at) == 0;
    if (fd >= 0)
        close(fd);
    return there;
}

/* Numbers devices as nvidia-smi does, unless the environment says otherwise; must precede the first
 * call of the runtime. */
__attribute__((constructor)) static void number_by_bus(void)
{
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
}

/* The kernels need bf16 products and asynchronous copies. */
#define OLDEST_MAJOR 8u

static int describe(uint32_t index, struct rm_device_info *info, struct rm_error *error)
{
    cudaDeviceProp p;
    const cudaError_t rc = cudaGetDeviceProperties(&p, (int)index);
    if (rc != cudaSuccess) {
        cudaGetLastError();
        return rm_fail(error, -EIO, "device %u: %s", index, cudaGetErrorString(rc));
    }
    memset(info, 0, sizeof *info);
    info->index = index;
    snprintf(info->name, sizeof info->name, "%s", p.name);
    write_uuid(&p, info->uuid);
    info->major = (uint32_t)p.major;
    info->minor = (uint32_t)p.minor;
    info->memory = p.totalGlobalMem;
    info->processors = (uint32_t)p.multiProcessorCount;
    info->mps = under_mps();
    return 0;
}

static int devices(struct rm_device_info *out, uint32_t room, uint32_t *count,
                   struct rm_error *error)
{
    int n = 0;
    *count = 0;
    const cudaError_t rc = cudaGetDeviceCount(&n);
    if (rc != cudaSuccess)
        cudaGetLastError();
    if (rc == cudaErrorNoDevice)
        return 0;
    if (rc != cudaSuccess) {
        return rm_fail(error, rc == cudaErrorInsufficientDriver ? -ENOTSUP : -ENODEV, "%s (%s)",
                       cudaGetErrorString(rc), cudaGetErrorName(rc));
    }
    *count = (uint32_t)n;
    for (uint32_t i = 0; i < *count && i < room; i++) {
        const int bad = describe(i, &out[i], error);
        if (bad)
            return bad;
    }
    return 0;
}

/* --- the backend ----------------------------------------------------------------------------- */

uint64_t rm_cuda_draws(struct rm_backend *b, const uint64_t *before, uint64_t times)
{
    rm_cuda_of(b)->before = before;
    rm_cuda_of(b)->times = times;
    return before ? times : 0;
}

static const char *shortage(struct rm_backend *b)
{
    return rm_cuda_of(b)->shortage.text;
}

static void counts(struct rm_backend *b, struct rm_device_counts *out)
{
    *out = rm_cuda_of(b)->counts;
}

static void destroy(struct rm_backend *b)
{
    struct rm_cuda *c = rm_cuda_of(b);
    rm_cuda_leave(c);
    for (int i = 0; i < RM_QUEUES; i++)
        if (c->streams[i]) {
            cudaStreamSynchronize(c->streams[i]);
            cudaStreamDestroy(c->streams[i]);
        }
    rm_cuda_products_destroy(c);
    cudaFree(c->partials);
    cudaFree(c->sums);
    cudaFreeHost(c->host_sums);
    free(c);
}

#define ROW(name) .name = rm_cuda_##name,
/* clang-format off */
static const struct rm_device_ops device_ops = {
    RM_DEVICE_MEMORY(ROW)
    .shortage = shortage,
    .counts = counts,
    .values = &rm_cuda_values,
    .sequences = &rm_cuda_sequences,
    .soft = &rm_cuda_soft,
    .policies = &rm_cuda_policies,
    .optimizer = &rm_cuda_optimizer,
    .feed = &rm_cuda_feed,
    .worlds = &rm_cuda_worlds,
    .collective = &rm_cuda_collective,
};
/* clang-format on */
#undef ROW

/* The names of the list are not in the order of the members. */
static struct rm_backend_ops operations_table(void)
{
    struct rm_backend_ops o = {.destroy = destroy,
                               .alloc = rm_cuda_alloc_floats,
                               .release = rm_cuda_release,
                               .upload = rm_cuda_upload,
                               .download = rm_cuda_download};
#define ROW(name) o.name = rm_cuda_##name;
    RM_QUEUE_OPERATIONS(ROW)
    RM_OPERATIONS(ROW)
    RM_DEVICE_OPERATIONS(ROW)
#undef ROW
    return o;
}

static const struct rm_backend_ops ops = operations_table();

static bool make_sums(struct rm_cuda *c)
{
    struct rm_backend *b = &c->backend;
    c->partials = static_cast<decltype(c->partials)>(
        rm_cuda_alloc_bytes(b, (RM_CUDA_PARTIALS + RM_CUDA_TICKETS) * sizeof *c->partials, NULL));
    c->sums = static_cast<double *>(rm_cuda_alloc_bytes(b, RM_CUDA_SUMS * sizeof *c->sums, NULL));
    c->host_sums =
        static_cast<double *>(rm_cuda_alloc_host(b, RM_CUDA_SUMS * sizeof *c->host_sums, NULL));
    return c->partials && c->sums && c->host_sums;
}

static bool limits(struct rm_cuda *c)
{
    int bytes = 0;
    if (!RM_CUDA(c, cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                           (int)c->spec.index)))
        return false;
    c->shared_most = (size_t)bytes;
    return true;
}

bool rm_cuda_roomy(struct rm_cuda *c, const void *kernel)
{
    unsigned i = 0;
    while (i < RM_CUDA_ROOMY && c->roomy[i] && c->roomy[i] != kernel)
        i++;
    if (i < RM_CUDA_ROOMY && c->roomy[i])
        return rm_cuda_ready(c);
    if (!rm_cuda_ready(c) ||
        !RM_CUDA(c, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         (int)c->shared_most)))
        return false;
    if (i < RM_CUDA_ROOMY)
        c->roomy[i] = kernel;
    return true;
}

static int create(struct rm_backend **backend, const struct rm_device_spec *spec,
                  struct rm_error *error)
{
    struct rm_cuda *c = static_cast<struct rm_cuda *>(calloc(1, sizeof *c));
    *backend = NULL;
    if (!c)
        return rm_fail(error, -ENOMEM, "backend: out of memory");
    c->spec = *spec;
    c->backend.api = RM_BACKEND_API;
    c->backend.name = "cuda";
    c->backend.threads = 1;
    c->backend.ops = &ops;
    c->backend.staged = true;
    c->backend.device = &device_ops;
    c->backend.self = c;
    int rc = describe(spec->index, &c->info, error);
    if (!rc && c->info.major < OLDEST_MAJOR)
        rc = rm_fail(error, -ENOTSUP,
                     "cuda:%u %.40s has compute capability %u.%u; %u.0 or newer is needed",
                     c->info.index, c->info.name, c->info.major, c->info.minor, OLDEST_MAJOR);
    if (!rc) {
        take_note(spec->index);
        bool made = RM_CUDA(c, cudaSetDevice((int)spec->index));
        if (made && cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) != cudaSuccess)
            cudaGetLastError(); /* an earlier user of the device has set them: waits then spin */
        for (int i = 0; i < RM_QUEUES && made; i++)
            made = RM_CUDA(c, cudaStreamCreateWithFlags(&c->streams[i], cudaStreamNonBlocking));
        made = made && limits(c) && rm_cuda_products_create(c) && make_sums(c);
        if (!made)
            rc = rm_cuda_failed(&c->backend, error)
                     ? -EIO
                     : rm_fail(error, -ENOMEM, "%s", shortage(&c->backend));
    }
    if (rc) {
        destroy(&c->backend);
        return rc;
    }
    snprintf(c->backend.description, sizeof c->backend.description, "cuda:%u %.40s (%s), sm_%u%u",
             c->info.index, c->info.name, c->info.uuid, c->info.major, c->info.minor);
    *backend = &c->backend;
    return 0;
}

extern "C" {
extern const struct rm_backend_plugin ringmaster_backend_plugin
    __attribute__((visibility("default")));
const struct rm_backend_plugin ringmaster_backend_plugin = {
    RM_PLUGIN_API, RM_BACKEND_API, RM_PLUGIN_LAYOUT, "cuda", devices, create,
};
}
