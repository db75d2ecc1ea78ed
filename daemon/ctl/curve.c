#include "daemon/ctl/curve.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The number in a column of a line; NAN if there is none. */
static double number_in(const char *line, size_t column)
{
    for (; column && line; column--)
        line = (line = strchr(line, ',')) ? line + 1 : NULL;
    char *end = NULL;
    const double value = line ? strtod(line, &end) : NAN;
    return end == line ? NAN : value;
}

/* The number of a header's column of this name, or SIZE_MAX. */
static size_t column_of(const char *header, const char *name)
{
    const size_t length = strlen(name);
    for (size_t column = 0;; column++) {
        const size_t width = strcspn(header, ",\n");
        if (width == length && !strncmp(header, name, length))
            return column;
        if (header[width] != ',')
            return SIZE_MAX;
        header += width + 1;
    }
}

void rm_curve_open(struct rm_curve *curve, const char *directory, const char *column,
                   const char *at_column)
{
    char path[PATH_MAX];
    *curve = (struct rm_curve){.count = 0};
    snprintf(path, sizeof path, "%s/metrics.csv", directory);
    rm_lines_open(&curve->rows, path);
    const char *header = rm_lines_next(&curve->rows);
    if (header) {
        curve->column = column_of(header, column);
        curve->at_column = column_of(header, at_column);
    }
    if (!header || curve->column == SIZE_MAX || curve->at_column == SIZE_MAX)
        rm_curve_close(curve);
}

void rm_curve_close(struct rm_curve *curve)
{
    rm_lines_close(&curve->rows);
    free(curve->values);
    free(curve->at);
    *curve = (struct rm_curve){.count = 0};
}

static bool resize(double **numbers, size_t count)
{
    double *resized = realloc(*numbers, count * sizeof *resized);
    if (resized)
        *numbers = resized;
    return resized;
}

/* Room for another value. */
static bool grow(struct rm_curve *curve)
{
    if (curve->count < curve->room)
        return true;
    const size_t room = curve->room ? 2 * curve->room : 256;
    if (!resize(&curve->values, room) || !resize(&curve->at, room))
        return false;
    curve->room = room;
    return true;
}

void rm_curve_read(struct rm_curve *curve)
{
    for (const char *line; (line = rm_lines_next(&curve->rows));) {
        const double value = number_in(line, curve->column), at = number_in(line, curve->at_column);
        if (isnan(value) || isnan(at) || !grow(curve))
            continue;
        curve->values[curve->count] = value;
        curve->at[curve->count++] = at;
    }
}

size_t rm_curve_means(const struct rm_curve *curve, double *mean, size_t cells)
{
    if (cells > curve->count)
        cells = curve->count;
    for (size_t cell = 0; cell < cells; cell++) {
        const size_t from = cell * curve->count / cells, to = (cell + 1) * curve->count / cells;
        double sum = 0;
        for (size_t i = from; i < to; i++)
            sum += curve->values[i];
        mean[cell] = sum / (double)(to - from);
    }
    return cells;
}
