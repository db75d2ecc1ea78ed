#include "tests/support/world_twin.h"

#include "learner/net/features.h"
#include "tests/support/unit.h"
#include "tests/support/world_learner.h"

#include <stdlib.h>
#include <string.h>

void rm_test_twin_open(struct rm_test_twin *t, const struct rm_session *session, uint32_t first,
                       uint32_t worlds)
{
    const struct rm_experiment *e = &session->experiment;
    struct rm_error error = {""};
    assert_int_equal(rm_world_open(&t->world, e->world.name, e->world.library, &error), 0);
    assert_int_equal(rm_world_create(&t->world, &e->world, e->seed, first, worlds, &t->env, &error),
                     0);
    t->agent = t->world.ops->describe(t->env)->agent;
    t->worlds = worlds;
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

void rm_test_twin_close(struct rm_test_twin *t)
{
    t->world.ops->close(t->env);
    rm_world_close(&t->world);
    free(t->obs);
    free(t->flags);
    free(t->reward);
    free(t->x);
    free(t->score);
}

static void same_row(const struct rm_test_twin *t, const float *x, const float *reward,
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

static void same_worlds(const struct rm_test_twin *t, const struct rm_native_part *n)
{
    const size_t bytes = t->world.ops->state_size(t->env);
    void *own = malloc(bytes), *there = rm_test_device_fetch(n->backend, n->on.state, bytes);
    assert_non_null(own);
    assert_int_equal(t->world.ops->save_state(t->env, own), 0);
    assert_memory_equal(own, there, bytes);
    free(own);
    free(there);
}

uint32_t rm_test_twin_follow(struct rm_test_twin *t, const struct rm_native_part *n)
{
    const uint32_t steps = n->rows.steps, worlds = n->rows.lanes;
    const size_t rows = (size_t)steps * worlds, more = rows + worlds;
    float *x = rm_test_device_fetch(n->backend, n->rows.x, more * t->inputs * sizeof *x);
    float *reward = rm_test_device_fetch(n->backend, n->rows.reward, more * sizeof *reward);
    uint8_t *flags = rm_test_device_fetch(n->backend, n->rows.flags, more);
    int32_t *action = rm_test_device_fetch(n->backend, n->rows.action, rows * sizeof *action);
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
            assert_true(ended < n->results->episodes);
            if (ended + RM_DEVICE_SCORES >= n->results->episodes)
                assert_true(n->results->scores[ended % RM_DEVICE_SCORES] == t->score[w]);
            ended++;
        }
    }
    assert_int_equal(n->results->episodes, ended);
    same_worlds(t, n);
    free(x);
    free(reward);
    free(flags);
    free(action);
    return ended;
}
