/* Worlds that are stepped on a device: their transitions are the CPU's to the bit, actions are
 * drawn as actors draw them, and rollouts are linked and ordered as they should be. */
#include "actor/worlds.h"
#include "config/config.h"
#include "learner/algo/actor_critic_device.h"
#include "learner/native_worlds.h"
#include "learner/net/features.h"
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

static struct rm_backend *device;
static struct rm_session session;

static int open_device(void **state)
{
    (void)state;
    device = rm_test_device_open();
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    rm_backend_destroy(device);
    return 0;
}

/* --- a learner with its worlds --------------------------------------------------------------- */

struct run {
    struct rm_native_worlds worlds;
    struct rm_actor_critic *ac;
    uint64_t attempts, number;
};

static void open_session(const char *world, const char *options, uint32_t worlds, uint32_t steps)
{
    char json[1024];
    snprintf(json, sizeof json,
             "{\"name\": \"worlds\", \"seed\": 11, \"algorithm\": {\"name\": \"ppo\","
             " \"epochs\": 2, \"minibatches\": 3},"
             " \"world\": {\"name\": \"%s\", \"options\": {%s}},"
             " \"actor\": {\"worlds\": %u, \"device\": \"cuda\"}, \"rollout\": {\"steps\": %u},"
             " \"optimizer\": {\"learning_rate\": 1e-3},"
             " \"network\": {\"trunk\": \"shared\", \"layers\": [{\"type\": \"linear\","
             " \"units\": 8}, {\"type\": \"tanh\"}]}}",
             world, options, worlds, steps);
    assert_int_equal(rm_test_session(&session, json), 0);
    assert_int_equal(session.objects.actors, 0);
}

static void open_run(struct run *r)
{
    struct rm_error error = {""};
    *r = (struct run){0};
    const struct rm_native_worlds_spec spec = {
        .session = &session, .seed = session.experiment.seed, .backend = device};
    if (rm_native_worlds_create(&r->worlds, &spec, &error))
        fail_msg("%s", error.text);
    const struct rm_actor_critic_spec learner = {.experiment = &session.experiment,
                                                 .backend = device,
                                                 .rollout = &r->worlds.rows,
                                                 .shape = session.plan.policy[0].shape,
                                                 .name = "a"};
    if (rm_actor_critic_create(&r->ac, &learner, &error) ||
        rm_native_worlds_join(&r->worlds, r->ac, &error))
        fail_msg("%s", error.text);
}

static void close_run(struct run *r)
{
    rm_native_worlds_destroy(&r->worlds);
    rm_actor_critic_destroy(r->ac);
}

static void make_and_learn(struct run *r)
{
    struct rm_actor_critic_update u;
    rm_native_worlds_make(&r->worlds);
    rm_actor_critic_begin(r->ac, r->number++, NULL);
    while (rm_actor_critic_due(r->ac))
        rm_actor_critic_step(r->ac, r->attempts + 1, 0, NULL);
    assert_true(rm_actor_critic_collect(r->ac, &u, NULL));
    r->attempts += u.made + u.skipped;
    assert_int_equal(u.made, 6);
    assert_int_equal(u.samples, 2 * r->worlds.told->samples);
}

static void *fetched(const void *from, size_t bytes)
{
    const size_t words = (bytes + 3) / 4;
    float *to = malloc(words * sizeof *to);
    assert_non_null(to);
    device->ops->download(device, to, from, words);
    return to;
}

/* --- transitions ----------------------------------------------------------------------------- */

/* The CPU's worlds, given the actions of the device's. */
struct twin {
    struct rm_world world;
    struct rm_env *env;
    const struct rm_env_agent *agent;
    uint32_t worlds, bytes, inputs;
    uint8_t *obs, *flags;
    float *reward, *x;
    double *score;
    struct rm_env_buffers out;
};

static void open_twin(struct twin *t)
{
    const struct rm_experiment *e = &session.experiment;
    struct rm_error error = {""};
    assert_int_equal(rm_world_open(&t->world, e->world.name, e->world.library, &error), 0);
    assert_int_equal(
        rm_world_create(&t->world, &e->world, e->seed, 0, e->actor.worlds, &t->env, &error), 0);
    t->agent = t->world.ops->describe(t->env)->agent;
    t->worlds = e->actor.worlds;
    t->bytes = (uint32_t)rm_features_bytes(t->agent);
    t->inputs = rm_features_count(t->agent);
    t->obs = calloc(t->worlds, t->bytes);
    t->flags = calloc(t->worlds, 1);
    t->reward = calloc(t->worlds, sizeof *t->reward);
    t->x = calloc((size_t)t->worlds * t->inputs, sizeof *t->x);
    t->score = calloc(t->worlds, sizeof *t->score);
    assert_true(t->obs && t->flags && t->reward && t->x && t->score);
    t->out = (struct rm_env_buffers){
        .obs = t->obs, .obs_stride = t->bytes, .reward = t->reward, .flags = t->flags};
    assert_int_equal(t->world.ops->reset(t->env, &t->out), 0);
}

static void close_twin(struct twin *t)
{
    t->world.ops->close(t->env);
    rm_world_close(&t->world);
    free(t->obs);
    free(t->flags);
    free(t->reward);
    free(t->x);
    free(t->score);
}

static void same_row(const struct twin *t, const float *x, const float *reward,
                     const uint8_t *flags, uint32_t row)
{
    for (uint32_t w = 0; w < t->worlds; w++)
        rm_features_take(t->agent, false, t->obs + (size_t)w * t->bytes,
                         t->x + (size_t)w * t->inputs);
    if (memcmp(x, t->x, (size_t)t->worlds * t->inputs * sizeof *x) != 0)
        fail_msg("row %u: observations differ", row);
    if (memcmp(reward, t->reward, t->worlds * sizeof *reward) != 0)
        fail_msg("row %u: rewards differ", row);
    if (memcmp(flags, t->flags, t->worlds) != 0)
        fail_msg("row %u: flags differ", row);
}

/* A rollout's rows against the twin's steps; the scores of its episodes against what was told. */
static uint32_t follow(struct twin *t, const struct rm_native_worlds *n)
{
    const uint32_t steps = n->rows.steps, worlds = n->rows.lanes;
    const size_t rows = (size_t)steps * worlds, more = rows + worlds;
    float *x = fetched(n->rows.x, more * t->inputs * sizeof *x);
    float *reward = fetched(n->rows.reward, more * sizeof *reward);
    uint8_t *flags = fetched(n->rows.flags, more);
    int32_t *action = fetched(n->rows.action, rows * sizeof *action);
    uint32_t ended = 0;
    for (uint32_t s = 0; s <= steps; s++) {
        const size_t at = (size_t)s * worlds;
        same_row(t, x + at * t->inputs, reward + at, flags + at, s);
        if (s == steps)
            break;
        const int32_t *actions[] = {action + at};
        assert_int_equal(t->world.ops->step(t->env, 0, actions, &t->out), 0);
        for (uint32_t w = 0; w < worlds; w++) {
            t->score[w] = (t->flags[w] & RM_ENV_FIRST ? 0 : t->score[w]) + (double)t->reward[w];
            if (!(t->flags[w] & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED)))
                continue;
            assert_true(ended < n->told->episodes);
            if (ended + RM_DEVICE_SCORES >= n->told->episodes)
                assert_true(n->told->scores[ended % RM_DEVICE_SCORES] == t->score[w]);
            ended++;
        }
    }
    assert_int_equal(n->told->episodes, ended);
    free(x);
    free(reward);
    free(flags);
    free(action);
    return ended;
}

/* And the worlds themselves. */
static void same_worlds(const struct twin *t, const struct rm_native_worlds *n)
{
    const size_t bytes = t->world.ops->state_size(t->env);
    void *own = malloc(bytes), *there = fetched(n->on.state, bytes);
    assert_non_null(own);
    assert_int_equal(t->world.ops->save_state(t->env, own), 0);
    assert_memory_equal(own, there, bytes);
    free(own);
    free(there);
}

static void transitions_are_the_cpus(const char *world, const char *options, uint32_t worlds,
                                     uint32_t steps, uint32_t rollouts, uint32_t least_episodes)
{
    struct run r;
    struct twin t;
    uint32_t ended = 0;
    open_session(world, options, worlds, steps);
    open_run(&r);
    open_twin(&t);
    for (uint32_t i = 0; i < rollouts; i++) {
        make_and_learn(&r);
        ended += follow(&t, &r.worlds);
        same_worlds(&t, &r.worlds);
    }
    assert_true(ended >= least_episodes);
    rm_test_device_fine(device);
    close_twin(&t);
    close_run(&r);
    rm_session_close(&session);
}

static void cartpole_is_the_cpus(void **state)
{
    (void)state;
    transitions_are_the_cpus("cartpole", "", 33, 128, 3, 200); /* 12,672 steps */
    transitions_are_the_cpus("cartpole", "\"max_steps\": 2", 40, 100, 1, RM_DEVICE_SCORES + 1);
    transitions_are_the_cpus("cartpole", "\"max_steps\": 9, \"velocities\": 0", 7, 40, 3, 60);
}

static void goodhart_is_the_cpus(void **state)
{
    (void)state;
    transitions_are_the_cpus("goodhart", "\"max_steps\": 60", 16, 128, 3, 90); /* 6,144 steps */
    transitions_are_the_cpus("goodhart",
                             "\"mode\": 1, \"compat\": 1, \"t0_stagger\": 1,"
                             " \"max_steps\": 25, \"food_max\": 4000, \"poison_min\":"
                             " 1000, \"poison_max\": 3000",
                             5, 64, 3, 20);
}

/* --- actions --------------------------------------------------------------------------------- */

/* As an actor draws them from the same logits: the same words, and so the same actions. */
static void actions_are_drawn_as_actors_draw(void **state)
{
    enum { WORLDS = 203, STEPS = 5 };
    static const uint32_t shapes[][3] = {{2, 0, 0}, {8, 0, 0}, {3, 4, 2}};
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct rm_categorical c = {0};
        for (; c.choices < 3 && shapes[s][c.choices]; c.choices++)
            c.actions += c.choice_actions[c.choices] = shapes[s][c.choices];
        const uint32_t outputs = c.actions + 1;
        struct rm_rng rng = rm_rng_at(4, RM_STREAM_TEST, 0, s);
        float *out = malloc(sizeof *out * WORLDS * outputs);
        uint32_t lane[WORLDS], word[WORLDS * 3];
        int32_t action[WORLDS * 3];
        float logp[WORLDS];
        for (size_t i = 0; i < (size_t)WORLDS * outputs; i++)
            out[i] = 4 * rm_rng_float(&rng) - 2;
        for (uint32_t i = 0; i < WORLDS; i++)
            lane[i] = i;
        const struct rm_device_stage stage = {.step = 1000 + s, .row = 2};
        struct rm_device_worlds on = {
            .seed = 77,
            .worlds = WORLDS,
            .to_action = device->device->alloc(device, sizeof action * STEPS, NULL),
            .to_logp = device->device->alloc(device, sizeof logp * STEPS, NULL),
            .to_value = device->device->alloc(device, sizeof logp * STEPS, NULL),
            .stage = device->device->alloc(device, sizeof stage, NULL),
        };
        float *there = device->device->alloc(device, sizeof *out * WORLDS * outputs, NULL);
        device->ops->upload(device, there, out, (size_t)WORLDS * outputs);
        device->ops->upload(device, (float *)(void *)on.stage, (const float *)(const void *)&stage,
                            sizeof stage / 4);
        const struct rm_device_draw draw = {.distribution = c, .out = there, .outputs = outputs};
        device->device->worlds->draw(device, &on, &draw);
        rm_categorical_words(&c, 77, 1000 + s, lane, WORLDS, word);
        rm_categorical_draw(&c, out, outputs, NULL, WORLDS, word, action, logp);
        int32_t *actions = fetched(on.to_action, sizeof action * STEPS);
        float *logps = fetched(on.to_logp, sizeof logp * STEPS);
        float *values = fetched(on.to_value, sizeof logp * STEPS);
        assert_memory_equal(actions + (size_t)2 * WORLDS * c.choices, action,
                            sizeof *action * WORLDS * c.choices);
        for (uint32_t i = 0; i < WORLDS; i++) {
            assert_true(fabsf(logps[2 * WORLDS + i] - logp[i]) < 1e-5f);
            assert_true(values[2 * WORLDS + i] == out[(i + 1) * outputs - 1]);
        }
        void *own[] = {on.to_action, on.to_logp, on.to_value, on.stage, there};
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            device->ops->release(device, own[i]);
        free(out);
        free(actions);
        free(logps);
        free(values);
    }
    rm_test_device_fine(device);
}

/* --- rollouts -------------------------------------------------------------------------------- */

/* Samples, discounts and counts by rollout_rows.h's rules; orders that are permutations of the
 * samples, of which no two are alike. */
static void rollouts_are_linked_and_ordered(void **state)
{
    struct run r;
    (void)state;
    open_session("cartpole", "\"max_steps\": 30", 19, 50);
    open_run(&r);
    uint32_t *before = NULL;
    for (int turn = 0; turn < 3; turn++) {
        const struct rm_rollout *rows = &r.worlds.rows;
        const size_t n = (size_t)rows->steps * rows->lanes;
        rm_native_worlds_make(&r.worlds);
        uint8_t *flags = fetched(rows->flags, n + rows->lanes);
        float *valid = fetched(rows->valid, n * 4), *discount = fetched(rows->discount, n * 4);
        uint32_t *sample = fetched(rows->sample, n * 4);
        uint32_t *order = fetched(r.worlds.orders.order, 2 * n * 4);
        struct rm_device_passes *passes = fetched(r.worlds.orders.passes, sizeof *passes);
        uint32_t samples = 0, answers = 0;
        for (size_t i = 0; i < n; i++) {
            const uint8_t now = flags[i], next = flags[i + rows->lanes];
            const bool ends = now & (RM_FLAG_TERMINATED | RM_FLAG_TRUNCATED);
            const bool is = !ends && !(next & RM_FLAG_FIRST);
            answers += !ends;
            assert_true(valid[i] == (is ? 1.0f : 0.0f));
            assert_true(discount[i] == (is && !(next & RM_FLAG_TERMINATED) ? rows->gamma : 0.0f));
            if (is)
                assert_int_equal(sample[samples++], i);
        }
        assert_true(samples > 0 && samples < n);
        assert_int_equal(r.worlds.told->samples, samples);
        assert_int_equal(r.worlds.told->answers, answers);
        assert_int_equal(passes->samples, samples);
        assert_int_equal(passes->entries, samples);
        assert_int_equal(passes->parts, 3);
        for (int pass = 0; pass < 2; pass++) {
            uint8_t *met = calloc(n, 1);
            uint32_t moved = 0;
            for (uint32_t i = 0; i < samples; i++) {
                const uint32_t row = order[pass * n + i];
                assert_true(row < n && valid[row] > 0 && !met[row]);
                met[row] = 1;
                moved += row != sample[i];
            }
            assert_true(moved > samples * 9 / 10);
            free(met);
        }
        assert_memory_not_equal(order, order + n, samples * 4);
        if (before)
            assert_memory_not_equal(order, before, samples * 4);
        free(before);
        before = order;
        free(flags);
        free(valid);
        free(discount);
        free(sample);
        free(passes);
    }
    free(before);
    rm_test_device_fine(device);
    close_run(&r);
    rm_session_close(&session);
}

/* Fewer samples than minibatches: each is one, and what is launched beyond them changes nothing. */
static void few_samples_are_minibatches_each(void **state)
{
    struct run r;
    struct rm_actor_critic_update u;
    (void)state;
    open_session("cartpole", "\"max_steps\": 1", 2, 2); /* every other row is an episode's last */
    open_run(&r);
    rm_native_worlds_make(&r.worlds);
    rm_actor_critic_begin(r.ac, 0, NULL);
    uint32_t launched = 0;
    for (; rm_actor_critic_due(r.ac); launched++)
        rm_actor_critic_step(r.ac, 1, 0, NULL);
    assert_true(rm_actor_critic_collect(r.ac, &u, NULL));
    assert_int_equal(r.worlds.told->samples, 2);
    assert_int_equal(launched, 6);
    assert_int_equal(u.made, 4);
    assert_int_equal(u.samples, 4);
    rm_test_device_fine(device);
    close_run(&r);
    rm_session_close(&session);
}

static void nobody_waits_and_nothing_is_allocated(void **state)
{
    struct run r;
    struct rm_device_counts before, after;
    (void)state;
    open_session("goodhart", "", 6, 16);
    open_run(&r);
    make_and_learn(&r);
    device->device->counts(device, &before);
    rm_native_worlds_make(&r.worlds);
    rm_actor_critic_begin(r.ac, r.number++, NULL);
    while (rm_actor_critic_due(r.ac))
        rm_actor_critic_step(r.ac, r.attempts + 1, 0, NULL);
    device->device->counts(device, &after);
    assert_int_equal(after.synchronizations, before.synchronizations);
    assert_int_equal(after.allocations, before.allocations);
    assert_true(after.bytes_in - before.bytes_in < 2000); /* rates of the updates */
    assert_int_equal(after.bytes_out - before.bytes_out, sizeof(struct rm_device_stage));
    assert_int_equal(after.graph_launches - before.graph_launches, 16 + 2 + 6);
    rm_test_device_fine(device);
    close_run(&r);
    rm_session_close(&session);
}

/* --- state ----------------------------------------------------------------------------------- */

static struct rm_state *state_of(struct run *r)
{
    struct rm_state *s;
    struct rm_error error = {""};
    assert_int_equal(rm_state_create(&s, &error), 0);
    rm_native_worlds_state(&r->worlds, s);
    rm_actor_critic_state(r->ac, s);
    assert_int_equal(rm_state_end(s, &error), 0);
    return s;
}

static void same_states(struct run *a, struct run *b)
{
    struct rm_state *x = state_of(a), *y = state_of(b);
    assert_int_equal(rm_state_count(x), rm_state_count(y));
    for (size_t i = 0; i < rm_state_count(x); i++) {
        const struct rm_state_part *p = rm_state_at(x, i), *q = rm_state_at(y, i);
        assert_string_equal(p->name, q->name);
        if (p->bytes != q->bytes || memcmp(p->data, q->data, p->bytes) != 0)
            fail_msg("%s differs", p->name);
    }
    rm_state_destroy(x);
    rm_state_destroy(y);
}

/* Loaded into another, it goes on as if it had never gone. */
static void resumes_to_the_bit(void **state)
{
    static const char *const worlds[] = {"cartpole", "goodhart"};
    (void)state;
    for (size_t w = 0; w < 2; w++) {
        struct run a, b;
        struct rm_error error = {""};
        open_session(worlds[w], "\"max_steps\": 20", 7, 24);
        open_run(&a);
        make_and_learn(&a);
        make_and_learn(&a);
        struct rm_state *s = state_of(&a);
        open_run(&b);
        rm_state_load(s);
        rm_native_worlds_state(&b.worlds, s);
        rm_actor_critic_state(b.ac, s);
        if (rm_state_end(s, &error))
            fail_msg("%s", error.text);
        rm_state_destroy(s);
        b.attempts = a.attempts;
        b.number = a.number;
        same_states(&a, &b);
        for (int i = 0; i < 2; i++) {
            make_and_learn(&a);
            make_and_learn(&b);
            same_states(&a, &b);
        }
        rm_test_device_fine(device);
        close_run(&a);
        close_run(&b);
        rm_session_close(&session);
    }
}

/* What no world can be in is refused. */
static void damaged_states_are_refused(void **state)
{
    struct run a;
    struct rm_error error = {""};
    (void)state;
    open_session("goodhart", "", 3, 8);
    open_run(&a);
    struct rm_state *s = state_of(&a);
    for (size_t i = 0; i < rm_state_count(s); i++) {
        const struct rm_state_part *p = rm_state_at(s, i);
        if (strcmp(p->name, "worlds.worlds") == 0)
            memset(p->data, 0xee, 64);
    }
    rm_state_load(s);
    rm_native_worlds_state(&a.worlds, s);
    assert_true(rm_state_end(s, &error) < 0);
    assert_non_null(strstr(error.text, "world 0"));
    rm_state_destroy(s);
    close_run(&a);
    rm_session_close(&session);
}

static void order_of_threads_changes_nothing(void **state)
{
    static const char *const orders[] = {"forward", "reverse", "random:5"};
    struct run runs[sizeof orders / sizeof *orders];
    (void)state;
    open_session("goodhart", "\"max_steps\": 12", 9, 20);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        rm_test_emulated_order(orders[i]);
        open_run(&runs[i]);
        make_and_learn(&runs[i]);
        make_and_learn(&runs[i]);
        same_states(&runs[0], &runs[i]);
    }
    rm_test_emulated_order("forward");
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        close_run(&runs[i]);
    rm_test_device_fine(device);
    rm_session_close(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cartpole_is_the_cpus),
        cmocka_unit_test(goodhart_is_the_cpus),
        cmocka_unit_test(actions_are_drawn_as_actors_draw),
        cmocka_unit_test(rollouts_are_linked_and_ordered),
        cmocka_unit_test(few_samples_are_minibatches_each),
        cmocka_unit_test(nobody_waits_and_nothing_is_allocated),
        cmocka_unit_test(resumes_to_the_bit),
        cmocka_unit_test(damaged_states_are_refused),
        cmocka_unit_test(order_of_threads_changes_nothing),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
