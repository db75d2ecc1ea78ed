/* stepping: a batch of worlds with all policies that act in it, advanced one vector step at a time.
 * The worlds write straight into rows of the policies' rings; stacks of frames are read from the
 * earlier rows. Actors and evaluators use this.
 *
 * A vector step runs all phases of the world. If a policy's agents act in several phases, its row
 * is filled over these phases. step(phase) writes the observations of the next phase, so a policy's
 * row is reserved before the step into the first phase of its agents. Between two vector steps the
 * rows of the agents of phase 0 are therefore reserved, with observations and without actions. A
 * process that stops there never commits them.
 *
 * If other processes step the worlds (struct rm_world_groups), groups of worlds are stepped one
 * after another: some groups step while the agents of others act. Their observations arrive when
 * the next vector step begins. Only the observations after a rollout are awaited at once, because
 * the learner needs their value.
 *
 * One thread. Nothing is allocated after creation. */
#ifndef RM_ACTOR_STEPPING_H
#define RM_ACTOR_STEPPING_H

#include "actor/acting.h"
#include "actor/worlds/arrivals.h"
#include "actor/context.h"
#include "actor/epsilon.h"
#include "actor/slot_stacks.h"
#include "actor/worlds/watched.h"
#include "shm/session/session.h"
#include "shm/duty.h"

#define RM_STEPPING_STACK_MAX 64u /* most frames in a stack */

/* One policy in this batch. Lanes: slot * worlds + world, as in the ring. */
struct rm_stepping_policy {
    struct rm_acting acting;
    struct rm_ring *ring;
    const struct rm_env_agent *kind;  /* of its agents, which are all alike */
    uint32_t codes;                   /* observations that its network takes as codes */
    uint32_t first_phase, last_phase; /* first and last phase in which its agents act */
    bool reserved;                    /* `row` is being filled */
    struct rm_row row;
    uint64_t next;    /* unshared rows: index of the next one */
    uint32_t counted; /* lanes of the last vector step whose action counts */
    uint64_t updates; /* update count of the weights in use, which is written into the rows */
    /* the batch being gathered */
    float *x;        /* (chunk, inputs); distributions: (worlds, inputs) or NULL, read in place */
    uint8_t *mask;   /* (chunk, actions) or NULL */
    uint32_t *lane;  /* (chunk) ids over the run */
    int32_t *answer; /* (chunk) */
    int32_t **to;    /* (chunk) where the answers go */
    uint32_t gathered;
    /* policies that are distributions */
    bool in_place;  /* observations need no decoding to be the network's input */
    float *state;   /* (lanes, state_floats) recurrent states before the next action; NULL: none */
    int32_t *given; /* (agents, worlds, words) actions for the world, with real numbers within
                     * the world's bounds; NULL: the rows' actions */
    float *low, *high;            /* (reals) these bounds */
    struct rm_context *context;   /* the lanes' latest transitions; NULL: the network acts by the
                                   * current observation */
    float *types;                 /* (worlds, types) */
    struct rm_slot_stacks *slots; /* frames come from slots; NULL: from earlier rows */
};

struct rm_stepping {
    const struct rm_experiment *experiment;
    const struct rm_plan *plan;
    struct rm_watched batch; /* the worlds */
    struct rm_backend *backend;
    struct rm_arrivals arrivals;
    struct rm_phase_clock *clock;
    uint64_t seed, first_world, total_worlds;
    uint32_t worlds, stack;
    struct rm_world_group group; /* the group whose agents act */
    bool shared;                 /* rows are reserved and committed for readers */
    bool started;
    const struct rm_world_config *next; /* the next step cuts all episodes and replaces the worlds
                                           by worlds of this configuration; NULL: no change */
    uint64_t next_seed;
    uint64_t steps;          /* vector steps made */
    uint32_t *agent_counted; /* (agents) lanes of the last vector step whose action counts */
    struct rm_stepping_policy *policies;
    struct rm_env_buffers *buffers; /* (agents) */
    double *figures;                /* (agents, worlds, figures) figures of last rows; or NULL */
    const int32_t **actions;        /* (agents) */
    uint32_t *lane_ids;             /* (agents, worlds) agent * total worlds + world id */
    int32_t *explored;              /* (worlds) */
    bool greedy;                    /* distributions: the likeliest action instead of a draw */
    double *logp;                   /* (agents, worlds) sums over actions; NULL: not needed */
    /* exploration: per world, because episodes end at different times */
    bool explore;
    struct rm_epsilon epsilon;
    uint64_t steps_before, episodes_before; /* of predecessors, per world */
    uint64_t *bound;                        /* (worlds) epsilon.h */
    uint64_t *bound_episodes; /* (worlds) finished episodes when bound[] was computed */
    double rate;              /* exploration rate of world 0, for the board */
};

struct rm_stepping_options {
    const struct rm_world_config *world; /* NULL: the experiment's */
    uint64_t seed;                       /* of worlds and of acting */
    const uint64_t *world_seed;          /* of worlds; NULL: `seed` */
    uint64_t first_world;                /* id of world 0 */
    uint64_t total_worlds;               /* of the run: makes lane ids */
    uint32_t worlds;
    uint32_t quantiles; /* IQN: draws per decision */
    bool explore;
    bool greedy;  /* policies that are distributions: the likeliest action instead of a draw */
    double *logp; /* (agents, worlds) the caller's sums, to which log-probabilities of actions are
                     added; NULL: not needed. Only for algorithms whose rows have them */
    bool shared;  /* false: rings only store the last few rows and have no readers */
    uint64_t steps_before, episodes_before;
    struct rm_ring *const *rings; /* (policies) */
    struct rm_phase_clock *clock; /* may be NULL */
    struct rm_episode_sink sink;
};

/* Operations of the products of forward passes since the last call; a few rows may come later. */
uint64_t rm_stepping_take_flops(struct rm_stepping *stepping);

int rm_stepping_create(struct rm_stepping *stepping, const struct rm_experiment *experiment,
                       const struct rm_plan *plan, const struct rm_stepping_options *options,
                       struct rm_error *error);
/* Creates rings without a learner, which store the rows for stacks of frames. The caller has zeroed
 * all rings and set their descriptors to -1, and closes them, also after an error. */
int rm_stepping_own_rings(const struct rm_experiment *experiment, const struct rm_plan *plan,
                          uint32_t worlds, struct rm_ring ring[RM_BOARD_POLICIES],
                          struct rm_ring *rings[RM_BOARD_POLICIES], struct rm_error *error);
void rm_stepping_destroy(struct rm_stepping *stepping);

/* Does every policy's ring have credit for the row that the next vector step reserves? */
bool rm_stepping_has_credit(const struct rm_stepping *stepping);

/* Begins an episode in every world. Requires rm_stepping_has_credit(). Errors are the world's. */
int rm_stepping_begin(struct rm_stepping *stepping, struct rm_error *error);

/* The state between two vector steps, for checkpoints (shm/base/state.h): everything on which the
 * next steps depend, except for rows and weights. Load it into a stepping that has not begun, after
 * the rings. If the worlds cannot save their state, rm_stepping_state_whole() is false, and new
 * episodes begin after loading. */
struct rm_state;
void rm_stepping_state(struct rm_stepping *stepping, struct rm_state *state);
bool rm_stepping_state_whole(const struct rm_state *state);

/* After loading: points the worlds into the rows that were reserved. */
int rm_stepping_reopen(struct rm_stepping *stepping, struct rm_error *error);

/* The next vector step truncates all episodes and begins new ones in worlds of another
 * configuration and seed. These must have the same agents and figures. Only for worlds with one
 * phase. `world` is used until that step returns. */
void rm_stepping_change(struct rm_stepping *stepping, const struct rm_world_config *world,
                        uint64_t seed);

/* Makes one vector step. Call rm_stepping_begin() before the first one. Requires weights and
 * rm_stepping_has_credit(). Errors: those of rm_watched_step() and rm_arrivals_count(). */
int rm_stepping_step(struct rm_stepping *stepping, struct rm_error *error);

#endif
