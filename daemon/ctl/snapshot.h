/* snapshot: a reply to `status` as plain data, for the tables and for `top`. Fields that the reply
 * lacks are NAN or "". Only the tables in snapshot.c have the keys of the reply. */
#ifndef RM_DAEMON_CTL_SNAPSHOT_H
#define RM_DAEMON_CTL_SNAPSHOT_H

#include "shm/board.h"

#include <jansson.h>

#define RM_SNAPSHOT_TEXT 256

/* A figure of episodes: a number ("food", "length") or the share of episodes with a word ("end:
 * time"). */
struct rm_snapshot_figure {
    char name[2 * RM_NAME_MAX + 2];
    double last, evaluated; /* over the latest episodes; in the latest evaluation */
};
#define RM_SNAPSHOT_FIGURES 64 /* most figures of an agent; further ones are not shown */

struct rm_snapshot_agent {
    char name[RM_NAME_MAX], policy[RM_NAME_MAX];
    double env_steps;             /* steps that the agent took itself */
    double episodes, first, last; /* mean reward per episode: first and last window */
    double eval_mean, eval_stderr;
    unsigned figures;
    struct rm_snapshot_figure figure[RM_SNAPSHOT_FIGURES];
};

struct rm_snapshot_policy {
    char name[RM_NAME_MAX];
    double env_steps, updates, updates_skipped, published;
    double replay_fill, replay_ratio; /* fill: 0..1; ratio: sampled per inserted */
    double lag_mean, lag_max, loss, learning_rate, epsilon;
    /* For learning from rollouts, else NAN. Losses and the figures after them are those of the
     * latest rollout. */
    double rollouts, dropped, policy_loss, value_loss, entropy, kl, clipped, explained;
};

struct rm_snapshot_worker {
    char name[RM_NAME_MAX], role[RM_NAME_MAX];
    char state[RM_NAME_MAX];       /* the state that the worker reports */
    char supervised[RM_NAME_MAX];  /* the supervisor's */
    char reason[RM_SNAPSHOT_TEXT]; /* of its last death */
    char device[RM_NAME_MAX];      /* learners: "cpu" or the UUID of a GPU */
    double pid, generation, deaths, rss_bytes;
    double recorded, lost, recorded_bytes; /* the recorder's, in rows of lanes; else NAN */
    double booked_s;                       /* seconds that the phases add up to */
    double phase[RM_PHASE_COUNT];          /* share of booked_s, since its start */
};

struct rm_snapshot {
    char name[RM_NAME_MAX * 2], state[RM_NAME_MAX], mode[RM_NAME_MAX];
    char directory[1024], error[RM_SNAPSHOT_TEXT];
    double pid, uptime_s, steps, steps_budget, steps_per_s, updates_per_s, left_s;
    double rss_bytes; /* of all workers together */
    double episodes, score_first, score_last;
    double evaluations, eval_mean, eval_stderr, eval_episodes, score_random;
    double stage, stages, stage_mean, stage_bound, stage_episodes; /* of the curriculum */
    char stage_figure[RM_NAME_MAX * 2];
    unsigned agents, policies, workers;
    struct rm_snapshot_agent agent[RM_BOARD_AGENTS];
    struct rm_snapshot_policy policy[RM_BOARD_POLICIES];
    struct rm_snapshot_worker worker[RM_BOARD_WORKERS];
};

/* Reads a reply. Cannot fail: fields that are missing or have another type become NAN or "". */
void rm_snapshot_read(struct rm_snapshot *snapshot, const json_t *reply);

/* Reads the figures of an agent from an object of a reply; `evaluated` (NULL: none) has the figures
 * of the evaluation under the same names. Returns the number of figures. */
unsigned rm_snapshot_figures(struct rm_snapshot_figure *figure, unsigned most, const json_t *last,
                             const json_t *evaluated);

/* Share of the budget that is done, 0..1; NAN without a budget. */
double rm_snapshot_progress(const struct rm_snapshot *snapshot);

/* Writes the share of each phase, 0..1, to share[RM_PHASE_COUNT]; zeros if no time was booked yet.
 * With `before`, an earlier snapshot of the worker (or NULL), the shares are those of the time
 * since then, if the process is the same. */
void rm_snapshot_phases(const struct rm_snapshot_worker *now,
                        const struct rm_snapshot_worker *before, double *share);

#endif
