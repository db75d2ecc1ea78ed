/* rollout_rows: copies one rollout of a policy out of all actors' rings into flat buffers. Time is
 * the first dimension; lanes are in the order of agent slot, then world. So results do not depend
 * on the division of worlds among actors.
 *
 * Rollout r (from 0) is the rows [r * steps, (r + 1) * steps) of every ring; the row after them is
 * the successor of the last step. In worlds of one phase the successor can be read as soon as it is
 * offered, without its action. In worlds of several phases a row is complete only after other
 * agents have acted, so there the last row of a rollout is a successor and not a sample.
 *
 * Row t of a lane is a sample iff it is not the last row of an episode, not dead, and row t + 1 is
 * its successor by the same writer.
 *
 * Belongs to one learner's thread; nothing is allocated after create. */
#ifndef RM_LEARNER_ROLLOUT_ROWS_H
#define RM_LEARNER_ROLLOUT_ROWS_H

#include "actor/env.h"
#include "shm/session/session.h"
#include "learner/backend/backend.h"
#include "learner/backend/gaussian.h"
#include "learner/net/categorical.h"
#include "learner/net/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_rollout_spec {
    struct rm_session *session; /* must outlive the buffers, as agent and backend must */
    uint32_t policy;
    const struct rm_env_agent *agent;
    struct rm_backend *backend;
};

struct rm_rollout {
    struct rm_session *session;
    struct rm_backend *backend;
    const struct rm_env_agent *agent;
    uint32_t codes; /* observations that x has as codes */
    const struct rm_policy_plan *plan;
    uint32_t policy, actors;
    uint32_t steps, lanes;
    uint32_t inputs, words, mask_bytes, stack;
    bool native;     /* made on a device, in whose memory all arrays are (native_part.h) */
    bool successors; /* the last row's successor has been copied */
    float gamma;
    struct rm_categorical distribution; /* of the actions */
    struct rm_gaussian gaussian;        /* of real actions */

    /* With a device: a block of pinned memory with all of the following arrays except `writer`, and
     * its copy in the device's memory, which the learner fills with one transfer. NULL on the
     * CPU. */
    void *pinned, *there;
    size_t bytes;

    /* All (rows, lanes), time first; rows = steps, unless a comment gives steps + 1. */
    float *x;                  /* (steps + 1, lanes, inputs) */
    float *state;              /* (lanes, state_floats) before the first row, or NULL */
    float *after;              /* (lanes, state_floats) before the successors, or NULL: without
                                * `value`, `successors` or a recurrent state there is none */
    float *value;              /* the network's values, which the actors stored, or, if native, the
                                * device; NULL: they store none (values of rm_policy_plan) */
    uint8_t *mask;             /* (lanes, mask_bytes) or NULL */
    int32_t *action;           /* (lanes, words) */
    float *logp;               /* ln of the behaviour's probability */
    float *reward;             /* (steps + 1) */
    uint8_t *flags;            /* (steps + 1) RM_FLAG_* */
    float *discount;           /* gamma where the successor has a value, else 0 */
    float *valid;              /* 1: a sample, else 0 */
    uint32_t *sample;          /* rows that are samples, in order */
    uint64_t *writer;          /* (steps + 1, actors) */
    uint32_t samples;          /* how many */
    uint64_t env_steps;        /* steps of this rollout that count, of the policy's first agent */
    uint64_t lag_min, lag_max; /* policy lag of the rollout's rows, in updates */
    double lag_mean;
};

int rm_rollout_create(struct rm_rollout *rollout, const struct rm_rollout_spec *spec,
                      struct rm_error *error);
void rm_rollout_destroy(struct rm_rollout *rollout);

/* The address at which the learner reads an array of the block: in the device's memory if there is
 * one; NULL for NULL. */
static inline void *rm_rollout_there(const struct rm_rollout *rollout, void *here)
{
    return here && rollout->pinned
               ? (char *)rollout->there + ((char *)here - (char *)rollout->pinned)
               : here;
}

/* Has every actor made rollout `number`, and has its successor arrived? */
bool rm_rollout_ready(const struct rm_rollout *rollout, uint64_t number);

/* Copies rollout `number`. `updates`: the policy's updates so far, for the lag. The rows stay in
 * the rings. */
void rm_rollout_copy(struct rm_rollout *rollout, uint64_t number, uint64_t updates);

/* Returns the credit of all rows before rollout `number`, except those that its stacks of frames
 * need. Never revokes credit. */
void rm_rollout_consume(struct rm_rollout *rollout, uint64_t number);

/* The first rollout with all rows still held: where a restarted learner continues. */
uint64_t rm_rollout_first_held(const struct rm_rollout *rollout);

#endif
