/* sampler: draws batches of n-step transitions from the replay rings of one policy, one ring per
 * actor, uniformly or in proportion to priorities, and turns their rows into network inputs.
 *
 * The draw is canonical: a transition is named by its age in rows and its global lane, which is the
 * agent's slot times the experiment's worlds, plus the world's id. So the same numbers choose the
 * same transitions however the worlds are split over actors. Age is drawn uniformly over the
 * longest window of any ring and the lane uniformly; what turns out not to be a valid transition is
 * drawn again.
 *
 * WITH PRIORITIES (Schaul 2016, 3.3) a transition is a leaf of a sum tree (shm/priorities.h), whose
 * order does not depend on the actors either. It enters with the largest priority there ever was,
 * once the n rows after its first have been seen committed, and leaves when it is older than the
 * capacity. Draw k of B is uniform over the k-th part of the total; what turns out to be gone
 * leaves the tree and is drawn again from all of it. Weights are (N P)^-beta over the largest of
 * the batch.
 *
 * A TRANSITION starts in a row that is neither last nor dead and spans m <= n steps: n, or fewer
 * when the episode ends (the last row, terminated or truncated, is where it ends), when the
 * episode's last row is void (then one row before it), or when the writer died (the last row it
 * wrote). Transitions whose n steps have not all been written yet are left for later. m = 0 is not
 * a transition.
 *
 * A SEQUENCE (Kapturowski 2019, 2.3) is the transitions that start in `trace` consecutive rows of
 * an episode, with the rows before them, stored recurrent state included, to warm up with. It never
 * crosses an episode's first row or a generation; it is there once the rows that its last
 * transition may need have been committed, and always a leaf of a tree, one of its own where draws
 * are uniform.
 *
 * Stacks are rebuilt from rows, zeros before the first row of the episode, never across an episode
 * or a writer's generation. A stack that reaches back beyond what the ring still holds is not
 * valid.
 *
 * Every draw is copied from the ring and then checked with rm_ring_intact(); a copy that the writer
 * overtook is drawn again and counted. One thread per sampler; nothing is allocated after create.
 */
#ifndef RM_LEARNER_SAMPLER_H
#define RM_LEARNER_SAMPLER_H

#include "actor/env.h"
#include "config/experiment.h"
#include "learner/backend/batch.h"
#include "learner/backend/transition.h"
#include "shm/base/error.h"
#include "shm/priorities.h"
#include "shm/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One actor's ring and the worlds it serves. */
struct rm_sampler_source {
    const struct rm_ring *ring;
    uint64_t first_world; /* id of its first world */
    uint32_t worlds;
};

struct rm_sampler_spec {
    const struct rm_sampler_source *sources; /* [source_count], by first_world, without gaps */
    uint32_t source_count;
    uint32_t agents;                  /* slots of the policy; a ring has agents * worlds lanes */
    const struct rm_env_agent *agent; /* how observations decode; outlives the sampler */
    bool codes;                       /* observations of the batch are int32 codes, not floats */
    uint32_t batch;
    uint32_t n_step;
    uint32_t frame_stack;
    double gamma;
    uint64_t capacity; /* transitions; the newest so many are sampled */
    enum rm_form form;
    uint64_t seed;
    uint32_t policy; /* with the seed and the update's number: the key of the draws */
    struct rm_priorities *priorities; /* outlives the sampler; NULL: uniform */
    double alpha, epsilon;            /* p^alpha, p = error + epsilon */
    struct {
        uint32_t trace;   /* rows trained on; 0: transitions, not sequences */
        uint32_t burn_in; /* rows before them, as far as the episode has so many */
        uint32_t period;  /* an episode's sequences start at its rows 0, period, 2 period, ... */
        uint32_t state_floats;
    } sequence;
};

struct rm_sampler_counts {
    uint64_t torn;     /* copies that the writer overtook, drawn again */
    uint64_t rejected; /* draws that were no valid transition */
    uint64_t age_sum;  /* of the drawn, in lanes of all rings together (agent steps) */
    uint64_t age_count;
};

/* Draws per item before giving up. Were only one in a hundred rows the start of a valid transition,
 * the chance to fail wrongly would be e^-40. */
#define RM_SAMPLER_TRIES 4096u

struct rm_sampler;

/* Rows of a lane that items may start in: spec->capacity of them altogether, at least 2. */
uint64_t rm_sampler_capacity_rows(const struct rm_sampler_spec *spec);

int rm_sampler_create(struct rm_sampler **sampler, const struct rm_sampler_spec *spec,
                      struct rm_error *error);
void rm_sampler_destroy(struct rm_sampler *sampler);

/* Fixes the rows to draw from until the next call: everything readable now (free running), or, in
 * lockstep round `round` of `round_steps` rows, what was committed before the round and cannot be
 * overwritten in it. */
void rm_sampler_window_free(struct rm_sampler *sampler);
void rm_sampler_window_round(struct rm_sampler *sampler, uint64_t round, uint32_t round_steps);

/* The rows of source `source` that the next draws may look at: the last `held` before `end`, of
 * which items may start in the last `starts`. */
struct rm_row_span rm_sampler_span(const struct rm_sampler *sampler, uint32_t source);

/* Agent steps (lanes that are neither last nor dead) of the windows' rows that no earlier call has
 * counted. Lockstep's measure of what was inserted. */
uint64_t rm_sampler_count_new(struct rm_sampler *sampler);

/* Draws the batch of update `update` (from 1) into batch, whose arrays are the caller's or made by
 * rm_sampler_batch(). Returns 1; 0 when the windows hold too few valid transitions. */
int rm_sampler_draw(struct rm_sampler *sampler, uint64_t update, struct rm_batch *batch);

/* Whether a device draws in its stead from now on, and keeps the priorities: then it is asked for
 * windows alone, and told what came of draws. False at first. */
void rm_sampler_elsewhere(struct rm_sampler *sampler, bool elsewhere);
void rm_sampler_drawn(struct rm_sampler *sampler, const struct rm_sampler_counts *counts);

/* Exponent of the importance weights from now on; 1 at first. */
void rm_sampler_set_beta(struct rm_sampler *sampler, double beta);

/* The batch drawn last was learned from, or with batch->leaf one drawn before: batch->error becomes
 * priorities. Does nothing where draws are uniform. */
void rm_sampler_learned(struct rm_sampler *sampler, const struct rm_batch *batch);

/* The largest priority so far, p^alpha; 0 where draws are uniform. */
double rm_sampler_largest(const struct rm_sampler *sampler);

/* The sampler's own batch buffers, laid out for its spec. */
struct rm_batch *rm_sampler_batch(struct rm_sampler *sampler);

/* Transitions the windows hold (an upper bound: rows * lanes), and the most they may. */
uint64_t rm_sampler_held(const struct rm_sampler *sampler);
uint64_t rm_sampler_capacity(const struct rm_sampler *sampler);

/* What the next draws depend on, for checkpoints (shm/base/state.h), but for rows and shared
 * priorities: these must be there before the sampler is made. */
struct rm_state;
void rm_sampler_state(struct rm_sampler *sampler, struct rm_state *state);

/* Totals since create. */
struct rm_sampler_counts rm_sampler_counts(const struct rm_sampler *sampler);

#endif
