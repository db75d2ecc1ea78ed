/* rollout_rows: one rollout of a policy, copied out of all actors' rings into flat buffers, time
 * first, lanes in their order over the run (agent slot, then world), so that nothing depends on how
 * worlds are split over actors.
 *
 * Rollout r (from 0) is the rows [r * steps, (r + 1) * steps) of every ring; the row after them is
 * the successor of the last step. In worlds of one phase it is there as soon as it is offered: what
 * arrived in it, without its answer. In worlds of several phases what arrived is complete only
 * after others have answered, so there the last row of a rollout is a successor and no sample.
 *
 * Row t of a lane is a sample iff it is neither an episode's last nor out of play, and row t + 1 is
 * of the same writer and really its successor.
 *
 * Belongs to one learner's thread; nothing is allocated after create. */
#ifndef RM_LEARNER_ROLLOUT_ROWS_H
#define RM_LEARNER_ROLLOUT_ROWS_H

#include "actor/env.h"
#include "shm/session/session.h"
#include "learner/backend/backend.h"
#include "learner/net/categorical.h"
#include "learner/net/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_rollout_spec {
    struct rm_session *session; /* outlive the buffers */
    uint32_t policy;
    const struct rm_env_agent *agent;
    struct rm_backend *backend;
};

struct rm_rollout {
    struct rm_session *session;
    struct rm_backend *backend;
    const struct rm_env_agent *agent;
    bool codes; /* x is int32 */
    const struct rm_policy_plan *plan;
    uint32_t policy, actors;
    uint32_t steps, lanes;
    uint32_t inputs, words, mask_bytes, stack;
    bool successors; /* the last row's successor is there */
    float gamma;
    struct rm_categorical distribution; /* of the actions */

    /* On a device: one block of pinned memory that has all of the following but the writers, and
     * its place in the device's memory, where who learns copies it as a whole. NULL on the CPU. */
    void *pinned, *there;
    size_t bytes;

    /* All (rows, lanes), time first; rows = steps, or steps + 1 where said. */
    float *x;                  /* (steps + 1, lanes, inputs) */
    float *state;              /* (lanes, state_floats) before the first row, or NULL */
    float *after;              /* (lanes, state_floats) before the successors; NULL: see value */
    float *value;              /* of the network's output, by the weights that the learner has when
                                  the rollout is ready; NULL: actors keep none (rm_policy_plan) */
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
    uint64_t env_steps;        /* answers of this rollout that count, of the policy's first agent */
    uint64_t lag_min, lag_max; /* of its rows, in updates */
    double lag_mean;
};

int rm_rollout_create(struct rm_rollout *rollout, const struct rm_rollout_spec *spec,
                      struct rm_error *error);
void rm_rollout_destroy(struct rm_rollout *rollout);

/* Where something of the block is for who learns from it: in the device's memory if there is one,
 * NULL for NULL. */
static inline void *rm_rollout_there(const struct rm_rollout *rollout, void *here)
{
    return here && rollout->pinned
               ? (char *)rollout->there + ((char *)here - (char *)rollout->pinned)
               : here;
}

/* Every actor has made rollout `number`, and its successor has arrived. */
bool rm_rollout_ready(const struct rm_rollout *rollout, uint64_t number);

/* Copies it. `updates` of the policy so far, for the lag. The rows stay in the rings. */
void rm_rollout_copy(struct rm_rollout *rollout, uint64_t number, uint64_t updates);

/* Gives back all rows before rollout `number`, but for those that its stacks of frames look back
 * on. Never takes back what was given. */
void rm_rollout_consume(struct rm_rollout *rollout, uint64_t number);

/* The first rollout of which nothing was given back: where a successor of a learner goes on. */
uint64_t rm_rollout_first_held(const struct rm_rollout *rollout);

#endif
