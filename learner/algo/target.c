#include "learner/algo/target.h"

#include "config/forms.h"

/* Whether the target becomes a copy after this update. */
static bool copied(const struct rm_experiment *e, uint64_t number)
{
    const uint64_t interval = e->algorithm.target.interval;
    if (interval == 0)
        return false;
    if (e->algorithm.target.update == RM_TARGET_HARD)
        return number % interval == 0;
    /* Such a form copies at the start of every interval-th epoch. It makes one update after every
     * epoch but the first, so the copy follows update interval - 1. */
    return rm_form_traits(e->algorithm.form)->copies_target && (number + 1) % interval == 0;
}

double rm_target_part(const struct rm_experiment *e, double tau, uint64_t number)
{
    if (copied(e, number))
        return 1.0;
    return e->algorithm.target.update == RM_TARGET_SOFT ? tau : 0.0;
}

void rm_target_move(struct rm_backend *b, double part, const float *params, size_t count,
                    float *target)
{
    if (part == 1.0)
        b->ops->copy(b, target, params, count * sizeof *params);
    else if (part > 0.0)
        b->ops->lerp(b, (float)part, params, count, target);
}
