#include "shm/limiter.h"

#include "shm/atomic.h"

#include <math.h>

void rm_limiter_init(struct rm_limiter *limiter, double samples_per_insert, double min_error,
                     double max_error, uint64_t min_inserted)
{
    RM_POKE(&limiter->inserted, 0);
    RM_POKE(&limiter->sampled, 0);
    RM_POKE(&limiter->samples_per_insert, samples_per_insert);
    RM_POKE(&limiter->min_error, min_error);
    RM_POKE(&limiter->max_error, max_error);
    RM_POKE(&limiter->min_inserted, min_inserted);
}

void rm_limiter_change(struct rm_limiter *limiter, double samples_per_insert, double slack)
{
    double before = RM_PEEK(&limiter->samples_per_insert);
    double middle = (RM_PEEK(&limiter->min_error) + RM_PEEK(&limiter->max_error)) / 2;
    double inserted = (double)rm_atomic_limiter_counted(&limiter->inserted);
    double sampled = (double)rm_atomic_limiter_counted(&limiter->sampled);
    /* The change of ratio moves the error of the old items; move the bounds by the same amount. */
    if (before <= 0)
        middle = inserted * samples_per_insert - sampled;
    else if (samples_per_insert > 0)
        middle += inserted * (samples_per_insert - before);
    RM_POKE(&limiter->min_error, middle - slack);
    RM_POKE(&limiter->max_error, middle + slack);
    RM_POKE(&limiter->samples_per_insert, samples_per_insert);
}

bool rm_limiter_may_insert(const struct rm_limiter *limiter, uint64_t n)
{
    double ratio = RM_PEEK(&limiter->samples_per_insert);
    uint64_t inserted = rm_atomic_limiter_counted(&limiter->inserted);
    /* Below the minimum the learner may not sample, so the error cannot fall. Let an insert step
     * over the minimum, so that it need not hit it exactly. */
    if (ratio <= 0 || inserted < RM_PEEK(&limiter->min_inserted))
        return true;
    double sampled = (double)rm_atomic_limiter_counted(&limiter->sampled);
    return (double)(inserted + n) * ratio - sampled <= RM_PEEK(&limiter->max_error);
}

static bool may_sample(const struct rm_limiter *limiter, uint64_t inserted, uint64_t n)
{
    if (inserted < RM_PEEK(&limiter->min_inserted))
        return false;
    double ratio = RM_PEEK(&limiter->samples_per_insert);
    if (ratio <= 0)
        return true;
    double sampled = (double)(RM_PEEK(&limiter->sampled) + n);
    return (double)inserted * ratio - sampled >= RM_PEEK(&limiter->min_error);
}

void rm_limiter_inserted(struct rm_limiter *limiter, uint64_t n)
{
    rm_atomic_limiter_count(&limiter->inserted, n);
}

void rm_limiter_sampled(struct rm_limiter *limiter, uint64_t n)
{
    rm_atomic_limiter_count(&limiter->sampled, n);
}

uint64_t rm_limiter_needed(const struct rm_limiter *limiter, uint64_t n)
{
    uint64_t inserted = rm_atomic_limiter_counted(&limiter->inserted);
    if (may_sample(limiter, inserted, n))
        return 0;

    uint64_t wanted = RM_PEEK(&limiter->min_inserted);
    double ratio = RM_PEEK(&limiter->samples_per_insert);
    if (ratio > 0) {
        double sampled = (double)(RM_PEEK(&limiter->sampled) + n);
        double items = ceil((RM_PEEK(&limiter->min_error) + sampled) / ratio);
        if (items > (double)wanted)
            wanted = (uint64_t)items;
    }
    if (wanted <= inserted)
        wanted = inserted + 1;
    /* The division may have rounded: repeat the test itself. */
    while (wanted - 1 > inserted && may_sample(limiter, wanted - 1, n))
        wanted--;
    while (!may_sample(limiter, wanted, n))
        wanted++;
    return wanted;
}
