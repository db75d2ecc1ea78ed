/* Whole rollouts learned from on a device: a hundred minibatches beside the CPU's, and what is
 * promised of them: no allocation, no waiting but once a rollout, no bit by the order of threads, a
 * warm-up that leaves no trace. */
#include "actor/worlds.h"
#include "learner/algo/actor_critic.h"
#include "learner/algo/guard.h"
#include "learner/rollout_rows.h"
#include "shm/base/rng.h"
#include "shm/base/state.h"
#include "shm/layout.h"
#include "tests/support/emulated.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A learner, its rollout's buffers, and what they need. */
struct learner {
    struct rm_backend *backend;
    struct rm_rollout rows;
    struct rm_actor_critic *ac;
    uint64_t attempts, made, skipped, samples;
    double loss, grad_norm;
};

static struct rm_session session;
static struct rm_world world;
static struct rm_env *env;
static struct rm_backend *device, *cpu;

static int open_backends(void **state)
{
    struct rm_error error = {""};
    (void)state;
    device = rm_test_device_open();
    return rm_backend_cpu_create(&cpu, 1, "auto", &error);
}

static int close_backends(void **state)
{
    (void)state;
    rm_backend_destroy(device);
    rm_backend_destroy(cpu);
    return 0;
}

/* The corridor, with masks and several choices a step. */
static void open_session(const char *algorithm, const char *network)
{
    char json[2048];
    struct rm_error error = {""};
    snprintf(json, sizeof json,
             "{\"name\": \"device\", \"seed\": 5, \"algorithm\": {%s},"
             " \"world\": {\"name\": \"count\", \"options\": {\"length\": 4, \"max_steps\": 7}},"
             " \"actor\": {\"worlds\": 6}, \"rollout\": {\"steps\": 10},"
             " \"optimizer\": {\"learning_rate\": 3e-3, \"grad_clip\": 0.5},"
             " \"network\": {%s}}",
             algorithm, network);
    assert_int_equal(rm_test_session(&session, json), 0);
    const struct rm_experiment *e = &session.experiment;
    assert_int_equal(rm_world_open(&world, e->world.name, e->world.library, &error), 0);
    assert_int_equal(rm_world_create(&world, &e->world, 1, 0, 1, &env, &error), 0);
}

static void close_session(void)
{
    world.ops->close(env);
    rm_world_close(&world);
    rm_session_close(&session);
}

static void open_learner(struct learner *l, struct rm_backend *backend)
{
    struct rm_error error = {""};
    *l = (struct learner){.backend = backend};
    const struct rm_rollout_spec rows = {
        .session = &session, .agent = &world.ops->describe(env)->agent[0], .backend = backend};
    if (rm_rollout_create(&l->rows, &rows, &error))
        fail_msg("%s", error.text);
    const struct rm_actor_critic_spec spec = {.experiment = &session.experiment,
                                              .backend = backend,
                                              .rollout = &l->rows,
                                              .shape = session.plan.policy[0].shape,
                                              .name = "a"};
    if (rm_actor_critic_create(&l->ac, &spec, &error))
        fail_msg("%s", error.text);
}

static void close_learner(struct learner *l)
{
    rm_actor_critic_destroy(l->ac);
    rm_rollout_destroy(&l->rows);
}

/* --- drawn rollouts -------------------------------------------------------------------------- */

static float drawn(struct rm_rng *rng, float size)
{
    return size * (2 * rm_rng_float(rng) - 1);
}

/* An action per choice, and what is legal. */
static void draw_answer(struct rm_rollout *r, struct rm_rng *rng, size_t i)
{
    const struct rm_categorical *c = &r->distribution;
    for (uint32_t k = 0, at = 0; k < c->choices; at += c->choice_actions[k++]) {
        const uint32_t taken = rm_rng_below(rng, c->choice_actions[k]);
        r->action[i * r->words + k] = (int32_t)taken;
        for (uint32_t a = 0; r->mask && a < c->choice_actions[k]; a++)
            r->mask[i * r->mask_bytes + at + a] = a == taken || rm_rng_below(rng, 4) > 0;
    }
    r->logp[i] = -0.7f * (float)c->choices + drawn(rng, 0.2f);
}

static void draw_rollout(struct rm_rollout *r, uint64_t number)
{
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

static void count(struct learner *l, const struct rm_actor_critic_update *u)
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

/* One rollout, from its beginning to its end. */
static void learn(struct learner *l, uint64_t number)
{
    struct rm_actor_critic_update u;
    rm_actor_critic_begin(l->ac, number, NULL);
    while (rm_actor_critic_due(l->ac)) {
        u = rm_actor_critic_step(l->ac, l->attempts + 1, 0.25, NULL);
        count(l, &u);
    }
    if (rm_actor_critic_collect(l->ac, &u, NULL))
        count(l, &u);
    rm_actor_critic_end(l->ac, NULL);
}

static float *params_of(const struct learner *l)
{
    const size_t n = session.plan.policy[0].param_count;
    float *copy = malloc(n * sizeof *copy);
    assert_non_null(copy);
    l->backend->ops->download(l->backend, copy, rm_actor_critic_params(l->ac), n);
    return copy;
}

/* Relative to the size of b. */
static double apart(const float *a, const float *b, size_t n)
{
    double off = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        off += pow((double)a[i] - (double)b[i], 2);
        size += pow((double)b[i], 2);
    }
    return sqrt(off / size);
}

static void assert_close(const char *what, double x, double y, double within)
{
    if (!(fabs(x - y) <= within * (1e-2 + fabs(y))))
        fail_msg("%s: %.9g on the device, %.9g on the CPU", what, x, y);
}

static void compare(const struct learner *d, const struct learner *c)
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

#define PLAIN                                                                                      \
    "\"layers\": [{\"type\": \"linear\", \"units\": 16}, {\"type\": \"tanh\"},"                    \
    " {\"type\": \"linear\", \"units\": 16}, {\"type\": \"relu\"}]"

/* `rollouts` of the same numbers on both. */
static void learn_alike(const char *algorithm, const char *network, uint32_t rollouts)
{
    struct learner d, c;
    open_session(algorithm, network);
    open_learner(&d, device);
    open_learner(&c, cpu);
    float *before = params_of(&c);
    for (uint32_t i = 0; i < rollouts; i++) {
        draw_rollout(&d.rows, i);
        draw_rollout(&c.rows, i);
        learn(&d, i);
        learn(&c, i);
        compare(&d, &c);
    }
    rm_test_device_fine(device);
    const size_t n = session.plan.policy[0].param_count;
    float *x = params_of(&d), *y = params_of(&c);
    assert_true(apart(y, before, n) > 1e-3); /* it has learned something */
    if (!(apart(x, y, n) < 1e-3))
        fail_msg("%s: %g apart after %llu updates", algorithm, apart(x, y, n),
                 (unsigned long long)d.made);
    free(before);
    free(x);
    free(y);
    close_learner(&d);
    close_learner(&c);
    close_session();
}

static void ppo_is_the_cpus(void **state)
{
    (void)state;
    learn_alike("\"name\": \"ppo\", \"epochs\": 4, \"minibatches\": 4, \"value_clip\": 0.2", PLAIN,
                7);
    learn_alike("\"name\": \"ppo\", \"epochs\": 4, \"minibatches\": 4,"
                " \"normalize_advantages\": \"batch\"",
                PLAIN ", \"trunk\": \"separate\"", 7);
}

static void appo_is_the_cpus(void **state)
{
    (void)state;
    learn_alike("\"name\": \"appo\", \"epochs\": 5, \"minibatches\": 4", PLAIN, 5);
}

static void vtrace_is_the_cpus(void **state)
{
    (void)state;
    learn_alike("\"name\": \"vtrace\", \"minibatches\": 5", PLAIN, 20);
}

static void running_scales_are_the_cpus(void **state)
{
    (void)state;
    learn_alike("\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 2, \"value_head\": \"popart\"",
                PLAIN, 8);
    learn_alike("\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 2, \"value_head\": \"popart\","
                " \"popart_deviation\": \"averaged\", \"normalize_advantages\": \"off\"",
                PLAIN ", \"trunk\": \"separate\"", 8);
    learn_alike("\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 2, \"normalize_rewards\": true",
                PLAIN ", \"normalize_observations\": true", 8);
}

/* Passes end where the policy has moved too far, after as many as on the CPU. */
static void kl_stops_as_on_the_cpu(void **state)
{
    (void)state;
    learn_alike("\"name\": \"ppo\", \"epochs\": 10, \"minibatches\": 2, \"target_kl\": 0.002",
                PLAIN, 6);
    learn_alike("\"name\": \"ppo\", \"epochs\": 10, \"minibatches\": 2, \"target_kl\": 1e-9", PLAIN,
                6);
}

#define RECURRENT(cell)                                                                            \
    "\"layers\": [{\"type\": \"linear\", \"units\": 8}, {\"type\": \"tanh\"},"                     \
    " {\"type\": \"" cell "\", \"units\": 6}], \"trunk\": "

/* Lanes are trained on whole; the value's own layers keep their states from rollout to rollout. */
static void sequences_are_the_cpus(void **state)
{
    (void)state;
    learn_alike("\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 4",
                RECURRENT("gru") "\"shared\"", 6);
    learn_alike("\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 4",
                RECURRENT("lstm") "\"separate\"", 6);
    learn_alike("\"name\": \"vtrace\", \"minibatches\": 3", RECURRENT("lstm") "\"separate\"", 8);
    learn_alike("\"name\": \"appo\", \"epochs\": 2, \"minibatches\": 3",
                RECURRENT("gru") "\"separate\"", 6);
}

/* --- promises -------------------------------------------------------------------------------- */

static void nobody_waits_and_nothing_is_allocated(void **state)
{
    struct learner d;
    struct rm_device_counts before, after;
    (void)state;
    open_session("\"name\": \"ppo\", \"epochs\": 4, \"minibatches\": 4", PLAIN);
    open_learner(&d, device);
    draw_rollout(&d.rows, 0);
    learn(&d, 0);
    for (uint64_t number = 1; number < 4; number++) {
        struct rm_actor_critic_update u;
        draw_rollout(&d.rows, number);
        device->device->counts(device, &before);
        rm_actor_critic_begin(d.ac, number, NULL);
        uint32_t updates = 0;
        for (; rm_actor_critic_due(d.ac); updates++)
            rm_actor_critic_step(d.ac, d.attempts + 1, 0, NULL);
        device->device->counts(device, &after);
        assert_int_equal(updates, 16);
        assert_int_equal(after.allocations, before.allocations);
        assert_int_equal(after.synchronizations, before.synchronizations);
        assert_int_equal(after.launches, before.launches); /* all is captured */
        assert_int_equal(after.graph_launches, before.graph_launches + 2 + updates);
        assert_int_equal(after.bytes_out, before.bytes_out);
        assert_true(after.bytes_in - before.bytes_in < d.rows.bytes + 10000);
        rm_actor_critic_collect(d.ac, &u, NULL);
        count(&d, &u);
        device->device->counts(device, &after);
        assert_int_equal(after.synchronizations, before.synchronizations + 1);
        assert_int_equal(u.made, updates);
    }
    rm_test_device_fine(device);
    close_learner(&d);
    close_session();
}

static void order_of_threads_changes_nothing(void **state)
{
    static const char *const orders[] = {"forward", "reverse", "random:3"};
    float *first = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct learner d;
        rm_test_emulated_order(orders[i]);
        open_session("\"name\": \"appo\", \"epochs\": 2, \"minibatches\": 3,"
                     " \"value_head\": \"popart\"",
                     PLAIN);
        open_learner(&d, device);
        for (uint64_t number = 0; number < 3; number++) {
            draw_rollout(&d.rows, number);
            learn(&d, number);
        }
        float *now = params_of(&d);
        if (first)
            assert_memory_equal(now, first, session.plan.policy[0].param_count * sizeof *now);
        else
            first = now;
        if (now != first)
            free(now);
        close_learner(&d);
        close_session();
    }
    free(first);
    rm_test_emulated_order("forward");
    rm_test_device_fine(device);
}

/* All that a checkpoint has of a learner, as bytes. */
static struct rm_state *state_of(struct learner *l)
{
    struct rm_state *s;
    struct rm_error error = {""};
    assert_int_equal(rm_state_create(&s, &error), 0);
    rm_actor_critic_state(l->ac, s);
    assert_int_equal(rm_state_end(s, &error), 0);
    return s;
}

static void assert_same_state(const struct rm_state *a, const struct rm_state *b)
{
    assert_int_equal(rm_state_count(a), rm_state_count(b));
    for (size_t i = 0; i < rm_state_count(a); i++) {
        const struct rm_state_part *x = rm_state_at(a, i), *y = rm_state_at(b, i);
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->bytes, y->bytes);
        if (memcmp(x->data, y->data, x->bytes) != 0)
            fail_msg("%s differs", x->name);
    }
}

/* A learner that was just made has warmed up; its state is that of the CPU's, which has not. */
static void warming_up_leaves_no_trace(void **state)
{
    (void)state;
    for (int popart = 0; popart < 2; popart++) {
        struct learner d, c;
        open_session(popart ? "\"name\": \"ppo\", \"value_head\": \"popart\","
                              " \"normalize_rewards\": true"
                            : "\"name\": \"vtrace\"",
                     PLAIN ", \"normalize_observations\": true, \"trunk\": \"separate\"");
        open_learner(&d, device);
        open_learner(&c, cpu);
        struct rm_state *x = state_of(&d), *y = state_of(&c);
        assert_same_state(x, y);
        rm_state_destroy(x);
        rm_state_destroy(y);
        close_learner(&d);
        close_learner(&c);
        close_session();
    }
    rm_test_device_fine(device);
}

/* What goes on from a checkpoint is bit for bit what went on without it. */
static void resumes_to_the_bit(void **state)
{
    struct learner d, e;
    struct rm_error error = {""};
    (void)state;
    open_session("\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 3, \"value_head\": \"popart\","
                 " \"normalize_rewards\": true",
                 PLAIN ", \"normalize_observations\": true");
    open_learner(&d, device);
    for (uint64_t number = 0; number < 3; number++) {
        draw_rollout(&d.rows, number);
        learn(&d, number);
    }
    struct rm_state *s = state_of(&d);
    open_learner(&e, device);
    rm_state_load(s);
    rm_actor_critic_state(e.ac, s);
    assert_int_equal(rm_state_end(s, &error), 0);
    rm_state_destroy(s);
    e.attempts = d.attempts;
    for (uint64_t number = 3; number < 5; number++) {
        draw_rollout(&d.rows, number);
        draw_rollout(&e.rows, number);
        learn(&d, number);
        learn(&e, number);
    }
    struct rm_state *x = state_of(&d), *y = state_of(&e);
    assert_same_state(x, y);
    rm_state_destroy(x);
    rm_state_destroy(y);
    rm_test_device_fine(device);
    close_learner(&d);
    close_learner(&e);
    close_session();
}

/* A rollout that is not finite makes no update and changes nothing; a rollout without a sample
 * neither; the next one is learned from. */
static void bad_rollouts_change_nothing(void **state)
{
    struct learner d;
    (void)state;
    open_session("\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 2", PLAIN);
    open_learner(&d, device);
    draw_rollout(&d.rows, 0);
    learn(&d, 0);
    struct rm_state *before = state_of(&d);
    draw_rollout(&d.rows, 1);
    for (uint32_t i = 0; i < (d.rows.steps + 1) * d.rows.lanes; i++)
        d.rows.reward[i] = NAN;
    learn(&d, 1);
    assert_int_equal(d.skipped, 4);
    assert_int_equal(d.made, 4);
    draw_rollout(&d.rows, 2);
    d.rows.samples = 0;
    memset(d.rows.valid, 0, sizeof(float) * d.rows.steps * d.rows.lanes);
    learn(&d, 2);
    assert_int_equal(d.attempts, 8);
    struct rm_state *after = state_of(&d);
    assert_same_state(before, after);
    rm_state_destroy(before);
    rm_state_destroy(after);
    draw_rollout(&d.rows, 3);
    learn(&d, 3);
    assert_int_equal(d.made, 8);
    rm_test_device_fine(device);
    close_learner(&d);
    close_session();
}

/* Looking through numbers between gradient and step changes nothing, and says where one was bad. */
static void watching_changes_nothing(void **state)
{
    static const char *const watch[] = {"", "}, \"debug\": {\"check_finite\": \"always\""};
    struct learner d[2];
    struct rm_state *s[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        char network[512];
        snprintf(network, sizeof network, "%s%s", PLAIN, watch[i]);
        open_session("\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 2", network);
        open_learner(&d[i], device);
        for (uint64_t number = 0; number < 3; number++) {
            draw_rollout(&d[i].rows, number);
            for (uint32_t j = 0; number == 1 && j < 70; j++)
                d[i].rows.reward[j] = INFINITY;
            learn(&d[i], number);
        }
        assert_int_equal(d[i].made, 8);
        assert_int_equal(d[i].skipped, 4);
        s[i] = state_of(&d[i]);
        close_learner(&d[i]);
        close_session();
    }
    assert_same_state(s[0], s[1]);
    rm_state_destroy(s[0]);
    rm_state_destroy(s[1]);
    rm_test_device_fine(device);
}

/* What the guard puts back is what the device goes on from. */
static void guard_puts_back(void **state)
{
    struct learner d;
    struct rm_guard *guard;
    struct rm_error error = {""};
    (void)state;
    open_session("\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 2, \"value_head\": \"popart\"",
                 PLAIN);
    open_learner(&d, device);
    assert_int_equal(rm_guard_create(&guard, &session.experiment, device, NULL, "a", &error), 0);
    rm_actor_critic_guarded(d.ac, guard);
    assert_int_equal(rm_guard_ready(guard, &error), 0);
    struct rm_state *before = state_of(&d);
    draw_rollout(&d.rows, 0);
    learn(&d, 0);
    int verdict = RM_GUARD_SKIPPED;
    for (int i = 0; i < 1000 && verdict == RM_GUARD_SKIPPED; i++)
        verdict = rm_guard_judge(guard, false, NAN, NAN, 0, &error);
    assert_int_equal(verdict, RM_GUARD_BACK);
    rm_actor_critic_restored(d.ac);
    struct rm_state *after = state_of(&d);
    assert_same_state(before, after);
    rm_state_destroy(before);
    rm_state_destroy(after);
    rm_guard_destroy(guard);
    rm_test_device_fine(device);
    close_learner(&d);
    close_session();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ppo_is_the_cpus),
        cmocka_unit_test(appo_is_the_cpus),
        cmocka_unit_test(vtrace_is_the_cpus),
        cmocka_unit_test(running_scales_are_the_cpus),
        cmocka_unit_test(kl_stops_as_on_the_cpu),
        cmocka_unit_test(sequences_are_the_cpus),
        cmocka_unit_test(nobody_waits_and_nothing_is_allocated),
        cmocka_unit_test(order_of_threads_changes_nothing),
        cmocka_unit_test(warming_up_leaves_no_trace),
        cmocka_unit_test(resumes_to_the_bit),
        cmocka_unit_test(bad_rollouts_change_nothing),
        cmocka_unit_test(watching_changes_nothing),
        cmocka_unit_test(guard_puts_back),
    };
    return cmocka_run_group_tests(tests, open_backends, close_backends);
}
