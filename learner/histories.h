/* histories: recorded histories of learners as a data set for algorithm distillation (Laskin et al.
 * 2022). A HISTORY is what one lane of a recording did, from its first step on: steps s, a, r, s',
 * across the ends of episodes. It is cut into REGIONS of `sample.region` steps; the steps after the
 * last whole one are left out. A PAIR is a region of a history; its samples are all its steps: what
 * does the learner do next, after the whole region before and the steps before it in this one?
 *
 * Steps, not rows: an episode of 20 steps has 21 rows. A step whose end was not recorded is left
 * out, and a history ends where rows were lost.
 *
 * A pair as a matrix is a packed history (learner/net/history.h) with 2 * region + 2 places of
 * context and `region` queries:
 *
 *   region k > 0   <c>, the steps of region k - 1, </c>, <c>, the steps of region k but the last
 *   region 0       <c>, its steps but the last
 *
 * and then a query for each step: its s as a whole number (rm_features_code()). Features of a step
 * are those of rm_features_step().
 *
 * Recordings whose experiment has one of the values of every key in `sample.held_out` are held out:
 * nothing is learned from them.
 *
 * In memory each row is the number of a distinct one, in 2 bytes if there are at most 65,536 of
 * those, else in 4. Read-only once open: any thread. */
#ifndef RM_LEARNER_HISTORIES_H
#define RM_LEARNER_HISTORIES_H

#include "actor/env.h"
#include "shm/base/error.h"
#include "shm/session/session.h"

#include <stdint.h>

struct rm_histories;

enum rm_histories_part {
    RM_HISTORIES_TRAINED = 0, /* to learn from */
    RM_HISTORIES_HELD_OUT,
    RM_HISTORIES_PARTS
};

/* What follows a step: the next one, or the end of the region. */
enum rm_histories_type { RM_HISTORIES_GOES_ON = 0, RM_HISTORIES_ENDS = 2 };

/* Of step `step` of a region. */
static inline enum rm_histories_type rm_histories_type(uint32_t region, uint32_t step)
{
    return step + 1 == region ? RM_HISTORIES_ENDS : RM_HISTORIES_GOES_ON;
}

struct rm_histories_count {
    uint32_t recordings, lanes;
    uint64_t pairs; /* their samples: `sample.region` times as many */
};

/* The histories of a policy, whose agents are as `agent`, which outlives them. -EINVAL: what the
 * recordings are of does not fit; -EBADMSG: with number
 * and position of a chunk that is damaged; -ENODATA: there is no whole region. */
int rm_histories_open(struct rm_histories **histories, const struct rm_experiment *experiment,
                      const struct rm_plan *plan, uint32_t policy, const struct rm_env_agent *agent,
                      struct rm_error *error);
void rm_histories_close(struct rm_histories *histories);

struct rm_histories_count rm_histories_count(const struct rm_histories *histories,
                                             enum rm_histories_part part);

/* Bytes that the steps take in memory; the hash of all recordings' chunks. */
size_t rm_histories_bytes(const struct rm_histories *histories);
uint64_t rm_histories_hash(const struct rm_histories *histories);

/* Pair `number` of a part: all of history 0, then of history 1 and so on. matrix: (places, width);
 * action: (region), those of the queries. Returns the pair's region. */
uint32_t rm_histories_pair(const struct rm_histories *histories, enum rm_histories_part part,
                           uint64_t number, float *matrix, int32_t *action);

#endif
