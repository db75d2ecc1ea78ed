/* sampler: draws batches of n-step transitions from the replay rings of one policy, one ring per
 * actor, uniformly or in proportion to priorities, and turns their rows into network inputs.
 *
 * Draws do not depend on the division of worlds among actors. A transition is identified by its age
 * in rows and its global lane, which is the agent's slot times the experiment's worlds, plus the
 * world's id. Age is drawn uniformly over the longest window of any ring, the lane uniformly over
 * all lanes. A draw that is not a valid transition is repeated.
 *
 * WITH PRIORITIES (Schaul 2016, 3.3) a transition is a leaf of a sum tree (shm/priorities.h), whose
 * order does not depend on the actors either. A transition enters the tree with the largest
 * priority so far, when the n rows after its first row are committed, and leaves when it is older
 * than the capacity. Draw k of B is uniform over the k-th part of the total. A drawn transition
 * whose rows are overwritten leaves the tree, and the draw is repeated over the whole tree. Weights
 * are (N P)^-beta over the largest of the batch.
 *
 * A TRANSITION starts in a row that is neither last nor dead and spans m steps, 1 <= m <= n. It
 * ends before its n-th step in three cases. If the episode ends, the transition ends at the
 * episode's last row, terminated or truncated. If that last row is void, the transition ends one
 * row before it. If the writer died, the transition ends at the last row that the writer wrote. A
 * transition cannot be drawn before all of its rows are written.
 *
 * A SEQUENCE (Kapturowski 2019, 2.3) is the transitions that start in `trace` consecutive rows of
 * an episode, with the burn-in rows before them and the stored recurrent state. A sequence never
 * crosses an episode's first row or the beginning of a generation. It can be drawn when the rows of
 * its last transition are committed. A sequence is always a leaf of a tree; with uniform draws the
 * sampler has a tree of its own.
 *
 * Stacks of frames are made from rows. Frames before the first row of the episode are zeros. A
 * stack never crosses the beginning of an episode or of a writer's generation. A stack is not valid
 * if the ring has overwritten one of its rows.
 *
 * Every draw is copied from the ring and then checked with rm_ring_intact(); a torn copy is counted
 * and drawn again. One thread per sampler; nothing is allocated after create. */
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
    uint32_t agents; /* agent slots of the policy; a ring has agents * worlds lanes */
    const struct rm_env_agent *agent; /* how observations decode; outlives the sampler */
    uint32_t reals; /* real numbers of an action that has no discrete choices; else 0 */
    uint32_t codes; /* observations that the batch has as codes: bit i for observation i */
    uint32_t batch;
    uint32_t n_step;
    uint32_t frame_stack;
    double gamma;
    uint64_t capacity; /* transitions; samples come from this many newest ones */
    enum rm_form form;
    uint64_t seed;
    uint32_t policy; /* with the seed and the update's number: the key of the draws */
    struct rm_priorities *priorities; /* outlives the sampler; NULL: uniform */
    bool own_priorities;   /* without `priorities`: the sampler makes priorities, and saves them in
                              checkpoints */
    double alpha, epsilon; /* p^alpha, p = error + epsilon */
    struct {
        uint32_t trace;   /* rows trained on; 0: transitions, not sequences */
        uint32_t burn_in; /* rows before them, or fewer at the beginning of an episode */
        uint32_t period;  /* an episode's sequences start at its rows 0, period, 2 period, ... */
        uint32_t state_floats;
    } sequence;
};

struct rm_sampler_counts {
    uint64_t torn;     /* torn copies, drawn again */
    uint64_t rejected; /* draws that were not a valid transition */
    uint64_t age_sum;  /* sum of the drawn items' ages, in agent steps */
    uint64_t age_count;
};

/* Most draws for one item. If only one row in a hundred begins a valid transition, the probability
 * that all draws fail is e^-40. */
#define RM_SAMPLER_TRIES 4096u

struct rm_sampler;

/* Number of rows of a lane in which items may start: spec->capacity over all lanes, at least 2. */
uint64_t rm_sampler_capacity_rows(const struct rm_sampler_spec *spec);

int rm_sampler_create(struct rm_sampler **sampler, const struct rm_sampler_spec *spec,
                      struct rm_error *error);
void rm_sampler_destroy(struct rm_sampler *sampler);

/* Sets the rows to draw from until the next call: all rows readable now (free running), or, in
 * lockstep round `round` of `round_steps` rows, the rows committed before the round that cannot be
 * overwritten in it. */
void rm_sampler_window_free(struct rm_sampler *sampler);
void rm_sampler_window_round(struct rm_sampler *sampler, uint64_t round, uint32_t round_steps);

/* The rows of source `source` that the next draws may read: the last `held` before `end`; items may
 * start in the last `starts` of them. */
struct rm_row_span rm_sampler_span(const struct rm_sampler *sampler, uint32_t source);

/* Agent steps (lanes that are neither last nor dead) in the windows' rows, without those counted by
 * earlier calls. Lockstep counts inserted steps by it. */
uint64_t rm_sampler_count_new(struct rm_sampler *sampler);

/* Draws the batch of update `update` (from 1) into batch, whose arrays are the caller's or made by
 * rm_sampler_batch(). Returns 1; 0 when the windows hold too few valid transitions. */
int rm_sampler_draw(struct rm_sampler *sampler, uint64_t update, struct rm_batch *batch);

/* Sets whether a device draws and has the priorities, from now on; false at first. If true, the
 * sampler only sets windows and counts the device's draws (rm_sampler_drawn()). */
void rm_sampler_device_draws(struct rm_sampler *sampler, bool device_draws);
void rm_sampler_drawn(struct rm_sampler *sampler, const struct rm_sampler_counts *counts);

/* Sets the exponent of the importance weights; 1 at first. */
void rm_sampler_set_beta(struct rm_sampler *sampler, double beta);

/* After an update with the batch drawn last, or with batch->leaf of an earlier one: turns
 * batch->error into priorities. Does nothing if draws are uniform. */
void rm_sampler_learned(struct rm_sampler *sampler, const struct rm_batch *batch);

/* The largest priority so far, p^alpha; 0 if draws are uniform. */
double rm_sampler_largest(const struct rm_sampler *sampler);

/* The sampler's own batch buffers, laid out for its spec. */
struct rm_batch *rm_sampler_batch(struct rm_sampler *sampler);

/* Transitions in the windows (an upper bound: rows * lanes), and their maximum. */
uint64_t rm_sampler_held(const struct rm_sampler *sampler);
uint64_t rm_sampler_capacity(const struct rm_sampler *sampler);

/* The sampler's state for checkpoints (shm/base/state.h), without rows and shared priorities, which
 * must be loaded before the sampler is created. */
struct rm_state;
void rm_sampler_state(struct rm_sampler *sampler, struct rm_state *state);

/* Totals since create. */
struct rm_sampler_counts rm_sampler_counts(const struct rm_sampler *sampler);

#endif
