/* priorities: the sum tree of one policy's replay. It has a region of its own, so that it survives
 * a restart of the learner. Only the policy's learner reads and writes it.
 *
 * A LEAF is where an item may start: leaf = slot * lanes + lane, with slot = the ring row, counted
 * from the ring's first, modulo slots, and lane = the global lane (agent slot * the experiment's
 * worlds + world id). So the order of leaves does not depend on how worlds are split over actors. A
 * leaf's value is its priority, p^alpha; a leaf with 0 is never drawn.
 *
 * A NODE is the sum of eight neighbours of the level below, one cache line, added up in pairs,
 * pairs of pairs and halves. Levels go up until one line is left. So sums are a function of the
 * leaves alone, in any order of updates. After a learner died in the middle of an update, adding up
 * again repairs the tree.
 *
 * The region also has what a restarted learner needs: the largest priority so far, and for each
 * source (a ring) how far its rows have been entered. */
#ifndef RM_SHM_PRIORITIES_H
#define RM_SHM_PRIORITIES_H

#include "shm/base/error.h"
#include "shm/region.h"

#include <stdatomic.h>
#include <stdint.h>

#define RM_PRIORITY_FAN    8u
#define RM_PRIORITY_LEVELS 14u /* enough for 2^40 leaves */

struct rm_priorities_spec {
    uint64_t slots;   /* rows of a lane that may be in replay at a time */
    uint32_t lanes;   /* of all sources together */
    uint32_t sources; /* rings */
    uint32_t policy;  /* whose replay it is */
    uint32_t reserved;
};

/* A process's view. */
struct rm_priorities {
    struct rm_region region;
    struct rm_priorities_shared *shared; /* layout.h */
    struct rm_priorities_spec spec;
    _Atomic uint64_t
        *entered; /* (sources) rows below this, counted from the ring's first, are entered */
    uint32_t levels;
    uint64_t nodes[RM_PRIORITY_LEVELS]; /* of each level, multiples of 8; [0]: leaves */
    double *level[RM_PRIORITY_LEVELS];  /* [0]: leaves; the last has 8 nodes */
};

/* Bytes of a region of this spec. 0 when the spec is out of range. */
size_t rm_priorities_bytes(const struct rm_priorities_spec *spec);

/* All leaves 0, the largest priority 1. */
int rm_priorities_create(struct rm_priorities *priorities, const struct rm_priorities_spec *spec,
                         struct rm_error *error);
int rm_priorities_attach(struct rm_priorities *priorities, int fd, bool writable,
                         struct rm_error *error);
void rm_priorities_close(struct rm_priorities *priorities);

/* The leaves, the largest priority and the sources' counts, for checkpoints (shm/base/state.h). The
 * next user adds up the sums. The region must not change during the call. */
struct rm_state;
void rm_priorities_state(struct rm_priorities *priorities, struct rm_state *state);

#endif
