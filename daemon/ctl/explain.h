/* explain: what limits a run, from its counters: two rows of metrics and the settings between them.
 * The model is bottleneck.h's. Reads files of a run directory or values of a running experiment;
 * prints nothing. */
#ifndef RM_DAEMON_CTL_EXPLAIN_H
#define RM_DAEMON_CTL_EXPLAIN_H

#include "daemon/ctl/bottleneck.h"

#include <jansson.h>

/* Where a worker's time went in the window, as shares of it. */
struct rm_explained_duty {
    char name[RM_NAME_MAX];
    enum rm_role role;
    double wall_s; /* booked */
    double turns, sleeps;
    double cpu;                   /* cores that its process used; NAN: another duty's process */
    double no_core;               /* could run, but had no core */
    double phase[RM_PHASE_COUNT]; /* waiting among them */
    double wait[RM_WAIT_COUNT];
};

/* A change of one setting. */
struct rm_explained_change {
    char key[64], value[32];
    bool learns;        /* it changes what is learned as well */
    double steps_per_s; /* predicted */
};

#define RM_EXPLAINED_CHANGES 3

struct rm_explained {
    struct rm_experiment *experiment; /* as the window had it; freed by rm_explained_free() */
    double window_s, steps, updates;  /* of the window */
    double steps_per_s;               /* of agent 0, over all worlds */
    struct rm_load load;
    double elasticity[RM_STATION_COUNT];
    enum rm_station first, second; /* the largest elasticities */
    bool known;                    /* the model explains most of a step */
    bool single;                   /* the first alone limits the run */
    double unexplained;            /* share of a step that the model doesn't have */
    double alone_steps_per_s;      /* without other processes of the host */
    uint32_t duties, moves, idles;
    struct rm_explained_duty duty[RM_BOARD_WORKERS];
    struct rm_explained_change move[RM_EXPLAINED_CHANGES]; /* what would help, best first */
    struct rm_explained_change idle[RM_EXPLAINED_CHANGES]; /* what people try, and would not */
};

/* A run by its directory. `now`: a running experiment's reply to `metrics`, the end of the window;
 * NULL: the file's last row of training. Returns 0 or negative errno with a message. */
int rm_explain_run(struct rm_explained *explained, const char *directory, const json_t *now,
                   struct rm_error *error);

/* The same from the text of metrics.csv. Takes the experiment over, in any case. */
int rm_explain_rows(struct rm_explained *explained, struct rm_experiment *experiment,
                    const char *csv, const json_t *now, struct rm_error *error);

/* The rate with other settings, "KEY=VALUE" each. -EINVAL: not valid; -ENOTSUP: no model. */
int rm_explain_change(const struct rm_explained *explained, const char *const *settings,
                      size_t count, double *steps_per_s, struct rm_error *error);

/* What a station is, in a sentence about a run: "the update". */
const char *rm_explained_station(enum rm_station station);

/* The verdict in a line: "the update limits the run". */
#define RM_VERDICT_MAX 128
void rm_explained_verdict(const struct rm_explained *explained, char *text, size_t size);

/* The same of a run's directory, with the best change and the predicted gain:
 * "the update limits the run; actor.count=4 +28 %". Returns whether its rows have an answer. */
#define RM_SENTENCE_MAX 256
bool rm_explain_sentence(const char *directory, char *text, size_t size);

json_t *rm_explained_json(const struct rm_explained *explained);
void rm_explained_free(struct rm_explained *explained);

#endif
