/* Several observations, each with layers of its own: of `pairing`, where the board alone is worth
 * at most two thirds of the score and the hand alone a third, over several seeds. Whole: actors,
 * rings, learner, weights and evaluator, in one process. */
#include "actor/actor.h"
#include "actor/evaluator.h"
#include "learner/learner.h"
#include "shm/atomic.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <stdio.h>

#define BOARD                                                                                      \
    "\"board\": [{\"type\": \"conv2d\", \"units\": 8, \"kernel\": 2}, {\"type\": \"relu\"}]"
#define HAND                                                                                       \
    "\"hand\": [{\"type\": \"embedding\", \"units\": 16}, {\"type\": \"linear\", \"units\": 16},"  \
    "           {\"type\": \"relu\"}, {\"type\": \"mean_pool\"}]"
#define HIDDEN "\"layers\": [{\"type\": \"linear\", \"units\": 64}, {\"type\": \"tanh\"}]"

static double greedy_score(unsigned seed, const char *algorithm, const char *network)
{
    static struct rm_session session;
    struct rm_error error = {""};
    struct rm_actor *actor = NULL;
    struct rm_learner *learner = NULL;
    struct rm_evaluator *evaluator = NULL;
    struct rm_duty duty[2] = {{0}}, evaluation = {0};
    char json[2048];
    snprintf(json, sizeof json,
             "{\"name\": \"learn-pairing\", \"seed\": %u, \"mode\": \"sequential\","
             " \"run\": {\"steps\": 60000}, \"world\": {\"name\": \"pairing\"},"
             " \"actor\": {\"count\": 1, \"worlds\": 16},"
             " \"sample\": {\"batch\": 64, \"gamma\": 0.5, \"min_fill\": 1000},"
             " \"limiter\": {\"updates_per_step\": 0.05},"
             " \"epsilon\": {\"start\": 1, \"end\": 0.05, \"span\": 30000},"
             " \"algorithm\": {\"name\": \"%s\"}, \"network\": {%s},"
             " \"optimizer\": {\"learning_rate\": 2e-3}, \"evaluation\": {\"worlds\": 4}}",
             seed, algorithm, network);
    assert_int_equal(rm_test_session(&session, json), 0);
    if (rm_learner_create(&learner, &session, 0, "", &duty[1], &error) ||
        rm_actor_create(&actor, &session, 0, &duty[0], &error) ||
        rm_evaluator_create(&evaluator, &session, &evaluation, &error) ||
        rm_duty_run_in_turn(duty, 2, &error) != RM_EXIT_OK)
        fail_msg("%s", error.text);
    struct rm_board_run *run = session.board.run;
    RM_POKE(&run->evaluate_episodes, 40);
    RM_RAISE(&run->evaluate_request, 1);
    while (RM_SEE(&run->evaluations) == 0)
        if (!evaluation.do_work || evaluation.do_work(evaluation.self, &error) < 0)
            fail_msg("%s", error.text);
    const double score = RM_PEEK(&run->eval_score_mean);
    rm_evaluator_destroy(evaluator);
    rm_actor_destroy(actor);
    rm_learner_destroy(learner);
    rm_session_close(&session);
    return score;
}

static void expect(double least, const char *algorithm, const char *network)
{
    for (unsigned seed = 1; seed <= 5; seed++) {
        const double score = greedy_score(seed, algorithm, network);
        if (score < least)
            fail_msg("%s, seed %u: %g of 16; either observation alone gives at most 11", algorithm,
                     seed, score);
    }
}

static void both_observations_are_learned_from(void **state)
{
    (void)state;
    expect(14.4, "dqn", "\"inputs\": {" BOARD ", " HAND ", \"left\": []}, " HIDDEN);
}

/* Without layers of their own: the numbers of all, side by side. */
static void numbers_side_by_side_do_too(void **state)
{
    (void)state;
    expect(12.5, "dqn",
           "\"layers\": [{\"type\": \"linear\", \"units\": 128}, {\"type\": \"relu\"},"
           " {\"type\": \"linear\", \"units\": 128}, {\"type\": \"relu\"}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_observations_are_learned_from),
        cmocka_unit_test(numbers_side_by_side_do_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
