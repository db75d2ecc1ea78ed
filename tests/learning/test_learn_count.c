/* Does it learn at all? Every algorithm solves the corridor of the world `count`: its greedy policy
 * walks straight to the end. Whole: actors, rings, learner, weights and evaluator, in one process.
 */
#include "actor/actor.h"
#include "actor/evaluator.h"
#include "learner/learner.h"
#include "shm/atomic.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *priorities = "uniform";

/* algorithm: its name and keys; layers: those of the network, with what follows them in it; more:
 * options of the world. */
static double greedy_score(const char *algorithm, const char *layers, const char *more)
{
    static struct rm_session session;
    struct rm_error error = {""};
    struct rm_actor *actors[2] = {NULL, NULL};
    struct rm_learner *learner = NULL;
    struct rm_evaluator *evaluator = NULL;
    struct rm_duty duty[3] = {{0}}, evaluation = {0};
    char json[2048];
    snprintf(json, sizeof json,
             "{\"name\": \"learn-count\", \"seed\": 2, \"mode\": \"sequential\","
             " \"run\": {\"steps\": 6000, \"round_steps\": 8},"
             " \"world\": {\"name\": \"count\", \"options\": {\"length\": 8%s}},"
             " \"actor\": {\"count\": 2, \"worlds\": 4, \"quantiles\": 8},"
             " \"epsilon\": {\"start\": 1, \"end\": 0.1, \"span\": 3000},"
             " \"ring\": {\"capacity\": 4096},"
             " \"rollout\": {\"steps\": 16},"
             " \"sample\": {\"batch\": 32, \"n_step\": 2, \"gamma\": 0.95, \"min_fill\": 128,"
             "              \"sequence\": 6, \"burn_in\": 2, \"period\": 3},"
             " \"limiter\": {\"updates_per_step\": 0.25},"
             " \"priority\": {\"kind\": \"%s\"},"
             " \"algorithm\": {\"name\": \"%s, \"quantiles\": 8, \"target_quantiles\": 8,"
             "                 \"target\": {\"update\": \"soft\", \"tau\": 0.02}},"
             " \"network\": {\"layers\": [%s},"
             " \"optimizer\": {\"learning_rate\": 2e-3, \"grad_clip\": 10},"
             " \"publish\": {\"interval\": 4},"
             " \"evaluation\": {\"worlds\": 2, \"quantiles\": 8}}",
             more, priorities, algorithm, layers);
    assert_int_equal(rm_test_session(&session, json), 0);
    if (rm_learner_create(&learner, &session, 0, "", &duty[2], &error) ||
        rm_actor_create(&actors[0], &session, 0, &duty[0], &error) ||
        rm_actor_create(&actors[1], &session, 1, &duty[1], &error) ||
        rm_evaluator_create(&evaluator, &session, &evaluation, &error)) {
        fail_msg("%s", error.text);
        return NAN;
    }
    if (rm_duty_run_in_turn(duty, 3, &error) != RM_EXIT_OK)
        fail_msg("%s", error.text);
    struct rm_board_run *run = session.board.run;
    RM_POKE(&run->evaluate_episodes, 4);
    RM_RAISE(&run->evaluate_request, 1);
    while (RM_SEE(&run->evaluations) == 0)
        if (evaluation.do_work(evaluation.self, &error) < 0)
            fail_msg("%s", error.text);
    const double score = RM_PEEK(&run->eval_score_mean);
    rm_evaluator_destroy(evaluator);
    rm_actor_destroy(actors[0]);
    rm_actor_destroy(actors[1]);
    rm_learner_destroy(learner);
    rm_session_close(&session);
    return score;
}

#define LAYERS "{\"type\": \"linear\", \"units\": 32}, {\"type\": \"relu\"}"
#define HIDDEN LAYERS "]"

/* Best: 1 at the end of eight moves, .01 off for each of the seven before. */
static const double best = 1 - 0.07;

static void dqn_walks_straight(void **state)
{
    (void)state;
    assert_true(fabs(greedy_score("dqn\"", HIDDEN, "") - best) < 1e-5);
}

static void qr_dqn_walks_straight(void **state)
{
    (void)state;
    assert_true(fabs(greedy_score("qr-dqn\"", HIDDEN, "") - best) < 1e-5);
}

static void iqn_walks_straight(void **state)
{
    (void)state;
    const char *layers = LAYERS ", {\"type\": \"cosine_embedding\", \"cosines\": 16}]";
    assert_true(fabs(greedy_score("iqn\"", layers, "") - best) < 1e-5);
}

static void masks_are_heeded(void **state)
{
    (void)state;
    assert_true(fabs(greedy_score("dqn\"", HIDDEN, ", \"mask\": 1") - best) < 1e-5);
}

/* Double, dueling, noisy, several steps, quantiles, priorities. */
static void rainbow_walks_straight(void **state)
{
    (void)state;
    priorities = "proportional";
    assert_true(fabs(greedy_score("qr-dqn\"",
                                  LAYERS ", {\"type\": \"noisy_linear\", \"units\": 32},"
                                         " {\"type\": \"relu\"}],"
                                         " \"head\": {\"dueling\": true, \"noisy\": true}",
                                  "") -
                     best) < 1e-5);
    priorities = "uniform";
}

static const char sac[] = "sac\", \"temperature\": 0.05, \"target_entropy_ratio\": 0.3";

static void sac_walks_straight(void **state)
{
    (void)state;
    assert_true(fabs(greedy_score(sac, HIDDEN, "") - best) < 1e-5);
    priorities = "proportional";
    assert_true(fabs(greedy_score(sac, HIDDEN, ", \"mask\": 1") - best) < 1e-5);
    priorities = "uniform";
}

static void r2d2_walks_straight(void **state)
{
    (void)state;
    const char *gru = LAYERS ", {\"type\": \"gru\", \"units\": 16}]";
    assert_true(fabs(greedy_score("r2d2\"", gru, "") - best) < 1e-5);
    priorities = "proportional";
    assert_true(fabs(greedy_score("r2d2\"", gru, ", \"mask\": 1") - best) < 1e-5);
    priorities = "uniform";
}

/* Their policy answers greedily here, too: one that explores still may have learned. */
static void policy_gradients_walk_straight(void **state)
{
    (void)state;
    static const char *const algorithms[] = {
        "ppo\", \"entropy_coefficient\": 0.01",
        "appo\", \"entropy_coefficient\": 0.01",
        "vtrace\", \"entropy_coefficient\": 0.01, \"epochs\": 1, \"minibatches\": 1",
    };
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++) {
        assert_true(fabs(greedy_score(algorithms[i], HIDDEN, "") - best) < 1e-5);
        assert_true(fabs(greedy_score(algorithms[i], HIDDEN, ", \"mask\": 1") - best) < 1e-5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dqn_walks_straight),     cmocka_unit_test(qr_dqn_walks_straight),
        cmocka_unit_test(iqn_walks_straight),     cmocka_unit_test(masks_are_heeded),
        cmocka_unit_test(rainbow_walks_straight), cmocka_unit_test(sac_walks_straight),
        cmocka_unit_test(r2d2_walks_straight),    cmocka_unit_test(policy_gradients_walk_straight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
