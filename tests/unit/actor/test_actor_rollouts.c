/* Actors of synchronous rollouts: which weights they answer with, when they wait, whom they wake,
 * and when they are done. Actors by distribution: what they draw. */
#include "actor/actor.h"
#include "actor/evaluator.h"
#include "learner/net/categorical.h"
#include "shm/atomic.h"
#include "shm/layout.h"
#include "tests/support/acting.h"
#include "tests/support/session.h"

#include <errno.h>
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
    struct rm_duty duty[3];
};

static void start(struct fixture *f, uint32_t index)
{
    struct rm_error error = {""};
    if (rm_actor_create(&f->actor[index], &f->session, index, &f->duty[index], &error) < 0)
        fail_msg("%s", error.text);
}

/* world: its options; more: further settings, after a comma. */
static struct fixture *open_fixture(const char *world, const char *more)
{
    struct fixture *f = calloc(1, sizeof *f);
    char json[2048];
    snprintf(json, sizeof json,
             "{\"name\": \"rollouts\", \"seed\": 1, \"algorithm\": {\"name\": \"ppo\"},"
             " \"world\": {\"name\": \"count\", \"options\": {%s}},"
             " \"network\": {\"policy_gain\": 1, \"init\": \"orthogonal\","
             " \"layers\": [{\"type\": \"linear\", \"units\": 4}]} %s}",
             world, more);
    assert_int_equal(rm_test_session(&f->session, json), 0);
    for (uint32_t i = 0; i < f->session.objects.actors; i++)
        start(f, i);
    return f;
}

static void close_fixture(struct fixture *f)
{
    for (uint32_t i = 0; i < f->session.objects.actors; i++)
        rm_actor_destroy(f->actor[i]);
    rm_session_close(&f->session);
    free(f);
}

static struct rm_ring *ring(struct fixture *f, uint32_t actor)
{
    return rm_session_ring(&f->session, actor, 0);
}

static uint64_t rows(struct fixture *f, uint32_t actor)
{
    return rm_ring_committed(ring(f, actor)) - ring(f, actor)->spec.first_index;
}

/* The next version, `updates` of which say which one it is; the learner has had `env_steps`. */
static void publish(struct fixture *f, uint64_t updates, uint64_t env_steps)
{
    for (uint32_t p = 0; p < f->session.plan.policies; p++) {
        struct rm_net *net = rm_test_net(&f->session.experiment, &f->session.plan.policy[p]);
        float *params = calloc(rm_net_param_count(net), sizeof *params);
        rm_net_init(net, params, rm_rng_at(7, RM_STREAM_INIT, p, updates));
        rm_weights_publish(&f->session.weights[p], params,
                           (struct rm_weights_stamp){.updates = updates, .env_steps = env_steps});
        free(params);
        rm_net_destroy(net);
    }
}

/* Turns until the actor waits or is done. Returns the last result. */
static int go(struct fixture *f, uint32_t actor)
{
    int rc, turns = 0;
    while ((rc = rm_test_turn(&f->duty[actor])) > 0 && turns < 1000)
        turns++;
    assert_true(turns < 1000);
    return rc;
}

/* Which updates the weights had that answered row `i`. */
static uint64_t weights_of(struct fixture *f, uint64_t i)
{
    return *rm_ring_row(ring(f, 0), ring(f, 0)->spec.first_index + i).policy_version;
}

#define SETTINGS                                                                                   \
    ", \"rollout\": {\"steps\": 8, \"max_policy_lag\": %d}, \"mode\": \"%s\","                     \
    " \"actor\": {\"count\": 1, \"worlds\": 3}, \"run\": {\"steps\": %d}"

static struct fixture *open_mode(const char *mode, int lag, int steps)
{
    char more[256];
    snprintf(more, sizeof more, SETTINGS, lag, mode, steps);
    return open_fixture("\"length\": 4, \"max_steps\": 9", more);
}

static const char *const modes[] = {"free", "lockstep", "sequential"};

/* What arrived first is there for the learner before there are weights. */
static void the_first_row_is_offered(void **state)
{
    struct fixture *f = open_mode("free", 0, 0);
    (void)state;
    struct rm_wake learner = rm_session_wake(&f->session, 1);
    assert_int_equal(rm_ring_offered(ring(f, 0)), ring(f, 0)->spec.first_index);
    assert_int_equal(go(f, 0), 0);
    assert_int_equal(rm_ring_offered(ring(f, 0)), ring(f, 0)->spec.first_index + 1);
    assert_int_equal(rows(f, 0), 0);
    const struct rm_row row = rm_ring_row(ring(f, 0), ring(f, 0)->spec.first_index);
    for (int w = 0; w < 3; w++)
        assert_int_equal(row.flags[w], RM_FLAG_FIRST);
    assert_int_equal(RM_PEEK(&learner.word->signals), 0); /* it did not sleep */
    close_fixture(f);
}

/* Every rollout is answered with the weights after the one before it, and no row beyond it. */
static void a_rollout_waits_for_its_weights(void **state)
{
    (void)state;
    for (int m = 0; m < 3; m++) {
        struct fixture *f = open_mode(modes[m], 0, 0);
        for (uint64_t r = 0; r < 5; r++) {
            assert_int_equal(go(f, 0), 0);
            assert_int_equal(rows(f, 0), r * T);
            assert_int_equal(rm_ring_offered(ring(f, 0)) - ring(f, 0)->spec.first_index, r * T + 1);
            publish(f, 10 * r, 0);
            assert_int_equal(go(f, 0), 0);
            assert_int_equal(rows(f, 0), (r + 1) * T);
            for (uint64_t i = 0; i < T; i++)
                assert_int_equal(weights_of(f, r * T + i), 10 * r);
            rm_ring_consume(ring(f, 0), ring(f, 0)->spec.first_index + (r + 1) * T);
        }
        close_fixture(f);
    }
}

/* One rollout ahead: in lockstep and sequential mode with exactly the version before, in free mode
 * with the newest at the rollout's start. */
static void one_rollout_ahead(void **state)
{
    (void)state;
    for (int m = 0; m < 3; m++) {
        struct fixture *f = open_mode(modes[m], 1, 0);
        publish(f, 0, 0);
        assert_int_equal(go(f, 0), 0);
        assert_int_equal(rows(f, 0), 2 * T);
        for (uint64_t i = 0; i < 2 * T; i++)
            assert_int_equal(weights_of(f, i), 0);
        rm_ring_consume(ring(f, 0), ring(f, 0)->spec.first_index + T);
        publish(f, 10, 0); /* version 2: rollout 2 may be made */
        for (int i = 0; i < 3; i++)
            assert_int_equal(rm_test_turn(&f->duty[0]), 1);
        publish(f, 20, 0); /* version 3, in its middle */
        for (int i = 0; i < T - 3; i++)
            assert_int_equal(rm_test_turn(&f->duty[0]), 1);
        for (uint64_t i = 2 * T; i < 3 * T; i++)
            assert_int_equal(weights_of(f, i), 10);
        rm_ring_consume(ring(f, 0), ring(f, 0)->spec.first_index + 2 * T);
        publish(f, 30, 0); /* version 4: rollout 3 asks for version 3 */
        assert_int_equal(rm_test_turn(&f->duty[0]), 1);
        assert_int_equal(weights_of(f, 3 * T), m == 0 ? 30 : 20);
        close_fixture(f);
    }
}

/* The version that the next rollout asks for was made of enough steps. */
static void the_end_of_the_budget(void **state)
{
    (void)state;
    for (int m = 0; m < 3; m++)
        for (int lag = 0; lag < 2; lag++) {
            struct fixture *f = open_mode(modes[m], lag, 40);
            publish(f, 0, 0);
            for (int k = 1; k < 4; k++) {
                assert_int_equal(go(f, 0), 0);
                assert_int_equal(rows(f, 0), (k + lag) * T);
                rm_ring_consume(ring(f, 0), ring(f, 0)->spec.first_index + k * T);
                publish(f, 10 * k, k < 3 ? 20 * k - 1 : 40);
            }
            assert_int_equal(go(f, 0), RM_DUTY_DONE);
            assert_int_equal(rows(f, 0), (3 + lag) * T);
            assert_int_equal(RM_PEEK(&f->session.board.workers[0].state), RM_WORKER_DONE);
            close_fixture(f);
        }
}

/* A learner that sleeps is woken for a whole rollout and not before. */
static void a_learner_is_woken_for_a_rollout(void **state)
{
    struct fixture *f = open_mode("free", 0, 0);
    (void)state;
    publish(f, 0, 0);
    assert_int_equal(rm_test_turn(&f->duty[0]), 1); /* its beginning wakes, too */
    struct rm_wake learner = rm_session_wake(&f->session, 1);
    rm_wake_prepare(&learner);
    for (int i = 1; i < T; i++) {
        assert_int_equal(RM_PEEK(&learner.word->signals), 0);
        assert_int_equal(rm_test_turn(&f->duty[0]), 1);
    }
    assert_int_equal(RM_PEEK(&learner.word->signals), 1);
    close_fixture(f);
}

/* A successor makes its predecessor's rollout to the end, as another writer. */
static void a_successor_goes_on_in_the_rollout(void **state)
{
    struct fixture *f = open_mode("lockstep", 0, 0);
    (void)state;
    publish(f, 0, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rm_test_turn(&f->duty[0]), 1);
    rm_actor_destroy(f->actor[0]);
    start(f, 0);
    assert_int_equal(rm_ring_offered(ring(f, 0)), ring(f, 0)->spec.first_index + 3);
    assert_int_equal(go(f, 0), 0);
    assert_int_equal(rows(f, 0), T);
    for (uint64_t i = 0; i < T; i++) {
        const struct rm_row row = rm_ring_row(ring(f, 0), ring(f, 0)->spec.first_index + i);
        assert_int_equal(*row.generation, i < 3 ? 1 : 2);
        assert_int_equal(row.flags[0] & RM_FLAG_FIRST, i == 0 || i == 3);
    }
    close_fixture(f);
}

/* What arrives in worlds of several phases is complete only after others have answered. */
static void rows_of_several_phases_are_not_offered(void **state)
{
    struct fixture *f =
        open_fixture("\"agents\": 2, \"phases\": 2, \"length\": 4",
                     ", \"rollout\": {\"steps\": 8}, \"policy\": {\"map\": \"shared\"}");
    (void)state;
    publish(f, 0, 0);
    assert_int_equal(go(f, 0), 0);
    assert_int_equal(rows(f, 0), T);
    assert_int_equal(rm_ring_offered(ring(f, 0)), ring(f, 0)->spec.first_index);
    close_fixture(f);
}

/* There a rollout of one step has nothing to learn from. */
static void one_step_of_several_phases_is_refused(void **state)
{
    struct rm_session session;
    (void)state;
    assert_int_equal(rm_test_session(&session, "{\"algorithm\": {\"name\": \"ppo\"},"
                                               " \"rollout\": {\"steps\": 1}, \"world\": {\"name\":"
                                               " \"count\", \"options\": {\"phases\": 2,"
                                               " \"agents\": 2}}}"),
                     -EINVAL);
}

/* --- draws ----------------------------------------------------------------------------------- */

/* Every answer is legal and its log-probability that of the network's logits; answers of last
 * observations are 0; several choices are drawn apart. */
static void answers_and_their_probabilities(void **state)
{
    struct fixture *f = open_fixture("\"mask\": 1, \"choices\": 3, \"length\": 3, \"max_steps\": 5",
                                     ", \"rollout\": {\"steps\": 64}, \"actor\": {\"worlds\": 7}");
    struct rm_policy_plan *plan = &f->session.plan.policy[0];
    struct rm_backend *backend;
    struct rm_net_workspace *space;
    struct rm_error error = {""};
    uint32_t ended = 0, taken[3][4] = {{0}};
    (void)state;
    publish(f, 0, 0);
    assert_int_equal(go(f, 0), 0);
    struct rm_net *net = rm_test_net(&f->session.experiment, plan);
    const struct rm_categorical c = rm_categorical_of(&plan->shape);
    float *params = calloc(rm_net_param_count(net), sizeof *params);
    struct rm_weights_stamp stamp;
    rm_weights_read(&f->session.weights[0], params, rm_net_param_count(net), &stamp, NULL);
    assert_int_equal(rm_backend_cpu_create(&backend, 1, "auto", &error), 0);
    assert_int_equal(rm_net_workspace_create(&space, net, backend, 7, 0, RM_NET_INFER, &error), 0);
    rm_net_prepare(space, params);
    for (uint64_t t = 0; t < 64; t++) {
        const struct rm_row row = rm_ring_row(ring(f, 0), ring(f, 0)->spec.first_index + t);
        float logp[7];
        const struct rm_net_input in = {.x = row.obs, .batch = 7};
        const float *out = rm_net_forward(space, params, &in);
        rm_categorical_logp(&c, out, c.actions + 1, row.mask, 7, row.action, logp);
        for (uint32_t w = 0; w < 7; w++) {
            if (row.flags[w] & RM_FLAG_LAST) {
                ended++;
                assert_true(row.logp[w] == 0 && !row.action[3 * w] && !row.action[3 * w + 2]);
                continue;
            }
            assert_true(row.logp[w] == logp[w] && row.logp[w] < 0);
            for (uint32_t k = 0, at = 0; k < 3; at += c.choice_actions[k++]) {
                const uint32_t chosen = (uint32_t)row.action[3 * w + k];
                assert_true(row.mask[w * c.actions + at + chosen]);
                taken[k][chosen]++;
            }
        }
    }
    assert_true(ended > 10);
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t a = 0; a < c.choice_actions[k]; a++)
            assert_true(taken[k][a] > 0);
    rm_net_workspace_destroy(space);
    rm_backend_destroy(backend);
    rm_net_destroy(net);
    free(params);
    close_fixture(f);
}

/* The same worlds with one actor and with three: the same answers. */
static void splits_do_not_matter(void **state)
{
    static const char one[] = ", \"rollout\": {\"steps\": 32}, \"actor\": {\"worlds\": 7}";
    static const char three[] =
        ", \"rollout\": {\"steps\": 32}, \"actor\": {\"worlds\": 7, \"count\": 3}";
    struct fixture *a = open_fixture("\"length\": 3", one);
    struct fixture *b = open_fixture("\"length\": 3", three);
    (void)state;
    publish(a, 0, 0);
    publish(b, 0, 0);
    assert_int_equal(go(a, 0), 0);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(go(b, i), 0);
    for (uint64_t t = 0; t < 32; t++) {
        const struct rm_row whole = rm_ring_row(ring(a, 0), ring(a, 0)->spec.first_index + t);
        for (uint32_t i = 0, at = 0; i < 3; at += ring(b, i)->spec.lanes, i++) {
            const struct rm_row part = rm_ring_row(ring(b, i), ring(b, i)->spec.first_index + t);
            const uint32_t lanes = ring(b, i)->spec.lanes;
            assert_memory_equal(part.action, whole.action + at, lanes * sizeof(int32_t));
            assert_memory_equal(part.logp, whole.logp + at, lanes * sizeof(float));
            assert_memory_equal(part.flags, whole.flags + at, lanes);
        }
    }
    close_fixture(a);
    close_fixture(b);
}

/* A world without chance: the likeliest answers play all episodes alike, draws do not. */
static void evaluated_by_the_likeliest_or_by_draws(void **state)
{
    (void)state;
    for (int draws = 0; draws < 2; draws++) {
        char more[128];
        snprintf(more, sizeof more, ", \"evaluation\": {\"answer\": \"%s\", \"worlds\": 4}",
                 draws ? "sample" : "greedy");
        struct fixture *f = open_fixture("\"choices\": 2, \"max_steps\": 30", more);
        struct rm_board_run *run = f->session.board.run;
        struct rm_evaluator *evaluator;
        struct rm_error error = {""};
        struct rm_duty duty;
        assert_int_equal(rm_evaluator_create(&evaluator, &f->session, &duty, &error), 0);
        publish(f, 0, 0);
        RM_POKE(&run->evaluate_episodes, 40);
        RM_RAISE(&run->evaluate_request, 1);
        while (rm_test_turn(&duty) > 0)
            ;
        assert_int_equal(RM_PEEK(&run->evaluations), 1);
        assert_int_equal(RM_PEEK(&run->eval_score_stderr) > 0, draws);
        rm_evaluator_destroy(evaluator);
        close_fixture(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_row_is_offered),
        cmocka_unit_test(a_rollout_waits_for_its_weights),
        cmocka_unit_test(one_rollout_ahead),
        cmocka_unit_test(the_end_of_the_budget),
        cmocka_unit_test(a_learner_is_woken_for_a_rollout),
        cmocka_unit_test(a_successor_goes_on_in_the_rollout),
        cmocka_unit_test(rows_of_several_phases_are_not_offered),
        cmocka_unit_test(one_step_of_several_phases_is_refused),
        cmocka_unit_test(answers_and_their_probabilities),
        cmocka_unit_test(splits_do_not_matter),
        cmocka_unit_test(evaluated_by_the_likeliest_or_by_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
