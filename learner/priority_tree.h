/* priority_tree: draws from a sum tree (shm/priorities.h) and changes its leaves, many at a time.
 * Several descents or climbs run side by side, so that their cache misses overlap.
 *
 * Prioritized experience replay: Schaul 2016, section 3.3 and appendix B.2.1. Belongs to one
 * thread; nothing is allocated. */
#ifndef RM_LEARNER_PRIORITY_TREE_H
#define RM_LEARNER_PRIORITY_TREE_H

#include "shm/priorities.h"

#include <stdint.h>

/* Computes all levels from the leaves. Call after attaching to another process's tree. */
void rm_priority_rebuild(struct rm_priorities *priorities);

/* Sum of all leaves. */
double rm_priority_total(const struct rm_priorities *priorities);

/* Number of leaves that are not 0, by a pass over all of them. */
uint64_t rm_priority_count(const struct rm_priorities *priorities);

/* Sets leaf leaf[i] to value[i], which must be finite and >= 0. If a leaf occurs twice, its last
 * value counts. Returns the change of the number of leaves that are not 0. */
int64_t rm_priority_set(struct rm_priorities *priorities, const uint64_t *leaf, const double *value,
                        uint32_t n);

/* Sets leaf[i] to the leaf at which the running sum of leaves exceeds at[i], 0 <= at[i] < total.
 * Unless all leaves are 0, rounding never leads to a leaf that is 0. at[i] >= total gives one of
 * the last leaves that are not 0. */
void rm_priority_find(const struct rm_priorities *priorities, const double *at, uint32_t n,
                      uint64_t *leaf);

static inline double rm_priority_at(const struct rm_priorities *priorities, uint64_t leaf)
{
    return priorities->level[0][leaf];
}

#endif
