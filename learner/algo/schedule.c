#include "learner/algo/schedule.h"

#include <math.h>

static double constant(double x, double end)
{
    (void)x;
    (void)end;
    return 1.0;
}

static double linear(double x, double end)
{
    return 1.0 - (1.0 - end) * x;
}

static double cosine(double x, double end)
{
    return end + (1.0 - end) * 0.5 * (1.0 + cos(M_PI * x));
}

static double (*const shapes[])(double x, double end) = {
    [RM_SCHEDULE_CONSTANT] = constant,
    [RM_SCHEDULE_LINEAR] = linear,
    [RM_SCHEDULE_COSINE] = cosine,
};

double rm_schedule_factor(const struct rm_experiment *experiment, uint64_t update, double progress)
{
    const uint64_t warmup = experiment->optimizer.schedule.warmup;
    const uint64_t span = experiment->optimizer.schedule.span;
    double x = progress;
    if (span)
        x = update > warmup ? (double)(update - 1 - warmup) / (double)span : 0.0;
    x = x < 0.0 ? 0.0 : x > 1.0 ? 1.0 : x;
    const double rise = update < warmup ? (double)update / (double)warmup : 1.0;
    return rise *
           shapes[experiment->optimizer.schedule.kind](x, experiment->optimizer.schedule.end);
}
