#include "daemon/ctl/curve.h"

#include <string.h>

static bool is_either(const void *user, const char *name)
{
    const char *const *names = user;
    return !strcmp(name, names[0]) || !strcmp(name, names[1]);
}

void rm_curve_read(struct rm_curve *curve, const char *directory, const char *column,
                   const char *at_column)
{
    const char *const names[] = {column, at_column};
    curve->rows.whole = true;
    rm_columns_read(&curve->rows, directory, is_either, names);
    const struct rm_series *values = rm_columns_find(&curve->rows, column);
    const struct rm_series *at = rm_columns_find(&curve->rows, at_column);
    curve->count = values && at ? curve->rows.count : 0;
    curve->values = values ? values->values : NULL;
    curve->at = at ? at->values : NULL;
}

void rm_curve_close(struct rm_curve *curve)
{
    rm_columns_free(&curve->rows);
    *curve = (struct rm_curve){.count = 0};
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
