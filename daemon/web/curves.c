#include "daemon/web/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the whole run. */
static const char *const wanted[] = {"steps",      "steps_per_s",      "updates_per_s",
                                     "score_last", "evaluation_steps", "evaluation_score"};
#define WANTED (sizeof wanted / sizeof wanted[0])

static bool is_loss(const char *name)
{
    const size_t length = strlen(name);
    return length > 12 && !strncmp(name, "policy.", 7) && !strcmp(name + length - 5, ".loss");
}

static bool is_wanted(const void *user, const char *name)
{
    const enum rm_web_curves_kind kind = *(const enum rm_web_curves_kind *)user;
    if (kind == RM_WEB_CURVES_LOSSES && is_loss(name))
        return true;
    for (size_t i = 0; i < (kind == RM_WEB_CURVES_LOSSES ? 1 : WANTED); i++) /* steps: for all */
        if (!strcmp(wanted[i], name))
            return true;
    return false;
}

void rm_web_curves_read(struct rm_columns *curves, enum rm_web_curves_kind kind,
                        const char *directory)
{
    rm_columns_read(curves, directory, is_wanted, &kind);
}

/* Rows that have both numbers. */
static size_t rows_of(const struct rm_columns *h, const double *x, const double *y, size_t *row)
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
    if (count <= 2 * RM_WEB_CURVES_POINTS)
        return count;
    const size_t last = row[count - 1];
    for (size_t part = 0; part < RM_WEB_CURVES_POINTS; part++) {
        const size_t from = part * count / RM_WEB_CURVES_POINTS;
        const size_t to = (part + 1) * count / RM_WEB_CURVES_POINTS;
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

bool rm_web_curves_write(const struct rm_columns *h, const char *only, bool begun, FILE *out)
{
    const struct rm_series *steps = rm_columns_find(h, "steps");
    const struct rm_series *played = rm_columns_find(h, "evaluation_steps");
    size_t *row = h->count ? malloc(h->count * sizeof *row) : NULL;
    for (size_t i = 0; row && i < h->columns; i++) {
        const struct rm_series *c = &h->column[i];
        const struct rm_series *x = !strncmp(c->name, "evaluation_", 11) ? played : steps;
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
