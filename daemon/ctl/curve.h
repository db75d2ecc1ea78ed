/* curve: a column of a run's metrics.csv over another, read while the run writes it. */
#ifndef RM_DAEMON_CTL_CURVE_H
#define RM_DAEMON_CTL_CURVE_H

#include "daemon/ctl/columns.h"

#include <stddef.h>

/* All zero: nothing has been read. */
struct rm_curve {
    struct rm_columns rows;
    const double *values, *at; /* [count], in the order of rows; rows without both are left out */
    size_t count;
};

/* Reads the rows that were added since the last call, which had the same arguments. `column` has
 * the values, for example "score_last"; `at_column` the x axis, for example "steps". If the file or
 * a column is missing, the curve stays empty. */
void rm_curve_read(struct rm_curve *curve, const char *directory, const char *column,
                   const char *at_column);
void rm_curve_close(struct rm_curve *curve);

/* Divides the values into `cells` parts of equal length and writes the mean of each part to
 * mean[cells]. With fewer values than cells, each value is a cell. Returns the number of cells
 * written. */
size_t rm_curve_means(const struct rm_curve *curve, double *mean, size_t cells);

#endif
