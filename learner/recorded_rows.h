/* recorded_rows: the rows of a ring as the columns of a recording's stream. The recorder writes
 * them, and the replay of a recording (offline.h) makes rows of them again. Any thread. */
#ifndef RM_LEARNER_RECORDED_ROWS_H
#define RM_LEARNER_RECORDED_ROWS_H

#include "actor/env.h"
#include "learner/recording.h"
#include "shm/session/session.h"

/* Adds the columns of a policy's rows to a stream. `agent`: one of the policy's. */
void rm_recorded_columns(struct rm_recording_stream *stream, const struct rm_policy_plan *plan,
                         const struct rm_env_agent *agent);

/* A column of `count` rows at `rows`, which lie as in the ring; `to`: all of lane 0, then those of
 * lane 1, and so on. */
void rm_recorded_gather(const struct rm_ring *ring, const struct rm_recording_column *column,
                        uint32_t lanes, const uint8_t *rows, uint32_t count, uint8_t *to);

/* The reverse for one row: entry `i` of `count` of each lane. */
void rm_recorded_scatter(const struct rm_ring *ring, const struct rm_recording_column *column,
                         uint32_t lanes, const uint8_t *from, uint32_t i, uint32_t count,
                         uint8_t *row);

#endif
