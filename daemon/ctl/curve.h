/* curve: a column of a run's metrics.csv, read while the run writes it. */
#ifndef RM_DAEMON_CTL_CURVE_H
#define RM_DAEMON_CTL_CURVE_H

#include <stddef.h>
#include <stdio.h>

struct rm_curve {
    FILE *file;     /* NULL = there is none */
    size_t column;  /* of the values, counted from 0 */
    double *values; /* [count], in the order of rows; rows without a value are left out */
    size_t count, room;
    char *line; /* getline's */
    size_t line_room;
};

/* Opens metrics.csv of a run's directory at the column of this name. Without such a file or column
 * the curve stays empty. */
void rm_curve_open(struct rm_curve *curve, const char *directory, const char *column);
void rm_curve_close(struct rm_curve *curve);

/* Reads the rows that came since. */
void rm_curve_read(struct rm_curve *curve);

/* Divides the values into `cells` parts of equal length, or takes one cell a value where there are
 * fewer, and writes the means into mean[cells]. Returns the number of cells written. */
size_t rm_curve_means(const struct rm_curve *curve, double *mean, size_t cells);

#endif
