/* histories: recorded histories of learners as a data set for algorithm distillation (Laskin et al.
 * 2022). A HISTORY is the steps (s, a, r, s') of one lane of a recording, from the first on, across
 * the ends of episodes. It is cut into REGIONS of `sample.region` steps; the steps after the last
 * whole region are left out. A PAIR is a history and one of its regions. Each step of the region is
 * a sample: the action of this step, given the whole previous region and the earlier steps of this
 * one.
 *
 * Steps are not rows: an episode of 20 steps has 21 rows. A step whose end was not recorded is left
 * out, and a history ends at lost rows.
 *
 * A pair as a matrix is a packed history (learner/net/history.h) with 2 * region + 2 places of
 * context and `region` queries:
 *
 *   region k > 0   <c>, the steps of region k - 1, </c>, <c>, the steps of region k but the last
 *   region 0       <c>, its steps but the last
 *
 * followed by a query for each step: its s (rm_features_query()). The features of a step are those
 * of rm_features_step().
 *
 * A recording is held out if, for every key in `sample.held_out`, its experiment has one of the
 * listed values. Nothing is learned from it.
 *
 * Memory has a table of distinct rows, and for each row its index in the table: 2 bytes if the
 * table has at most 65,536 rows, else 4. Read-only after opening, so any thread may read. */
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

struct rm_histories_count {
    uint32_t recordings, lanes;
    uint64_t pairs; /* their samples: `sample.region` times as many */
};

/* Opens the histories of a policy, whose agents are like `agent`; `agent` outlives the histories.
 * -EINVAL: the recordings do not fit the experiment; -EBADMSG: a chunk is damaged, the message has
 * its number and position; -ENODATA: there is no whole region. */
int rm_histories_open(struct rm_histories **histories, const struct rm_experiment *experiment,
                      const struct rm_plan *plan, uint32_t policy, const struct rm_env_agent *agent,
                      struct rm_error *error);
void rm_histories_close(struct rm_histories *histories);

struct rm_histories_count rm_histories_count(const struct rm_histories *histories,
                                             enum rm_histories_part part);

/* The bytes that the steps take in memory, and the hash of all recordings' chunks. */
size_t rm_histories_bytes(const struct rm_histories *histories);
uint64_t rm_histories_hash(const struct rm_histories *histories);

/* Writes pair `number` of a part; all pairs of history 0 come first, then those of history 1, and
 * so on. matrix: (places, width); action: (region), the actions of the queries. Returns the index
 * of the pair's region. */
uint32_t rm_histories_pair(const struct rm_histories *histories, enum rm_histories_part part,
                           uint64_t number, float *matrix, int32_t *action);

#endif
