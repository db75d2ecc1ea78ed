#include "daemon/web/history.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK    (4u << 20) /* bytes read at a time; no row is longer */
#define ROWS_MAX (4u << 20) /* of a run; the daemon writes fewer in years */

/* Of the whole run. */
static const char *const wanted[] = {"steps",      "steps_per_s",      "updates_per_s",
                                     "score_last", "evaluation_steps", "evaluation_score"};
#define WANTED (sizeof wanted / sizeof wanted[0])

void rm_history_init(struct rm_history *h, enum rm_history_kind kind)
{
    *h = (struct rm_history){.kind = kind, .fd = -1};
}

void rm_history_free(struct rm_history *h)
{
    if (h->fd >= 0)
        close(h->fd);
    for (size_t i = 0; i < h->columns; i++)
        free(h->column[i].values);
    rm_history_init(h, h->kind);
}

static bool is_loss(const char *name, size_t length)
{
    return length > 12 && !strncmp(name, "policy.", 7) && !strncmp(name + length - 5, ".loss", 5);
}

static bool is_wanted(enum rm_history_kind kind, const char *name, size_t length)
{
    if (kind == RM_HISTORY_LOSSES && is_loss(name, length))
        return true;
    for (size_t i = 0; i < (kind == RM_HISTORY_LOSSES ? 1 : WANTED); i++) /* steps: for all */
        if (strlen(wanted[i]) == length && !strncmp(wanted[i], name, length))
            return true;
    return false;
}

/* A header, up to its newline. */
static void read_names(struct rm_history *h, const char *line)
{
    for (size_t place = 0;; place++) {
        const size_t length = strcspn(line, ",\n");
        if (is_wanted(h->kind, line, length) && h->columns < RM_HISTORY_COLUMNS &&
            length < sizeof h->column[0].name) {
            struct rm_history_column *c = &h->column[h->columns++];
            *c = (struct rm_history_column){.place = place};
            memcpy(c->name, line, length);
        }
        if (line[length] != ',')
            return;
        line += length + 1;
    }
}

static bool grow(struct rm_history *h)
{
    if (h->count < h->room)
        return true;
    const size_t room = h->room ? 2 * h->room : 1024;
    if (room > ROWS_MAX)
        return false;
    for (size_t i = 0; i < h->columns; i++) {
        double *values = realloc(h->column[i].values, room * sizeof *values);
        if (!values)
            return false;
        h->column[i].values = values;
    }
    h->room = room;
    return true;
}

/* A row, up to its newline. */
static void read_row(struct rm_history *h, const char *line, const char *end)
{
    if (!grow(h))
        return;
    size_t place = 0;
    for (size_t i = 0; i < h->columns; i++) {
        struct rm_history_column *c = &h->column[i];
        for (; line && place < c->place; place++)
            line = (line = memchr(line, ',', (size_t)(end - line))) ? line + 1 : NULL;
        char *after = NULL;
        const double value = line && *line != ',' && line < end ? strtod(line, &after) : NAN;
        c->values[h->count] = after && after != line && after <= end ? value : NAN;
    }
    h->count++;
}

/* The lines of a block; returns its bytes up to the last newline. */
static size_t read_lines(struct rm_history *h, const char *block, size_t bytes)
{
    const char *line = block, *end;
    while ((end = memchr(line, '\n', bytes - (size_t)(line - block)))) {
        if (h->columns == 0)
            read_names(h, line);
        else
            read_row(h, line, end);
        line = end + 1;
    }
    return (size_t)(line - block);
}

/* Opens the file, unless it is the one that is open. */
static bool open_file(struct rm_history *h, const char *directory)
{
    char path[PATH_MAX];
    struct stat is;
    snprintf(path, sizeof path, "%s/metrics.csv", directory);
    if (lstat(path, &is) < 0 || !S_ISREG(is.st_mode))
        return h->fd >= 0;
    if (h->fd >= 0 && is.st_dev == h->device && is.st_ino == h->inode && is.st_size >= h->at)
        return true;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    rm_history_free(h);
    if (fd >= 0 && (fstat(fd, &is) < 0 || !S_ISREG(is.st_mode))) {
        close(fd);
        return false;
    }
    h->fd = fd;
    if (fd < 0)
        return false;
    h->device = is.st_dev;
    h->inode = is.st_ino;
    return true;
}

void rm_history_read(struct rm_history *h, const char *directory)
{
    char *block = open_file(h, directory) ? malloc(BLOCK + 1) : NULL;
    if (!block)
        return;
    for (size_t used = 1; used;) {
        const ssize_t n = pread(h->fd, block, BLOCK, h->at);
        if (n <= 0)
            break;
        block[n] = '\0';
        used = read_lines(h, block, (size_t)n);
        h->at += (off_t)used;
    }
    free(block);
}

/* --- as JSON ---------------------------------------------------------------------------------- */

static const struct rm_history_column *column(const struct rm_history *h, const char *name)
{
    for (size_t i = 0; i < h->columns; i++)
        if (!strcmp(h->column[i].name, name))
            return &h->column[i];
    return NULL;
}

/* Rows that have both numbers. */
static size_t rows_of(const struct rm_history *h, const double *x, const double *y, size_t *row)
{
    size_t count = 0;
    for (size_t i = 0; i < h->count; i++)
        if (isfinite(x[i]) && isfinite(y[i]))
            row[count++] = i;
    return count;
}

/* The lowest and the highest of each part, in their order; the first and the last stay. */
static size_t thin(const double *y, size_t *row, size_t count)
{
    size_t kept = 0;
    if (count <= 2 * RM_HISTORY_POINTS)
        return count;
    const size_t last = row[count - 1];
    for (size_t part = 0; part < RM_HISTORY_POINTS; part++) {
        const size_t from = part * count / RM_HISTORY_POINTS;
        const size_t to = (part + 1) * count / RM_HISTORY_POINTS;
        size_t low = row[from], high = row[from];
        for (size_t i = from; i < to; i++) {
            low = y[row[i]] < y[low] ? row[i] : low;
            high = y[row[i]] > y[high] ? row[i] : high;
        }
        const size_t first = row[from];
        if (part == 0 && low != first && high != first)
            row[kept++] = first; /* count > 2 parts, so that there is room */
        row[kept++] = low < high ? low : high;
        if (low != high)
            row[kept++] = low < high ? high : low;
    }
    if (row[kept - 1] != last)
        row[kept++] = last;
    return kept;
}

static void write_numbers(FILE *out, const char *name, const double *values, const size_t *row,
                          size_t count)
{
    fprintf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%.7g", i ? "," : "", values[row[i]]);
    fputc(']', out);
}

bool rm_history_write(const struct rm_history *h, const char *only, bool begun, FILE *out)
{
    const struct rm_history_column *steps = column(h, "steps");
    const struct rm_history_column *played = column(h, "evaluation_steps");
    size_t *row = h->count ? malloc(h->count * sizeof *row) : NULL;
    for (size_t i = 0; row && i < h->columns; i++) {
        const struct rm_history_column *c = &h->column[i];
        const struct rm_history_column *x = !strncmp(c->name, "evaluation_", 11) ? played : steps;
        if (!x || c == steps || c == played || (only && strcmp(only, c->name) != 0))
            continue;
        const size_t count = thin(c->values, row, rows_of(h, x->values, c->values, row));
        if (!count)
            continue;
        fprintf(out, "%s{\"name\":\"", begun ? "," : "");
        for (const char *n = c->name; *n; n++) /* of the daemon, but a file may have anything */
            fputc((unsigned char)*n < ' ' || (unsigned char)*n > '~' || strchr("\"\\", *n) ? '?'
                                                                                           : *n,
                  out);
        fputc('"', out);
        write_numbers(out, "x", x->values, row, count);
        write_numbers(out, "y", c->values, row, count);
        fputc('}', out);
        begun = true;
    }
    free(row);
    return begun;
}
