/* region: one sealed memfd, mapped. Every shared object (board, ring, weights) is one region.
 *
 * Lifetime: the daemon creates regions and keeps their descriptors; workers inherit the descriptors
 * over exec and attach. The memory lives until the last descriptor and mapping are gone, so nothing
 * is left behind after a crash. Pages are allocated at creation (posix_fallocate), so a full memory
 * file system is an error at start and never a SIGBUS later.
 *
 * A region starts with struct rm_region_header (layout.h). Its version is stored last, with
 * release, so a process that sees the version sees a complete object. */
#ifndef RM_SHM_REGION_H
#define RM_SHM_REGION_H

#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rm_region_kind {
    RM_REGION_BOARD = 1,
    RM_REGION_RING,
    RM_REGION_WEIGHTS,
    RM_REGION_TEXT,       /* the resolved configuration, as JSON */
    RM_REGION_PRIORITIES, /* of replay */
};

struct rm_region {
    void *base;   /* the mapping; the header is at offset 0. NULL when closed */
    size_t bytes; /* size of the mapping */
    int fd;       /* the memfd, -1 when this mapping does not own one */
};

/* Results of attaching. A waiting state is not an error: the creator may not be done yet. */
enum rm_attach {
    RM_ATTACH_OK = 0,
    RM_ATTACH_AWAITING_VERSION = 1, /* header there, not yet published */
};

/* Creates, allocates, seals (shrink, grow) and maps a region; zero-filled except for its header.
 * The object is not visible to attachers until rm_region_publish(). Errors: -ENOSPC or -ENOMEM; the
 * message has the requested and the free size. */
int rm_region_create(struct rm_region *region, enum rm_region_kind kind, const char *name,
                     size_t bytes, struct rm_error *error);

/* Stores the version with release. Call once the object is complete. */
void rm_region_publish(struct rm_region *region);

/* Makes a published region read-only for all processes: remaps it read-only, and the kernel refuses
 * new writable mappings (F_SEAL_WRITE). */
int rm_region_freeze(struct rm_region *region, struct rm_error *error);
bool rm_region_frozen(int fd);

/* Maps an existing region. `writable` false maps it read-only for good: through a separate open
 * file description without write access, so that no later mprotect() makes it writable. Takes no
 * ownership of fd. Returns RM_ATTACH_OK, RM_ATTACH_AWAITING_VERSION, or a negative errno: -EPROTO
 * for a wrong magic, kind, size or layout hash (the message says which, with both values). */
int rm_region_attach(struct rm_region *region, int fd, enum rm_region_kind kind, bool writable,
                     struct rm_error *error);

/* Unmaps, and closes the descriptor if the region owns it. Does nothing to a closed region. */
void rm_region_close(struct rm_region *region);

#endif
