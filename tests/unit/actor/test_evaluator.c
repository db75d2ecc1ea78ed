/* The evaluator: greedy episodes by request and by interval, with exact results where the world is
 * deterministic. */
#include "actor/evaluator.h"
#include "config/config.h"
#include "shm/atomic.h"
#include "tests/support/acting.h"
#include "tests/support/session.h"

#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct rm_session session;
static struct rm_evaluator *evaluator;
static struct rm_duty duty;

static void open_evaluator(const char *world, const char *evaluation)
{
    struct rm_error error = {""};
    char json[1024];

    snprintf(json, sizeof json,
             "{\"name\": \"evaluator\", \"seed\": 1, \"world\": %s,"
             " \"actor\": {\"count\": 2, \"worlds\": 2}, \"evaluation\": %s,"
             " \"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 8},"
             "  {\"type\": \"tanh\"}]}}",
             world, evaluation);
    assert_int_equal(rm_test_session(&session, json), 0);
    int rc = rm_evaluator_create(&evaluator, &session, &duty, &error);
    if (rc < 0)
        fail_msg("%s", error.text);
}

static void close_evaluator(void)
{
    rm_evaluator_destroy(evaluator);
    rm_session_close(&session);
}

static uint32_t work(void)
{
    uint32_t turns = 0;
    while (rm_test_turn(&duty) > 0)
        turns++;
    return turns;
}

static void request(uint64_t episodes)
{
    RM_POKE(&session.board.run->evaluate_episodes, episodes);
    RM_RAISE(&session.board.run->evaluate_request,
             RM_PEEK(&session.board.run->evaluate_request) + 1);
}

#define CORRIDOR                                                                                   \
    "{\"name\": \"count\", \"options\": {\"agents\": 2, \"phases\": 2, \"length\": 4,"             \
    " \"max_steps\": 10}}"

/* Whether the daemon's bell was rung since the last time. */
static bool rung(void)
{
    struct pollfd bell = {.fd = session.wake_fds[session.objects.workers], .events = POLLIN};
    if (poll(&bell, 1, 0) != 1)
        return false;
    rm_wake_drain(bell.fd);
    return true;
}

static void results_are_exact(void **state)
{
    struct rm_board_run *run;

    (void)state;
    open_evaluator(CORRIDOR, "{\"interval\": 0, \"episodes\": 5, \"worlds\": 3}");
    run = session.board.run;
    assert_int_equal(work(), 0);
    request(0);
    assert_int_equal(work(), 0); /* no weights yet: the request stands */
    rm_test_publish_action(&session, 0, 1, 0, 0);
    rm_test_publish_action(&session, 1, 0, 0, 0);
    rm_test_publish_action(&session, 1, 0, 0, 0);
    assert_false(rung());
    /* two worlds play two episodes, of 10 steps and a last observation each */
    assert_int_equal(work(), 2 * 11);
    assert_int_equal(RM_PEEK(&run->evaluations), 1);
    assert_true(rung()); /* the daemon's bell rang */
    assert_int_equal(RM_PEEK(&run->eval_episodes), 5);
    assert_true(fabs(RM_PEEK(&session.board.agents[0].eval_mean) - (1 - 0.03)) < 1e-6);
    assert_true(fabs(RM_PEEK(&session.board.agents[1].eval_mean) + 0.1) < 1e-6);
    assert_true(fabs(RM_PEEK(&run->eval_score_mean) - (1 - 0.13)) < 1e-6);
    assert_true(RM_PEEK(&session.board.agents[0].eval_stderr) < 1e-12);
    assert_true(RM_PEEK(&run->eval_score_stderr) < 1e-12);
    /* What episodes came to, by agent: one arrived, the other stayed where it was. */
    assert_string_equal(run->figure[0].name, "place");
    assert_string_equal(run->figure[1].word[0], "arrived");
    for (uint32_t a = 0; a < 2; a++) {
        assert_true(RM_PEEK(&session.board.agents[a].eval_length) == 10);
        assert_true(rm_board_figure_evaluated(&session.board, a, 0, 0) == (a == 0 ? 4 : 0));
        assert_true(rm_board_figure_evaluated(&session.board, a, 1, 0) == (a == 0));
        assert_true(rm_board_figure_evaluated(&session.board, a, 1, 1) == (a == 1));
    }
    for (uint32_t p = 0; p < 2; p++) {
        assert_int_equal(RM_PEEK(&session.board.policies[p].eval_seq), 1);
        assert_int_equal(RM_PEEK(&session.board.policies[p].eval_version), p + 1);
    }
    /* Training is not touched by it. */
    assert_int_equal(RM_PEEK(&session.board.policies[0].env_steps), 0);
    assert_int_equal(RM_PEEK(&run->scores.episodes), 0);
    close_evaluator();
}

static void the_latest_weights_count(void **state)
{
    (void)state;
    open_evaluator(CORRIDOR, "{\"interval\": 0, \"episodes\": 2, \"worlds\": 1}");
    for (uint32_t i = 0; i < 4; i++) {
        rm_test_publish_action(&session, 0, i & 1, 0, 0);
        rm_test_publish_action(&session, 1, i & 1, 0, 0);
        request(i + 1);
        /* weights that come while it plays are for the next one */
        assert_true(rm_test_turn(&duty) > 0);
        rm_test_publish_action(&session, 0, !(i & 1), 0, 0);
        work();
        assert_int_equal(RM_PEEK(&session.board.run->evaluations), i + 1);
        assert_int_equal(RM_PEEK(&session.board.run->eval_episodes), i + 1);
        double expected = i & 1 ? 0.97 : -0.1;
        assert_true(fabs(RM_PEEK(&session.board.agents[0].eval_mean) - expected) < 1e-6);
    }
    close_evaluator();
}

/* The same world with other options: a shorter corridor's time runs out sooner. */
static void evaluations_have_options_of_their_own(void **state)
{
    (void)state;
    open_evaluator(CORRIDOR, "{\"interval\": 0, \"episodes\": 2, \"worlds\": 1,"
                             " \"options\": {\"max_steps\": 3}}");
    rm_test_publish_action(&session, 0, 1, 0, 0);
    rm_test_publish_action(&session, 1, 1, 0, 0);
    request(0);
    work();
    assert_true(RM_PEEK(&session.board.agents[0].eval_length) == 3);
    assert_true(rm_board_figure_evaluated(&session.board, 0, 0, 0) == 3);
    assert_true(rm_board_figure_evaluated(&session.board, 0, 1, 1) == 1);
    close_evaluator();
}

/* By its number, whoever asked knows the result that is theirs. */
static void a_request_is_answered_by_what_begins_after_it(void **state)
{
    (void)state;
    open_evaluator(CORRIDOR, "{\"interval\": 0, \"episodes\": 2, \"worlds\": 1}");
    struct rm_board_run *run = session.board.run;
    rm_test_publish_action(&session, 0, 1, 0, 0);
    rm_test_publish_action(&session, 1, 1, 0, 0);
    request(1);
    assert_true(rm_test_turn(&duty) > 0);
    request(3); /* while the first is played */
    while (RM_PEEK(&run->evaluations) == 0)
        assert_true(rm_test_turn(&duty) > 0);
    assert_int_equal(RM_PEEK(&run->eval_request), 1);
    assert_int_equal(RM_PEEK(&run->eval_episodes), 1);
    work();
    assert_int_equal(RM_PEEK(&run->evaluations), 2);
    assert_int_equal(RM_PEEK(&run->eval_request), 2);
    assert_int_equal(RM_PEEK(&run->eval_episodes), 3);
    close_evaluator();
}

static void steps_of(uint64_t first, uint64_t second)
{
    RM_POKE(&session.board.workers[0].steps, first);
    RM_POKE(&session.board.workers[1].steps, second);
}

static void it_runs_by_interval(void **state)
{
    struct rm_wake_word *word;

    (void)state;
    open_evaluator(CORRIDOR, "{\"interval\": 100, \"episodes\": 1, \"worlds\": 1}");
    word = duty.wake.word;
    rm_test_publish_random(&session, 1, 0);
    assert_int_equal(RM_PEEK(&word->threshold), 100); /* where actors wake it */
    steps_of(50, 49);
    assert_int_equal(work(), 0);
    steps_of(50, 50);
    assert_true(work() > 0);
    assert_int_equal(work(), 0);
    assert_int_equal(RM_PEEK(&word->threshold), 200);
    steps_of(350, 100); /* what was missed is not made up for */
    assert_true(work() > 0);
    assert_int_equal(RM_PEEK(&session.board.run->evaluations), 2);
    assert_int_equal(RM_PEEK(&word->threshold), 500);
    /* changed while running */
    RM_POKE(&session.board.run->settings[RM_HOT_EVALUATION_INTERVAL], 0);
    RM_RAISE(&session.board.run->settings_version, 2);
    steps_of(1000, 1000);
    assert_int_equal(work(), 0);
    assert_int_equal(RM_PEEK(&word->threshold), UINT64_MAX);
    close_evaluator();
}

/* One evaluator repeats itself exactly: it plays the same episodes each time. */
static void it_repeats_itself(void **state)
{
    double mean[2], error[2];

    (void)state;
    open_evaluator("{\"name\": \"cartpole\"}",
                   "{\"interval\": 0, \"episodes\": 40, \"worlds\": 7}");
    rm_test_publish_random(&session, 3, 0);
    for (int i = 0; i < 2; i++) {
        request(0);
        work();
        mean[i] = RM_PEEK(&session.board.run->eval_score_mean);
        error[i] = RM_PEEK(&session.board.run->eval_score_stderr);
        assert_int_equal(RM_PEEK(&session.board.run->eval_episodes), 40);
    }
    assert_true(mean[0] == mean[1] && error[0] == error[1]);
    assert_true(mean[0] > 5 && error[0] > 0);
    close_evaluator();
}

static void broken_worlds_are_named(void **state)
{
    struct rm_error error = {""};
    int rc;

    (void)state;
    open_evaluator("{\"name\": \"count\", \"options\": {\"nan_step\": 2, \"fault_world\": 1}}",
                   "{\"interval\": 0, \"episodes\": 2, \"worlds\": 2}");
    rm_test_publish_random(&session, 1, 0);
    request(0);
    while ((rc = duty.do_work(duty.self, &error)) > 0)
        ;
    assert_true(rc < 0);
    assert_non_null(strstr(error.text, "evaluation"));
    assert_non_null(strstr(error.text, "world 1 "));
    close_evaluator();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_exact),
        cmocka_unit_test(the_latest_weights_count),
        cmocka_unit_test(evaluations_have_options_of_their_own),
        cmocka_unit_test(a_request_is_answered_by_what_begins_after_it),
        cmocka_unit_test(it_runs_by_interval),
        cmocka_unit_test(it_repeats_itself),
        cmocka_unit_test(broken_worlds_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
