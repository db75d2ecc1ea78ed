/* history: columns of a run's metrics.csv in memory, read on while the run writes. A day of metrics
 * is a hundred megabytes: the file is read once for each kind of column, and each row only as far
 * as the last of them. Used by one thread. */
#ifndef RM_DAEMON_WEB_HISTORY_H
#define RM_DAEMON_WEB_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define RM_HISTORY_COLUMNS 16
#define RM_HISTORY_POINTS  400 /* parts of a curve that is drawn; two points in each */

struct rm_history_column {
    char name[128];
    size_t place;   /* in a row, from 0 */
    double *values; /* [count]; NAN: the row has none */
};

enum rm_history_kind {
    RM_HISTORY_RUN = 0, /* of the whole run: at the beginning of a row */
    RM_HISTORY_LOSSES,  /* of each policy, as far as there is room */
};

struct rm_history {
    enum rm_history_kind kind;
    int fd; /* -1: there is no file */
    dev_t device;
    ino_t inode;
    off_t at; /* read so far, whole lines */
    size_t columns, count, room;
    struct rm_history_column column[RM_HISTORY_COLUMNS]; /* by place */
};

/* Nothing is read yet. */
void rm_history_init(struct rm_history *history, enum rm_history_kind kind);
void rm_history_free(struct rm_history *history);

/* Reads the rows that were added to metrics.csv of a run's directory since the last call; all of
 * them if it is another file. Does not follow a symbolic link. */
void rm_history_read(struct rm_history *history, const char *directory);

/* Writes the series as JSON: {"name":"score_last","x":[..],"y":[..]},.. , each over the steps of
 * its rows (an evaluation's: over evaluation_steps). Of a series with more points than two for each
 * of RM_HISTORY_POINTS parts, the lowest and the highest of each part, the first and the last.
 * `only`: this series alone, NULL: all. `begun`: there are others
 * before. Returns whether there are any now. */
bool rm_history_write(const struct rm_history *history, const char *only, bool begun, FILE *out);

#endif
