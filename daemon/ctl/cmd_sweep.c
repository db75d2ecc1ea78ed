/* sweep: runs an experiment once for each combination of the values in `sweep`. `ringctl run`
 * starts itself for each run, a few at a time, and prints a table of all runs at the end. Finished
 * runs are not repeated; an interrupted run is resumed from its checkpoint. */
#include "daemon/ctl/command.h"

#include "config/config.h"
#include "config/json_value.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/curve.h"
#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/interrupt.h"
#include "daemon/ctl/start_run.h"
#include "daemon/ctl/plot.h"
#include "daemon/ctl/seeds.h"
#include "daemon/ctl/snapshot.h"
#include "daemon/format.h"
#include "daemon/socket_path.h"
#include "daemon/table.h"
#include "shm/base/clock.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS_MAX   10000u
#define KEYS_MAX   16u
#define JOBS_MAX   256u
#define RANGE_MOST 100000.0
#define LIVE_MS    1000
#define ANSWER_NS  (RM_NS_PER_S / 2) /* of a run that is asked for its line */

struct run {
    char name[RM_TEXT_MAX];
    size_t value[KEYS_MAX]; /* which of each key's values */
    pid_t pid;
    bool finished, failed;
    double score, error, steps, seconds;
};

struct sweep {
    const struct rm_ctl_arguments *given;
    const struct rm_experiment *experiment;
    char directory[PATH_MAX], folder[PATH_MAX];
    size_t keys;
    const char *key[KEYS_MAX];
    json_t *sweep, *values[KEYS_MAX]; /* lists */
    bool seeded;                      /* seed is among the keys */
    json_int_t seeds;                 /* --seeds; 0: not given */
    size_t runs;
    struct run *run;
    size_t drawn; /* live lines on the terminal */
};

/* --- the runs --------------------------------------------------------------------------------- */

/* The values of a key: a list, or those of a range. NULL: it is neither. */
static json_t *list_of(json_t *value)
{
    double from, to, step = 1;
    if (json_is_array(value) && json_array_size(value) > 0)
        return json_incref(value);
    if (!json_is_object(value) ||
        json_unpack(value, "{s:F, s:F, s?F!}", "from", &from, "to", &to, "step", &step) < 0 ||
        step <= 0 || to < from || (to - from) / step > RANGE_MOST)
        return NULL;
    json_t *list = json_array();
    for (uint32_t i = 0; i <= (to - from) / step + 1e-9; i++) {
        const double v = from + i * step;
        json_array_append_new(list, v == floor(v) ? json_integer((json_int_t)v) : json_real(v));
    }
    return list;
}

static int read_keys(struct sweep *s)
{
    const char *key;
    json_t *value;
    s->runs = 1;
    s->sweep = json_loads(s->experiment->sweep, 0, NULL);
    if (s->seeds && json_object_get(s->sweep, "seed"))
        return rm_ctl_complain(RM_CTL_USAGE,
                               "--seeds cannot be used with a sweep over seed, as in %s",
                               s->given->argument[0]);
    if (s->seeds) {
        const json_int_t from = (json_int_t)s->experiment->seed;
        json_object_set_new(s->sweep, "seed",
                            json_pack("{s:I,s:I}", "from", from, "to", from + s->seeds - 1));
    }
    json_object_foreach(s->sweep, key, value)
    {
        if (s->keys == KEYS_MAX)
            return rm_ctl_complain(RM_CTL_BAD_CONFIGURATION, "sweep: more than %u keys", KEYS_MAX);
        json_t *list = list_of(value);
        if (!list)
            return rm_ctl_complain(RM_CTL_BAD_CONFIGURATION,
                                   "sweep: %s should be a list of values that is not empty, or a "
                                   "range {\"from\": 1, \"to\": 20}, perhaps with a \"step\"",
                                   key);
        s->seeded |= strcmp(key, "seed") == 0;
        s->key[s->keys] = key;
        s->values[s->keys++] = list;
        if (s->runs > RUNS_MAX / json_array_size(list))
            return rm_ctl_complain(RM_CTL_BAD_CONFIGURATION, "sweep: more than %u runs", RUNS_MAX);
        s->runs *= json_array_size(list);
    }
    s->run = calloc(s->runs, sizeof *s->run);
    return s->run ? 0 : rm_ctl_complain(RM_CTL_FAILED, "sweep: no memory");
}

static char *text_of(const json_t *value)
{
    return json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
}

/* The settings of a run, "KEY=VALUE", after those of the command line; each to be freed. */
static size_t settings_of(const struct sweep *s, size_t number, char **setting)
{
    const struct run *run = &s->run[number];
    size_t n = 0;
    for (size_t k = 0; k < s->keys; k++) {
        char *value = text_of(json_array_get(s->values[k], run->value[k]));
        if (asprintf(&setting[n], "%s=%s", s->key[k], value ? value : "null") >= 0)
            n++;
        free(value);
    }
    if (!s->seeded &&
        asprintf(&setting[n], "seed=%llu", (unsigned long long)s->experiment->seed + number) >= 0)
        n++;
    if (asprintf(&setting[n], "sweep={}") >= 0)
        n++;
    if (asprintf(&setting[n], "report=false") >= 0)
        n++;
    return n;
}

static int load(const struct sweep *s, size_t number, struct rm_experiment *experiment,
                struct rm_error *error)
{
    struct rm_override overrides[RM_CTL_GIVEN_MAX + KEYS_MAX + 3];
    char *setting[KEYS_MAX + 3];
    size_t count = 0;
    const size_t n = settings_of(s, number, setting);
    for (size_t i = 0; i < s->given->given_count; i++)
        if (!strcmp(s->given->given[i].option->name, "set"))
            overrides[count++].text = s->given->given[i].value;
    for (size_t i = 0; i < n; i++)
        overrides[count++].text = setting[i];
    const int rc = rm_config_load(experiment, s->given->argument[0], overrides, count, error);
    for (size_t i = 0; i < n; i++)
        free(setting[i]);
    return rc;
}

/* All combinations, the last key first; each must be an experiment. */
static int make_runs(struct sweep *s)
{
    static struct rm_experiment experiment;
    const char *name = rm_ctl_value(s->given, "name");
    for (size_t i = 0; i < s->runs; i++) {
        struct run *run = &s->run[i];
        struct rm_error error = {""};
        size_t left = i;
        for (size_t k = s->keys; k-- > 0;) {
            run->value[k] = left % json_array_size(s->values[k]);
            left /= json_array_size(s->values[k]);
        }
        snprintf(run->name, sizeof run->name, "%.40s.%03zu", name ? name : s->experiment->name, i);
        if (load(s, i, &experiment, &error) < 0)
            return rm_ctl_complain(RM_CTL_BAD_CONFIGURATION, "run %zu of the sweep: %s", i,
                                   error.text);
    }
    return 0;
}

/* --- what is there ---------------------------------------------------------------------------- */

/* Reads the result of a run. False: it is not finished. */
static bool read_result(const struct sweep *s, struct run *run)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/latest/summary.json", s->directory, run->name);
    json_t *summary = json_load_file(path, 0, NULL);
    const bool finished = json_is_true(json_object_get(summary, "finished"));
    if (finished) {
        run->score = rm_json_number_at(summary, "evaluation.mean");
        run->error = rm_json_number_at(summary, "evaluation.stderr");
        if (isnan(run->score))
            run->score = rm_json_number_at(summary, "score.last");
        run->steps = rm_json_number_at(summary, "progress.steps");
        run->seconds = rm_json_number_at(summary, "trained_s");
    }
    json_decref(summary);
    return run->finished = finished;
}

/* Has the run that is there the values of this one? */
static int check_values(const struct sweep *s, size_t number)
{
    static struct rm_experiment there, here;
    char path[2 * PATH_MAX];
    struct rm_error error = {""};
    snprintf(path, sizeof path, "%s/%s/latest/config.json", s->directory, s->run[number].name);
    if (access(path, R_OK) < 0)
        return 0;
    if (rm_config_load(&there, path, NULL, 0, &error) < 0 || load(s, number, &here, &error) < 0)
        return rm_ctl_complain(RM_CTL_FAILED, "%s", error.text);
    bool same = there.seed == here.seed;
    for (size_t k = 0; same && k < s->keys; k++) {
        json_t *a = rm_config_get(&there, s->key[k], NULL),
               *b = rm_config_get(&here, s->key[k], NULL);
        same = json_equal(a, b);
        json_decref(a);
        json_decref(b);
    }
    return same ? 0
                : rm_ctl_complain(RM_CTL_FAILED,
                                  "%s/%s is a run with other values than run %zu of the sweep; use "
                                  "another --name, or --fresh",
                                  s->directory, s->run[number].name, number);
}

/* --- on the terminal -------------------------------------------------------------------------- */

static void clear_lines(struct sweep *s)
{
    if (s->drawn)
        printf("\033[%zuA\033[J", s->drawn);
    s->drawn = 0;
}

/* What a run answers now; false: nothing yet, or nothing any more. */
static bool ask(const struct run *run, struct rm_snapshot *now)
{
    struct rm_ctl_client client;
    struct rm_error error = {""};
    char socket[RM_SOCKET_PATH_MAX];
    json_t *status = NULL;
    if (rm_socket_path(socket, run->name, &error) < 0 ||
        rm_ctl_client_open(&client, socket, ANSWER_NS, &error) < 0)
        return false;
    if (rm_ctl_client_call(&client, "status", NULL, &status, &error) == 0)
        rm_snapshot_read(now, status);
    rm_ctl_client_close(&client);
    json_decref(status);
    return status != NULL;
}

/* Bytes of a line that fit without a part of a field. */
static int whole_fields(const char *line, int width)
{
    if ((int)strlen(line) <= width)
        return width;
    for (int i = width; i > 1; i--)
        if (line[i] == ' ' && (line[i - 1] == ' ' || line[i + 1] == ' '))
            return i;
    return width;
}

/* A line for each run that is going on, as many as the terminal has room for; redrawn in place. */
static void draw_lines(struct sweep *s, const struct rm_style *style)
{
    static struct rm_snapshot now;
    struct winsize size;
    size_t room =
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 2 ? size.ws_row : 24;
    const int width = style->width > 1 ? style->width - 1 : 79;
    clear_lines(s);
    for (size_t i = 0; i < s->runs && s->drawn + 2 < room; i++) {
        char line[512];
        if (s->run[i].pid <= 0)
            continue;
        if (ask(&s->run[i], &now))
            snprintf(line, sizeof line, "%s %-8s %6s  %s of %s steps  %s/s  score %s  %s left",
                     s->run[i].name, now.state, rm_format_percent(rm_snapshot_progress(&now)).s,
                     rm_format_count(now.steps).s, rm_format_count(now.steps_budget).s,
                     rm_format_count(now.steps_per_s).s, rm_format_measure(now.score_last).s,
                     rm_format_duration(now.left_s).s);
        else
            snprintf(line, sizeof line, "%s starting", s->run[i].name);
        printf("%.*s\n", whole_fields(line, width), line);
        s->drawn++;
    }
    fflush(stdout);
}

/* --- running them ----------------------------------------------------------------------------- */

static void start(struct sweep *s, size_t number)
{
    struct run *run = &s->run[number];
    char *setting[KEYS_MAX + 3], log[2 * PATH_MAX];
    const size_t settings = settings_of(s, number, setting);
    snprintf(log, sizeof log, "%s/%03zu.log", s->folder, number);
    run->pid = rm_start_run(&(struct rm_run_start){.given = s->given,
                                                   .setting = setting,
                                                   .settings = settings,
                                                   .name = run->name,
                                                   .directory = s->directory,
                                                   .log = log,
                                                   .fresh = rm_ctl_flag(s->given, "fresh")});
    run->failed = run->pid < 0;
    for (size_t i = 0; i < settings; i++)
        free(setting[i]);
}

static void note_end(struct sweep *s, pid_t pid, int status, size_t *left)
{
    clear_lines(s);
    for (size_t i = 0; i < s->runs; i++) {
        struct run *run = &s->run[i];
        if (run->pid != pid)
            continue;
        run->pid = 0;
        if (read_result(s, run))
            printf("%s: %s\n", run->name, rm_format_number(run->score).s);
        else if (!rm_interrupted()) {
            run->failed = true;
            printf("%s failed, code %d: %s/%03zu.log says why\n", run->name,
                   WIFEXITED(status) ? WEXITSTATUS(status) : -1, s->folder, i);
        }
        fflush(stdout);
        --*left;
    }
}

static void on_end(int number)
{
    (void)number;
}

/* The next run that has ended; -1: interrupted, or there is none. On a terminal, lines are drawn
 * meanwhile. */
static pid_t wait_for_one(struct sweep *s, const struct rm_style *style, int *status)
{
    const bool live = isatty(STDOUT_FILENO) && style->width > 0;
    const int before = rm_interrupted();
    pid_t pid = waitpid(-1, status, live ? WNOHANG : 0);
    while (pid == 0 && rm_interrupted() == before) {
        draw_lines(s, style);
        poll(NULL, 0, LIVE_MS); /* the end of a run interrupts it */
        pid = waitpid(-1, status, WNOHANG);
    }
    errno = pid == 0 ? EINTR : errno;
    return pid ? pid : -1;
}

/* Makes the runs that are not finished. */
static void run_all(struct sweep *s, size_t jobs)
{
    const struct sigaction action = {.sa_handler = on_end, .sa_flags = SA_NOCLDSTOP};
    const struct rm_style style = rm_style_of(stdout);
    size_t next = 0, running = 0;
    sigaction(SIGCHLD, &action, NULL);
    bool told = false;
    while (running > 0 || (!rm_interrupted() && next < s->runs)) {
        if (rm_interrupted() && !told) {
            for (size_t i = 0; i < s->runs; i++)
                if (s->run[i].pid > 0)
                    kill(s->run[i].pid, SIGTERM);
            told = true;
        }
        if (!rm_interrupted() && running < jobs && next < s->runs) {
            if (!s->run[next].finished) {
                start(s, next);
                running += !s->run[next].failed;
            }
            next++;
            continue;
        }
        int status;
        const pid_t pid = wait_for_one(s, &style, &status);
        if (pid > 0)
            note_end(s, pid, status, &running);
        else if (errno == ECHILD)
            break;
    }
}

/* --- results ---------------------------------------------------------------------------------- */

struct outcome {
    size_t runs;
    double mean, middle, low, high; /* middle's interval of 95 %, NAN with fewer than 2 runs */
};

/* Of the finished runs that differ from run `of` in the seed alone; of all runs if it is SIZE_MAX.
 */
static struct outcome outcome_of(const struct sweep *s, size_t of)
{
    struct outcome out = {.mean = NAN, .middle = NAN, .low = NAN, .high = NAN};
    double *score = calloc(s->runs, sizeof *score), sum = 0;
    for (size_t i = 0; score && i < s->runs; i++) {
        bool counts = s->run[i].finished && !isnan(s->run[i].score);
        for (size_t k = 0; of != SIZE_MAX && k < s->keys; k++)
            counts &= strcmp(s->key[k], "seed") == 0 || s->run[i].value[k] == s->run[of].value[k];
        if (counts)
            sum += score[out.runs++] = s->run[i].score;
    }
    if (out.runs) {
        out.mean = sum / (double)out.runs;
        out.middle = rm_interquartile_mean(score, out.runs);
        rm_interquartile_interval(score, out.runs, &out.low, &out.high);
    }
    free(score);
    return out;
}

static void cell_number(struct rm_table *table, double value)
{
    if (isnan(value))
        rm_table_cell(table, "-");
    else
        rm_table_cell(table, "%s", rm_format_number(value).s);
}

static void cell_outcome(struct rm_table *table, const struct outcome *out)
{
    rm_table_cell(table, "%zu", out->runs);
    cell_number(table, out->mean);
    cell_number(table, out->middle);
    cell_number(table, out->low);
    cell_number(table, out->high);
}

static void cell_value(const struct sweep *s, struct rm_table *table, size_t number, size_t k)
{
    char *text = text_of(json_array_get(s->values[k], s->run[number].value[k]));
    rm_table_cell(table, "%s", text ? text : "");
    free(text);
}

static void print_runs(const struct sweep *s, const struct rm_style *style)
{
    struct rm_column columns[KEYS_MAX + 5] = {{"RUN", true, 0}};
    size_t n = 1;
    struct rm_table table;
    for (size_t k = 0; k < s->keys; k++)
        columns[n++] = (struct rm_column){s->key[k], true, 0};
    columns[n++] = (struct rm_column){"SCORE", false, 0};
    columns[n++] = (struct rm_column){"ERROR", false, 1};
    columns[n++] = (struct rm_column){"STEPS", false, 2};
    columns[n++] = (struct rm_column){"SECONDS", false, 3};
    rm_table_begin(&table, columns, n);
    for (size_t i = 0; i < s->runs; i++) {
        const struct run *run = &s->run[i];
        rm_table_cell(&table, "%s", run->name);
        for (size_t k = 0; k < s->keys; k++)
            cell_value(s, &table, i, k);
        cell_number(&table, run->finished ? run->score : (double)NAN);
        cell_number(&table, run->finished ? run->error : (double)NAN);
        cell_number(&table, run->finished ? run->steps : (double)NAN);
        cell_number(&table, run->finished ? run->seconds : (double)NAN);
    }
    putchar('\n');
    rm_table_end(&table, stdout, style);
}

/* Of all runs, and of those over seeds for each combination of the other keys. */
static void print_outcomes(const struct sweep *s, const struct rm_style *style)
{
    struct rm_column columns[KEYS_MAX + 6];
    size_t n = 0, places[KEYS_MAX], others = 0;
    struct rm_table table;
    for (size_t k = 0; k < s->keys; k++)
        if (strcmp(s->key[k], "seed") != 0 && s->seeded) {
            places[others++] = k;
            columns[n++] = (struct rm_column){s->key[k], true, 0};
        }
    static const char *const titles[] = {"RUNS", "MEAN", "IQM", "FROM", "TO"};
    for (size_t t = 0; t < sizeof titles / sizeof titles[0]; t++)
        columns[n++] = (struct rm_column){titles[t], false, 0};
    rm_table_begin(&table, columns, n);
    for (size_t i = 0; others && i < s->runs; i++) {
        bool first = true; /* of its combination */
        for (size_t k = 0; k < s->keys; k++)
            first &= strcmp(s->key[k], "seed") != 0 || s->run[i].value[k] == 0;
        if (!first)
            continue;
        for (size_t k = 0; k < others; k++)
            cell_value(s, &table, i, places[k]);
        const struct outcome out = outcome_of(s, i);
        cell_outcome(&table, &out);
    }
    const struct outcome all = outcome_of(s, SIZE_MAX);
    for (size_t k = 0; k < others; k++)
        rm_table_cell(&table, k ? "" : "all");
    cell_outcome(&table, &all);
    putchar('\n');
    rm_table_end(&table, stdout, style);
}

static void put_csv(FILE *out, double value)
{
    if (isnan(value))
        fputc(',', out);
    else
        fprintf(out, ",%.10g", value);
}

static int write_table(const struct sweep *s)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/table.csv", s->folder);
    FILE *out = fopen(path, "we");
    if (!out)
        return rm_ctl_complain(RM_CTL_FAILED, "%s: %s", path, strerror(errno));
    fputs("run", out);
    for (size_t k = 0; k < s->keys; k++)
        fprintf(out, ",%s", s->key[k]);
    fputs(",score,error,steps,seconds\n", out);
    for (size_t i = 0; i < s->runs; i++) {
        const struct run *run = &s->run[i];
        fputs(run->name, out);
        for (size_t k = 0; k < s->keys; k++) {
            char *text = text_of(json_array_get(s->values[k], run->value[k]));
            fputs(",\"", out);
            for (const char *c = text; c && *c; c++)
                fputs(*c == '"' ? "\"\"" : (char[2]){*c, 0}, out);
            fputc('"', out);
            free(text);
        }
        put_csv(out, run->finished ? run->score : (double)NAN);
        put_csv(out, run->finished ? run->error : (double)NAN);
        put_csv(out, run->finished ? run->steps : (double)NAN);
        put_csv(out, run->finished ? run->seconds : (double)NAN);
        fputc('\n', out);
    }
    return fclose(out) == 0 ? 0 : rm_ctl_complain(RM_CTL_FAILED, "%s: %s", path, strerror(errno));
}

/* A curve of each run, and their interquartile mean. Returns whether there was one to draw. */
static bool draw(const struct sweep *s)
{
    struct rm_plot *plot = calloc(1, sizeof *plot);
    struct rm_seeds *seeds = calloc(1, sizeof *seeds);
    struct rm_curve *curve = calloc(s->runs + 1, sizeof *curve);
    const struct rm_curve **found = calloc(s->runs + 1, sizeof(void *));
    char path[PATH_MAX + 2 * RM_TEXT_MAX];
    size_t count = 0;
    for (size_t i = 0; plot && seeds && curve && found && i < s->runs; i++) {
        snprintf(path, sizeof path, "%s/%s/latest", s->directory, s->run[i].name);
        rm_curve_read(&curve[i], path, "score_last", "steps");
        struct rm_plot_series *line = curve[i].count ? rm_plot_add(plot) : NULL;
        if (curve[i].count)
            found[count++] = &curve[i];
        if (line)
            *line = (struct rm_plot_series){
                .x = curve[i].at, .y = curve[i].values, .count = curve[i].count, .thin = true};
    }
    if (count) {
        plot->title = s->experiment->name;
        plot->x_label = "steps per agent";
        plot->y_label = "score, mean of the latest episodes";
        rm_seeds_of(seeds, found, count);
        rm_plot_add_seeds(plot, seeds, count);
    }
    snprintf(path, sizeof path, "%s/curves.svg", s->folder);
    FILE *out = count ? fopen(path, "we") : NULL;
    const bool drawn = out && rm_plot_write(out, plot);
    const bool closed = out && fclose(out) == 0;
    for (size_t i = 0; curve && i < s->runs; i++)
        rm_curve_close(&curve[i]);
    free(plot);
    free(seeds);
    free(curve);
    free(found);
    return drawn && closed;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int prepare(struct sweep *s)
{
    const char *directory = rm_ctl_value(s->given, "run-directory");
    const char *name = rm_ctl_value(s->given, "name");
    for (int i = 0; i < 2; i++)
        if (rm_ctl_value(s->given, i ? "socket" : "resume"))
            return rm_ctl_complain(RM_CTL_USAGE, "--%s is for one run, and %s has a sweep",
                                   i ? "socket" : "resume", s->given->argument[0]);
    snprintf(s->directory, sizeof s->directory, "%s",
             directory ? directory : s->experiment->run.directory);
    if ((size_t)snprintf(s->folder, sizeof s->folder, "%.3000s/%.40s.sweep", s->directory,
                         name ? name : s->experiment->name) >= sizeof s->folder)
        return rm_ctl_complain(RM_CTL_FAILED, "%s: the path is too long", s->directory);
    int rc = read_keys(s);
    if (rc == 0)
        rc = make_runs(s);
    for (size_t i = 0; rc == 0 && !rm_ctl_flag(s->given, "fresh") && i < s->runs; i++) {
        rc = check_values(s, i);
        (void)read_result(s, &s->run[i]);
    }
    if (rc == 0 && ((mkdir(s->directory, 0750) < 0 && errno != EEXIST) ||
                    (mkdir(s->folder, 0750) < 0 && errno != EEXIST)))
        rc = rm_ctl_complain(RM_CTL_FAILED, "%s: %s", s->folder, strerror(errno));
    return rc;
}

/* Of the runs that are there. NULL: none, or too many for a page. */
static const char *write_report(const struct sweep *s)
{
    static char page[PATH_MAX + 16];
    const char *names[RM_CTL_REST_MAX];
    char *made[RM_CTL_REST_MAX];
    size_t count = 0;
    for (size_t i = 0; s->runs <= RM_CTL_REST_MAX && i < s->runs; i++)
        if (s->run[i].finished &&
            asprintf(&made[count], "%s/%s/latest", s->directory, s->run[i].name) >= 0)
            names[count] = made[count], count++;
    snprintf(page, sizeof page, "%s/report.html", s->folder);
    const int rc = count ? rm_ctl_report_runs(s->given, page, NULL, names, count) : -1;
    while (count)
        free(made[--count]);
    return rc == 0 ? page : NULL;
}

static int finish(const struct sweep *s)
{
    const struct rm_style style = rm_style_of(stdout);
    size_t failed = 0;
    for (size_t i = 0; i < s->runs; i++)
        failed += !s->run[i].finished;
    print_runs(s, &style);
    print_outcomes(s, &style);
    if (write_table(s))
        return RM_CTL_FAILED;
    printf("\n%s/table.csv%s\n", s->folder, !rm_interrupted() && draw(s) ? " and curves.svg" : "");
    const char *page = s->experiment->report && !rm_interrupted() ? write_report(s) : NULL;
    if (page)
        printf("report: %s\n", page);
    else if (s->experiment->report && s->runs > RM_CTL_REST_MAX)
        printf("no report: a page has at most %d runs; ringctl report RUN... makes one of some\n",
               RM_CTL_REST_MAX);
    if (failed)
        printf("%zu of %zu %s not finished; the same command continues them\n", failed, s->runs,
               rm_plural(s->runs, "run is", "runs are"));
    return failed ? RM_CTL_FAILED : RM_CTL_OK;
}

static void forget(struct sweep *s)
{
    for (size_t k = 0; k < s->keys; k++)
        json_decref(s->values[k]);
    json_decref(s->sweep);
    free(s->run);
}

int rm_ctl_sweep_check(const struct rm_ctl_arguments *given, const struct rm_experiment *experiment,
                       size_t *runs)
{
    static struct sweep s;
    s = (struct sweep){.given = given, .experiment = experiment};
    int code = read_keys(&s);
    if (code == 0)
        code = make_runs(&s);
    *runs = s.runs;
    forget(&s);
    return code;
}

int rm_ctl_sweep(const struct rm_ctl_arguments *given, const struct rm_experiment *experiment)
{
    static struct sweep s;
    s.given = given;
    s.experiment = experiment;
    uint32_t jobs = (uint32_t)rm_usable_cores(), seeds = 0;
    if (rm_ctl_whole(given, "seeds", 1, RUNS_MAX, &seeds) ||
        rm_ctl_whole(given, "jobs", 1, JOBS_MAX, &jobs))
        return RM_CTL_USAGE;
    s.seeds = seeds;
    int code = prepare(&s);
    if (code == 0) {
        rm_interrupt_watch();
        printf("%zu %s, %zu at a time, below %s\n", s.runs, rm_plural(s.runs, "run", "runs"),
               jobs < s.runs ? jobs : s.runs, s.directory);
        fflush(stdout);
        run_all(&s, jobs);
        code = finish(&s);
    }
    forget(&s);
    return code;
}
