/* What an actor waits for, whom it wakes, and when it is done. */
#include "actor/actor.h"
#include "actor/worlds/plan.h"
#include "config/config.h"
#include "shm/atomic.h"
#include "tests/support/acting.h"
#include "tests/support/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

struct fixture {
    struct rm_session session;
    struct rm_actor *actor[3];
    struct rm_duty duty[3];
};

static struct fixture *open_mode(const char *more, enum rm_ring_mode mode)
{
    static struct rm_experiment experiment;
    static struct rm_plan plan;
    struct fixture *f = calloc(1, sizeof *f);
    struct rm_error error = {""};
    char json[2048];

    snprintf(json, sizeof json,
             "{\"name\": \"waits\", \"seed\": 1, \"world\": {\"name\": \"count\","
             " \"options\": {\"agents\": 2, \"phases\": 2, \"length\": 4, \"max_steps\": 9}},"
             " \"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 4}]}, %s}",
             more);
    if (rm_config_parse(&experiment, "test", json, strlen(json), NULL, 0, &error) < 0)
        fail_msg("%s", error.text);
    if (rm_plan_make(&plan, &experiment, &error) < 0 ||
        rm_session_create(&f->session, &experiment, &plan, &error) < 0)
        fail_msg("%s", error.text);
    for (uint32_t i = 0; i < f->session.objects.actors * f->session.objects.policies; i++)
        f->session.rings[i].spec.mode = mode; /* of this process's view: no algorithm is involved */
    for (uint32_t i = 0; i < f->session.objects.actors; i++) {
        int rc = rm_actor_create(&f->actor[i], &f->session, i, &f->duty[i], &error);
        if (rc < 0)
            fail_msg("%s", error.text);
    }
    return f;
}

static struct fixture *open_fixture(const char *more)
{
    return open_mode(more, RM_RING_REPLAY);
}

static void close_fixture(struct fixture *f)
{
    for (uint32_t i = 0; i < f->session.objects.actors; i++)
        rm_actor_destroy(f->actor[i]);
    rm_session_close(&f->session);
    free(f);
}

static struct rm_wake sleeper(struct fixture *f, uint32_t worker)
{
    struct rm_wake wake = rm_session_wake(&f->session, worker);
    rm_wake_prepare(&wake);
    return wake;
}

static bool was_woken(struct rm_wake *wake)
{
    return rm_wake_wait(wake, 1) == 1;
}

static uint64_t rows(struct fixture *f, uint32_t actor, uint32_t policy)
{
    return rm_ring_committed(rm_session_ring(&f->session, actor, policy));
}

static void nothing_happens_without_weights(void **state)
{
    struct fixture *f = open_fixture("\"limiter\": {\"updates_per_step\": 0}");

    (void)state;
    assert_int_equal(rm_test_turn(&f->duty[0]), 0);
    rm_test_publish_action(&f->session, 0, 1, 0, 0);
    assert_int_equal(rm_test_turn(&f->duty[0]), 0); /* policy 1 has none yet */
    assert_int_equal(f->duty[0].clock->waits, RM_WAIT_WEIGHTS);
    assert_int_equal(rows(f, 0, 0), 0);
    rm_test_publish_action(&f->session, 1, 1, 0, 0);
    assert_int_equal(rm_test_turn(&f->duty[0]), 1);
    assert_int_equal(rows(f, 0, 0), 1);
    close_fixture(f);
}

static void new_weights_are_used_at_once(void **state)
{
    struct fixture *f = open_fixture("\"limiter\": {\"updates_per_step\": 0},"
                                     "\"epsilon\": {\"start\": 0, \"end\": 0}");
    struct rm_board_policy *board = f->session.board.policies;

    (void)state;
    rm_test_publish_action(&f->session, 1, 0, 0, 0);
    for (uint64_t updates = 0; updates < 8; updates++) {
        rm_test_publish_action(&f->session, 0, updates & 1, updates, 0);
        RM_POKE(&board->updates, updates + 2);
        assert_int_equal(rm_test_turn(&f->duty[0]), 1);
        struct rm_row row = rm_ring_row(rm_session_ring(&f->session, 0, 0), updates);
        assert_int_equal(*row.policy_version, updates);
        assert_int_equal(row.action[0], updates & 1);
    }
    assert_int_equal(RM_PEEK(&board->lag_sum), 2 * 8);
    assert_int_equal(RM_PEEK(&board->lag_count), 8);
    assert_int_equal(RM_PEEK(&board->lag_max), 2);
    close_fixture(f);
}

static void the_limiter_holds_the_actor(void **state)
{
    struct fixture *f =
        open_fixture("\"sample\": {\"batch\": 4, \"min_fill\": 10},"
                     "\"limiter\": {\"updates_per_step\": 0.5, \"slack_updates\": 4},"
                     "\"actor\": {\"count\": 1, \"worlds\": 1}");
    struct rm_limiter *limiter = &f->session.board.policies[1].limiter;
    int turns = 0;

    (void)state;
    rm_test_publish_random(&f->session, 1, 0);
    while (rm_test_turn(&f->duty[0]) > 0 && turns < 1000)
        turns++;
    assert_true(turns >= 10 && turns < 1000);
    /* Only one of the policies is let go: a vector step needs all. */
    rm_limiter_sampled(&f->session.board.policies[0].limiter, 40);
    assert_int_equal(rm_test_turn(&f->duty[0]), 0);
    uint64_t before = rows(f, 0, 0);
    usleep(1000);
    assert_int_equal(rm_test_turn(&f->duty[0]), 0);
    assert_int_equal(rows(f, 0, 0), before);
    assert_int_equal(f->duty[0].clock->waits, RM_WAIT_LIMITER);
    assert_true(RM_PEEK(&f->session.board.policies[1].insert_blocked_ns) >= 1000000);
    rm_limiter_sampled(limiter, 40);
    assert_int_equal(rm_test_turn(&f->duty[0]), 1);
    assert_int_equal(rows(f, 0, 0), before + 1);
    close_fixture(f);
}

/* A row of more lanes than the limiter's bounds have room for must not wait for ever: two rows of
 * it have to be there for an update, whatever the limiter says. */
static void a_wide_row_passes_a_narrow_limiter(void **state)
{
    struct fixture *f =
        open_fixture("\"sample\": {\"batch\": 4, \"min_fill\": 101},"
                     "\"limiter\": {\"updates_per_step\": 1, \"slack_updates\": 50},"
                     "\"policy\": {\"map\": \"shared\"},"
                     "\"actor\": {\"count\": 1, \"worlds\": 50}");

    (void)state;
    rm_test_publish_random(&f->session, 1, 0);
    for (int i = 0; i < 20; i++) {
        while (rm_test_turn(&f->duty[0]) > 0)
            ;
        uint64_t before = rows(f, 0, 0);
        while (rm_limiter_needed(&f->session.board.policies[0].limiter, 4) == 0)
            rm_limiter_sampled(&f->session.board.policies[0].limiter, 4);
        assert_int_equal(rm_test_turn(&f->duty[0]), 1);
        assert_int_equal(rows(f, 0, 0), before + 1);
    }
    close_fixture(f);
}

static void a_learner_is_woken_at_its_threshold(void **state)
{
    struct fixture *f = open_fixture("\"limiter\": {\"updates_per_step\": 0},"
                                     "\"actor\": {\"count\": 1, \"worlds\": 2}");

    (void)state;
    rm_test_publish_action(&f->session, 0, 0, 0, 0);
    rm_test_publish_action(&f->session, 1, 0, 0, 0);
    struct rm_wake learner = sleeper(f, rm_worker_learner(&f->session.objects, 1));
    RM_POKE(&learner.word->threshold, 6);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rm_test_turn(&f->duty[0]), 1);
        assert_int_equal(RM_PEEK(&learner.word->signals), 0);
    }
    assert_int_equal(rm_test_turn(&f->duty[0]), 1);
    assert_int_equal(RM_PEEK(&learner.word->signals), 1);
    assert_true(was_woken(&learner));
    close_fixture(f);
}

/* Learners of one process sleep on one wake, each until a count of its own. */
static void learners_of_one_process_have_thresholds_of_their_own(void **state)
{
    struct fixture *f = open_fixture("\"limiter\": {\"updates_per_step\": 0},"
                                     "\"learner\": {\"processes\": \"one\"},"
                                     "\"actor\": {\"count\": 1, \"worlds\": 2}");

    (void)state;
    rm_test_publish_action(&f->session, 0, 0, 0, 0);
    rm_test_publish_action(&f->session, 1, 0, 0, 0);
    for (uint32_t waits = 0; waits < 2; waits++) {
        struct rm_wake learners = sleeper(f, rm_worker_learner(&f->session.objects, 0));
        for (uint32_t p = 0; p < 2; p++) {
            struct rm_board_worker *slot =
                &f->session.board.workers[rm_worker_learner(&f->session.objects, p)];
            RM_POKE(&slot->wake.threshold,
                    p == waits ? RM_PEEK(&f->session.board.policies[p].limiter.inserted) + 1
                               : UINT64_MAX);
        }
        assert_int_equal(rm_test_turn(&f->duty[0]), 1);
        assert_true(was_woken(&learners));
    }
    close_fixture(f);
}

static void a_rollout_ring_gives_credit(void **state)
{
    struct fixture *f = open_mode("\"limiter\": {\"updates_per_step\": 0},"
                                  "\"ring\": {\"capacity\": 64},"
                                  "\"sample\": {\"batch\": 4, \"min_fill\": 8},"
                                  "\"actor\": {\"count\": 1, \"worlds\": 2}",
                                  RM_RING_ROLLOUT);
    struct rm_ring *ring[2] = {&f->session.rings[0], &f->session.rings[1]};
    int turns = 0;

    (void)state;
    rm_test_publish_random(&f->session, 1, 0);
    while (rm_test_turn(&f->duty[0]) > 0 && turns < 1000)
        turns++;
    assert_true(turns > 4 && turns <= (int)ring[0]->spec.rows);
    uint64_t before[2] = {rm_ring_committed(ring[0]), rm_ring_committed(ring[1])};
    uint64_t steps = RM_PEEK(&f->session.board.policies[1].env_steps);
    rm_ring_consume(ring[0], 3); /* only one of them: nothing may change */
    for (int i = 0; i < 3; i++)
        assert_int_equal(rm_test_turn(&f->duty[0]), ring[1]->spec.rows > before[1] && i == 0);
    rm_ring_consume(ring[0], 10);
    rm_ring_consume(ring[1], 2);
    uint64_t now = rm_ring_committed(ring[1]);
    turns = 0;
    while (rm_test_turn(&f->duty[0]) > 0)
        turns++;
    assert_int_equal(turns, 2);
    assert_int_equal(rm_ring_committed(ring[1]), now + 2);
    assert_true(RM_PEEK(&f->session.board.policies[1].env_steps) >= steps);
    close_fixture(f);
}

static void an_actor_is_done_with_its_share(void **state)
{
    struct fixture *f = open_fixture("\"limiter\": {\"updates_per_step\": 0},"
                                     "\"run\": {\"steps\": 100},"
                                     "\"sample\": {\"batch\": 4, \"min_fill\": 8},"
                                     "\"actor\": {\"count\": 2, \"worlds\": 5}");
    const uint64_t share[2] = {60, 40};

    (void)state;
    rm_test_publish_random(&f->session, 1, 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct rm_wake learner = sleeper(f, rm_worker_learner(&f->session.objects, 0));
        RM_POKE(&learner.word->threshold, UINT64_MAX);
        int rc;
        while ((rc = rm_test_turn(&f->duty[i])) > 0)
            ;
        assert_int_equal(rc, RM_DUTY_DONE);
        uint64_t steps = RM_PEEK(&f->session.board.workers[i].steps);
        assert_true(steps >= share[i] && steps < share[i] + 3);
        assert_int_equal(RM_PEEK(&f->session.board.workers[i].state), RM_WORKER_DONE);
        assert_true(was_woken(&learner));
    }
    close_fixture(f);
}

/* --- lockstep -------------------------------------------------------------------------------- */

static void learners_arrive(struct fixture *f)
{
    for (uint32_t p = 0; p < f->session.plan.policies; p++)
        rm_round_arrive(f->session.board.round, rm_worker_learner(&f->session.objects, p));
}

static void rounds_have_exactly_their_rows(void **state)
{
    struct fixture *f =
        open_fixture("\"mode\": \"lockstep\", \"run\": {\"steps\": 60,"
                     " \"round_steps\": 5}, \"actor\": {\"count\": 2, \"worlds\": 3},"
                     "\"sample\": {\"batch\": 4, \"min_fill\": 8},"
                     "\"limiter\": {\"updates_per_step\": 0.5},"
                     "\"epsilon\": {\"start\": 0, \"end\": 0}");
    struct rm_round *round = f->session.board.round;

    (void)state;
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(rm_test_turn(&f->duty[i]), 0); /* no weights of round 0 yet */
    for (uint32_t p = 0; p < 2; p++)
        rm_test_publish_action(&f->session, p, 1, 0, 0);
    uint64_t last = 0;
    for (uint64_t r = 1; r < 100; r++) {
        assert_int_equal(rm_round_current(round), r);
        /* published while the round goes on: not for this round */
        rm_test_publish_action(&f->session, 0, r & 1, r, r);
        int rc = 0;
        for (uint32_t i = 0; i < 2; i++) {
            int turns = 0;
            while ((rc = rm_test_turn(&f->duty[i])) > 0)
                turns++;
            assert_int_equal(turns, rc == RM_DUTY_DONE ? 0 : 5);
        }
        if (rc == RM_DUTY_DONE) {
            last = r;
            break;
        }
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(rows(f, i, 0), 5 * r);
            for (uint64_t t = 5 * (r - 1); t < 5 * r; t++) {
                struct rm_row row = rm_ring_row(rm_session_ring(&f->session, i, 0), t);
                assert_int_equal(*row.policy_version, r - 1);
                if (!(row.flags[0] & RM_FLAG_LAST))
                    assert_int_equal(row.action[0], r == 1 ? 1 : (r - 1) & 1);
            }
        }
        struct rm_wake actor = sleeper(f, 0);
        learners_arrive(f);
        assert_int_equal(rm_round_current(round), r + 1);
        rm_wake_cancel(&actor);
    }
    /* Ended in the round after the one that reached the budget, both at once. */
    uint64_t steps =
        RM_PEEK(&f->session.board.workers[0].steps) + RM_PEEK(&f->session.board.workers[1].steps);
    assert_true(last > 2 && steps >= 60 && steps < 60 + 5 * 3);
    learners_arrive(f); /* the actors have left: the round goes on without them */
    assert_int_equal(rm_round_current(round), last + 1);
    close_fixture(f);
}

/* The last to arrive wakes the others. */
static void the_last_to_arrive_wakes_all(void **state)
{
    struct fixture *f =
        open_fixture("\"mode\": \"lockstep\", \"run\": {\"steps\": 1000,"
                     " \"round_steps\": 2}, \"sample\": {\"batch\": 4, \"min_fill\":"
                     " 8}, \"limiter\": {\"updates_per_step\": 0.5},"
                     "\"actor\": {\"count\": 1, \"worlds\": 1}");

    (void)state;
    rm_test_publish_random(&f->session, 2, 0);
    learners_arrive(f);
    struct rm_wake learner = sleeper(f, rm_worker_learner(&f->session.objects, 1));
    assert_int_equal(rm_test_turn(&f->duty[0]), 1);
    assert_int_equal(RM_PEEK(&learner.word->signals), 0);
    assert_int_equal(rm_test_turn(&f->duty[0]), 1);
    assert_true(was_woken(&learner));
    close_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_happens_without_weights),
        cmocka_unit_test(new_weights_are_used_at_once),
        cmocka_unit_test(the_limiter_holds_the_actor),
        cmocka_unit_test(a_wide_row_passes_a_narrow_limiter),
        cmocka_unit_test(a_learner_is_woken_at_its_threshold),
        cmocka_unit_test(learners_of_one_process_have_thresholds_of_their_own),
        cmocka_unit_test(a_rollout_ring_gives_credit),
        cmocka_unit_test(an_actor_is_done_with_its_share),
        cmocka_unit_test(rounds_have_exactly_their_rows),
        cmocka_unit_test(the_last_to_arrive_wakes_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
