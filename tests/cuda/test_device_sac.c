/* Discrete SAC on a device: its operations and whole updates beside the CPU's, and whole runs. */
#include "learner/algo/learning.h"
#include "shm/atomic.h"
#include "shm/base/state.h"
#include "tests/support/backends.h"
#include "tests/support/beside.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/replay_run.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 24, INPUTS = 7, ACTIONS = 5, OUTPUTS = SIZE * ACTIONS, UPDATES = 60 };

/* --- batches of random numbers --------------------------------------------------------------- */

/* Of an action: all of a policy that chooses them, or 0. */
enum { REALS = 3 };
static uint32_t reals;

struct transitions {
    struct rm_batch batch;
    float obs[SIZE * INPUTS], next_obs[SIZE * INPUTS];
    int32_t action[SIZE * REALS];
    float ret[SIZE], discount[SIZE], weight[SIZE], error[SIZE];
    uint8_t mask[OUTPUTS], next_mask[OUTPUTS];
};

static void draw(struct transitions *s, bool masks, bool priorities, uint64_t number)
{
    struct rm_rng rng = rm_rng_at(7, RM_STREAM_TEST, 1, number);
    s->batch = (struct rm_batch){
        .size = SIZE,
        .inputs = INPUTS,
        .actions = ACTIONS,
        .obs = s->obs,
        .next_obs = s->next_obs,
        .action = s->action,
        .ret = s->ret,
        .discount = s->discount,
        .mask = masks ? s->mask : NULL,
        .next_mask = masks ? s->next_mask : NULL,
        .weight = priorities ? s->weight : NULL,
        .error = priorities ? s->error : NULL,
    };
    for (uint32_t i = 0; i < SIZE * INPUTS; i++) {
        s->obs[i] = 2 * rm_rng_float(&rng) - 1;
        s->next_obs[i] = 2 * rm_rng_float(&rng) - 1;
    }
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        s->mask[i] = i >= ACTIONS && rm_rng_below(&rng, 3) > 0; /* nothing legal in the first */
        s->next_mask[i] = rm_rng_below(&rng, 3) > 0;
    }
    s->batch.reals = reals;
    for (uint32_t i = 0; i < SIZE * reals; i++)
        s->action[i] = rm_word_of_float(6 * rm_rng_float(&rng) - 3);
    for (uint32_t i = 0; i < SIZE; i++) {
        if (!reals)
            s->action[i] = (int32_t)rm_rng_below(&rng, ACTIONS);
        s->ret[i] = 4 * rm_rng_float(&rng) - 2;
        s->discount[i] = rm_rng_below(&rng, 4) ? 0.9f : 0.0f;
        s->weight[i] = 0.5f + 0.5f * rm_rng_float(&rng);
    }
}

/* --- operations ------------------------------------------------------------------------------ */

static void assert_figure(const char *what, double here, double there)
{
    if (!(fabs(here - there) <= 1e-6 * (1e-3 + fabs(here))))
        fail_msg("%s: %.12g, on the device %.12g", what, here, there);
}

/* What the operations leave, in the host's memory. */
struct left {
    float y[SIZE], d_q[2][OUTPUTS], d_logits[OUTPUTS], error[SIZE];
    struct rm_update_figures figures;
    struct rm_temperature temperature;
};

/* The operations of an update in their order, on buffers of the backend. */
struct problem {
    struct rm_batch batch;
    const float *logits, *q1, *q2;
    float *p, *logp, *y, *d_q[2], *d_logits;
    struct rm_update_figures *figures;
    struct rm_temperature *temperature;
    const struct rm_update_knobs *knobs;
};

static void put(struct rm_backend *b, const struct problem *p)
{
    const struct rm_soft_ops *ops = rm_soft_ops_of(b);
    struct rm_soft_states states = {
        .batch = SIZE,
        .actions = ACTIONS,
        .logits = p->logits,
        .q1 = p->q1,
        .q2 = p->q2,
        .mask = p->batch.next_mask,
        .temperature = p->temperature,
        .p = p->p,
        .logp = p->logp,
    };
    ops->targets(b, &states, p->batch.ret, p->batch.discount, p->y);
    for (uint32_t critic = 0; critic < 2; critic++) {
        const struct rm_soft_critic_loss loss = {
            .batch = SIZE,
            .actions = ACTIONS,
            .critic = critic,
            .q = critic ? p->q2 : p->q1,
            .action = p->batch.action,
            .y = p->y,
            .weight = p->batch.weight,
            .error = p->batch.error,
            .d_q = p->d_q[critic],
            .figures = p->figures,
        };
        ops->critic_loss(b, &loss);
    }
    states.mask = p->batch.mask;
    const struct rm_soft_policy_loss loss = {
        .states = states,
        .weight = p->batch.weight,
        .target_ratio = 0.6,
        .d_logits = p->d_logits,
        .figures = p->figures,
    };
    ops->policy_loss(b, &loss);
    const struct rm_soft_step step = {
        .beta1 = 0.9,
        .beta2 = 0.99,
        .epsilon = 1e-6,
        .knobs = p->knobs,
        .figures = p->figures,
        .temperature = p->temperature,
    };
    ops->temperature(b, &step);
}

static void compare_left(const struct left *here, const struct left *there, bool errors)
{
    rm_test_assert_near("y", here->y, there->y, SIZE);
    rm_test_assert_near("d_q", here->d_q[0], there->d_q[0], 2 * OUTPUTS);
    rm_test_assert_near("d_logits", here->d_logits, there->d_logits, OUTPUTS);
    if (errors)
        rm_test_assert_near("error", here->error, there->error, SIZE);
    assert_figure("loss", here->figures.last_loss, there->figures.last_loss);
    for (int i = RM_SUM_OF_Q; i <= RM_SUM_OF_GAP; i++)
        assert_figure("sum", here->figures.now_sums[i], there->figures.now_sums[i]);
    assert_true(there->figures.now_samples == 1.0);
    assert_figure("temperature", here->temperature.log, there->temperature.log);
    assert_figure("second moment", here->temperature.v, there->temperature.v);
    assert_true(here->temperature.steps == there->temperature.steps);
}

static void check_operations(struct transitions *s, uint64_t number, bool skipped)
{
    static struct left here, there;
    struct rm_rng rng = rm_rng_at(8, RM_STREAM_TEST, 2, number);
    float logits[OUTPUTS], q1[OUTPUTS], q2[OUTPUTS], p[OUTPUTS], logp[OUTPUTS];
    const struct rm_update_knobs knobs = {.learning_rate = 0.01};
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        logits[i] = 4 * rm_rng_float(&rng) - 2;
        q1[i] = 4 * rm_rng_float(&rng) - 2;
        q2[i] = 4 * rm_rng_float(&rng) - 2;
    }
    here = (struct left){.figures = {.last_loss = 9, .skip = skipped},
                         .temperature = {.log = log(0.3)}};
    struct problem on_cpu = {
        .batch = s->batch,
        .logits = logits,
        .q1 = q1,
        .q2 = q2,
        .p = p,
        .logp = logp,
        .y = here.y,
        .d_q = {here.d_q[0], here.d_q[1]},
        .d_logits = here.d_logits,
        .figures = &here.figures,
        .temperature = &here.temperature,
        .knobs = &knobs,
    };
    struct problem d = on_cpu;
    d.batch.action = rm_test_to_device(s->action, sizeof s->action);
    d.batch.ret = rm_test_to_device(s->ret, sizeof s->ret);
    d.batch.discount = rm_test_to_device(s->discount, sizeof s->discount);
    d.batch.mask = s->batch.mask ? rm_test_to_device(s->mask, sizeof s->mask) : NULL;
    d.batch.next_mask = s->batch.mask ? rm_test_to_device(s->next_mask, sizeof s->next_mask) : NULL;
    d.batch.weight = s->batch.weight ? rm_test_to_device(s->weight, sizeof s->weight) : NULL;
    d.batch.error = s->batch.error ? rm_test_to_device(NULL, sizeof s->error) : NULL;
    d.logits = rm_test_to_device(logits, sizeof logits);
    d.q1 = rm_test_to_device(q1, sizeof q1);
    d.q2 = rm_test_to_device(q2, sizeof q2);
    d.p = rm_test_to_device(NULL, sizeof p);
    d.logp = rm_test_to_device(NULL, sizeof logp);
    d.y = rm_test_to_device(NULL, sizeof here.y);
    d.d_q[0] = rm_test_to_device(NULL, sizeof here.d_q[0]);
    d.d_q[1] = rm_test_to_device(NULL, sizeof here.d_q[1]);
    d.d_logits = rm_test_to_device(NULL, sizeof here.d_logits);
    d.figures = rm_test_to_device(&here.figures, sizeof here.figures);
    d.temperature = rm_test_to_device(&here.temperature, sizeof here.temperature);
    d.knobs = rm_test_to_device(&knobs, sizeof knobs);
    put(rm_test_cpu, &on_cpu);
    put(rm_test_device, &d);
    rm_test_from_device(there.y, d.y, sizeof there.y);
    rm_test_from_device(there.d_q[0], d.d_q[0], sizeof there.d_q[0]);
    rm_test_from_device(there.d_q[1], d.d_q[1], sizeof there.d_q[1]);
    rm_test_from_device(there.d_logits, d.d_logits, sizeof there.d_logits);
    rm_test_from_device(&there.figures, d.figures, sizeof there.figures);
    rm_test_from_device(&there.temperature, d.temperature, sizeof there.temperature);
    if (d.batch.error) {
        memcpy(here.error, s->error, sizeof here.error);
        rm_test_from_device(there.error, d.batch.error, sizeof there.error);
    }
    compare_left(&here, &there, d.batch.error);
    assert_true(there.temperature.steps == !skipped);
    rm_test_device_fine(rm_test_device);
    rm_test_device_release();
}

static void operations_are_the_cpus(void **state)
{
    static struct transitions s;
    (void)state;
    for (uint64_t i = 0; i < 16; i++) {
        draw(&s, i & 1, i & 2, i);
        check_operations(&s, i, i & 4);
    }
}

/* --- whole updates --------------------------------------------------------------------------- */

static uint32_t updates(void)
{
    return rm_test_effort(UPDATES, 10);
}

static struct rm_experiment experiment_of(bool priorities, bool dropout, bool tuned)
{
    struct rm_experiment e = rm_test_updates_settings(RM_ALGORITHM_SAC);
    e.sample.batch = SIZE;
    e.sample.n_step = 1;
    e.algorithm.target.tau = 0.1;
    e.algorithm.temperature = 0.2;
    e.algorithm.tune_temperature = tuned;
    e.algorithm.target_entropy_ratio = 0.7;
    e.algorithm.target_entropy = -0.8;
    e.priority.kind = priorities ? RM_PRIORITY_PROPORTIONAL : RM_PRIORITY_UNIFORM;
    e.optimizer.epsilon = 1e-5;
    e.optimizer.grad_clip = 0.5;
    e.debug.finite_patience = 3;
    e.network.gain = e.network.value_gain = e.network.policy_gain = 1;
    rm_test_updates_layer(&e, RM_LAYER_LINEAR, 16, 0);
    rm_test_updates_layer(&e, RM_LAYER_TANH, 0, 0);
    if (dropout)
        rm_test_updates_layer(&e, RM_LAYER_DROPOUT, 0, 0);
    rm_test_updates_layer(&e, RM_LAYER_LINEAR, 12, 0);
    rm_test_updates_layer(&e, RM_LAYER_RELU, 0, 0);
    return e;
}

static struct rm_trainer_spec spec_of(const struct rm_experiment *e, bool masks)
{
    return (struct rm_trainer_spec){
        .experiment = e,
        .policy = 2,
        .shape = {.inputs = INPUTS,
                  .actions = reals ? 0 : ACTIONS,
                  .reals = reals,
                  .deviation_of_state = 1,
                  .outputs_per_action = 1,
                  .head = RM_HEAD_LOGITS},
        .name = "policy",
        .masks = masks,
    };
}

static struct rm_state *state_of(struct rm_trainer *t)
{
    struct rm_error error = {""};
    struct rm_state *s;
    assert_int_equal(rm_state_create(&s, &error), 0);
    rm_trainer_state(t, s);
    assert_int_equal(rm_state_end(s, &error), 0);
    return s;
}

/* All that a checkpoint has: networks, critics, their target networks, moments, temperature. */
static void compare_states(struct rm_trainer *t, struct rm_trainer *reference)
{
    struct rm_state *x = state_of(t), *y = state_of(reference);
    assert_int_equal(rm_state_count(x), rm_state_count(y));
    for (size_t i = 0; i < rm_state_count(x); i++) {
        const struct rm_state_part *p = rm_state_at(x, i), *q = rm_state_at(y, i);
        assert_string_equal(p->name, q->name);
        assert_int_equal(p->bytes, q->bytes);
        if (strcmp(p->name, "params") != 0 && strcmp(p->name, "critics") != 0 &&
            strcmp(p->name, "target") != 0)
            continue;
        const double apart = rm_test_updates_apart(p->data, q->data, p->bytes / sizeof(float));
        if (!(apart < 1e-4))
            fail_msg("%s: %g apart after %u updates", p->name, apart, updates());
    }
    rm_state_destroy(x);
    rm_state_destroy(y);
}

static void compare_updates(const struct rm_experiment *e, bool masks)
{
    const bool priorities = e->priority.kind == RM_PRIORITY_PROPORTIONAL;
    const struct rm_trainer_settings settings = {
        .learning_rate = e->optimizer.learning_rate,
        .grad_clip = e->optimizer.grad_clip,
        .target_tau = e->algorithm.target.tau,
        .report = updates(),
    };
    static struct rm_test_beside p;
    static struct transitions s;
    rm_test_beside_open(&p, spec_of(e, masks));
    rm_trainer_set(p.there, &settings);
    for (uint64_t number = 1; number <= updates(); number++) {
        draw(&s, masks, priorities, number);
        rm_test_beside_update(&p, &s.batch, number);
    }
    rm_test_beside_end(&p, priorities);
    compare_states(p.there, p.here);
    rm_test_beside_close(&p);
}

static void updates_are_the_cpus(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const struct rm_experiment e = experiment_of(i & 1, i & 2, !(i & 4));
        compare_updates(&e, i & 4 || i & 1);
    }
}

/* Real actions: the draw, critics that are given it, and the way back through both. */
static void real_actions_are_the_cpus(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        const struct rm_experiment e = experiment_of(i & 1, i & 2, i < 3);
        reals = i == 2 ? 1 : REALS;
        compare_updates(&e, false);
    }
    struct rm_experiment e = experiment_of(true, false, true);
    e.network.normalize_observations = true;
    e.network.observation_clip = 5;
    compare_updates(&e, false);
    reals = 0;
}

static void other_forms_are_the_cpus(void **state)
{
    (void)state;
    struct rm_experiment e = experiment_of(true, false, true);
    e.network.normalize_observations = true;
    e.network.observation_clip = 5;
    compare_updates(&e, true);
    e = experiment_of(false, true, true);
    e.algorithm.target.update = RM_TARGET_HARD;
    e.algorithm.target.interval = 7;
    e.debug.check_finite = RM_CHECK_FINITE_ALWAYS;
    e.debug.check_every = 1;
    compare_updates(&e, false);
}

/* --- whole runs ------------------------------------------------------------------------------ */

static char *policy_of(const char *feed, size_t *bytes)
{
    struct rm_replay_run run;
    char learner[1024];
    snprintf(
        learner, sizeof learner,
        RM_REPLAY_LOCKSTEP_OF("%u") ", \"learner\": {\"device\": \"cuda:0\", \"feed\": \"%s\"}, "
                                    "\"actor\": {\"count\": 2, \"worlds\": 3}",
        rm_test_effort(2000, 400), feed);
    rm_replay_run_start(&run,
                        "\"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 16}, "
                        "{\"type\": \"tanh\"}]}, \"algorithm\": {\"name\": \"sac\"}",
                        "sequential", learner);
    rm_replay_run_to_its_end(&run);
    const struct rm_board_policy *board = &run.session.board.policies[0];
    assert_true(RM_PEEK(&board->updates) > rm_test_effort(100, 10));
    assert_true(RM_PEEK(&board->updates_skipped) == 0);
    assert_true(isfinite(RM_PEEK(&board->loss)) && RM_PEEK(&board->grad_norm) > 0);
    assert_true(RM_PEEK(&board->entropy) > 0 && RM_PEEK(&board->temperature) > 0);
    assert_true(RM_PEEK(&board->device_bytes_in) > 0);
    char *tensors = rm_replay_run_tensors(&run, bytes);
    rm_replay_run_stop(&run);
    return tensors;
}

static void runs_repeat_to_the_bit(void **state)
{
    static const char *const feeds[] = {"staged", "resident"};
    (void)state;
    rm_test_device_use();
    for (int i = 0; i < 2; i++) {
        size_t bytes, other_bytes;
        char *policy = policy_of(feeds[i], &bytes), *other = policy_of(feeds[i], &other_bytes);
        assert_int_equal(bytes, other_bytes);
        assert_memory_equal(policy, other, bytes);
        free(policy);
        free(other);
    }
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, rm_test_backends_open, rm_test_backends_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(operations_are_the_cpus),
        TEST(updates_are_the_cpus),
        TEST(real_actions_are_the_cpus),
        TEST(other_forms_are_the_cpus),
        cmocka_unit_test(runs_repeat_to_the_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
