/* history: columns of a run's metrics.csv in memory, extended while the run writes. A day of
 * metrics can take a hundred megabytes, so the file is read only once for each kind of column, and
 * each row only up to the last column needed. Used by one thread. */
#ifndef RM_DAEMON_WEB_HISTORY_H
#define RM_DAEMON_WEB_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define RM_HISTORY_COLUMNS 16
#define RM_HISTORY_POINTS  400 /* parts of a drawn curve, at most two points each */

struct rm_history_column {
    char name[128];
    size_t place;   /* index in a row, from 0 */
    double *values; /* [count]; NAN: the row has no value */
};

enum rm_history_kind {
    RM_HISTORY_RUN = 0, /* columns of the whole run, at the beginning of a row */
    RM_HISTORY_LOSSES,  /* the loss of each policy, at most RM_HISTORY_COLUMNS */
};

struct rm_history {
    enum rm_history_kind kind;
    int fd; /* -1: there is no file */
    dev_t device;
    ino_t inode;
    off_t at; /* bytes read so far, in whole lines */
    size_t columns, count, room;
    struct rm_history_column column[RM_HISTORY_COLUMNS]; /* by place */
};

/* Initialises an empty history. Reads nothing. */
void rm_history_init(struct rm_history *history, enum rm_history_kind kind);
void rm_history_free(struct rm_history *history);

/* Reads the rows that were added to metrics.csv of a run directory since the last call. If the file
 * was replaced, reads all of its rows. Does not follow a symbolic link. */
void rm_history_read(struct rm_history *history, const char *directory);

/* Writes the series as JSON: {"name":"score_last","x":[..],"y":[..]},.. , x is the steps of the
 * rows, for series of evaluations the column evaluation_steps. A series with more than 2
 * RM_HISTORY_POINTS points is reduced to its first and last point and the lowest and highest point
 * of each part. `only`: the name of the one series to write; NULL: all. `begun`: the caller has
 * already written other series. Returns whether any series has been written, by the caller or
 * here. */
bool rm_history_write(const struct rm_history *history, const char *only, bool begun, FILE *out);

#endif
