/* R2D2: gradients by differences, what padding and burn-in do, and a world solved by hand through a
 * recurrent network. The loss by itself: test_algo_r2d2_loss.c. */
#include "learner/algo/updates.h"
#include "learner/sampler.h"
#include "tests/support/effort.h"
#include "tests/support/story.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct rm_error failure;

/* --- two states ------------------------------------------------------------------------------ */

static struct rm_backend *backend;
enum { HIDDEN = 8 };

static struct rm_experiment experiment_of(bool rescale, bool recurrent)
{
    struct rm_experiment e;
    memset(&e, 0, sizeof e);
    e.seed = 9;
    e.sample.batch = 16;
    e.sample.n_step = 2;
    e.sample.sequence = 3;
    e.sample.burn_in = 2;
    e.sample.period = 1;
    e.algorithm.name = RM_ALGORITHM_R2D2;
    e.algorithm.double_q = true;
    e.algorithm.kappa = 1;
    e.algorithm.value_rescale = rescale;
    e.algorithm.target.update = RM_TARGET_HARD;
    e.algorithm.target.interval = 50;
    e.priority.max_share = 0.9;
    e.optimizer.learning_rate = 1e-2;
    e.optimizer.beta1 = 0.9;
    e.optimizer.beta2 = 0.999;
    e.optimizer.epsilon = 1e-8;
    e.network.gain = e.network.value_gain = e.network.policy_gain = 1;
    if (recurrent)
        e.network.layers[e.network.layer_count++] =
            (struct rm_layer_config){.type = RM_LAYER_GRU, .units = HIDDEN};
    return e;
}

static struct rm_trainer *trainer_of(const struct rm_experiment *e)
{
    struct rm_trainer *t;
    const struct rm_trainer_spec spec = {
        .experiment = e,
        .backend = backend,
        .shape = {.inputs = 2, .actions = 2, .outputs_per_action = 1},
        .name = "policy"};
    if (rm_trainer_create(&t, &spec, &failure))
        fail_msg("%s", failure.text);
    return t;
}

static struct rm_sampler *story_sampler(const struct rm_sampler_source *source)
{
    struct rm_sampler *s;
    const struct rm_sampler_spec spec = {
        .sources = source,
        .source_count = 1,
        .agents = 1,
        .agent = &rm_story_agent,
        .batch = 16,
        .n_step = 2,
        .frame_stack = 1,
        .gamma = RM_STORY_GAMMA,
        .capacity = 2 * RM_STORY_ROWS,
        .seed = 2,
        .sequence = {.trace = 3,
                     .burn_in = 2,
                     .period = 1,
                     .state_floats = source->ring->spec.state_floats},
    };
    if (rm_sampler_create(&s, &spec, &failure))
        fail_msg("%s", failure.text);
    rm_sampler_window_free(s);
    return s;
}

/* Values of both states at the beginning of an episode. */
static void ask(const struct rm_trainer *t, bool rescale, double q[2][2])
{
    struct rm_net_workspace *space;
    const float x[] = {1, 0, 0, 1};
    const struct rm_net_input in = {.x = x, .batch = 2, .steps = 1};
    assert_int_equal(
        rm_net_workspace_create(&space, rm_trainer_net(t), backend, 2, 0, RM_NET_INFER, &failure),
        0);
    rm_net_prepare(space, rm_trainer_params(t));
    const float *out = rm_net_forward(space, rm_trainer_params(t), &in);
    for (uint32_t i = 0; i < 4; i++)
        q[i / 2][i % 2] = rescale ? rm_value_unscale((double)out[i]) : (double)out[i];
    rm_net_workspace_destroy(space);
}

static struct rm_trainer *trained(const struct rm_experiment *e, const struct rm_ring *ring,
                                  uint64_t updates)
{
    const struct rm_sampler_source source = {ring, 0, 1};
    struct rm_trainer *t = trainer_of(e);
    struct rm_sampler *s = story_sampler(&source);
    for (uint64_t u = 1; u <= updates; u++) {
        const double rate = u < updates / 3 * 2 ? 0.01 : 0.0005;
        const struct rm_trainer_settings settings = {rate, 0, 0, 1, 0};
        rm_trainer_set(t, &settings);
        assert_int_equal(rm_sampler_draw(s, u, rm_sampler_batch(s)), 1);
        assert_false(rm_trainer_update(t, rm_sampler_batch(s), u, NULL).skipped);
    }
    const double fixed = rm_trainer_fixed(t);
    assert_true(fixed > -1.0 / 3 && fixed < 2);
    rm_sampler_destroy(s);
    return t;
}

/* A table of values learned by sequences without memory: Q(0,0) = 1 + 3/4 Q(0,0) = 4, Q(0,1) = 2,
 * Q(1,0) = 3/4 * 4 = 3, Q(1,1) = -1. */
static void two_states_come_out_as_solved_by_hand(void **state)
{
    (void)state;
    static const double solution[2][2] = {{4, 2}, {3, -1}};
    struct rm_ring ring;
    rm_story_tell(&ring, 0, 2);
    for (int rescale = 0; rescale < 2; rescale++) {
        const struct rm_experiment e = experiment_of(rescale, false);
        struct rm_trainer *t = trained(&e, &ring, 3000);
        double q[2][2];
        ask(t, rescale, q);
        for (uint32_t i = 0; i < 4; i++)
            if (fabs(q[i / 2][i % 2] - solution[i / 2][i % 2]) > 0.05)
                fail_msg("rescale %d: Q(%u,%u) = %g, by hand %g", rescale, i / 2, i % 2,
                         q[i / 2][i % 2], solution[i / 2][i % 2]);
        rm_trainer_destroy(t);
    }
    rm_ring_close(&ring);
}

/* Episodes of one transition. The network sees the last observation with a memory of the first, so
 * what follows a truncation is a value of its own, that of a second row: state 0 after state 0 or
 * after state 1, where nobody ever acted. It is what that output happens to be, not learned. So the
 * two truncated values are tied to it by their own equations, and the others are the rewards. */
static void terminated_values_are_rewards_and_truncated_ones_bootstrap(void **state)
{
    (void)state;
    struct rm_ring ring;
    rm_story_tell(&ring, HIDDEN, 2);
    for (int rescale = 0; rescale < 2; rescale++) {
        struct rm_experiment e = experiment_of(rescale, true);
        /* Fewer updates, and the target network follows sooner. */
        e.algorithm.target.interval = rm_test_effort(50, 10);
        struct rm_trainer *t = trained(&e, &ring, rm_test_effort(3000, 400));
        double q[2][2];
        ask(t, rescale, q);
        assert_true(fabs(q[0][1] - 2) < 0.03);
        assert_true(fabs(q[1][1] + 1) < 0.03);
        /* The second row of each truncated episode. */
        struct rm_net_workspace *space;
        const float x[] = {1, 0, 0, 1, 1, 0, 1, 0}; /* (steps, lanes, inputs) */
        const struct rm_net_input in = {.x = x, .batch = 4, .steps = 2};
        assert_int_equal(rm_net_workspace_create(&space, rm_trainer_net(t), backend, 4, 0,
                                                 RM_NET_INFER, &failure),
                         0);
        rm_net_prepare(space, rm_trainer_params(t));
        const float *out = rm_net_forward(space, rm_trainer_params(t), &in);
        for (uint32_t lane = 0; lane < 2; lane++) {
            const float *second = out + 4 + 2 * lane;
            double v = (double)(second[0] > second[1] ? second[0] : second[1]);
            v = rescale ? rm_value_unscale(v) : v;
            const double reward = lane ? 0 : 1;
            if (fabs(q[lane][0] - (reward + 0.75 * v)) > 0.05)
                fail_msg("state %u: %g, should be %g", lane, q[lane][0], reward + 0.75 * v);
        }
        rm_net_workspace_destroy(space);
        rm_trainer_destroy(t);
    }
    rm_ring_close(&ring);
}

/* --- whole updates --------------------------------------------------------------------------- */

/* A batch of sequences out of nothing, padding included. */
struct memory {
    struct rm_batch batch;
    float obs[8 * 16 * 2], state[16 * HIDDEN], ret[3 * 16], discount[3 * 16], error[16];
    int32_t action[3 * 16];
    uint8_t restart[8 * 16];
    float valid[3 * 16];
    uint32_t ahead[3 * 16];
};

static void fill(struct memory *m)
{
    struct rm_rng rng = rm_rng_at(7, RM_STREAM_TEST, 0, 0);
    memset(m, 0, sizeof *m);
    m->batch = (struct rm_batch){
        .size = 16,
        .inputs = 2,
        .actions = 2,
        .obs = m->obs,
        .action = m->action,
        .ret = m->ret,
        .discount = m->discount,
        .burn_in = 2,
        .trace = 3,
        .tail = 2,
        .state_floats = HIDDEN,
        .state = m->state,
        .restart = m->restart,
        .valid = m->valid,
        .ahead = m->ahead,
        .error = m->error,
    };
    for (uint32_t i = 0; i < 7 * 16 * 2; i++)
        m->obs[i] = 2 * rm_rng_float(&rng) - 1;
    for (uint32_t i = 0; i < 16 * HIDDEN; i++)
        m->state[i] = rm_rng_float(&rng) - 0.5f;
    for (uint32_t i = 0; i < 3 * 16; i++) {
        m->ret[i] = rm_rng_float(&rng);
        m->discount[i] = 0; /* targets that do not move with the parameters */
        m->action[i] = (int32_t)rm_rng_below(&rng, 2);
        m->valid[i] = i % 5 > 0;
        m->ahead[i] = 1 + i % 2;
    }
    for (uint32_t b = 0; b < 16; b += 3)
        m->restart[b % 2 * 16 + b] = 1;
}

/* With no burn-in rows the stored state has no part in the parameters: then the gradient is that of
 * the loss. (Burn-in stops gradients, differences do not.) */
static void the_gradient_is_that_of_the_loss(void **state)
{
    (void)state;
    static struct memory m;
    struct rm_experiment e = experiment_of(true, true);
    fill(&m);
    e.sample.burn_in = m.batch.burn_in = 0;
    e.sample.n_step = 2;
    struct rm_trainer *t = trainer_of(&e);
    const size_t n = rm_net_param_count(rm_trainer_net(t));
    rm_trainer_gradient(t, &m.batch, 1, NULL);
    float *params = malloc(n * sizeof *params), *grads = malloc(n * sizeof *grads);
    memcpy(params, rm_trainer_params(t), n * sizeof *params);
    memcpy(grads, t->all[0]->grads, n * sizeof *grads);
    double worst = 0, size = 0;
    for (size_t i = 0; i < n; i += 3) {
        const float at = params[i], eps = 1e-2f;
        double loss[2];
        for (int side = 0; side < 2; side++) {
            params[i] = at + (side ? eps : -eps);
            rm_trainer_load(t, params);
            loss[side] = rm_trainer_gradient(t, &m.batch, 1, NULL).loss;
        }
        params[i] = at;
        const double want = (loss[1] - loss[0]) / (2 * (double)eps);
        worst = fmax(worst, fabs(want - (double)grads[i]));
        size = fmax(size, fabs(want));
    }
    assert_true(size > 1e-3);
    assert_true(worst < 2e-3 * size + 2e-5);
    free(params);
    free(grads);
    rm_trainer_destroy(t);
}

/* Draws differ from update to update, and are the only thing that does here. */
static void dropout_drops_in_training(void **state)
{
    (void)state;
    static struct memory m;
    fill(&m);
    for (int drops = 0; drops < 2; drops++) {
        struct rm_experiment e = experiment_of(true, true);
        e.network.layers[e.network.layer_count++] =
            (struct rm_layer_config){.type = RM_LAYER_DROPOUT, .rate = drops ? 0.5 : 0};
        struct rm_trainer *t = trainer_of(&e);
        const double first = rm_trainer_gradient(t, &m.batch, 1, NULL).loss;
        const double second = rm_trainer_gradient(t, &m.batch, 2, NULL).loss;
        assert_true(drops ? fabs(first - second) > 1e-3 * first : first == second);
        rm_trainer_destroy(t);
    }
}

/* What stands in padded rows and in lanes before their first row changes nothing. */
static void padding_has_no_part(void **state)
{
    (void)state;
    static struct memory a, b;
    const struct rm_experiment e = experiment_of(true, true);
    struct rm_trainer *t = trainer_of(&e);
    fill(&a);
    for (uint32_t i = 0; i < 3 * 16; i++)
        a.valid[i] = i % 16 == 4 ? i < 16 : 1; /* lane 4: one transition, one step ahead */
    a.ahead[4] = 1;
    a.restart[1 * 16 + 5] = 1; /* lane 5 begins in row 1 */
    b = a;
    b.batch = a.batch;
    b.batch.obs = b.obs;
    b.batch.state = b.state;
    for (uint32_t row = 4; row < 7; row++) /* after burn-in 2: rows 2, 3 are looked at */
        b.obs[(row * 16 + 4) * 2] = 99;
    b.obs[5 * 2] = 99;
    for (uint32_t k = 0; k < HIDDEN; k++)
        b.state[5 * HIDDEN + k] = 3;
    const double first = rm_trainer_gradient(t, &a.batch, 1, NULL).loss;
    const size_t n = rm_net_param_count(rm_trainer_net(t));
    float *grads = malloc(n * sizeof *grads);
    memcpy(grads, t->all[0]->grads, n * sizeof *grads);
    assert_true(first == rm_trainer_gradient(t, &b.batch, 1, NULL).loss);
    assert_memory_equal(grads, t->all[0]->grads, n * sizeof *grads);
    b.obs[(2 * 16 + 4) * 2] = 99; /* a row that counts does */
    assert_true(first != rm_trainer_gradient(t, &b.batch, 1, NULL).loss);
    free(grads);
    rm_trainer_destroy(t);
}

static void burn_in_warms_up_the_state(void **state)
{
    (void)state;
    static struct memory m;
    const struct rm_experiment e = experiment_of(false, true);
    struct rm_trainer *t = trainer_of(&e);
    fill(&m);
    memset(m.restart, 0, sizeof m.restart);
    const double first = rm_trainer_gradient(t, &m.batch, 1, NULL).loss;
    m.obs[3] += 0.5f; /* row 0, lane 1 */
    const double other = rm_trainer_gradient(t, &m.batch, 1, NULL).loss;
    assert_true(first != other);
    m.state[HIDDEN] += 0.5f;
    assert_true(other != rm_trainer_gradient(t, &m.batch, 1, NULL).loss);
    rm_trainer_destroy(t);
}

static int open_backend(void **state)
{
    (void)state;
    return rm_backend_cpu_create(&backend, 1, "auto", &failure);
}

static int close_backend(void **state)
{
    (void)state;
    rm_backend_destroy(backend);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_states_come_out_as_solved_by_hand),
        cmocka_unit_test(terminated_values_are_rewards_and_truncated_ones_bootstrap),
        cmocka_unit_test(the_gradient_is_that_of_the_loss),
        cmocka_unit_test(dropout_drops_in_training),
        cmocka_unit_test(padding_has_no_part),
        cmocka_unit_test(burn_in_warms_up_the_state),
    };
    return cmocka_run_group_tests(tests, open_backend, close_backend);
}
