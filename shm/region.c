#include "shm/region.h"

#include "shm/base/fault.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define MIB   (1024.0 * 1024.0)

static const char *kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [RM_REGION_BOARD] = "board",           [RM_REGION_RING] = "ring",
        [RM_REGION_WEIGHTS] = "weights",       [RM_REGION_TEXT] = "text",
        [RM_REGION_PRIORITIES] = "priorities",
    };
    if (kind >= sizeof names / sizeof names[0] || !names[kind])
        return "unknown";
    return names[kind];
}

uint64_t rm_layout_hash(void)
{
    static const uint64_t folded[] = {
        RM_LINE,
        sizeof(void *),
        sizeof(struct rm_region_header),
        sizeof(struct rm_ring_spec),
        sizeof(struct rm_ring_shared),
        sizeof(struct rm_row_head),
        sizeof(struct rm_weights_slot),
        sizeof(struct rm_weights_shared),
        sizeof(struct rm_priorities_spec),
        sizeof(struct rm_priorities_shared),
        RM_PRIORITY_FAN,
        sizeof(struct rm_wake_word),
        sizeof(struct rm_limiter),
        sizeof(struct rm_round),
        sizeof(struct rm_scores),
        sizeof(struct rm_board_policy),
        sizeof(struct rm_board_agent),
        sizeof(struct rm_board_worker),
        sizeof(struct rm_board_run),
        sizeof(struct rm_board),
        RM_BOARD_SETTINGS,
        RM_SCORE_WINDOW,
        RM_PHASE_COUNT,
#ifdef RM_FAULT_SITES
        1, /* a build with fault sites does not share with one without */
#else
        0,
#endif
    };
    uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a, 64 bits, over the numbers' bytes */
    for (size_t i = 0; i < sizeof folded / sizeof folded[0]; i++)
        for (unsigned byte = 0; byte < 8; byte++)
            hash = (hash ^ ((folded[i] >> (8 * byte)) & 0xff)) * 0x100000001b3ull;
    return hash;
}

/* Bytes of free memory by the kernel's estimate; 0 when it gives none. */
static uint64_t memory_available(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file)
        return 0;
    char line[128];
    unsigned long long kib = 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            break;
    fclose(file);
    return (uint64_t)kib * 1024;
}

/* Refuses with a message what the kernel would punish with a signal or the memory killer, or accept
 * silently. */
static int check_room(const char *name, size_t bytes, struct rm_error *error)
{
    /* Beyond this limit the kernel sends SIGXFSZ, which ends the process without a message. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        bytes > limit.rlim_cur)
        return rm_fail(error, -ENOSPC,
                       "region %s: needs %zu bytes (%.1f MiB) of shared memory, but the limit on "
                       "file size (ulimit -f) allows %llu bytes; raise it or use smaller rings",
                       name, bytes, (double)bytes / MIB, (unsigned long long)limit.rlim_cur);

    uint64_t available = memory_available();
    if (available > 0 && bytes > available)
        return rm_fail(error, -ENOMEM,
                       "region %s: needs %zu bytes (%.1f MiB) of shared memory, but only %.1f MiB "
                       "of memory are free; use smaller rings",
                       name, bytes, (double)bytes / MIB, (double)available / MIB);

    /* A memfd does not count against /dev/shm, whose size (often tiny in containers) is therefore
     * no limit. But a full /dev/shm means that the host's shared memory is used up. */
    struct statvfs shm;
    if (statvfs("/dev/shm", &shm) == 0 && shm.f_blocks > 0 && shm.f_bavail == 0)
        return rm_fail(error, -ENOSPC,
                       "region %s: needs %zu bytes (%.1f MiB) of shared memory, but /dev/shm is "
                       "full: 0 of its %.1f MiB are free; remove what fills it",
                       name, bytes, (double)bytes / MIB,
                       (double)shm.f_blocks * (double)shm.f_frsize / MIB);
    return 0;
}

/* A read-only descriptor of the same file, or -1 with errno. A mapping through a writable
 * descriptor could be made writable by mprotect(), even by code that has no descriptor. */
static int open_read_only(const char *name, int fd, struct rm_error *error)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int reading = open(path, O_RDONLY | O_CLOEXEC);
    if (reading < 0) {
        const int why = errno;
        rm_fail(error, -why, "region %s: cannot open %s for reading: %s", name, path,
                strerror(why));
        errno = why;
    }
    return reading;
}

static int map(struct rm_region *region, const char *name, int fd, size_t bytes, bool writable,
               struct rm_error *error)
{
    int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    const int from = writable ? fd : open_read_only(name, fd, error);
    if (from < 0)
        return -errno;
    void *base = mmap(NULL, bytes, protection, MAP_SHARED, from, 0);
    const int why = errno;
    if (!writable)
        close(from);
    errno = why;
    if (base == MAP_FAILED)
        return rm_fail(error, -errno, "region %s: cannot map %zu bytes (%.1f MiB) %s: %s", name,
                       bytes, (double)bytes / MIB, writable ? "writable" : "read-only",
                       strerror(errno));
    region->base = base;
    region->bytes = bytes;
    return 0;
}

int rm_region_create(struct rm_region *region, enum rm_region_kind kind, const char *name,
                     size_t bytes, struct rm_error *error)
{
    *region = (struct rm_region){.fd = -1};
    if (bytes < sizeof(struct rm_region_header))
        return rm_fail(error, -EINVAL, "region %s: %zu bytes are too few for its %zu-byte header",
                       name, bytes, sizeof(struct rm_region_header));
    int rc = check_room(name, bytes, error);
    if (rc)
        return rc;

    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return rm_fail(error, -errno, "region %s: memfd_create: %s%s", name, strerror(errno),
                       errno == EMFILE ? " (raise ulimit -n)" : "");
    do
        rc = posix_fallocate(fd, 0, (off_t)bytes);
    while (rc == EINTR);
    if (rc) {
        close(fd);
        return rm_fail(error, -rc,
                       "region %s: cannot allocate %zu bytes (%.1f MiB) of shared memory: %s; "
                       "%.1f MiB of memory are free",
                       name, bytes, (double)bytes / MIB, strerror(rc),
                       (double)memory_available() / MIB);
    }
    if (fcntl(fd, F_ADD_SEALS, SEALS) != 0) {
        rc = rm_fail(error, -errno, "region %s: cannot seal: %s", name, strerror(errno));
        close(fd);
        return rc;
    }
    rc = map(region, name, fd, bytes, true, error);
    if (!region->base) {
        close(fd);
        return rc;
    }
    region->fd = fd;

    struct rm_region_header *header = region->base;
    RM_POKE(&header->magic, RM_LAYOUT_MAGIC);
    header->layout_hash = rm_layout_hash();
    header->bytes = bytes;
    header->kind = kind;
    snprintf(header->name, sizeof header->name, "%s", name);
    return 0;
}

void rm_region_publish(struct rm_region *region)
{
    struct rm_region_header *header = region->base;
    RM_FAULT("region.publish.before");
    rm_atomic_region_publish(&header->version, RM_LAYOUT_VERSION);
    RM_FAULT("region.publish.after");
}

int rm_region_freeze(struct rm_region *region, struct rm_error *error)
{
    char name[RM_REGION_NAME_MAX];
    snprintf(name, sizeof name, "%s", ((struct rm_region_header *)region->base)->name);
    munmap(region->base, region->bytes); /* the kernel refuses the seal while a writable mapping
                                          * exists */
    int rc = fcntl(region->fd, F_ADD_SEALS, F_SEAL_WRITE) == 0
                 ? map(region, name, region->fd, region->bytes, false, error)
                 : rm_fail(error, -errno, "region %s: cannot be sealed against writing: %s", name,
                           strerror(errno));
    if (rc < 0) {
        close(region->fd);
        *region = (struct rm_region){.fd = -1};
    }
    return rc;
}

bool rm_region_frozen(int fd)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_WRITE);
}

/* Checks the header against this build. */
static int check_header(const struct rm_region_header *header, size_t bytes,
                        enum rm_region_kind kind, struct rm_error *error)
{
    uint64_t magic = RM_PEEK(&header->magic);
    uint32_t version = rm_atomic_region_version(&header->version);
    if (magic != RM_LAYOUT_MAGIC && (magic != 0 || version != 0))
        return rm_fail(
            error, -EPROTO, "%s region: magic is %#llx; a region of Ringmaster has %#llx",
            kind_name(kind), (unsigned long long)magic, (unsigned long long)RM_LAYOUT_MAGIC);
    if (version == 0)
        return RM_ATTACH_AWAITING_VERSION;
    if (version != RM_LAYOUT_VERSION)
        return rm_fail(error, -EPROTO,
                       "%s region %.*s: layout version is %u, this build has %u: processes of "
                       "different versions cannot share memory",
                       kind_name(kind), RM_REGION_NAME_MAX, header->name, version,
                       RM_LAYOUT_VERSION);
    if (header->layout_hash != rm_layout_hash())
        return rm_fail(error, -EPROTO,
                       "%s region %.*s: layout hash is %#llx, this build has %#llx: processes of "
                       "different builds cannot share memory",
                       kind_name(kind), RM_REGION_NAME_MAX, header->name,
                       (unsigned long long)header->layout_hash,
                       (unsigned long long)rm_layout_hash());
    if (header->kind != (uint32_t)kind)
        return rm_fail(error, -EPROTO, "region %.*s: kind is %s (%u), expected %s (%u)",
                       RM_REGION_NAME_MAX, header->name, kind_name(header->kind), header->kind,
                       kind_name(kind), (unsigned)kind);
    if (header->bytes != bytes)
        return rm_fail(error, -EPROTO, "%s region %.*s: header says %llu bytes, the file has %zu",
                       kind_name(kind), RM_REGION_NAME_MAX, header->name,
                       (unsigned long long)header->bytes, bytes);
    return RM_ATTACH_OK;
}

int rm_region_attach(struct rm_region *region, int fd, enum rm_region_kind kind, bool writable,
                     struct rm_error *error)
{
    *region = (struct rm_region){.fd = -1};
    struct stat file;
    if (fstat(fd, &file) != 0)
        return rm_fail(error, -errno, "%s region: descriptor %d: %s", kind_name(kind), fd,
                       strerror(errno));
    if ((uint64_t)file.st_size < sizeof(struct rm_region_header))
        return rm_fail(
            error, -EPROTO, "%s region: descriptor %d holds %lld bytes, a header has %zu",
            kind_name(kind), fd, (long long)file.st_size, sizeof(struct rm_region_header));
    /* Without the seal any holder of the descriptor could shrink the file, and reading would raise
     * SIGBUS. */
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS)
        return rm_fail(error, -EPROTO,
                       "%s region: descriptor %d is not a sealed memfd (seals %#x, expected %#x)",
                       kind_name(kind), fd, seals < 0 ? 0u : (unsigned)seals, (unsigned)SEALS);

    int rc = map(region, kind_name(kind), fd, (size_t)file.st_size, writable, error);
    if (!region->base)
        return rc;
    rc = check_header(region->base, region->bytes, kind, error);
    if (rc != RM_ATTACH_OK)
        rm_region_close(region);
    return rc;
}

void rm_region_close(struct rm_region *region)
{
    if (region->base) {
        munmap(region->base, region->bytes);
        if (region->fd >= 0)
            close(region->fd);
    }
    *region = (struct rm_region){.fd = -1};
}
