/* explain: finds what limits a run's speed, from a window of its metrics (window.h) and the
 * settings in it, with the model of bottleneck.h. Reads files of a run directory or values of a
 * running experiment. Prints nothing. */
#ifndef RM_DAEMON_CTL_EXPLAIN_H
#define RM_DAEMON_CTL_EXPLAIN_H

#include "daemon/ctl/bottleneck.h"
#include "daemon/ctl/evidence.h"
#include "daemon/ctl/window.h"

#include <jansson.h>

/* A predicted rate of agent steps, and its 80 % interval (docs/explain.md). */
struct rm_predicted {
    double steps_per_s, low, high;
};

/* A change of one setting. */
struct rm_explained_change {
    char key[64], value[32];
    bool learns; /* the key also changes what is learned */
    struct rm_predicted rate;
};

#define RM_EXPLAINED_CHANGES 3

struct rm_explained {
    struct rm_experiment *experiment; /* of the window; freed by rm_explained_free() */
    double window_s, steps, updates;  /* of the window */
    double steps_per_s;               /* of agent 0, over all worlds */
    double rollout_s;                 /* as in struct rm_run_window */
    struct rm_load load;
    struct rm_evidence evidence;
    double elasticity[RM_STATION_COUNT]; /* NAN: not known */
    enum rm_station first, second;       /* the largest elasticities */
    bool known;                          /* the model explains most of a step */
    bool single;                         /* the station `first` alone limits the run */
    double unexplained;       /* share of a step's time that the model does not explain */
    double alone_steps_per_s; /* without other processes of the host; NAN: not known */
    uint32_t duties, moves, idles;
    struct rm_run_duty duty[RM_BOARD_WORKERS];             /* as shares of wall_s */
    struct rm_explained_change move[RM_EXPLAINED_CHANGES]; /* changes that would help, best first */
    struct rm_explained_change idle[RM_EXPLAINED_CHANGES]; /* popular changes that would not help */
};

/* Explains the run in `directory`. `now`: a running experiment's reply to `metrics`, where the
 * window ends; NULL: the window ends at the file's last row of training. Returns 0, or a negative
 * errno with a message. */
int rm_explain_run(struct rm_explained *explained, const char *directory, const json_t *now,
                   struct rm_error *error);

/* The same from the text of metrics.csv. Takes over `experiment`, also after an error. */
int rm_explain_rows(struct rm_explained *explained, struct rm_experiment *experiment,
                    const char *csv, const json_t *now, struct rm_error *error);

/* Predicts the rate with other settings, "KEY=VALUE" each. -EINVAL: a setting is not valid;
 * -ENOTSUP: the model does not know the key. */
int rm_explain_change(const struct rm_explained *explained, const char *const *settings,
                      size_t count, struct rm_predicted *rate, struct rm_error *error);

/* The name of a station in a sentence: "the update". */
const char *rm_explained_station(enum rm_station station);

/* The result in one line: "the update limits the run". */
#define RM_VERDICT_MAX 128
void rm_explained_verdict(const struct rm_explained *explained, char *text, size_t size);

/* The same of a run's directory, with the best change and the predicted gain:
 * "the update limits the run; actor.count=4 +28 %". Returns whether its rows have an answer. */
#define RM_SENTENCE_MAX 256
bool rm_explain_sentence(const char *directory, char *text, size_t size);

json_t *rm_explained_json(const struct rm_explained *explained);
void rm_explained_free(struct rm_explained *explained);

#endif
