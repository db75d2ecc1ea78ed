#include "actor/epsilon.h"

#include <math.h>

struct rm_epsilon rm_epsilon_of(const struct rm_experiment *experiment)
{
    return (struct rm_epsilon){
        .start = experiment->epsilon.start,
        .end = experiment->epsilon.end,
        .factor = experiment->epsilon.factor,
        .span = experiment->epsilon.span,
        .decay = experiment->epsilon.decay,
        .unit = experiment->epsilon.unit,
    };
}

static double linear(const struct rm_epsilon *e, uint64_t units)
{
    if (units >= e->span)
        return e->end;
    return e->start + (e->end - e->start) * ((double)units / (double)e->span);
}

static double exponential(const struct rm_epsilon *e, uint64_t units)
{
    double rate = e->start * pow(e->factor, (double)units);
    return e->start >= e->end ? fmax(rate, e->end) : fmin(rate, e->end);
}

double rm_epsilon_at(const struct rm_epsilon *epsilon, uint64_t units)
{
    return epsilon->decay == RM_DECAY_LINEAR ? linear(epsilon, units) : exponential(epsilon, units);
}

uint64_t rm_epsilon_bound(double rate)
{
    if (!(rate > 0))
        return 0;
    if (rate >= 1)
        return UINT64_C(1) << 32;
    return (uint64_t)(rate * 0x1p32);
}
