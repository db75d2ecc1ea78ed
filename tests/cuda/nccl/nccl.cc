/* A double of NCCL, libnccl.so.2, for ranks that are threads or processes of one host on emulated
 * devices. A communicator's ranks share a file of memory (a memfd: it has no name, so that nothing
 * is left of it after a kill). Each collective has a part of the file, to which every rank writes
 * its input. When all have written, each rank sums in the order of ranks, so all have the same
 * bits. Different collectives, or a rank that does not arrive within a minute, are errors with a
 * message; no process hangs.
 *
 * Collectives run on the streams of the emulated plugin: the one that RINGMASTER_CUDA_PLUGIN names,
 * which the process must have opened. */
#include "tests/cuda/emulation/control.h"
#include "tests/cuda/emulation/half.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    UNHANDLED = 1,
    SYSTEM = 2,
    INTERNAL = 3,
    INVALID_ARGUMENT = 4,
    INVALID_USAGE = 5
};
enum { SUM = 0, PRODUCT = 1, MAX = 2, MIN = 3, AVERAGE = 4 };
enum {
    INT8 = 0,
    UINT8 = 1,
    INT32 = 2,
    UINT32 = 3,
    INT64 = 4,
    UINT64 = 5,
    HALF = 6,
    FLOAT = 7,
    DOUBLE = 8,
    BFLOAT16 = 9
};
enum kind { ALL_REDUCE = 1, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER };

#define CUDA_LAUNCH_FAILURE  719
#define CUDA_ILLEGAL_ADDRESS 700
#define PATIENCE_S           60
#define PAGE                 ((size_t)4096)

struct ncclUniqueId {
    char internal[128];
};

namespace
{
/* Of a collective; behind it lie the ranks' parts. */
struct header {
    std::atomic<uint32_t> written, read;
    std::atomic<uint64_t> what; /* of the first rank: kind, type, operation, root, count */
};

/* The first page of a communicator's file. */
struct meeting {
    std::atomic<uint32_t> joined;
};

struct job;
} // namespace

struct ncclComm {
    int file;
    int ranks, rank, device;
    std::atomic<size_t> used; /* bytes of the file, as all ranks count them */
    std::atomic<int> error;
    std::atomic<bool> aborted;
    std::atomic<int> graphs; /* pieces of work in graphs that refer to it */
    std::vector<job *> jobs;
};

namespace
{
struct job {
    job *next;      /* of the same group of calls and communicator */
    header *h;      /* from write_part() to finish() */
    size_t at, all; /* in the file */
    ncclComm *comm;
    kind what;
    const void *from;
    void *to;
    size_t count;
    int type, operation, root;
    void *stream;
};

struct emulation {
    int (*enqueue)(void *, void (*)(void *), void *, void (*)(void *, int));
    const char *(*wrong)(void *, const void *, uint64_t);
    int (*wait)(int (*)(void *), void *);
    void (*lose)(int, const char *);
    int (*device)(void);
    int (*injected)(const char *);
};

/* Errors set by RM_EMULATED_FAULT, by the names of these functions. */
#define INJECTED(name)                                                                             \
    do {                                                                                           \
        const int rc = plugin() ? plugin()->injected(name) : 0;                                    \
        if (rc)                                                                                    \
            return rc;                                                                             \
    } while (0)

const emulation *plugin()
{
    static emulation e;
    static const bool found = [] {
        const char *path = getenv("RINGMASTER_CUDA_PLUGIN");
        void *object = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : nullptr;
        if (!object)
            return false;
        const struct {
            const char *name;
            void *to;
        } functions[] = {
            {"rm_emulated_enqueue", &e.enqueue}, {"rm_emulated_wrong", &e.wrong},
            {"rm_emulated_while", &e.wait},      {"rm_emulated_lose", &e.lose},
            {"rm_emulated_device", &e.device},   {"rm_emulated_injected", &e.injected}};
        for (const auto &f : functions) {
            void *symbol = dlsym(object, f.name);
            if (!symbol)
                return false;
            memcpy(f.to, &symbol, sizeof symbol);
        }
        return true;
    }();
    return found ? &e : nullptr;
}

size_t size_of(int type)
{
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return type >= 0 && type <= BFLOAT16 ? sizes[type] : 0;
}

/* --- numbers ---------------------------------------------------------------------------------- */

template <class T>
T joined(T a, T b, int operation)
{
    switch (operation) {
    case PRODUCT:
        return (T)(a * b);
    case MAX:
        return std::max(a, b);
    case MIN:
        return std::min(a, b);
    default:
        return (T)(a + b);
    }
}

/* to = parts[0] op parts[1] op ..., in this order */
template <class T, class Get, class Put>
void combine(const std::vector<const char *> &parts, size_t count, int operation, Get get, Put put)
{
    for (size_t i = 0; i < count; i++) {
        T v = get(parts[0], i);
        for (size_t r = 1; r < parts.size(); r++)
            v = joined(v, get(parts[r], i), operation);
        put(i, operation == AVERAGE ? (T)(v / (T)parts.size()) : v);
    }
}

template <class T>
void combine_plain(const std::vector<const char *> &parts, size_t count, int operation, char *to)
{
    combine<T>(
        parts, count, operation,
        [](const char *p, size_t i) { return reinterpret_cast<const T *>(p)[i]; },
        [to](size_t i, T v) { reinterpret_cast<T *>(to)[i] = v; });
}

template <float from(uint16_t), uint16_t into(float)>
void combine_half(const std::vector<const char *> &parts, size_t count, int operation, char *to)
{
    combine<float>(
        parts, count, operation,
        [](const char *p, size_t i) { return from(reinterpret_cast<const uint16_t *>(p)[i]); },
        [to](size_t i, float v) { reinterpret_cast<uint16_t *>(to)[i] = into(v); });
}

void reduce(const std::vector<const char *> &parts, size_t count, int type, int operation, char *to)
{
    static void (*const table[])(const std::vector<const char *> &, size_t, int, char *) = {
        combine_plain<int8_t>,
        combine_plain<uint8_t>,
        combine_plain<int32_t>,
        combine_plain<uint32_t>,
        combine_plain<int64_t>,
        combine_plain<uint64_t>,
        combine_half<rm_emulated::from_fp16, rm_emulated::to_fp16>,
        combine_plain<float>,
        combine_plain<double>,
        combine_half<rm_emulated::from_bf16, rm_emulated::to_bf16>,
    };
    table[type](parts, count, operation, to);
}

/* --- shared memory ---------------------------------------------------------------------------- */

/* A part of a communicator's file, which is as long as who needs most of it has made it. */
void *map(int file, size_t at, size_t bytes)
{
    while (fallocate(file, 0, (off_t)at, (off_t)bytes))
        if (errno != EINTR)
            return nullptr;
    void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)at);
    return p == MAP_FAILED ? nullptr : p;
}

struct wait {
    header *h;
    uint32_t ranks;
};

int still_waiting(void *data)
{
    const wait *w = static_cast<const wait *>(data);
    return w->h->written.load(std::memory_order_acquire) < w->ranks;
}

bool fail(job *j, int error, const std::string &why)
{
    j->comm->error = INTERNAL;
    plugin()->lose(error, ("NCCL, rank " + std::to_string(j->comm->rank) + ": " + why).c_str());
    return false;
}

/* Elements that a rank reads and writes. */
size_t elements_in(const job *j)
{
    return j->what == REDUCE_SCATTER ? j->count * (size_t)j->comm->ranks : j->count;
}

size_t elements_out(const job *j)
{
    return j->what == ALL_GATHER ? j->count * (size_t)j->comm->ranks : j->count;
}

void combine(const job *j, const std::vector<const char *> &parts)
{
    const size_t size = size_of(j->type), rank = (size_t)j->comm->rank, bytes = j->count * size;
    char *to = static_cast<char *>(j->to);
    std::vector<const char *> own = parts;
    switch (j->what) {
    case REDUCE_SCATTER:
        for (const char *&p : own)
            p += rank * bytes;
        reduce(own, j->count, j->type, j->operation, to);
        break;
    case REDUCE:
        if (j->comm->rank == j->root)
            reduce(parts, j->count, j->type, j->operation, to);
        break;
    case ALL_REDUCE:
        reduce(parts, j->count, j->type, j->operation, to);
        break;
    case BROADCAST:
        memcpy(to, parts[(size_t)j->root], bytes);
        break;
    case ALL_GATHER:
        for (size_t r = 0; r < parts.size(); r++)
            memcpy(to + r * bytes, parts[r], bytes);
        break;
    }
}

/* Copies a rank's input to where the other ranks read it. */
bool write_part(job *j)
{
    ncclComm *c = j->comm;
    const size_t bytes = elements_in(j) * size_of(j->type);
    const size_t part = (bytes + 63) / 64 * 64, all = 64 + part * (size_t)c->ranks;
    const size_t at = c->used.fetch_add((all + PAGE - 1) / PAGE * PAGE);
    const bool writes = j->what != REDUCE || c->rank == j->root;
    const char *w = plugin()->wrong(j->stream, j->from, bytes);
    if (!w && writes)
        w = plugin()->wrong(j->stream, j->to, elements_out(j) * size_of(j->type));
    if (w)
        return fail(j, CUDA_ILLEGAL_ADDRESS, w);
    header *h = static_cast<header *>(map(c->file, at, all));
    if (!h)
        return fail(j, CUDA_LAUNCH_FAILURE, std::string("shared memory: ") + strerror(errno));
    const uint64_t what = (uint64_t)j->what << 56 | (uint64_t)(j->type & 15) << 52 |
                          (uint64_t)(j->operation & 15) << 48 | (uint64_t)(j->root & 255) << 40 |
                          (j->count & 0xffffffffffull);
    uint64_t first = 0;
    if (!h->what.compare_exchange_strong(first, what) && first != what) {
        munmap(h, all);
        return fail(j, CUDA_LAUNCH_FAILURE, "ranks call different collectives");
    }
    memcpy(reinterpret_cast<char *>(h) + 64 + part * (size_t)c->rank, j->from, bytes);
    h->written.fetch_add(1, std::memory_order_release);
    j->h = h;
    j->at = at;
    j->all = all;
    return true;
}

bool await(job *j)
{
    wait until = {j->h, (uint32_t)j->comm->ranks};
    if (!plugin()->wait(still_waiting, &until))
        return true;
    return fail(j, CUDA_LAUNCH_FAILURE, "other ranks do not come");
}

void finish(job *j)
{
    const size_t part = (j->all - 64) / (size_t)j->comm->ranks;
    std::vector<const char *> every;
    for (int r = 0; r < j->comm->ranks; r++)
        every.push_back(reinterpret_cast<char *>(j->h) + 64 + part * (size_t)r);
    combine(j, every);
    const bool last = j->h->read.fetch_add(1) + 1 == (uint32_t)j->comm->ranks;
    munmap(j->h, j->all);
    if (last)
        fallocate(j->comm->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)j->at,
                  (off_t)((j->all + PAGE - 1) / PAGE * PAGE));
}

/* The calls of one group run together: a rank writes all of its inputs before it waits. */
void run(void *data)
{
    job *first = static_cast<job *>(data);
    if (first->comm->aborted)
        return;
    for (job *j = first; j; j = j->next)
        if (!write_part(j))
            return;
    for (job *j = first; j; j = j->next) {
        if (!await(j))
            return;
        finish(j);
    }
}

/* A communicator is referred to by the graphs that its work was captured into. */
void keep(void *data, int by)
{
    static_cast<job *>(data)->comm->graphs += by;
}

/* The library waits here until no graph refers to the communicator. The caller owns the graphs, so
 * it would wait for ever. */
int reclaim(ncclComm *c, const char *call)
{
    if (!c->graphs)
        return SUCCESS;
    plugin()->lose(CUDA_LAUNCH_FAILURE, (std::string("NCCL: ") + call + " waits for " +
                                         std::to_string(c->graphs) + " graphs for ever")
                                            .c_str());
    return INTERNAL;
}

thread_local int groups;
thread_local std::vector<job *> *grouped;

int put(job *j)
{
    if (grouped && groups) {
        grouped->push_back(j);
        return SUCCESS;
    }
    return plugin()->enqueue(j->stream, run, j, keep) ? UNHANDLED : SUCCESS;
}

/* One piece of work for each communicator, with all of its calls. */
int enqueue_grouped()
{
    std::vector<job *> first;
    int rc = SUCCESS;
    for (job *j : *grouped) {
        job **end = nullptr;
        for (job *&f : first)
            if (f->comm == j->comm)
                for (end = &f; *end;)
                    end = &(*end)->next;
        if (!end)
            first.push_back(j);
        else
            *end = j;
    }
    for (job *j : first)
        rc = plugin()->enqueue(j->stream, run, j, keep) ? UNHANDLED : rc;
    return rc;
}

int start(ncclComm *c, kind what, const void *from, void *to, size_t count, int type, int operation,
          int root, void *stream)
{
    if (!c || !size_of(type) || operation < SUM || operation > AVERAGE || root < 0 ||
        root >= c->ranks)
        return INVALID_ARGUMENT;
    if (c->error)
        return c->error;
    job *j =
        new job{nullptr, nullptr, 0, 0, c, what, from, to, count, type, operation, root, stream};
    c->jobs.push_back(j);
    return put(j);
}
} // namespace

typedef ncclComm *ncclComm_t;

EXPORT int ncclGetVersion(int *version)
{
    *version = 22700;
    return SUCCESS;
}

EXPORT const char *ncclGetErrorString(int error)
{
    static const char *const words[] = {
        "no error",       "unhandled cuda error", "unhandled system error",
        "internal error", "invalid argument",     "invalid usage"};
    return error >= 0 && error <= INVALID_USAGE ? words[error] : "unknown result code";
}

EXPORT const char *ncclGetLastError(ncclComm_t)
{
    return "";
}

/* Names the file by a descriptor of who asks, which has to be there until all ranks have joined. */
EXPORT int ncclGetUniqueId(ncclUniqueId *id)
{
    const int file = memfd_create("nccl", MFD_CLOEXEC);
    if (file < 0)
        return SYSTEM;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/proc/%d/fd/%d", (int)getpid(), file);
    return SUCCESS;
}

static ncclComm *made(int file, int ranks, int rank, int device)
{
    ncclComm *c = new ncclComm;
    c->file = file;
    c->ranks = ranks;
    c->rank = rank;
    c->device = device;
    c->used = PAGE;
    c->error = 0;
    c->aborted = false;
    c->graphs = 0;
    return c;
}

/* Returns when all ranks have joined. */
EXPORT int ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    *comm = nullptr;
    if (ranks < 1 || rank < 0 || rank >= ranks || strncmp(id.internal, "/proc/", 6) != 0)
        return INVALID_ARGUMENT;
    if (!plugin())
        return SYSTEM;
    const int file = open(id.internal, O_RDWR | O_CLOEXEC);
    meeting *m = file < 0 ? nullptr : static_cast<meeting *>(map(file, 0, PAGE));
    if (!m) {
        if (file >= 0)
            close(file);
        return SYSTEM;
    }
    const time_t begin = time(nullptr);
    m->joined++;
    while (m->joined < (uint32_t)ranks && time(nullptr) - begin <= PATIENCE_S)
        usleep(100);
    const bool all = m->joined >= (uint32_t)ranks;
    munmap(m, PAGE);
    if (!all) {
        close(file);
        return SYSTEM;
    }
    *comm = made(file, ranks, rank, plugin()->device());
    return SUCCESS;
}

/* All ranks are the calling thread's. */
EXPORT int ncclCommInitAll(ncclComm_t *comms, int ranks, const int *devices)
{
    INJECTED("ncclCommInitAll");
    if (!plugin())
        return SYSTEM;
    if (ranks < 1)
        return INVALID_ARGUMENT;
    for (int i = 0; i < ranks; i++)
        if (std::count(devices, devices + ranks, devices[i]) != 1)
            return INVALID_USAGE;
    int file = memfd_create("nccl", MFD_CLOEXEC);
    for (int i = 0; i < ranks; i++) {
        const int own = i ? fcntl(file, F_DUPFD_CLOEXEC, 0) : file;
        if (own < 0)
            return SYSTEM;
        comms[i] = made(own, ranks, i, devices[i]);
    }
    return SUCCESS;
}

EXPORT int ncclCommDestroy(ncclComm_t c)
{
    if (const int rc = reclaim(c, "ncclCommDestroy"))
        return rc;
    for (job *j : c->jobs)
        delete j;
    close(c->file);
    delete c;
    return SUCCESS;
}

/* What is on streams or in graphs does nothing any more, but is there. */
EXPORT int ncclCommAbort(ncclComm_t c)
{
    static std::vector<ncclComm *> *kept = new std::vector<ncclComm *>;
    c->aborted = true;
    kept->push_back(c);
    return reclaim(c, "ncclCommAbort");
}

EXPORT int ncclCommGetAsyncError(ncclComm_t c, int *error)
{
    const int injected = plugin()->injected("ncclCommGetAsyncError");
    *error = injected ? injected : (int)c->error;
    return SUCCESS;
}

EXPORT int ncclCommCount(ncclComm_t c, int *count)
{
    *count = c->ranks;
    return SUCCESS;
}

EXPORT int ncclCommUserRank(ncclComm_t c, int *rank)
{
    *rank = c->rank;
    return SUCCESS;
}

EXPORT int ncclCommCuDevice(ncclComm_t c, int *device)
{
    *device = c->device;
    return SUCCESS;
}

EXPORT int ncclGroupStart(void)
{
    if (!grouped)
        grouped = new std::vector<job *>;
    groups++;
    return SUCCESS;
}

EXPORT int ncclGroupEnd(void)
{
    if (!groups)
        return INVALID_USAGE;
    int rc = plugin() ? plugin()->injected("ncclGroupEnd") : SUCCESS;
    if (--groups == 0) { /* ended by an error, too */
        if (!rc)
            rc = enqueue_grouped();
        delete grouped;
        grouped = nullptr;
    }
    return rc;
}

EXPORT int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
                         ncclComm_t c, void *stream)
{
    INJECTED("ncclAllReduce");
    return start(c, ALL_REDUCE, from, to, count, type, operation, 0, stream);
}

EXPORT int ncclReduce(const void *from, void *to, size_t count, int type, int operation, int root,
                      ncclComm_t c, void *stream)
{
    return start(c, REDUCE, from, to, count, type, operation, root, stream);
}

EXPORT int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, ncclComm_t c,
                         void *stream)
{
    return start(c, BROADCAST, from, to, count, type, SUM, root, stream);
}

EXPORT int ncclAllGather(const void *from, void *to, size_t count, int type, ncclComm_t c,
                         void *stream)
{
    return start(c, ALL_GATHER, from, to, count, type, SUM, 0, stream);
}

EXPORT int ncclReduceScatter(const void *from, void *to, size_t count, int type, int operation,
                             ncclComm_t c, void *stream)
{
    return start(c, REDUCE_SCATTER, from, to, count, type, operation, 0, stream);
}
