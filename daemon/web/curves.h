/* curves: the curves of a run's page, from its metrics.csv. Used by one thread. */
#ifndef RM_DAEMON_WEB_CURVES_H
#define RM_DAEMON_WEB_CURVES_H

#include "daemon/ctl/columns.h"

#include <stdio.h>

#define RM_WEB_CURVES_POINTS 400 /* parts of a drawn curve, at most two points each */

enum rm_web_curves_kind {
    RM_WEB_CURVES_RUN = 0, /* columns of the whole run, at the beginning of a row */
    RM_WEB_CURVES_LOSSES,  /* the loss of each policy, at most RM_COLUMNS_MAX */
};

/* Reads the columns of this kind as rm_columns_read() does. */
void rm_web_curves_read(struct rm_columns *curves, enum rm_web_curves_kind kind,
                        const char *directory);

/* Writes the series as JSON: {"name":"score_last","x":[..],"y":[..]},.. , x is the steps of the
 * rows, for series of evaluations the column evaluation_steps. A series with more than 2
 * RM_WEB_CURVES_POINTS points is reduced to its first and last point and the lowest and highest
 * point of each part. `only`: the name of the one series to write; NULL: all. `begun`: the caller
 * has already written other series. Returns whether any series has been written, by the caller or
 * here. */
bool rm_web_curves_write(const struct rm_columns *curves, const char *only, bool begun, FILE *out);

#endif
