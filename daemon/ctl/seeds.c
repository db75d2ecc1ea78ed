#include "daemon/ctl/seeds.h"

#include "shm/base/rng.h"

#include <math.h>
#include <stdlib.h>

#define RESAMPLES 1000
#define SEED      1 /* of the resampling: the same report twice */

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

static void interval(const double *values, size_t count, struct rm_rng *rng, double *low,
                     double *high)
{
    double means[RESAMPLES], drawn[RM_SEEDS_MAX] = {0};
    for (int r = 0; r < RESAMPLES; r++) {
        for (size_t i = 0; i < count; i++)
            drawn[i] = values[rm_rng_below(rng, (uint32_t)count)];
        means[r] = rm_interquartile_mean(drawn, count);
    }
    qsort(means, RESAMPLES, sizeof means[0], by_value);
    *low = means[(int)(0.025 * RESAMPLES)];
    *high = means[(int)(0.975 * RESAMPLES) - 1];
}

void rm_seeds_of(struct rm_seeds *seeds, const struct rm_curve *const *curves, size_t count)
{
    double from = 0, to = INFINITY, values[RM_SEEDS_MAX];
    struct rm_rng rng = rm_rng_at(SEED, RM_STREAM_RESAMPLE, 0, 0);
    seeds->count = 0;
    for (size_t c = 0; c < count; c++) {
        if (!curves[c]->count)
            return;
        from = fmax(from, curves[c]->at[0]);
        to = fmin(to, curves[c]->at[curves[c]->count - 1]);
    }
    if (count < 2 || count > RM_SEEDS_MAX || !(to > from))
        return;
    for (; seeds->count < RM_SEEDS_GRID; seeds->count++) {
        const size_t i = seeds->count;
        seeds->at[i] = from + (to - from) * (double)i / (RM_SEEDS_GRID - 1);
        for (size_t c = 0; c < count; c++)
            values[c] = value_at(curves[c], seeds->at[i]);
        interval(values, count, &rng, &seeds->low[i], &seeds->high[i]);
        seeds->mean[i] = rm_interquartile_mean(values, count);
    }
}
