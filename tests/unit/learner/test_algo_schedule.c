/* Schedules against figures worked out by hand. */
#include "learner/algo/schedule.h"
#include "tests/support/unit.h"

#include <math.h>
#include <string.h>

static struct rm_experiment of(enum rm_schedule_kind kind, uint64_t warmup, uint64_t span,
                               double end)
{
    static struct rm_experiment e;
    memset(&e, 0, sizeof e);
    e.optimizer.schedule.kind = kind;
    e.optimizer.schedule.warmup = warmup;
    e.optimizer.schedule.span = span;
    e.optimizer.schedule.end = end;
    return e;
}

static void is(const struct rm_experiment *e, uint64_t update, double progress, double factor)
{
    const double got = rm_schedule_factor(e, update, progress);
    if (fabs(got - factor) > 1e-12)
        fail_msg("update %lu, progress %g: %.15g, not %.15g", (unsigned long)update, progress, got,
                 factor);
}

static void constant(void **state)
{
    (void)state;
    const struct rm_experiment e = of(RM_SCHEDULE_CONSTANT, 0, 0, 0);
    is(&e, 1, 0, 1);
    is(&e, 1000000, 1, 1);
}

static void linear(void **state)
{
    (void)state;
    const struct rm_experiment by_updates = of(RM_SCHEDULE_LINEAR, 0, 100, 0.2);
    is(&by_updates, 1, 0.9, 1);
    is(&by_updates, 26, 0.9, 0.8);
    is(&by_updates, 101, 0, 0.2);
    is(&by_updates, 5000, 0, 0.2);
    const struct rm_experiment by_run = of(RM_SCHEDULE_LINEAR, 0, 0, 0);
    is(&by_run, 7, 0, 1);
    is(&by_run, 7, 0.25, 0.75);
    is(&by_run, 7, 1, 0);
    is(&by_run, 7, 1.5, 0);
}

static void cosine(void **state)
{
    (void)state;
    const struct rm_experiment e = of(RM_SCHEDULE_COSINE, 0, 90, 0.1);
    is(&e, 1, 0, 1);
    is(&e, 31, 0, 0.1 + 0.9 * 0.75); /* cos(60 degrees) = 1/2 */
    is(&e, 46, 0, 0.55);
    is(&e, 91, 0, 0.1);
    is(&e, 1000, 0, 0.1);
}

static void warm_up(void **state)
{
    (void)state;
    const struct rm_experiment flat = of(RM_SCHEDULE_CONSTANT, 4, 0, 0);
    is(&flat, 1, 0, 0.25);
    is(&flat, 3, 0, 0.75);
    is(&flat, 4, 0, 1);
    is(&flat, 5, 0, 1);
    const struct rm_experiment falls = of(RM_SCHEDULE_LINEAR, 4, 10, 0);
    is(&falls, 2, 0, 0.5);
    is(&falls, 4, 0, 1);
    is(&falls, 5, 0, 1);
    is(&falls, 10, 0, 0.5);
    is(&falls, 15, 0, 0);
    const struct rm_experiment run = of(RM_SCHEDULE_LINEAR, 4, 0, 0);
    is(&run, 2, 0.1, 0.45); /* both at once where the run says how far it is */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant),
        cmocka_unit_test(linear),
        cmocka_unit_test(cosine),
        cmocka_unit_test(warm_up),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
