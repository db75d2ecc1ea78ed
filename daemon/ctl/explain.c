#include "daemon/ctl/explain.h"

#include "config/config.h"
#include "config/json_value.h"
#include "config/traits.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART       0.15 /* least difference of elasticities that tells two stations apart */
#define UNEXPLAINED 0.3  /* from here on the model does not know what limits the run */
#define YIELDS      0.25 /* of others' time, waited for a core: from here on they do not yield */
#define WORTH       1.03 /* least gain that is worth naming */
#define MISS        0.08 /* four of five predictions miss by less: the logarithm of a ratio */
#define FAR         8.0 /* up to this factor of a number; farther, misses grow with its logarithm */
#define TURN_MISS   0.075 /* of the logarithm of the factor of the worlds in an actor's turn */

/* --- duties ---------------------------------------------------------------------------------- */

/* The phases in which a duty calls the kernel, and wakes the other side. The woken process often
 * takes its waker's core, so that a duty without a core was first of all in these phases. */
static uint32_t calling_phases(const struct rm_experiment *e, enum rm_role role)
{
    if (role == RM_ROLE_LEARNER)
        return RM_LEARNER_CALLS;
    return rm_algorithm_traits(e->algorithm.name)->rollout ? 1u << RM_PHASE_OTHER : 0;
}

/* Adds `service` seconds of the duty's busy time. */
static void add_work(struct rm_work *work, const struct rm_run_duty *d, double service,
                     uint32_t calling, double steps)
{
    const double busy = rm_run_duty_busy_s(d), before = rm_work_s(work) * steps;
    double calls = 0;
    if (service <= 0)
        return;
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        calls += calling >> p & 1 ? d->phase[p] : 0;
    const double lost = fmin(busy - service, calls), kept = calls > 0 ? 1 - lost / calls : 1;
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        if (p != RM_PHASE_WAITING && p != RM_PHASE_CHECKPOINT)
            work->phase_s[p] +=
                d->phase[p] * (calling >> p & 1 ? kept : 1) * service / (busy - lost) / steps;
    work->woken_s += lost / steps;
    work->stretch = (before * work->stretch + busy - lost) / (before + service);
}

/* A process of one duty. Returns its processor time beside the duty's work: of going to sleep and
 * waking up. */
static double add_process(struct rm_work *work, const struct rm_run_duty *d, double threads,
                          double steps, uint32_t calling)
{
    const double busy = rm_run_duty_busy_s(d), before = rm_work_s(work) * work->cpu * steps;
    const double service = rm_service_s(busy, d->cpu, d->no_core, threads);
    const double working = fmin(d->cpu, service * threads);
    if (busy <= 0)
        return d->cpu;
    add_work(work, d, service, calling, steps);
    work->cpu = (before + working + d->world_cpu) / (rm_work_s(work) * steps);
    return d->cpu - working;
}

static struct rm_work *work_of(struct rm_explained *x, const struct rm_run_duty *d)
{
    struct rm_load *l = &x->load;
    if (d->role == RM_ROLE_ACTOR)
        return &l->acting;
    if (d->role == RM_ROLE_EVALUATOR)
        return &l->evaluating;
    if (d->role == RM_ROLE_LEARNER && l->learners < RM_BOARD_POLICIES)
        return &l->learner[l->learners++];
    return NULL;
}

/* Several duties in one process: they share its processor time in proportion to theirs. */
static void load_of_one_process(struct rm_explained *x, double steps)
{
    double busy = 0, cpu = 0, no_core = 0;
    for (uint32_t i = 0; i < x->duties; i++) {
        busy += rm_run_duty_busy_s(&x->duty[i]);
        cpu += x->duty[i].cpu;
        no_core += x->duty[i].no_core;
    }
    const double service = rm_service_s(busy, cpu, no_core, x->experiment->learner.threads);
    for (uint32_t i = 0; i < x->duties && busy > 0; i++) {
        struct rm_work *work = work_of(x, &x->duty[i]);
        if (!work)
            continue;
        add_work(work, &x->duty[i], rm_run_duty_busy_s(&x->duty[i]) * service / busy, 0, steps);
        work->cpu = cpu / service;
    }
}

/* The processor time of the work, for each step. */
static void set_cpu_s(struct rm_work *work, double cpu_s)
{
    if (rm_work_s(work) > 0)
        work->cpu = cpu_s / rm_work_s(work);
}

/* An actor that sleeps often looks for room twice at every sleep. That takes a core, but no time of
 * an actor that has no reason to sleep. */
static void set_looks_aside(struct rm_load *l, double turns, double sleeps)
{
    double *other = &l->acting.phase_s[RM_PHASE_OTHER];
    const double looks = turns > 0 ? *other * 2 * sleeps / (turns + 2 * sleeps) : 0;
    const double cpu_s = rm_work_s(&l->acting) * l->acting.cpu;
    *other -= looks;
    l->looks_s += fmin(looks, cpu_s);
    set_cpu_s(&l->acting, cpu_s - fmin(looks, cpu_s));
}

/* Python processes step worlds also while their actor sleeps. A step takes at least their time. */
static void set_world_processes(struct rm_load *l, double world_s)
{
    double *environment = &l->acting.phase_s[RM_PHASE_ENVIRONMENT];
    const double cpu_s = rm_work_s(&l->acting) * l->acting.cpu;
    const double workers =
        fmin(l->experiment->actor.python_workers, rm_worlds_of_actor(l->experiment));
    *environment = fmax(*environment, world_s / workers);
    set_cpu_s(&l->acting, cpu_s);
}

static void load_of_processes(struct rm_explained *x, double steps)
{
    const struct rm_experiment *e = x->experiment;
    double turns = 0, sleeps = 0, world_s = 0;
    for (uint32_t i = 0; i < x->duties; i++) {
        const struct rm_run_duty *d = &x->duty[i];
        struct rm_work *work = work_of(x, d);
        if (work)
            x->load.looks_s +=
                add_process(work, d, d->role == RM_ROLE_LEARNER ? e->learner.threads : 1, steps,
                            calling_phases(e, d->role)) /
                steps;
        if (d->role == RM_ROLE_ACTOR) {
            turns += d->turns;
            sleeps += d->sleeps;
            world_s += d->world_cpu / steps;
        }
    }
    set_world_processes(&x->load, world_s);
    set_looks_aside(&x->load, turns, sleeps);
}

/* Mean share of the time that duties of this role sleep; 0: there is none. */
static double asleep(const struct rm_explained *x, enum rm_role role)
{
    double sum = 0, count = 0;
    for (uint32_t i = 0; i < x->duties; i++)
        if (x->duty[i].role == role) {
            sum += x->duty[i].phase[RM_PHASE_WAITING] / x->duty[i].wall_s;
            count++;
        }
    return count > 0 ? sum / count : 0;
}

/* Time without a core, as far as it costs speed: that of a duty which sleeps most of the time costs
 * little, unless the other side waits for it. */
static double costly_delay_s(const struct rm_explained *x)
{
    const double actors = asleep(x, RM_ROLE_ACTOR), learners = asleep(x, RM_ROLE_LEARNER);
    double sum = 0;
    for (uint32_t i = 0; i < x->duties; i++) {
        const struct rm_run_duty *d = &x->duty[i];
        const double awaited = d->role == RM_ROLE_ACTOR     ? learners
                               : d->role == RM_ROLE_LEARNER ? actors
                                                            : 0;
        sum += d->no_core * fmax(1 - d->phase[RM_PHASE_WAITING] / d->wall_s, awaited);
    }
    return sum;
}

/* NAN stays NAN. */
static double products_share(double of_ceiling)
{
    return of_ceiling > RM_OF_CEILING ? 1 : of_ceiling / RM_OF_CEILING;
}

static void read_load(struct rm_explained *x, const struct rm_run_window *w)
{
    struct rm_load *l = &x->load;
    double cpu = 0, paused = 0, held = 0;
    *l = (struct rm_load){
        .experiment = x->experiment,
        .update_products = products_share(x->evidence.update_share),
        .acting_products = products_share(x->evidence.acting_share),
        .bf16_speed = x->evidence.bf16_speed,
        .update_fixed = x->evidence.update_fixed,
    };
    for (uint32_t i = 0; i < x->duties; i++) {
        const struct rm_run_duty *d = &x->duty[i];
        cpu += d->cpu + d->world_cpu;
        paused = fmax(paused, d->wait[RM_WAIT_PAUSE]);
        held = fmax(held, d->wait[RM_WAIT_CHECKPOINT] + d->phase[RM_PHASE_CHECKPOINT]);
    }
    cpu += rm_run_window_grown_of(w, "worker", "solo", "world_cpu_ns") / 1e9; /* has no duty */
    x->window_s = w->seconds - paused;
    x->steps = w->steps;
    x->steps_per_s = x->steps / x->window_s;
    x->updates = rm_run_window_updates(w);
    x->rollout_s = w->rollout_s;
    if (x->experiment->mode == RM_MODE_SEQUENTIAL)
        load_of_one_process(x, x->steps);
    else
        load_of_processes(x, x->steps);
    l->updates_per_step = x->updates / x->steps / fmax(1, l->learners);
    const double daemon_s = rm_run_window_grown(w, "daemon_cpu_s"),
                 host_s = rm_run_window_grown(w, "host_cpu_s");
    const double steal_s = rm_run_window_grown(w, "host_steal_s"),
                 cores = rm_run_window_value(w, w->last, "host_cores");
    l->cores = isfinite(cores) && cores > 0 ? cores : 1;
    l->daemon_s = isfinite(daemon_s) ? daemon_s / x->steps : 0;
    l->held = fmin(RM_HELD_MOST, held / x->window_s);
    l->around = NAN;
    if (isnan(host_s))
        return;
    double other = host_s - cpu - (isfinite(daemon_s) ? daemon_s : 0);
    other = fmax(0, other) + (isfinite(steal_s) ? steal_s : 0);
    l->around = fmin(other / x->window_s, l->cores * 15 / 16);
    /* What others take does not matter to a run that hardly ever waits for a core: they yield. */
    l->other = l->around * fmin(1, costly_delay_s(x) / (YIELDS * other + 1e-9));
}

/* Shares of the window, for people. */
static void finish_duty(struct rm_run_duty *d)
{
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        d->phase[p] /= d->wall_s;
    for (int i = 0; i < RM_WAIT_COUNT; i++)
        d->wait[i] /= d->wall_s;
    d->cpu /= d->wall_s;
    d->no_core = fmin(1, d->no_core / d->wall_s);
}

/* --- verdict --------------------------------------------------------------------------------- */

static void judge(struct rm_explained *x)
{
    x->first = x->second = RM_STATION_WORLD;
    /* Where duties overlap, only the host's counters show what others take. */
    const bool others_known =
        !isnan(x->load.around) || rm_coupling_of(x->experiment) != RM_COUPLING_OVERLAP;
    double most = -1, next = -1;
    for (int s = 0; s < RM_STATION_COUNT; s++) {
        const double e = x->elasticity[s] = s == RM_STATION_HOST && !others_known
                                                ? NAN
                                                : rm_load_elasticity(&x->load, (enum rm_station)s);
        if (e > most) {
            next = most;
            x->second = x->first;
            most = e;
            x->first = (enum rm_station)s;
        } else if (e > next) {
            next = e;
            x->second = (enum rm_station)s;
        }
    }
    x->known = x->unexplained < UNEXPLAINED;
    x->single = x->known && most - next >= APART;
    const struct rm_load alone = rm_load_longer(&x->load, RM_STATION_HOST, 0);
    x->alone_steps_per_s = others_known ? 1 / rm_load_step_s(&alone) : NAN;
}

/* The logarithm of the factor by which a number changes; 0: it is none, or without a factor. */
static double distance(const struct rm_experiment *from, const struct rm_experiment *to,
                       const char *key)
{
    json_t *before = rm_config_get(from, key, NULL), *after = rm_config_get(to, key, NULL);
    const double factor = json_number_value(after) / json_number_value(before);
    json_decref(before);
    json_decref(after);
    return factor > 0 && isfinite(factor) ? fabs(log(factor)) : 0;
}

int rm_explain_change(const struct rm_explained *x, const char *const *settings, size_t count,
                      struct rm_predicted *rate, struct rm_error *error)
{
    struct rm_experiment *to = malloc(sizeof *to);
    struct rm_load after;
    double miss = MISS;
    int rc = to ? 0 : rm_fail(error, -ENOMEM, "no memory for an experiment");
    if (to)
        *to = *x->experiment;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        char key[128];
        const char *equals = strchr(settings[i], '=');
        if (!equals || equals - settings[i] >= (ptrdiff_t)sizeof key) {
            rc = rm_fail(error, -EINVAL, "\"%.100s\": give KEY=VALUE", settings[i]);
            break;
        }
        snprintf(key, sizeof key, "%.*s", (int)(equals - settings[i]), settings[i]);
        json_t *given = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
        if (!given)
            given = json_string(equals + 1);
        rc = rm_config_set(to, key, given, error);
        json_decref(given);
        const struct rm_lever *lever = rc == 0 ? rm_lever_find(key) : NULL;
        if (lever && !lever->idle)
            miss = fmax(miss, MISS * distance(x->experiment, to, key) / log(FAR));
    }
    if (rc == 0)
        rc = rm_load_change(&after, &x->load, to, error);
    if (to && rc == 0) {
        const double steps_per_s = 1 / rm_load_step_s(&after);
        const double turn = log(rm_worlds_of_actor(to) / rm_worlds_of_actor(x->experiment));
        miss = fmax(miss, TURN_MISS * fabs(turn));
        *rate =
            (struct rm_predicted){steps_per_s, steps_per_s / exp(miss), steps_per_s * exp(miss)};
    }
    free(to);
    return rc;
}

static bool learns(const struct rm_explained *x, const char *key)
{
    if (!rm_config_reads(x->experiment, key))
        return false;
    const struct rm_lever *lever = rm_lever_find(key);
    return !lever || lever->learns;
}

static bool predict(const struct rm_explained *x, const char *key, const char *text,
                    struct rm_explained_change *change)
{
    char setting[128];
    const char *const settings[] = {setting};
    struct rm_error error = {""};
    snprintf(change->key, sizeof change->key, "%s", key);
    snprintf(change->value, sizeof change->value, "%s", text);
    snprintf(setting, sizeof setting, "%s=%s", key, text);
    change->learns = learns(x, key);
    return rm_explain_change(x, settings, 1, &change->rate, &error) == 0;
}

/* What to try: a number, times a factor. */
struct trial {
    const char *key;
    double factor;
};
static const struct trial moves[] = {
    {"actor.count", 2},           {"actor.count", 0.5},      {"evaluation.interval", 4},
    {"checkpoint.interval_s", 4}, {"publish.interval", 4},   {"limiter.updates_per_step", 0.5},
    {"sample.batch", 0.5},        {"algorithm.epochs", 0.5}, {"algorithm.minibatches", 0.5},
    {"actor.worlds", 2},
};
static const struct {
    const char *key, *value;
} choices[] = {{"mode", "free"}, {"rollout.max_policy_lag", "1"}, {"learner.compute", "bf16"}};
static const struct trial idles[] = {
    {"ring.capacity", 2}, {"publish.interval", 4}, {"limiter.poll_us", 0.1}};

static bool try_number(const struct rm_explained *x, const struct trial *trial,
                       struct rm_explained_change *change)
{
    struct rm_error error = {""};
    char text[32];
    json_t *now = rm_config_get(x->experiment, trial->key, &error);
    const double number = json_number_value(now) * trial->factor;
    const bool whole = json_is_integer(now);
    json_decref(now);
    if (number <= 0 || (whole && number < 1) || (whole && number != floor(number)))
        return false;
    snprintf(text, sizeof text, "%.10g", number);
    return predict(x, trial->key, text, change);
}

/* Settings that leave the learning as it is come first. */
static bool better(const struct rm_explained_change *a, const struct rm_explained_change *b)
{
    return a->learns != b->learns ? b->learns : a->rate.steps_per_s > b->rate.steps_per_s;
}

static void add_move(struct rm_explained *x, const struct rm_explained_change *change)
{
    if (change->rate.steps_per_s < WORTH * x->steps_per_s)
        return;
    uint32_t at = x->moves < RM_EXPLAINED_CHANGES ? x->moves++ : RM_EXPLAINED_CHANGES;
    for (; at > 0 && better(change, &x->move[at - 1]); at--)
        if (at < RM_EXPLAINED_CHANGES)
            x->move[at] = x->move[at - 1];
    if (at < RM_EXPLAINED_CHANGES)
        x->move[at] = *change;
}

static void advise(struct rm_explained *x)
{
    struct rm_explained_change change = {.key = ""};
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
        if (rm_config_reads(x->experiment, moves[i].key) && try_number(x, &moves[i], &change))
            add_move(x, &change);
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (predict(x, choices[i].key, choices[i].value, &change))
            add_move(x, &change);
    for (size_t i = 0; i < sizeof idles / sizeof idles[0]; i++)
        if (try_number(x, &idles[i], &change) &&
            fabs(change.rate.steps_per_s / x->steps_per_s - 1) < WORTH - 1)
            x->idle[x->idles++] = change;
}

/* --------------------------------------------------------------------------------------------- */

int rm_explain_rows(struct rm_explained *x, struct rm_experiment *experiment, const char *csv,
                    const json_t *now, struct rm_error *error)
{
    struct rm_run_window w;
    memset(x, 0, sizeof *x);
    x->experiment = experiment;
    const int rc = rm_run_window_open(&w, csv, now, error);
    if (!rc) {
        rm_run_window_apply_settings(&w, experiment);
        x->duties = rm_run_window_duties(&w, x->duty);
        rm_evidence_read(&x->evidence, &w, experiment, x->duty, x->duties);
        read_load(x, &w);
        x->unexplained = fabs(rm_load_fit(&x->load, 1 / x->steps_per_s)) * x->steps_per_s;
        for (uint32_t i = 0; i < x->duties; i++)
            finish_duty(&x->duty[i]);
        judge(x);
        advise(x);
    }
    rm_run_window_free(&w);
    return rc;
}

int rm_explain_run(struct rm_explained *x, const char *directory, const json_t *now,
                   struct rm_error *error)
{
    char path[4096];
    struct rm_experiment *e = calloc(1, sizeof *e);
    memset(x, 0, sizeof *x);
    if (!e)
        return rm_fail(error, -ENOMEM, "no memory for an experiment");
    snprintf(path, sizeof path, "%s/config.json", directory);
    int rc = rm_config_load(e, path, NULL, 0, error);
    if (rc) {
        free(e);
        return rc;
    }
    snprintf(path, sizeof path, "%s/metrics.csv", directory);
    char *csv = rm_run_window_read(path, error);
    if (!csv) {
        free(e);
        return -ENOENT;
    }
    rc = rm_explain_rows(x, e, csv, now, error);
    free(csv);
    return rc;
}

void rm_explained_free(struct rm_explained *x)
{
    free(x->experiment);
    x->experiment = NULL;
}

/* --- as JSON --------------------------------------------------------------------------------- */

static json_t *changes_json(const struct rm_explained_change *changes, uint32_t count,
                            double steps_per_s)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(all, json_pack("{s:s,s:s,s:b,s:f,s:f,s:f,s:f}", "key", changes[i].key,
                                             "value", changes[i].value, "changes_learning",
                                             changes[i].learns, "steps_per_s",
                                             changes[i].rate.steps_per_s, "low",
                                             changes[i].rate.low, "high", changes[i].rate.high,
                                             "ratio", changes[i].rate.steps_per_s / steps_per_s));
    return all;
}

static json_t *duty_json(const struct rm_run_duty *d)
{
    json_t *phases = json_object(), *waits = json_object();
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        json_object_set_new(phases, rm_phase_name((enum rm_phase)p), json_real(d->phase[p]));
    for (int i = 0; i < RM_WAIT_COUNT; i++)
        json_object_set_new(waits, rm_wait_name((enum rm_wait)i), json_real(d->wait[i]));
    return json_pack("{s:s,s:f,s:f,s:f,s:o,s:o}", "name", d->name, "booked_s", d->wall_s, "cpu",
                     d->cpu, "no_core", d->no_core, "phases", phases, "waits", waits);
}

const char *rm_explained_station(enum rm_station station)
{
    static const char *const words[RM_STATION_COUNT] = {
        [RM_STATION_WORLD] = "stepping worlds",
        [RM_STATION_ACTING] = "acting",
        [RM_STATION_SAMPLING] = "sampling batches",
        [RM_STATION_UPDATE] = "the update",
        [RM_STATION_PUBLISHING] = "publishing weights",
        [RM_STATION_DISK] = "waiting for checkpoints",
        [RM_STATION_EVALUATION] = "the evaluator",
        [RM_STATION_HOST] = "the load of other processes",
    };
    return words[station];
}

void rm_explained_verdict(const struct rm_explained *x, char *text, size_t size)
{
    const char *first = rm_explained_station(x->first);
    if (!x->known)
        snprintf(text, size, "no verdict: the model leaves %.0f %% of a step unexplained",
                 100 * x->unexplained);
    else if (x->single)
        snprintf(text, size, "%s limits the run%s", first,
                 x->first == RM_STATION_UPDATE && x->evidence.memory_bound
                     ? ", by the bandwidth of memory"
                     : "");
    else
        snprintf(text, size, "no single limit: %s and %s", first, rm_explained_station(x->second));
}

bool rm_explain_sentence(const char *directory, char *text, size_t size)
{
    struct rm_explained *x = calloc(1, sizeof *x);
    struct rm_error error = {""};
    const bool explained = x && rm_explain_run(x, directory, NULL, &error) == 0;
    text[0] = '\0';
    if (explained)
        rm_explained_verdict(x, text, size);
    if (explained && x->known && x->moves) {
        const struct rm_explained_change *best = &x->move[0];
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "; %s=%s %+.0f %%%s", best->key, best->value,
                 100 * (best->rate.steps_per_s / x->steps_per_s - 1),
                 best->learns ? " (other learning)" : "");
    }
    if (x)
        rm_explained_free(x);
    free(x);
    return explained;
}

json_t *rm_explained_json(const struct rm_explained *x)
{
    json_t *stations = json_object(), *work = json_object(), *duties = json_array();
    for (int s = 0; s < RM_STATION_COUNT; s++) {
        const char *name = rm_station_name((enum rm_station)s);
        json_object_set_new(stations, name, rm_json_finite(x->elasticity[s]));
        json_object_set_new(work, name, json_real(rm_load_station_s(&x->load, (enum rm_station)s)));
    }
    for (uint32_t i = 0; i < x->duties; i++)
        json_array_append_new(duties, duty_json(&x->duty[i]));
    json_t *all = json_object();
    json_object_set_new(all, "name", json_string(x->experiment->name));
    json_object_set_new(all, "limit",
                        json_string(!x->known   ? "unknown"
                                    : x->single ? rm_station_name(x->first)
                                                : "several"));
    json_object_set_new(all, "largest",
                        json_pack("[s,s]", rm_station_name(x->first), rm_station_name(x->second)));
    json_object_set_new(all, "window_s", json_real(x->window_s));
    /* How many whole rollouts it is; 0: it also has parts of some. */
    json_object_set_new(all, "rollouts",
                        rm_algorithm_traits(x->experiment->algorithm.name)->rollout
                            ? json_real(x->rollout_s > 0 ? x->window_s / x->rollout_s : 0)
                            : json_null());
    json_object_set_new(all, "steps", json_real(x->steps));
    json_object_set_new(all, "updates", json_real(x->updates));
    json_object_set_new(all, "steps_per_s", json_real(x->steps_per_s));
    json_object_set_new(all, "unexplained", json_real(x->unexplained));
    json_object_set_new(all, "cores", json_real(x->load.cores));
    json_object_set_new(all, "cores_busy", json_real(rm_load_busy(&x->load)));
    json_object_set_new(all, "cores_other", rm_json_finite(x->load.around));
    json_object_set_new(all, "cores_lost",
                        rm_json_finite(isnan(x->load.around) ? NAN : x->load.other));
    json_object_set_new(all, "steps_per_s_alone", rm_json_finite(x->alone_steps_per_s));
    json_object_set_new(all, "evidence", rm_evidence_json(&x->evidence));
    json_object_set_new(all, "elasticity", stations);
    json_object_set_new(all, "work_s", work);
    json_object_set_new(all, "duties", duties);
    json_object_set_new(all, "moves", changes_json(x->move, x->moves, x->steps_per_s));
    json_object_set_new(all, "idles", changes_json(x->idle, x->idles, x->steps_per_s));
    return all;
}
