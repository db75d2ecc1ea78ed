/* board: states and counters of a run. One region per experiment: a run block, a block per policy,
 * a block per agent, a slot per worker. Every field is an atomic word with one writer (or, where
 * noted, several that add to it) and any number of readers, so any tool can map the board and read
 * it without asking the daemon. shm/metrics.c has names, units and docs of all counters.
 *
 * The daemon creates the board and owns the run block; a worker owns its slot. Words of different
 * writers are in different pages, so that a process that runs a foreign world maps only its own
 * pages writable (rm_board_attach_as()). Processes with more rights treat these pages as untrusted
 * numbers: they check bounds and never use them as pointers or names. */
#ifndef RM_SHM_BOARD_H
#define RM_SHM_BOARD_H

#include "shm/base/error.h"
#include "shm/limiter.h"
#include "shm/region.h"
#include "shm/round.h"
#include "shm/wake.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RM_NAME_MAX          48  /* bytes of a name on the board, NUL included */
#define RM_BOARD_POLICIES    64  /* most policies */
#define RM_BOARD_AGENTS      64  /* most agents of a world */
#define RM_BOARD_WORKERS     256 /* most workers */
#define RM_BOARD_SETTINGS    64  /* most hot-reloadable numbers */
#define RM_DEVICE_NAME_MAX   48  /* bytes of a GPU's UUID, NUL included */
#define RM_BOARD_QUARANTINED 16  /* most GPUs that a run can exclude */
#define RM_SCORE_WINDOW      100 /* episodes in the 'first' and 'last' windows */
#define RM_BOARD_FIGURES     16  /* most figures of a world's episodes */
#define RM_BOARD_WORDS       16  /* most words of a figure */

enum rm_run_state {
    RM_RUN_STARTING = 0,
    RM_RUN_RUNNING,
    RM_RUN_PAUSED,
    RM_RUN_STOPPING, /* asked to stop, or the budget is spent */
    RM_RUN_DONE,
    RM_RUN_FAILED,
    RM_RUN_STOPPED, /* ended before its budget and its final evaluation were done */
};

enum rm_role {
    RM_ROLE_ACTOR = 0,
    RM_ROLE_LEARNER,
    RM_ROLE_EVALUATOR,
    RM_ROLE_RECORDER,
    RM_ROLE_SOLO,
    RM_ROLE_COUNT
};

/* Do workers of this role hold for checkpoints and save a state? */
static inline bool rm_role_has_state(enum rm_role role)
{
    return role != RM_ROLE_EVALUATOR && role != RM_ROLE_RECORDER;
}

/* A worker's state as the worker reports it. The supervisor has its own state for it (daemon/). */
enum rm_worker_state {
    RM_WORKER_NONE = 0, /* no process */
    RM_WORKER_STARTING, /* attached, building */
    RM_WORKER_BUSY,     /* working: its heartbeat must advance */
    RM_WORKER_WAITING,  /* asleep on its wake, by design: no heartbeat expected */
    RM_WORKER_DONE,     /* its share of the run is finished; exits 0 */
    RM_WORKER_FAILED,   /* `error` says why */
};

/* Where a duty spends its time. The sum of ns[phase] is the time since start. */
enum rm_phase {
    RM_PHASE_OTHER = 0,
    RM_PHASE_ENVIRONMENT, /* stepping worlds */
    RM_PHASE_INFERENCE,   /* policy forward while acting */
    RM_PHASE_RING,        /* reserving and committing rows */
    RM_PHASE_WAITING,     /* asleep, or polling in a loop of do_work that did nothing */
    RM_PHASE_SAMPLING,    /* choosing and copying a batch */
    RM_PHASE_UPLOAD,      /* host to device */
    RM_PHASE_FORWARD,
    RM_PHASE_BACKWARD,
    RM_PHASE_OPTIMIZER,
    RM_PHASE_PUBLISH,
    RM_PHASE_CHECKPOINT,
    RM_PHASE_COUNT
};

/* What a duty waits for while it sleeps. The sum of wait_ns[] is phase_ns[RM_PHASE_WAITING]. */
enum rm_wait {
    RM_WAIT_OTHER = 0,  /* an evaluator without a request; a start */
    RM_WAIT_LIMITER,    /* the limiter's bound, or too few transitions for the first update */
    RM_WAIT_WEIGHTS,    /* an actor, or a frozen opponent, for weights */
    RM_WAIT_ROWS,       /* a learner, for a rollout */
    RM_WAIT_CREDIT,     /* an actor, for room in its ring */
    RM_WAIT_ROUND,      /* the other participants of a round */
    RM_WAIT_CHECKPOINT, /* the others' state in a checkpoint */
    RM_WAIT_PAUSE,      /* the run is paused */
    RM_WAIT_COUNT
};

/* A mark of a phase: when a duty entered the phase, what it waits for and which phase it is. While
 * a trace is on, a duty writes a mark for each phase. The newest RM_TRACE_MARKS are kept. */
#define RM_TRACE_MARKS                 16384
#define RM_TRACE_AWAY                  15 /* as a phase: another duty of the process has its turn */
#define RM_TRACE_MARK(ns, wait, phase) ((ns) << 8 | (uint64_t)(wait) << 4 | (uint64_t)(phase))
#define RM_TRACE_PHASE(mark)           ((unsigned)((mark)&15))
#define RM_TRACE_WAIT(mark)            ((unsigned)((mark) >> 4 & 15))
/* The time of a mark that was written at most 2 years before `now_ns`. */
#define RM_TRACE_NS(mark, now_ns) ((now_ns) - (((now_ns) - ((mark) >> 8)) & (UINT64_MAX >> 8)))
_Static_assert((int)RM_PHASE_COUNT < RM_TRACE_AWAY && (int)RM_WAIT_COUNT < 16, "4 bits each");

/* Scores of finished episodes, added by several actors. `next` is claimed with fetch_add. */
struct rm_scores {
    _Alignas(128) _Atomic uint64_t episodes;
    _Atomic double last_score;
    _Atomic float first[RM_SCORE_WINDOW]; /* scores of episodes 0..99 */
    _Atomic float last[RM_SCORE_WINDOW];  /* of the latest 100, at episode % 100 */
};

struct rm_board_policy {
    char name[RM_NAME_MAX]; /* written by the daemon */
    /* The daemon writes the limiter's bounds, and the learner writes `sampled`. The actors write
     * `inserted`, the limiter's last word, and the fields up to `epsilon`. */
    struct rm_limiter limiter;
    _Alignas(RM_PAGE) _Atomic uint64_t env_steps; /* agent steps taken */
    _Atomic uint64_t rows_lost;                   /* rows reserved by a writer that died */
    _Atomic uint64_t lag_sum, lag_count, lag_max; /* policy lag while acting, in learner updates:
                                                     one entry per vector step */
    _Atomic uint64_t insert_blocked_ns;           /* time that actors slept on the limiter */
    _Atomic double epsilon;                       /* latest exploration rate */
    /* Written by the learner. */
    _Alignas(RM_PAGE) _Atomic uint64_t updates; /* optimizer steps */
    _Atomic uint64_t updates_skipped;           /* updates skipped because they were not finite */
    _Atomic uint64_t samples;                   /* transitions sampled */
    _Atomic uint64_t samples_torn;       /* transitions drawn again, because the writer overwrote
                                          * them during the copy */
    _Atomic uint64_t published;          /* versions of the weights */
    _Atomic uint64_t publish_skipped;    /* versions that were due, but had changed too little or
                                          * had exploded */
    _Atomic uint64_t sample_blocked_ns;  /* time that the learner slept on the limiter */
    _Atomic uint64_t age_sum, age_count; /* sampled rows' age, in env steps of the policy */
    _Atomic uint64_t replay_rows, replay_capacity; /* transitions held, and most */
    /* Of the latest update; late results of a device: means over the latest report's updates. */
    _Atomic double loss, grad_norm, q_mean, learning_rate;
    _Atomic double publish_change; /* relative change at the last publication */
    /* The learner's device: bytes copied to it and back, times the learner waited for it. */
    _Atomic uint64_t device_bytes_in, device_bytes_out, device_waits;
    /* Learning from rollouts. The losses are means over the latest rollout's updates. Learners from
     * replay write `entropy`, and distill `policy_loss`, as they write `loss` above. */
    _Alignas(128) _Atomic uint64_t rollouts;           /* rollouts learned from */
    _Atomic uint64_t rollouts_dropped;                 /* rollouts dropped as too stale */
    _Atomic uint64_t rollbacks;                        /* returns to the last good weights */
    _Atomic uint64_t lag_min_rollout, lag_max_rollout; /* policy lag in the latest rollout */
    _Atomic double lag_mean_rollout;
    _Atomic double policy_loss, value_loss, entropy, kl, clip_fraction, explained_variance;
    _Atomic double value_mean, value_deviation; /* PopArt: mu, sigma */
    _Atomic double temperature;                 /* sac */
    _Atomic double priority_max;                /* highest so far, of proportional replay */
    _Atomic double reward_scale;                /* divisor of rewards */
    _Atomic double type_loss, held_out_loss, held_out_policy_loss; /* distill */
    /* No part of the learner's state. Operations and bytes a second are measured when it starts,
     * update_fixed after its first update; 0: not measured. */
    _Atomic uint64_t parameters;
    _Atomic double update_flops; /* operations of an update's products, without padding */
    _Atomic double core_flops, core_flops_bf16; /* most operations a second, of a core */
    _Atomic double copy_bytes;                  /* most bytes a second that it copies in memory */
    _Atomic double update_fixed; /* as rm_trainer_fixed(); measured after an update */
    /* Written by the evaluator. */
    _Alignas(RM_PAGE) _Atomic uint64_t eval_seq; /* evaluations finished */
    _Atomic uint64_t eval_version;               /* version of the weights in the latest one */
};

/* A figure of an agent's episode, named by the world: a number, or one of a list of words, whose
 * value is its index in the list. */
struct rm_board_figure {
    char name[RM_NAME_MAX];
    uint32_t words; /* 0: a number */
    char word[RM_BOARD_WORDS][RM_NAME_MAX];
};

struct rm_board_agent {
    char name[RM_NAME_MAX]; /* written by the daemon */
    _Atomic uint32_t policy;
    /* Written by the actors: this agent's episodes while training. */
    _Alignas(RM_PAGE) struct rm_scores scores;  /* undiscounted returns */
    _Atomic uint64_t env_steps;                 /* its steps over all worlds */
    struct rm_scores lengths;                   /* in its own steps */
    struct rm_scores figures[RM_BOARD_FIGURES]; /* of the episodes that have the figure */
    /* Written by the evaluator: the latest evaluation. */
    _Alignas(RM_PAGE) _Atomic double eval_mean;                    /* mean return */
    _Atomic double eval_stderr;                                    /* its standard error */
    _Atomic double eval_length;                                    /* mean length */
    _Atomic double eval_figures[RM_BOARD_FIGURES][RM_BOARD_WORDS]; /* of a number its mean, at 0; of
                                                                      words the share of each */
};

/* Does a debugger inspect a worker that crashed or hangs, before it ends? The worker sets WANTED,
 * the daemon the others. */
enum rm_inspect {
    RM_INSPECT_NONE = 0,
    RM_INSPECT_OFFERED, /* a debugger is installed */
    RM_INSPECT_WANTED,  /* the worker waits for the debugger */
    RM_INSPECT_BEGUN,   /* the debugger runs */
    RM_INSPECT_DONE,    /* the worker may end */
};

struct rm_board_worker {
    /* Written by the daemon. */
    _Alignas(RM_PAGE) char name[RM_NAME_MAX]; /* "actor-0", "learner-agent_3" */
    _Atomic uint32_t role;                    /* enum rm_role */
    _Atomic uint32_t index;                   /* its number among the workers of its role */
    _Atomic uint32_t pid;                     /* 0 = none */
    _Atomic uint64_t generation;              /* 1 for the first process, +1 per respawn */
    _Atomic uint64_t started_ns;
    _Atomic uint64_t trace_until_ns; /* marks are written until then */
    /* Written by the worker, or by the daemon while the worker has no process. */
    _Alignas(RM_PAGE) _Atomic uint32_t state; /* enum rm_worker_state */
    _Atomic uint32_t inspect;                 /* enum rm_inspect */
    _Atomic uint64_t heartbeat_ns;            /* rm_now_ns() at the last sign of life: a turn, a
                                               * phase, an operation of an update */
    _Atomic uint64_t turns;                   /* do_work calls that did something */
    _Atomic uint64_t sleeps;                  /* waits on the wake */
    /* Without the phase that the worker is in: rm_board_spent_ns() has it. */
    _Atomic uint64_t phase_ns[RM_PHASE_COUNT];
    _Atomic uint64_t wait_ns[RM_WAIT_COUNT];
    _Atomic uint64_t phase; /* RM_TRACE_MARK of it; 0: none, or the two above are being changed */
    /* About the process, read fifty times a second. If a process has several duties, the first
     * one's slot has these numbers. */
    _Atomic uint64_t cpu_ns;       /* processor time of all its threads */
    _Atomic uint64_t run_delay_ns; /* time that its main thread waited for a core */
    _Atomic uint64_t world_cpu_ns; /* processor time of other processes, which step its worlds */
    _Atomic uint64_t rss_bytes;
    _Atomic uint64_t steps;       /* of actors, the evaluator, and learners that have the worlds:
                                     steps of agent 0 in all worlds of the process */
    _Atomic uint64_t steps_at[2]; /* lockstep: `steps` at the end of round r, at [r & 1] */
    /* Written by actors with a curriculum (actor/stages.h): the stage of the worlds, as in the run
     * block; episodes and sums of the figures of both rules; the same for unit u at [u & 3]. */
    _Atomic uint64_t stage;
    _Atomic uint64_t stage_episodes[2];
    _Atomic int64_t stage_sums[2];
    _Atomic uint64_t stage_episodes_at[4][2];
    _Atomic int64_t stage_sums_at[4][2];
    /* Written by the recorder. A row of n lanes counts as n. */
    _Atomic uint64_t recorded_rows;  /* rows on disk */
    _Atomic uint64_t lost_rows;      /* rows overwritten before they were copied, or not written */
    _Atomic uint64_t recorded_bytes; /* size of the files */
    _Atomic uint64_t acting_flops;   /* actors: operations of the products of forward passes */
    /* Numbers of checkpoints. */
    _Atomic uint64_t checkpoint_held;    /* the worker has copied its state for this checkpoint, and
                                          * waits for checkpoint_released */
    _Atomic uint64_t checkpoint_written; /* the worker has written its files, or has failed to */
    _Atomic uint64_t checkpoint_failed;  /* errno of the files of checkpoint_written; 0: written */
    char device[RM_DEVICE_NAME_MAX];     /* learners: "cpu", or the UUID of the GPU it trains on */
    char error[256];                     /* why it failed; written once before state = FAILED */
    _Alignas(RM_PAGE) _Atomic uint64_t traced;   /* marks so far */
    _Atomic uint64_t trace_mark[RM_TRACE_MARKS]; /* mark m is at [m % RM_TRACE_MARKS] */
    _Alignas(RM_PAGE) struct rm_wake_word wake;  /* written by the sleeper and its wakers */
};

struct rm_board_run {
    char name[RM_NAME_MAX];
    uint32_t policies, agents, workers; /* how many of the arrays below are used */
    uint32_t mode;                      /* enum rm_mode of config/experiment.h */
    uint64_t started_ns;
    /* Written by the daemon. */
    _Alignas(128) _Atomic uint32_t state;       /* enum rm_run_state */
    _Atomic uint32_t stop;                      /* 1: finish the current turn and exit 0 */
    _Atomic uint32_t pause;                     /* 1: do nothing, sleep */
    _Atomic uint64_t settings_version;          /* +1 after settings[] changed */
    _Atomic double settings[RM_BOARD_SETTINGS]; /* by hot index, see config/schema.h */
    _Atomic uint64_t checkpoint_request;        /* actors and learners hold for this checkpoint */
    _Atomic uint64_t evaluate_request;          /* requests for an evaluation so far */
    _Atomic uint64_t evaluate_episodes;         /* for that request; 0 = evaluation.episodes */
    _Atomic uint64_t env_steps_budget;          /* steps per agent, over all worlds; 0 = no end */
    _Atomic uint64_t checkpoint_released;       /* workers may continue after this checkpoint */
    _Atomic uint64_t rows_counted;              /* rows in all rings, by the supervisor's count */
    _Atomic uint32_t quarantined; /* GPUs below that learners must not use; only grows */
    char quarantine[RM_BOARD_QUARANTINED][RM_DEVICE_NAME_MAX];
    uint32_t stages;  /* of the curriculum, 0: there is none */
    uint32_t figures; /* figures in use; fixed at creation */
    struct rm_board_figure figure[RM_BOARD_FIGURES];
    /* Written by the evaluator. */
    _Alignas(RM_PAGE) _Atomic uint64_t evaluations;    /* evaluations finished */
    _Atomic double eval_score_mean, eval_score_stderr; /* of an episode's sum over agents */
    _Atomic uint64_t eval_episodes;                    /* episodes of the latest evaluation */
    _Atomic uint64_t eval_request; /* the latest request before this evaluation began, as
                                    * evaluate_request counts them; 0 = none */
    _Atomic uint64_t eval_steps;   /* steps per agent when it took its weights */
    _Atomic double eval_best;      /* highest eval_score_mean so far, NAN: none yet */
    /* Written by the actors: the score of each world episode, summed over its agents, and its
     * length in vector steps. */
    _Alignas(RM_PAGE) struct rm_scores scores;
    struct rm_scores lengths;
    _Alignas(128) _Atomic uint64_t bell_at; /* the actor that first counts so many steps per agent
                                             * rings the daemon's bell; UINT64_MAX: none */
    /* Written by actor 0, with a curriculum. A word has the stage, counted from 0, in the low 8
     * bits, and the number of changes so far above them: the latest decision, and the decision for
     * unit u at [u & 3]. The figure of the latest decision (NAN: none) is a mean over
     * stage_episodes episodes. */
    _Alignas(128) _Atomic uint64_t stage;
    _Atomic uint64_t stage_at[4];
    _Atomic double stage_mean;
    _Atomic uint64_t stage_episodes;
};

struct rm_board; /* layout.h: header, run, round, policies[], agents[], workers[] */

struct rm_board_view {
    struct rm_region region;
    struct rm_board_run *run;
    struct rm_round *round;
    struct rm_board_policy *policies; /* [run->policies] */
    struct rm_board_agent *agents;    /* [run->agents] */
    struct rm_board_worker *workers;  /* [run->workers] */
};

int rm_board_create(struct rm_board_view *view, uint32_t policies, uint32_t agents,
                    uint32_t workers, struct rm_error *error);
int rm_board_attach(struct rm_board_view *view, int fd, bool writable, struct rm_error *error);

/* For a process that runs a foreign world: maps the board read-only for good, except for the pages
 * that its role writes. An actor writes its own slot, the actors' counters, rounds, and the words
 * that other workers sleep on. The evaluator writes its own slot, its own wake word and its
 * results. The one process of sequential mode writes all pages but the daemon's. The caller must
 * close the descriptor before it loads the world. */
int rm_board_attach_as(struct rm_board_view *view, int fd, enum rm_role role, uint32_t worker,
                       struct rm_error *error);
void rm_board_close(struct rm_board_view *view);

/* Adds a finished episode's score. */
void rm_scores_add(struct rm_scores *scores, double score);

/* Mean over the first / last window. Returns the number of episodes in it (0: *mean = NAN). */
uint32_t rm_scores_first(const struct rm_scores *scores, double *mean);
uint32_t rm_scores_last(const struct rm_scores *scores, double *mean);

/* Share of the word with number `word` in the last window; NAN: no episode has one. */
double rm_scores_share(const struct rm_scores *scores, uint32_t word);

/* Figure f of an agent over the latest episodes of training, and in the latest evaluation: value 0
 * of a number is its mean, value k of words is the share of word k. NAN: unknown. */
double rm_board_figure_last(const struct rm_board_view *view, uint32_t agent, uint32_t figure,
                            uint32_t value);
double rm_board_figure_evaluated(const struct rm_board_view *view, uint32_t agent, uint32_t figure,
                                 uint32_t value);
/* 1 for a number, else how many words there are. */
uint32_t rm_board_figure_values(const struct rm_board_figure *figure);

/* Is this a valid name of an experiment, a world, an agent or a figure? Valid are ASCII letters,
 * digits, '.', '_' and '-', beginning with a letter or a digit, in fewer than RM_NAME_MAX bytes.
 * Such names are safe as parts of paths, as columns and on a terminal. */
bool rm_name_valid(const char *name);
#define RM_NAME_RULE                                                                               \
    "letters, digits, '.', '_' and '-', beginning with a letter or a digit, at most 47"

/* Names, for files, tables and docs. */
const char *rm_phase_name(enum rm_phase phase);
const char *rm_wait_name(enum rm_wait wait);
const char *rm_role_name(enum rm_role role);
const char *rm_worker_state_name(enum rm_worker_state state);
const char *rm_run_state_name(enum rm_run_state state);

/* One row per exported number, driving CSV, TensorBoard, OpenMetrics, `ringctl metrics` and the
 * reference page. Kinds: a counter only grows, a gauge does not. */
enum rm_metric_kind { RM_METRIC_COUNTER, RM_METRIC_GAUGE };
enum rm_metric_type { RM_METRIC_U64, RM_METRIC_F64, RM_METRIC_SPENT };
struct rm_metric {
    const char *name; /* as in metric files: "updates" */
    const char *unit; /* "1", "seconds", "steps", "bytes" */
    enum rm_metric_kind kind;
    enum rm_metric_type type;
    size_t offset; /* into the block */
    const char *doc;
};
extern const struct rm_metric rm_policy_metrics[]; /* of struct rm_board_policy */
extern const size_t rm_policy_metric_count;
extern const struct rm_metric rm_worker_metrics[]; /* of struct rm_board_worker */
extern const size_t rm_worker_metric_count;
double rm_metric_value(const struct rm_metric *metric, const void *block);

/* Time in nanoseconds that a worker has spent in a phase, or waited for a reason: `counter` is one
 * of its phase_ns[] or wait_ns[]. With the part of the phase that it is in: a worker may sleep for
 * hours. */
uint64_t rm_board_spent_ns(const struct rm_board_worker *worker, const _Atomic uint64_t *counter);
/* Adds `ns` to a phase and, if that is RM_PHASE_WAITING, to what the worker waited for. The worker
 * has no phase then, until it stores the next one. */
void rm_board_spend(struct rm_board_worker *worker, enum rm_phase phase, enum rm_wait wait,
                    uint64_t ns);
/* Adds the phase that the worker was in when its process ended. For the daemon, while the worker
 * has no process. */
void rm_board_end_phase(struct rm_board_worker *worker);

#endif
