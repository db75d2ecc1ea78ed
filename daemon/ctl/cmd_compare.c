/* compare: lists the differences between runs, and their effects on speed and score. */
#include "daemon/ctl/command.h"

#include "config/config.h"
#include "config/json_value.h"
#include "daemon/ctl/curve.h"
#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/explain.h"
#include "daemon/ctl/find.h"
#include "daemon/format.h"
#include "daemon/table.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 16 /* columns of a table */

struct run {
    char directory[PATH_MAX];
    char label[4]; /* "A" */
    json_t *status;
    struct rm_experiment experiment; /* with hot keys as they were in explain's window */
    struct rm_explained *explained;  /* NULL: its rows do not say how fast it was */
    struct rm_curve score;
    double steps_per_s, ratio, predicted; /* to the first run; NAN: not known */
    double score_there;                   /* at the last step that all runs have reached */
    double evaluation, error;             /* of the last evaluation */
};

struct comparison {
    struct run *runs[RUNS_MAX];
    size_t count;
    json_t *differences; /* by what differs: {"first run's": .., ..}, lists of texts */
    double step;         /* the last one that all have reached; NAN: there is none */
};

/* --- reading ---------------------------------------------------------------------------------- */

/* Its speed and its settings, by explain's window, or its settings alone. */
static int read_settings(struct run *run)
{
    char path[PATH_MAX + 32];
    struct rm_error error = {""};
    run->explained = calloc(1, sizeof *run->explained);
    run->steps_per_s = NAN;
    if (run->explained && rm_explain_run(run->explained, run->directory, NULL, &error) == 0) {
        run->experiment = *run->explained->experiment;
        run->steps_per_s = run->explained->steps_per_s;
        return 0;
    }
    if (run->explained)
        rm_explained_free(run->explained);
    free(run->explained);
    run->explained = NULL;
    snprintf(path, sizeof path, "%s/config.json", run->directory);
    if (rm_config_load(&run->experiment, path, NULL, 0, &error))
        return rm_ctl_complain(RM_CTL_FAILED, "%s", error.text);
    return 0;
}

static int read_run(struct run *run, const struct rm_ctl_arguments *given, const char *name)
{
    int rc = rm_find_status(run->directory, &run->status, given, name);
    if (rc)
        return rc;
    rc = read_settings(run);
    rm_curve_read(&run->score, run->directory, "score_last", "steps");
    run->evaluation = rm_json_number_at(run->status, "evaluation.mean");
    run->error = rm_json_number_at(run->status, "evaluation.stderr");
    return rc;
}

static void free_run(struct run *run)
{
    json_decref(run->status);
    rm_curve_close(&run->score);
    if (run->explained)
        rm_explained_free(run->explained);
    free(run->explained);
    free(run);
}

/* --- comparing -------------------------------------------------------------------------------- */

/* What the `i`-th run has for `what`; all that were not noted have the first one's. */
static void note(struct comparison *c, const char *what, size_t i, const char *first,
                 const char *value)
{
    json_t *values = json_object_get(c->differences, what);
    if (!values) {
        values = json_array();
        for (size_t k = 0; k < c->count; k++)
            json_array_append_new(values, json_string(first));
        json_object_set_new(c->differences, what, values);
    }
    json_array_set_new(values, i, json_string(value));
}

struct differing {
    struct comparison *comparison;
    size_t run;
    char *setting[RM_CTL_GIVEN_MAX]; /* "KEY=VALUE", for the model */
    size_t settings;
};

/* Where a run is and what it is called does nothing. */
static bool is_place(const char *key)
{
    static const char *const places[] = {"name", "run.directory", "control.socket", "report"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (!strcmp(key, places[i]))
            return true;
    return false;
}

static void note_setting(void *user, const char *path, const char *before, const char *after,
                         bool hot)
{
    struct differing *d = user;
    (void)hot;
    if (is_place(path))
        return;
    note(d->comparison, path, d->run, before, after);
    if (d->settings < RM_CTL_GIVEN_MAX &&
        asprintf(&d->setting[d->settings], "%s=%s", path, after) >= 0)
        d->settings++;
}

/* A text or number in two runs' status, such as the version. Returns whether it is known to be the
 * same. */
static bool note_fact(struct comparison *c, size_t i, const char *section, const char *key)
{
    const char *what = key;
    char name[64], text[2][96];
    for (int k = 0; k < 2; k++) {
        const json_t *status = c->runs[k ? i : 0]->status;
        const json_t *fact =
            json_object_get(section ? json_object_get(status, section) : status, key);
        if (json_is_number(fact))
            snprintf(text[k], sizeof text[k], "%g", json_number_value(fact));
        else
            snprintf(text[k], sizeof text[k], "%s",
                     json_is_string(fact) ? json_string_value(fact) : "-");
    }
    if (section) {
        snprintf(name, sizeof name, "%s %s", section, key);
        what = name;
    }
    if (strcmp(text[0], text[1]) != 0)
        note(c, what, i, text[0], text[1]);
    return strcmp(text[0], text[1]) == 0;
}

/* The rate that explain's model predicts from the first run's counters, over the first run's. */
static double predict(const struct run *first, const struct differing *d)
{
    struct rm_error error = {""};
    struct rm_predicted rate;
    if (!first->explained || !first->explained->known ||
        rm_explain_change(first->explained, (const char *const *)d->setting, d->settings, &rate,
                          &error))
        return NAN;
    return rate.steps_per_s / first->steps_per_s;
}

static void compare_with_first(struct comparison *c, size_t i)
{
    static const char *const hosts[] = {"name", "processor", "cores", "kernel"};
    struct run *run = c->runs[i];
    struct differing d = {.comparison = c, .run = i};
    rm_config_diff(&c->runs[0]->experiment, &run->experiment, note_setting, &d);
    bool alike = note_fact(c, i, NULL, "version");
    for (size_t k = 0; k < sizeof hosts / sizeof hosts[0]; k++)
        alike &= note_fact(c, i, "host", hosts[k]);
    run->ratio = run->steps_per_s / c->runs[0]->steps_per_s;
    run->predicted = alike ? predict(c->runs[0], &d) : (double)NAN;
    for (size_t k = 0; k < d.settings; k++)
        free(d.setting[k]);
}

/* The newest value at or before a step; NAN: the curve begins later. */
static double score_at(const struct rm_curve *curve, double step)
{
    double score = NAN;
    for (size_t i = 0; i < curve->count && curve->at[i] <= step; i++)
        score = curve->values[i];
    return score;
}

static void compare(struct comparison *c)
{
    c->differences = json_object();
    c->step = INFINITY;
    for (size_t i = 0; i < c->count; i++) {
        const struct rm_curve *score = &c->runs[i]->score;
        c->step = fmin(c->step, score->count ? score->at[score->count - 1] : 0);
    }
    if (c->step <= 0)
        c->step = NAN;
    for (size_t i = 0; i < c->count; i++) {
        struct run *run = c->runs[i];
        snprintf(run->label, sizeof run->label, "%c", (int)('A' + i));
        run->ratio = run->predicted = 1;
        run->score_there = score_at(&run->score, c->step);
        if (i)
            compare_with_first(c, i);
    }
}

/* --- printing --------------------------------------------------------------------------------- */

static void print_differences(const struct comparison *c, const struct rm_style *style)
{
    struct rm_column columns[RUNS_MAX + 1] = {{"DIFFERS", true, 0}};
    struct rm_table table;
    const char *what;
    json_t *values;
    for (size_t i = 0; i < c->count; i++) {
        printf("%s: %s\n", c->runs[i]->label, c->runs[i]->directory);
        columns[i + 1] = (struct rm_column){c->runs[i]->label, true, 0};
    }
    putchar('\n');
    if (!json_object_size(c->differences))
        puts("settings, versions and hosts are the same");
    rm_table_begin(&table, columns, c->count + 1);
    json_object_foreach(c->differences, what, values)
    {
        rm_table_cell(&table, "%s", what);
        for (size_t i = 0; i < c->count; i++)
            rm_table_cell(&table, "%s", json_string_value(json_array_get(values, i)));
    }
    rm_table_end(&table, stdout, style);
}

static const char *limit_of(const struct run *run)
{
    if (!run->explained || !run->explained->known)
        return "-";
    return run->explained->single ? rm_station_name(run->explained->first) : "several";
}

static void cell_number(struct rm_table *table, double value)
{
    rm_table_cell(table, "%s", rm_format_number(value).s);
}

static void print_effects(const struct comparison *c, const struct rm_style *style)
{
    static const struct rm_column columns[] = {
        {"RUN", true, 0},   {"STEPS/S", false, 0}, {"RATIO", false, 0},      {"MODEL", false, 2},
        {"LIMIT", true, 1}, {"SCORE", false, 0},   {"EVALUATION", false, 0}, {"ERROR", false, 0}};
    struct rm_table table;
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < c->count; i++) {
        const struct run *run = c->runs[i];
        rm_table_cell(&table, "%s", run->label);
        cell_number(&table, run->steps_per_s);
        cell_number(&table, run->ratio);
        cell_number(&table, i ? run->predicted : (double)NAN);
        rm_table_cell(&table, "%s", limit_of(run));
        cell_number(&table, run->score_there);
        cell_number(&table, run->evaluation);
        cell_number(&table, run->error);
    }
    putchar('\n');
    rm_table_end(&table, stdout, style);
    if (isfinite(c->step))
        printf("\nSCORE is that at step %s, which all have reached.\n", rm_format_count(c->step).s);
    puts("Runs of one seed differ by chance, too: compare the reports of several seeds.");
}

static void print_json(const struct comparison *c)
{
    json_t *runs = json_array();
    for (size_t i = 0; i < c->count; i++) {
        const struct run *run = c->runs[i];
        json_array_append_new(
            runs, json_pack("{s:s,s:s,s:o,s:o,s:o,s:s,s:o,s:o,s:o}", "name", run->experiment.name,
                            "directory", run->directory, "steps_per_s",
                            rm_json_finite(run->steps_per_s), "ratio", rm_json_finite(run->ratio),
                            "predicted_ratio", rm_json_finite(run->predicted), "limit",
                            limit_of(run), "score", rm_json_finite(run->score_there), "evaluation",
                            rm_json_finite(run->evaluation), "evaluation_error",
                            rm_json_finite(run->error)));
    }
    json_t *all = json_pack("{s:o,s:O,s:o}", "runs", runs, "differences", c->differences,
                            "score_at_step", rm_json_finite(c->step));
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
}

int rm_ctl_compare(const struct rm_ctl_arguments *given)
{
    const struct rm_style style = rm_style_of(stdout);
    struct comparison c = {.count = 0};
    int rc = 0;
    if (given->rest_count < 1 || given->rest_count >= RUNS_MAX)
        return rm_ctl_complain(RM_CTL_USAGE, "compare needs 2 to %d runs", RUNS_MAX);
    for (size_t i = 0; rc == 0 && i <= given->rest_count; i++) {
        struct run *run = calloc(1, sizeof *run);
        if (!run) {
            rc = rm_ctl_complain(RM_CTL_FAILED, "no memory for a run");
            break;
        }
        c.runs[c.count++] = run;
        /* The last argument is the first of the rest. */
        rc = read_run(run, given, i ? given->rest[given->rest_count - i] : given->argument[0]);
    }
    if (rc == 0) {
        compare(&c);
        if (rm_ctl_flag(given, "json")) {
            print_json(&c);
        } else {
            print_differences(&c, &style);
            print_effects(&c, &style);
        }
    }
    json_decref(c.differences);
    for (size_t i = 0; i < c.count; i++)
        free_run(c.runs[i]);
    return rc;
}
