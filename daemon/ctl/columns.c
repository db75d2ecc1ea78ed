#include "daemon/ctl/columns.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK    (4u << 20) /* bytes read at a time; no row is longer */
#define ROWS_MAX (4u << 20) /* of a run; the daemon writes fewer in years */

struct wanted {
    rm_column_wanted_fn is;
    const void *user;
};

void rm_columns_free(struct rm_columns *c)
{
    if (c->open)
        close(c->fd);
    for (size_t i = 0; i < c->columns; i++) {
        free(c->column[i].name);
        free(c->column[i].values);
    }
    *c = (struct rm_columns){.whole = c->whole};
}

const struct rm_series *rm_columns_find(const struct rm_columns *c, const char *name)
{
    for (size_t i = 0; i < c->columns; i++)
        if (!strcmp(c->column[i].name, name))
            return &c->column[i];
    return NULL;
}

/* A header, up to its newline. */
static void read_names(struct rm_columns *c, const struct wanted *wanted, const char *line)
{
    c->named = true;
    for (size_t place = 0;; place++) {
        const size_t length = strcspn(line, ",\n");
        char *name = c->columns < RM_COLUMNS_MAX ? strndup(line, length) : NULL;
        if (name && wanted->is(wanted->user, name))
            c->column[c->columns++] = (struct rm_series){.name = name, .place = place};
        else
            free(name);
        if (line[length] != ',')
            return;
        line += length + 1;
    }
}

static bool grow(struct rm_columns *c)
{
    if (c->count < c->room)
        return true;
    const size_t room = c->room ? 2 * c->room : 1024;
    if (room > ROWS_MAX)
        return false;
    for (size_t i = 0; i < c->columns; i++) {
        double *values = realloc(c->column[i].values, room * sizeof *values);
        if (!values)
            return false;
        c->column[i].values = values;
    }
    c->room = room;
    return true;
}

/* A row, up to its newline. */
static void read_row(struct rm_columns *c, const char *line, const char *end)
{
    bool whole = true;
    size_t place = 0;
    if (!grow(c))
        return;
    for (size_t i = 0; i < c->columns; i++) {
        const struct rm_series *column = &c->column[i];
        for (; line && place < column->place; place++)
            line = (line = memchr(line, ',', (size_t)(end - line))) ? line + 1 : NULL;
        char *after = NULL;
        const double value = line && *line != ',' && line < end ? strtod(line, &after) : NAN;
        const bool read = after && after != line && after <= end;
        column->values[c->count] = read ? value : NAN;
        whole &= read && !isnan(value);
    }
    c->count += whole || !c->whole;
}

/* The lines of a block; returns its bytes up to the last newline. */
static size_t read_lines(struct rm_columns *c, const struct wanted *wanted, const char *block,
                         size_t bytes)
{
    const char *line = block, *end;
    while ((end = memchr(line, '\n', bytes - (size_t)(line - block)))) {
        if (!c->named)
            read_names(c, wanted, line);
        else
            read_row(c, line, end);
        line = end + 1;
    }
    return (size_t)(line - block);
}

/* Opens the file, unless it is the one that is open. */
static bool open_file(struct rm_columns *c, const char *directory)
{
    char path[PATH_MAX];
    struct stat is;
    snprintf(path, sizeof path, "%s/metrics.csv", directory);
    if (lstat(path, &is) < 0 || !S_ISREG(is.st_mode))
        return c->open;
    if (c->open && is.st_dev == c->device && is.st_ino == c->inode && is.st_size >= c->at)
        return true;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    rm_columns_free(c);
    if (fd >= 0 && (fstat(fd, &is) < 0 || !S_ISREG(is.st_mode))) {
        close(fd);
        return false;
    }
    if (fd < 0)
        return false;
    c->open = true;
    c->fd = fd;
    c->device = is.st_dev;
    c->inode = is.st_ino;
    return true;
}

void rm_columns_read(struct rm_columns *c, const char *directory, rm_column_wanted_fn wanted,
                     const void *user)
{
    char *block = open_file(c, directory) ? malloc(BLOCK + 1) : NULL;
    if (!block)
        return;
    for (size_t used = 1; used;) {
        const ssize_t n = pread(c->fd, block, BLOCK, c->at);
        if (n <= 0)
            break;
        block[n] = '\0';
        used = read_lines(c, &(struct wanted){wanted, user}, block, (size_t)n);
        c->at += (off_t)used;
    }
    free(block);
}
