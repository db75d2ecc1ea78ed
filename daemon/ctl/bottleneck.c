#include "daemon/ctl/bottleneck.h"

#include "config/config.h"
#include "config/traits.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Constants of this code, measured once (docs/explain.md), none of any workload. A piece of work
 * over n rows takes a + b n: these are a / b, in rows. */
#define WORLD_ROWS     1.0  /* a vector step of worlds */
#define INFERENCE_ROWS 3.0  /* a forward pass while acting */
#define RING_ROWS      8.0  /* a row of a ring */
#define SAMPLING_ROWS  35.0 /* a batch */
#define WAKING_ROWS    25.0 /* and what waking the actors adds to it */

#define CONTENTION 0.12 /* how much longer work takes for each further core that is busy */
#define SHARPNESS  8.0  /* of the least of two rates: how far both sides make each other wait */

/* After a sleep the core and its caches are cold. Work of actors that follows takes COLD_S longer
 * if the sleep took a millisecond, and (sleep / 1 ms)^COLD_POWER times that for other sleeps, but
 * no more than COLD_MOST times the work on a warm core. */
#define COLD_S     33e-6
#define COLD_POWER 0.8
#define COLD_MOST  2.0
/* Work of learners with rollouts takes SLEEPY / (1 + SLEEPY_HALF) longer if they nearly always
 * sleep, and SLEEPY / 2 if they sleep for the share SLEEPY_HALF of their time. With replay it takes
 * COLD_REPLAY of the time asleep longer, but no more than COLD_REPLAY_MOST of their work. */
#define SLEEPY           0.3
#define SLEEPY_HALF      0.3
#define COLD_REPLAY      0.126
#define COLD_REPLAY_MOST 0.25
/* Waking a process takes the one that wakes it WAKE_S. Without it no less than WAKE_LEAST is left
 * of the phases in which it does so. */
#define WAKE_S       33e-6
#define WAKE_FURTHER 0.25 /* of that, for each further actor */
#define WAKE_LEAST   0.2
/* If sides take turns, a hand-over takes a time in proportion to the sum of this and the time since
 * the last one. So does publishing after a rollout, because its memory was last used then. */
#define HANDOVER_FIXED_S 3.5e-3
#define ROUNDS           6 /* until the time asleep and the work after it fit */

#define ROUNDING                                                                                   \
    0.13 /* what rounding to bf16 takes beside products, in times of these in float32 */
#define FIXED_LEAST (-0.2) /* of the passes' time: less is a measurement gone wrong */
/* A quarter of fewer rows does not fill a block of rows of the products, and takes as long as the
 * block. So it does not show the fixed part; that is at most this. */
#define FEW_ROWS     64.0
#define FIXED_OF_FEW (1.0 / 3)
#define CHECKED      0.1 /* check_finite: part of forward and backward that searching takes */

enum rm_coupling rm_coupling_of(const struct rm_experiment *e)
{
    if (e->mode == RM_MODE_SEQUENTIAL)
        return RM_COUPLING_TURNS;
    return rm_algorithm_traits(e->algorithm.name)->synchronous && e->rollout.max_policy_lag == 0
               ? RM_COUPLING_ALTERNATE
               : RM_COUPLING_OVERLAP;
}

double rm_service_s(double busy, double cpu, double no_core, double threads)
{
    return busy > 0 ? fmin(busy, fmax(cpu / threads, busy - no_core)) : 0;
}

/* --- the time of a step ---------------------------------------------------------------------- */

static double phases_s(const struct rm_work *work, uint32_t phases)
{
    double sum = 0;
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        if (phases >> p & 1)
            sum += work->phase_s[p];
    return sum;
}

double rm_work_s(const struct rm_work *work)
{
    return phases_s(work, UINT32_MAX);
}

static double cpu_of(const struct rm_work *work)
{
    return rm_work_s(work) * work->cpu;
}

/* Do the learners go on without waiting for actors, and actors without waiting for them? */
static bool runs_free(const struct rm_experiment *e)
{
    return e->mode == RM_MODE_FREE && rm_fills_replay(e) && e->limiter.updates_per_step == 0;
}

struct sides {
    double acting, learning;         /* time of each side alone, on cores of its own */
    double acting_cpu, learning_cpu; /* processor time */
    double rest_cpu;                 /* evaluator and daemon */
    double cores;                    /* that others leave */
    double woken;                    /* of a learner */
};

/* Seconds that the work takes beside other processes of the host. */
static double wall_s(const struct rm_work *work)
{
    return rm_work_s(work) * work->stretch;
}

static void set_stretch(struct rm_load *load, double factor)
{
    load->acting.stretch = 1 + (load->acting.stretch - 1) * factor;
    for (uint32_t p = 0; p < load->learners; p++)
        load->learner[p].stretch = 1 + (load->learner[p].stretch - 1) * factor;
}

static struct sides sides_of(const struct rm_load *load)
{
    const struct rm_experiment *e = load->experiment;
    const uint32_t actors = rm_actor_processes(e);
    struct sides s = {
        .acting = wall_s(&load->acting) / (actors ? actors : 1),
        .acting_cpu = cpu_of(&load->acting),
        .rest_cpu = cpu_of(&load->evaluating) + load->daemon_s + load->looks_s,
        .cores = fmax(load->cores - load->other, load->cores / 16),
    };
    const bool one = e->learner.processes == RM_LEARNERS_ONE;
    double free_cpu = 0; /* of learners that take their cores for as long as a step takes */
    for (uint32_t p = 0; p < load->learners; p++) {
        const double own = wall_s(&load->learner[p]);
        s.woken = fmax(s.woken, load->learner[p].woken_s);
        s.learning_cpu += cpu_of(&load->learner[p]);
        s.learning = one ? s.learning + own : fmax(s.learning, own);
        free_cpu += own > 0 ? cpu_of(&load->learner[p]) * s.acting / own : 0;
    }
    if (runs_free(e)) {
        const double cores = s.learning > 0 ? s.learning_cpu / s.learning : 0;
        s.learning_cpu = one ? cores * s.acting : free_cpu;
        s.learning = 0;
    }
    return s;
}

/* The two sides of a limiter: the slower one sets the pace, and where both are equally fast, each
 * waits for the other now and then. */
static double slower(double a, double b)
{
    const double most = fmax(a, b);
    return most > 0 ? most * pow(pow(a / most, SHARPNESS) + pow(b / most, SHARPNESS), 1 / SHARPNESS)
                    : 0;
}

static double duties_s(const struct rm_load *load)
{
    const struct sides s = sides_of(load);
    const double all_cpu = s.acting_cpu + s.learning_cpu + s.rest_cpu;
    switch (rm_coupling_of(load->experiment)) {
    case RM_COUPLING_TURNS: {
        double sum = wall_s(&load->acting) + wall_s(&load->evaluating);
        for (uint32_t p = 0; p < load->learners; p++)
            sum += wall_s(&load->learner[p]);
        return fmax(sum, all_cpu / s.cores);
    }
    case RM_COUPLING_ALTERNATE:
        return fmax(fmax(s.acting, s.acting_cpu / s.cores) +
                        fmax(s.learning, s.learning_cpu / s.cores),
                    all_cpu / s.cores);
    case RM_COUPLING_OVERLAP:
        break;
    }
    return fmax(slower(s.acting, s.learning), all_cpu / s.cores);
}

double rm_load_step_s(const struct rm_load *load)
{
    return (duties_s(load) * (1 + load->gap) + load->handover_s) / (1 - load->held);
}

/* Where both sides take turns, the rest is the time from one side's signal to the other side's
 * first instruction. Where they overlap, the actors that a slower learner wakes have its core for
 * some time; what else delays a duty can be another duty of the run. */
double rm_load_fit(struct rm_load *load, double step_s)
{
    const enum rm_coupling coupling = rm_coupling_of(load->experiment);
    if (coupling == RM_COUPLING_OVERLAP)
        set_stretch(load, 0);
    const struct sides s = sides_of(load);
    const double model_s = duties_s(load), gap_s = step_s * (1 - load->held) - model_s;
    const double woken = s.learning > s.acting ? s.woken : 0;
    load->handover_s = fmax(0, coupling == RM_COUPLING_ALTERNATE ? gap_s : fmin(gap_s, woken));
    load->gap = model_s > 0 ? (gap_s - load->handover_s) / model_s : 0;
    return gap_s;
}

double rm_load_station_s(const struct rm_load *load, enum rm_station station)
{
    double sum = phases_s(&load->acting, rm_station_phases(station, RM_ROLE_ACTOR)) +
                 phases_s(&load->evaluating, rm_station_phases(station, RM_ROLE_EVALUATOR));
    for (uint32_t p = 0; p < load->learners; p++)
        sum += phases_s(&load->learner[p], rm_station_phases(station, RM_ROLE_LEARNER));
    return sum;
}

double rm_load_busy(const struct rm_load *load)
{
    const struct sides s = sides_of(load);
    return (s.acting_cpu + s.learning_cpu + s.rest_cpu) / rm_load_step_s(load);
}

/* --- stations -------------------------------------------------------------------------------- */

static void lengthen(struct rm_work *work, uint32_t phases, double factor)
{
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        if (phases >> p & 1)
            work->phase_s[p] *= factor;
}

struct rm_load rm_load_longer(const struct rm_load *load, enum rm_station station, double factor)
{
    struct rm_load longer = *load;
    lengthen(&longer.acting, rm_station_phases(station, RM_ROLE_ACTOR), factor);
    lengthen(&longer.evaluating, rm_station_phases(station, RM_ROLE_EVALUATOR), factor);
    for (uint32_t p = 0; p < longer.learners; p++)
        lengthen(&longer.learner[p], rm_station_phases(station, RM_ROLE_LEARNER), factor);
    if (station == RM_STATION_DISK)
        longer.held *= factor;
    if (station == RM_STATION_HOST) {
        longer.other *= factor;
        set_stretch(&longer, factor);
    }
    return longer;
}

double rm_load_elasticity(const struct rm_load *load, enum rm_station station)
{
    const struct rm_load longer = rm_load_longer(load, station, 1.01);
    return (rm_load_step_s(&longer) / rm_load_step_s(load) - 1) / 0.01;
}

/* --- other settings -------------------------------------------------------------------------- */

static const struct rm_lever levers[] = {
    {"actor.count", false, false},
    {"actor.worlds", true, false},
    {"mode", true, false},
    {"evaluation.interval", false, false},
    {"checkpoint.interval_s", false, false},
    {"debug.check_finite", false, false},
    {"learner.compute", true, false},
    {"debug.lengthen", false, false},
    {"debug.lengthen_by", false, false},
    {"publish.interval", true, false},
    {"limiter.updates_per_step", true, false},
    {"sample.batch", true, false},
    {"algorithm.epochs", true, false},
    {"algorithm.minibatches", true, false},
    {"rollout.steps", true, false},
    {"rollout.max_policy_lag", true, false},
    /* Without effect on speed in this model; limiter.wake and limiter.poll_us only in a run that
     * does not poll. */
    {"ring.capacity", true, true},
    {"limiter.wake", false, true},
    {"limiter.poll_us", false, true},
    {"limiter.slack_updates", true, true},
    {"publish.min_change", true, true},
    {"metrics.interval_s", false, true},
    {"metrics.interval_steps", false, true},
    {"run.steps", false, true},
    {"seed", true, true},
    {NULL, false, false},
};

/* How much longer each item takes in pieces of `after` items than in pieces of `before`. */
static double per_item(double fixed_items, double before, double after)
{
    return (fixed_items / after + 1) / (fixed_items / before + 1);
}

static double ratio(double after, double before)
{
    return before > 0 ? after / before : 1;
}

/* Rows of the network's matrices, for a world. */
static double acting_rows(const struct rm_experiment *e)
{
    return e->algorithm.name == RM_ALGORITHM_IQN ? e->actor.quantiles : 1;
}

double rm_worlds_of_actor(const struct rm_experiment *e)
{
    return fmax(1, e->actor.worlds) / fmax(1, e->actor.count);
}

static void change_acting(struct rm_work *acting, const struct rm_experiment *from,
                          const struct rm_experiment *to)
{
    const double before = rm_worlds_of_actor(from), after = rm_worlds_of_actor(to);
    acting->phase_s[RM_PHASE_ENVIRONMENT] *= per_item(WORLD_ROWS, before, after);
    acting->phase_s[RM_PHASE_INFERENCE] *=
        per_item(INFERENCE_ROWS / acting_rows(from), before, after);
    acting->phase_s[RM_PHASE_RING] *= per_item(RING_ROWS, before, after);
    acting->phase_s[RM_PHASE_OTHER] *= before / after; /* once a turn */
}

/* Time of products beside that with float32. */
static double product_time(const struct rm_experiment *e, double bf16_speed)
{
    return e->learner.compute == RM_COMPUTE_BF16 && bf16_speed > 0
               ? RM_OF_CEILING / bf16_speed + ROUNDING
               : 1;
}

/* How much longer passes take with the other products. `share`: that products have of their
 * time. */
static double other_products(double share, double bf16_speed, const struct rm_experiment *from,
                             const struct rm_experiment *to)
{
    const double change = product_time(to, bf16_speed) / product_time(from, bf16_speed) - 1;
    return change == 0 ? 1 : 1 + share * change;
}

static double rollout_rows(const struct rm_experiment *e)
{
    return (double)e->rollout.steps * e->actor.worlds;
}

/* How often the learner wakes the actors, for each step: after a rollout, or in every update.
 * `measured`: updates for each step, for a run without a limiter or without actors. */
static double handovers(const struct rm_experiment *e, double measured)
{
    if (rm_algorithm_traits(e->algorithm.name)->rollout)
        return 1 / rollout_rows(e);
    return rm_experiment_is_offline(e) || runs_free(e) ? measured : e->limiter.updates_per_step;
}

/* For each step. */
static double updates(const struct rm_experiment *e, double measured)
{
    const double passes = (double)e->algorithm.epochs * e->algorithm.minibatches;
    return handovers(e, measured) * (rm_algorithm_traits(e->algorithm.name)->rollout ? passes : 1);
}

/* Rows of the network's matrices in an update. */
static double update_rows(const struct rm_experiment *e)
{
    const struct rm_algorithm_traits *traits = rm_algorithm_traits(e->algorithm.name);
    if (traits->rollout)
        return rollout_rows(e) / e->algorithm.minibatches;
    return (double)e->sample.batch * (e->algorithm.name == RM_ALGORITHM_IQN ? e->algorithm.quantiles
                                      : rm_learns_sequences(e)              ? e->sample.sequence
                                                                            : 1);
}

/* A batch's fixed part, in rows. */
static double sampling_rows(const struct rm_experiment *e)
{
    return SAMPLING_ROWS + (e->mode == RM_MODE_FREE && rm_fills_replay(e) ? WAKING_ROWS : 0);
}

static double checked(const struct rm_experiment *e)
{
    return 1 + (e->debug.check_finite == RM_CHECK_FINITE_ALWAYS ? CHECKED : 0);
}

/* Time of passes over other rows, `rows` times as many, in times of those before. If it grows
 * faster than the rows: their power that fits the quarter of rows that was measured. */
static double passes_of(double fixed, double rows)
{
    if (fixed < 0)
        return pow(rows, log((1 + 3 * fmax(fixed, FIXED_LEAST)) / 4) / log(0.25));
    return fmin(fixed, 1) + (1 - fmin(fixed, 1)) * rows;
}

static void change_learning(struct rm_work *w, const struct rm_load *before,
                            const struct rm_experiment *to)
{
    const struct rm_experiment *from = before->experiment;
    const double measured = before->updates_per_step;
    const bool rollout = rm_algorithm_traits(from->algorithm.name)->rollout;
    const double woken = ratio(handovers(to, measured), handovers(from, measured));
    const double more = ratio(updates(to, measured), updates(from, measured));
    const double wider = update_rows(to) / update_rows(from);
    const double known = isnan(before->update_fixed) ? 0 : before->update_fixed;
    const double fixed = update_rows(from) < FEW_ROWS ? fmin(known, FIXED_OF_FEW) : known;
    /* With rollouts, forward is the valuing of a rollout, once. */
    const uint32_t passes = 1u << RM_PHASE_BACKWARD | (rollout ? 0 : 1u << RM_PHASE_FORWARD);
    lengthen(w, passes, more * passes_of(fixed, wider));
    lengthen(w, 1u << RM_PHASE_FORWARD | 1u << RM_PHASE_BACKWARD, checked(to) / checked(from));
    lengthen(w, 1u << RM_PHASE_OPTIMIZER | 1u << RM_PHASE_OTHER, more);
    if (rollout) { /* which is copied once, and sampled in each epoch */
        w->phase_s[RM_PHASE_PUBLISH] *= woken;
        w->phase_s[RM_PHASE_SAMPLING] *=
            (1.0 + to->algorithm.epochs) / (1.0 + from->algorithm.epochs);
        return;
    }
    const double fixed_rows = sampling_rows(from);
    w->phase_s[RM_PHASE_SAMPLING] *=
        more * (fixed_rows + to->sample.batch) / (fixed_rows + from->sample.batch);
    w->phase_s[RM_PHASE_UPLOAD] *= more * wider;
    w->phase_s[RM_PHASE_PUBLISH] *= more * ratio(from->publish.interval, to->publish.interval);
}

const struct rm_lever *rm_lever_find(const char *key)
{
    const struct rm_lever *l = levers;
    while (l->key && strcmp(l->key, key) != 0)
        l++;
    return l->key ? l : NULL;
}

static void check_key(void *user, const char *path, const char *before, const char *after, bool hot)
{
    struct rm_error *error = user;
    (void)before;
    (void)after;
    (void)hot;
    if (!rm_lever_find(path) && !error->text[0])
        rm_fail(error, -ENOTSUP, "%s: explain has no model of a change of this key", path);
}

/* How long duties that wait sleep before they look again; 0: an event wakes them. */
static uint32_t poll_us(const struct rm_experiment *e)
{
    return e->limiter.wake == RM_WAKE_POLL ? e->limiter.poll_us : 0;
}

/* Work takes longer while other cores of the host are busy: they share caches, and often cores. */
static double contention(const struct rm_load *load)
{
    const double around = isnan(load->around) ? 0 : load->around;
    const double busy = fmin(load->cores, rm_load_busy(load) + around);
    return 1 + CONTENTION * fmax(0, busy - 1);
}

/* In one process the duties take each other's place in the caches, which costs about as much. */
static double contention_factor(const struct rm_load *after, const struct rm_load *before)
{
    return (after->experiment->mode == RM_MODE_SEQUENTIAL) ==
                   (before->experiment->mode == RM_MODE_SEQUENTIAL)
               ? contention(after) / contention(before)
               : 1;
}

static double handovers_of(const struct rm_load *load)
{
    return handovers(load->experiment, load->updates_per_step);
}

/* How often a process can be woken, for each step. */
static double wakes(const struct rm_load *load)
{
    const struct rm_experiment *e = load->experiment;
    if (e->mode == RM_MODE_SEQUENTIAL || !rm_actor_processes(e))
        return 0;
    return e->mode == RM_MODE_LOCKSTEP && !rm_algorithm_traits(e->algorithm.name)->rollout
               ? 1.0 / ((double)e->run.round_steps * e->actor.worlds)
               : handovers_of(load);
}

/* Seconds of a step in which a process with this work sleeps. While it waits for a core it does
 * not. */
static double asleep_s(const struct rm_load *load, double work_s)
{
    const struct rm_experiment *e = load->experiment;
    if (e->mode == RM_MODE_SEQUENTIAL || runs_free(e))
        return 0;
    const struct sides s = sides_of(load);
    return fmax(0, (rm_coupling_of(e) == RM_COUPLING_ALTERNATE
                        ? (s.acting + s.learning) * (1 + load->gap) + load->handover_s
                        : slower(s.acting, s.learning) * (1 + load->gap)) -
                       work_s);
}

/* 0 for a process without work. */
static double share_away(double away_s, double work_s)
{
    return away_s > 0 && work_s > 0 ? away_s / (away_s + work_s) : 0;
}

static double share_asleep(const struct rm_load *load, double work_s)
{
    return share_away(asleep_s(load, work_s), work_s);
}

/* What actors together work longer in a step because they were asleep. An actor that is woken more
 * often than it can step its worlds goes back to sleep. With `one` process the learners' turn over
 * a rollout is like a sleep. */
static double cold_s(const struct rm_load *load, bool one)
{
    const struct rm_experiment *e = load->experiment;
    const struct sides sides = sides_of(load);
    const double sleeps = fmin(one ? handovers_of(load) : wakes(load), 1.0 / e->actor.worlds);
    const double away = one ? sides.learning : asleep_s(load, sides.acting);
    return sleeps > 0
               ? rm_actor_processes(e) * sleeps * COLD_S * pow(away / sleeps / 1e-3, COLD_POWER)
               : 0;
}

/* How many times as long a learner works because it sleeps. In one process the work of other duties
 * is like a sleep. */
static double sleep_factor(const struct rm_load *load, uint32_t p)
{
    const struct rm_experiment *e = load->experiment;
    const double work_s = wall_s(&load->learner[p]);
    double away_s = asleep_s(load, work_s);
    if (e->mode == RM_MODE_SEQUENTIAL) {
        away_s = wall_s(&load->acting) - work_s;
        for (uint32_t i = 0; i < load->learners; i++)
            away_s += wall_s(&load->learner[i]);
    }
    const double away = share_away(away_s, work_s);
    if (away == 0)
        return 1;
    return 1 + (rm_algorithm_traits(e->algorithm.name)->rollout
                    ? SLEEPY * away / (away + SLEEPY_HALF)
                    : fmin(COLD_REPLAY_MOST, COLD_REPLAY * away_s / work_s));
}

/* From the work's time beside the busy cores and after the sleeps of `before` to that beside and
 * after those of `after`. How long duties sleep then depends on their work, and their work on how
 * long they sleep. */
static void slow_down(struct rm_load *after, const struct rm_load *before)
{
    struct rm_load warm = *after;
    const double crowded = contention_factor(after, before), before_s = rm_work_s(&before->acting);
    /* A change to or from sequential mode leaves that out, like the busy cores. */
    const bool one = before->experiment->mode == RM_MODE_SEQUENTIAL &&
                     after->experiment->mode == RM_MODE_SEQUENTIAL &&
                     rm_algorithm_traits(after->experiment->algorithm.name)->rollout;
    const double cold = before_s > 0 ? cold_s(before, one) / before_s : 0;
    lengthen(&warm.evaluating, UINT32_MAX, crowded);
    lengthen(&warm.acting, UINT32_MAX, fmax(1 / (1 + COLD_MOST), 1 - cold));
    const double warm_s = rm_work_s(&warm.acting);
    lengthen(&warm.acting, UINT32_MAX, crowded);
    for (uint32_t p = 0; p < warm.learners; p++)
        lengthen(&warm.learner[p], UINT32_MAX, crowded / sleep_factor(before, p));
    for (int round = 0; round < ROUNDS; round++) {
        const struct rm_load last = *after;
        *after = warm;
        if (warm_s > 0)
            lengthen(&after->acting, UINT32_MAX, 1 + fmin(COLD_MOST, cold_s(&last, one) / warm_s));
        for (uint32_t p = 0; p < after->learners; p++)
            lengthen(&after->learner[p], UINT32_MAX, sleep_factor(&last, p));
    }
}

static void add_seconds(struct rm_work *work, uint32_t phases, double seconds)
{
    const double all = phases_s(work, phases);
    if (all > 0)
        lengthen(work, phases, fmax(WAKE_LEAST, 1 + seconds / all));
}

/* What a learner's waking of actors takes for each step, and what actors' waking of learners takes,
 * in times of waking one. Only who sleeps is woken, and no learner more than once in a turn. */
static double actors_woken(const struct rm_load *load)
{
    const uint32_t actors = rm_actor_processes(load->experiment);
    return actors ? wakes(load) * (1 + (actors - 1) * WAKE_FURTHER) *
                        share_asleep(load, sides_of(load).acting)
                  : 0;
}

static double learners_woken(const struct rm_load *load)
{
    const struct rm_experiment *e = load->experiment;
    const double turns = (double)rm_actor_processes(e) / e->actor.worlds;
    double asleep = 0;
    if (e->learner.processes == RM_LEARNERS_ONE)
        asleep = share_asleep(load, sides_of(load).learning);
    else
        for (uint32_t p = 0; p < load->learners; p++)
            asleep += share_asleep(load, wall_s(&load->learner[p]));
    return fmin(turns, wakes(load)) * asleep;
}

/* Adds the time of waking others. `after` has that of `before`, for a learner `as_often` times and
 * for an actor in each turn. */
static void add_wakes(struct rm_load *after, const struct rm_load *before, double as_often)
{
    const double turn =
        rm_worlds_of_actor(before->experiment) / rm_worlds_of_actor(after->experiment);
    const double actors = actors_woken(after) - as_often * actors_woken(before);
    const double learners = learners_woken(after) - turn * learners_woken(before);
    for (uint32_t p = 0; p < after->learners; p++)
        add_seconds(&after->learner[p], RM_LEARNER_CALLS, WAKE_S * actors);
    add_seconds(&after->acting, 1u << RM_PHASE_OTHER, WAKE_S * learners);
}

int rm_load_change(struct rm_load *after, const struct rm_load *before,
                   const struct rm_experiment *to, struct rm_error *error)
{
    const struct rm_experiment *from = before->experiment;
    struct rm_error unknown = {""};
    rm_config_diff(from, to, check_key, &unknown);
    if (unknown.text[0])
        return rm_fail(error, -ENOTSUP, "%s", unknown.text);
    if (to->mode == RM_MODE_FREE && poll_us(to) != poll_us(from))
        return rm_fail(error, -ENOTSUP,
                       "limiter.wake, limiter.poll_us: explain has no model of polling");
    if (isnan(before->update_fixed) && update_rows(to) != update_rows(from))
        return rm_fail(error, -ENOTSUP,
                       "the counters do not show how much of an update depends on its rows");
    *after = *before;
    after->experiment = to;
    change_acting(&after->acting, from, to);
    for (uint32_t p = 0; p < after->learners; p++)
        change_learning(&after->learner[p], before, to);
    *after = rm_load_longer(after, from->debug.lengthen, 1 / (1 + from->debug.lengthen_by));
    *after = rm_load_longer(after, to->debug.lengthen, 1 + to->debug.lengthen_by);
    const double woken = ratio(handovers_of(after), handovers_of(before));
    after->looks_s *= woken;
    after->handover_s *= woken;
    if (to->evaluation.interval != from->evaluation.interval)
        lengthen(&after->evaluating, UINT32_MAX,
                 to->evaluation.interval
                     ? ratio((double)from->evaluation.interval, (double)to->evaluation.interval)
                     : 0);
    if (to->checkpoint.interval_s != from->checkpoint.interval_s)
        after->held = to->checkpoint.interval_s > 0
                          ? fmin(RM_HELD_MOST, before->held * ratio(from->checkpoint.interval_s,
                                                                    to->checkpoint.interval_s))
                          : 0;
    /* Gaps and hand-overs differ between modes, and aren't known. */
    if (rm_coupling_of(to) != rm_coupling_of(from) || to->mode != from->mode)
        after->gap = after->handover_s = 0;
    add_wakes(after, before, woken);
    const double speed = before->bf16_speed;
    const double passes = other_products(before->update_products, speed, from, to);
    const double acting = other_products(before->acting_products, speed, from, to);
    lengthen(&after->acting, 1u << RM_PHASE_INFERENCE, acting);
    for (uint32_t p = 0; p < after->learners; p++)
        lengthen(&after->learner[p], 1u << RM_PHASE_FORWARD | 1u << RM_PHASE_BACKWARD, passes);
    if (to->learner.compute != from->learner.compute &&
        (isnan(before->update_products) || isnan(before->acting_products) ||
         isnan(before->bf16_speed)))
        return rm_fail(error, -ENOTSUP,
                       "learner.compute: the counters do not show how long products take");
    slow_down(after, before);
    if (rm_algorithm_traits(to->algorithm.name)->rollout) {
        const double longer = (HANDOVER_FIXED_S + duties_s(after) / handovers_of(after)) /
                              (HANDOVER_FIXED_S + duties_s(before) / handovers_of(before));
        for (uint32_t p = 0; p < after->learners; p++)
            lengthen(&after->learner[p], 1u << RM_PHASE_PUBLISH, longer);
        if (rm_coupling_of(to) == RM_COUPLING_ALTERNATE)
            after->handover_s *= longer;
    }
    return 0;
}
