/* bottleneck: the model of a run's speed. From what every duty needs for an agent step it computes
 * the time of a step, and from a change of settings what the duties need then. docs/explain.md has
 * the equations. No input or output, no clock. */
#ifndef RM_DAEMON_CTL_BOTTLENECK_H
#define RM_DAEMON_CTL_BOTTLENECK_H

#include "config/experiment.h"
#include "shm/base/error.h"
#include "shm/board.h"

/* What can limit a run. Lengthening it says how much it does: rm_load_elasticity(). */
enum rm_station {
    RM_STATION_WORLD = 0,  /* stepping worlds */
    RM_STATION_ACTING,     /* choosing actions, writing rows */
    RM_STATION_SAMPLING,   /* choosing and copying batches */
    RM_STATION_UPDATE,     /* forward, backward, optimizer */
    RM_STATION_PUBLISHING, /* weights to the actors */
    RM_STATION_DISK,       /* waiting for a checkpoint of all duties' state */
    RM_STATION_EVALUATION, /* the evaluator, which takes a core now and then */
    RM_STATION_HOST,       /* what other processes of the host take of its cores */
    RM_STATION_COUNT
};
const char *rm_station_name(enum rm_station station);

/* How duties share time. */
enum rm_coupling {
    RM_COUPLING_OVERLAP = 0, /* at the same time; the limiter or the ring couples their rates */
    RM_COUPLING_ALTERNATE,   /* actors wait for the weights of their rollout */
    RM_COUPLING_TURNS,       /* one process: sequential mode */
};
enum rm_coupling rm_coupling_of(const struct rm_experiment *experiment);

/* Duties of one kind. Times are of work on a core of their own, in seconds for each agent
 * step (of agent 0, over all worlds). */
struct rm_work {
    double phase_s[RM_PHASE_COUNT];
    double cpu; /* processor time in a second of it: below 1 where a world waits, above 1 with
                 * several threads */
};

struct rm_load {
    const struct rm_experiment *experiment; /* the settings of these numbers */
    double cores;                           /* of the host */
    double other;                           /* of them, taken from the run by other processes */
    double around;                          /* of them, busy for other processes */
    struct rm_work acting;                  /* of all actors together */
    uint32_t learners;
    struct rm_work learner[RM_BOARD_POLICIES];
    struct rm_work evaluating;
    double daemon_s; /* processor time of the daemon, for each step */
    double looks_s;  /* processor time of actors that look whether they still have to sleep */
    double held;     /* share of time in which checkpoints hold the duties */
    double gap_s;    /* a measured step less the model's: wake-ups and uneven turns */
};

/* Seconds of work in all phases. */
double rm_work_s(const struct rm_work *work);

/* Seconds for an agent step. */
double rm_load_step_s(const struct rm_load *load);

/* Cores that the run keeps busy at that speed. */
double rm_load_busy(const struct rm_load *load);

/* Sets what the model doesn't explain of a measured step. */
void rm_load_fit(struct rm_load *load, double step_s);

/* Share by which a step gets longer if the station takes 1 % longer, over 1 %: 1, it alone limits
 * the run; 0, not at all. */
double rm_load_elasticity(const struct rm_load *load, enum rm_station station);

/* A key whose change the model knows. */
struct rm_lever {
    const char *key;
    bool learns; /* it changes what is learned, not only how fast */
};
extern const struct rm_lever rm_levers[]; /* ends with key NULL */

/* The load with other settings, which outlive it. -ENOTSUP with a message for a key without a
 * model.
 */
int rm_load_change(struct rm_load *after, const struct rm_load *before,
                   const struct rm_experiment *settings, struct rm_error *error);

#endif
