/* snapshot: a reply to `status`, as plain data: what the tables and `top` draw. Fields that a reply
 * does not have are NAN or "". The keys stand in the tables of snapshot.c and nowhere else. */
#ifndef RM_DAEMON_CTL_SNAPSHOT_H
#define RM_DAEMON_CTL_SNAPSHOT_H

#include "shm/board.h"

#include <jansson.h>

#define RM_SNAPSHOT_TEXT 256

/* A figure of episodes: "food", "length", or the share of a word, "end: time". */
struct rm_snapshot_figure {
    char name[2 * RM_NAME_MAX + 2];
    double last, evaluated; /* over the latest episodes; in the latest evaluation */
};
#define RM_SNAPSHOT_FIGURES 64 /* of an agent; more are not shown */

struct rm_snapshot_agent {
    char name[RM_NAME_MAX], policy[RM_NAME_MAX];
    double env_steps;             /* that it took itself */
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
    /* Learning from rollouts; NAN where there are none. Losses and the rest: of the latest. */
    double rollouts, dropped, policy_loss, value_loss, entropy, kl, clipped, explained;
};

struct rm_snapshot_worker {
    char name[RM_NAME_MAX], role[RM_NAME_MAX];
    char state[RM_NAME_MAX];       /* the worker's own word */
    char supervised[RM_NAME_MAX];  /* the supervisor's */
    char reason[RM_SNAPSHOT_TEXT]; /* of its last death */
    char device[RM_NAME_MAX];      /* learners: "cpu" or the UUID of a GPU */
    double pid, generation, deaths, rss_bytes;
    double recorded, lost, recorded_bytes; /* of the recorder, else NAN: rows of lanes */
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

/* Reads a reply. Never fails: what is missing or of another type is unknown. */
void rm_snapshot_read(struct rm_snapshot *snapshot, const json_t *reply);

/* Reads an object of figures as replies have them, `evaluated` by the same names (NULL: none).
 * Returns how many. */
unsigned rm_snapshot_figures(struct rm_snapshot_figure *figure, unsigned most, const json_t *last,
                             const json_t *evaluated);

/* Share of the budget that is done, 0..1; NAN without a budget. */
double rm_snapshot_progress(const struct rm_snapshot *snapshot);

/* Share of each phase, 0..1, into share[RM_PHASE_COUNT]; all 0 when there is no time yet. With an
 * earlier snapshot of the worker (may be NULL): of the time since then, if it is the same process.
 */
void rm_snapshot_phases(const struct rm_snapshot_worker *now,
                        const struct rm_snapshot_worker *before, double *share);

#endif
