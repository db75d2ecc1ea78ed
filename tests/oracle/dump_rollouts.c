/* dump_rollouts DIRECTORY: has actor-critic learners learn from a few rollouts of random numbers
 * and writes what went in and what came out (tests/support/dump.h), for tests/oracle/rollouts.py.
 */
#include "learner/algo/minibatch.h"
#include "learner/net/reals.h"
#include "tests/support/dump.h"
#include "tests/support/rollout_learner.h"

#include <string.h>

enum { ROLLOUTS = 3 };

static const struct rm_test_dump_sample samples[] = {
    {"ppo",
     "\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 4, \"value_clip\": 0.2,"
     " \"entropy_coefficient\": 0.02",
     RM_DUMP_TWO_LAYERS RM_DUMP_SHARED, "\"grad_clip\": 0.5", "", ""},
    {"ppo-separate",
     "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 3, \"value_clip\": 0,"
     " \"normalize_advantages\": \"batch\", \"value_coefficient\": 0.7, \"gae_lambda\": 0.8",
     RM_DUMP_TWO_LAYERS RM_DUMP_SEPARATE, "\"grad_clip\": 0.3, \"clip_apart\": true", "", ""},
    {"ppo-running",
     "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 2, \"value_clip\": 0.3,"
     " \"value_head\": \"popart\", \"normalize_rewards\": true, \"reward_clip\": 1",
     RM_DUMP_TWO_LAYERS RM_DUMP_SHARED
     ", \"normalize_observations\": true, \"observation_clip\": 1.5",
     "\"grad_clip\": 0.5", "", ""},
    {"ppo-averaged",
     "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 2, \"value_head\": \"popart\","
     " \"popart_deviation\": \"averaged\", \"normalize_advantages\": \"off\"",
     RM_DUMP_TWO_LAYERS RM_DUMP_SEPARATE, "", "", ""},
    {"ppo-means",
     "\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 4, \"value_clip\": 0.05,"
     " \"value_clip_maximum\": \"means\"",
     RM_DUMP_TWO_LAYERS RM_DUMP_SHARED, "", "", ""},
    {"ppo-stopped",
     "\"name\": \"ppo\", \"epochs\": 6, \"minibatches\": 2, \"target_kl\": 0.24, \"clip\": 0.1",
     RM_DUMP_TWO_LAYERS RM_DUMP_SHARED, "", "", ""},
    {"ppo-gru", "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 3",
     RM_DUMP_RECURRENT("gru") RM_DUMP_SHARED, "", "", ""},
    {"ppo-lstm", "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 3",
     RM_DUMP_RECURRENT("lstm") RM_DUMP_SEPARATE, "", "", ""},
    {"vtrace",
     "\"name\": \"vtrace\", \"minibatches\": 3, \"rho_max\": 1.1, \"c_max\": 0.9,"
     " \"gae_lambda\": 0.9",
     RM_DUMP_TWO_LAYERS RM_DUMP_SHARED, "\"grad_clip\": 0.5", "", ""},
    {"vtrace-lstm", "\"name\": \"vtrace\", \"minibatches\": 2, \"value_head\": \"popart\"",
     RM_DUMP_RECURRENT("lstm") RM_DUMP_SEPARATE, "", "", ""},
    {"ppo-real",
     "\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 4, \"value_clip\": 0.2,"
     " \"entropy_coefficient\": 0.02",
     RM_DUMP_TWO_LAYERS RM_DUMP_SHARED, "\"grad_clip\": 0.5", "", ""},
    {"ppo-real-state", "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 3, \"bound\": \"tanh\"",
     RM_DUMP_TWO_LAYERS RM_DUMP_SEPARATE ", \"head\": {\"deviation\": \"state\"}", "", "", ""},
    {"ppo-real-lstm", "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 3",
     RM_DUMP_RECURRENT("lstm") RM_DUMP_SHARED, "", "", ""},
    {"vtrace-real",
     "\"name\": \"vtrace\", \"minibatches\": 3, \"rho_max\": 1.1, \"bound\": \"tanh\"",
     RM_DUMP_TWO_LAYERS RM_DUMP_SHARED, "\"grad_clip\": 0.5", "", ""},
    {"appo-real", "\"name\": \"appo\", \"epochs\": 3, \"minibatches\": 2, \"clip\": 0.15",
     RM_DUMP_TWO_LAYERS, "\"grad_clip\": 0.5", "", ""},
    {"appo", "\"name\": \"appo\", \"epochs\": 3, \"minibatches\": 2, \"clip\": 0.15",
     RM_DUMP_TWO_LAYERS, "\"grad_clip\": 0.5", "", ""},
};

/* Rows, or lanes, of all passes in the order in which they are learned from. */
static void put_order(struct rm_test_dump *d, const struct rm_test_learner *l, uint64_t number)
{
    const struct rm_experiment *e = &d->session.experiment;
    const struct rm_rollout *r = &l->rows;
    const bool recurrent = rm_net_is_recurrent(rm_actor_critic_net(l->ac));
    const uint32_t epochs = e->algorithm.name == RM_ALGORITHM_VTRACE ? 1 : e->algorithm.epochs;
    const struct rm_minibatches_spec spec = {.rows = recurrent ? r->lanes : r->steps * r->lanes,
                                             .parts = e->algorithm.minibatches,
                                             .seed = e->seed,
                                             .shuffled = true};
    struct rm_error error;
    struct rm_minibatches m;
    uint32_t lanes[64];
    for (uint32_t i = 0; i < r->lanes; i++)
        lanes[i] = i;
    if (rm_minibatches_create(&m, &spec, &error))
        rm_test_dump_fail(error.text);
    rm_minibatches_begin(&m, recurrent ? lanes : r->sample, recurrent ? r->lanes : r->samples);
    for (uint32_t pass = 0; pass < epochs; pass++) {
        rm_minibatches_shuffle(&m, number * epochs + pass);
        RM_TEST_DUMP_NUMBERS(d, "order", number * epochs + pass, m.row, m.samples);
    }
    rm_minibatches_destroy(&m);
}

static void put_rollout(struct rm_test_dump *d, const struct rm_test_learner *l, uint64_t number)
{
    const struct rm_rollout *r = &l->rows;
    const size_t rows = (size_t)r->steps * r->lanes, more = rows + r->lanes;
    const size_t state = (size_t)r->lanes * r->plan->state_floats;
    const uint32_t reals = d->session.plan.policy[0].reals;
    if ((!reals && (!r->mask || r->words != 3)) || (reals && r->words != reals) || !r->successors)
        rm_test_dump_fail("rollouts without masks, choices or successors");
    rm_test_dump_put(d, "x", number, r->x, more * r->inputs);
    rm_test_dump_put(d, "state", number, r->state, r->state ? state : 0);
    rm_test_dump_put(d, "after", number, r->after, r->after ? state : 0);
    rm_test_dump_put(d, "kept", number, r->value, r->value ? rows : 0);
    if (reals) {
        rm_test_dump_put(d, "action", number, (const float *)(const void *)r->action,
                         rows * r->words);
    } else {
        RM_TEST_DUMP_NUMBERS(d, "mask", number, r->mask, rows * r->mask_bytes);
        RM_TEST_DUMP_NUMBERS(d, "action", number, r->action, rows * r->words);
    }
    rm_test_dump_put(d, "logp", number, r->logp, rows);
    rm_test_dump_put(d, "reward", number, r->reward, more);
    RM_TEST_DUMP_NUMBERS(d, "first", number, r->flags, more);
    rm_test_dump_put(d, "discount", number, r->discount, rows);
    rm_test_dump_put(d, "valid", number, r->valid, rows);
}

static void put_figures(struct rm_test_dump *d, const struct rm_test_learner *l, uint64_t number)
{
    const struct rm_actor_critic_figures f = rm_actor_critic_figures(l->ac);
    const double all[] = {f.policy_loss,   f.value_loss,         f.entropy,    f.kl,
                          f.clip_fraction, f.explained_variance, f.value_mean, f.value_deviation,
                          f.reward_scale,  (double)f.passes,     l->grad_norm};
    RM_TEST_DUMP_NUMBERS(d, "figures", number, all, sizeof all / sizeof *all);
}

static void dump(struct rm_test_dump *d, const struct rm_test_dump_sample *s, const char *directory)
{
    struct rm_test_learner l = {.backend = d->backend};
    struct rm_error error;
    rm_test_dump_open(d, s, strstr(s->name, "real") ? 0 : 3, directory);
    const struct rm_rollout_spec rows = {.session = &d->session,
                                         .agent = &d->world.ops->describe(d->env)->agent[0],
                                         .backend = d->backend};
    const struct rm_trainer_spec spec = {.experiment = &d->session.experiment,
                                         .backend = d->backend,
                                         .rollout = &l.rows,
                                         .shape = d->session.plan.policy[0].shape,
                                         .name = "a"};
    if (rm_rollout_create(&l.rows, &rows, &error) || rm_actor_critic_create(&l.ac, &spec, &error))
        rm_test_dump_fail(error.text);
    const struct rm_net *net = rm_actor_critic_net(l.ac);
    const size_t n = rm_net_param_count(net);
    rm_test_dump_arena(d, "params", 0, rm_actor_critic_params(l.ac), n);
    for (uint64_t i = 0; i < ROLLOUTS; i++) {
        rm_test_learner_draw(&l, i);
        put_rollout(d, &l, i);
        put_order(d, &l, i);
        rm_test_learner_learn(&l, i);
        put_figures(d, &l, i);
        rm_test_dump_arena(d, "params", i + 1, rm_actor_critic_params(l.ac), n);
    }
    if (l.skipped)
        rm_test_dump_fail("an update was skipped");
    json_t *more = json_pack(
        "{sisisisisisb}", "rollouts", ROLLOUTS, "lanes", (int)l.rows.lanes, "state",
        (int)rm_net_state_count(net), "value_state", (int)rm_net_value_state_count(net), "reals",
        (int)d->session.plan.policy[0].reals, "tanh", rm_bounds_by_tanh(&d->session.experiment));
    rm_test_dump_close(d, s, net, directory, more);
    rm_test_learner_close(&l);
}

int main(int argc, char **argv)
{
    struct rm_test_dump d = {0};
    struct rm_error error;
    if (argc != 2)
        rm_test_dump_fail("usage: dump_rollouts DIRECTORY");
    if (rm_backend_cpu_create(&d.backend, 1, "auto", &error))
        rm_test_dump_fail(error.text);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        dump(&d, &samples[i], argv[1]);
    rm_backend_destroy(d.backend);
    return 0;
}
