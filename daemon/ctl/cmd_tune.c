/* tune: `ringctl run FILE --tune` makes short runs of the experiment with other values of the keys
 * that change its speed but not its learning. The search is successive halving. The first
 * candidates are the settings that the model of `explain` predicts to be fast. In a turn every
 * candidate runs once, and so do the file's own settings; every second turn has the reverse order.
 * The first round has one turn. The faster half enters the next round, which has twice as many; the
 * last one, of two candidates, goes on until the time is over. A candidate is judged by the
 * geometric mean of its ratios to the file's settings in all its turns. Where rollouts take long,
 * trials have shorter ones, with fewer minibatches of the same size. */
#include "daemon/ctl/command.h"

#include "config/config.h"
#include "config/traits.h"
#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/explain.h"
#include "daemon/ctl/interrupt.h"
#include "daemon/ctl/start_run.h"
#include "daemon/ctl/trial.h"
#include "daemon/format.h"
#include "daemon/table.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KNOBS_MAX      5
#define VALUES_MAX     12
#define CANDIDATES_MAX 4096
#define SECONDS        120.0
#define SECONDS_MIN    4.0
#define SECONDS_MAX    86400.0
#define TRIAL_S        2.0 /* shortest worthwhile trial, starting included */
#define TRIALS_MIN     8   /* with little time trials are even shorter, with long rollouts longer */
#define SHORTER        8   /* times; for rollouts of which a run has less than two */
#define GAIN           1.03 /* least gain for which the file's settings are left */
#define ROLLOUTS_TIMES 5    /* a trial is as long as so many rollouts: it has two whole ones then */
#define TRIALS         120  /* about the most; with more time trials are longer */
#define FIRST_TURNS    1
#define LAST_TURNS     4
#define TURNS_MIN      2   /* of those that are compared at the end, in both orders */
#define FINALISTS      2   /* of the last round, beside the file's settings */
#define UNKNOWN        1.1 /* ratio by which a setting without a model is placed: it may gain */

/* What may be tried of a key; the file's own value is the first. */
struct knob {
    const char *key;
    size_t count;
    char value[VALUES_MAX][RM_TEXT_MAX];
};

struct candidate {
    size_t value[KNOBS_MAX]; /* 0: the file's */
    double predicted;        /* rate over that of the file's settings; what has no model counts 1 */
    double hoped;            /* the same for its place: what has no model may be a gain */
    double rate;             /* of its last trial */
    double log_rate, gain, gain_2; /* sums over its turns; gain: log(rate / that of the file's
                                      settings), and its square */
    unsigned turns, round;         /* without failures; the last round that it took part in */
    bool failed;
};

struct tuning {
    const struct rm_ctl_arguments *given;
    const struct rm_experiment *experiment;
    struct rm_trials runs;
    char output[PATH_MAX];
    struct knob knob[KNOBS_MAX];
    size_t knobs, count, field; /* candidates; of them still in the race, the first ones */
    struct candidate *candidate;
    unsigned trials;
    uint64_t steps, minibatches; /* of a trial's rollouts; 0: there are none */
    double seconds;              /* for all */
    double race_s, run_s;        /* left when the race began; of a trial */
    uint64_t began_ns;
};

/* --- what to try ------------------------------------------------------------------------------ */

static struct knob *add_knob(struct tuning *t, const char *key)
{
    struct knob *knob = &t->knob[t->knobs++];
    json_t *own = rm_config_get(t->experiment, key, NULL);
    char *text = json_dumps(own, JSON_ENCODE_ANY);
    *knob = (struct knob){.key = key, .count = 1};
    snprintf(knob->value[0], sizeof knob->value[0], "%s", text ? text : "null");
    free(text);
    json_decref(own);
    return knob;
}

static void add_value(struct knob *knob, const char *value)
{
    for (size_t i = 0; i < knob->count; i++)
        if (!strcmp(knob->value[i], value))
            return;
    if (knob->count < VALUES_MAX)
        snprintf(knob->value[knob->count++], sizeof knob->value[0], "%s", value);
}

static void add_powers(struct knob *knob, size_t most)
{
    char text[24];
    for (size_t n = 1; n <= most; n *= 2) {
        snprintf(text, sizeof text, "%zu", n);
        add_value(knob, text);
    }
}

/* Neither of these changes what is learned from: the worlds of all actors together, and so the rows
 * of a turn of all, stay as many. */
static void find_knobs(struct tuning *t)
{
    const struct rm_experiment *e = t->experiment;
    const size_t n = rm_usable_cores();
    const bool actors = e->mode != RM_MODE_SEQUENTIAL && e->actor.device == RM_ACTOR_CPU &&
                        rm_config_reads(e, "actor.count");
    if (actors)
        add_powers(add_knob(t, "actor.count"), 2 * n);
    add_powers(add_knob(t, "learner.threads"), n);
    if (actors) {
        struct knob *pin = add_knob(t, "actor.pin");
        add_value(pin, "true");
        add_value(pin, "false");
    }
    if (e->world.python[0] && !rm_experiment_is_offline(e))
        add_powers(add_knob(t, "actor.python_workers"), n);
    if (e->actor.device == RM_ACTOR_CPU && access("/dev/nvidiactl", F_OK) == 0) {
        struct knob *device = add_knob(t, "learner.device");
        add_value(device, "\"cpu\"");
        add_value(device, "\"cuda:0\"");
    }
}

/* "KEY=VALUE" where a candidate differs from the file; all of them to be freed. */
static size_t settings_of(const struct tuning *t, const struct candidate *c, char **setting)
{
    size_t n = 0;
    for (size_t k = 0; k < t->knobs; k++)
        if (c->value[k] &&
            asprintf(&setting[n], "%s=%s", t->knob[k].key, t->knob[k].value[c->value[k]]) >= 0)
            n++;
    return n;
}

static void free_settings(char **setting, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(setting[i]);
}

static void describe(const struct tuning *t, const struct candidate *c, char *text, size_t size)
{
    char *setting[KNOBS_MAX];
    const size_t n = settings_of(t, c, setting);
    snprintf(text, size, "%s", n ? "" : "as in the file");
    for (size_t i = 0; i < n; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", i ? " " : "", setting[i]);
    }
    free_settings(setting, n);
}

/* Is it an experiment? An actor without a world is none. */
static bool is_valid(const struct tuning *t, const struct candidate *c)
{
    static struct rm_experiment changed;
    struct rm_error error = {""};
    bool valid = true;
    changed = *t->experiment;
    for (size_t k = 0; valid && k < t->knobs; k++) {
        json_t *value = json_loads(t->knob[k].value[c->value[k]], JSON_DECODE_ANY, NULL);
        valid = value && rm_config_set(&changed, t->knob[k].key, value, &error) == 0;
        json_decref(value);
    }
    return valid;
}

/* All combinations; the file's own is the first. */
static void find_candidates(struct tuning *t)
{
    size_t all = 1;
    for (size_t k = 0; k < t->knobs; k++)
        all *= t->knob[k].count;
    t->candidate = calloc(CANDIDATES_MAX, sizeof *t->candidate);
    for (size_t i = 0; t->candidate && i < all && t->count < CANDIDATES_MAX; i++) {
        struct candidate *c = &t->candidate[t->count];
        size_t left = i;
        *c = (struct candidate){.predicted = 1, .hoped = 1};
        for (size_t k = 0; k < t->knobs; k++) {
            c->value[k] = left % t->knob[k].count;
            left /= t->knob[k].count;
        }
        t->count += is_valid(t, c);
    }
}

static size_t changes_of(const struct candidate *c)
{
    size_t n = 0;
    for (size_t k = 0; k < KNOBS_MAX; k++)
        n += c->value[k] != 0;
    return n;
}

/* The file's settings first, then by what is predicted, then those that change less. */
static int by_prediction(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    const size_t xs = changes_of(x), ys = changes_of(y);
    if (!xs || !ys)
        return (xs > 0) - (ys > 0);
    if (x->hoped != y->hoped)
        return x->hoped < y->hoped ? 1 : -1;
    return (xs > ys) - (xs < ys);
}

/* By the counters of a run with the file's settings. */
static void predict(struct tuning *t, const struct rm_explained *x)
{
    for (size_t i = 0; i < t->count; i++) {
        struct candidate *c = &t->candidate[i];
        char *setting[KNOBS_MAX];
        const size_t n = settings_of(t, c, setting);
        for (size_t k = 0; k < n; k++) {
            const char *const one[] = {setting[k]};
            struct rm_error error = {""};
            struct rm_predicted rate;
            if (rm_explain_change(x, one, 1, &rate, &error) == 0)
                c->predicted *= rate.steps_per_s / x->steps_per_s;
            else
                c->hoped *= UNKNOWN;
        }
        c->hoped *= c->predicted;
        free_settings(setting, n);
    }
    qsort(t->candidate, t->count, sizeof *t->candidate, by_prediction);
}

/* --- trials ----------------------------------------------------------------------------------- */

static bool set_number(struct rm_experiment *e, const char *key, uint64_t number)
{
    struct rm_error ignored;
    json_t *value = json_integer((json_int_t)number);
    const bool valid = value && rm_config_set(e, key, value, &ignored) == 0;
    json_decref(value);
    return valid;
}

/* Halves rollouts until they are so many times as short, if their numbers allow it. Returns by what
 * they were divided. */
static unsigned shorten(struct tuning *t, double times)
{
    static struct rm_experiment shorter;
    unsigned divided = 1;
    shorter = *t->experiment;
    while (divided < times && t->steps && t->steps % 2 == 0 && t->minibatches % 2 == 0 &&
           set_number(&shorter, "algorithm.minibatches", t->minibatches / 2) &&
           set_number(&shorter, "rollout.steps", t->steps / 2)) {
        t->steps /= 2;
        t->minibatches /= 2;
        divided *= 2;
    }
    return divided;
}

/* One run of a candidate. Returns its rate, or NAN; the counters in *x if that is not NULL. */
static double try_one(const struct tuning *t, const struct candidate *c, double seconds,
                      struct rm_explained *x)
{
    char *setting[KNOBS_MAX + 3], steps[48], minibatches[48];
    const size_t n = settings_of(t, c, setting);
    size_t all = n;
    setting[all++] = (char *)"run.steps=1000000000000000";
    if (t->steps) {
        snprintf(steps, sizeof steps, "rollout.steps=%" PRIu64, t->steps);
        snprintf(minibatches, sizeof minibatches, "algorithm.minibatches=%" PRIu64, t->minibatches);
        setting[all++] = minibatches;
        setting[all++] = steps;
    }
    const double rate = rm_trial(&t->runs, setting, all, seconds, x);
    free_settings(setting, n);
    return rate;
}

static double left_s(const struct tuning *t)
{
    return t->seconds - (double)(rm_now_ns() - t->began_ns) / (double)RM_NS_PER_S;
}

static void print_trial(struct tuning *t, const struct candidate *c, double rate)
{
    char text[256], why[512] = "";
    describe(t, c, text, sizeof text);
    if (isnan(rate))
        rm_trial_said(&t->runs, why, sizeof why);
    printf("trial %u, %.0f s left: %s: %s%s", ++t->trials, fmax(0, left_s(t)), text,
           isnan(rate) ? "failed: " : rm_format_number(rate).s, isnan(rate) ? why : " steps/s");
    if (!isnan(rate) && changes_of(c))
        printf(" (explain: %.2f times the file's)", c->predicted);
    putchar('\n');
    fflush(stdout);
}

/* --- halving ---------------------------------------------------------------------------------- */

/* Trials of all rounds of so many candidates and the file's settings; of the last round so many as
 * it has at least. */
static double trials_of(size_t candidates)
{
    double trials = 0;
    for (unsigned turns = FIRST_TURNS; candidates > FINALISTS; turns *= 2) {
        trials += turns * (1.0 + (double)candidates);
        candidates = (candidates + 1) / 2;
    }
    return trials + LAST_TURNS * (1.0 + (double)candidates);
}

/* As many candidates as the time is enough for. */
static size_t most_in_time(const struct tuning *t, size_t count)
{
    size_t n = count;
    while (n > 1 && trials_of(n) * t->run_s > left_s(t))
        n--;
    return n;
}

/* Mean over its turns. */
static double ratio_of(const struct candidate *c)
{
    return exp(c->gain / c->turns);
}

/* The standard error of the logarithm of ratio_of(). */
static double error_of(const struct candidate *c)
{
    const double mean = c->gain / c->turns;
    return sqrt(fmax(0, c->gain_2 / c->turns - mean * mean) / fmax(1, c->turns - 1.0));
}

static int by_ratio(const void *a, const void *b)
{
    const double x = ratio_of(a), y = ratio_of(b);
    return (x < y) - (x > y);
}

/* Everyone in the race once. */
static void play_turn(struct tuning *t, unsigned round, bool reverse)
{
    const struct candidate *own = &t->candidate[0];
    for (size_t i = 0; i < t->field && !own->failed; i++) {
        struct candidate *c = &t->candidate[reverse ? t->field - 1 - i : i];
        c->rate = try_one(t, c, t->run_s, NULL);
        if (rm_interrupted())
            return;
        print_trial(t, c, c->rate);
        c->round = round;
        c->failed = isnan(c->rate);
    }
    for (size_t k = 0; k < t->field && !own->failed; k++) {
        struct candidate *c = &t->candidate[k];
        const double gain = log(c->rate / own->rate);
        if (c->failed)
            continue;
        c->turns++;
        c->log_rate += log(c->rate);
        c->gain += gain;
        c->gain_2 += gain * gain;
    }
}

/* Moves those that failed behind those in the race. */
static void leave_out_failed(struct tuning *t)
{
    for (size_t k = 1; k < t->field;) {
        const struct candidate c = t->candidate[k];
        if (!c.failed) {
            k++;
            continue;
        }
        t->field--;
        memmove(&t->candidate[k], &t->candidate[k + 1], (t->field - k) * sizeof c);
        t->candidate[t->field] = c;
    }
}

/* Whether so many turns, each trial as long as those so far, fit the time. */
static bool in_time(const struct tuning *t, unsigned turns)
{
    const double trial_s = (t->race_s - left_s(t)) / t->trials;
    return turns * (double)t->field * trial_s <= left_s(t);
}

/* Whether a round ends after so many turns. */
static bool is_over(const struct tuning *t, unsigned played, unsigned turns)
{
    const bool last = t->field <= 1 + FINALISTS;
    if (played < FIRST_TURNS || (last && t->candidate[0].turns < TURNS_MIN))
        return false;
    if (last)
        return !in_time(t, 1);
    return played >= turns || !in_time(t, FIRST_TURNS);
}

/* Returns 0 or an enum rm_ctl_exit value. */
static int halve(struct tuning *t)
{
    unsigned turns = FIRST_TURNS;
    t->race_s = left_s(t);
    for (unsigned round = 1; t->field > 1; round++, turns *= 2) {
        for (unsigned played = 0; t->field > 1 && !is_over(t, played, turns); played++) {
            play_turn(t, round, t->candidate[0].turns % 2);
            if (rm_interrupted())
                return rm_ctl_complain(RM_CTL_FAILED, "interrupted: nothing is written");
            if (t->candidate[0].failed)
                return rm_ctl_complain(RM_CTL_FAILED, "a trial with the settings of %s failed",
                                       t->given->argument[0]);
            leave_out_failed(t);
        }
        /* The file's stays at the head, so that all are compared with it. */
        qsort(t->candidate + 1, t->field - 1, sizeof *t->candidate, by_ratio);
        if (t->field <= 1 + FINALISTS)
            break;
        t->field = 1 + t->field / 2;
    }
    return 0;
}

/* The fastest of the last round, if it is faster than the file's, probably not by chance. */
static const struct candidate *best_of(const struct tuning *t)
{
    const struct candidate *best = &t->candidate[t->field > 1 ? 1 : 0];
    return log(ratio_of(best)) >= fmax(log(GAIN), error_of(best)) ? best : &t->candidate[0];
}

/* --- results ---------------------------------------------------------------------------------- */

static void print_table(const struct tuning *t, const struct candidate *best)
{
    static const struct rm_column columns[] = {{"SETTINGS", true, 0}, {"ROUND", false, 1},
                                               {"TURNS", false, 2},   {"MODEL", false, 0},
                                               {"RATIO", false, 0},   {"STEPS/S", false, 0}};
    const struct rm_style style = {.width = rm_style_of(stdout).width, .whole = true};
    struct rm_table table;
    size_t untried = 0;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < t->count; i++) {
        const struct candidate *c = &t->candidate[i];
        char text[256];
        if (!c->round) {
            untried++;
            continue;
        }
        describe(t, c, text, sizeof text);
        rm_table_cell(&table, "%s%s", text, c == best ? " <- best" : c->failed ? " (failed)" : "");
        rm_table_cell(&table, "%u", c->round);
        rm_table_cell(&table, "%u", c->turns);
        rm_table_cell(&table, "%.2f", c->predicted);
        rm_table_cell(&table, "%s", rm_format_measure(ratio_of(c)).s);
        rm_table_cell(&table, "%s", rm_format_number(exp(c->log_rate / c->turns)).s);
    }
    putchar('\n');
    rm_table_end(&table, stdout, &style);
    if (untried)
        printf("\nnot tried in this time, because they promise less: %zu more\n", untried);
}

/* FILE without ".json", with ".tuned.json". */
static int name_output(struct tuning *t)
{
    const char *file = t->given->argument[0];
    const size_t length = strlen(file), suffix = strlen(".json");
    const bool json = length > suffix && !strcmp(file + length - suffix, ".json");
    snprintf(t->output, sizeof t->output, "%.*s.tuned.json", (int)(json ? length - suffix : length),
             file);
    if (access(t->output, F_OK) == 0 && !rm_ctl_flag(t->given, "fresh"))
        return rm_ctl_complain(RM_CTL_FAILED, "%s exists; remove it, or replace it with --fresh",
                               t->output);
    return 0;
}

/* The file as it is, with the settings that were chosen. */
static int write_file(const struct tuning *t, const struct candidate *best)
{
    json_t *all = json_load_file(t->given->argument[0], 0, NULL);
    for (size_t k = 0; all && k < t->knobs; k++) {
        char section[64];
        const char *dot = strchr(t->knob[k].key, '.');
        if (!best->value[k] || !dot)
            continue;
        snprintf(section, sizeof section, "%.*s", (int)(dot - t->knob[k].key), t->knob[k].key);
        json_t *object = json_object_get(all, section);
        if (!object)
            json_object_set_new(all, section, object = json_object());
        json_object_set_new(object, dot + 1,
                            json_loads(t->knob[k].value[best->value[k]], JSON_DECODE_ANY, NULL));
    }
    FILE *out = all ? fopen(t->output, rm_ctl_flag(t->given, "fresh") ? "we" : "wxe") : NULL;
    const bool written = out &&
                         json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) == 0 &&
                         fputc('\n', out) != EOF;
    const bool closed = out && fclose(out) == 0;
    json_decref(all);
    if (!written || !closed)
        return rm_ctl_complain(RM_CTL_FAILED, "%s: %s", t->output, strerror(errno));
    puts(t->output);
    return 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int race(struct tuning *t)
{
    static struct rm_explained x;
    const double least_s = fmin(TRIAL_S, t->seconds / TRIALS_MIN);
    const double first_s = fmax(least_s, t->seconds / 20);
    char why[512];
    t->run_s = fmax(least_s, t->seconds / TRIALS);
    t->began_ns = rm_now_ns();
    if (rm_algorithm_traits(t->experiment->algorithm.name)->rollout) {
        t->steps = t->experiment->rollout.steps;
        t->minibatches = t->experiment->algorithm.minibatches;
    }
    find_knobs(t);
    find_candidates(t);
    if (!t->candidate)
        return rm_ctl_complain(RM_CTL_FAILED, "no memory");
    if (t->count == 1)
        return rm_ctl_complain(RM_CTL_FAILED,
                               "nothing to tune: no key of %s that changes only its speed has "
                               "another value on this host",
                               t->given->argument[0]);
    double rate;
    bool again;
    do {
        rate = try_one(t, &t->candidate[0], first_s, &x);
        if (rm_interrupted())
            return rm_ctl_complain(RM_CTL_FAILED, "interrupted: nothing is written");
        if (isnan(rate)) {
            rm_trial_said(&t->runs, why, sizeof why);
            return rm_ctl_complain(RM_CTL_FAILED, "%s does not run: %s", t->given->argument[0],
                                   why);
        }
        again = x.rollout_s == 0 && shorten(t, SHORTER) > 1;
        if (again)
            rm_explained_free(&x);
    } while (again);
    const double rollout_s = x.rollout_s / shorten(t, ROLLOUTS_TIMES * x.rollout_s / t->run_s);
    t->run_s = fmax(t->run_s, fmin(ROLLOUTS_TIMES * rollout_s, t->seconds / TRIALS_MIN));
    if (t->steps && t->steps != t->experiment->rollout.steps)
        printf("rollouts take long: those of trials have %" PRIu64 " steps and %" PRIu64 " %s\n",
               t->steps, t->minibatches, t->minibatches == 1 ? "minibatch" : "minibatches");
    predict(t, &x);
    rm_explained_free(&x);
    t->field = 1 + most_in_time(t, t->count - 1);
    printf("%s steps/s as in the file; trying %zu of %zu other settings\n",
           rm_format_number(rate).s, t->field - 1, t->count - 1);
    const int rc = halve(t);
    if (rc)
        return rc;
    const struct candidate *best = best_of(t);
    print_table(t, best);
    return write_file(t, best);
}

int rm_ctl_tune(const struct rm_ctl_arguments *given, const struct rm_experiment *experiment)
{
    static struct tuning t;
    t.seconds = SECONDS;
    if (rm_ctl_value(given, "tune")[0] &&
        rm_ctl_number(given, "tune", SECONDS_MIN, SECONDS_MAX, &t.seconds))
        return RM_CTL_USAGE;
    static const char *const others[] = {"seeds",  "jobs", "resume",
                                         "socket", "name", "run-directory"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (rm_ctl_value(given, others[i]))
            return rm_ctl_complain(RM_CTL_USAGE, "--tune and --%s: give one of them", others[i]);
    if (strlen(experiment->sweep) > 2)
        return rm_ctl_complain(RM_CTL_USAGE, "--tune is for one run, and %s has a sweep",
                               given->argument[0]);
    t.given = given;
    t.experiment = experiment;
    t.runs.given = given;
    int rc = name_output(&t);
    if (rc)
        return rc;
    rm_interrupt_watch();
    rc = rm_trials_begin(&t.runs);
    if (rc)
        return rc;
    rc = race(&t);
    rm_trials_end(&t.runs);
    free(t.candidate);
    return rc;
}
