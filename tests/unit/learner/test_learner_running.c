/* What runs along with learning from rollouts - PopArt, scaled rewards, normalised observations,
 * looking after finite numbers - in a learner with its actor, and in its successor. */
#include "actor/actor.h"
#include "config/config.h"
#include "learner/learner.h"
#include "learner/net/net.h"
#include "shm/atomic.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run {
    struct rm_session session;
    struct rm_actor *actor;
    struct rm_learner *learner;
    struct rm_duty duty[2];
    struct rm_net *net;
    float *params; /* of the last look */
    struct rm_weights_stamp stamp;
};

static void start(struct run *r, const char *algorithm, const char *more)
{
    struct rm_error error = {""};
    char json[2048];
    memset(r, 0, sizeof *r);
    snprintf(json, sizeof json,
             "{\"name\": \"test\", \"seed\": 5, \"mode\": \"sequential\", \"run\": {\"steps\": 0},"
             " \"world\": {\"name\": \"cartpole\"}, \"actor\": {\"worlds\": 4},"
             " \"rollout\": {\"steps\": 32}, \"sample\": {\"gamma\": 0.9},"
             " \"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 16},"
             "                            {\"type\": \"tanh\"}], \"normalize_observations\": true},"
             " \"optimizer\": {\"learning_rate\": 1e-3},"
             " \"algorithm\": {\"name\": \"%s\", \"value_head\": \"popart\","
             "                 \"normalize_rewards\": true} %s}",
             algorithm, more);
    assert_int_equal(rm_test_session(&r->session, json), 0);
    if (rm_actor_create(&r->actor, &r->session, 0, &r->duty[0], &error) ||
        rm_learner_create(&r->learner, &r->session, 0, "", &r->duty[1], &error) ||
        rm_net_compile(&r->net, &r->session.experiment.network, &r->session.plan.policy[0].shape,
                       &error))
        fail_msg("%s", error.text);
    r->params = calloc(r->session.weights[0].count, sizeof *r->params);
}

static void stop(struct run *r)
{
    rm_actor_destroy(r->actor);
    rm_learner_destroy(r->learner);
    rm_net_destroy(r->net);
    free(r->params);
    rm_session_close(&r->session);
}

static struct rm_board_policy *board(struct run *r)
{
    return &r->session.board.policies[0];
}

static void turn(struct run *r)
{
    for (int d = 0; d < 2; d++)
        assert_true(rm_test_turn(&r->duty[d]) >= 0);
}

static void until_rollout(struct run *r, uint64_t number)
{
    for (int i = 0; RM_PEEK(&board(r)->rollouts) < number; i++) {
        assert_true(i < 100000);
        turn(r);
    }
}

static void look(struct run *r)
{
    rm_weights_read(&r->session.weights[0], r->params, r->session.weights[0].count, &r->stamp,
                    NULL);
}

/* Actors copy the leading act_count floats: the normaliser must be among them. */
static void actors_are_given_the_numbers(void **state)
{
    struct run r;
    (void)state;
    start(&r, "ppo", "");
    const size_t mean = rm_net_input_mean_at(r.net), scale = rm_net_input_scale_at(r.net);
    const uint32_t inputs = rm_net_inputs(r.net);
    assert_true(mean + inputs <= r.session.weights[0].act_count);
    assert_true(scale + inputs <= r.session.weights[0].act_count);
    look(&r);
    for (uint32_t i = 0; i < inputs; i++)
        assert_true(r.params[mean + i] == 0 && r.params[scale + i] == 1);
    until_rollout(&r, 40);
    look(&r);
    for (uint32_t i = 0; i < inputs; i++) {
        assert_true(fabsf(r.params[mean + i]) < 1 && r.params[mean + i] != 0);
        assert_true(r.params[scale + i] > 0.3f && r.params[scale + i] < 100);
    }
    /* An angle is a smaller number than a velocity. */
    assert_true(r.params[scale + 2] > r.params[scale + 1]);
    stop(&r);
}

/* CartPole pays 1 a step: with gamma 0.9 the discounted return lies between 1 and 10, and so do
 * values before rewards are scaled. */
static void the_board_tells(void **state)
{
    struct run r;
    (void)state;
    start(&r, "ppo", "");
    until_rollout(&r, 30);
    const double divisor = RM_PEEK(&board(&r)->reward_scale);
    assert_true(divisor > 1 && divisor < 5);
    assert_true(RM_PEEK(&board(&r)->value_mean) > 0.5 &&
                RM_PEEK(&board(&r)->value_mean) < 10 / divisor * 1.2);
    assert_true(RM_PEEK(&board(&r)->value_deviation) > 0.01 &&
                RM_PEEK(&board(&r)->value_deviation) < 10 / divisor);
    stop(&r);
}

/* The first rollout of a fresh learner takes a whole step towards its returns, the 31st a
 * thirtieth: a successor that began with zeros would have another mean. */
static void a_successor_goes_on(void **state)
{
    struct rm_error error = {""};
    struct run r;
    (void)state;
    start(&r, "ppo", "");
    until_rollout(&r, 30);
    look(&r);
    const double mean = RM_PEEK(&board(&r)->value_mean), scale = RM_PEEK(&board(&r)->reward_scale);
    const float input_scale = r.params[rm_net_input_scale_at(r.net)];
    rm_learner_destroy(r.learner);
    if (rm_learner_create(&r.learner, &r.session, 0, "", &r.duty[1], &error))
        fail_msg("%s", error.text);
    until_rollout(&r, 31);
    look(&r);
    assert_true(fabs(RM_PEEK(&board(&r)->value_mean) - mean) < 0.1 * fabs(mean));
    assert_true(fabs(RM_PEEK(&board(&r)->reward_scale) / scale - 1) < 0.3);
    assert_true(fabsf(r.params[rm_net_input_scale_at(r.net)] / input_scale - 1) < 0.2f);
    stop(&r);
}

static void set_rate(struct run *r, double rate)
{
    r->session.board.run->settings[RM_HOT_LEARNING_RATE] = rate;
    RM_RAISE(&r->session.board.run->settings_version,
             RM_PEEK(&r->session.board.run->settings_version) + 1);
}

static void sane(const struct run *r)
{
    for (size_t i = 0; i < r->session.weights[0].count; i++)
        assert_true(fabsf(r->params[i]) < 1e3f);
}

static void goes_back(const char *algorithm, const char *more)
{
    struct run r;
    start(&r, algorithm, more);
    until_rollout(&r, 20);
    set_rate(&r, 1e38);
    uint64_t rollouts = 0;
    for (int i = 0; RM_PEEK(&board(&r)->rollbacks) == 0; i++) {
        assert_true(i < 100000);
        rollouts = RM_PEEK(&board(&r)->rollouts);
        turn(&r);
        look(&r);
        sane(&r);
    }
    /* With it ended the rollout, whose targets were made for what is no more. */
    assert_int_equal(RM_PEEK(&board(&r)->rollouts), rollouts + 1);
    set_rate(&r, 1e-3);
    const uint64_t skipped = RM_PEEK(&board(&r)->updates_skipped);
    assert_int_equal(skipped, 3);
    until_rollout(&r, RM_PEEK(&board(&r)->rollouts) + 20);
    assert_int_equal(RM_PEEK(&board(&r)->updates_skipped), skipped);
    look(&r);
    sane(&r);
    stop(&r);
}

static void updates_that_are_not_finite_are_undone(void **state)
{
    (void)state;
    goes_back("ppo", ", \"debug\": {\"finite_patience\": 3}");
    goes_back("ppo", ", \"debug\": {\"finite_patience\": 3, \"check_finite\": \"always\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actors_are_given_the_numbers),
        cmocka_unit_test(the_board_tells),
        cmocka_unit_test(a_successor_goes_on),
        cmocka_unit_test(updates_that_are_not_finite_are_undone),
    };
    return cmocka_run_group_tests_name("learning from rollouts", tests, NULL, NULL);
}
