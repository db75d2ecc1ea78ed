/* explain: prints what limits a run's speed, and which settings would change it. */
#include "daemon/ctl/command.h"

#include "config/schema.h"
#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/explain.h"
#include "daemon/ctl/find.h"
#include "daemon/ctl/interrupt.h"
#include "daemon/ctl/trial.h"
#include "daemon/format.h"
#include "daemon/table.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN     0.005 /* shares below are not shown */
#define STEPS_MAX UINT64_C(1000000000000000)

#define THREADS_HELP 0.15 /* least elasticity of the update */

static void print_verdict(const struct rm_explained *x, const struct rm_style *style)
{
    char verdict[RM_VERDICT_MAX];
    rm_explained_verdict(x, verdict, sizeof verdict);
    printf("%s%s: %s%s\n", rm_style_bold(style), x->experiment->name, verdict, rm_style_off(style));
    printf("speed: %s steps/s of each agent in %s s of training (%s steps, %s updates)\n",
           rm_format_count(x->steps_per_s).s, rm_format_number(x->window_s).s,
           rm_format_count(x->steps).s, rm_format_count(x->updates).s);
    if (x->alone_steps_per_s > 1.05 * x->steps_per_s)
        printf("alone on the host: about %s steps/s\n", rm_format_count(x->alone_steps_per_s).s);
    char evidence[RM_EVIDENCE_MAX];
    rm_evidence_text(&x->evidence, x->experiment, evidence, sizeof evidence);
    char others[32] = "not known";
    if (!isnan(x->load.around))
        snprintf(others, sizeof others, "%.2f", x->load.around);
    printf("cores: %s; this run uses %.2f of them, other processes %s\n%s\n",
           rm_format_number(x->load.cores).s, rm_load_busy(&x->load), others, evidence);
}

/* The two largest shares by name: "forward 31%, backward 20%"; a single one by its name alone, if
 * `total` stands beside it. */
static void largest(char *text, size_t size, const double *shares, int count,
                    const char *(*name)(int), int skip, double total)
{
    bool taken[RM_PHASE_COUNT] = {false};
    text[0] = '\0';
    for (int n = 0; n < 2; n++) {
        int best = -1;
        for (int i = 0; i < count; i++)
            if (i != skip && !taken[i] && shares[i] >= SHOWN &&
                (best < 0 || shares[i] > shares[best]))
                best = i;
        if (best < 0)
            return;
        taken[best] = true;
        const size_t used = strlen(text);
        if (n == 0 && shares[best] > total - SHOWN)
            snprintf(text, size, "%s", name(best));
        else
            snprintf(text + used, size - used, "%s%s %.0f%%", used ? ", " : "", name(best),
                     100 * shares[best]);
    }
}

static const char *phase_name(int phase)
{
    return phase == RM_PHASE_OTHER ? "other work" : rm_phase_name((enum rm_phase)phase);
}

static const char *wait_name(int wait)
{
    return wait == RM_WAIT_OTHER ? "other reasons" : rm_wait_name((enum rm_wait)wait);
}

/* Of a process: how much of its time it worked and at what, how much it waited and for what. */
static void print_duties(const struct rm_explained *x, const struct rm_style *style)
{
    static const struct rm_column columns[] = {{"PROCESS", true, 0}, {"WORKS", false, 0},
                                               {"AT", true, 0},      {"WAITS", false, 0},
                                               {"FOR", true, 0},     {"NO CORE", false, 0}};
    static_assert((int)RM_WAIT_COUNT <= (int)RM_PHASE_COUNT, "largest() has room for both");
    struct rm_table table;
    char text[128];
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < x->duties; i++) {
        const struct rm_run_duty *d = &x->duty[i];
        const double waits = d->phase[RM_PHASE_WAITING];
        rm_table_cell(&table, "%s", d->name);
        rm_table_cell(&table, "%.0f%%", 100 * (1 - waits));
        largest(text, sizeof text, d->phase, RM_PHASE_COUNT, phase_name, RM_PHASE_WAITING,
                1 - waits);
        rm_table_cell(&table, "%s", text);
        rm_table_cell(&table, "%.0f%%", 100 * waits);
        largest(text, sizeof text, d->wait, RM_WAIT_COUNT, wait_name, -1, waits);
        rm_table_cell(&table, "%s", text);
        rm_table_cell(&table, "%.0f%%", 100 * d->no_core);
    }
    rm_table_end(&table, stdout, style);
    puts("WORKS and WAITS are all of a process's time. NO CORE: how much of it the process could\n"
         "have run in, and other processes had the cores.");
}

static void print_stations(const struct rm_explained *x, const struct rm_style *style)
{
    static const struct rm_column columns[] = {{"10 % MORE TIME FOR", true, 0},
                                               {"MAKES THE RUN", false, 0},
                                               {"WORK FOR A STEP", false, 0}};
    struct rm_table table;
    bool printed[RM_STATION_COUNT] = {false};
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (;;) {
        int best = -1;
        for (int s = 0; s < RM_STATION_COUNT; s++)
            if (!printed[s] && x->elasticity[s] >= SHOWN &&
                (best < 0 || x->elasticity[s] > x->elasticity[best]))
                best = s;
        if (best < 0)
            break;
        printed[best] = true;
        rm_table_cell(&table, "%s", rm_explained_station(best));
        rm_table_cell(&table, "%.1f %% longer", 10 * x->elasticity[best]);
        const double work_s = rm_load_station_s(&x->load, (enum rm_station)best);
        rm_table_cell(&table, "%s%s", work_s > 0 ? rm_format_number(1e6 * work_s).s : "",
                      work_s > 0 ? " us" : "");
    }
    putchar('\n');
    rm_table_end(&table, stdout, style);
}

/* In percent. */
static double gain(const struct rm_explained *x, double steps_per_s)
{
    return 100 * (steps_per_s / x->steps_per_s - 1);
}

static const char *note(const struct rm_explained_change *change)
{
    if (strcmp(change->key, "limiter.poll_us") == 0)
        return " (read only with limiter.wake \"poll\")";
    return change->learns ? " (changes what is learned)" : "";
}

static void print_changes(const char *title, const struct rm_explained_change *changes,
                          uint32_t count, const struct rm_explained *x)
{
    if (count)
        printf("\n%s\n", title);
    for (uint32_t i = 0; i < count; i++)
        printf("  %s=%s: %s steps/s, %+.0f %% (%+.0f to %+.0f)%s\n", changes[i].key,
               changes[i].value, rm_format_count(changes[i].rate.steps_per_s).s,
               gain(x, changes[i].rate.steps_per_s), gain(x, changes[i].rate.low),
               gain(x, changes[i].rate.high), note(&changes[i]));
}

static void print_human(const struct rm_explained *x)
{
    const struct rm_style style = rm_style_of(stdout);
    print_verdict(x, &style);
    print_duties(x, &style);
    if (!x->known)
        return;
    print_stations(x, &style);
    print_changes("settings that would change its speed, as predicted:", x->move, x->moves, x);
    if (!x->moves)
        printf("\nno setting that the model knows would change its speed by 3 %%\n");
    const bool on_cpu = x->evidence.core_flops > 0; /* a device has no such column */
    if (x->elasticity[RM_STATION_UPDATE] >= THREADS_HELP && on_cpu &&
        x->experiment->learner.threads < x->load.cores)
        puts("\nlearner.threads is not predicted; ringctl run FILE --tune tries it");
    if (!on_cpu && strcmp(x->experiment->learner.device, "cpu") != 0)
        puts("\nthe model knows no limit of a GPU: it takes what the learner does there as fixed");
    print_changes("settings that would not, although people try them:", x->idle, x->idles, x);
}

/* --- the run --------------------------------------------------------------------------------- */

/* What is explained. */
struct subject {
    char directory[PATH_MAX];
    bool running; /* it answers */
};

/* By counters of now, where it runs. */
static int explain(struct rm_explained *x, struct subject *subject,
                   const struct rm_ctl_arguments *given)
{
    struct rm_ctl_client client;
    struct rm_error error = {""};
    json_t *status, *now = NULL;
    int rc = rm_find_run(subject->directory, &client, &status, given, given->argument[0]);
    if (rc)
        return rc;
    subject->running = status != NULL;
    const char *state = json_string_value(json_object_get(status, "state"));
    /* While the run ends, counters move on and steps do not: the rows have its training. */
    if (state && strcmp(state, "running") == 0) {
        rc = rm_ctl_client_call(&client, "metrics", NULL, &now, &error);
        rc = rc ? rm_ctl_client_exit_code(rc) : 0;
    }
    rm_ctl_client_close(&client);
    if (rc)
        rm_ctl_complain(rc, "%s", error.text);
    else if (rm_explain_run(x, subject->directory, now, &error))
        rc = rm_ctl_complain(RM_CTL_FAILED, "%s", error.text);
    json_decref(status);
    json_decref(now);
    return rc;
}

/* --- trying a change -------------------------------------------------------------------------- */

/* What --verify measured, and how. */
struct measured {
    double before, after;
    char how[128];
};

/* Adds the logarithm of the rate with the change or without it. */
typedef int (*measure_fn)(void *user, bool changed, double *log_rate);

/* Before, after, after, before: what drifts falls on both. */
static int alternate(measure_fn measure, void *user, struct measured *m)
{
    double logs[2] = {0, 0};
    int rc = 0;
    for (int i = 0; rc == 0 && i < 4; i++) {
        const bool changed = i == 1 || i == 2;
        rc = measure(user, changed, &logs[changed]);
    }
    m->before = exp(logs[0] / 2);
    m->after = exp(logs[1] / 2);
    return rc;
}

/* --- on a running experiment ------------------------------------------------------------------ */

struct change {
    struct rm_ctl_client client;
    double seconds;
    size_t count;
    json_t *keys[RM_CTL_GIVEN_MAX], *before[RM_CTL_GIVEN_MAX], *after[RM_CTL_GIVEN_MAX];
};

static int call(struct change *c, const char *command, json_t *arguments, json_t **reply)
{
    struct rm_error error = {""};
    const int rc = rm_ctl_client_call(&c->client, command, arguments, reply, &error);
    return rc ? rm_ctl_complain(rm_ctl_client_exit_code(rc), "%s: %s", command, error.text) : 0;
}

static int set_all(struct change *c, json_t *const *values)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->count; i++) {
        json_t *reply = NULL;
        rc = call(c, "set", json_pack("{s:O,s:O}", "key", c->keys[i], "value", values[i]), &reply);
        json_decref(reply);
    }
    return rc;
}

/* Agent steps so far, and when that was. */
static int read_steps(struct change *c, double *steps, double *time_s)
{
    json_t *reply = NULL;
    const int rc = call(c, "metrics", NULL, &reply);
    *steps = json_number_value(json_object_get(reply, "steps"));
    *time_s = json_number_value(json_object_get(reply, "time_s"));
    json_decref(reply);
    return rc;
}

/* After a quarter of the time, in which duties get used to the values. */
static int measure_live(void *user, bool changed, double *log_rate)
{
    struct change *c = user;
    double steps = 0, time_s = 0, steps_end = 0, end_s = 0;
    int rc = set_all(c, changed ? c->after : c->before);
    if (rc)
        return rc;
    rm_interrupt_sleep(c->seconds / 4);
    rc = read_steps(c, &steps, &time_s);
    rm_interrupt_sleep(c->seconds);
    if (rc == 0)
        rc = read_steps(c, &steps_end, &end_s);
    if (rc == 0 && rm_interrupted())
        return RM_CTL_FAILED; /* try_live() says why */
    if (rc == 0 && (steps_end <= steps || end_s <= time_s))
        rc = rm_ctl_complain(RM_CTL_FAILED, "no step was made: give more seconds");
    if (rc == 0)
        *log_rate += log((steps_end - steps) / (end_s - time_s));
    return rc;
}

static void free_change(struct change *c)
{
    for (size_t i = 0; i < c->count; i++) {
        json_decref(c->keys[i]);
        json_decref(c->before[i]);
        json_decref(c->after[i]);
    }
    rm_ctl_client_close(&c->client);
}

/* Makes the change and takes it back, twice. */
static int try_live(const struct rm_ctl_arguments *given, const char *const *settings, size_t count,
                    double seconds, struct measured *m)
{
    static struct change c;
    int rc = rm_find_open(&c.client, given);
    if (rc)
        return rc;
    c.seconds = seconds;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const char *equals = strchr(settings[i], '='); /* explain has refused others */
        json_t *reply = NULL, *value = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
        c.keys[i] = json_stringn(settings[i], (size_t)(equals - settings[i]));
        c.after[i] = value ? value : json_string(equals + 1);
        c.count++;
        rc = call(&c, "get", json_pack("{s:O}", "key", c.keys[i]), &reply);
        c.before[i] = json_incref(json_object_get(reply, "value"));
        json_decref(reply);
    }
    if (rc == 0) {
        rc = alternate(measure_live, &c, m);
        const int restored = set_all(&c, c.before);
        if (rm_interrupted() && !restored)
            rc = rm_ctl_complain(RM_CTL_FAILED, "interrupted; the settings are as before");
        rc = rc ? rc : restored;
    }
    free_change(&c);
    snprintf(m->how, sizeof m->how, "live; the setting is as before");
    return rc;
}

/* --- on short runs ---------------------------------------------------------------------------- */

struct trying {
    struct rm_trials trials;
    const char *const *settings;
    size_t count;
    double seconds;
    unsigned made;
    bool quiet;
};

static int measure_trial(void *user, bool changed, double *log_rate)
{
    struct trying *t = user;
    char said[512];
    const double rate =
        rm_trial(&t->trials, (char *const *)t->settings, changed ? t->count : 0, t->seconds, NULL);
    if (rm_interrupted())
        return rm_ctl_complain(RM_CTL_FAILED, "interrupted: nothing is left of the trials");
    if (isnan(rate)) {
        rm_trial_said(&t->trials, said, sizeof said);
        return rm_ctl_complain(RM_CTL_FAILED, "a trial %s the change failed: %s",
                               changed ? "with" : "without", said);
    }
    *log_rate += log(rate);
    t->made++;
    if (!t->quiet) {
        printf("trial %u of 4, %s the change: %s steps/s\n", t->made, changed ? "with" : "without",
               rm_format_number(rate).s);
        fflush(stdout);
    }
    return 0;
}

/* The experiment of all trials, with the hot keys as they are now and no end: 0 would be none, but
 * a run that starts from weights would not train. */
static int write_experiment(const struct rm_explained *x, bool resume, const char *path)
{
    struct rm_experiment *e = malloc(sizeof *e);
    json_t *all = NULL;
    if (e) {
        *e = *x->experiment;
        e->run.steps = resume && !e->run.steps ? 0 : STEPS_MAX;
        all = rm_config_to_json(e);
    }
    free(e);
    const int rc = all ? json_dump_file(all, path, JSON_INDENT(2)) : -1;
    json_decref(all);
    return rc ? rm_ctl_complain(RM_CTL_FAILED, "%s: %s", path, strerror(errno)) : 0;
}

static const struct rm_key *key_of(const char *setting)
{
    char path[RM_KEY_PATH_MAX];
    snprintf(path, sizeof path, "%.*s", (int)strcspn(setting, "="), setting);
    return rm_key_find(path);
}

/* Runs without the change and with it, of the run's newest checkpoint. */
static int try_apart(const struct rm_explained *x, const struct subject *subject,
                     const char *const *settings, size_t count, double seconds, bool quiet,
                     struct measured *m)
{
    char file[96];
    if (count > RM_TRIAL_SETTINGS)
        return rm_ctl_complain(RM_CTL_USAGE, "--verify: at most %d settings", RM_TRIAL_SETTINGS);
    struct rm_ctl_arguments *given = calloc(1, sizeof *given);
    struct trying t = {.trials = {.given = given, .resume = !x->experiment->record.directory[0]},
                       .settings = settings,
                       .count = count,
                       .seconds = seconds,
                       .quiet = quiet};
    for (size_t i = 0; i < count; i++) {
        const struct rm_key *key = key_of(settings[i]);
        t.trials.resume &= key && key->on_resume == RM_ON_RESUME_ANY;
    }
    int rc = given ? rm_trials_begin(&t.trials) : rm_ctl_complain(RM_CTL_FAILED, "no memory");
    if (rc == 0)
        rc = rm_trials_copy(&t.trials, subject->directory);
    snprintf(file, sizeof file, "%s/config.json", t.trials.folder);
    if (rc == 0)
        rc = write_experiment(x, t.trials.resume, file);
    snprintf(m->how, sizeof m->how, "in short runs %s checkpoint %llu%s",
             t.trials.resume ? "from" : "with the weights of", (unsigned long long)t.trials.number,
             subject->running ? ", which shared the cores with the experiment" : "");
    if (rc == 0) {
        given->argument[0] = file;
        rc = alternate(measure_trial, &t, m);
    }
    rm_trials_end(&t.trials);
    free(given);
    return rc;
}

/* --- results ---------------------------------------------------------------------------------- */

/* Keys that may change while the experiment runs are tried on it, others apart from it. */
static int verify(const struct rm_explained *x, const struct subject *subject,
                  const struct rm_ctl_arguments *given, const char *const *settings, size_t count,
                  struct measured *m)
{
    const double seconds = strtod(rm_ctl_value(given, "verify"), NULL);
    bool live = subject->running;
    for (size_t i = 0; i < count; i++) {
        const struct rm_key *key = key_of(settings[i]);
        live &= key && key->hot != RM_COLD;
    }
    return live ? try_live(given, settings, count, seconds, m)
                : try_apart(x, subject, settings, count, seconds, rm_ctl_flag(given, "json"), m);
}

/* --set: the rate with other settings; and with --verify, what it really becomes. */
static int print_what_if(const struct rm_explained *x, const struct subject *subject,
                         const struct rm_ctl_arguments *given, const char *const *settings,
                         size_t count)
{
    const bool json = rm_ctl_flag(given, "json"), tried = rm_ctl_value(given, "verify");
    struct rm_error error = {""};
    struct measured m = {.how = ""};
    struct rm_predicted rate;
    if (rm_explain_change(x, settings, count, &rate, &error))
        return rm_ctl_complain(RM_CTL_REFUSED, "%s", error.text);
    if (tried)
        rm_interrupt_watch();
    if (!json)
        printf("%s steps/s would become %s, %+.0f %% (80 %% interval: %s to %s)\n",
               rm_format_number(x->steps_per_s).s, rm_format_number(rate.steps_per_s).s,
               gain(x, rate.steps_per_s), rm_format_number(rate.low).s,
               rm_format_number(rate.high).s);
    fflush(stdout);
    const int rc = tried ? verify(x, subject, given, settings, count, &m) : 0;
    if (rc)
        return rc;
    if (!json && tried)
        printf("measured: %s steps/s became %s, %+.0f %% (%s)\n", rm_format_number(m.before).s,
               rm_format_number(m.after).s, 100 * (m.after / m.before - 1), m.how);
    if (!json)
        return 0;
    printf("{\"steps_per_s\": %.9g, \"predicted\": %.9g, \"low\": %.9g, \"high\": %.9g, "
           "\"ratio\": %.9g",
           x->steps_per_s, rate.steps_per_s, rate.low, rate.high,
           rate.steps_per_s / x->steps_per_s);
    if (tried)
        printf(", \"measured_before\": %.9g, \"measured\": %.9g, \"measured_ratio\": %.9g, "
               "\"measured_on\": \"%s\"",
               m.before, m.after, m.after / m.before, m.how);
    puts("}");
    return 0;
}

static int print(const struct rm_explained *x, const struct subject *subject,
                 const struct rm_ctl_arguments *given)
{
    const char *settings[RM_CTL_GIVEN_MAX];
    const bool json = rm_ctl_flag(given, "json");
    size_t count = 0;
    for (size_t i = 0; i < given->given_count; i++)
        if (!strcmp(given->given[i].option->name, "set"))
            settings[count++] = given->given[i].value;
    if (count)
        return print_what_if(x, subject, given, settings, count);
    if (!json) {
        print_human(x);
        return 0;
    }
    json_t *all = rm_explained_json(x);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
    return 0;
}

/* --verify needs a change. */
static int check_verify(const struct rm_ctl_arguments *given)
{
    double seconds;
    if (rm_ctl_number(given, "verify", 0.1, 3600, &seconds))
        return RM_CTL_USAGE;
    if (rm_ctl_flag(given, "verify") && !rm_ctl_flag(given, "set"))
        return rm_ctl_complain(RM_CTL_USAGE, "--verify: give the change with --set");
    return 0;
}

int rm_ctl_explain(const struct rm_ctl_arguments *given)
{
    const int wrong = check_verify(given);
    if (wrong)
        return wrong;
    struct rm_explained *x = calloc(1, sizeof *x);
    struct subject subject = {.running = false};
    if (!x)
        return rm_ctl_complain(RM_CTL_FAILED, "no memory");
    int rc = explain(x, &subject, given);
    if (rc == 0)
        rc = print(x, &subject, given);
    rm_explained_free(x);
    free(x);
    return rc;
}
