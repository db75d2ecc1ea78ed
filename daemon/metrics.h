/* metrics: what is written down while a run goes on: one row of metrics.csv and one set of
 * TensorBoard scalars every metrics.interval_s (less often in long runs), made from the tables of
 * shm/board.h. The columns of the CSV are those of rm_metrics_columns(), fixed for a run:
 *
 *   time_s                         that the run has taken, predecessors' included
 *   steps                          per agent, over all worlds
 *   score_last, score_episodes     of whole episodes
 *   agent.NAME.reward_last ..      per agent
 *   policy.NAME.METRIC             rm_policy_metrics
 *   worker.NAME.METRIC             rm_worker_metrics
 *
 * A number that is not there (no episode yet) is an empty field in the CSV and absent for
 * TensorBoard. */
#ifndef RM_DAEMON_METRICS_H
#define RM_DAEMON_METRICS_H

#include "daemon/run_directory.h"
#include "daemon/tensorboard.h"
#include "daemon/writer.h"
#include "shm/base/error.h"
#include "shm/board.h"

#include <stdbool.h>
#include <stdint.h>

struct rm_metrics {
    int csv_fd;                  /* -1 = off */
    struct rm_tensorboard board; /* fd -1 = off */
    struct rm_writer *files;     /* writes rows; NULL = at once, set by who opened them */
    double before_s; /* what a predecessor in the same run directory had taken by its last row */
    uint64_t rows;
    uint64_t failures; /* rows that could not be written whole, as far as known here */
};

/* Goes on with the file that is there. */
int rm_metrics_open(struct rm_metrics *metrics, const struct rm_run_directory *directory,
                    const struct rm_board_view *board, bool csv, bool tensorboard,
                    struct rm_error *error);

/* Writes a row. `time_s`: since this process began to train; `steps` is the step of the TensorBoard
 * scalars. Returns 0 or negative errno, e.g. for a full disk; the run goes on without the row. With
 * a thread that writes, 0 means that it has the row: what became of it the thread's counts say. */
int rm_metrics_write(struct rm_metrics *metrics, const struct rm_board_view *board, double time_s,
                     uint64_t steps);

/* Time to the next row of a run that has taken `time_s`: metrics.interval_s, doubled whenever the
 * run has taken RM_METRICS_ROWS times as long. A row of a treasure hunt takes 17 kB, so a row a
 * second would fill a disk in months; this way a year has some 70,000 rows. */
#define RM_METRICS_ROWS 10000
double rm_metrics_interval_s(double interval_s, double time_s);

void rm_metrics_close(struct rm_metrics *metrics);

/* Calls `each` for every column in order with its name and present value (NaN: not there). Returns
 * the number of columns. */
typedef void (*rm_metrics_column_fn)(void *user, const char *name, double value, bool integer);
size_t rm_metrics_columns(const struct rm_board_view *board, double time_s, uint64_t steps,
                          rm_metrics_column_fn each, void *user);

#endif
