#include "daemon/metrics.h"

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

static void column(struct columns *c, double value, bool integer, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void column(struct columns *c, double value, bool integer, const char *format, ...)
{
    char name[160];
    va_list list;
    va_start(list, format);
    vsnprintf(name, sizeof name, format, list);
    va_end(list);
    c->each(c->user, name, value, integer);
    c->count++;
}

static void scores(struct columns *c, const char *what, const struct rm_scores *s)
{
    double last = NAN;
    rm_scores_last(s, &last);
    column(c, last, false, "%s_last", what);
    column(c, (double)RM_PEEK(&s->episodes), true, "%s_episodes", what);
}

static double load(const _Atomic double *value)
{
    return RM_PEEK(value);
}

static void table(struct columns *c, const char *kind, const char *name,
                  const struct rm_metric *metrics, size_t count, const void *block)
{
    for (size_t i = 0; i < count; i++)
        column(c, rm_metric_value(&metrics[i], block), metrics[i].type == RM_METRIC_U64, "%s.%s.%s",
               kind, name, metrics[i].name);
}

size_t rm_metrics_columns(const struct rm_board_view *board, double time_s, uint64_t steps,
                          rm_metrics_column_fn each, void *user)
{
    struct columns c = {.each = each, .user = user};
    const struct rm_board_run *run = board->run;
    bool evaluated = RM_PEEK(&run->evaluations) > 0;
    column(&c, time_s, false, "time_s");
    column(&c, (double)steps, true, "steps");
    scores(&c, "score", &run->scores);
    column(&c, evaluated ? load(&run->eval_score_mean) : NAN, false, "evaluation_score");
    for (uint32_t a = 0; a < run->agents; a++) {
        char what[RM_NAME_MAX + 24];
        snprintf(what, sizeof what, "agent.%s.reward", board->agents[a].name);
        scores(&c, what, &board->agents[a].scores);
        column(&c, evaluated ? load(&board->agents[a].eval_mean) : NAN, false,
               "agent.%s.evaluation", board->agents[a].name);
    }
    for (uint32_t p = 0; p < run->policies; p++)
        table(&c, "policy", board->policies[p].name, rm_policy_metrics, rm_policy_metric_count,
              &board->policies[p]);
    for (uint32_t w = 0; w < run->workers; w++)
        table(&c, "worker", board->workers[w].name, rm_worker_metrics, rm_worker_metric_count,
              &board->workers[w]);
    return c.count;
}

struct csv {
    FILE *file;
    bool first, names;
};

static void csv_field(void *user, const char *name, double value, bool integer)
{
    struct csv *csv = user;
    if (!csv->first)
        fputc(',', csv->file);
    csv->first = false;
    if (csv->names)
        fputs(name, csv->file);
    else if (isfinite(value))
        fprintf(csv->file, integer ? "%.0f" : "%.9g", value);
}

/* Whole rows only: of one that does not fit on the disk nothing stays. */
static int append(struct rm_writer *files, int fd, const char *text, size_t bytes)
{
    if (!files)
        return rm_write_append(fd, text, bytes);
    const int rc = rm_writer_put(files, rm_write_append, fd, text, bytes, NULL);
    return rc < 0 ? rc : 0;
}

static int csv_row(struct rm_writer *files, int fd, const struct rm_board_view *board,
                   double time_s, uint64_t steps, bool names)
{
    char *text = NULL;
    size_t bytes = 0;
    struct csv csv = {.file = open_memstream(&text, &bytes), .first = true, .names = names};
    if (!csv.file)
        return -ENOMEM;
    rm_metrics_columns(board, time_s, steps, csv_field, &csv);
    fputc('\n', csv.file);
    int rc = fclose(csv.file) == 0 ? append(files, fd, text, bytes) : -ENOMEM;
    free(text);
    return rc;
}

/* --- going on ------------------------------------------------------------------------------- */

/* Where the line begins that ends before `end`: after a newline, or at 0. */
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

/* What a predecessor left: of a row that it did not finish nothing stays, and the time of its last
 * one is where this run's begins. */
static int go_on(struct rm_metrics *m, off_t bytes)
{
    char first[64] = "";
    const off_t whole = line_start(m->csv_fd, bytes);
    if (whole < bytes && ftruncate(m->csv_fd, whole) < 0)
        return -errno;
    if (whole == 0)
        return 0;
    if (pread(m->csv_fd, first, sizeof first - 1, line_start(m->csv_fd, whole - 1)) > 0)
        m->before_s = strtod(first, NULL); /* 0 of the names */
    return 0;
}

int rm_metrics_open(struct rm_metrics *metrics, const struct rm_run_directory *directory,
                    const struct rm_board_view *board, bool csv, bool tensorboard,
                    struct rm_error *error)
{
    memset(metrics, 0, sizeof *metrics);
    metrics->csv_fd = metrics->board.fd = -1;
    int rc = 0;
    if (csv) {
        metrics->csv_fd = rm_run_directory_open(directory, "metrics.csv", error);
        if (metrics->csv_fd < 0)
            return metrics->csv_fd;
        rc = go_on(metrics, lseek(metrics->csv_fd, 0, SEEK_END));
        /* A run that goes on has its names already. */
        if (rc == 0 && lseek(metrics->csv_fd, 0, SEEK_END) == 0)
            rc = csv_row(NULL, metrics->csv_fd, board, 0, 0, true);
        if (rc < 0)
            rm_fail(error, rc, "cannot write metrics.csv: %s", strerror(-rc));
    }
    if (rc == 0 && tensorboard)
        rc = rm_tensorboard_open(&metrics->board, directory, error);
    if (rc < 0)
        rm_metrics_close(metrics);
    return rc;
}

static void tensorboard_field(void *user, const char *name, double value, bool integer)
{
    struct rm_tensorboard *board = user;
    char tag[160];
    (void)integer;
    if (!isfinite(value) || strcmp(name, "steps") == 0)
        return;
    snprintf(tag, sizeof tag, "%s", name); /* TensorBoard groups by what stands before a slash */
    for (char *c = tag; *c; c++)
        if (*c == '.')
            *c = '/';
    rm_tensorboard_scalar(board, tag, (float)value);
}

int rm_metrics_write(struct rm_metrics *metrics, const struct rm_board_view *board, double time_s,
                     uint64_t steps)
{
    int rc = 0;
    time_s += metrics->before_s;
    if (metrics->csv_fd >= 0)
        rc = csv_row(metrics->files, metrics->csv_fd, board, time_s, steps, false);
    if (metrics->board.fd >= 0) {
        struct timespec now;
        metrics->board.files = metrics->files;
        clock_gettime(CLOCK_REALTIME, &now);
        rm_tensorboard_begin(&metrics->board, (double)now.tv_sec + (double)now.tv_nsec * 1e-9,
                             steps);
        rm_metrics_columns(board, time_s, steps, tensorboard_field, &metrics->board);
        int written = rm_tensorboard_end(&metrics->board);
        rc = rc < 0 ? rc : written;
    }
    metrics->rows++;
    if (rc < 0)
        metrics->failures++;
    return rc;
}

double rm_metrics_interval_s(double interval_s, double time_s)
{
    while (interval_s > 0 && interval_s * RM_METRICS_ROWS <= time_s)
        interval_s *= 2;
    return interval_s;
}

void rm_metrics_close(struct rm_metrics *metrics)
{
    if (metrics->csv_fd >= 0)
        close(metrics->csv_fd);
    metrics->csv_fd = -1;
    rm_tensorboard_close(&metrics->board);
}
