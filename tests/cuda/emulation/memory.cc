/* Memory of devices: an address range of its own for each device, so that no pointer is mistaken
 * for the host's; pinned and registered memory of the host; and what may be done with each. */
#include "state.h"

#include <stdlib.h>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RM_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define RM_ASAN 1
#endif
#ifdef RM_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes)   ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

namespace rm_emulated
{
namespace
{
#define ALIGNMENT 256u
#define FILLED    (1u << 20)
#define ZONE      256u /* behind each piece, at least */

struct arena {
    char *at = nullptr;
    size_t bytes = 0; /* of addresses: twice the memory, so that what is freed is not used soon */
    size_t top = 0;   /* used so far */
    uint64_t in_use = 0;
};

arena arenas[16];
/* By their last byte + 1: upper_bound(p) finds the piece that p is in. */
std::map<const char *, memory> &pieces = *new std::map<const char *, memory>;

size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

arena &arena_of(int device)
{
    arena &a = arenas[device];
    if (!a.at) {
        a.bytes = round_up(set().memory * 2 + (1u << 20), 4096);
        void *p = mmap(nullptr, a.bytes, set().guard ? PROT_NONE : PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) {
            perror("emulated device: address range");
            abort();
        }
        a.at = static_cast<char *>(p);
        madvise(p, a.bytes, MADV_HUGEPAGE); /* few entries for mprotect() to change */
    }
    return a;
}

/* A freed piece that is large enough, or new addresses. */
char *take(arena &a, int device, size_t room)
{
    if (a.top + room <= a.bytes) {
        char *p = a.at + a.top;
        a.top += room;
        return p;
    }
    for (auto i = pieces.begin(); i != pieces.end(); ++i) {
        const memory m = i->second;
        if (m.kind == MEMORY_FREED && m.device == device && m.bytes + ZONE >= room) {
            pieces.erase(i);
            return m.at;
        }
    }
    return nullptr;
}

void keep(const memory &m)
{
    pieces[m.at + m.bytes] = m;
}

unsigned touched_by;

void protect(int how)
{
    for (const arena &a : arenas)
        if (a.at && a.top)
            mprotect(a.at, round_up(a.top, 4096), how);
}
} // namespace

memory find(const void *p)
{
    const char *at = static_cast<const char *>(p);
    auto i = pieces.lower_bound(at);
    /* Where one ends and the next begins, the next. */
    if (i != pieces.end() && i->first == at) {
        auto next = std::next(i);
        if (next != pieces.end() && next->second.at == at)
            return next->second;
    }
    return i != pieces.end() && at >= i->second.at ? i->second : memory{};
}

static std::string beyond(const memory &m, const void *p, size_t bytes)
{
    const size_t offset = (size_t)(static_cast<const char *>(p) - m.at);
    if (offset <= m.bytes && bytes <= m.bytes - offset)
        return "";
    return format("%zu bytes at %p: %zu bytes into a piece of %zu", bytes, p, offset, m.bytes);
}

std::string wrong_on_device(const void *p, size_t bytes, int device)
{
    const memory m = find(p);
    if (m.kind == MEMORY_FREED)
        return format("%p was freed", p);
    if (m.kind == MEMORY_UNKNOWN)
        return format("%p is not the device's", p);
    if (m.kind == MEMORY_DEVICE && m.device != device)
        return format("%p is memory of device %d, not of %d", p, m.device, device);
    return beyond(m, p, bytes);
}

std::string wrong_on_host(const void *p, size_t bytes)
{
    const memory m = find(p);
    if (m.kind == MEMORY_DEVICE || m.kind == MEMORY_FREED)
        return format("%p is the device's, not the host's", p);
    /* Where registered memory ends, other memory may begin. */
    const bool behind = m.kind == MEMORY_REGISTERED && p == m.at + m.bytes;
    return m.kind == MEMORY_UNKNOWN || behind ? "" : beyond(m, p, bytes);
}

std::string wrong_argument(const void *p, int device)
{
    return p ? wrong_on_device(p, 0, device) : "";
}

/* Where programs and their heaps begin on Linux; below are the shadows of sanitizers, which are
 * mapped as well, and two small numbers side by side. */
#define HOST_BEGINS 0x550000000000ull

std::string wrong_word(uint64_t word, int device)
{
    void *page = reinterpret_cast<void *>(word & ~4095ull);
    unsigned char there;
    for (const arena &a : arenas)
        if (a.at && (char *)word >= a.at && (char *)word < a.at + a.top)
            return wrong_argument((void *)word, device);
    if (word < HOST_BEGINS || word >= 1ull << 47)
        return "";
    if (find((void *)word).kind != MEMORY_UNKNOWN || mincore(page, 1, &there) != 0)
        return "";
    return wrong_argument((void *)word, device);
}

void fill(void *at, size_t bytes)
{
    const uint32_t word = set().poison;
    unsigned char *b = static_cast<unsigned char *>(at);
    for (size_t i = 0; i < bytes; i += 4)
        memcpy(b + i, &word, bytes - i < 4 ? bytes - i : 4);
}

std::string written_beside()
{
#ifndef RM_ASAN
    for (const auto &i : pieces)
        if (i.second.kind == MEMORY_DEVICE) {
            const unsigned char *z =
                reinterpret_cast<unsigned char *>(i.second.at) + i.second.bytes;
            for (unsigned k = 0; k < 32; k++)
                if (z[k] != 0xa5)
                    return format("%u bytes behind a piece of %zu bytes were written", k,
                                  i.second.bytes);
        }
#endif
    return "";
}

touching::touching()
{
    if (!touched_by++ && set().guard)
        protect(PROT_READ | PROT_WRITE);
}

touching::~touching()
{
    if (!--touched_by && set().guard)
        protect(PROT_NONE);
}

uint64_t forget_memory()
{
    uint64_t left = 0;
    for (const auto &i : pieces) {
        left += i.second.kind != MEMORY_FREED;
        if (i.second.kind == MEMORY_PINNED)
            free(i.second.at);
    }
    pieces.clear();
    for (arena &a : arenas) {
        ASAN_UNPOISON_MEMORY_REGION(a.at, a.top);
        if (a.at)
            munmap(a.at, a.bytes);
        a = arena{};
    }
    return left;
}
} // namespace rm_emulated

using namespace rm_emulated;

cudaError_t rm_cuda_runtime_malloc(void **p, size_t bytes)
{
    RM_CALL("cudaMalloc");
    *p = nullptr;
    if (const cudaError_t rc = unsafe_in_capture())
        return here.gives(rc);
    if (!bytes)
        return cudaSuccess;
    const int device = mine().device;
    arena &a = arena_of(device);
    const size_t room = round_up(bytes + ZONE, ALIGNMENT);
    if (bytes > set().memory || a.in_use + bytes > set().memory)
        return here.gives(cudaErrorMemoryAllocation);
    char *at = take(a, device, room);
    if (!at)
        return here.gives(cudaErrorMemoryAllocation);
    const touching t;
    if (touched_by > 1 && set().guard) /* opened before there was this piece */
        protect(PROT_READ | PROT_WRITE);
    memory m;
    m.kind = MEMORY_DEVICE;
    m.at = at;
    m.bytes = bytes;
    m.device = device;
    keep(m);
    ASAN_UNPOISON_MEMORY_REGION(at, room);
    fill(at, bytes < FILLED ? bytes : FILLED); /* of a large piece, both ends */
    if (bytes > FILLED)
        fill(at + (bytes - FILLED) / 4 * 4, FILLED);
    memset(at + bytes, 0xa5, room - bytes);
    ASAN_POISON_MEMORY_REGION(at + bytes, room - bytes);
    a.in_use += bytes;
    counts.allocations++;
    counts.device_bytes += bytes;
    *p = at;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    RM_CALL("cudaFree");
    if (!p)
        return cudaSuccess;
    if (const cudaError_t rc = unsafe_in_capture())
        return here.gives(rc);
    run_all(); /* as the real one does */
    const touching t;
    memory m = find(p);
    if (m.kind != MEMORY_DEVICE || m.at != p)
        return here.gives(
            complain(cudaErrorInvalidValue,
                     format("cudaFree(%p): %s", p,
                            m.kind == MEMORY_FREED ? "freed before" : "not from cudaMalloc")));
    const std::string beside = written_beside();
    if (!beside.empty()) {
        lose(cudaErrorIllegalAddress, beside);
        return here.gives(cudaErrorIllegalAddress);
    }
    m.kind = MEMORY_FREED;
    keep(m);
    fill(m.at, m.bytes < FILLED ? m.bytes : FILLED);
    ASAN_POISON_MEMORY_REGION(m.at, m.bytes);
    arenas[m.device].in_use -= m.bytes;
    counts.frees++;
    counts.device_bytes -= m.bytes;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    RM_CALL("cudaMemGetInfo");
    *total = set().memory;
    *free = set().memory - arenas[mine().device].in_use;
    return cudaSuccess;
}

cudaError_t rm_cuda_runtime_host_alloc(void **p, size_t bytes, unsigned, const char *name)
{
    RM_CALL(name);
    *p = nullptr;
    if (const cudaError_t rc = unsafe_in_capture())
        return here.gives(rc);
    if (!bytes)
        return cudaSuccess;
    memory m;
    /* With room behind it, so that no other memory begins where it ends. */
    m.at = static_cast<char *>(aligned_alloc(ALIGNMENT, round_up(bytes + 1, ALIGNMENT)));
    if (!m.at)
        return here.gives(cudaErrorMemoryAllocation);
    m.kind = MEMORY_PINNED;
    m.bytes = bytes;
    fill(m.at, bytes);
    keep(m);
    counts.host_allocations++;
    counts.host_bytes += bytes;
    *p = m.at;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
    RM_CALL("cudaFreeHost");
    if (!p)
        return cudaSuccess;
    if (const cudaError_t rc = unsafe_in_capture())
        return here.gives(rc);
    run_all();
    const memory m = find(p);
    if (m.kind != MEMORY_PINNED || m.at != p)
        return here.gives(
            complain(cudaErrorInvalidValue, format("cudaFreeHost(%p): not from cudaHostAlloc", p)));
    pieces.erase(m.at + m.bytes);
    free(p);
    counts.host_frees++;
    counts.host_bytes -= m.bytes;
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned flags)
{
    RM_CALL("cudaHostRegister");
    if (const cudaError_t rc = unsafe_in_capture())
        return here.gives(rc);
    if (!p || !bytes)
        return here.gives(cudaErrorInvalidValue);
    char *at = static_cast<char *>(p);
    for (const auto &i : pieces)
        if (i.second.at < at + bytes && at < i.second.at + i.second.bytes)
            return here.gives(cudaErrorHostMemoryAlreadyRegistered);
    memory m;
    m.kind = MEMORY_REGISTERED;
    m.at = at;
    m.bytes = bytes;
    m.read_only = flags & cudaHostRegisterReadOnly;
    keep(m);
    counts.registrations++;
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *p)
{
    RM_CALL("cudaHostUnregister");
    if (const cudaError_t rc = unsafe_in_capture())
        return here.gives(rc);
    run_all();
    const memory m = find(p);
    if (m.kind != MEMORY_REGISTERED || m.at != p)
        return here.gives(cudaErrorHostMemoryNotRegistered);
    pieces.erase(m.at + m.bytes);
    counts.registrations--;
    return cudaSuccess;
}

cudaError_t rm_cuda_runtime_host_pointer(void **device, void *host, unsigned)
{
    RM_CALL("cudaHostGetDevicePointer");
    const memory m = find(host);
    *device = nullptr;
    if (m.kind != MEMORY_PINNED && m.kind != MEMORY_REGISTERED)
        return here.gives(cudaErrorInvalidValue);
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *p)
{
    RM_CALL("cudaPointerGetAttributes");
    const memory m = find(p);
    void *at = const_cast<void *>(p);
    *out = cudaPointerAttributes{};
    out->device = m.device;
    if (m.kind == MEMORY_DEVICE) {
        out->type = cudaMemoryTypeDevice;
        out->devicePointer = at;
    } else if (m.kind == MEMORY_PINNED || m.kind == MEMORY_REGISTERED) {
        out->type = cudaMemoryTypeHost;
        out->devicePointer = out->hostPointer = at;
    } else
        out->hostPointer = at;
    return cudaSuccess;
}
