/* R2D2 on a device: its operations and whole updates beside the CPU's, and whole runs. */
#include "learner/algo/learning.h"
#include "shm/atomic.h"
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

enum {
    SIZE = 8,
    INPUTS = 10,
    ACTIONS = 3,
    BURN_IN = 2,
    TRACE = 5,
    N_STEP = 2,
    ROWS = BURN_IN + TRACE + N_STEP,
    OUTPUTS = (TRACE + N_STEP) * SIZE * ACTIONS,
    UNITS = 12,
    UPDATES = 60,
};

/* --- batches of random numbers --------------------------------------------------------------- */

struct sequences {
    struct rm_batch batch;
    float obs[ROWS * SIZE * INPUTS];
    int32_t action[TRACE * SIZE];
    float ret[TRACE * SIZE], discount[TRACE * SIZE];
    uint8_t mask[ROWS * SIZE * ACTIONS];
    float weight[SIZE], error[SIZE], state[SIZE * UNITS];
    uint8_t restart[ROWS * SIZE];
    float valid[TRACE * SIZE];
    uint32_t ahead[TRACE * SIZE];
};

static void draw(struct sequences *s, bool priorities, uint64_t number)
{
    struct rm_rng rng = rm_rng_at(7, RM_STREAM_TEST, 1, number);
    s->batch = (struct rm_batch){
        .size = SIZE,
        .inputs = INPUTS,
        .actions = ACTIONS,
        .obs = s->obs,
        .action = s->action,
        .ret = s->ret,
        .discount = s->discount,
        .mask = s->mask,
        .weight = priorities ? s->weight : NULL,
        .error = priorities ? s->error : NULL,
        .burn_in = BURN_IN,
        .trace = TRACE,
        .tail = N_STEP,
        .state_floats = UNITS,
        .state = s->state,
        .restart = s->restart,
        .valid = s->valid,
        .ahead = s->ahead,
    };
    for (uint32_t i = 0; i < ROWS * SIZE * INPUTS; i++)
        s->obs[i] = 2 * rm_rng_float(&rng) - 1;
    for (uint32_t i = 0; i < SIZE * UNITS; i++)
        s->state[i] = rm_rng_float(&rng) - 0.5f;
    for (uint32_t i = 0; i < ROWS * SIZE; i++)
        s->restart[i] = rm_rng_below(&rng, 6) == 0;
    for (uint32_t i = 0; i < ROWS * SIZE * ACTIONS; i++)
        s->mask[i] = rm_rng_below(&rng, 3) > 0;
    for (uint32_t i = 0; i < SIZE; i++)
        s->weight[i] = 0.5f + 0.5f * rm_rng_float(&rng);
    for (uint32_t i = 0; i < TRACE * SIZE; i++) {
        s->action[i] = (int32_t)rm_rng_below(&rng, ACTIONS);
        s->ret[i] = 6 * rm_rng_float(&rng) - 3;
        s->discount[i] = rm_rng_below(&rng, 4) ? 0.9f : 0.0f;
        s->valid[i] = i < SIZE || rm_rng_below(&rng, 5) > 0;
        s->ahead[i] = 1 + rm_rng_below(&rng, N_STEP);
    }
}

/* --- operations ------------------------------------------------------------------------------ */

static struct rm_batch batch_there(const struct sequences *s)
{
    struct rm_batch b = s->batch;
    b.obs = NULL;
    b.action = rm_test_to_device(s->action, sizeof s->action);
    b.ret = rm_test_to_device(s->ret, sizeof s->ret);
    b.discount = rm_test_to_device(s->discount, sizeof s->discount);
    b.mask = b.mask ? rm_test_to_device(s->mask, sizeof s->mask) : NULL;
    b.weight = b.weight ? rm_test_to_device(s->weight, sizeof s->weight) : NULL;
    b.error = b.error ? rm_test_to_device(NULL, sizeof s->error) : NULL;
    b.state = NULL;
    b.restart = NULL;
    b.valid = rm_test_to_device(s->valid, sizeof s->valid);
    b.ahead = rm_test_to_device(s->ahead, sizeof s->ahead);
    return b;
}

static void check_operations(struct sequences *s, bool rescale, bool other_chooses)
{
    struct rm_rng rng = rm_rng_at(8, RM_STREAM_TEST, rescale, other_chooses);
    float choose[OUTPUTS], value[OUTPUTS], y[TRACE * SIZE], y_there[TRACE * SIZE];
    float d_q[OUTPUTS], d_there[OUTPUTS], error[SIZE];
    struct rm_update_figures here = {0}, there;
    for (uint32_t i = 0; i < OUTPUTS; i++) {
        choose[i] = roundf(4 * rm_rng_float(&rng));
        value[i] = 4 * rm_rng_float(&rng) - 2;
    }
    struct rm_sequence_targets t = {
        .batch = s->batch,
        .choose = other_chooses ? choose : value,
        .value = value,
        .rescale = rescale,
        .y = y,
    };
    struct rm_sequence_loss l = {
        .batch = s->batch,
        .q = value,
        .y = y,
        .kappa = 0.7f,
        .rescale = rescale,
        .max_share = 0.9,
        .d_q = d_q,
        .figures = &here,
    };
    const struct rm_sequence_ops *ops = rm_sequence_ops_of(rm_test_cpu);
    ops->targets(rm_test_cpu, &t);
    ops->loss(rm_test_cpu, &l);

    const struct rm_batch batch = batch_there(s);
    float *q_there = rm_test_to_device(value, sizeof value);
    t.batch = l.batch = batch;
    t.choose = other_chooses ? rm_test_to_device(choose, sizeof choose) : q_there;
    t.value = l.q = q_there;
    t.y = rm_test_to_device(NULL, sizeof y);
    l.y = t.y;
    l.d_q = rm_test_to_device(NULL, sizeof d_q);
    l.partials = rm_test_to_device(NULL, 3 * SIZE * sizeof(double));
    l.figures = rm_test_to_device(NULL, sizeof here);
    ops = rm_sequence_ops_of(rm_test_device);
    ops->targets(rm_test_device, &t);
    ops->loss(rm_test_device, &l);
    rm_test_from_device(y_there, t.y, sizeof y_there);
    rm_test_from_device(d_there, l.d_q, sizeof d_there);
    rm_test_from_device(&there, l.figures, sizeof there);
    rm_test_assert_near("y", y, y_there, TRACE * SIZE);
    rm_test_assert_near("d_q", d_q, d_there, OUTPUTS);
    if (batch.error) {
        rm_test_from_device(error, batch.error, sizeof error);
        rm_test_assert_near("error", s->error, error, SIZE);
    }
    assert_true(fabs(here.last_loss - there.last_loss) <= 1e-6 * fabs(here.last_loss));
    assert_true(fabs(here.now_sums[RM_SUM_OF_Q] - there.now_sums[RM_SUM_OF_Q]) <= 1e-6);
    assert_true(there.now_samples == 1.0);
    rm_test_device_fine(rm_test_device);
    rm_test_device_release();
}

static void operations_are_the_cpus(void **state)
{
    static struct sequences s;
    (void)state;
    for (uint64_t i = 0; i < 16; i++) {
        draw(&s, i & 1, i);
        if (i & 8)
            s.batch.mask = NULL;
        check_operations(&s, i & 2, i & 4);
    }
}

/* --- whole updates --------------------------------------------------------------------------- */

static struct rm_experiment experiment_of(bool rescale, bool priorities, bool noisy)
{
    struct rm_experiment e = rm_test_updates_settings(RM_ALGORITHM_R2D2);
    e.sample.batch = SIZE;
    e.sample.n_step = N_STEP;
    e.sample.sequence = TRACE;
    e.sample.burn_in = BURN_IN;
    e.sample.period = 1;
    e.algorithm.value_rescale = rescale;
    e.algorithm.target.tau = 0.1;
    e.priority.max_share = 0.9;
    e.priority.kind = priorities ? RM_PRIORITY_PROPORTIONAL : RM_PRIORITY_UNIFORM;
    e.optimizer.epsilon = 1e-5;
    e.optimizer.grad_clip = 1;
    e.debug.finite_patience = 3;
    e.network.gain = e.network.value_gain = e.network.policy_gain = 1;
    rm_test_updates_layer(&e, RM_LAYER_LINEAR, 16, 0);
    rm_test_updates_layer(&e, RM_LAYER_TANH, 0, 0);
    if (noisy)
        rm_test_updates_layer(&e, RM_LAYER_DROPOUT, 0, 0);
    rm_test_updates_layer(&e, RM_LAYER_GRU, UNITS, 0);
    if (noisy) {
        e.network.noisy_head = true;
        e.network.noise = RM_NOISE_FACTORISED;
        e.network.sigma0 = 0.5;
    }
    return e;
}

static struct rm_trainer_spec spec_of(const struct rm_experiment *e)
{
    return (struct rm_trainer_spec){
        .experiment = e,
        .policy = 2,
        .shape = {.inputs = INPUTS, .actions = ACTIONS, .outputs_per_action = 1},
        .name = "policy",
        .masks = true,
    };
}

static void compare_updates(const struct rm_experiment *e)
{
    const bool priorities = e->priority.kind == RM_PRIORITY_PROPORTIONAL;
    const uint32_t updates = rm_test_effort(UPDATES, 10);
    const struct rm_trainer_settings settings = {
        .learning_rate = e->optimizer.learning_rate,
        .grad_clip = e->optimizer.grad_clip,
        .target_tau = e->algorithm.target.tau,
        .report = updates,
    };
    static struct rm_test_beside p;
    static struct sequences s;
    rm_test_beside_open(&p, spec_of(e));
    rm_trainer_set(p.there, &settings);
    for (uint64_t number = 1; number <= updates; number++) {
        draw(&s, priorities, number);
        rm_test_beside_update(&p, &s.batch, number);
    }
    rm_test_beside_end(&p, priorities);
    rm_test_beside_compare(&p, "params", rm_trainer_params(p.there), rm_trainer_params(p.here));
    rm_test_beside_compare(&p, "target", p.there->all[0]->target, p.here->all[0]->target);
    rm_test_beside_close(&p);
}

static void updates_are_the_cpus(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const struct rm_experiment e = experiment_of(i & 1, i & 2, i & 4);
        compare_updates(&e);
    }
}

static void other_forms_are_the_cpus(void **state)
{
    (void)state;
    struct rm_experiment e = experiment_of(true, true, false);
    e.network.normalize_observations = true;
    e.network.observation_clip = 5;
    compare_updates(&e);
    e = experiment_of(true, false, true);
    e.algorithm.double_q = false;
    e.algorithm.target.update = RM_TARGET_HARD;
    e.algorithm.target.interval = 7;
    e.debug.check_finite = RM_CHECK_FINITE_ALWAYS;
    e.debug.check_every = 1;
    compare_updates(&e);
}

/* --- whole runs ------------------------------------------------------------------------------ */

static char *policy_of(size_t *bytes)
{
    struct rm_replay_run run;
    char json[512];
    snprintf(json, sizeof json,
             RM_REPLAY_LOCKSTEP_OF("%u") ", \"learner\": {\"device\": \"cuda:0\"}, "
                                         "\"actor\": {\"count\": 2, \"worlds\": 3}",
             rm_test_effort(2000, 400));
    rm_replay_run_start(&run,
                        "\"network\": {\"layers\": [{\"type\": \"gru\", \"units\": 16}]}, "
                        "\"algorithm\": {\"name\": \"r2d2\"}, "
                        "\"priority\": {\"kind\": \"proportional\"}",
                        "sequential", json);
    rm_replay_run_to_its_end(&run);
    const struct rm_board_policy *board = &run.session.board.policies[0];
    assert_true(RM_PEEK(&board->updates) > rm_test_effort(100, 10));
    assert_true(RM_PEEK(&board->updates_skipped) == 0);
    assert_true(isfinite(RM_PEEK(&board->loss)) && RM_PEEK(&board->grad_norm) > 0);
    assert_true(RM_PEEK(&board->priority_max) > 0);
    assert_true(RM_PEEK(&board->device_bytes_in) > 0);
    char *tensors = rm_replay_run_tensors(&run, bytes);
    rm_replay_run_stop(&run);
    return tensors;
}

static void runs_repeat_to_the_bit(void **state)
{
    size_t bytes, other_bytes;
    (void)state;
    rm_test_device_use();
    char *policy = policy_of(&bytes), *other = policy_of(&other_bytes);
    assert_int_equal(bytes, other_bytes);
    assert_memory_equal(policy, other, bytes);
    free(policy);
    free(other);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, rm_test_backends_open, rm_test_backends_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(operations_are_the_cpus),
        TEST(updates_are_the_cpus),
        TEST(other_forms_are_the_cpus),
        cmocka_unit_test(runs_repeat_to_the_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
