/* Whole updates: a world solved by hand, gradients by differences, and what an update must leave
 * alone. */
#include "learner/sampler.h"
#include "tests/support/story.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct rm_backend *backend;

static struct rm_backend *cpu(uint32_t threads)
{
    struct rm_error error = {""};
    struct rm_backend *b;
    if (rm_backend_cpu_create(&b, threads, "auto", &error))
        fail_msg("%s", error.text);
    return b;
}

static int open_backend(void **state)
{
    (void)state;
    backend = cpu(1);
    return 0;
}

static int close_backend(void **state)
{
    (void)state;
    rm_backend_destroy(backend);
    return 0;
}

/* The shape of the treasure hunt's network, smaller: all that an update can meet. */
static struct rm_experiment full(enum rm_algorithm name)
{
    struct rm_experiment e = rm_test_updates_settings(name);
    rm_test_updates_layer(&e, RM_LAYER_LINEAR, 24, 0);
    rm_test_updates_layer(&e, RM_LAYER_TANH, 0, 0);
    if (name == RM_ALGORITHM_IQN)
        rm_test_updates_layer(&e, RM_LAYER_COSINE_EMBEDDING, 0, 16);
    rm_test_updates_layer(&e, RM_LAYER_NOISY_LINEAR, 20, 0);
    rm_test_updates_layer(&e, RM_LAYER_TANH, 0, 0);
    rm_test_updates_layer(&e, RM_LAYER_DROPOUT, 0, 0);
    e.network.dueling = true;
    e.network.noisy_head = true;
    e.network.noise = RM_NOISE_INDEPENDENT;
    e.network.sigma0 = 0.2;
    return e;
}

static struct rm_trainer *make(const struct rm_experiment *e, struct rm_backend *b, uint32_t inputs,
                               uint32_t actions)
{
    const struct rm_trainer_spec spec = rm_test_updates_spec(e, b, inputs, actions);
    return rm_test_updates_make(&spec);
}

/* --- a random batch -------------------------------------------------------------------------- */

enum { INPUTS = RM_UPDATES_INPUTS, ACTIONS = RM_UPDATES_ACTIONS, BATCH = RM_UPDATES_BATCH };

/* Nothing in it but its discount differs from one to the next; all actions are legal. */
static void fill(struct rm_test_updates *m, float discount)
{
    const struct rm_experiment e = rm_test_updates_settings(RM_ALGORITHM_DQN);
    rm_test_updates_draw(m, &e, 0);
    m->batch.next_mask = NULL;
    for (uint32_t i = 0; i < BATCH; i++)
        m->discount[i] = discount;
}

/* Along the gradient, and along coordinate directions, the loss must change as the gradient says.
 * All transitions are terminal, so that only the online network matters: loading parameters sets
 * both. */
static void gradients_are_differences_of_the_loss(void **state)
{
    (void)state;
    static struct rm_test_updates m;
    fill(&m, 0);
    for (int name = RM_ALGORITHM_DQN; name <= RM_ALGORITHM_IQN; name++) {
        const struct rm_experiment e = full((enum rm_algorithm)name);
        struct rm_trainer *t = make(&e, backend, INPUTS, ACTIONS);
        const size_t n = rm_net_param_count(rm_trainer_net(t));
        const struct rm_trainer_result at = rm_trainer_gradient(t, &m.batch, 1, NULL);
        float *params = rm_test_updates_copy(t, backend, rm_trainer_params(t)),
              *grads = rm_test_updates_copy(t, backend, t->all[0]->grads);
        float *moved = rm_test_updates_copy(t, backend, params);
        struct rm_rng rng = rm_rng_at(4, RM_STREAM_TEST, 1, 0);
        for (int trial = 0; trial < 8; trial++) {
            double slope = 0, length = 0, eps = 2e-2;
            float *direction = calloc(n, sizeof *direction);
            for (size_t i = 0; i < n; i++) {
                direction[i] = trial == 0 ? grads[i] : grads[i] * rm_rng_float(&rng);
                length += (double)direction[i] * (double)direction[i];
            }
            length = sqrt(length);
            double loss[2];
            for (int side = 0; side < 2; side++) {
                for (size_t i = 0; i < n; i++)
                    moved[i] =
                        params[i] + (float)((side ? eps : -eps) * (double)direction[i] / length);
                rm_trainer_load(t, moved);
                loss[side] = rm_trainer_gradient(t, &m.batch, 1, NULL).loss;
            }
            for (size_t i = 0; i < n; i++)
                slope += (double)grads[i] * (double)direction[i] / length;
            const double difference = (loss[1] - loss[0]) / (2 * eps);
            if (fabs(difference - slope) > 0.01 * fabs(slope) + 1e-4)
                fail_msg("algorithm %d: slope %g, difference %g", name, slope, difference);
            free(direction);
        }
        double norm = 0;
        for (size_t i = 0; i < n; i++)
            norm += (double)grads[i] * (double)grads[i];
        assert_true(fabs(sqrt(norm) - at.grad_norm) < 1e-5 * at.grad_norm);
        assert_true(at.grad_norm > 1e-3);
        free(params);
        free(grads);
        free(moved);
        rm_trainer_destroy(t);
    }
}

/* Draws differ from update to update, and are the only thing that does here. */
static void dropout_drops_in_training(void **state)
{
    (void)state;
    static struct rm_test_updates m;
    fill(&m, 0);
    for (int drops = 0; drops < 2; drops++) {
        struct rm_experiment e = rm_test_updates_settings(RM_ALGORITHM_DQN);
        rm_test_updates_layer(&e, RM_LAYER_LINEAR, 24, 0);
        rm_test_updates_layer(&e, RM_LAYER_DROPOUT, 0, 0);
        e.network.layers[e.network.layer_count - 1].rate = drops ? 0.5 : 0;
        struct rm_trainer *t = make(&e, backend, INPUTS, ACTIONS);
        const double first = rm_trainer_gradient(t, &m.batch, 1, NULL).loss;
        const double second = rm_trainer_gradient(t, &m.batch, 2, NULL).loss;
        assert_true(drops ? fabs(first - second) > 1e-3 * first : first == second);
        assert_true(rm_trainer_gradient(t, &m.batch, 1, NULL).loss == first);
        rm_trainer_destroy(t);
    }
}

/* --- two states, solved by hand ----------------------------------------------------------------
 * tests/support/story.h, with gamma = 3/4: Q(0,1) = 2, Q(1,1) = -1; Q(0,0) = 1 + 3/4 Q(0,0) = 4;
 * Q(1,0) = 3/4 * 4 = 3. Were truncation termination, Q(0,0) would be 1 and Q(1,0) 0; were
 * termination truncation (in state 1 and 0), Q(0,1) and Q(1,1) would be 2 + 9/4 and -1 + 3. */
static const double solution[2][2] = {{4, 2}, {3, -1}};

static struct rm_experiment tabular(enum rm_algorithm name)
{
    struct rm_experiment e = rm_test_updates_settings(name);
    e.sample.batch = 32;
    e.optimizer.learning_rate = 0.01;
    e.algorithm.target.update = RM_TARGET_HARD;
    e.algorithm.target.interval = 100;
    if (name == RM_ALGORITHM_IQN) {
        rm_test_updates_layer(&e, RM_LAYER_LINEAR, 16, 0);
        rm_test_updates_layer(&e, RM_LAYER_RELU, 0, 0);
        rm_test_updates_layer(&e, RM_LAYER_COSINE_EMBEDDING, 0, 16);
    }
    return e;
}

/* Mean over quantiles of what a network says of both states. */
static void ask(const struct rm_experiment *e, const struct rm_trainer *t, double q[2][2])
{
    struct rm_error error = {""};
    struct rm_net_workspace *space;
    const float x[] = {1, 0, 0, 1},
                tau[] = {0.1f, 0.3f, 0.5f, 0.7f, 0.9f, 0.1f, 0.3f, 0.5f, 0.7f, 0.9f};
    const bool iqn = e->algorithm.name == RM_ALGORITHM_IQN;
    const uint32_t per_action = e->algorithm.name == RM_ALGORITHM_QR_DQN ? 8 : 1;
    const uint32_t draws = iqn ? 5 : 1;
    assert_int_equal(
        rm_net_workspace_create(&space, rm_trainer_net(t), backend, 2, draws, false, &error), 0);
    const struct rm_net_input in = {
        .x = x, .batch = 2, .tau = iqn ? tau : NULL, .quantiles = iqn ? 5 : 0};
    rm_net_prepare(space, rm_trainer_params(t));
    const float *out = rm_net_forward(space, rm_trainer_params(t), &in);
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t a = 0; a < 2; a++) {
            q[s][a] = 0;
            for (uint32_t d = 0; d < draws; d++)
                for (uint32_t j = 0; j < per_action; j++)
                    q[s][a] += (double)out[((s * draws + d) * 2 + a) * per_action + j] /
                               (draws * per_action);
        }
    rm_net_workspace_destroy(space);
}

static void two_states_come_out_as_solved_by_hand(void **state)
{
    (void)state;
    struct rm_ring ring;
    rm_story_tell(&ring, 0, 1);
    const struct rm_sampler_source source = {&ring, 0, 1};
    const struct rm_sampler_spec spec = {
        .sources = &source,
        .source_count = 1,
        .agents = 1,
        .agent = &rm_story_agent,
        .batch = 32,
        .n_step = 3,
        .frame_stack = 1,
        .gamma = RM_STORY_GAMMA,
        .capacity = RM_STORY_ROWS,
        .seed = 2,
    };
    for (int name = RM_ALGORITHM_DQN; name <= RM_ALGORITHM_IQN; name++) {
        struct rm_error error = {""};
        struct rm_sampler *s;
        const struct rm_experiment e = tabular((enum rm_algorithm)name);
        struct rm_trainer *t = make(&e, backend, 2, 2);
        double q[2][2];
        assert_int_equal(rm_sampler_create(&s, &spec, &error), 0);
        rm_sampler_window_free(s);
        for (uint64_t u = 1; u <= 6000; u++) {
            /* Smaller steps at the end, to settle. */
            const struct rm_trainer_settings settings = {u < 4000 ? 0.01 : 0.0005, 0, 0, 1, 0};
            rm_trainer_set(t, &settings);
            assert_int_equal(rm_sampler_draw(s, u, rm_sampler_batch(s)), 1);
            assert_false(rm_trainer_update(t, rm_sampler_batch(s), u, NULL).skipped);
        }
        ask(&e, t, q);
        for (uint32_t i = 0; i < 4; i++)
            if (fabs(q[i / 2][i % 2] - solution[i / 2][i % 2]) > 0.05)
                fail_msg("algorithm %d: Q(%u,%u) = %g, by hand %g", name, i / 2, i % 2,
                         q[i / 2][i % 2], solution[i / 2][i % 2]);
        rm_sampler_destroy(s);
        rm_trainer_destroy(t);
    }
    rm_ring_close(&ring);
}

/* --- what an update moves ----------------------------------------------------------------------
 */

static bool equal(const struct rm_trainer *t, const float *a, const float *b)
{
    return !memcmp(a, b, rm_net_param_count(rm_trainer_net(t)) * sizeof *a);
}

static void the_target_follows_as_configured(void **state)
{
    (void)state;
    static struct rm_test_updates m;
    fill(&m, 0.9f);
    static const struct {
        enum rm_form form;
        enum rm_target_update update;
        uint64_t copies_at; /* the first update after which both are equal, of 10 */
    } cases[] = {{RM_FORM_PAPER, RM_TARGET_HARD, 5},
                 {RM_FORM_PAPER, RM_TARGET_SOFT, 0},
                 {RM_FORM_SORREL_SEQ, RM_TARGET_SOFT, 4},
                 {RM_FORM_SORREL_MP, RM_TARGET_SOFT, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct rm_experiment e = full(RM_ALGORITHM_IQN);
        e.algorithm.form = cases[c].form;
        e.algorithm.target.update = cases[c].update;
        e.algorithm.target.interval = 5;
        struct rm_trainer *t = make(&e, backend, INPUTS, ACTIONS);
        assert_true(equal(t, rm_trainer_params(t), t->all[0]->target));
        for (uint64_t u = 1; u <= 9; u++) {
            float *before = rm_test_updates_copy(t, backend, t->all[0]->target);
            rm_trainer_update(t, &m.batch, u, NULL);
            const bool copied = equal(t, rm_trainer_params(t), t->all[0]->target);
            assert_int_equal(copied, cases[c].copies_at &&
                                         (u == cases[c].copies_at || u == cases[c].copies_at + 5));
            if (cases[c].update == RM_TARGET_HARD && !copied)
                assert_true(equal(t, before, t->all[0]->target));
            if (cases[c].update == RM_TARGET_SOFT && !copied)
                for (size_t i = 0; i < rm_net_param_count(rm_trainer_net(t)); i += 7) {
                    const double from = (double)before[i], to = (double)rm_trainer_params(t)[i];
                    assert_true(fabs((double)t->all[0]->target[i] - (from + 0.01 * (to - from))) <
                                1e-6);
                }
            free(before);
        }
        rm_trainer_destroy(t);
    }
}

static void what_is_not_finite_changes_nothing(void **state)
{
    (void)state;
    static struct rm_test_updates m;
    const struct rm_experiment e = full(RM_ALGORITHM_IQN);
    struct rm_trainer *t = make(&e, backend, INPUTS, ACTIONS);
    struct rm_trainer *twin = make(&e, backend, INPUTS, ACTIONS);
    for (uint64_t u = 1; u <= 3; u++) {
        fill(&m, 0.9f);
        rm_trainer_update(t, &m.batch, u, NULL);
        rm_trainer_update(twin, &m.batch, u, NULL);
        m.ret[3] = u == 2 ? INFINITY : NAN;
        assert_true(rm_trainer_update(t, &m.batch, 100 + u, NULL).skipped);
        /* Moments and step count as well: the twin never saw it and stays equal. */
        assert_true(equal(t, rm_trainer_params(t), rm_trainer_params(twin)));
        assert_true(equal(t, t->all[0]->target, twin->all[0]->target));
    }
    rm_trainer_destroy(t);
    rm_trainer_destroy(twin);
}

/* Repeated passes measure, and the updates that follow are those of a twin without them. */
static void the_fixed_part_is_measured_and_nothing_changes(void **state)
{
    (void)state;
    static struct rm_test_updates m;
    static const enum rm_algorithm names[] = {RM_ALGORITHM_DQN, RM_ALGORITHM_IQN};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct rm_experiment e = full(names[i]);
        struct rm_trainer *t = make(&e, backend, INPUTS, ACTIONS);
        struct rm_trainer *twin = make(&e, backend, INPUTS, ACTIONS);
        for (uint64_t u = 1; u <= 3; u++) {
            fill(&m, 0.9f);
            rm_trainer_update(t, &m.batch, u, NULL);
            rm_trainer_update(twin, &m.batch, u, NULL);
            const double fixed = rm_trainer_fixed(t);
            assert_true(fixed > -1.0 / 3 &&
                        fixed < 2); /* a quarter of the rows takes less than twice as long */
            assert_true(equal(t, rm_trainer_params(t), rm_trainer_params(twin)));
            assert_true(equal(t, t->all[0]->target, twin->all[0]->target));
        }
        rm_trainer_destroy(t);
        rm_trainer_destroy(twin);
    }
}

static void clipping_scales_the_whole_gradient(void **state)
{
    (void)state;
    static struct rm_test_updates m;
    fill(&m, 0.9f);
    struct rm_experiment e = full(RM_ALGORITHM_IQN);
    /* With an epsilon far above the gradient, Adam's first step is proportional to it. */
    e.optimizer.epsilon = 1e6;
    e.optimizer.learning_rate = 1e6;
    struct rm_trainer *free_one = make(&e, backend, INPUTS, ACTIONS);
    float *before = rm_test_updates_copy(free_one, backend, rm_trainer_params(free_one));
    const double norm = rm_trainer_update(free_one, &m.batch, 1, NULL).grad_norm;
    e.optimizer.grad_clip = norm / 4;
    struct rm_trainer *clipped = make(&e, backend, INPUTS, ACTIONS);
    rm_trainer_update(clipped, &m.batch, 1, NULL);
    double whole = 0, quarter = 0;
    for (size_t i = 0; i < rm_net_param_count(rm_trainer_net(clipped)); i++) {
        whole += pow((double)rm_trainer_params(free_one)[i] - (double)before[i], 2);
        quarter += pow((double)rm_trainer_params(clipped)[i] - (double)before[i], 2);
    }
    assert_true(fabs(sqrt(quarter / whole) - 0.25) < 1e-3);
    free(before);
    rm_trainer_destroy(free_one);
    rm_trainer_destroy(clipped);
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    static struct rm_test_updates m;
    fill(&m, 0.9f);
    for (int name = RM_ALGORITHM_DQN; name <= RM_ALGORITHM_IQN; name++) {
        const struct rm_experiment e = full((enum rm_algorithm)name);
        struct rm_backend *two = cpu(2);
        struct rm_trainer *a = make(&e, backend, INPUTS, ACTIONS);
        struct rm_trainer *b = make(&e, two, INPUTS, ACTIONS);
        for (uint64_t u = 1; u <= 20; u++) {
            const struct rm_trainer_result x = rm_trainer_update(a, &m.batch, u, NULL);
            const struct rm_trainer_result y = rm_trainer_update(b, &m.batch, u, NULL);
            assert_true(x.loss == y.loss && x.grad_norm == y.grad_norm);
        }
        assert_true(equal(a, rm_trainer_params(a), rm_trainer_params(b)));
        assert_true(equal(a, a->all[0]->target, b->all[0]->target));
        rm_trainer_destroy(a);
        rm_trainer_destroy(b);
        rm_backend_destroy(two);
    }
}

/* Noise and fractions follow from the update's number: another number, another loss. */
static void an_update_is_a_function_of_its_number(void **state)
{
    (void)state;
    static struct rm_test_updates m;
    fill(&m, 0.9f);
    const struct rm_experiment e = full(RM_ALGORITHM_IQN);
    struct rm_trainer *t = make(&e, backend, INPUTS, ACTIONS);
    const double one = rm_trainer_gradient(t, &m.batch, 1, NULL).loss;
    const double two = rm_trainer_gradient(t, &m.batch, 2, NULL).loss;
    assert_true(one != two);
    assert_true(one == rm_trainer_gradient(t, &m.batch, 1, NULL).loss);
    rm_trainer_destroy(t);
}

static void a_network_of_another_algorithm_is_refused(void **state)
{
    (void)state;
    struct rm_error error = {""};
    struct rm_trainer *t;
    struct rm_experiment e = full(RM_ALGORITHM_IQN);
    e.algorithm.name = RM_ALGORITHM_DQN;
    const struct rm_trainer_spec spec = rm_test_updates_spec(&e, backend, INPUTS, ACTIONS);
    assert_true(rm_trainer_create(&t, &spec, &error) < 0);
    assert_non_null(strstr(error.text, "cosine_embedding"));
    e = full(RM_ALGORITHM_DQN);
    e.algorithm.name = RM_ALGORITHM_IQN;
    assert_true(rm_trainer_create(&t, &spec, &error) < 0);
    assert_non_null(strstr(error.text, "needs a cosine_embedding"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_differences_of_the_loss),
        cmocka_unit_test(dropout_drops_in_training),
        cmocka_unit_test(two_states_come_out_as_solved_by_hand),
        cmocka_unit_test(the_target_follows_as_configured),
        cmocka_unit_test(what_is_not_finite_changes_nothing),
        cmocka_unit_test(the_fixed_part_is_measured_and_nothing_changes),
        cmocka_unit_test(clipping_scales_the_whole_gradient),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(an_update_is_a_function_of_its_number),
        cmocka_unit_test(a_network_of_another_algorithm_is_refused),
    };
    return cmocka_run_group_tests(tests, open_backend, close_backend);
}
