/* metrics: the time series of a run, made from the tables of shm/board.h: rows of metrics.csv and
 * records of TensorBoard scalars. One is written every metrics.interval_s, every
 * metrics.interval_steps (both less often in long runs) and for every evaluation. The columns of
 * the CSV are those of rm_metrics_columns(), fixed for a run:
 *
 *   time_s                         of the run so far, predecessors' included
 *   steps                          per agent, over all worlds
 *   steps_per_s, updates_per_s     of all agents and policies, over the last seconds
 *   host_cores                     that the run may use
 *   host_cpu_s, host_steal_s       busy time of all processors since boot, for any process;
 *                                  time that other guests of the machine took; neither if the
 *                                  run may use only some of the processors
 *   daemon_cpu_s                   processor time of the daemon
 *   reader_lost                    rows that metrics.exec did not take, of this daemon
 *   setting.KEY                    hot keys as the run has them then, by `ringctl set` or a reload
 *   score_last, score_episodes     of whole episodes
 *   episode_length_last            in vector steps, of the same episodes
 *   evaluation_steps, evaluation_score
 *   agent.NAME.reward_last ..      per agent
 *   agent.NAME.figures.FIGURE      over its latest episodes: length, and what the world has named,
 *                                  a mean, or for words, FIGURE.WORD, the share of each
 *   agent.NAME.evaluation_figures.FIGURE
 *   policy.NAME.METRIC             rm_policy_metrics, and lag_mean
 *   worker.NAME.METRIC             rm_worker_metrics
 *
 * A missing number (no episode yet) is an empty field in the CSV and absent for TensorBoard.
 * Numbers of an evaluation are only in the row of that evaluation; evaluation_steps are the steps
 * of the weights that it played. For TensorBoard they are a record at that step.
 *
 * TensorBoard's tags are the names with slashes instead of dots; names without a dot are below
 * "run/". */
#ifndef RM_DAEMON_METRICS_H
#define RM_DAEMON_METRICS_H

#include "config/experiment.h"
#include "daemon/host.h"
#include "daemon/run_directory.h"
#include "daemon/tensorboard.h"
#include "daemon/writer.h"
#include "shm/base/error.h"
#include "shm/board.h"

#include <stdbool.h>
#include <stdint.h>

struct rm_reader;

struct rm_metrics {
    int csv_fd; /* -1 = off */
    enum rm_tensorboard_tags tags;
    struct rm_tensorboard board; /* fd -1 = off */
    struct rm_writer *files;     /* writes rows; NULL = at once; set by the caller of open */
    struct rm_reader *reader;    /* gets each row too; NULL = none; set by the caller of open */
    double before_s; /* time of the run at a predecessor's last row in the same run directory */
    uint64_t rows;
    uint64_t failures; /* rows that could not be written whole, as far as known */
    /* Rows by steps. */
    uint64_t interval_steps;     /* 0 = none */
    uint64_t next_at;            /* steps at which the next row is due, UINT64_MAX = never */
    uint64_t began_at, began_ns; /* steps and time when this process began to train */
};

/* Numbers that the board does not have. */
struct rm_metrics_row {
    double time_s;  /* since this process began to train */
    uint64_t steps; /* per agent */
    double steps_per_s, updates_per_s;
    struct rm_host host;
    uint64_t reader_lost;
    bool evaluation; /* an evaluation has just finished, and the row has its numbers */
};

/* Continues an existing file. Event files are PARENT/NAME/tensorboard/DATE-TIME/..: beside the run
 * directories, because TensorBoard follows `latest` and would list a run twice. */
int rm_metrics_open(struct rm_metrics *metrics, const struct rm_run_directory *directory,
                    const struct rm_board_view *board, const struct rm_experiment *experiment,
                    struct rm_error *error);

/* Are rows written anywhere? */
bool rm_metrics_written(const struct rm_metrics *metrics);

/* Writes a row. Returns 0 or negative errno, for example for a full disk; the run continues without
 * the row. With a writing thread, 0 means that the row is queued; the thread's counts have the
 * outcome. */
int rm_metrics_write(struct rm_metrics *metrics, const struct rm_board_view *board,
                     const struct rm_metrics_row *row);

/* The interval between two rows after `so_far` seconds or steps of a run: `interval`, doubled until
 * so_far is less than RM_METRICS_ROWS intervals. A row of a treasure hunt takes 17 kB with every
 * tag, so a row a second would fill a disk in months; with this rule a year has about 70,000 rows.
 */
#define RM_METRICS_ROWS 10000
double rm_metrics_interval(double interval, double so_far);

/* Rows by steps. rm_metrics_begin_steps(): the run begins at `steps`. rm_metrics_due(): is a row
 * due? rm_metrics_next(): call it after a row was written; it sets next_at so that, at the pace so
 * far, rows are at least RM_METRICS_APART_NS apart. */
#define RM_METRICS_SHARE    200 /* rows of a run whose metrics.interval_steps is 0 */
#define RM_METRICS_APART_NS 10000000u
void rm_metrics_begin_steps(struct rm_metrics *metrics, uint64_t steps, uint64_t now_ns);
bool rm_metrics_due(const struct rm_metrics *metrics, uint64_t steps);
void rm_metrics_next(struct rm_metrics *metrics, uint64_t steps, uint64_t now_ns);

void rm_metrics_close(struct rm_metrics *metrics);

struct rm_metrics_column {
    const char *name;
    double value; /* NaN: no value */
    bool integer;
    bool main;       /* for TensorBoard unless metrics.tensorboard is "all" */
    bool evaluation; /* of an evaluation */
};

/* Calls `each` for every column in order. Returns the number of columns. */
typedef void (*rm_metrics_column_fn)(void *user, const struct rm_metrics_column *column);
size_t rm_metrics_columns(const struct rm_board_view *board, const struct rm_metrics_row *row,
                          rm_metrics_column_fn each, void *user);

#endif
