#include "daemon/ctl/window.h"

#include "config/config.h"
#include "config/json_value.h"
#include "config/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAIL_BYTES   (4 << 20) /* of metrics.csv are read, beside its first line */
#define WINDOW_S     60.0      /* longest window */
#define WARM_UP      0.4       /* share of the time that the window leaves out at the beginning */
#define WINDOW_MIN_S 0.1
#define SETTING      "setting." /* columns with the hot keys at a row */

/* --- rows of metrics ------------------------------------------------------------------------- */

void rm_run_window_free(struct rm_run_window *w)
{
    free(w->text);
    free(w->names);
    free(w->values);
}

static size_t commas(const char *line, const char *end)
{
    size_t n = 0;
    for (; line < end; line++)
        n += *line == ',';
    return n;
}

static const char *line_end(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end : line + strlen(line);
}

/* Parses a row of `columns` numbers; what is empty is NAN. */
static void parse_row(double *values, size_t columns, const char *at)
{
    for (size_t i = 0; i < columns; i++) {
        char *end;
        values[i] = strtod(at, &end);
        if (end == at || *at == '\n')
            values[i] = NAN;
        at += strcspn(at, ",\n");
        at += *at == ',';
    }
}

/* One row more than the text has, for the running experiment's. */
static int parse_rows(struct rm_run_window *w, const char *csv)
{
    const char *first = line_end(csv);
    size_t lines = 0;
    for (const char *c = first; *c; c++)
        lines += *c == '\n';
    w->columns = commas(csv, first) + 1;
    w->text = strndup(csv, (size_t)(first - csv));
    w->names = malloc(w->columns * sizeof *w->names);
    w->values = calloc((lines + 1) * w->columns, sizeof *w->values);
    if (!w->text || !w->names || !w->values)
        return -ENOMEM;
    char *rest = NULL;
    size_t i = 0;
    for (char *name = strtok_r(w->text, ",", &rest); name && i < w->columns;
         name = strtok_r(NULL, ",", &rest))
        w->names[i++] = name;
    if (i < w->columns)
        return -EPROTO;
    for (const char *line = first; *line == '\n' && line[1]; line = line_end(line + 1)) {
        const char *end = line_end(line + 1);
        /* The last line of a run that goes on may not be whole, nor the first of a tail. */
        if (*end != '\n' || commas(line + 1, end) + 1 != w->columns)
            continue;
        parse_row(w->values + w->count++ * w->columns, w->columns, line + 1);
    }
    return 0;
}

static double *row_of(const struct rm_run_window *w, size_t row)
{
    return w->values + row * w->columns;
}

double rm_run_window_value(const struct rm_run_window *w, size_t row, const char *column)
{
    for (size_t i = 0; i < w->columns; i++)
        if (!strcmp(w->names[i], column))
            return row_of(w, row)[i];
    return NAN;
}

double rm_run_window_value_of(const struct rm_run_window *w, size_t row, const char *kind,
                              const char *name, const char *metric)
{
    char column[256];
    snprintf(column, sizeof column, "%s.%s.%s", kind, name, metric);
    return rm_run_window_value(w, row, column);
}

static void put(const struct rm_run_window *w, double *row, const char *name, const json_t *number)
{
    for (size_t i = 0; i < w->columns; i++)
        if (!strcmp(w->names[i], name))
            row[i] = rm_json_number(number);
}

static void put_blocks(const struct rm_run_window *w, double *row, const char *kind,
                       const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *block = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(block, "name")), *metric;
        json_t *number;
        char column[256];
        json_object_foreach(json_object_get(block, "values"), metric, number)
        {
            snprintf(column, sizeof column, "%s.%s.%s", kind, name ? name : "", metric);
            put(w, row, column, number);
        }
    }
}

/* A reply to `metrics` as one more row. */
static void add_now(struct rm_run_window *w, const json_t *now)
{
    const json_t *host = json_object_get(now, "host");
    const char *key;
    json_t *setting;
    char column[256];
    double *row = row_of(w, w->count++);
    for (size_t i = 0; i < w->columns; i++)
        row[i] = NAN;
    put(w, row, "time_s", json_object_get(now, "time_s"));
    put(w, row, "steps", json_object_get(now, "steps"));
    put(w, row, "host_cores", json_object_get(host, "cores"));
    put(w, row, "host_cpu_s", json_object_get(host, "cpu_s"));
    put(w, row, "host_steal_s", json_object_get(host, "steal_s"));
    put(w, row, "daemon_cpu_s", json_object_get(host, "daemon_cpu_s"));
    json_object_foreach(json_object_get(now, "settings"), key, setting)
    {
        snprintf(column, sizeof column, SETTING "%s", key);
        put(w, row, column, setting);
    }
    put_blocks(w, row, "policy", json_object_get(now, "policies"));
    put_blocks(w, row, "worker", json_object_get(now, "workers"));
}

char *rm_run_window_read(const char *path, struct rm_error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
    struct stat about;
    char *line = NULL, *text = NULL;
    size_t room = 0;
    if (!in || fstat(fd, &about) < 0) {
        rm_fail(error, -errno, "%s: %s", path, strerror(errno));
    } else {
        const ssize_t head = S_ISREG(about.st_mode) ? getline(&line, &room, in) : -1;
        const off_t from = about.st_size > head + TAIL_BYTES ? about.st_size - TAIL_BYTES : head;
        if (head > 0 && (text = malloc((size_t)head + TAIL_BYTES + 2))) {
            memcpy(text, line, (size_t)head);
            fseeko(in, from, SEEK_SET);
            const size_t n = fread(text + head, 1, TAIL_BYTES, in);
            text[(size_t)head + n] = '\0';
        } else {
            rm_fail(error, -ENODATA, "%s: nothing is in it", path);
        }
    }
    free(line);
    if (in)
        fclose(in);
    else if (fd >= 0)
        close(fd);
    return text;
}

/* --- the window ------------------------------------------------------------------------------ */

double rm_run_window_grown(const struct rm_run_window *w, const char *column)
{
    const double from = rm_run_window_value(w, w->first, column);
    const double to = rm_run_window_value(w, w->last, column);
    return to >= from ? to - from : NAN;
}

double rm_run_window_grown_of(const struct rm_run_window *w, const char *kind, const char *name,
                              const char *metric)
{
    const double from = rm_run_window_value_of(w, w->first, kind, name, metric);
    const double to = rm_run_window_value_of(w, w->last, kind, name, metric);
    return to > from ? to - from : 0;
}

bool rm_run_window_name(const struct rm_run_window *w, size_t i, const char *kind,
                        const char *metric, char *name)
{
    const char *column = w->names[i];
    const size_t k = strlen(kind), all = strlen(column), m = strlen(metric);
    if (all < k + m + 3 || strncmp(column, kind, k) != 0 || column[k] != '.' ||
        column[all - m - 1] != '.' || strcmp(column + all - m, metric) != 0 ||
        all - k - m - 2 >= RM_NAME_MAX)
        return false;
    snprintf(name, RM_NAME_MAX, "%.*s", (int)(all - k - m - 2), column + k + 1);
    return true;
}

static double updates_at(const struct rm_run_window *w, size_t row)
{
    char name[RM_NAME_MAX];
    double sum = 0;
    for (size_t i = 0; i < w->columns; i++)
        if (rm_run_window_name(w, i, "policy", "updates", name))
            sum += row_of(w, row)[i];
    return sum;
}

double rm_run_window_updates(const struct rm_run_window *w)
{
    return updates_at(w, w->last) - updates_at(w, w->first);
}

/* Is this row of the same processes with the same settings as the one before? Then nothing has
 * begun again and no key has changed since. */
static bool goes_on(const struct rm_run_window *w, size_t row)
{
    const double *before = row_of(w, row - 1), *after = row_of(w, row);
    char name[RM_NAME_MAX];
    for (size_t i = 0; i < w->columns; i++)
        if ((rm_run_window_name(w, i, "worker", "cpu_ns", name) && after[i] < before[i]) ||
            (!strncmp(w->names[i], SETTING, strlen(SETTING)) && after[i] != before[i] &&
             !(isnan(after[i]) && isnan(before[i]))))
            return false;
    return true;
}

/* Rows of earlier versions have no settings: then the configuration's stay. */
void rm_run_window_apply_settings(const struct rm_run_window *w, struct rm_experiment *e)
{
    double values[RM_HOT_COUNT];
    char column[256];
    for (size_t i = 0; i < rm_key_count; i++) {
        if (rm_keys[i].hot == RM_COLD)
            continue;
        snprintf(column, sizeof column, SETTING "%s", rm_keys[i].path);
        values[rm_keys[i].hot] = rm_run_window_value(w, w->last, column);
    }
    rm_config_apply_hot(e, values);
}

/* The counter of the policy that learned from the fewest rollouts, but from some: its column, or
 * w->columns. */
static size_t fewest_rollouts(const struct rm_run_window *w)
{
    char name[RM_NAME_MAX];
    size_t slowest = w->columns;
    double least = INFINITY;
    for (size_t i = 0; i < w->columns; i++) {
        const double grown = row_of(w, w->last)[i] - row_of(w, w->first)[i];
        if (grown > 0 && grown < least && rm_run_window_name(w, i, "policy", "rollouts", name)) {
            slowest = i;
            least = grown;
        }
    }
    return slowest;
}

static void set_window(struct rm_run_window *w, size_t first, size_t last)
{
    w->first = first;
    w->last = last;
    w->seconds = rm_run_window_value(w, last, "time_s") - rm_run_window_value(w, first, "time_s");
    w->steps = rm_run_window_value(w, last, "steps") - rm_run_window_value(w, first, "steps");
}

/* Shortens the window to whole rollouts, because a part of one has more acting or more updates than
 * its share. The window then begins and ends at a last row before a rollout is counted, which is
 * when its weights are published: there all its steps are counted, and none of the next one's. It
 * stays as it is if such rows are less than half of its time apart. */
static void keep_whole_rollouts(struct rm_run_window *w)
{
    const size_t column = fewest_rollouts(w), first = w->first, last = w->last;
    const double seconds = w->seconds;
    size_t from = last, to = first;
    w->rollout_s = 0;
    for (size_t row = first; column < w->columns && row < last; row++) {
        if (!(row_of(w, row + 1)[column] > row_of(w, row)[column]))
            continue;
        from = row < from ? row : from;
        to = row;
    }
    if (from >= to)
        return;
    set_window(w, from, to);
    w->rollout_s = w->seconds / (row_of(w, to)[column] - row_of(w, from)[column]);
    if (w->seconds < fmax(seconds / 2, WINDOW_MIN_S) || !(w->steps > 0)) {
        set_window(w, first, last);
        w->rollout_s = 0;
    }
}

/* The window that ends at row `last`. Returns whether it is long enough. */
static bool window_to(struct rm_run_window *w, size_t last)
{
    const double end_s = rm_run_window_value(w, last, "time_s");
    size_t first;
    for (first = last; first > 0; first--) {
        const double time_s = rm_run_window_value(w, first - 1, "time_s");
        if (!goes_on(w, first) || end_s - time_s > WINDOW_S || time_s < WARM_UP * end_s ||
            updates_at(w, first - 1) <= 0)
            break;
    }
    set_window(w, first, last);
    keep_whole_rollouts(w);
    return w->first < w->last && w->seconds >= WINDOW_MIN_S && w->steps > 0;
}

/* A run ends before its last row is written, so that this row's time is not all training. */
static int find(struct rm_run_window *w, bool ended, struct rm_error *error)
{
    size_t last = 0;
    if (!w->count)
        return rm_fail(error, -EAGAIN, "there are no rows of metrics yet");
    for (size_t i = 1; i < w->count; i++) /* steps stand still in the final evaluation */
        if (rm_run_window_value(w, i, "steps") > rm_run_window_value(w, last, "steps"))
            last = i;
    if ((ended && last > 0 && window_to(w, last - 1)) || window_to(w, last))
        return 0;
    const size_t rows = w->last - w->first;
    return rm_fail(error, -EAGAIN,
                   "too few rows of metrics: %zu, of which %zu belong to the latest training with "
                   "unchanged settings; train for at least %.1f s",
                   w->count, rows + (rows > 0), WINDOW_MIN_S);
}

int rm_run_window_open(struct rm_run_window *w, const char *csv, const json_t *now,
                       struct rm_error *error)
{
    *w = (struct rm_run_window){.text = NULL};
    const int rc = parse_rows(w, csv);
    if (rc)
        return rm_fail(error, rc, "metrics.csv: %s",
                       rc == -ENOMEM ? "no memory" : "no line of names");
    if (now)
        add_now(w, now);
    return find(w, !now, error);
}

/* --- duties ---------------------------------------------------------------------------------- */

static enum rm_role role_of(const char *worker)
{
    for (int r = 0; r < RM_ROLE_COUNT; r++) {
        const char *role = rm_role_name((enum rm_role)r);
        if (!strncmp(worker, role, strlen(role)))
            return (enum rm_role)r;
    }
    return RM_ROLE_SOLO;
}

static double seconds_of(const struct rm_run_window *w, const char *worker, const char *group,
                         const char *name)
{
    char metric[64];
    snprintf(metric, sizeof metric, "%s_%s_ns", group, name);
    return rm_run_window_grown_of(w, "worker", worker, metric) / 1e9;
}

static void read_duty(struct rm_run_duty *d, const struct rm_run_window *w, const char *name)
{
    memset(d, 0, sizeof *d);
    snprintf(d->name, sizeof d->name, "%s", name);
    d->role = role_of(name);
    for (int p = 0; p < RM_PHASE_COUNT; p++) {
        d->phase[p] = seconds_of(w, name, "phase", rm_phase_name((enum rm_phase)p));
        d->wall_s += d->phase[p];
    }
    for (int i = 0; i < RM_WAIT_COUNT; i++)
        d->wait[i] = seconds_of(w, name, "wait", rm_wait_name((enum rm_wait)i));
    d->cpu = rm_run_window_grown_of(w, "worker", name, "cpu_ns") / 1e9;
    d->world_cpu = rm_run_window_grown_of(w, "worker", name, "world_cpu_ns") / 1e9;
    d->no_core = rm_run_window_grown_of(w, "worker", name, "run_delay_ns") / 1e9;
    d->turns = rm_run_window_grown_of(w, "worker", name, "turns");
    d->sleeps = rm_run_window_grown_of(w, "worker", name, "sleeps");
}

uint32_t rm_run_window_duties(const struct rm_run_window *w, struct rm_run_duty *duty)
{
    char name[RM_NAME_MAX];
    uint32_t n = 0;
    for (size_t i = 0; i < w->columns && n < RM_BOARD_WORKERS; i++) {
        if (!rm_run_window_name(w, i, "worker", "turns", name))
            continue;
        read_duty(&duty[n], w, name);
        n += duty[n].wall_s > 0;
    }
    return n;
}

double rm_run_duty_busy_s(const struct rm_run_duty *d)
{
    return d->wall_s - d->phase[RM_PHASE_WAITING] - d->phase[RM_PHASE_CHECKPOINT];
}
