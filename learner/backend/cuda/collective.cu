/* Sums and averages over the devices of one process by NCCL. Each device has a communicator, and
 * one thread uses them all, so every call is within a group of calls (two devices that start one
 * after another would wait for each other).
 *
 * A call on a stream waits there for the other members. If one member's context is lost, the others
 * wait for ever, without an error in their own streams. So a wait for a member checks all of
 * them. */
#include "learner/backend/cuda/collective.h"

#include "learner/backend/cuda/memory.h"
#include "learner/backend/cuda/nccl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BETWEEN_LOOKS_NS 20000

struct rm_cuda_group {
    const struct rm_nccl *nccl;
    uint32_t count, failing_device;
    bool failed, aborted;
    struct rm_cuda *member[RM_DEVICE_MEMBERS];
    rm_nccl_comm comm[RM_DEVICE_MEMBERS];
};

static uint32_t rank_of(const struct rm_cuda *c)
{
    uint32_t rank = 0;
    while (c->group->member[rank] != c)
        rank++;
    return rank;
}

/* --- errors ---------------------------------------------------------------------------------- */

static bool nccl_ok(struct rm_cuda *c, int result, const char *call)
{
    if (result == RM_NCCL_SUCCESS || result == RM_NCCL_IN_PROGRESS)
        return rm_cuda_ready(c);
    const cudaError_t below = cudaGetLastError();
    char words[sizeof c->words];
    snprintf(words, sizeof words, "NCCL error %d, %s", result, c->group->nccl->words(result));
    return rm_cuda_fails(c, below != cudaSuccess ? below : cudaErrorUnknown, call, words);
}

void rm_cuda_members_fail(struct rm_cuda *c)
{
    struct rm_cuda_group *g = c->group;
    if (!g || g->failed)
        return;
    g->failed = true;
    g->failing_device = rank_of(c);
    for (uint32_t i = 0; i < g->count; i++)
        if (g->member[i]->error == cudaSuccess)
            g->member[i]->error = c->error;
}

const struct rm_cuda *rm_cuda_failing(const struct rm_cuda *c)
{
    return c->group && c->group->failed ? c->group->member[c->group->failing_device] : c;
}

void rm_cuda_members_look(struct rm_cuda *c)
{
    struct rm_cuda_group *g = c->group;
    for (uint32_t i = 0; g && i < g->count && !g->failed; i++) {
        int result = RM_NCCL_SUCCESS;
        const int rc = g->comm[i] ? g->nccl->async_error(g->comm[i], &result) : RM_NCCL_SUCCESS;
        nccl_ok(g->member[i], rc ? rc : result, "ncclCommGetAsyncError");
    }
}

/* --- waiting --------------------------------------------------------------------------------- */

/* Whether any member has failed, as far as its streams show. */
static bool look_after(struct rm_cuda *c)
{
    struct rm_cuda_group *g = c->group;
    for (uint32_t i = 0; i < g->count && !g->failed; i++) {
        struct rm_cuda *m = g->member[i];
        rm_cuda_use(m);
        const cudaError_t rc = rm_cuda_asked(cudaStreamQuery(rm_cuda_stream(m)));
        if (rc != cudaErrorNotReady)
            rm_cuda_ok(m, rc, "cudaStreamQuery");
    }
    rm_cuda_use(c);
    rm_cuda_members_look(c);
    return g->failed;
}

static void between_looks(void)
{
    const struct timespec t = {0, BETWEEN_LOOKS_NS};
    nanosleep(&t, NULL);
}

void rm_cuda_await_stream(struct rm_cuda *c, enum rm_queue stream)
{
    if (!c->group) {
        RM_CUDA(c, cudaStreamSynchronize(c->streams[stream]));
        return;
    }
    cudaError_t rc;
    while ((rc = rm_cuda_asked(cudaStreamQuery(c->streams[stream]))) == cudaErrorNotReady &&
           !look_after(c))
        between_looks();
    if (rc != cudaErrorNotReady)
        rm_cuda_ok(c, rc, "cudaStreamQuery");
}

void rm_cuda_await_event(struct rm_cuda *c, cudaEvent_t event)
{
    if (!c->group) {
        RM_CUDA(c, cudaEventSynchronize(event));
        return;
    }
    cudaError_t rc;
    while ((rc = rm_cuda_asked(cudaEventQuery(event))) == cudaErrorNotReady && !look_after(c))
        between_looks();
    if (rc != cudaErrorNotReady)
        rm_cuda_ok(c, rc, "cudaEventQuery");
}

/* --- the table ------------------------------------------------------------------------------- */

/* The first part of join(): the group exists, so that an error affects all devices. */
static int init(struct rm_cuda_group *g, struct rm_error *error)
{
    int list[RM_DEVICE_MEMBERS];
    struct rm_cuda *first = g->member[0];
    for (uint32_t i = 0; i < g->count; i++)
        list[i] = (int)g->member[i]->info.index;
    const int rc = g->nccl->init_all(g->comm, (int)g->count, list);
    rm_cuda_use(first);
    if (nccl_ok(first, rc, "ncclCommInitAll"))
        return 0;
    memset(g->comm, 0, sizeof g->comm); /* all that exist */
    first->backend.ops->failed(&first->backend, error);
    return -EIO;
}

static int join(struct rm_backend *const *members, uint32_t count, struct rm_error *error)
{
    const struct rm_nccl *nccl;
    if (count < 2 || count > RM_DEVICE_MEMBERS)
        return rm_fail(error, -EINVAL, "%u devices cannot be joined: 2 to %u can", count,
                       RM_DEVICE_MEMBERS);
    const int rc = rm_nccl_open(&nccl, error);
    if (rc)
        return rc;
    struct rm_cuda_group *g = static_cast<struct rm_cuda_group *>(calloc(1, sizeof *g));
    if (!g)
        return rm_fail(error, -ENOMEM, "no memory for a group of devices");
    g->nccl = nccl;
    g->count = count;
    for (uint32_t i = 0; i < count; i++) {
        g->member[i] = rm_cuda_of(members[i]);
        g->member[i]->group = g;
    }
    return init(g, error);
}

static uint32_t members(struct rm_backend *b, struct rm_backend *out[RM_DEVICE_MEMBERS])
{
    const struct rm_cuda_group *g = rm_cuda_of(b)->group;
    for (uint32_t i = 0; g && i < g->count; i++)
        out[i] = &g->member[i]->backend;
    return g ? g->count : 0;
}

static void begin(struct rm_backend *b)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (rm_cuda_ready(c))
        nccl_ok(c, c->group->nccl->group_start(), "ncclGroupStart");
}

static void reduce(struct rm_backend *b, void *at, size_t n, enum rm_device_number kind,
                   int operation)
{
    static const int types[] = {RM_NCCL_FLOAT32, RM_NCCL_FLOAT64};
    struct rm_cuda *c = rm_cuda_of(b);
    if (!rm_cuda_ready(c) || !n)
        return;
    const struct rm_cuda_group *g = c->group;
    const int rc = g->nccl->all_reduce(at, at, n, types[kind], operation, g->comm[rank_of(c)],
                                       rm_cuda_stream(c));
    if (nccl_ok(c, rc, "ncclAllReduce") && !c->capturing)
        c->counts.launches++;
}

static void mean(struct rm_backend *b, void *at, size_t n, enum rm_device_number kind)
{
    reduce(b, at, n, kind, RM_NCCL_AVERAGE);
}

static void sum(struct rm_backend *b, void *at, size_t n, enum rm_device_number kind)
{
    reduce(b, at, n, kind, RM_NCCL_SUM);
}

/* Called after an error too: begin() needs its end. */
static void end(struct rm_backend *b)
{
    struct rm_cuda *c = rm_cuda_of(b);
    nccl_ok(c, c->group->nccl->group_end(), "ncclGroupEnd");
    rm_cuda_use(c);
}

static uint32_t failing_device(struct rm_backend *b)
{
    const struct rm_cuda_group *g = rm_cuda_of(b)->group;
    return g ? g->failing_device : 0;
}

/* --- the end --------------------------------------------------------------------------------- */

void rm_cuda_abandon(struct rm_cuda *c)
{
    struct rm_cuda_group *g = c->group;
    if (!g || !g->failed || g->aborted)
        return;
    for (uint32_t i = 0; i < g->count; i++)
        if (g->member[i]->capturing) /* the last member to end its capture returns here */
            return;
    g->aborted = true;
    for (uint32_t i = 0; i < g->count;
         i++) { /* abort() waits until no graph refers to the communicator */
        rm_cuda_use(g->member[i]);
        rm_cuda_graphs_drop(g->member[i]);
    }
    for (uint32_t i = 0; i < g->count; i++)
        if (g->comm[i])
            g->nccl->abort(g->comm[i]);
    rm_cuda_use(c);
}

void rm_cuda_leave(struct rm_cuda *c)
{
    struct rm_cuda_group *g = c->group;
    if (!g)
        return;
    rm_cuda_abandon(c);
    for (uint32_t i = 0; i < g->count && !g->aborted; i++) {
        rm_cuda_use(g->member[i]);
        g->nccl->destroy(g->comm[i]);
    }
    for (uint32_t i = 0; i < g->count; i++)
        g->member[i]->group = NULL;
    free(g);
    rm_cuda_use(c);
}

const struct rm_device_collective_ops rm_cuda_collective = {.join = join,
                                                            .members = members,
                                                            .begin = begin,
                                                            .mean = mean,
                                                            .sum = sum,
                                                            .end = end,
                                                            .failing_device = failing_device};
