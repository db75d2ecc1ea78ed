#include "daemon/ctl/curve.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The next whole line, or NULL: then the file is at its beginning again. */
static char *next_line(struct rm_curve *c)
{
    const long began = ftell(c->file);
    const ssize_t length = getline(&c->line, &c->line_room, c->file);
    if (length > 0 && c->line[length - 1] == '\n') {
        c->line[length - 1] = '\0';
        return c->line;
    }
    clearerr(c->file);
    fseek(c->file, began, SEEK_SET);
    return NULL;
}

static const char *field(char *line, size_t column)
{
    char *rest = line, *found = NULL;
    for (size_t i = 0; i <= column; i++)
        found = strsep(&rest, ",");
    return found;
}

void rm_curve_open(struct rm_curve *curve, const char *directory, const char *column)
{
    char path[PATH_MAX];
    *curve = (struct rm_curve){.file = NULL};
    snprintf(path, sizeof path, "%s/metrics.csv", directory);
    curve->file = fopen(path, "re");
    char *header = curve->file ? next_line(curve) : NULL;
    for (const char *name; (name = header ? strsep(&header, ",") : NULL); curve->column++)
        if (!strcmp(name, column))
            return;
    rm_curve_close(curve);
}

void rm_curve_close(struct rm_curve *curve)
{
    if (curve->file)
        fclose(curve->file);
    free(curve->values);
    free(curve->line);
    *curve = (struct rm_curve){.file = NULL};
}

void rm_curve_read(struct rm_curve *curve)
{
    for (char *line; (line = curve->file ? next_line(curve) : NULL);) {
        const char *text = field(line, curve->column);
        char *end = NULL;
        const double value = text ? strtod(text, &end) : 0;
        if (!text || end == text)
            continue;
        if (curve->count == curve->room) {
            const size_t room = curve->room ? 2 * curve->room : 256;
            double *values = realloc(curve->values, room * sizeof *values);
            if (!values)
                return;
            curve->values = values;
            curve->room = room;
        }
        curve->values[curve->count++] = value;
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
