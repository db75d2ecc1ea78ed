/* Learning from rollouts: which rows are samples, what is published when, what a successor finds,
 * what is too old. Actors and learner take turns in this process. */
#include "actor/actor.h"
#include "actor/worlds/worlds.h"
#include "learner/learner.h"
#include "learner/rollout_rows.h"
#include "shm/atomic.h"
#include "shm/layout.h"
#include "tests/support/acting.h"
#include "tests/support/allocations.h"
#include "tests/support/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define T 8

struct fixture {
    struct rm_session session;
    struct rm_actor *actor[3];
    struct rm_learner *learner;
    struct rm_duty actor_duty[3], duty;
};

static void start_learner(struct fixture *f)
{
    struct rm_error error = {""};
    if (rm_learner_create(&f->learner, &f->session, 0, "", &f->duty, &error) < 0)
        fail_msg("%s", error.text);
}

#define NETWORK ", \"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 4}]}"

/* more: further settings, after a comma. */
static struct fixture *open_fixture(const char *more)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct rm_error error = {""};
    char json[2048];
    snprintf(json, sizeof json,
             "{\"name\": \"rollout\", \"seed\": 1, \"rollout\": {\"steps\": 8, \"queue\": 3,"
             " \"max_policy_lag\": 0, \"staleness_max\": 9} %s %s}",
             strstr(more, "\"network\"") ? "" : NETWORK, more);
    assert_int_equal(rm_test_session(&f->session, json), 0);
    start_learner(f);
    for (uint32_t i = 0; i < f->session.objects.actors; i++)
        if (rm_actor_create(&f->actor[i], &f->session, i, &f->actor_duty[i], &error) < 0)
            fail_msg("%s", error.text);
    return f;
}

#define CARTPOLE "\"actor\": {\"count\": 2, \"worlds\": 5}, \"world\": {\"name\": \"cartpole\"}"
#define PPO                                                                                        \
    ", \"algorithm\": {\"name\": \"ppo\"}, \"actor\": {\"count\": 2, \"worlds\": 5},"              \
    " \"world\": {\"name\": \"cartpole\"}"

static void close_fixture(struct fixture *f)
{
    for (uint32_t i = 0; i < f->session.objects.actors; i++)
        rm_actor_destroy(f->actor[i]);
    rm_learner_destroy(f->learner);
    rm_session_close(&f->session);
    free(f);
}

static int act(struct fixture *f)
{
    int rc = 0;
    for (uint32_t i = 0; i < f->session.objects.actors; i++)
        while ((rc = rm_test_turn(&f->actor_duty[i])) > 0)
            ;
    return rc;
}

static int learn(struct fixture *f)
{
    int rc;
    while ((rc = rm_test_turn(&f->duty)) > 0)
        ;
    return rc;
}

static struct rm_weights_stamp latest(struct fixture *f)
{
    return rm_weights_latest(&f->session.weights[0]);
}

/* --- which rows are samples ------------------------------------------------------------------ */

struct row {
    uint8_t flags;
    uint64_t generation;
    float valid, discount; /* in units of gamma */
};

/* One lane's rows; the last is the successor. */
static const struct row story[] = {
    {RM_FLAG_FIRST, 1, 1, 1},
    {0, 1, 1, 0}, /* leads to a terminal row */
    {RM_FLAG_TERMINATED, 1, 0, 0},
    {RM_FLAG_FIRST, 1, 1, 1}, /* to one that was cut off: its value counts */
    {RM_FLAG_TRUNCATED, 1, 0, 0},
    {RM_FLAG_FIRST, 1, 0, 0}, /* to one that is not its successor */
    {RM_FLAG_TRUNCATED | RM_FLAG_VOID, 1, 0, 0},
    {RM_FLAG_FIRST, 1, 1, 1},
    {0, 1, 0, 0}, /* the writer died */
    {RM_FLAG_FIRST, 2, 1, 1},
    {0, 2, 0, 0}, /* goes out of play */
    {RM_FLAG_DEAD, 2, 0, 0},
    {RM_FLAG_FIRST, 2, 1, 1},
    {0, 2, 1, 1},
    {0, 2, 1, 1},
    {0, 2, 1, 1}, /* to the successor */
    {0, 2, 0, 0},
};
enum { STORY = sizeof story / sizeof story[0] - 1 };

/* The offered row's writer has died. On machines that make stores visible in another order, what
 * the next one writes into that row is seen before the generation in its head. Committed, the row
 * is the successor whoever writes after it. */
static void another_writer_is_no_successor(struct rm_rollout *r, struct rm_ring *ring,
                                           uint32_t samples)
{
    struct rm_row row;
    rm_ring_writer_open(ring);
    assert_int_equal(rm_ring_reserve(ring, &row), 1);
    *row.generation = 2;
    rm_ring_offer(ring);
    rm_rollout_copy(r, 0, 7);
    assert_true(r->valid[STORY - 1] == 0 && r->samples == samples - 1);
    RM_POKE(&ring->shared->generation, 2);
    rm_ring_commit(ring);
    rm_ring_writer_open(ring);
    rm_rollout_copy(r, 0, 7);
    assert_true(r->valid[STORY - 1] > 0 && r->samples == samples);
}

static void samples_and_their_successors(void **state)
{
    struct rm_session session;
    struct rm_world world;
    struct rm_env *env;
    struct rm_backend *backend;
    struct rm_error error = {""};
    struct rm_rollout r;
    (void)state;
    assert_int_equal(rm_test_session(&session, "{\"algorithm\": {\"name\": \"ppo\"}, \"world\":"
                                               " {\"name\": \"cartpole\"}, \"sample\": {\"gamma\":"
                                               " 0.5}, \"actor\": {\"worlds\": 1},"
                                               " \"rollout\": {\"steps\": 16}}"),
                     0);
    assert_int_equal(rm_world_open(&world, "cartpole", "", &error), 0);
    assert_int_equal(rm_world_create(&world, &session.experiment.world, 1, 0, 1, &env, &error), 0);
    assert_int_equal(rm_backend_cpu_create(&backend, 1, "auto", &error), 0);
    const struct rm_rollout_spec spec = {&session, 0, &world.ops->describe(env)->agent[0], backend};
    assert_int_equal(rm_rollout_create(&r, &spec, &error), 0);
    struct rm_ring *ring = rm_session_ring(&session, 0, 0);
    rm_ring_writer_open(ring);
    for (uint32_t i = 0; i <= STORY; i++) {
        struct rm_row row;
        assert_false(rm_rollout_ready(&r, 0));
        if (story[i].generation > RM_PEEK(&ring->shared->generation))
            rm_ring_writer_open(ring);
        assert_int_equal(rm_ring_reserve(ring, &row), 1);
        assert_int_equal(*row.generation, story[i].generation);
        for (int k = 0; k < 4; k++)
            ((float *)(void *)row.obs)[k] = (float)(10 * i) + (float)k;
        row.reward[0] = (float)i;
        row.flags[0] = story[i].flags;
        row.action[0] = i % 2;
        row.logp[0] = -(float)i;
        *row.policy_version = i < 8 ? 3 : 5;
        if (i == STORY)
            rm_ring_offer(ring);
        else
            rm_ring_commit(ring);
    }
    assert_true(rm_rollout_ready(&r, 0));
    assert_false(rm_rollout_ready(&r, 1));
    rm_rollout_copy(&r, 0, 7);
    uint32_t samples = 0, answers = 0;
    for (uint32_t i = 0; i < STORY; i++) {
        if (r.valid[i] != story[i].valid || r.discount[i] != story[i].discount * .5f)
            fail_msg("row %u: valid %g, discount %g", i, (double)r.valid[i], (double)r.discount[i]);
        answers += !(story[i].flags & (RM_FLAG_LAST | RM_FLAG_DEAD));
        if (story[i].valid > 0)
            assert_int_equal(r.sample[samples++], i);
        assert_true(r.action[i] == (int32_t)(i % 2) && r.logp[i] == -(float)i);
    }
    for (uint32_t i = 0; i <= STORY; i++)
        assert_true(r.reward[i] == (float)i && r.x[4 * i + 2] == (float)(10 * i) + 2);
    assert_int_equal(r.samples, samples);
    assert_int_equal(r.env_steps, answers);
    assert_true(r.lag_min == 2 && r.lag_max == 4 && r.lag_mean == 3);
    another_writer_is_no_successor(&r, ring, samples);
    rm_rollout_consume(&r, 1);
    assert_int_equal(rm_ring_consumed(ring) - ring->spec.first_index, 16);
    assert_int_equal(rm_rollout_first_held(&r), 1);
    rm_rollout_consume(&r, 0); /* is not taken back */
    assert_int_equal(rm_rollout_first_held(&r), 1);
    rm_rollout_destroy(&r);
    rm_backend_destroy(backend);
    world.ops->close(env);
    rm_world_close(&world);
    rm_session_close(&session);
}

/* --- publishing ------------------------------------------------------------------------------ */

static void a_version_per_rollout(void **state)
{
    struct fixture *f = open_fixture(PPO);
    uint64_t before = 0;
    (void)state;
    for (uint64_t r = 0; r < 6; r++) {
        assert_int_equal(latest(f).version, r + 1);
        assert_int_equal(learn(f), 0); /* nothing to learn from yet */
        assert_int_equal(latest(f).version, r + 1);
        assert_int_equal(act(f), 0);
        const uint64_t steps = RM_PEEK(&f->session.board.policies[0].env_steps);
        assert_true(steps > before && steps <= (r + 1) * T * 5);
        assert_int_equal(learn(f), 0);
        assert_int_equal(latest(f).version, r + 2);
        assert_int_equal(latest(f).updates, (r + 1) * 16); /* 4 passes of 4 minibatches */
        assert_int_equal(latest(f).env_steps, steps);
        assert_int_equal(RM_PEEK(&f->session.board.policies[0].rollouts), r + 1);
        assert_int_equal(RM_PEEK(&f->session.board.policies[0].lag_max_rollout), 0);
        before = steps;
    }
    close_fixture(f);
}

static void the_learner_ends_after_its_actors(void **state)
{
    struct fixture *f = open_fixture(PPO ", \"run\": {\"steps\": 100}");
    int acted = 0;
    (void)state;
    while (acted == 0) {
        acted = act(f);
        assert_int_equal(learn(f), acted ? RM_DUTY_DONE : 0);
    }
    assert_int_equal(acted, RM_DUTY_DONE);
    /* Three rollouts of forty rows, a few of them last observations. */
    assert_int_equal(latest(f).version, 4);
    assert_true(latest(f).env_steps >= 100 && latest(f).env_steps <= 120);
    close_fixture(f);
}

/* Passes over a rollout end with the first that went too far; the figures say what happened. */
static void too_far_from_the_policy_that_acted(void **state)
{
    struct fixture *f =
        open_fixture(", \"algorithm\": {\"name\": \"ppo\", \"target_kl\": 1e-9}," CARTPOLE);
    struct rm_board_policy *board = &f->session.board.policies[0];
    (void)state;
    for (uint64_t r = 0; r < 3; r++) {
        assert_int_equal(act(f), 0);
        assert_int_equal(learn(f), 0);
        assert_int_equal(latest(f).version, r + 2);
        assert_int_equal(latest(f).updates, (r + 1) * 4); /* one pass of four minibatches */
        assert_true(RM_PEEK(&board->kl) > 1e-9);
        assert_true(RM_PEEK(&board->entropy) > 0.5 && RM_PEEK(&board->entropy) < 0.6932);
        assert_true(RM_PEEK(&board->value_loss) > 0);
    }
    close_fixture(f);
}

#define ONCE                                                                                       \
    ", \"algorithm\": {\"name\": \"ppo\", \"epochs\": 1, \"minibatches\": 1}, \"actor\": "         \
    "{\"count\": 2, \"worlds\": 5},"

/* The learner sees what the actors saw: before the first step the policy gives every action the
 * probability that it was drawn with, to the bit. */
static void the_learner_sees_what_actors_saw(void **state)
{
    static const char *const settings[] = {
        ONCE "\"world\": {\"name\": \"cartpole\"}, \"sample\": {\"frame_stack\": 4}",
        ONCE "\"world\": {\"name\": \"count\", \"options\": {\"mask\": 1, \"choices\": 3,"
             " \"agents\": 2, \"length\": 3}}, \"policy\": {\"map\": \"shared\"}",
        ONCE "\"world\": {\"name\": \"treasurehunt\"}, \"sample\": {\"frame_stack\": 2},"
             " \"policy\": {\"map\": \"shared\"}",
        ONCE "\"world\": {\"name\": \"taxi\"}, \"network\": {\"layers\": [{\"type\": \"embedding\","
             " \"units\": 8}, {\"type\": \"linear\", \"units\": 8}]}",
        ONCE
        "\"world\": {\"name\": \"cartpole\"}, \"network\": {\"normalize_observations\": true,"
        " \"layers\": [{\"type\": \"linear\", \"units\": 8}, {\"type\": \"gru\", \"units\": 8}]}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct fixture *f = open_fixture(settings[i]);
        struct rm_board_policy *board = &f->session.board.policies[0];
        for (uint64_t r = 0; r < 6; r++) {
            assert_int_equal(act(f), 0);
            assert_int_equal(learn(f), 0);
            assert_int_equal(latest(f).version, r + 2);
            if (RM_PEEK(&board->kl) != 0)
                fail_msg("case %zu, rollout %d: kl %g", i, (int)r, RM_PEEK(&board->kl));
            if (!(RM_PEEK(&board->entropy) > 0))
                fail_msg("case %zu, rollout %d: entropy %g", i, (int)r, RM_PEEK(&board->entropy));
        }
        close_fixture(f);
    }
}

/* The first update of the Goodhart grid, whose policy head begins with a gain of .01: nearly
 * uniform over eight actions, all ratios 1, so no loss but what rounding leaves. */
static void the_first_update_is_of_a_uniform_policy(void **state)
{
    struct fixture *f = open_fixture(
        ONCE "\"world\": {\"name\": \"goodhart\"}, \"network\": {\"layers\": [{\"type\": "
             "\"conv2d\", \"units\": 32, \"kernel\": 3, \"padding\": 1}, {\"type\": \"relu\"}, "
             "{\"type\": \"linear\", \"units\": 64}, {\"type\": \"relu\"}], \"init\": "
             "\"orthogonal\", \"trunk\": \"shared\"}");
    const struct rm_board_policy *board = &f->session.board.policies[0];
    (void)state;
    assert_int_equal(act(f), 0);
    assert_int_equal(learn(f), 0);
    assert_float_equal(RM_PEEK(&board->entropy), 2.0794, .0005);
    assert_true(RM_PEEK(&board->kl) == 0 && RM_PEEK(&board->clip_fraction) == 0);
    assert_float_equal(RM_PEEK(&board->policy_loss), 0, 1e-6);
    close_fixture(f);
}

/* From the second rollout on, acting and learning allocate nothing, whatever goes along. */
static void nothing_is_allocated(void **state)
{
    static const char *const settings[] = {
        PPO,
        ", \"algorithm\": {\"name\": \"ppo\", \"value_head\": \"popart\","
        " \"normalize_rewards\": true, \"minibatches\": 2}, \"sample\": {\"frame_stack\": "
        "3}," CARTPOLE,
        (", \"algorithm\": {\"name\": \"appo\"}," CARTPOLE),
    };
    (void)state;
    if (!rm_test_allocations_counted()) {
        print_message("skipped: a sanitizer has the allocator\n");
        skip();
    }
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct fixture *f = open_fixture(settings[i]);
        act(f);
        learn(f);
        const uint64_t before = rm_test_allocations();
        for (int k = 0; k < 3; k++) {
            act(f);
            learn(f);
        }
        assert_int_equal(rm_test_allocations() - before, 0);
        close_fixture(f);
    }
}

/* --- death ----------------------------------------------------------------------------------- */

/* Parameters of the newest version. */
static float *newest(struct fixture *f)
{
    const uint64_t n = f->session.weights[0].count;
    float *params = calloc(n, sizeof *params);
    struct rm_weights_stamp stamp;
    rm_weights_read(&f->session.weights[0], params, n, &stamp, NULL);
    return params;
}

/* A learner dies in the middle of its first updates, or before them, or after it published and
 * before it gave the rows back: its successor trains on the rollout that nobody has published of,
 * and the weights are those of a run without a death. */
static void a_successor_finds_its_rollout(void **state)
{
    float *wanted = NULL;
    (void)state;
    for (int turns = -1; turns < 18; turns += turns < 3 ? 1 : 7) {
        struct fixture *f = open_fixture(PPO);
        assert_int_equal(act(f), 0);
        for (int i = 0; i < turns; i++)
            assert_int_equal(rm_test_turn(&f->duty), i < 16);
        if (turns >= 0) {
            rm_learner_destroy(f->learner);
            start_learner(f);
        }
        assert_int_equal(learn(f), 0);
        assert_int_equal(latest(f).version, 2);
        float *params = newest(f);
        if (!wanted)
            wanted = params;
        else
            assert_memory_equal(params, wanted, f->session.weights[0].count * sizeof(float));
        if (params != wanted)
            free(params);
        assert_int_equal(act(f), 0);
        assert_int_equal(learn(f), 0);
        assert_int_equal(latest(f).version, 3);
        assert_int_equal(RM_PEEK(&f->session.rings[0].shared->consumed) -
                             f->session.rings[0].spec.first_index,
                         2 * T);
        close_fixture(f);
    }
    free(wanted);
}

/* Actors that die at any row: the learner's rollouts go on, with fewer samples. */
static void an_actor_dies_in_a_rollout(void **state)
{
    (void)state;
    for (int dies_at = 0; dies_at <= T; dies_at++) {
        struct fixture *f = open_fixture(PPO);
        struct rm_error error = {""};
        for (int i = 0; i < dies_at; i++)
            assert_int_equal(rm_test_turn(&f->actor_duty[0]), 1);
        rm_actor_destroy(f->actor[0]);
        assert_int_equal(rm_actor_create(&f->actor[0], &f->session, 0, &f->actor_duty[0], &error),
                         0);
        for (uint64_t r = 0; r < 3; r++) {
            assert_int_equal(act(f), 0);
            assert_int_equal(learn(f), 0);
            assert_int_equal(latest(f).version, r + 2);
        }
        close_fixture(f);
    }
}

/* --- asynchronous ---------------------------------------------------------------------------- */

#define APPO                                                                                       \
    ", \"algorithm\": {\"name\": \"appo\"}, \"actor\": {\"count\": 2, \"worlds\": 5},"             \
    " \"world\": {\"name\": \"cartpole\"}"

/* Actors run until they are as far ahead as they may; what they made with the first weights is
 * older by the updates of every rollout before it, and too old from the second on. */
static void what_is_too_old_is_dropped(void **state)
{
    struct fixture *f = open_fixture(APPO);
    struct rm_board_policy *board = &f->session.board.policies[0];
    (void)state;
    assert_int_equal(act(f), 0);
    /* rollout.queue, though the ring, a power of two, has room for more */
    const uint64_t made = 3;
    assert_true(f->session.rings[0].spec.rows > (made + 1) * T);
    assert_int_equal(rm_ring_committed(&f->session.rings[0]), made * T);
    assert_int_equal(learn(f), 0);
    assert_int_equal(RM_PEEK(&board->rollouts), 1);
    assert_int_equal(RM_PEEK(&board->rollouts_dropped), made - 1);
    assert_int_equal(RM_PEEK(&board->lag_min_rollout), 16);
    assert_int_equal(RM_PEEK(&board->lag_max_rollout), 16);
    assert_int_equal(latest(f).version, 2);
    /* What they made of the rollout in between is mixed: its oldest row counts. */
    assert_int_equal(act(f), 0);
    assert_int_equal(rm_ring_committed(&f->session.rings[1]), 2 * made * T);
    assert_int_equal(learn(f), 0);
    assert_true(RM_PEEK(&board->rollouts) >= 2);
    close_fixture(f);
}

/* Rows are given back when they are copied: a successor goes on with the next rollout. */
static void an_asynchronous_successor_goes_on(void **state)
{
    struct fixture *f = open_fixture(APPO);
    (void)state;
    assert_int_equal(act(f), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(rm_test_turn(&f->duty), 1);
    assert_int_equal(RM_PEEK(&f->session.rings[1].shared->consumed), T);
    rm_learner_destroy(f->learner);
    start_learner(f);
    assert_int_equal(latest(f).version, 1);
    while (latest(f).version == 1)
        assert_int_equal(rm_test_turn(&f->duty), 1);
    assert_int_equal(RM_PEEK(&f->session.rings[1].shared->consumed), 2 * T);
    close_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_and_their_successors),
        cmocka_unit_test(a_version_per_rollout),
        cmocka_unit_test(the_learner_ends_after_its_actors),
        cmocka_unit_test(too_far_from_the_policy_that_acted),
        cmocka_unit_test(the_learner_sees_what_actors_saw),
        cmocka_unit_test(the_first_update_is_of_a_uniform_policy),
        cmocka_unit_test(nothing_is_allocated),
        cmocka_unit_test(a_successor_finds_its_rollout),
        cmocka_unit_test(an_actor_dies_in_a_rollout),
        cmocka_unit_test(what_is_too_old_is_dropped),
        cmocka_unit_test(an_asynchronous_successor_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
