/* explain against a run of a simulated clock: duties share cores fairly, the limiter is the real
 * one, and the rows of metrics are those that a run of such duties would have. What explain
 * predicts from one simulation is compared with the simulation of the changed settings. */
#include "daemon/ctl/explain.h"

#include "config/config.h"
#include "config/traits.h"
#include "learner/backend/backend.h"
#include "shm/base/rng.h"
#include "shm/limiter.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TICK_S      50e-6
#define RUN_S       4.0
#define ROW_S       0.1
#define CHANGED_ROW 30
#define DUTIES      8
#define OTHERS      4 /* more processes, of others */
#define TURN_S_OF   3 /* parts of a turn */

/* What work costs, in seconds. */
struct costs {
    double world;                    /* a step of a world */
    double acting, acting_row;       /* a forward pass, and each row of it */
    double sampling;                 /* a row of a batch */
    double update, update_row, step; /* forward and backward, each row, the optimizer */
    double publish;
    double waking; /* from a signal until the duty that slept goes on */
    uint32_t cores, learners, others;
};

struct duty {
    char name[24];
    bool actor, busy;
    double part[TURN_S_OF], left, waking, turn_wall_s, slept_s;
    double phase_s[TURN_S_OF], wait_s, cpu_s, delay_s, share;
};

static const enum rm_phase actor_parts[] = {RM_PHASE_ENVIRONMENT, RM_PHASE_INFERENCE,
                                            RM_PHASE_OTHER};
static const enum rm_phase learner_parts[] = {RM_PHASE_SAMPLING, RM_PHASE_BACKWARD,
                                              RM_PHASE_OPTIMIZER};

struct simulation {
    const struct rm_experiment *e;
    struct costs costs;
    struct duty duty[DUTIES];
    uint32_t duties, actors;
    struct rm_limiter limiter[DUTIES];
    double others_share[OTHERS], others_s, now_s;
    double steps, updates[DUTIES];
    uint32_t turns_left, updates_left; /* rollouts: of the actors, of the learner */
    struct rm_rng rng;
};

static void costs_of(struct simulation *s, struct duty *d)
{
    const struct costs *c = &s->costs;
    const struct rm_experiment *e = s->e;
    const double worlds = (double)e->actor.worlds / e->actor.count;
    const bool rollout = rm_algorithm_traits(e->algorithm.name)->rollout;
    const double rows = rollout
                            ? (double)e->rollout.steps * e->actor.worlds / e->algorithm.minibatches
                            : e->sample.batch;
    if (d->actor) {
        d->part[0] = c->world * worlds;
        d->part[1] = c->acting + c->acting_row * worlds;
        d->part[2] = 0;
        return;
    }
    d->part[0] = rollout ? 0 : c->sampling * (16 + rows);
    d->part[1] = c->update + c->update_row * rows;
    d->part[2] = c->step + c->publish / e->publish.interval;
}

static void lengthen(const struct rm_experiment *e, struct duty *d)
{
    const enum rm_phase *phase = d->actor ? actor_parts : learner_parts;
    const uint32_t longer = rm_station_phases((enum rm_station)e->debug.lengthen,
                                              d->actor ? RM_ROLE_ACTOR : RM_ROLE_LEARNER);
    for (int i = 0; i < TURN_S_OF; i++)
        if (longer >> phase[i] & 1)
            d->part[i] *= 1 + e->debug.lengthen_by;
}

static void begin(struct simulation *s, const struct rm_experiment *e, const struct costs *costs)
{
    memset(s, 0, sizeof *s);
    s->e = e;
    s->costs = *costs;
    s->actors = e->actor.count;
    s->rng = rm_rng_at(e->seed, RM_STREAM_WORLD, 7, 7);
    for (uint32_t i = 0; i < e->actor.count + costs->learners; i++) {
        struct duty *d = &s->duty[s->duties++];
        d->actor = i < e->actor.count;
        if (d->actor)
            snprintf(d->name, sizeof d->name, "actor-%u", i);
        else
            snprintf(d->name, sizeof d->name, "learner-p%u", i - e->actor.count);
        costs_of(s, d);
        lengthen(e, d);
    }
    for (uint32_t p = 0; p < costs->learners; p++)
        rm_limiter_init(&s->limiter[p], e->limiter.updates_per_step * e->sample.batch,
                        -e->limiter.slack_updates * e->sample.batch,
                        e->limiter.slack_updates * e->sample.batch, e->sample.batch);
    s->turns_left = e->rollout.steps * e->actor.count;
}

/* May this duty take its next turn? */
static bool may_begin(const struct simulation *s, const struct duty *d)
{
    const struct rm_experiment *e = s->e;
    if (rm_coupling_of(e) == RM_COUPLING_ALTERNATE)
        return d->actor ? s->turns_left > 0 : s->updates_left > 0;
    if (!d->actor)
        return !rm_limiter_needed(&s->limiter[d - s->duty - s->actors], e->sample.batch);
    for (uint32_t p = 0; p < s->costs.learners; p++)
        if (!rm_limiter_may_insert(&s->limiter[p], e->actor.worlds / e->actor.count))
            return false;
    return true;
}

static double turn_s(const struct duty *d)
{
    return d->part[0] + d->part[1] + d->part[2];
}

static void end_turn(struct simulation *s, struct duty *d)
{
    const struct rm_experiment *e = s->e;
    const uint32_t worlds = e->actor.worlds / e->actor.count;
    const double work = turn_s(d);
    for (int i = 0; i < TURN_S_OF; i++)
        d->phase_s[i] += d->turn_wall_s * d->part[i] / work;
    d->busy = false;
    if (d->actor) {
        s->steps += worlds;
        for (uint32_t p = 0; p < s->costs.learners; p++)
            rm_limiter_inserted(&s->limiter[p], worlds);
        if (s->turns_left > 0 && --s->turns_left == 0)
            s->updates_left = e->algorithm.epochs * e->algorithm.minibatches;
        return;
    }
    const ptrdiff_t p = d - s->duty - s->actors;
    s->updates[p]++;
    rm_limiter_sampled(&s->limiter[p], e->sample.batch);
    if (s->updates_left > 0 && --s->updates_left == 0)
        s->turns_left = e->rollout.steps * e->actor.count;
}

/* One process has all duties: an idle one is not asked for while another has work. */
static bool one_at_a_time(const struct simulation *s)
{
    return rm_coupling_of(s->e) == RM_COUPLING_TURNS;
}

/* What a turn takes longer on a core that has become cold. */
static double cold(const struct simulation *s, const struct duty *d, double work)
{
    const double asleep = d->wait_s / fmax(TICK_S, s->now_s);
    return d->actor ? fmin(2 * work, 33e-6 * pow(d->slept_s / 1e-3, 0.8))
                    : work * 0.4 * asleep / (asleep + 0.4);
}

static void tick(struct simulation *s)
{
    double least = INFINITY;
    bool ran[DUTIES] = {false}, others_ran[OTHERS] = {false}, any = false;
    for (uint32_t i = 0; i < s->duties; i++)
        any |= s->duty[i].busy;
    for (uint32_t i = 0; i < s->duties; i++) {
        struct duty *d = &s->duty[i];
        if (!d->busy && !(any && one_at_a_time(s)))
            d->waking = may_begin(s, d) ? d->waking - TICK_S : s->costs.waking;
        if (!d->busy && d->waking < 0 && !(any && one_at_a_time(s))) {
            d->busy = any = true;
            const double work = turn_s(d);
            d->left = work * (0.6 + 0.8 * rm_rng_double(&s->rng)) + cold(s, d, work);
            d->turn_wall_s = d->slept_s = 0;
        }
        if (d->busy && d->share < least)
            least = d->share;
    }
    /* Fair: the cores go to those that had them least. */
    for (uint32_t core = 0; core < s->costs.cores; core++) {
        int duty = -1, other = -1;
        for (uint32_t i = 0; i < s->duties; i++)
            if (s->duty[i].busy && !ran[i] && (duty < 0 || s->duty[i].share < s->duty[duty].share))
                duty = (int)i;
        for (uint32_t i = 0; i < s->costs.others; i++)
            if (!others_ran[i] && (other < 0 || s->others_share[i] < s->others_share[other]))
                other = (int)i;
        if (other >= 0 && (duty < 0 || s->others_share[other] <= s->duty[duty].share)) {
            others_ran[other] = true;
            s->others_share[other] += TICK_S;
            s->others_s += TICK_S;
        } else if (duty >= 0) {
            ran[duty] = true;
            s->duty[duty].share += TICK_S;
            s->duty[duty].cpu_s += TICK_S;
            s->duty[duty].left -= TICK_S;
        }
    }
    for (uint32_t i = 0; i < s->duties; i++) {
        struct duty *d = &s->duty[i];
        if (!d->busy) {
            d->wait_s += one_at_a_time(s) ? 0 : TICK_S;
            d->slept_s += one_at_a_time(s) ? 0 : TICK_S;
            if (isfinite(least) && d->share < least) /* who slept has no claim to the past */
                d->share = least;
            continue;
        }
        d->turn_wall_s += TICK_S;
        d->delay_s += ran[i] ? 0 : TICK_S;
        if (d->left <= 0)
            end_turn(s, d);
    }
    for (uint32_t i = 0; i < s->costs.others; i++)
        if (isfinite(least) && s->others_share[i] < least)
            s->others_share[i] = least;
    s->now_s += TICK_S;
}

/* Of the passes of an update. */
static double fixed_of(const struct simulation *s)
{
    const struct duty *learner = &s->duty[s->actors];
    return s->costs.update / learner->part[1];
}

static void write_names(FILE *out, const struct simulation *s)
{
    fprintf(out, "time_s,steps,host_cores,host_cpu_s,host_steal_s,daemon_cpu_s,"
                 "setting.limiter.updates_per_step");
    for (uint32_t p = 0; p < s->costs.learners; p++)
        fprintf(out, ",policy.p%u.updates,policy.p%u.update_fixed", p, p);
    for (uint32_t i = 0; i < s->duties; i++) {
        const struct duty *d = &s->duty[i];
        fprintf(out, ",worker.%s.turns,worker.%s.cpu_ns,worker.%s.run_delay_ns", d->name, d->name,
                d->name);
        for (int k = 0; k < TURN_S_OF; k++)
            fprintf(out, ",worker.%s.phase_%s_ns", d->name,
                    rm_phase_name(d->actor ? actor_parts[k] : learner_parts[k]));
        fprintf(out, ",worker.%s.phase_waiting_ns,worker.%s.wait_limiter_ns", d->name, d->name);
    }
    fputc('\n', out);
}

static void write_row(FILE *out, const struct simulation *s)
{
    double cpu_s = s->others_s;
    for (uint32_t i = 0; i < s->duties; i++)
        cpu_s += s->duty[i].cpu_s;
    fprintf(out, "%.9g,%.0f,%u,%.9g,0,0,%.9g", s->now_s, s->steps, s->costs.cores, cpu_s,
            s->e->limiter.updates_per_step);
    for (uint32_t p = 0; p < s->costs.learners; p++)
        fprintf(out, ",%.0f,%.9g", s->updates[p], fixed_of(s));
    for (uint32_t i = 0; i < s->duties; i++) {
        const struct duty *d = &s->duty[i];
        fprintf(out, ",0,%.0f,%.0f", d->cpu_s * 1e9, d->delay_s * 1e9);
        for (int k = 0; k < TURN_S_OF; k++)
            fprintf(out, ",%.0f", d->phase_s[k] * 1e9);
        fprintf(out, ",%.0f,%.0f", d->wait_s * 1e9, d->wait_s * 1e9);
    }
    fputc('\n', out);
}

/* Simulates a run, which has a setting changed half-way if `changed_ratio` is not 0; returns its
 * metrics.csv, which the caller frees. */
static char *simulate(const struct rm_experiment *e, const struct costs *costs,
                      double changed_ratio)
{
    static struct simulation s;
    static struct rm_experiment changed;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    begin(&s, e, costs);
    write_names(out, &s);
    for (int row = 1; row <= (int)(RUN_S / ROW_S); row++) {
        if (changed_ratio > 0 && row == CHANGED_ROW) {
            changed = *e;
            changed.limiter.updates_per_step = changed_ratio;
            s.e = &changed;
            for (uint32_t p = 0; p < costs->learners; p++)
                rm_limiter_change(&s.limiter[p], changed_ratio * e->sample.batch,
                                  e->limiter.slack_updates * e->sample.batch);
        }
        while (s.now_s < row * ROW_S)
            tick(&s);
        write_row(out, &s);
    }
    fclose(out);
    return text;
}

static struct rm_experiment *experiment_of(const char *text)
{
    struct rm_experiment *e = calloc(1, sizeof *e);
    struct rm_error error = {""};
    assert_non_null(e);
    if (rm_config_parse(e, "test", text, strlen(text), NULL, 0, &error))
        fail_msg("%s", error.text);
    return e;
}

static void explained(struct rm_explained *x, struct rm_experiment *e, const struct costs *costs)
{
    struct rm_error error = {""};
    char *csv = simulate(e, costs, 0);
    if (rm_explain_rows(x, e, csv, NULL, &error))
        fail_msg("%s", error.text);
    free(csv);
}

/* The same without the column of the host's time. */
static void unmeasured(struct rm_explained *x, struct rm_experiment *e, const struct costs *costs)
{
    struct rm_error error = {""};
    char *csv = simulate(e, costs, 0), *column = strstr(csv, "host_cpu_s");
    assert_non_null(column);
    column[0] = 'H'; /* no such metric */
    if (rm_explain_rows(x, e, csv, NULL, &error))
        fail_msg("%s", error.text);
    free(csv);
}

/* The rate with a setting, by a simulation of it. */
static double simulated_rate(const struct rm_experiment *e, const struct costs *costs)
{
    static struct rm_explained x;
    struct rm_experiment *own = malloc(sizeof *own);
    assert_non_null(own);
    *own = *e;
    explained(&x, own, costs);
    const double rate = x.steps_per_s;
    rm_explained_free(&x);
    return rate;
}

#define DQN(more)                                                                                  \
    "{\"world\": {\"name\": \"cartpole\"}, \"algorithm\": {\"name\": \"dqn\"}, " more "}"
#define PPO(more)                                                                                  \
    "{\"world\": {\"name\": \"cartpole\"}, \"algorithm\": {\"name\": \"ppo\", \"epochs\": 4, "     \
    "\"minibatches\": 4}, \"rollout\": {\"steps\": 16}, " more "}"

static const struct costs learner_bound = {.world = 20e-6,
                                           .acting = 150e-6,
                                           .acting_row = 25e-6,
                                           .sampling = 5e-6,
                                           .update = 600e-6,
                                           .update_row = 25e-6,
                                           .step = 200e-6,
                                           .publish = 50e-6,
                                           .cores = 2,
                                           .learners = 1};

static void predicts(const char *text, const struct costs *costs, const char *setting)
{
    static struct rm_explained x;
    const char *const settings[] = {setting};
    struct rm_error error = {""};
    struct rm_predicted predicted;
    explained(&x, experiment_of(text), costs);
    assert_true(x.known);
    if (rm_explain_change(&x, settings, 1, &predicted, &error))
        fail_msg("%s", error.text);
    struct rm_experiment *changed = malloc(sizeof *changed);
    assert_non_null(changed);
    *changed = *x.experiment;
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(setting, "="), setting);
    json_t *value = json_loads(strchr(setting, '=') + 1, JSON_DECODE_ANY, NULL);
    if (!value)
        value = json_string(strchr(setting, '=') + 1);
    assert_int_equal(rm_config_set(changed, key, value, &error), 0);
    json_decref(value);
    const double measured = simulated_rate(changed, costs);
    if (fabs(log(predicted.steps_per_s / measured)) > log(1.15))
        fail_msg("%s: from %.0f steps/s %.0f are predicted, %.0f are simulated", setting,
                 x.steps_per_s, predicted.steps_per_s, measured);
    free(changed);
    rm_explained_free(&x);
}

static void changes_of_a_replay_run_are_predicted(void **state)
{
    static const char text[] =
        DQN("\"actor\": {\"worlds\": 8}, \"limiter\": {\"updates_per_step\": "
            "0.5, \"slack_updates\": 16}");
    (void)state;
    predicts(text, &learner_bound, "limiter.updates_per_step=0.125");
    predicts(text, &learner_bound, "limiter.updates_per_step=0.005"); /* then acting limits it */
    predicts(text, &learner_bound, "sample.batch=16");
    predicts(text, &learner_bound, "ring.capacity=100000");
    struct costs fixed = learner_bound; /* updates whose time hardly depends on the batch */
    fixed.update *= 10;
    predicts(text, &fixed, "sample.batch=8");
    predicts(text, &fixed, "sample.batch=256");
}

/* A step of a run from a recording is an update, whatever the limiter's settings. */
static void a_run_from_a_recording_has_no_limiter(void **state)
{
    static const char text[] = DQN("\"sample\": {\"from\": \"recording\", \"batch\": 10}");
    static const char csv[] =
        "time_s,steps,host_cores,policy.p.updates,policy.p.update_fixed,worker.learner-p.turns,"
        "worker.learner-p.cpu_ns,worker.learner-p.run_delay_ns,worker.learner-p.phase_sampling_ns,"
        "worker.learner-p.phase_backward_ns,worker.learner-p.phase_optimizer_ns\n"
        "4,400,2,400,0.2,400,0,0,0,0,0\n5,500,2,500,0.2,500,1e9,0,1e8,8e8,1e8\n";
    static const char *const limiter[] = {"limiter.updates_per_step=0.125"}, *const batch[] = {
                                                                                 "sample.batch=5"};
    static struct rm_explained x;
    struct rm_error error = {""};
    struct rm_predicted rate;
    (void)state;
    if (rm_explain_rows(&x, experiment_of(text), csv, NULL, &error))
        fail_msg("%s", error.text);
    assert_int_equal(rm_explain_change(&x, limiter, 1, &rate, &error), 0);
    assert_true(fabs(rate.steps_per_s / x.steps_per_s - 1) < 1e-9);
    assert_int_equal(rm_explain_change(&x, batch, 1, &rate, &error), 0);
    assert_true(rate.steps_per_s > 1.3 * x.steps_per_s);
    assert_int_equal(x.moves, 1);
    assert_string_equal(x.move[0].key, "sample.batch");
    rm_explained_free(&x);
}

/* What was set while the run went on counts, not the configuration, and only the time since. */
static void a_setting_changed_in_the_run_counts(void **state)
{
    static const char text[] =
        DQN("\"actor\": {\"worlds\": 8}, \"limiter\": {\"updates_per_step\": "
            "0.5, \"slack_updates\": 16}");
    static const char *const same[] = {"limiter.updates_per_step=0.25"},
                             *const twice[] = {"limiter.updates_per_step=0.5"};
    static struct rm_explained x;
    struct rm_error error = {""};
    struct rm_predicted rate;
    (void)state;
    struct rm_experiment *e = experiment_of(text);
    const double before = simulated_rate(e, &learner_bound);
    char *csv = simulate(e, &learner_bound, 0.25);
    if (rm_explain_rows(&x, e, csv, NULL, &error))
        fail_msg("%s", error.text);
    free(csv);
    assert_true(x.experiment->limiter.updates_per_step == 0.25);
    assert_true(x.window_s <= RUN_S - CHANGED_ROW * ROW_S + TICK_S);
    assert_true(fabs(log(x.steps_per_s / (2 * before))) < log(1.15));
    assert_int_equal(rm_explain_change(&x, same, 1, &rate, &error), 0);
    assert_true(fabs(log(rate.steps_per_s / x.steps_per_s)) < 1e-9);
    assert_int_equal(rm_explain_change(&x, twice, 1, &rate, &error), 0);
    assert_true(fabs(log(rate.steps_per_s / before)) < log(1.15));
    rm_explained_free(&x);
}

static void changes_of_an_oversubscribed_run_are_predicted(void **state)
{
    static const char text[] =
        DQN("\"actor\": {\"worlds\": 8}, \"limiter\": {\"updates_per_step\": "
            "0.5, \"slack_updates\": 16}");
    struct costs five = learner_bound;
    (void)state;
    five.learners = 5;
    predicts(text, &five, "limiter.updates_per_step=0.125");
    predicts(text, &five, "sample.batch=128");
}

static void changes_of_rollouts_are_predicted(void **state)
{
    static const char text[] = PPO("\"actor\": {\"worlds\": 16}");
    (void)state;
    predicts(text, &learner_bound, "algorithm.epochs=8");
    predicts(text, &learner_bound, "algorithm.epochs=1");
    predicts(text, &learner_bound, "algorithm.minibatches=1");
    predicts(text, &learner_bound, "actor.count=2");
}

/* Rollouts of a second, two tenths of it acting: where in a rollout the rows end does not change
 * the rate, unless they are too few, which shows. Processes that step worlds do not count as
 * others. */
static void a_window_has_whole_rollouts(void **state)
{
    (void)state;
    for (int rows = 15; rows < 60; rows++) {
        static struct rm_explained x;
        struct rm_error error = {""};
        char *csv = NULL;
        size_t bytes = 0;
        FILE *out = open_memstream(&csv, &bytes);
        assert_non_null(out);
        fprintf(out, "time_s,steps,host_cores,host_cpu_s,daemon_cpu_s,policy.p.updates,"
                     "policy.p.rollouts,worker.learner-p.turns,worker.learner-p.cpu_ns,"
                     "worker.learner-p.phase_backward_ns,worker.learner-p.run_delay_ns,"
                     "worker.actor-0.turns,worker.actor-0.phase_environment_ns,"
                     "worker.actor-0.world_cpu_ns\n");
        for (int row = 0; row < rows; row++) {
            const int rollout = row / 10, tenth = row % 10, acted = tenth < 2 ? tenth : 2;
            const int acting = rollout * 2 + acted, learning = rollout * 8 + tenth - acted;
            fprintf(out, "%.1f,%d,2,%.1f,0,%d,%d,%d,%de8,%de8,0,%d,%de8,%de8\n", row / 10.0,
                    acting * 50, (acting + learning) / 10.0, learning, rollout + 1, learning,
                    learning, learning, acting, acting, acting);
        }
        fclose(out);
        if (rm_explain_rows(&x, experiment_of(PPO("\"actor\": {\"worlds\": 16}")), csv, NULL,
                            &error))
            fail_msg("%d rows: %s", rows, error.text);
        if (rows >= 45 || x.rollout_s > 0) {
            assert_true(fabs(x.steps_per_s - 100) < 1e-6);
            assert_true(fabs(x.rollout_s - 1) < 1e-6);
        }
        assert_true(x.load.around < 1e-6);
        rm_explained_free(&x);
        free(csv);
    }
}

/* Delays by others are part of an update; waking the other side is part of a rollout. */
static void changes_of_delayed_rollouts_are_predicted(void **state)
{
    static const char text[] = PPO("\"actor\": {\"worlds\": 16}");
    struct costs costs = learner_bound;
    (void)state;
    costs.waking = 3e-3;
    predicts(text, &costs, "algorithm.epochs=1");
    predicts(text, &costs, "algorithm.epochs=8");
    costs.others = 2;
    predicts(text, &costs, "algorithm.epochs=1");
    predicts(text, &costs, "algorithm.minibatches=8");
}

/* The station whose work, made longer by a tenth, costs most. */
static enum rm_station true_limit(const struct rm_experiment *e, const struct costs *costs)
{
    static struct rm_experiment longer;
    double most = 0;
    enum rm_station limit = RM_STATION_COUNT;
    const double before = simulated_rate(e, costs);
    longer = *e;
    longer.debug.lengthen_by = 0.1;
    for (longer.debug.lengthen = 0; longer.debug.lengthen < RM_STATION_WORK;
         longer.debug.lengthen++) {
        const double cost = before / simulated_rate(&longer, costs) - 1;
        if (cost > most) {
            most = cost;
            limit = (enum rm_station)longer.debug.lengthen;
        }
    }
    return limit;
}

static void judged(const char *text, const struct costs *costs, enum rm_station limit)
{
    static struct rm_explained x;
    explained(&x, experiment_of(text), costs);
    assert_int_equal(true_limit(x.experiment, costs), limit);
    if (!x.single || x.first != limit)
        fail_msg("%s limits the run, explain says %s%s", rm_station_name(limit),
                 rm_station_name(x.first), x.single ? "" : " and another");
    rm_explained_free(&x);
}

/* Without a limiter the learner only takes cores from the actors. */
static void a_learner_that_runs_free_holds_nobody(void **state)
{
    static const char text[] =
        DQN("\"actor\": {\"worlds\": 8}, \"limiter\": {\"updates_per_step\": 0}");
    static const char limited[] =
        DQN("\"actor\": {\"worlds\": 8}, \"limiter\": {\"updates_per_step\": "
            "0.5, \"slack_updates\": 16}");
    struct costs c = learner_bound;
    (void)state;
    predicts(limited, &c, "limiter.updates_per_step=0");
    predicts(text, &c, "limiter.updates_per_step=0.5");
    predicts(text, &c, "sample.batch=16");
    predicts(text, &c, "actor.count=2"); /* three duties for two cores */
    c.cores = 4;
    predicts(text, &c, "actor.count=2");
    judged(text, &c, RM_STATION_ACTING);
}

static void the_limit_is_the_station_whose_lengthening_costs_most(void **state)
{
    struct costs c = learner_bound;
    (void)state;
    judged(DQN("\"limiter\": {\"updates_per_step\": 0.5, \"slack_updates\": 16}"), &c,
           RM_STATION_UPDATE);
    judged(DQN("\"actor\": {\"worlds\": 1}, \"limiter\": {\"updates_per_step\": 0.01, "
               "\"slack_updates\": 16}"),
           &c, RM_STATION_ACTING);
    c.world = 1e-3;
    judged(DQN("\"limiter\": {\"updates_per_step\": 0.01, \"slack_updates\": 16}"), &c,
           RM_STATION_WORLD);
    c = learner_bound;
    c.sampling = 100e-6;
    judged(DQN("\"limiter\": {\"updates_per_step\": 0.5, \"slack_updates\": 16}"), &c,
           RM_STATION_SAMPLING);
}

static void a_longer_station_is_predicted(void **state)
{
    static const char replay[] =
        DQN("\"limiter\": {\"updates_per_step\": 0.5, \"slack_updates\": 16}, "
            "\"debug\": {\"lengthen\": \"sampling\"}");
    static const char rollouts[] = PPO("\"debug\": {\"lengthen\": \"acting\"}");
    struct costs c = learner_bound;
    (void)state;
    predicts(rollouts, &c, "debug.lengthen_by=0.5");
    c.sampling = 100e-6;
    predicts(replay, &c, "debug.lengthen_by=1");
    predicts(replay, &c, "debug.lengthen_by=4");
}

/* What a row of metrics has to have of products, memory and the limiter. */
static void counters_become_evidence(void **state)
{
    static const char text[] =
        DQN("\"limiter\": {\"updates_per_step\": 0.5, \"slack_updates\": 16}, "
            "\"learner\": {\"threads\": 2}, \"sample\": {\"batch\": 10}");
    static const char csv[] =
        "time_s,steps,host_cores,policy.p.updates,policy.p.update_flops,policy.p.core_flops,"
        "policy.p.core_flops_bf16,policy.p.copy_bytes,policy.p.parameters,policy.p.inserted,"
        "policy.p.sampled,policy.p.samples_per_insert,policy.p.limiter_min,policy.p.limiter_max,"
        "worker.learner-p.turns,worker.learner-p.cpu_ns,worker.learner-p.run_delay_ns,"
        "worker.learner-p.phase_forward_ns,worker.learner-p.phase_backward_ns,"
        "worker.learner-p.phase_optimizer_ns,worker.actor-0.turns,worker.actor-0.cpu_ns,"
        "worker.actor-0.run_delay_ns,worker.actor-0.phase_inference_ns,"
        "worker.actor-0.acting_flops\n"
        "4,800,2,400,2e8,5e10,1e11,4e9,1e7,800,4000,5,-160,160,1,0,0,0,0,0,1,0,0,0,0\n"
        "5,1000,2,500,2e8,5e10,1e11,4e9,1e7,1020,5000,5,-160,160,2,2e9,0,1e8,1e8,8e8,2,5e8,5e8,1e9,"
        "5e9\n";
    static struct rm_explained x;
    struct rm_error error = {""};
    char said[RM_EVIDENCE_MAX];
    (void)state;
    if (rm_explain_rows(&x, experiment_of(text), csv, NULL, &error))
        fail_msg("%s", error.text);
    /* 100 updates of 0.2 GFLOP in 0.2 s are all that two cores of 50 GFLOP/s can do. */
    assert_true(fabs(x.evidence.update_flops / 1e11 - 1) < 1e-9);
    assert_true(fabs(x.evidence.update_share - 1) < 1e-9);
    /* The actor had a core for half of its time. */
    assert_true(fabs(x.evidence.acting_flops / 1e10 - 1) < 1e-9);
    assert_true(fabs(x.evidence.acting_share - 0.2) < 1e-9);
    assert_true(fabs(x.evidence.optimizer_bytes / 3.5e10 - 1) < 1e-9);
    assert_true(x.evidence.memory_bound);
    /* In the first row no update is due, in the second (1020 * 5 - 5000) / 10 are. */
    assert_true(fabs(x.evidence.due - 5) < 1e-9);
    assert_true(fabs(x.evidence.due_min + 16) < 1e-9 && fabs(x.evidence.due_max - 16) < 1e-9);
    rm_evidence_text(&x.evidence, x.experiment, said, sizeof said);
    assert_non_null(strstr(said, "updates reach 100 (100 % of 2 cores), acting 10 (20 %)"));
    /* Products are all of the passes, and those a fifth of the update. */
    static const char *const bf16[] = {"learner.compute=bf16"};
    struct rm_predicted rate;
    assert_int_equal(rm_explain_change(&x, bf16, 1, &rate, &error), 0);
    assert_true(rate.steps_per_s > 1.08 * x.steps_per_s);
    x.load.bf16_speed = 0.5; /* a processor whose instruction is slow */
    assert_int_equal(rm_explain_change(&x, bf16, 1, &rate, &error), 0);
    assert_true(rate.steps_per_s < x.steps_per_s);
    x.load.bf16_speed = 0; /* one without it */
    assert_int_equal(rm_explain_change(&x, bf16, 1, &rate, &error), 0);
    assert_true(fabs(rate.steps_per_s / x.steps_per_s - 1) < 1e-9);
    rm_explained_free(&x);
}

/* A Python process steps its worlds also while the actor sleeps. */
static void a_step_takes_the_time_of_world_processes(void **state)
{
    static const char csv[] =
        "time_s,steps,host_cores,policy.p.updates,policy.p.update_fixed,worker.learner-p.turns,"
        "worker.learner-p.cpu_ns,worker.learner-p.run_delay_ns,worker.learner-p.phase_backward_ns,"
        "worker.actor-0.turns,worker.actor-0.cpu_ns,worker.actor-0.world_cpu_ns,"
        "worker.actor-0.run_delay_ns,worker.actor-0.phase_environment_ns,"
        "worker.actor-0.phase_waiting_ns\n"
        "4,800,2,400,0.1,1,0,0,0,1,0,0,0,0,0\n"
        "5,1000,2,500,0.1,2,1e9,0,1e9,2,1e8,6e8,0,1e8,9e8\n";
    static struct rm_explained x;
    struct rm_error error = {""};
    struct rm_predicted rate;
    (void)state;
    if (rm_explain_rows(&x,
                        experiment_of(DQN("\"actor\": {\"python_workers\": 2}, \"limiter\": "
                                          "{\"updates_per_step\": 0.5}")),
                        csv, NULL, &error))
        fail_msg("%s", error.text);
    /* 200 steps, for which two processes work 0.6 s. */
    assert_true(fabs(rm_load_station_s(&x.load, RM_STATION_WORLD) / 1.5e-3 - 1) < 1e-9);
    /* So a run almost without updates makes no more than 667 steps a second. */
    static const char *const few[] = {"limiter.updates_per_step=0.001"};
    assert_int_equal(rm_explain_change(&x, few, 1, &rate, &error), 0);
    assert_true(rate.steps_per_s > 500 && rate.steps_per_s < 800);
    rm_explained_free(&x);
}

/* Times of a run of config/cartpole-dqn.json, for a step. */
static struct rm_load load_of_dqn(const struct rm_experiment *e)
{
    struct rm_load load = {.experiment = e,
                           .cores = 2,
                           .updates_per_step = 0.5,
                           .acting = {.cpu = 1, .stretch = 1},
                           .learners = 1,
                           .learner = {{.cpu = 1, .stretch = 1}}};
    double *acting = load.acting.phase_s, *learning = load.learner[0].phase_s;
    acting[RM_PHASE_ENVIRONMENT] = 0.6e-6;
    acting[RM_PHASE_INFERENCE] = 1.9e-6;
    acting[RM_PHASE_OTHER] = 2.2e-6;
    learning[RM_PHASE_SAMPLING] = 19.2e-6;
    learning[RM_PHASE_FORWARD] = 21.2e-6;
    learning[RM_PHASE_BACKWARD] = 33.6e-6;
    learning[RM_PHASE_OPTIMIZER] = 7.9e-6;
    learning[RM_PHASE_PUBLISH] = 2.8e-6;
    learning[RM_PHASE_OTHER] = 0.9e-6;
    return load;
}

#define DQN_IN(mode, limiter)                                                                      \
    DQN("\"mode\": \"" mode "\", \"actor\": {\"worlds\": 8}, \"limiter\": "                        \
        "{\"updates_per_step\": " limiter "}")

/* One process wakes no other one: that run was 1.19 times as fast in sequential mode. */
static void one_process_wakes_no_other(void **state)
{
    struct rm_experiment *free_running = experiment_of(DQN_IN("free", "0.5")),
                         *one = experiment_of(DQN_IN("sequential", "0.5")),
                         *fewer = experiment_of(DQN_IN("sequential", "0.25"));
    struct rm_load load = load_of_dqn(free_running), sequential, back;
    struct rm_error error = {""};
    (void)state;
    (void)rm_load_fit(&load, 85.6e-6); /* no gap */
    assert_int_equal(rm_load_change(&sequential, &load, one, &error), 0);
    assert_true(fabs(log(rm_load_step_s(&load) / rm_load_step_s(&sequential) / 1.19)) < 0.05);
    assert_int_equal(rm_load_change(&back, &sequential, free_running, &error), 0);
    assert_true(fabs(log(rm_load_step_s(&back) / rm_load_step_s(&load))) < 0.02);
    /* Two changes at once are like one after the other. */
    assert_int_equal(rm_load_change(&back, &sequential, fewer, &error), 0);
    assert_int_equal(rm_load_change(&sequential, &load, fewer, &error), 0);
    assert_true(fabs(log(rm_load_step_s(&back) / rm_load_step_s(&sequential))) < 0.02);
    free(free_running);
    free(one);
    free(fewer);
}

/* A quarter of 16 rows takes as long as 16 rows; four times the rows do not. */
static void a_few_rows_do_not_show_the_fixed_part(void **state)
{
    struct rm_experiment *few = experiment_of(DQN_IN("sequential", "0.5")),
                         *many = experiment_of(DQN_IN("sequential", "0.5"));
    struct rm_load load = load_of_dqn(few), after;
    struct rm_error error = {""};
    (void)state;
    few->sample.batch = 16;
    many->sample.batch = 64;
    load.update_fixed = 1;
    (void)rm_load_fit(&load, 90.3e-6);
    assert_int_equal(rm_load_change(&after, &load, many, &error), 0);
    const double longer =
        after.learner[0].phase_s[RM_PHASE_BACKWARD] / load.learner[0].phase_s[RM_PHASE_BACKWARD];
    assert_true(longer > 2.9 && longer < 3.1);
    free(few);
    free(many);
}

/* After shorter rollouts the memory of a publication is more likely still in a cache, and that of
 * acting, too. */
static void caches_are_colder_after_longer_rollouts(void **state)
{
    struct rm_experiment *from = experiment_of(PPO("\"mode\": \"sequential\"")),
                         *to = experiment_of(PPO("\"mode\": \"sequential\""));
    struct rm_load load = load_of_dqn(from), after;
    struct rm_error error = {""};
    (void)state;
    from->algorithm.epochs = 8;
    to->algorithm.epochs = 1;
    (void)rm_load_fit(&load, 90.3e-6);
    assert_int_equal(rm_load_change(&after, &load, to, &error), 0);
    const double publishing =
        after.learner[0].phase_s[RM_PHASE_PUBLISH] / load.learner[0].phase_s[RM_PHASE_PUBLISH];
    assert_true(publishing > 0.2 && publishing < 0.9);
    assert_true(rm_work_s(&after.acting) < 0.99 * rm_work_s(&load.acting));
    free(from);
    free(to);
}

/* In every mode, and without work of one side. */
static void a_change_of_nothing_changes_nothing(void **state)
{
    static const char *const texts[] = {
        DQN_IN("free", "0.5"), DQN_IN("lockstep", "0.5"), DQN_IN("sequential", "0.5"),
        DQN_IN("free", "0"),   PPO("\"mode\": \"free\""), PPO("\"mode\": \"sequential\"")};
    struct rm_error error = {""};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (int idle = 0; idle < 3; idle++) {
            struct rm_experiment *from = experiment_of(texts[i]), *to = experiment_of(texts[i]);
            struct rm_load load = load_of_dqn(from), after;
            to->seed++;
            if (idle == 1)
                memset(load.acting.phase_s, 0, sizeof load.acting.phase_s);
            if (idle == 2)
                memset(load.learner[0].phase_s, 0, sizeof load.learner[0].phase_s);
            (void)rm_load_fit(&load, 100e-6);
            assert_int_equal(rm_load_change(&after, &load, to, &error), 0);
            /* Without a limiter only actors take time. */
            const double step_s = rm_load_step_s(&load);
            assert_true(step_s == 0 || fabs(rm_load_step_s(&after) / step_s - 1) < 1e-9);
            free(from);
            free(to);
        }
}

/* The interval is as wide for all changes of up to eight times, and wider for others. */
static void a_prediction_has_an_interval(void **state)
{
    static const char text[] =
        DQN("\"limiter\": {\"updates_per_step\": 0.5, \"slack_updates\": 16}");
    static const char *const near[] = {"limiter.updates_per_step=0.0625", "mode=sequential"},
                             *const far[] = {"limiter.updates_per_step=0.0078125"},
                             *const idle[] = {"seed=1000000"};
    static struct rm_explained x;
    struct rm_error error = {""};
    struct rm_predicted rate, farther;
    (void)state;
    explained(&x, experiment_of(text), &learner_bound);
    assert_int_equal(rm_explain_change(&x, near, 2, &rate, &error), 0);
    assert_int_equal(rm_explain_change(&x, far, 1, &farther, &error), 0);
    const double width = log(rate.high / rate.steps_per_s);
    assert_true(width > 0 && fabs(log(rate.steps_per_s / rate.low) - width) < 1e-9);
    assert_true(fabs(log(farther.high / farther.steps_per_s) - 2 * width) < 1e-9);
    assert_int_equal(rm_explain_change(&x, idle, 1, &rate, &error), 0);
    assert_true(fabs(log(rate.high / rate.steps_per_s) - width) < 1e-9);
    rm_explained_free(&x);
}

/* One run does not show which part of an actor's turn is fixed. */
static void an_interval_grows_with_the_worlds_of_a_turn(void **state)
{
    static const char text[] =
        DQN("\"actor\": {\"worlds\": 8}, \"limiter\": {\"updates_per_step\": "
            "0.5, \"slack_updates\": 64}");
    static const struct {
        const char *setting[2];
        double factor; /* 0: as wide as that of other keys */
    } changes[] = {{{"actor.worlds=16"}, 0}, {{"actor.count=2"}, 0},
                   {{"actor.worlds=2"}, 4},  {{"actor.worlds=1"}, 8},
                   {{"actor.count=8"}, 8},   {{"actor.worlds=128"}, 16},
                   {{"sample.batch=8"}, 0},  {{"actor.worlds=32", "actor.count=4"}, 0}};
    static struct rm_explained x;
    struct rm_error error = {""};
    struct rm_predicted rate;
    (void)state;
    explained(&x, experiment_of(text), &learner_bound);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const double width = changes[i].factor > 0 ? 0.075 * log(changes[i].factor) : 0.08;
        if (rm_explain_change(&x, changes[i].setting, changes[i].setting[1] ? 2 : 1, &rate, &error))
            fail_msg("%s", error.text);
        if (fabs(log(rate.high / rate.steps_per_s) - width) > 1e-9 ||
            fabs(log(rate.steps_per_s / rate.low) - width) > 1e-9)
            fail_msg("%s: %.3f to %.3f, not %.3f to both sides", changes[i].setting[0],
                     log(rate.low / rate.steps_per_s), log(rate.high / rate.steps_per_s), width);
    }
    rm_explained_free(&x);
}

static void polling_is_nothing_only_while_the_run_does_not_poll(void **state)
{
    static const char event[] = PPO("\"limiter\": {\"wake\": \"event\", \"poll_us\": 1000}");
    static const char poll[] = PPO("\"limiter\": {\"wake\": \"poll\", \"poll_us\": 1000}");
    static const struct {
        const char *text, *setting[2];
        int rc; /* 0: predicted to do nothing, 1: predicted; -ENOTSUP: polling has no model */
    } cases[] = {
        {event, {"limiter.poll_us=100"}, 0},
        {event, {"limiter.wake=event"}, 0},
        {event, {"limiter.wake=poll"}, -ENOTSUP},
        {event, {"limiter.poll_us=100", "limiter.wake=poll"}, -ENOTSUP},
        {poll, {"limiter.poll_us=100"}, -ENOTSUP},
        {poll, {"limiter.wake=event"}, -ENOTSUP},
        {poll, {"limiter.poll_us=1000"}, 0},
        {poll, {"ring.capacity=100000"}, 0},
        {poll, {"limiter.wake=event", "mode=sequential"}, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct rm_explained x;
        struct rm_error error = {""};
        struct rm_predicted rate = {0};
        const size_t count = cases[i].setting[1] ? 2 : 1;
        explained(&x, experiment_of(cases[i].text), &learner_bound);
        const int rc = rm_explain_change(&x, cases[i].setting, count, &rate, &error);
        if (rc != (cases[i].rc == 1 ? 0 : cases[i].rc) ||
            (rc && !strstr(error.text, "no model of polling")) ||
            (!cases[i].rc && fabs(rate.steps_per_s / x.steps_per_s - 1) > 1e-9))
            fail_msg("case %zu, %s: %d, %s", i, cases[i].setting[0], rc, error.text);
        bool named = false; /* among the settings that do nothing */
        for (uint32_t k = 0; k < x.idles; k++)
            named |= strcmp(x.idle[k].key, "limiter.poll_us") == 0;
        assert_int_equal(named, cases[i].text == event);
        rm_explained_free(&x);
    }
}

/* A run that may use only some of the host's cores has no counters of others' time. */
static void load_that_nobody_measured_is_not_known(void **state)
{
    static const char replay[] =
        DQN("\"limiter\": {\"updates_per_step\": 0.5, \"slack_updates\": 16}");
    static const char rollouts[] = PPO("\"actor\": {\"worlds\": 16}");
    static const char *const batch[] = {"sample.batch=16"};
    static const char *const keys[] = {"cores_other", "cores_lost", "steps_per_s_alone"};
    static struct rm_explained x, measured;
    struct rm_error error = {""};
    struct rm_predicted rate, same;
    (void)state;
    explained(&measured, experiment_of(replay), &learner_bound);
    unmeasured(&x, experiment_of(replay), &learner_bound);
    assert_true(isnan(x.load.around) && x.load.other == 0);
    assert_true(isnan(x.elasticity[RM_STATION_HOST]) && isnan(x.alone_steps_per_s));
    assert_int_equal(x.first, measured.first);
    assert_true(x.single);
    json_t *all = rm_explained_json(&x);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_true(json_is_null(json_object_get(all, keys[i])));
    assert_true(json_is_null(json_object_get(json_object_get(all, "elasticity"), "host")));
    json_decref(all);
    assert_int_equal(rm_explain_change(&x, batch, 1, &rate, &error), 0);
    assert_int_equal(rm_explain_change(&measured, batch, 1, &same, &error), 0);
    assert_true(fabs(rate.steps_per_s / same.steps_per_s - 1) < 0.01);
    rm_explained_free(&x);
    rm_explained_free(&measured);
    /* Where both sides take turns, the run delay shows what others took. */
    struct costs loaded = learner_bound;
    loaded.others = 4;
    unmeasured(&x, experiment_of(rollouts), &loaded);
    assert_true(isnan(x.load.around));
    assert_true(x.elasticity[RM_STATION_HOST] > 0.1);
    assert_true(x.alone_steps_per_s > 1.1 * x.steps_per_s);
    rm_explained_free(&x);
}

static void load_from_outside_is_named(void **state)
{
    static const char text[] =
        DQN("\"limiter\": {\"updates_per_step\": 0.5, \"slack_updates\": 16}");
    static struct rm_explained x;
    struct costs loaded = learner_bound;
    (void)state;
    loaded.others = 4;
    explained(&x, experiment_of(text), &loaded);
    assert_true(x.known);
    assert_int_equal(x.first, RM_STATION_HOST);
    assert_true(x.single);
    const double alone = simulated_rate(x.experiment, &learner_bound);
    assert_true(fabs(log(x.alone_steps_per_s / alone)) < log(1.15));
    rm_explained_free(&x);
}

static void what_it_does_not_know_is_refused(void **state)
{
    static const char text[] =
        DQN("\"limiter\": {\"updates_per_step\": 0.5, \"slack_updates\": 16}");
    static const char *const unknown[] = {"learner.threads=2"}, *const wrong[] = {"sample.batch=x"},
                             *const batch[] = {"sample.batch=16"},
                             *const smaller[][1] = {{"sample.batch=16"}, {"sample.batch=4"}};
    static struct rm_explained x;
    struct rm_error error = {""};
    struct rm_predicted rate;
    (void)state;
    explained(&x, experiment_of(text), &learner_bound);
    assert_int_equal(rm_explain_change(&x, unknown, 1, &rate, &error), -ENOTSUP);
    assert_non_null(strstr(error.text, "learner.threads"));
    double last = x.steps_per_s;
    x.load.update_fixed = -0.2; /* passes that grow faster than their rows never take no time */
    for (size_t i = 0; i < sizeof smaller / sizeof smaller[0]; i++, last = rate.steps_per_s) {
        assert_int_equal(rm_explain_change(&x, smaller[i], 1, &rate, &error), 0);
        assert_true(isfinite(rate.steps_per_s) && rate.steps_per_s > last);
    }
    x.load.update_fixed = NAN; /* a device, or a run of older counters */
    assert_int_equal(rm_explain_change(&x, batch, 1, &rate, &error), -ENOTSUP);
    assert_non_null(strstr(error.text, "how much of an update depends on its rows"));
    assert_int_equal(rm_explain_change(&x, wrong, 1, &rate, &error), -EINVAL);
    rm_explained_free(&x);
    assert_int_equal(rm_explain_rows(&x, experiment_of(text), "time_s,steps\n1,2\n", NULL, &error),
                     -EAGAIN);
    rm_explained_free(&x);
    static const char *const empty[] = {"",
                                        "\n",
                                        "time_s,steps\n",
                                        "time_s,steps\n1,2",
                                        ",,\n1,2,3\n",
                                        "time_s,steps\n1,2,3\n\n4\n"};
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        assert_true(rm_explain_rows(&x, experiment_of(text), empty[i], NULL, &error) < 0);
        rm_explained_free(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_of_a_replay_run_are_predicted),
        cmocka_unit_test(a_learner_that_runs_free_holds_nobody),
        cmocka_unit_test(a_run_from_a_recording_has_no_limiter),
        cmocka_unit_test(a_setting_changed_in_the_run_counts),
        cmocka_unit_test(changes_of_an_oversubscribed_run_are_predicted),
        cmocka_unit_test(changes_of_rollouts_are_predicted),
        cmocka_unit_test(a_window_has_whole_rollouts),
        cmocka_unit_test(changes_of_delayed_rollouts_are_predicted),
        cmocka_unit_test(the_limit_is_the_station_whose_lengthening_costs_most),
        cmocka_unit_test(a_longer_station_is_predicted),
        cmocka_unit_test(counters_become_evidence),
        cmocka_unit_test(a_step_takes_the_time_of_world_processes),
        cmocka_unit_test(one_process_wakes_no_other),
        cmocka_unit_test(a_few_rows_do_not_show_the_fixed_part),
        cmocka_unit_test(caches_are_colder_after_longer_rollouts),
        cmocka_unit_test(a_change_of_nothing_changes_nothing),
        cmocka_unit_test(a_prediction_has_an_interval),
        cmocka_unit_test(an_interval_grows_with_the_worlds_of_a_turn),
        cmocka_unit_test(polling_is_nothing_only_while_the_run_does_not_poll),
        cmocka_unit_test(load_that_nobody_measured_is_not_known),
        cmocka_unit_test(load_from_outside_is_named),
        cmocka_unit_test(what_it_does_not_know_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
