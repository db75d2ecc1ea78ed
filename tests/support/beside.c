#include "tests/support/beside.h"

#include "tests/support/backends.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void rm_test_beside_open(struct rm_test_beside *p, struct rm_trainer_spec spec)
{
    memset(p, 0, sizeof *p);
    spec.backend = rm_test_device;
    p->there = rm_test_updates_make(&spec);
    spec.backend = rm_test_cpu;
    p->here = rm_test_updates_make(&spec);
    assert_true(rm_trainer_is_late(p->there) && !rm_trainer_is_late(p->here));
}

void rm_test_beside_close(struct rm_test_beside *p)
{
    rm_trainer_destroy(p->there);
    rm_trainer_destroy(p->here);
}

static void add(struct rm_trainer_result *sum, const struct rm_trainer_result *r, uint64_t times)
{
    sum->loss += (double)times * r->loss;
    sum->grad_norm += (double)times * r->grad_norm;
    sum->q_mean += (double)times * r->q_mean;
    sum->entropy += (double)times * r->entropy;
    sum->temperature += (double)times * r->temperature;
}

/* What has come back from the device by now, or all of it. */
static void hear(struct rm_test_beside *p, bool wait)
{
    struct rm_trainer_report r;
    if (rm_trainer_report(p->there, wait, &r)) {
        p->made += r.made;
        add(&p->sum_there, &r.mean, r.made);
        assert_true(r.skipped == 0 && r.through >= p->made);
    }
    for (struct rm_batch *b; (b = rm_trainer_learned(p->there));) {
        const float *expected = p->errors[++p->batches];
        for (uint32_t i = 0; i < b->size; i++)
            if (!(fabsf(b->error[i] - expected[i]) <= 2e-3f * (0.1f + expected[i])))
                fail_msg("batch %llu: error %g, the CPU's is %g", (unsigned long long)p->batches,
                         (double)b->error[i], (double)expected[i]);
    }
}

void rm_test_beside_update(struct rm_test_beside *p, struct rm_batch *b, uint64_t number)
{
    assert_true(number <= RM_BESIDE_UPDATES && b->size <= RM_BESIDE_BATCH);
    rm_trainer_batch(p->there);
    hear(p, false);
    assert_true(rm_trainer_update(p->there, b, number, NULL).late);
    const struct rm_trainer_result r = rm_trainer_update(p->here, b, number, NULL);
    assert_false(r.skipped);
    add(&p->sum_here, &r, 1);
    if (b->error)
        memcpy(p->errors[number], b->error, b->size * sizeof *b->error);
    p->updates++;
}

static void assert_mean(const struct rm_test_beside *p, const char *what, double there, double here,
                        double floor)
{
    there /= (double)p->updates;
    here /= (double)p->updates;
    if (!(fabs(there - here) <= 1e-3 * (floor + fabs(here))))
        fail_msg("%s: %.9g on the device, %.9g on the CPU", what, there, here);
}

void rm_test_beside_end(struct rm_test_beside *p, bool priorities)
{
    const struct rm_trainer_result *there = &p->sum_there, *here = &p->sum_here;
    hear(p, true);
    rm_test_device_fine(rm_test_device);
    assert_int_equal(p->made, p->updates);
    assert_int_equal(p->batches, priorities ? p->updates : 0);
    assert_mean(p, "loss", there->loss, here->loss, 1e-3);
    assert_mean(p, "grad_norm", there->grad_norm, here->grad_norm, 1e-3);
    assert_mean(p, "q_mean", there->q_mean, here->q_mean, 1e-2);
    assert_mean(p, "entropy", there->entropy, here->entropy, 1e-2);
    assert_mean(p, "temperature", there->temperature, here->temperature, 1e-2);
}

void rm_test_beside_compare(const struct rm_test_beside *p, const char *what, const float *there,
                            const float *here)
{
    float *x = rm_test_updates_copy(p->there, rm_test_device, there);
    float *y = rm_test_updates_copy(p->here, rm_test_cpu, here);
    const double apart = rm_test_updates_apart(x, y, rm_net_param_count(rm_trainer_net(p->here)));
    if (!(apart < 1e-4))
        fail_msg("%s: %g apart after %llu updates", what, apart, (unsigned long long)p->updates);
    free(x);
    free(y);
}
