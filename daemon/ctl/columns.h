/* columns: some columns of a run's metrics.csv in memory, extended while the run writes. A day of
 * metrics can take a hundred megabytes, so the file is read once, and each row only up to the last
 * column needed. Used by one thread. */
#ifndef RM_DAEMON_CTL_COLUMNS_H
#define RM_DAEMON_CTL_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RM_COLUMNS_MAX 16

struct rm_series {
    char *name;
    size_t place;   /* index in a row, from 0 */
    double *values; /* [count]; NAN: the row has no value */
};

/* All zero: nothing has been read. */
struct rm_columns {
    bool whole; /* the caller's: rows that lack a value of one of the columns are left out */
    bool open, named;
    int fd;
    dev_t device;
    ino_t inode;
    off_t at; /* bytes read so far, in whole lines */
    size_t columns, count, room;
    struct rm_series column[RM_COLUMNS_MAX]; /* by place */
};

/* Is this a column to read? */
typedef bool (*rm_column_wanted_fn)(const void *user, const char *name);

/* Reads the rows that were added to metrics.csv of a run directory since the last call. If the file
 * was replaced, reads all of its rows. Does not follow a symbolic link. Takes the first
 * RM_COLUMNS_MAX columns for which `wanted` returns true. */
void rm_columns_read(struct rm_columns *columns, const char *directory, rm_column_wanted_fn wanted,
                     const void *user);
void rm_columns_free(struct rm_columns *columns);

/* The column of this name, or NULL. */
const struct rm_series *rm_columns_find(const struct rm_columns *columns, const char *name);

#endif
