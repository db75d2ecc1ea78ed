/* bottleneck: the model of a run's speed. Its input is the time that each duty needs for an agent
 * step; its result is the time of a step. For a change of settings it predicts the duties' times
 * first. docs/explain.md has the equations. Pure functions: no files, no clock. */
#ifndef RM_DAEMON_CTL_BOTTLENECK_H
#define RM_DAEMON_CTL_BOTTLENECK_H

#include "config/experiment.h"
#include "shm/base/error.h"
#include "shm/station.h"

/* How duties share time. */
enum rm_coupling {
    RM_COUPLING_OVERLAP = 0, /* at the same time; the limiter or the ring couples their rates */
    RM_COUPLING_ALTERNATE,   /* actors wait for the weights of their rollout */
    RM_COUPLING_TURNS,       /* one process: sequential mode */
};
enum rm_coupling rm_coupling_of(const struct rm_experiment *experiment);

/* The phases in which a learner calls the kernel, to wake others. */
#define RM_LEARNER_CALLS (1u << RM_PHASE_SAMPLING | 1u << RM_PHASE_PUBLISH | 1u << RM_PHASE_OTHER)

/* Checkpoints leave some time for training. */
#define RM_HELD_MOST 0.9

/* Worlds that an actor steps in a turn. */
double rm_worlds_of_actor(const struct rm_experiment *experiment);

/* All duties of one kind together. Times are seconds of work for each agent step (of agent 0, over
 * all worlds), as if each duty had a core of its own. */
struct rm_work {
    double phase_s[RM_PHASE_COUNT];
    double cpu;     /* processor seconds in a second of work: below 1 if a world waits, above 1 with
                       several threads */
    double woken_s; /* besides, in which processes that it woke had its core */
    double stretch; /* 1, or more if other processes had its core in other phases, too */
};

struct rm_load {
    const struct rm_experiment *experiment; /* the settings of these numbers */
    double cores;                           /* of the host */
    double other;                           /* cores that other processes take from the run */
    double around;           /* cores that are busy with other processes; NAN: not known */
    double updates_per_step; /* of a learner, measured */
    struct rm_work acting;   /* of all actors together */
    uint32_t learners;
    struct rm_work learner[RM_BOARD_POLICIES];
    struct rm_work evaluating;
    double update_products, acting_products; /* share of the time of passes that products take; NAN:
                                                not known */
    double bf16_speed;   /* of products in bf16, 1: as in float32; 0: the processor
                            has no instruction for them; NAN: not known */
    double update_fixed; /* share of the time of updates' passes that does not depend on the number
                            of rows; below 0: it grows faster than the rows; NAN: not known */
    double daemon_s;     /* processor time of the daemon, for each step */
    double looks_s;      /* processor time of actors that check whether they must still sleep */
    double held; /* share of time in which checkpoints hold the duties, at most RM_HELD_MOST */
    double gap;  /* what a step takes beside the model's time, as a share of that time */
    double handover_s; /* what waking the other side takes beside that, for each step */
};

/* Time that work takes on cores of its own, of `busy` seconds of wall time, `cpu` of processor time
 * and `no_core` without a core. The kernel counts the delay of a wake-up, too, which is no part of
 * the work: so the processor time is the least. */
double rm_service_s(double busy, double cpu, double no_core, double threads);

/* Seconds of work in all phases. */
double rm_work_s(const struct rm_work *work);

/* Seconds for an agent step. */
double rm_load_step_s(const struct rm_load *load);

/* Seconds of the station's work for an agent step, by all duties together; 0 if it has none. */
double rm_load_station_s(const struct rm_load *load, enum rm_station station);

/* Number of cores that the run keeps busy at the speed of rm_load_step_s(). */
double rm_load_busy(const struct rm_load *load);

/* Sets load->gap and load->handover_s, and the duties' stretch, so that rm_load_step_s() equals the
 * measured step_s. Returns their part of it in seconds. */
double rm_load_fit(struct rm_load *load, double step_s);

/* The same run, if the station took `factor` times as long. */
struct rm_load rm_load_longer(const struct rm_load *load, enum rm_station station, double factor);

/* The relative increase of a step's time, divided by the relative increase of the station's time,
 * for an increase of 1 %. 1: the station alone limits the run; 0: it does not limit the run. */
double rm_load_elasticity(const struct rm_load *load, enum rm_station station);

/* A key for which the model predicts the effect of a change. */
struct rm_lever {
    const char *key;
    bool learns; /* the key changes what is learned, not only the speed */
    bool idle;   /* it has no effect on the speed */
};
const struct rm_lever *rm_lever_find(const char *key); /* NULL: the key has no model */

/* What products of good shapes reach of a core's most operations. */
#define RM_OF_CEILING 0.85

/* The load with other settings, which outlive it. -ENOTSUP with a message for a key without a
 * model.
 */
int rm_load_change(struct rm_load *after, const struct rm_load *before,
                   const struct rm_experiment *settings, struct rm_error *error);

#endif
