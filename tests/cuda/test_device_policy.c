/* Scans over a rollout and the loss of actor-critic learners on a device, against the CPU's. */
#include "learner/backend/gae.h"
#include "learner/algo/moments.h"
#include "learner/backend/policy_loss.h"
#include "learner/algo/value_head.h"
#include "learner/backend/vtrace.h"
#include "learner/backend/device_policy.h"
#include "shm/base/rng.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct rm_backend *device;
static struct rm_rng rng;

static int open_device(void **state)
{
    (void)state;
    device = rm_test_device_open();
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    rm_backend_destroy(device);
    return 0;
}

/* --- memory ---------------------------------------------------------------------------------- */

static void *owned[64];
static size_t owned_count;

static void *on_device(const void *from, size_t bytes)
{
    const size_t words = (bytes + 3) / 4;
    float *padded = calloc(words + 1, sizeof *padded);
    void *to = device->device->alloc(device, words * 4, NULL);
    assert_true(padded && to && owned_count < 64);
    owned[owned_count++] = to;
    if (from)
        memcpy(padded, from, bytes);
    device->ops->upload(device, to, padded, words);
    free(padded);
    return to;
}

static void release_all(void)
{
    while (owned_count)
        device->ops->release(device, owned[--owned_count]);
}

static void fetch(void *to, const void *from, size_t bytes)
{
    device->ops->download(device, to, from, bytes / 4);
}

/* --- drawn rollouts -------------------------------------------------------------------------- */

#define ROWS_MAX 6000u

static float reward[ROWS_MAX], value[ROWS_MAX], discount[ROWS_MAX], valid[ROWS_MAX];
static float logp_now[ROWS_MAX], logp_then[ROWS_MAX], ratio[ROWS_MAX];
static float advantage[ROWS_MAX], target[ROWS_MAX], seen_advantage[ROWS_MAX], seen_target[ROWS_MAX];
static uint32_t sample[ROWS_MAX], samples;

static float drawn(float size)
{
    return size * (2 * rm_rng_float(&rng) - 1);
}

static struct rm_rollout_rows draw_rollout(uint32_t steps, uint32_t lanes)
{
    samples = 0;
    for (uint32_t i = 0; i < (steps + 1) * lanes; i++) {
        reward[i] = drawn(3);
        value[i] = drawn(5);
        logp_now[i] = -rm_rng_float(&rng) * 3;
        logp_then[i] = -rm_rng_float(&rng) * 3;
        valid[i] = rm_rng_below(&rng, 9) > 0;
        discount[i] = valid[i] > 0 && rm_rng_below(&rng, 9) > 0 ? 0.97f : 0;
        ratio[i] = expf(logp_now[i] - logp_then[i]);
        sample[samples] = i;
        samples += i < steps * lanes && valid[i] > 0;
    }
    return (struct rm_rollout_rows){steps, lanes, reward, value, discount, valid};
}

static struct rm_rollout_rows sent(const struct rm_rollout_rows *r)
{
    const size_t rows = (size_t)r->steps * r->lanes, more = rows + r->lanes;
    return (struct rm_rollout_rows){r->steps,
                                    r->lanes,
                                    on_device(reward, more * 4),
                                    on_device(value, more * 4),
                                    on_device(discount, rows * 4),
                                    on_device(valid, rows * 4)};
}

static const struct {
    uint32_t steps, lanes;
} rollouts[] = {{1, 1}, {5, 1}, {128, 7}, {16, 300}, {3, 65}, {40, 16}};
#define ROLLOUTS (sizeof rollouts / sizeof *rollouts)

/* Within 1e-5: a device's expf() is not the host's. */
static void close_by(size_t rows, const float *device_advantage, const float *device_target)
{
    fetch(seen_advantage, device_advantage, rows * 4);
    fetch(seen_target, device_target, rows * 4);
    for (size_t i = 0; i < rows; i++) {
        assert_float_equal(seen_advantage[i], advantage[i], 1e-5f * (1 + fabsf(advantage[i])));
        assert_float_equal(seen_target[i], target[i], 1e-5f * (1 + fabsf(target[i])));
    }
}

static void same(size_t rows, const float *device_advantage, const float *device_target)
{
    fetch(seen_advantage, device_advantage, rows * 4);
    fetch(seen_target, device_target, rows * 4);
    assert_memory_equal(seen_advantage, advantage, rows * 4);
    assert_memory_equal(seen_target, target, rows * 4);
}

static void gae_is_the_cpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROLLOUTS; i++) {
        rng = rm_rng_at(1, RM_STREAM_TEST, 0, i);
        const struct rm_rollout_rows here = draw_rollout(rollouts[i].steps, rollouts[i].lanes);
        const struct rm_rollout_rows there = sent(&here);
        const size_t rows = (size_t)here.steps * here.lanes;
        float *a = on_device(NULL, rows * 4), *t = on_device(NULL, rows * 4);
        rm_gae(&here, 0.95f, advantage, target);
        device->device->policies->gae(device, &there, 0.95f, a, t);
        same(rows, a, t);
        release_all();
    }
    rm_test_device_fine(device);
}

static void vtrace_is_the_cpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROLLOUTS; i++) {
        rng = rm_rng_at(1, RM_STREAM_TEST, 1, i);
        const struct rm_rollout_rows here = draw_rollout(rollouts[i].steps, rollouts[i].lanes);
        const struct rm_rollout_rows there = sent(&here);
        const size_t rows = (size_t)here.steps * here.lanes;
        const struct rm_vtrace v = {.lambda = 0.9f, .rho_max = 1.1f, .c_max = 0.8f, .ratio = ratio};
        float *a = on_device(NULL, rows * 4), *t = on_device(NULL, rows * 4);
        rm_vtrace(&here, &v, advantage, target);
        device->device->policies->vtrace(device, &there, &v, on_device(logp_now, rows * 4),
                                         on_device(logp_then, rows * 4), a, t);
        close_by(rows, a, t);
        release_all();
    }
    rm_test_device_fine(device);
}

/* --- returns --------------------------------------------------------------------------------- */

static void assert_close(const char *what, double x, double y, double within)
{
    if (!(fabs(x - y) <= within * (1e-3 + fabs(y))))
        fail_msg("%s: %.9g on the device, %.9g on the CPU", what, x, y);
}

/* value_head.c's step by the same returns, on a network of `weights` and a bias. */
static struct rm_value_head followed(enum rm_device_follow follow, struct rm_backend *cpu,
                                     struct rm_experiment *e, float *params, uint32_t weights)
{
    struct rm_value_head head;
    float returns[ROWS_MAX];
    memset(e, 0, sizeof *e);
    e->algorithm.value_head = follow == RM_FOLLOW_NOTHING ? RM_VALUE_PLAIN : RM_VALUE_POPART;
    e->algorithm.popart_deviation =
        follow == RM_FOLLOW_AVERAGED ? RM_POPART_AVERAGED : RM_POPART_MOMENTS;
    e->algorithm.popart_beta = 0.01;
    rm_value_head_create(&head, e, cpu, (struct rm_net_value_output){0, weights, weights});
    if (follow != RM_FOLLOW_NOTHING)
        rm_value_head_resume(&head, (struct rm_value_head_state){0.5, 2, 4.25, 3});
    for (uint32_t i = 0; i < samples; i++)
        returns[i] = target[sample[i]];
    rm_value_head_update(&head, rm_moments_of(returns, samples), params);
    return head;
}

static void check_returns(enum rm_device_follow follow, bool normalise, size_t which)
{
    enum { WEIGHTS = 37 };
    struct rm_error error = {""};
    struct rm_backend *cpu;
    struct rm_experiment e;
    rng = rm_rng_at(1, RM_STREAM_TEST, 2, which);
    const struct rm_rollout_rows here = draw_rollout(rollouts[which].steps, rollouts[which].lanes);
    const uint32_t rows = here.steps * here.lanes;
    float params[WEIGHTS + 1], seen[WEIGHTS + 1];
    for (uint32_t i = 0; i <= WEIGHTS; i++)
        params[i] = drawn(1);
    rm_gae(&here, 0.95f, advantage, target);
    const struct rm_device_value_head before = follow
                                                   ? (struct rm_device_value_head){0.5, 2, 4.25, 3}
                                                   : (struct rm_device_value_head){0, 1, 1, 0};
    const struct rm_device_passes passes = {.samples = samples};
    float *there = on_device(params, sizeof params);
    const struct rm_device_returns r = {
        .rows = rows,
        .sample = on_device(sample, sizeof *sample * rows),
        .advantage = on_device(advantage, rows * 4),
        .value = on_device(value, rows * 4),
        .target = on_device(target, rows * 4),
        .follow = follow,
        .beta_least = 0.01,
        .weight = there,
        .bias = there + WEIGHTS,
        .weights = WEIGHTS,
        .normalise = normalise,
        .head = on_device(&before, sizeof before),
        .passes = on_device(&passes, sizeof passes),
        .figures = on_device(NULL, sizeof(struct rm_device_figures)),
    };
    device->device->policies->returns(device, &r);

    assert_int_equal(rm_backend_cpu_create(&cpu, 1, "auto", &error), 0);
    const struct rm_value_head head = followed(follow, cpu, &e, params, WEIGHTS);
    struct rm_device_value_head after;
    struct rm_device_passes told;
    struct rm_device_figures figures;
    fetch(&after, r.head, sizeof after);
    fetch(&told, r.passes, sizeof told);
    fetch(&figures, r.figures, sizeof figures);
    fetch(seen, there, sizeof seen);
    fetch(seen_target, r.target, rows * 4);
    assert_close("mean", after.mean, head.state.mean, 1e-9);
    assert_close("deviation", after.deviation, head.state.deviation, 1e-9);
    assert_close("second", after.second, head.state.second, 1e-9);
    assert_int_equal(after.updates, head.state.updates);
    assert_int_equal(figures.stop, samples == 0);
    for (uint32_t i = 0; i <= WEIGHTS; i++)
        assert_close("weight", (double)seen[i], (double)params[i], 1e-6);
    for (uint32_t i = 0; i < rows; i++)
        assert_close("target", (double)seen_target[i], (double)rm_value_target(&head, target[i]),
                     1e-6);
    if (normalise && samples > 1) {
        double mean = 0, square = 0;
        for (uint32_t i = 0; i < samples; i++)
            mean += (double)advantage[sample[i]] / samples;
        for (uint32_t i = 0; i < samples; i++)
            square += pow((double)advantage[sample[i]] - mean, 2);
        assert_close("mean", (double)told.whole_mean, mean, 1e-5);
        assert_close("scale", (double)told.whole_scale, 1 / (sqrt(square / (samples - 1)) + 1e-8),
                     1e-6);
    } else if (!normalise) {
        assert_close("scale", (double)told.whole_scale, 1 / head.state.deviation, 1e-6);
    }
    rm_backend_destroy(cpu);
    release_all();
}

static void returns_are_the_cpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROLLOUTS; i++)
        for (int follow = 0; follow <= RM_FOLLOW_AVERAGED; follow++)
            for (int normalise = 0; normalise < 2; normalise++)
                check_returns((enum rm_device_follow)follow, normalise, i);
    rm_test_device_fine(device);
}

/* --- loss ------------------------------------------------------------------------------------ */

#define N       150u
#define ACTIONS 40u

static uint32_t index_of[N];
static int32_t action[ROWS_MAX * RM_CHOICES_MAX];
static uint8_t mask[ROWS_MAX * ACTIONS];
static float out[N * (ACTIONS + 1)], d_out[N * (ACTIONS + 1)], seen_d[N * (ACTIONS + 1)];
static float weight[N];

struct kind {
    uint32_t choices, choice[3];
    bool masks;
    float clip, value_clip;
};

static struct rm_policy_loss draw_loss(const struct kind *k, uint32_t rows)
{
    struct rm_policy_loss l = {
        .index = index_of,
        .action = action,
        .mask = k->masks ? mask : NULL,
        .logp = logp_then,
        .advantage = advantage,
        .target = target,
        .value = value,
        .valid = valid,
        .advantage_mean = 0.3f,
        .advantage_scale = 1.7f,
        .clip = k->clip,
        .value_clip = k->value_clip,
        .value_coefficient = 0.6f,
        .entropy_coefficient = 0.05f,
    };
    struct rm_categorical *c = &l.distribution;
    c->choices = k->choices;
    for (uint32_t i = 0; i < k->choices; i++)
        c->actions += c->choice_actions[i] = k->choice[i];
    l.outputs = c->actions + 1;
    for (uint32_t i = 0; i < rows; i++) {
        for (uint32_t j = 0, at = 0; j < k->choices; at += k->choice[j++]) {
            const uint32_t taken = rm_rng_below(&rng, k->choice[j]);
            action[i * k->choices + j] = (int32_t)taken;
            for (uint32_t a = 0; a < k->choice[j]; a++)
                mask[i * c->actions + at + a] = a == taken || rm_rng_below(&rng, 3) > 0;
        }
        advantage[i] = drawn(2);
        target[i] = drawn(2);
        value[i] = drawn(2);
        logp_then[i] = -rm_rng_float(&rng) * 2;
        valid[i] = rm_rng_below(&rng, 8) > 0;
    }
    uint32_t batch = 0;
    for (uint32_t i = 0; i < N; i++) {
        index_of[i] = rm_rng_below(&rng, rows);
        weight[i] = valid[index_of[i]];
        batch += weight[i] > 0;
    }
    for (uint32_t i = 0; i < N * l.outputs; i++)
        out[i] = drawn(2);
    l.scale = 1.0f / (float)batch;
    return l;
}

static struct rm_policy_loss sent_loss(const struct rm_policy_loss *l, uint32_t rows)
{
    struct rm_policy_loss t = *l;
    t.index = on_device(index_of, sizeof index_of);
    t.action = on_device(action, rows * l->distribution.choices * 4);
    t.mask = l->mask ? on_device(mask, (size_t)rows * l->distribution.actions) : NULL;
    t.logp = on_device(logp_then, rows * 4);
    t.advantage = on_device(advantage, rows * 4);
    t.target = on_device(target, rows * 4);
    t.value = on_device(value, rows * 4);
    t.valid = on_device(valid, rows * 4);
    t.advantage_mean = t.advantage_scale = t.scale = t.entropy_coefficient = NAN; /* not read */
    return t;
}

static void check_loss(const struct kind *k, uint32_t number)
{
    enum { ROWS = 200 };
    rng = rm_rng_at(1, RM_STREAM_TEST, 3, number);
    const struct rm_policy_loss here = draw_loss(k, ROWS);
    const size_t all = (size_t)N * here.outputs * 4;
    double sums[RM_NET_SUMS] = {0};
    rm_policy_loss_rows((void *)&here, 0, N, out, d_out, sums);

    const struct rm_device_knobs knobs = {.entropy_coefficient = here.entropy_coefficient};
    const struct rm_device_passes passes = {.batch = (uint32_t)lroundf(1 / here.scale),
                                            .mean = here.advantage_mean,
                                            .scale = here.advantage_scale};
    const struct rm_device_policy_loss there = {
        .loss = sent_loss(&here, ROWS),
        .rows = N,
        .weight = on_device(weight, sizeof weight),
        .out = on_device(out, all),
        .d_out = on_device(NULL, all),
        .part = on_device(NULL, sizeof(float) * RM_SUM_COUNT * N),
        .knobs = on_device(&knobs, sizeof knobs),
        .passes = on_device(&passes, sizeof passes),
        .figures = on_device(NULL, sizeof(struct rm_device_figures)),
    };
    device->device->policies->loss(device, &there);
    struct rm_device_figures told;
    fetch(seen_d, there.d_out, all);
    fetch(&told, there.figures, sizeof told);
    for (size_t i = 0; i < (size_t)N * here.outputs; i++)
        if (!(fabsf(seen_d[i] - d_out[i]) <= 1e-5f * (1e-3f + fabsf(d_out[i]))))
            fail_msg("gradient %zu: %.9g on the device, %.9g", i, (double)seen_d[i],
                     (double)d_out[i]);
    for (int i = 0; i < RM_SUM_COUNT; i++)
        assert_close("sum", told.now_sums[i], sums[i], 1e-5);
    assert_close("samples", told.now_samples, passes.batch, 0);
    assert_close("loss", told.last_loss,
                 (sums[RM_SUM_POLICY] + (double)here.value_coefficient * sums[RM_SUM_VALUE] -
                  (double)here.entropy_coefficient * sums[RM_SUM_ENTROPY]) /
                     passes.batch,
                 1e-5);
    release_all();
}

static void losses_are_the_cpus(void **state)
{
    static const struct kind kinds[] = {
        {1, {2}, false, 0.2f, 0},          {1, {8}, false, 0.2f, 0.3f},
        {1, {40}, true, 0.2f, 0},          {1, {5}, true, 0, 0},
        {3, {2, 3, 4}, false, 0.2f, 0.4f}, {3, {4, 16, 17}, true, 0.1f, 0},
        {2, {3, 2}, true, 0, 0.2f},
    };
    (void)state;
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint32_t draw = 0; draw < rm_test_effort(4, 1); draw++)
            check_loss(&kinds[i], i * 4 + draw);
    rm_test_device_fine(device);
}

/* The order of threads changes no bit: gradients and sums of one case, under each. */
static void order_changes_nothing(void **state)
{
    static const char *const orders[] = {"forward", "reverse", "random:7"};
    static const struct kind k = {3, {4, 16, 17}, true, 0.2f, 0.3f};
    static float first[N * (ACTIONS + 1)];
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        rm_test_emulated_order(orders[i]);
        check_loss(&k, 77);
        if (i == 0)
            memcpy(first, seen_d, sizeof first);
        assert_memory_equal(seen_d, first, sizeof first);
        check_returns(RM_FOLLOW_MOMENTS, true, 3);
    }
    rm_test_emulated_order("forward");
    rm_test_device_fine(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gae_is_the_cpus),       cmocka_unit_test(vtrace_is_the_cpus),
        cmocka_unit_test(returns_are_the_cpus),  cmocka_unit_test(losses_are_the_cpus),
        cmocka_unit_test(order_changes_nothing),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
