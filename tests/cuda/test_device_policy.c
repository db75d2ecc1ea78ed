/* The operations of actor-critic learners one by one, on a device and on the CPU. */
#include "learner/algo/learning.h"
#include "learner/algo/value_head.h"
#include "shm/base/rng.h"
#include "shm/layout.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct rm_backend *device, *cpu;
static const struct rm_policy_ops *there_ops, *here_ops;
static struct rm_rng rng;

static int open_both(void **state)
{
    struct rm_error error = {""};
    (void)state;
    device = rm_test_device_open();
    there_ops = rm_policy_ops_of(device);
    if (rm_backend_cpu_create(&cpu, 1, "auto", &error))
        return -1;
    here_ops = rm_policy_ops_of(cpu);
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    rm_backend_destroy(device);
    rm_backend_destroy(cpu);
    return 0;
}

/* --- memory ---------------------------------------------------------------------------------- */

static void *owned[64];
static size_t owned_count;

static void *on_device(const void *from, size_t bytes)
{
    const size_t words = (bytes + 3) / 4;
    float *padded = calloc(words + 1, sizeof *padded);
    void *to = device->ops->alloc_bytes(device, words * 4, NULL);
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
static float logp_now[ROWS_MAX], logp_then[ROWS_MAX];
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
        here_ops->gae(cpu, &here, 0.95f, advantage, target);
        there_ops->gae(device, &there, 0.95f, a, t);
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
        const struct rm_vtrace v = {.lambda = 0.9f, .rho_max = 1.1f, .c_max = 0.8f};
        float *a = on_device(NULL, rows * 4), *t = on_device(NULL, rows * 4);
        here_ops->vtrace(cpu, &here, &v, logp_now, logp_then, advantage, target);
        there_ops->vtrace(device, &there, &v, on_device(logp_now, rows * 4),
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

enum { WEIGHTS = 37 };

/* What returns() changes, in the host's memory. */
struct returned {
    float params[WEIGHTS + 1], value[ROWS_MAX], target[ROWS_MAX];
    struct rm_value_head_state head;
    struct rm_rollout_passes passes;
    struct rm_update_figures figures;
};
static struct returned on_cpu, seen;

static void compare_returned(uint32_t rows)
{
    const struct returned *d = &seen, *c = &on_cpu;
    assert_close("mean", d->head.mean, c->head.mean, 1e-9);
    assert_close("deviation", d->head.deviation, c->head.deviation, 1e-9);
    assert_close("second", d->head.second, c->head.second, 1e-9);
    assert_int_equal(d->head.updates, c->head.updates);
    assert_int_equal(d->figures.stop, c->figures.stop);
    assert_true(d->figures.loss == 0 && c->figures.loss == 0);
    assert_close("mean", (double)d->passes.whole_mean, (double)c->passes.whole_mean, 1e-5);
    assert_close("scale", (double)d->passes.whole_scale, (double)c->passes.whole_scale, 1e-6);
    assert_close("variance", d->passes.explained_variance, c->passes.explained_variance, 1e-6);
    for (uint32_t i = 0; i <= WEIGHTS; i++)
        assert_close("weight", (double)d->params[i], (double)c->params[i], 1e-6);
    for (uint32_t i = 0; i < rows; i++) {
        assert_close("value", (double)d->value[i], (double)c->value[i], 1e-6);
        assert_close("target", (double)d->target[i], (double)c->target[i], 1e-6);
    }
}

static void check_returns(enum rm_value_follow follow, bool normalise, size_t which)
{
    static float room[ROWS_MAX];
    struct returned *c = &on_cpu;
    rng = rm_rng_at(1, RM_STREAM_TEST, 2, which);
    const struct rm_rollout_rows here = draw_rollout(rollouts[which].steps, rollouts[which].lanes);
    const uint32_t rows = here.steps * here.lanes;
    here_ops->gae(cpu, &here, 0.95f, advantage, target);
    for (uint32_t i = 0; i <= WEIGHTS; i++)
        c->params[i] = drawn(1);
    memcpy(c->value, value, rows * sizeof *value);
    memcpy(c->target, target, rows * sizeof *target);
    c->head = follow ? (struct rm_value_head_state){0.5, 2, 4.25, 3}
                     : (struct rm_value_head_state){0, 1, 1, 0};
    c->passes = (struct rm_rollout_passes){.samples = samples};
    c->figures = (struct rm_update_figures){.loss = 3, .stop = 1};
    struct rm_policy_returns r = {
        .rows = rows,
        .normalise = normalise,
        .sample = sample,
        .valid = valid,
        .advantage = advantage,
        .value = c->value,
        .target = c->target,
        .room = room,
        .head = {.follow = follow,
                 .weights = WEIGHTS,
                 .beta_least = 0.01,
                 .weight = c->params,
                 .bias = c->params + WEIGHTS,
                 .state = &c->head},
        .passes = &c->passes,
        .figures = &c->figures,
    };
    const struct rm_policy_returns on_host = r;
    r.room = NULL;
    r.sample = on_device(sample, sizeof *sample * rows);
    r.valid = on_device(valid, rows * 4);
    r.advantage = on_device(advantage, rows * 4);
    r.value = on_device(value, rows * 4);
    r.target = on_device(target, rows * 4);
    r.head.weight = on_device(c->params, sizeof c->params);
    r.head.bias = r.head.weight + WEIGHTS;
    r.head.state = on_device(&c->head, sizeof c->head);
    r.passes = on_device(&c->passes, sizeof c->passes);
    r.figures = on_device(&c->figures, sizeof c->figures);
    here_ops->returns(cpu, &on_host);
    there_ops->returns(device, &r);
    fetch(seen.params, r.head.weight, sizeof seen.params);
    fetch(seen.value, r.value, rows * 4);
    fetch(seen.target, r.target, rows * 4);
    fetch(&seen.head, r.head.state, sizeof seen.head);
    fetch(&seen.passes, r.passes, sizeof seen.passes);
    fetch(&seen.figures, r.figures, sizeof seen.figures);
    compare_returned(rows);
    release_all();
}

static void returns_are_the_cpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROLLOUTS; i++)
        for (int follow = 0; follow <= RM_FOLLOW_AVERAGED; follow++)
            for (int normalise = 0; normalise < 2; normalise++)
                check_returns((enum rm_value_follow)follow, normalise, i);
    rm_test_device_fine(device);
}

/* --- minibatches ----------------------------------------------------------------------------- */

/* A rollout's minibatches from the first to beyond the last: the same rows, moments and knobs, and
 * an end after as many. Rows of a device's batch beyond the last have weight 0. */
static void check_minibatches(uint32_t steps, uint32_t lanes, uint32_t parts, bool recurrent,
                              bool normalise)
{
    enum { EPOCHS = 3, ENTRIES = 300, MOST = 3000 };
    static uint32_t order[EPOCHS * ENTRIES], index[2][MOST], entry[2][ENTRIES];
    static uint8_t flags[ROWS_MAX], restart[2][MOST];
    static float weights[MOST];
    struct rm_update_knobs knobs_of[EPOCHS * 8], knobs[2] = {{0}};
    rng = rm_rng_at(1, RM_STREAM_TEST, 4, steps * 7 + parts);
    draw_rollout(steps, lanes);
    const uint32_t rows = steps * lanes, stride = recurrent ? lanes : rows;
    const uint32_t entries = recurrent ? lanes : samples, most = (stride + parts - 1) / parts;
    const uint32_t batch = most * (recurrent ? steps : 1);
    for (uint32_t i = 0; i < rows; i++) {
        advantage[i] = drawn(2);
        flags[i] = rm_rng_below(&rng, 5) == 0 ? RM_FLAG_FIRST : 0;
    }
    for (uint32_t i = 0; i < EPOCHS * entries; i++) /* any will do */
        order[i / entries * stride + i % entries] =
            recurrent ? rm_rng_below(&rng, lanes) : sample[rm_rng_below(&rng, samples)];
    for (uint32_t i = 0; i < EPOCHS * parts; i++)
        knobs_of[i] = (struct rm_update_knobs){.before = 50 + i};
    struct rm_rollout_passes passes[2] = {{.samples = samples,
                                           .entries = entries,
                                           .parts = entries < parts ? entries : parts,
                                           .epochs = EPOCHS,
                                           .whole_mean = 0.25f,
                                           .whole_scale = 3}};
    struct rm_update_figures figures[2] = {{.now_sums = {[RM_SUM_KL] = 2}}};
    const struct rm_next_minibatch here = {
        .order = order,
        .stride = stride,
        .most = most,
        .whole = most,
        .steps = recurrent ? steps : 1,
        .lanes = recurrent ? lanes : 1,
        .first_flag = RM_FLAG_FIRST,
        .normalise = normalise,
        .knobs_stride = parts,
        .valid = valid,
        .flags = recurrent ? flags : NULL,
        .advantage = advantage,
        .knobs_of = knobs_of,
        .index = index[0],
        .entry = recurrent ? entry[0] : NULL,
        .restart = recurrent ? restart[0] : NULL,
        .knobs = &knobs[0],
        .passes = &passes[0],
    };
    struct rm_next_minibatch there = here;
    there.order = on_device(order, sizeof order);
    there.valid = on_device(valid, rows * 4);
    there.flags = recurrent ? on_device(flags, rows) : NULL;
    there.advantage = on_device(advantage, rows * 4);
    there.knobs_of = on_device(knobs_of, EPOCHS * parts * sizeof *knobs_of);
    there.index = on_device(NULL, sizeof index[1]);
    there.weight = on_device(NULL, sizeof weights);
    there.entry = recurrent ? on_device(NULL, sizeof entry[1]) : NULL;
    there.restart = recurrent ? on_device(NULL, sizeof restart[1]) : NULL;
    there.knobs = on_device(NULL, sizeof knobs[1]);
    there.passes = on_device(&passes[0], sizeof passes[0]);
    struct rm_update_figures *device_figures = on_device(&figures[0], sizeof figures[0]);
    for (uint32_t made = 0; !figures[0].stop; made++) {
        const uint32_t n = here_ops->minibatch(cpu, &here);
        assert_int_equal(there_ops->minibatch(device, &there), batch);
        fetch(index[1], there.index, sizeof index[1]);
        fetch(weights, there.weight, sizeof weights);
        fetch(&knobs[1], there.knobs, sizeof knobs[1]);
        fetch(&passes[1], there.passes, sizeof passes[1]);
        if (recurrent)
            fetch(restart[1], there.restart, sizeof restart[1]);
        const uint32_t own = n / here.steps;
        for (uint32_t i = 0; i < batch; i++) {
            const uint32_t t = i / most, j = i % most, at = t * own + j;
            const bool is = j < own;
            assert_true(weights[i] == (is && valid[index[0][at]] > 0 ? 1.0f : 0.0f));
            if (is)
                assert_int_equal(index[1][i], index[0][at]);
            if (is && recurrent)
                assert_int_equal(restart[1][i], restart[0][at]);
        }
        assert_int_equal(knobs[1].before, knobs[0].before);
        assert_int_equal(passes[1].batch, passes[0].batch);
        assert_close("mean", (double)passes[1].mean, (double)passes[0].mean, 1e-6);
        assert_close("scale", (double)passes[1].scale, (double)passes[0].scale, 1e-6);
        here_ops->book(cpu, 0, &passes[0], &figures[0]);
        there_ops->book(device, 0, there.passes, device_figures);
        fetch(&figures[1], device_figures, sizeof figures[1]);
        fetch(&passes[1], there.passes, sizeof passes[1]);
        assert_int_equal(figures[1].stop, figures[0].stop);
        assert_int_equal(passes[1].pass, passes[0].pass);
        assert_true(passes[1].seen == passes[0].seen && passes[1].kl == passes[0].kl);
        assert_true(made < EPOCHS * parts);
    }
    assert_int_equal(passes[0].pass, EPOCHS);
    release_all();
}

static void minibatches_are_the_cpus(void **state)
{
    (void)state;
    for (int normalise = 0; normalise < 2; normalise++) {
        check_minibatches(10, 6, 4, false, normalise);
        check_minibatches(16, 16, 7, false, normalise);
        check_minibatches(2, 2, 8, false, normalise); /* fewer samples than parts */
        check_minibatches(10, 6, 4, true, normalise);
        check_minibatches(5, 20, 3, true, normalise);
    }
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
    struct rm_gaussian gaussian;
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
        .clip = k->clip,
        .value_clip = k->value_clip,
        .value_coefficient = 0.6f,
    };
    struct rm_categorical *c = &l.distribution;
    c->choices = k->choices;
    for (uint32_t i = 0; i < k->choices; i++)
        c->actions += c->choice_actions[i] = k->choice[i];
    c->words = k->choices + k->gaussian.reals;
    l.gaussian = k->gaussian;
    l.outputs = c->actions + 2 * k->gaussian.reals + 1;
    for (uint32_t i = 0; i < rows; i++) {
        for (uint32_t j = 0, at = 0; j < k->choices; at += k->choice[j++]) {
            const uint32_t taken = rm_rng_below(&rng, k->choice[j]);
            action[i * c->words + j] = (int32_t)taken;
            for (uint32_t a = 0; a < k->choice[j]; a++)
                mask[i * c->actions + at + a] = a == taken || rm_rng_below(&rng, 3) > 0;
        }
        for (uint32_t j = 0; j < k->gaussian.reals; j++)
            action[i * c->words + k->choices + j] = rm_word_of_float(drawn(3));
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
    t.action = on_device(action, rows * l->distribution.words * 4);
    t.mask = l->mask ? on_device(mask, (size_t)rows * l->distribution.actions) : NULL;
    t.logp = on_device(logp_then, rows * 4);
    t.advantage = on_device(advantage, rows * 4);
    t.target = on_device(target, rows * 4);
    t.value = on_device(value, rows * 4);
    t.valid = on_device(valid, rows * 4);
    t.advantage_mean = t.advantage_scale = t.scale = t.entropy_coefficient = NAN; /* passed over */
    return t;
}

static void check_loss(const struct kind *k, uint32_t number, bool of_means)
{
    enum { ROWS = 200 };
    rng = rm_rng_at(1, RM_STREAM_TEST, 3, number);
    const struct rm_policy_loss here = draw_loss(k, ROWS);
    const size_t all = (size_t)N * here.outputs * 4;
    double sums[RM_NET_SUMS] = {0};
    struct rm_update_knobs knobs = {.entropy_coefficient = 0.05};
    struct rm_rollout_passes passes = {
        .batch = (uint32_t)lroundf(1 / here.scale), .mean = 0.3f, .scale = 1.7f};
    struct rm_update_figures figures = {0};
    const struct rm_minibatch_loss whole = {
        .loss = here,
        .rows = N,
        .value_coefficient = 0.6,
        .out = out,
        .d_out = d_out,
        .knobs = &knobs,
        .passes = &passes,
        .figures = &figures,
        .of_means = of_means,
    };
    double errors[2] = {0};
    rm_policy_loss_add_errors(&here, 0, N, out, errors);
    const enum rm_value_error larger = rm_larger_error(errors[0], errors[1]);
    passes.value_error = larger;
    /* In two parts, as rm_net_learn() may have them. */
    struct rm_minibatch_loss part = whole;
    part.rows = N / 3;
    here_ops->loss(cpu, &part, sums);
    part.first = N / 3;
    part.rows = N - N / 3;
    part.out += (size_t)part.first * here.outputs;
    part.d_out += (size_t)part.first * here.outputs;
    here_ops->loss(cpu, &part, sums);
    memcpy(figures.now_sums, sums + 1, RM_SUM_COUNT * sizeof *sums);
    here_ops->loss_end(cpu, &whole);

    struct rm_minibatch_loss there = whole;
    there.loss = sent_loss(&here, ROWS);
    there.weight = on_device(weight, sizeof weight);
    there.out = on_device(out, all);
    there.d_out = on_device(NULL, all);
    there.part = on_device(NULL, sizeof(float) * RM_SUM_COUNT * N);
    there.knobs = on_device(&knobs, sizeof knobs);
    passes.value_error = RM_ERROR_LARGER; /* the device finds it */
    there.passes = on_device(&passes, sizeof passes);
    there.figures = on_device(NULL, sizeof figures);
    there.figures = on_device(NULL, sizeof figures);
    there_ops->loss(device, &there, NULL);
    there_ops->loss_end(device, &there);
    struct rm_update_figures fetched;
    fetch(seen_d, there.d_out, all);
    fetch(&fetched, there.figures, sizeof fetched);
    fetch(&passes, there.passes, sizeof passes);
    assert_int_equal(passes.value_error, of_means ? larger : RM_ERROR_LARGER);
    for (size_t i = 0; i < (size_t)N * here.outputs; i++)
        if (!(fabsf(seen_d[i] - d_out[i]) <= 1e-5f * (1e-3f + fabsf(d_out[i]))))
            fail_msg("gradient %zu: %.9g on the device, %.9g", i, (double)seen_d[i],
                     (double)d_out[i]);
    for (int i = 0; i < RM_SUM_COUNT; i++)
        assert_close("sum", fetched.now_sums[i], figures.now_sums[i], 1e-5);
    assert_true(fetched.now_samples == passes.batch && figures.now_samples == passes.batch);
    assert_close("loss", fetched.last_loss, figures.last_loss, 1e-5);
    release_all();
}

static void losses_are_the_cpus(void **state)
{
    static const struct kind kinds[] = {
        {1, {2}, false, 0.2f, 0, {0, 0}},          {1, {8}, false, 0.2f, 0.3f, {0, 0}},
        {1, {40}, true, 0.2f, 0, {0, 0}},          {1, {5}, true, 0, 0, {0, 0}},
        {3, {2, 3, 4}, false, 0.2f, 0.4f, {0, 0}}, {3, {4, 16, 17}, true, 0.1f, 0, {0, 0}},
        {2, {3, 2}, true, 0, 0.2f, {0, 0}},        {0, {0}, false, 0.2f, 0, {3, 0}},
        {0, {0}, false, 0.2f, 0, {1, 1}},          {2, {3, 2}, true, 0.1f, 0, {2, 1}},
    };
    (void)state;
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint32_t draw = 0; draw < rm_test_effort(4, 1); draw++)
            for (int means = 0; means <= (kinds[i].value_clip > 0 ? 1 : 0); means++)
                check_loss(&kinds[i], i * 4 + draw, means);
    rm_test_device_fine(device);
}

/* --- values ---------------------------------------------------------------------------------- */

static void values_are_the_cpus(void **state)
{
    static const struct kind kinds[] = {{1, {5}, false, 0, 0, {0, 0}},
                                        {3, {4, 16, 17}, true, 0, 0, {0, 0}},
                                        {0, {0}, false, 0, 0, {4, 1}},
                                        {1, {3}, true, 0, 0, {2, 0}}};
    (void)state;
    for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        static float made[2][N], logp[2][N];
        const struct rm_value_head_state head = {0.5, 2, 4.25, 3};
        rng = rm_rng_at(1, RM_STREAM_TEST, 5, i);
        const struct rm_policy_loss l = draw_loss(&kinds[i], N);
        struct rm_policy_values v = {
            .out = out,
            .rows = N,
            .outputs = l.outputs,
            .head = &head,
            .value = made[0],
            .answered = N,
            .distribution = l.distribution,
            .gaussian = l.gaussian,
            .mask = l.mask,
            .action = action,
            .logp = logp[0],
        };
        here_ops->values(cpu, &v);
        assert_true(made[0][3] == (float)(0.5 + 2 * (double)out[4 * l.outputs - 1]));
        v.out = on_device(out, (size_t)N * l.outputs * 4);
        v.head = on_device(&head, sizeof head);
        v.value = on_device(NULL, sizeof made[1]);
        v.mask = l.mask ? on_device(mask, (size_t)N * l.distribution.actions) : NULL;
        v.action = on_device(action, sizeof(int32_t) * N * l.distribution.words);
        v.logp = on_device(NULL, sizeof logp[1]);
        there_ops->values(device, &v);
        fetch(made[1], v.value, sizeof made[1]);
        fetch(logp[1], v.logp, sizeof logp[1]);
        assert_memory_equal(made[1], made[0], sizeof made[0]);
        for (uint32_t k = 0; k < N; k++)
            assert_close("logp", (double)logp[1][k], (double)logp[0][k], 1e-5);
        release_all();
    }
    rm_test_device_fine(device);
}

/* The order of threads changes no bit: gradients and sums of one case, under each. */
static void order_changes_nothing(void **state)
{
    static const char *const orders[] = {"forward", "reverse", "random:7"};
    static const struct kind k = {3, {4, 16, 17}, true, 0.2f, 0.3f, {0, 0}};
    static float first[N * (ACTIONS + 1)];
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        rm_test_emulated_order(orders[i]);
        check_loss(&k, 77, false);
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
        cmocka_unit_test(returns_are_the_cpus),  cmocka_unit_test(minibatches_are_the_cpus),
        cmocka_unit_test(losses_are_the_cpus),   cmocka_unit_test(values_are_the_cpus),
        cmocka_unit_test(order_changes_nothing),
    };
    return cmocka_run_group_tests(tests, open_both, close_both);
}
