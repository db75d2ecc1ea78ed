/* priority_tree: draws from a sum tree (shm/priorities.h) and changes of its leaves, many at a
 * time: several descents or climbs run side by side, so that their cache misses overlap.
 *
 * Prioritized experience replay: Schaul 2016, section 3.3 and appendix B.2.1. Belongs to one
 * thread; nothing is allocated. */
#ifndef RM_LEARNER_PRIORITY_TREE_H
#define RM_LEARNER_PRIORITY_TREE_H

#include "shm/priorities.h"

#include <stdint.h>

/* Adds up all levels from the leaves: after attaching to another process's tree. */
void rm_priority_rebuild(struct rm_priorities *priorities);

/* Sum of all leaves. */
double rm_priority_total(const struct rm_priorities *priorities);

/* Number of leaves that are not 0, by a pass over all of them. */
uint64_t rm_priority_count(const struct rm_priorities *priorities);

/* Sets leaf leaf[i] to value[i] >= 0, finite; of equal leaves the last counts. Returns the change
 * of the number of items. */
int64_t rm_priority_set(struct rm_priorities *priorities, const uint64_t *leaf, const double *value,
                        uint32_t n);

/* leaf[i] becomes the leaf at which the running sum of leaves passes at[i], 0 <= at[i] < total.
 * Rounding never leads to a leaf of 0 unless all leaves are 0; at[i] >= total gives one of the last
 * other leaves. */
void rm_priority_find(const struct rm_priorities *priorities, const double *at, uint32_t n,
                      uint64_t *leaf);

static inline double rm_priority_at(const struct rm_priorities *priorities, uint64_t leaf)
{
    return priorities->level[0][leaf];
}

#endif
