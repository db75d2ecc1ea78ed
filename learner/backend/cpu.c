#include "learner/backend/cpu.h"

#include "learner/backend/bf16_kernels.h"

#include "shm/atomic.h"
#include "shm/base/isa.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void destroy(struct rm_backend *b)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    rm_pool_destroy(cpu->pool);
    free(cpu->panels);
    free(cpu);
}

static int make_view(struct rm_backend *b, struct rm_backend **view)
{
    struct rm_cpu *of = rm_cpu_of(b), *cpu = calloc(1, sizeof *cpu);
    struct rm_error ignored;
    *view = NULL;
    if (!cpu)
        return -ENOMEM;
    *cpu = *of;
    cpu->backend.threads = 1;
    cpu->backend.self = cpu;
    cpu->panels = NULL;
    cpu->panel_floats = 0;
    if (rm_pool_create(&cpu->pool, 1, &ignored)) {
        free(cpu);
        return -ENOMEM;
    }
    *view = &cpu->backend;
    return 0;
}

static void run(struct rm_backend *b, void (*fn)(void *work, uint32_t tile), void *work,
                uint32_t tiles)
{
    rm_pool_run(rm_cpu_of(b)->pool, fn, work, tiles);
}

/* Header of a buffer, with the way to free it. As long as a cache line, to keep the alignment. */
struct given {
    _Alignas(64) void *start;
    size_t mapped; /* mapped bytes from `start`; 0: from malloc */
};
_Static_assert(sizeof(struct given) == 64, "alignment of buffers");

/* Buffers of at least this size are mapped by themselves: unused pages then cost nothing, and huge
 * pages, which some hosts give on request, save walks through page tables. */
#define MAPPED_BYTES ((size_t)1 << 20)
#define HUGE_BYTES   ((size_t)1 << 21)

/* Buffers start at different positions in a page, because buffers that are read side by side would
 * otherwise share the same sets of the caches. */
#define STAGGERED 16u
#define STAGGER   (64 * 37)

static struct given *map(size_t bytes)
{
    static _Atomic uint32_t maps;
    const size_t ahead = sizeof(struct given) + RM_ADD(&maps, 1) % STAGGERED * STAGGER;
    const size_t room = bytes + STAGGERED * STAGGER + HUGE_BYTES;
    const size_t all = (room + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    /* cppcheck-suppress invalidFunctionArg ; -1 is what an anonymous mapping takes */
    uint8_t *start = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    /* The header lies before the huge pages, so writing it does not clear one of them. */
    const size_t skip = HUGE_BYTES - (uintptr_t)(start + ahead) % HUGE_BYTES;
    uint8_t *huge = start + ahead + skip % HUGE_BYTES;
    madvise(huge, (size_t)(start + all - huge), MADV_HUGEPAGE);
    struct given *given = (struct given *)(void *)(huge - ahead);
    *given = (struct given){.start = start, .mapped = all};
    return given;
}

static float *alloc_floats(struct rm_backend *b, size_t floats)
{
    (void)b;
    if (floats > (SIZE_MAX / 2) / sizeof(float))
        return NULL;
    const size_t bytes = (floats * sizeof(float) + 63) / 64 * 64 + sizeof(struct given);
    struct given *given = bytes < MAPPED_BYTES ? aligned_alloc(64, bytes) : map(bytes);
    if (given && bytes < MAPPED_BYTES)
        memset(given, 0, bytes);
    return given ? (float *)(void *)(given + 1) : NULL;
}

static void release(struct rm_backend *b, void *p)
{
    (void)b;
    if (!p)
        return;
    struct given *given = (struct given *)(void *)p - 1;
    if (given->mapped)
        munmap(given->start, given->mapped);
    else
        free(given);
}

static void *alloc_bytes(struct rm_backend *b, size_t bytes, struct rm_error *error)
{
    void *p = alloc_floats(b, (bytes + sizeof(float) - 1) / sizeof(float));
    if (!p)
        rm_fail(error, -ENOMEM, "backend %s: no memory for %zu bytes", b->name, bytes);
    return p;
}

static void copy(struct rm_backend *b, void *to, const void *from, size_t bytes)
{
    (void)b;
    if (to != from)
        memcpy(to, from, bytes);
}

static void copy_floats(struct rm_backend *b, float *to, const float *from, size_t floats)
{
    copy(b, to, from, floats * sizeof *to);
}

static void copy_queued(struct rm_backend *b, enum rm_queue queue, void *to, const void *from,
                        size_t bytes)
{
    (void)queue;
    copy(b, to, from, bytes);
}

static void clear(struct rm_backend *b, void *at, size_t bytes)
{
    (void)b;
    memset(at, 0, bytes);
}

/* Nothing is left to wait for when a call returns, so there are no marks. */
static int mark_create(struct rm_backend *b, struct rm_queue_mark **mark, struct rm_error *error)
{
    (void)b;
    (void)error;
    *mark = NULL;
    return 0;
}

static void no_mark(struct rm_backend *b, struct rm_queue_mark *mark)
{
    (void)b;
    (void)mark;
}

static void no_mark_in(struct rm_backend *b, enum rm_queue queue, struct rm_queue_mark *mark)
{
    (void)queue;
    no_mark(b, mark);
}

static bool passed(struct rm_backend *b, struct rm_queue_mark *mark)
{
    (void)b;
    return !mark;
}

static void finish(struct rm_backend *b)
{
    (void)b;
}

static bool failed(struct rm_backend *b, struct rm_error *error)
{
    (void)b;
    (void)error;
    return false;
}

static uint64_t draws(struct rm_backend *b, const uint64_t *before, uint64_t times)
{
    (void)b;
    return before ? times * (*before + 1) : 0;
}

/* clang-format off */
#define ROW(name) .name = rm_cpu_##name,
static const struct rm_backend_ops ops = {
    .destroy = destroy,
    .view = make_view,
    .run = run,
    .alloc = alloc_floats,
    .release = release,
    .upload = copy_floats,
    .download = copy_floats,
    .alloc_bytes = alloc_bytes,
    .alloc_host = alloc_bytes,
    .release_host = release,
    .copy_in = copy_queued,
    .copy_out = copy_queued,
    .copy = copy,
    .clear = clear,
    .mark_create = mark_create,
    .mark_destroy = no_mark,
    .mark = no_mark_in,
    .follow = no_mark_in,
    .passed = passed,
    .wait = no_mark,
    .finish = finish,
    .failed = failed,
    .draws = draws,
    RM_OPERATIONS(ROW)
    RM_CPU_OPERATIONS(ROW)
};
#undef ROW
/* clang-format on */

/* The lists name every operation once: the seven first functions are not in them. */
/* clang-format off */
#define ONE(name) char name;
struct listed {
    RM_QUEUE_OPERATIONS(ONE)
    RM_OPERATIONS(ONE)
    RM_CPU_OPERATIONS(ONE)
    RM_DEVICE_OPERATIONS(ONE)
};
struct listed_kernels {
    RM_KERNELS(ONE)
};
/* clang-format on */
_Static_assert(sizeof(struct rm_backend_ops) / sizeof(void (*)(void)) == 7 + sizeof(struct listed),
               "an operation is in one of the lists of backend.h");
_Static_assert((sizeof(struct rm_kernels) - offsetof(struct rm_kernels, product) -
                4 * sizeof(uint32_t)) /
                       sizeof(void (*)(void)) ==
                   sizeof(struct listed_kernels),
               "a kernel is in the list of kernels.h");
#undef ONE

static const struct rm_kernels *const levels[RM_LEVEL_COUNT] = {
    &rm_isa_v2_kernels, &rm_isa_v3_kernels, &rm_isa_v4_kernels};

static const struct rm_kernels *choose(const char *isa, struct rm_error *error)
{
    const enum rm_isa_level best = rm_isa_level();
    if (!(__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt") &&
          __builtin_cpu_supports("ssse3"))) {
        rm_fail(error, -ENOTSUP, "backend: this host is older than x86-64-v2");
        return NULL;
    }
    if (!isa || !*isa || strcmp(isa, "auto") == 0)
        return levels[best];
    for (int i = 0; i < RM_LEVEL_COUNT; i++) {
        if (strcmp(levels[i]->isa, isa) != 0)
            continue;
        if (i <= (int)best)
            return levels[i];
        rm_fail(error, -ENOTSUP, "learner.isa: this host is not %s; \"auto\" uses what it has",
                isa);
        return NULL;
    }
    rm_fail(error, -EINVAL,
            "learner.isa: \"%s\" is not known; \"auto\", \"x86-64-v2\", \"x86-64-v3\" and "
            "\"x86-64-v4\" are",
            isa);
    return NULL;
}

/* A host limited to an older level computes like a host of that level. */
static bool computes_bf16(const struct rm_kernels *kernels)
{
    return kernels == &rm_isa_v4_kernels && rm_bf16_supported();
}

bool rm_backend_cpu_has_bf16(const char *isa)
{
    struct rm_error ignored;
    const struct rm_kernels *kernels = choose(isa, &ignored);
    return kernels && computes_bf16(kernels);
}

int rm_backend_cpu_create(struct rm_backend **backend, uint32_t threads, const char *isa,
                          struct rm_error *error)
{
    return rm_backend_cpu_create_for(backend, threads, isa, RM_COMPUTE_FP32, error);
}

int rm_backend_cpu_create_for(struct rm_backend **backend, uint32_t threads, const char *isa,
                              enum rm_compute compute, struct rm_error *error)
{
    *backend = NULL;
    const struct rm_kernels *kernels = choose(isa, error);
    if (!kernels)
        return isa && strncmp(isa, "x86-64-", 7) == 0 ? -ENOTSUP : -EINVAL;
    const bool bf16 = compute == RM_COMPUTE_BF16 && computes_bf16(kernels);
    struct rm_cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu)
        return rm_fail(error, -ENOMEM, "backend: out of memory");
    cpu->kernels = kernels;
    cpu->bf16 = bf16;
    int code = rm_pool_create(&cpu->pool, threads, error);
    if (code) {
        free(cpu);
        return code;
    }
    cpu->backend = (struct rm_backend){
        .api = RM_BACKEND_API, .name = "cpu", .threads = threads, .ops = &ops, .self = cpu};
    snprintf(cpu->backend.description, sizeof cpu->backend.description, "cpu %s, %s%u thread%s",
             kernels->isa,
             !bf16             ? ""
             : rm_bf16_tiles() ? "bf16 products by AMX, "
                               : "bf16 products, ",
             threads, threads == 1 ? "" : "s");
    *backend = &cpu->backend;
    return 0;
}
