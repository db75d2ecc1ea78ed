/* session: the shared objects of one experiment as one process maps them: the board, the rings, the
 * weights, the wakes and the resolved configuration. The daemon creates a session and keeps its
 * descriptors; workers attach to the inherited ones; sequential mode and tests create and use one
 * in the same process.
 *
 * A process has one session. */
#ifndef RM_SHM_SESSION_SESSION_H
#define RM_SHM_SESSION_SESSION_H

#include "config/experiment.h"
#include "config/net_shape.h"
#include "shm/board.h"
#include "shm/duty.h"
#include "shm/objects.h"
#include "shm/priorities.h"
#include "shm/ring.h"
#include "shm/weights.h"

#define RM_SESSION_DIRECTORY_MAX (RM_PATH_TEXT_MAX + 160)
#define RM_SESSION_PATH_MAX      (RM_SESSION_DIRECTORY_MAX + 160)

/* Sizes that follow from the world and the networks, for each policy. Filled by rm_plan_make()
 * (actor/worlds/plan.h). */
struct rm_policy_plan {
    char name[RM_NAME_MAX];
    uint32_t agents;                 /* number of agents with this policy */
    uint32_t agent[RM_BOARD_AGENTS]; /* these agents; slot order = agent order */
    uint32_t obs_bytes;              /* one observation, compact */
    uint32_t features;               /* network inputs of one frame */
    uint32_t inputs;                 /* features * frame stack */
    uint32_t actions;
    uint32_t mask_bytes; /* number of actions when the world has masks, else 0 */
    uint32_t choices;    /* independent choices per step; 1 for a plain discrete action, 0 for real
                          * ones alone */
    uint32_t reals;      /* real numbers per step */
    uint32_t action_words; /* both together */
    uint32_t state_floats; /* of the network's recurrent state, 0 if none */
    bool values;           /* actors store the state value beside the action: it costs little, and
                            * the learner has the same weights */
    bool frozen;           /* an opponent that is not trained */
    uint64_t param_count, act_count;
    struct rm_net_shape shape; /* of the policy's network */
};

struct rm_plan {
    uint32_t agents, policies, phases;
    char agent_name[RM_BOARD_AGENTS][RM_NAME_MAX];
    uint32_t agent_policy[RM_BOARD_AGENTS];
    uint32_t agent_slot[RM_BOARD_AGENTS]; /* position among its policy's agents */
    uint32_t figures;                     /* that episodes end with */
    struct rm_board_figure figure[RM_BOARD_FIGURES];
    struct rm_policy_plan policy[RM_BOARD_POLICIES];
};

struct rm_session {
    struct rm_experiment experiment;
    struct rm_plan plan;
    struct rm_objects objects;
    struct rm_board_view board;
    struct rm_region config;                      /* the text */
    struct rm_weights weights[RM_BOARD_POLICIES]; /* region.base is NULL if not attached */
    struct rm_ring *rings;                        /* [actors * policies], actor-major */
    int *wake_fds;                                /* [workers + 1]: the last is the daemon's bell */
    struct rm_priorities *priorities; /* [policies] where replay is prioritised, else NULL */
    char directory[RM_SESSION_DIRECTORY_MAX]; /* of the run; "": no files */
    char resume[RM_SESSION_DIRECTORY_MAX]; /* folder of the checkpoint whose shared part was loaded;
                                            * the first workers load their parts. "": none */
    char newest[RM_SESSION_DIRECTORY_MAX]; /* the newest checkpoint, for restarted workers. "":
                                            * none */
};

/* Worlds of actor `actor`: [*first, *first + *count) of the experiment's worlds. */
void rm_session_worlds(const struct rm_experiment *experiment, uint32_t actor, uint64_t *first,
                       uint32_t *count);

/* The first policy that is trained. */
uint32_t rm_plan_first_trained(const struct rm_plan *plan);

/* Rows of each of a policy's rings: the capacity, and the rows that lockstep and stacks need,
 * rounded up. */
uint32_t rm_session_capacity_rows(const struct rm_experiment *experiment,
                                  const struct rm_policy_plan *policy);

/* The ring from `actor` for policy `index`. */
struct rm_ring_spec rm_session_ring_spec(const struct rm_experiment *experiment,
                                         const struct rm_policy_plan *policy, uint32_t actor,
                                         uint32_t index);

/* The priorities of a policy's replay: a leaf for every lane and row of its capacity. */
struct rm_priorities_spec rm_session_priorities_spec(const struct rm_experiment *experiment,
                                                     const struct rm_policy_plan *policy,
                                                     uint32_t index);

/* Rows of its rings that a policy may learn from: ring.capacity over all lanes, at least 2. */
uint64_t rm_session_replay_rows(const struct rm_experiment *experiment,
                                const struct rm_policy_plan *policy);

/* Creates everything (descriptors are close-on-exec). */
int rm_session_create(struct rm_session *session, const struct rm_experiment *experiment,
                      const struct rm_plan *plan, struct rm_error *error);

/* Creates the region with the configuration for workers, from the experiment. Part of
 * rm_session_create(). */
int rm_session_config_text(struct rm_session *session, struct rm_error *error);

/* Attaches to inherited descriptors (objects.h). The caller first makes the plan from the
 * experiment that rm_session_read_config() returns. */
int rm_session_read_config(struct rm_experiment *experiment, struct rm_error *error);
int rm_session_attach(struct rm_session *session, const struct rm_experiment *experiment,
                      const struct rm_plan *plan, struct rm_error *error);

/* The same for a process that will run a foreign world, as worker `worker` of that role: only the
 * pages that it writes itself are writable, other actors' rings are not mapped, and all descriptors
 * of shared memory are closed. */
int rm_session_attach_as(struct rm_session *session, const struct rm_experiment *experiment,
                         const struct rm_plan *plan, enum rm_role role, uint32_t worker,
                         struct rm_error *error);
void rm_session_close(struct rm_session *session);

/* Sets the run directory and the folder of the checkpoint to resume from; either may be NULL. */
void rm_session_place(struct rm_session *session, const char *directory, const char *resume);

/* Sets the newest checkpoint, from which a restarted learner loads its optimizers. */
void rm_session_place_newest(struct rm_session *session, const char *folder);

/* Takes over the session of a killed daemon from its descriptors, in the order of
 * rm_session_kept(). Replay, weights, counters and limiters keep their contents; eventfds and the
 * configuration are created again, and no worker has a process. Takes ownership of the descriptors
 * only on success. Errors: -EPROTO when an object does not match this experiment or this build, or
 * the board counts further than a run can. */
int rm_session_adopt(struct rm_session *session, const struct rm_experiment *experiment,
                     const struct rm_plan *plan, const int *fds, uint32_t count,
                     struct rm_error *error);

/* Descriptors to keep beyond the daemon's life: configuration, board, weights, rings, priorities.
 * Returns their number; stores at most `max`. */
uint32_t rm_session_kept(const struct rm_session *session, int *fds, uint32_t max);

/* All shared state of a run, for checkpoints (shm/base/state.h): counters, rounds, limiters,
 * settings, weights, rows, priorities. Call while all workers hold. */
struct rm_state;
void rm_session_state(struct rm_session *session, struct rm_state *state);

/* Path of checkpoint `number` of a run: "DIRECTORY/checkpoints/000007", with ".tmp" while it is
 * being written. 0 or -ENAMETOOLONG. */
int rm_session_checkpoint_folder(const char *directory, uint64_t number, bool unfinished,
                                 char *path, struct rm_error *error);

/* Path of a file of a checkpoint, such as "FOLDER/actor-3.state". `path` has RM_SESSION_PATH_MAX
 * bytes. 0 or -ENAMETOOLONG. */
int rm_session_checkpoint_file(const char *folder, const char *part, uint32_t index,
                               const char *ending, char *path, struct rm_error *error);

/* Number of rows of replay in all rings. */
uint64_t rm_session_rows(const struct rm_session *session);

/* Lists the descriptors in the order of objects.h, from RM_FD_BOARD on. Returns their number. */
uint32_t rm_session_fds(const struct rm_session *session, int *fds, uint32_t max);

static inline struct rm_ring *rm_session_ring(struct rm_session *s, uint32_t actor, uint32_t policy)
{
    return &s->rings[actor * s->objects.policies + policy];
}

/* Steps of the run so far, of agent 0 in all worlds, wherever they are: the run's budget counts
 * these. Steps of all agents; updates of all policies. */
uint64_t rm_session_steps(const struct rm_session *session);
uint64_t rm_session_agent_steps(const struct rm_session *session);
uint64_t rm_session_updates(const struct rm_session *session);

/* Rounds: is the run over at the start of `round`? All participants get the same answer, because
 * the counts at the end of the round before do not change during this one. */
bool rm_session_budget_spent(const struct rm_session *session, uint64_t round);

/* The worker in whose process this worker's duty runs: itself, in sequential mode the solo process
 * for all, with learner.processes "one" the first learner for all learners. */
uint32_t rm_session_process(const struct rm_session *session, uint32_t worker);

/* Is worker `worker` a process of its own in this mode? */
bool rm_session_has_process(const struct rm_session *session, uint32_t worker);

/* What the board says of a process: its worker's state, or that of all duties in it together. It
 * waits when one of them does, for all; it is as alive as the liveliest. */
enum rm_worker_state rm_session_process_state(const struct rm_session *session, uint32_t process,
                                              uint64_t *heartbeat_ns);

/* The wake of worker `worker` (objects.h), to sleep on or to signal. All workers of a process share
 * one. */
struct rm_wake rm_session_wake(struct rm_session *session, uint32_t worker);

/* Starts the worker's stopwatch, with the phases that debug.lengthen makes longer. The workers of
 * Python worlds lengthen an actor's steps themselves (actor/worlds/bridges/python.h). */
void rm_session_phase_start(const struct rm_session *session, struct rm_phase_clock *clock,
                            uint32_t worker, enum rm_role role);

/* Makes the daemon read the board at once, not at its next tick: a system call. */
void rm_session_ring_bell(const struct rm_session *session);

/* Rings the bell if `steps`, the steps of all actors, have reached the number that the daemon waits
 * for (bell_at in board.h). Only the first caller rings. */
void rm_session_ring_at(const struct rm_session *session, uint64_t steps);

/* Wakes every worker, asleep or not, so that it reads the board again: for stop and pause
 * requests. */
void rm_session_wake_up(struct rm_session *session);

/* Signals all sleeping workers; all sleeping actors. */
void rm_session_wake_all(struct rm_session *session);
void rm_session_wake_actors(struct rm_session *session);

#endif
