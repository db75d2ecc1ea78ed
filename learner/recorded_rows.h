/* recorded_rows: converts the rows of a ring to the columns of a recording's stream, for the
 * recorder, and columns to rows, for the replay of a recording (offline.h). Any thread. */
#ifndef RM_LEARNER_RECORDED_ROWS_H
#define RM_LEARNER_RECORDED_ROWS_H

#include "actor/env.h"
#include "learner/recording.h"
#include "shm/session/session.h"

/* Adds the columns of a policy's rows to a stream. `agent`: one of the policy's. */
void rm_recorded_columns(struct rm_recording_stream *stream, const struct rm_policy_plan *plan,
                         const struct rm_env_agent *agent);

/* Copies a column of `count` rows out of `rows`, which has the ring's layout. `to` gets all entries
 * of lane 0, then those of lane 1, and so on. */
void rm_recorded_gather(const struct rm_ring *ring, const struct rm_recording_column *column,
                        uint32_t lanes, const uint8_t *rows, uint32_t count, uint8_t *to);

/* The reverse for one row: copies entry `i` of `count` of each lane into `row`. */
void rm_recorded_scatter(const struct rm_ring *ring, const struct rm_recording_column *column,
                         uint32_t lanes, const uint8_t *from, uint32_t i, uint32_t count,
                         uint8_t *row);

#endif
