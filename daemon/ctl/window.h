/* window: the part of a run that is explained: two rows of metrics.csv between which it trained
 * with unchanged settings, and how far the counters grew between them. */
#ifndef RM_DAEMON_CTL_WINDOW_H
#define RM_DAEMON_CTL_WINDOW_H

#include "config/experiment.h"
#include "shm/base/error.h"
#include "shm/board.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct rm_run_window {
    char *text; /* of the names, which end with NUL */
    const char **names;
    size_t columns, count; /* of all rows */
    double *values;        /* (count, columns) */
    size_t first, last;    /* rows of the window */
    double seconds, steps; /* of the window */
    double rollout_s;      /* time of a rollout; 0: there are none, or parts of some */
};

/* Finds the window in the text of metrics.csv: the latest training, at most a minute, after the
 * run's beginning. `now`: a running experiment's reply to `metrics`, where the window ends; NULL:
 * the window ends at the file's last row of training. -EAGAIN with a message: there are too few
 * rows. Free the window in any case. */
int rm_run_window_open(struct rm_run_window *window, const char *csv, const json_t *now,
                       struct rm_error *error);
void rm_run_window_free(struct rm_run_window *window);

/* The text of the file: its first line and the last ones. NULL with a message. */
char *rm_run_window_read(const char *path, struct rm_error *error);

/* Hot keys as the run had them at the window's end, which config.json does not have. */
void rm_run_window_apply_settings(const struct rm_run_window *window,
                                  struct rm_experiment *experiment);

/* The name in column `i` if that is "KIND.NAME.METRIC"; `name` has RM_NAME_MAX bytes. Returns false
 * for other columns. */
bool rm_run_window_name(const struct rm_run_window *window, size_t i, const char *kind,
                        const char *metric, char *name);

/* A column's number in a row, NAN if there is none; of a policy or a worker. */
double rm_run_window_value(const struct rm_run_window *window, size_t row, const char *column);
double rm_run_window_value_of(const struct rm_run_window *window, size_t row, const char *kind,
                              const char *name, const char *metric);

/* How far a counter grew. NAN: it did not; for a policy or a worker 0. */
double rm_run_window_grown(const struct rm_run_window *window, const char *column);
double rm_run_window_grown_of(const struct rm_run_window *window, const char *kind,
                              const char *name, const char *metric);

/* How a worker spent its time in the window, in seconds. */
struct rm_run_duty {
    char name[RM_NAME_MAX];
    enum rm_role role;
    double wall_s; /* booked */
    double turns, sleeps;
    double cpu;                   /* of all its cores; 0: counted for another duty of the process */
    double world_cpu;             /* of the processes that step its worlds */
    double no_core;               /* in which it could run, but had no core */
    double phase[RM_PHASE_COUNT]; /* includes waiting */
    double wait[RM_WAIT_COUNT];
};

/* Of all workers that have booked any time, at most RM_BOARD_WORKERS. Returns their number. */
uint32_t rm_run_window_duties(const struct rm_run_window *window, struct rm_run_duty *duty);

/* Seconds in phases of work. */
double rm_run_duty_busy_s(const struct rm_run_duty *duty);

/* Updates of all policies in the window. */
double rm_run_window_updates(const struct rm_run_window *window);

#endif
