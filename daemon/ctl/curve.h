/* curve: a column of a run's metrics.csv over another, read while the run writes it. */
#ifndef RM_DAEMON_CTL_CURVE_H
#define RM_DAEMON_CTL_CURVE_H

#include "daemon/ctl/lines.h"

#include <stddef.h>

struct rm_curve {
    struct rm_lines rows;
    size_t column, at_column; /* of the values and of what they stand over, counted from 0 */
    double *values, *at;      /* [count], in the order of rows; rows without both are left out */
    size_t count, room;
};

/* Opens metrics.csv of a run's directory at these columns: values, such as "score_last", over
 * another, such as "steps". Without such a file or columns the curve stays empty. */
void rm_curve_open(struct rm_curve *curve, const char *directory, const char *column,
                   const char *at_column);
void rm_curve_close(struct rm_curve *curve);

/* Reads the rows that were added since the last call. */
void rm_curve_read(struct rm_curve *curve);

/* Divides the values into `cells` parts of equal length, or takes one cell a value where there are
 * fewer, and writes the means into mean[cells]. Returns the number of cells written. */
size_t rm_curve_means(const struct rm_curve *curve, double *mean, size_t cells);

#endif
