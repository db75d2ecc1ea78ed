#include "tests/support/rollout_learner.h"

#include "learner/rollout_rows.h"
#include "shm/base/float_word.h"
#include "shm/base/rng.h"
#include "shm/layout.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void rm_test_corridor_open(struct rm_test_corridor *c, const char *algorithm, const char *network)
{
    char json[2048];
    struct rm_error error = {""};
    snprintf(json, sizeof json,
             "{\"name\": \"device\", \"seed\": 5, \"algorithm\": {%s},"
             " \"world\": {\"name\": \"count\", \"options\": {\"length\": 4, \"max_steps\": 7, "
             "\"mask\": 1,"
             " \"choices\": 3}},"
             " \"actor\": {\"worlds\": 6}, \"rollout\": {\"steps\": 10},"
             " \"optimizer\": {\"learning_rate\": 3e-3, \"grad_clip\": 0.5},"
             " \"network\": {%s}}",
             algorithm, network);
    assert_int_equal(rm_test_session(&c->session, json), 0);
    const struct rm_experiment *e = &c->session.experiment;
    assert_int_equal(rm_world_open(&c->world, e->world.name, e->world.library, &error), 0);
    assert_int_equal(rm_world_create(&c->world, &e->world, 1, 0, 1, &c->env, &error), 0);
}

void rm_test_corridor_close(struct rm_test_corridor *c)
{
    c->world.ops->close(c->env);
    rm_world_close(&c->world);
    rm_session_close(&c->session);
}

void rm_test_learner_open(struct rm_test_learner *l, struct rm_test_corridor *c,
                          struct rm_backend *backend)
{
    struct rm_error error = {""};
    *l = (struct rm_test_learner){.backend = backend};
    const struct rm_rollout_spec rows = {.session = &c->session,
                                         .agent = &c->world.ops->describe(c->env)->agent[0],
                                         .backend = backend};
    if (rm_rollout_create(&l->rows, &rows, &error))
        fail_msg("%s", error.text);
    const struct rm_trainer_spec spec = {.experiment = &c->session.experiment,
                                         .backend = backend,
                                         .rollout = &l->rows,
                                         .shape = c->session.plan.policy[0].shape,
                                         .name = "a"};
    if (rm_actor_critic_create(&l->ac, &spec, &error))
        fail_msg("%s", error.text);
}

void rm_test_learner_close(struct rm_test_learner *l)
{
    rm_actor_critic_destroy(l->ac);
    rm_rollout_destroy(&l->rows);
}

static float drawn(struct rm_rng *rng, float size)
{
    return size * (2 * rm_rng_float(rng) - 1);
}

/* An action per choice, and what is legal; or real numbers, and what their density may be. */
static void draw_answer(struct rm_rollout *r, struct rm_rng *rng, size_t i)
{
    const struct rm_categorical *c = &r->distribution;
    for (uint32_t k = 0, at = 0; k < c->choices; at += c->choice_actions[k++]) {
        const uint32_t taken = rm_rng_below(rng, c->choice_actions[k]);
        r->action[i * r->words + k] = (int32_t)taken;
        for (uint32_t a = 0; r->mask && a < c->choice_actions[k]; a++)
            r->mask[i * r->mask_bytes + at + a] = a == taken || rm_rng_below(rng, 4) > 0;
    }
    const uint32_t reals = r->words - c->choices;
    for (uint32_t k = 0; k < reals; k++)
        r->action[i * r->words + c->choices + k] = rm_word_of_float(drawn(rng, 1.5f));
    if (reals) {
        r->logp[i] = -1.5f * (float)reals + drawn(rng, 0.2f);
        return;
    }
    r->logp[i] = -0.7f * (float)c->choices + drawn(rng, 0.2f);
}

void rm_test_learner_draw(struct rm_test_learner *l, uint64_t number)
{
    struct rm_rollout *r = &l->rows;
    struct rm_rng rng = rm_rng_at(2, RM_STREAM_TEST, 0, number);
    const size_t rows = (size_t)r->steps * r->lanes, more = rows + r->lanes;
    r->samples = 0;
    for (size_t i = 0; i < more * r->inputs; i++)
        r->x[i] = drawn(&rng, 1);
    for (size_t i = 0; i < (size_t)r->lanes * r->plan->state_floats; i++) {
        r->state[i] = drawn(&rng, 1);
        if (r->after)
            r->after[i] = drawn(&rng, 1);
    }
    for (size_t i = 0; i < more; i++) {
        r->reward[i] = drawn(&rng, 2);
        r->flags[i] = rm_rng_below(&rng, 7) == 0 ? RM_FLAG_FIRST : 0;
        if (i >= rows)
            continue;
        draw_answer(r, &rng, i);
        if (r->value)
            r->value[i] = drawn(&rng, 1);
        r->valid[i] = rm_rng_below(&rng, 8) > 0;
        r->discount[i] = r->valid[i] > 0 && rm_rng_below(&rng, 8) > 0 ? 0.98f : 0;
        r->sample[r->samples] = (uint32_t)i;
        r->samples += r->valid[i] > 0;
    }
}

void rm_test_learner_count(struct rm_test_learner *l, const struct rm_actor_critic_update *u)
{
    l->attempts += u->made + u->skipped;
    l->made += u->made;
    l->skipped += u->skipped;
    l->samples += u->samples;
    if (u->made || u->skipped) {
        l->loss = u->loss;
        l->grad_norm = u->grad_norm;
    }
}

void rm_test_learner_learn(struct rm_test_learner *l, uint64_t number)
{
    struct rm_actor_critic_update u;
    rm_actor_critic_begin(l->ac, number, NULL);
    while (rm_actor_critic_due(l->ac)) {
        u = rm_actor_critic_step(l->ac, l->attempts + 1, 0.25, NULL);
        rm_test_learner_count(l, &u);
    }
    u = rm_actor_critic_collect(l->ac, NULL);
    rm_test_learner_count(l, &u);
    rm_actor_critic_end(l->ac, NULL);
}

float *rm_test_learner_params(const struct rm_test_learner *l)
{
    const size_t n = rm_net_param_count(rm_actor_critic_net(l->ac));
    float *copy = malloc(n * sizeof *copy);
    assert_non_null(copy);
    l->backend->ops->download(l->backend, copy, rm_actor_critic_params(l->ac), n);
    return copy;
}

struct rm_state *rm_test_actor_critic_state(struct rm_actor_critic *ac)
{
    struct rm_state *s;
    struct rm_error error = {""};
    assert_int_equal(rm_state_create(&s, &error), 0);
    rm_actor_critic_state(ac, s);
    assert_int_equal(rm_state_end(s, &error), 0);
    return s;
}

struct rm_state *rm_test_learner_state(struct rm_test_learner *l)
{
    return rm_test_actor_critic_state(l->ac);
}

static void assert_close(const char *what, double x, double y, double within)
{
    if (!(fabs(x - y) <= within * (1e-2 + fabs(y))))
        fail_msg("%s: %.9g beside %.9g", what, x, y);
}

void rm_test_learner_compare(const struct rm_test_learner *d, const struct rm_test_learner *c)
{
    const struct rm_actor_critic_figures f = rm_actor_critic_figures(d->ac),
                                         g = rm_actor_critic_figures(c->ac);
    assert_int_equal(d->made, c->made);
    assert_int_equal(d->skipped, c->skipped);
    assert_int_equal(d->samples, c->samples);
    assert_int_equal(f.passes, g.passes);
    assert_close("loss", d->loss, c->loss, 5e-3);
    assert_close("grad_norm", d->grad_norm, c->grad_norm, 5e-3);
    assert_close("policy_loss", f.policy_loss, g.policy_loss, 5e-3);
    assert_close("value_loss", f.value_loss, g.value_loss, 5e-3);
    assert_close("entropy", f.entropy, g.entropy, 1e-3);
    assert_close("kl", f.kl, g.kl, 5e-3);
    assert_close("clip_fraction", f.clip_fraction, g.clip_fraction, 0.05);
    assert_close("explained_variance", f.explained_variance, g.explained_variance, 1e-3);
    assert_close("value_mean", f.value_mean, g.value_mean, 1e-3);
    assert_close("value_deviation", f.value_deviation, g.value_deviation, 1e-3);
    assert_close("reward_scale", f.reward_scale, g.reward_scale, 1e-6);
}
