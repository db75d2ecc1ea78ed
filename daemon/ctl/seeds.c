#include "daemon/ctl/seeds.h"

#include "shm/base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double rm_interquartile_mean(double *values, size_t count)
{
    const size_t cut = count / 4;
    double sum = 0;
    qsort(values, count, sizeof *values, by_value);
    for (size_t i = cut; i < count - cut; i++)
        sum += values[i];
    return sum / (double)(count - 2 * cut);
}

/* The newest value at or before a step. */
static double value_at(const struct rm_curve *curve, double at)
{
    size_t low = 0, high = curve->count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(curve->at[middle] <= at ? &low : &high) = middle;
    }
    return curve->values[low];
}

void rm_interquartile_interval(const double *values, size_t count, double *low, double *high)
{
    double *drawn = count > 1 ? calloc(count, sizeof *drawn) : NULL, means[RM_SEEDS_DRAWS];
    struct rm_rng rng = rm_rng_at(0, RM_STREAM_RESAMPLE, 0, 0);
    *low = *high = NAN;
    if (!drawn)
        return;
    for (int k = 0; k < RM_SEEDS_DRAWS; k++) {
        for (size_t i = 0; i < count; i++)
            drawn[i] = values[rm_rng_below(&rng, (uint32_t)count)];
        means[k] = rm_interquartile_mean(drawn, count);
    }
    qsort(means, RM_SEEDS_DRAWS, sizeof means[0], by_value);
    *low = means[RM_SEEDS_DRAWS / 40];
    *high = means[RM_SEEDS_DRAWS - 1 - RM_SEEDS_DRAWS / 40];
    free(drawn);
}

void rm_seeds_of(struct rm_seeds *seeds, const struct rm_curve *const *curves, size_t count)
{
    double from = 0, to = INFINITY, *values = calloc(count, sizeof *values);
    bool empty = !values;
    seeds->count = 0;
    for (size_t c = 0; c < count && !empty; c++) {
        empty = !curves[c]->count;
        from = empty ? from : fmax(from, curves[c]->at[0]);
        to = empty ? to : fmin(to, curves[c]->at[curves[c]->count - 1]);
    }
    if (!empty && count > 1 && to >= from)
        seeds->count = to > from ? RM_SEEDS_GRID : 1;
    for (size_t i = 0; i < seeds->count; i++) {
        seeds->at[i] = from + (to - from) * (double)i / (RM_SEEDS_GRID - 1);
        for (size_t c = 0; c < count; c++)
            values[c] = value_at(curves[c], seeds->at[i]);
        rm_interquartile_interval(values, count, &seeds->low[i], &seeds->high[i]);
        seeds->mean[i] = rm_interquartile_mean(values, count);
    }
    free(values);
}

struct rm_plot_series *rm_plot_add_seeds(struct rm_plot *plot, const struct rm_seeds *seeds,
                                         size_t count)
{
    struct rm_plot_series *mean = seeds->count ? rm_plot_add(plot) : NULL;
    if (!mean)
        return NULL;
    *mean = (struct rm_plot_series){.x = seeds->at,
                                    .y = seeds->mean,
                                    .low = seeds->low,
                                    .high = seeds->high,
                                    .count = seeds->count,
                                    .colour = RM_PLOT_GREY};
    snprintf(mean->name, sizeof mean->name, "interquartile mean of %zu, 95 %% interval", count);
    return mean;
}
