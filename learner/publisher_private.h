/* Private to the publisher's files. */
#ifndef RM_LEARNER_PUBLISHER_PRIVATE_H
#define RM_LEARNER_PUBLISHER_PRIVATE_H

#include "learner/publisher.h"

#include <float.h>

/* Are there non-finite parameters, or some so large that the next update cannot be finite? `moved`
 * is ||params - last||^2. The learner's guard detects that only after the next update; this
 * distance shows it now and is computed in any case. */
static inline bool rm_publisher_exploded(double moved)
{
    return !(moved <= (double)FLT_MAX);
}

/* Decides by the change (relative: `by`) whether to publish; if not, counts a skip. */
bool rm_publisher_wanted(struct rm_publisher *p, double moved, double by);

/* Writes `host`, of update `stamped`, to the weights. */
void rm_publisher_give(struct rm_publisher *p, uint64_t round);

/* publisher_late.c: begins a due offer. Returns false if another copy is in progress. */
bool rm_publisher_begin(struct rm_publisher *p);
void rm_publisher_late_close(struct rm_publisher *p);

#endif
