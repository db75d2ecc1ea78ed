#include "daemon/metrics.h"

#include "daemon/reader.h"
#include "config/schema.h"
#include "shm/atomic.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct columns {
    rm_metrics_column_fn each;
    void *user;
    size_t count;
};

static void column(struct columns *c, struct rm_metrics_column column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void column(struct columns *c, struct rm_metrics_column column, const char *format, ...)
{
    char name[256];
    va_list list;
    va_start(list, format);
    vsnprintf(name, sizeof name, format, list);
    va_end(list);
    column.name = name;
    c->each(c->user, &column);
    c->count++;
}

#define COLUMN(...) ((struct rm_metrics_column){__VA_ARGS__})

static void scores(struct columns *c, const char *what, const struct rm_scores *s, bool main)
{
    double last = NAN;
    rm_scores_last(s, &last);
    column(c, COLUMN(.value = last, .main = main), "%s_last", what);
    column(c, COLUMN(.value = (double)RM_PEEK(&s->episodes), .integer = true), "%s_episodes", what);
}

static double load(const _Atomic double *value)
{
    return RM_PEEK(value);
}

static void table(struct columns *c, const char *kind, const char *name,
                  const struct rm_metric *metrics, size_t count, const void *block,
                  bool (*is_main)(const char *metric, const void *block))
{
    for (size_t i = 0; i < count; i++)
        column(c,
               COLUMN(.value = rm_metric_value(&metrics[i], block),
                      .integer = metrics[i].type != RM_METRIC_F64,
                      .main = is_main && is_main(metrics[i].name, block)),
               "%s.%s.%s", kind, name, metrics[i].name);
}

/* Losses, of policies that have them. */
static bool is_main(const char *metric, const void *block)
{
    const struct rm_board_policy *policy = block;
    if (!strcmp(metric, "loss"))
        return RM_PEEK(&policy->updates) > 0;
    if (!strcmp(metric, "held_out_loss"))
        return RM_PEEK(&policy->held_out_loss) > 0;
    static const char *const of_rollouts[] = {"policy_loss", "value_loss", "entropy"};
    for (size_t i = 0; i < sizeof of_rollouts / sizeof of_rollouts[0]; i++)
        if (!strcmp(metric, of_rollouts[i]))
            return RM_PEEK(&policy->rollouts) > 0;
    return false;
}

/* A figure that the world has named, over the latest episodes or of the evaluation; NULL: no value
 * now. */
typedef double (*figure_fn)(const struct rm_board_view *view, uint32_t agent, uint32_t figure,
                            uint32_t value);

static void figures(struct columns *c, const struct rm_board_view *board, uint32_t a,
                    const char *what, figure_fn value_of, bool evaluation)
{
    for (uint32_t f = 0; f < board->run->figures; f++) {
        const struct rm_board_figure *figure = &board->run->figure[f];
        for (uint32_t k = 0; k < rm_board_figure_values(figure); k++)
            column(c,
                   COLUMN(.value = value_of ? value_of(board, a, f, k) : NAN, .main = true,
                          .evaluation = evaluation),
                   "agent.%s.%s.%s%s%s", board->agents[a].name, what, figure->name,
                   figure->words ? "." : "", figure->words ? figure->word[k] : "");
    }
}

static void agent_columns(struct columns *c, const struct rm_board_view *board, uint32_t a,
                          const struct rm_metrics_row *row)
{
    const struct rm_board_agent *agent = &board->agents[a];
    const bool several = board->run->agents > 1; /* a single agent's numbers are the run's */
    char what[RM_NAME_MAX + 24];
    double length = NAN;
    snprintf(what, sizeof what, "agent.%s.reward", agent->name);
    column(c, COLUMN(.value = (double)RM_PEEK(&agent->env_steps), .integer = true),
           "agent.%s.env_steps", agent->name);
    scores(c, what, &agent->scores, several);
    column(c,
           COLUMN(.value = row->evaluation ? load(&agent->eval_mean) : NAN, .main = several,
                  .evaluation = true),
           "agent.%s.evaluation", agent->name);
    rm_scores_last(&agent->lengths, &length);
    column(c, COLUMN(.value = length, .main = several), "agent.%s.figures.length", agent->name);
    figures(c, board, a, "figures", rm_board_figure_last, false);
    column(c,
           COLUMN(.value = row->evaluation ? load(&agent->eval_length) : NAN, .main = true,
                  .evaluation = true),
           "agent.%s.evaluation_figures.length", agent->name);
    figures(c, board, a, "evaluation_figures", row->evaluation ? rm_board_figure_evaluated : NULL,
            true);
}

static void run_columns(struct columns *c, const struct rm_board_run *run,
                        const struct rm_metrics_row *row)
{
    double length = NAN;
    rm_scores_last(&run->lengths, &length);
    column(c, COLUMN(.value = row->time_s), "time_s");
    column(c, COLUMN(.value = (double)row->steps, .integer = true), "steps");
    column(c, COLUMN(.value = row->steps_per_s, .main = true), "steps_per_s");
    column(c, COLUMN(.value = row->updates_per_s, .main = true), "updates_per_s");
    column(c, COLUMN(.value = row->host.cores), "host_cores");
    column(c, COLUMN(.value = row->host.cpu_s), "host_cpu_s");
    column(c, COLUMN(.value = row->host.steal_s), "host_steal_s");
    column(c, COLUMN(.value = row->host.daemon_s), "daemon_cpu_s");
    column(c, COLUMN(.value = (double)row->reader_lost, .integer = true), "reader_lost");
    for (size_t i = 0; i < rm_key_count; i++)
        if (rm_keys[i].hot != RM_COLD)
            column(c, COLUMN(.value = load(&run->settings[rm_keys[i].hot])), "setting.%s",
                   rm_keys[i].path);
    scores(c, "score", &run->scores, true);
    column(c, COLUMN(.value = length, .main = true), "episode_length_last");
    if (run->stages)
        column(c,
               COLUMN(.value = 1 + (double)(RM_PEEK(&run->stage) & 255), .integer = true,
                      .main = true),
               "stage");
    column(c,
           COLUMN(.value = row->evaluation ? (double)RM_PEEK(&run->eval_steps) : NAN,
                  .integer = true, .evaluation = true),
           "evaluation_steps");
    column(c,
           COLUMN(.value = row->evaluation ? load(&run->eval_score_mean) : NAN, .main = true,
                  .evaluation = true),
           "evaluation_score");
}

size_t rm_metrics_columns(const struct rm_board_view *board, const struct rm_metrics_row *row,
                          rm_metrics_column_fn each, void *user)
{
    struct columns c = {.each = each, .user = user};
    const struct rm_board_run *run = board->run;
    run_columns(&c, run, row);
    for (uint32_t a = 0; a < run->agents; a++)
        agent_columns(&c, board, a, row);
    for (uint32_t p = 0; p < run->policies; p++) {
        const struct rm_board_policy *policy = &board->policies[p];
        const uint64_t lags = RM_PEEK(&policy->lag_count);
        table(&c, "policy", policy->name, rm_policy_metrics, rm_policy_metric_count, policy,
              is_main);
        column(&c,
               COLUMN(.value = lags ? (double)RM_PEEK(&policy->lag_sum) / (double)lags : NAN,
                      .main = true),
               "policy.%s.lag_mean", policy->name);
    }
    for (uint32_t w = 0; w < run->workers; w++)
        table(&c, "worker", board->workers[w].name, rm_worker_metrics, rm_worker_metric_count,
              &board->workers[w], NULL);
    return c.count;
}

struct csv {
    FILE *file;
    bool first, names;
    json_t *object; /* gets the same numbers; NULL = none */
};

static void json_field(void *user, const struct rm_metrics_column *column)
{
    if (isfinite(column->value))
        json_object_set_new(user, column->name,
                            column->integer ? json_integer((json_int_t)column->value)
                                            : json_real(column->value));
}

static void csv_field(void *user, const struct rm_metrics_column *column)
{
    struct csv *csv = user;
    if (!csv->first)
        fputc(',', csv->file);
    csv->first = false;
    if (csv->names)
        fputs(column->name, csv->file);
    else if (isfinite(column->value))
        fprintf(csv->file, column->integer ? "%.0f" : "%.9g", column->value);
    if (csv->object)
        json_field(csv->object, column);
}

/* Writes whole rows only: if a row does not fit on the disk, no part of it stays. */
static int append(struct rm_writer *files, int fd, const char *text, size_t bytes)
{
    if (!files)
        return rm_write_append(fd, text, bytes);
    const int rc = rm_writer_put(files, rm_write_append, fd, text, bytes, NULL);
    return rc < 0 ? rc : 0;
}

static int csv_row(struct rm_writer *files, int fd, const struct rm_board_view *board,
                   const struct rm_metrics_row *row, bool names, json_t *object)
{
    char *text = NULL;
    size_t bytes = 0;
    struct csv csv = {
        .file = open_memstream(&text, &bytes), .first = true, .names = names, .object = object};
    if (!csv.file)
        return -ENOMEM;
    rm_metrics_columns(board, row, csv_field, &csv);
    fputc('\n', csv.file);
    int rc = fclose(csv.file) == 0 ? append(files, fd, text, bytes) : -ENOMEM;
    free(text);
    return rc;
}

/* --- continuing a file ----------------------------------------------------------------------- */

/* Start of the line that ends before `end`: after a newline, or 0. */
static off_t line_start(int fd, off_t end)
{
    char text[4096];
    while (end > 0) {
        const off_t from = end > (off_t)sizeof text ? end - (off_t)sizeof text : 0;
        const ssize_t n = pread(fd, text, (size_t)(end - from), from);
        const char *newline = n > 0 ? memrchr(text, '\n', (size_t)n) : NULL;
        if (newline)
            return from + (newline - text) + 1;
        end = from;
    }
    return 0;
}

/* Continues a predecessor's file: removes an unfinished row; this run's time continues after its
 * last row. */
static int go_on(struct rm_metrics *m, off_t bytes)
{
    char first[64] = "";
    const off_t whole = line_start(m->csv_fd, bytes);
    if (whole < bytes && ftruncate(m->csv_fd, whole) < 0)
        return -errno;
    if (whole == 0)
        return 0;
    if (pread(m->csv_fd, first, sizeof first - 1, line_start(m->csv_fd, whole - 1)) > 0)
        m->before_s = strtod(first, NULL); /* 0 for the line of names */
    return 0;
}

int rm_metrics_open(struct rm_metrics *metrics, const struct rm_run_directory *directory,
                    const struct rm_board_view *board, const struct rm_experiment *experiment,
                    struct rm_error *error)
{
    const struct rm_metrics_row none = {.time_s = 0};
    struct rm_run_directory events = {.path = ""};
    memset(metrics, 0, sizeof *metrics);
    metrics->csv_fd = metrics->board.fd = -1;
    metrics->next_at = UINT64_MAX;
    metrics->tags = experiment->metrics.tensorboard;
    metrics->interval_steps = experiment->metrics.interval_steps;
    if (!metrics->interval_steps)
        metrics->interval_steps = (experiment->run.steps + RM_METRICS_SHARE - 1) / RM_METRICS_SHARE;
    int rc = 0;
    if (experiment->metrics.csv) {
        metrics->csv_fd = rm_run_directory_open(directory, "metrics.csv", error);
        if (metrics->csv_fd < 0)
            return metrics->csv_fd;
        rc = go_on(metrics, lseek(metrics->csv_fd, 0, SEEK_END));
        /* A continued file already has its names. */
        if (rc == 0 && lseek(metrics->csv_fd, 0, SEEK_END) == 0)
            rc = csv_row(NULL, metrics->csv_fd, board, &none, true, NULL);
        if (rc < 0)
            rm_fail(error, rc, "cannot write metrics.csv: %s", strerror(-rc));
    }
    if (rc == 0 && metrics->tags != RM_TENSORBOARD_OFF) {
        rc = rm_run_directory_beside(&events, directory, "tensorboard", error);
        if (rc == 0)
            rc = rm_tensorboard_open(&metrics->board, &events, error);
    }
    if (rc < 0)
        rm_metrics_close(metrics);
    return rc;
}

struct tags {
    struct rm_tensorboard *board;
    bool all, evaluation;
};

static void tensorboard_field(void *user, const struct rm_metrics_column *column)
{
    const struct tags *tags = user;
    char tag[272];
    if (!isfinite(column->value) || column->evaluation != tags->evaluation ||
        !(column->main || tags->all) || !strcmp(column->name, "steps") ||
        !strcmp(column->name, "evaluation_steps"))
        return;
    /* TensorBoard groups tags by the part before a slash. */
    snprintf(tag, sizeof tag, "%s%s", strchr(column->name, '.') ? "" : "run/", column->name);
    for (char *c = tag; *c; c++)
        if (*c == '.')
            *c = '/';
    rm_tensorboard_scalar(tags->board, tag, (float)column->value);
}

static int tensorboard_record(struct rm_metrics *metrics, const struct rm_board_view *board,
                              const struct rm_metrics_row *row, bool evaluation)
{
    struct tags tags = {&metrics->board, metrics->tags == RM_TENSORBOARD_ALL, evaluation};
    struct timespec now;
    metrics->board.files = metrics->files;
    clock_gettime(CLOCK_REALTIME, &now);
    rm_tensorboard_begin(&metrics->board, (double)now.tv_sec + (double)now.tv_nsec * 1e-9,
                         evaluation ? RM_PEEK(&board->run->eval_steps) : row->steps);
    rm_metrics_columns(board, row, tensorboard_field, &tags);
    return rm_tensorboard_end(&metrics->board);
}

bool rm_metrics_written(const struct rm_metrics *metrics)
{
    return metrics->csv_fd >= 0 || metrics->board.fd >= 0 ||
           (metrics->reader && metrics->reader->running);
}

int rm_metrics_write(struct rm_metrics *metrics, const struct rm_board_view *board,
                     const struct rm_metrics_row *row)
{
    struct rm_metrics_row whole = *row;
    int rc = 0;
    whole.time_s += metrics->before_s;
    json_t *object = metrics->reader && metrics->reader->started ? json_object() : NULL;
    if (metrics->csv_fd >= 0)
        rc = csv_row(metrics->files, metrics->csv_fd, board, &whole, false, object);
    else if (object)
        rm_metrics_columns(board, &whole, json_field, object);
    const int records = metrics->board.fd < 0 ? 0 : row->evaluation ? 2 : 1;
    for (int evaluation = 0; evaluation < records; evaluation++) {
        int written = tensorboard_record(metrics, board, &whole, evaluation);
        rc = rc < 0 ? rc : written;
    }
    if (object)
        rm_reader_row(metrics->reader, object);
    metrics->rows++;
    if (rc < 0)
        metrics->failures++;
    return rc;
}

double rm_metrics_interval(double interval, double so_far)
{
    while (interval > 0 && interval * RM_METRICS_ROWS <= so_far)
        interval *= 2;
    return interval;
}

/* --- rows by steps --------------------------------------------------------------------------- */

void rm_metrics_begin_steps(struct rm_metrics *m, uint64_t steps, uint64_t now_ns)
{
    m->began_at = steps;
    m->began_ns = now_ns;
    m->next_at = rm_metrics_written(m) && m->interval_steps
                     ? (steps / m->interval_steps + 1) * m->interval_steps
                     : UINT64_MAX;
}

bool rm_metrics_due(const struct rm_metrics *m, uint64_t steps)
{
    return m->interval_steps && steps >= m->next_at;
}

void rm_metrics_next(struct rm_metrics *m, uint64_t steps, uint64_t now_ns)
{
    const double taken_ns = (double)(now_ns - m->began_ns);
    const double pace = taken_ns > 0 ? (double)(steps - m->began_at) / taken_ns : 0;
    const uint64_t every = (uint64_t)rm_metrics_interval((double)m->interval_steps, (double)steps);
    const uint64_t least = (uint64_t)(pace * RM_METRICS_APART_NS);
    m->next_at = (steps + (least > every ? least : every)) / every * every;
}

void rm_metrics_close(struct rm_metrics *metrics)
{
    if (metrics->csv_fd >= 0)
        close(metrics->csv_fd);
    metrics->csv_fd = -1;
    rm_tensorboard_close(&metrics->board);
}
