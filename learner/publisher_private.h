/* Private to the publisher's files. */
#ifndef RM_LEARNER_PUBLISHER_PRIVATE_H
#define RM_LEARNER_PUBLISHER_PRIVATE_H

#include "learner/publisher.h"

#include <float.h>

/* Numbers among them that are none, or so large that the next update cannot be finite: `moved` is
 * ||params - last||^2. The learner's guard says so only after that update; how far they are from
 * the last ones says so now, and is computed anyway. */
static inline bool rm_publisher_exploded(double moved)
{
    return !(moved <= (double)FLT_MAX);
}

/* Whether parameters that have changed so much, relatively `by`, are to be published; if not,
 * counts that. */
bool rm_publisher_wanted(struct rm_publisher *p, double moved, double by);

/* Writes `host`, of update `stamped`, to the weights. */
void rm_publisher_give(struct rm_publisher *p, uint64_t round);

/* publisher_late.c: an offer that is due. Returns whether it was begun at once. */
bool rm_publisher_begin(struct rm_publisher *p);
void rm_publisher_late_close(struct rm_publisher *p);

#endif
