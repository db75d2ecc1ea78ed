#include "tests/support/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

enum { GUARD_BYTES = 4, GUARD = 0xA5 };

void rm_test_world_config(struct rm_world_config *config, const char *name, const char *options)
{
    *config = (struct rm_world_config){0};
    snprintf(config->name, sizeof(config->name), "%s", name);
    char text[512];
    snprintf(text, sizeof(text), "%s", options ? options : "");
    json_t *object = json_object();
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        assert_non_null(equals);
        *equals = 0;
        json_t *value = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
        json_object_set_new(object, word, value ? value : json_string(equals + 1));
    }
    char *json = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    assert_non_null(json);
    assert_true(strlen(json) < sizeof(config->options));
    snprintf(config->options, sizeof(config->options), "%s", json);
    free(json);
    json_decref(object);
}

uint32_t rm_test_batch_choices(const struct rm_env_agent *agent)
{
    return agent->choices > 1 ? agent->choices : agent->actions > 0;
}

uint32_t rm_test_batch_words(const struct rm_env_agent *agent)
{
    return rm_test_batch_choices(agent) + rm_env_reals(agent);
}

static void *guarded(size_t bytes)
{
    void *block = malloc(bytes);
    assert_non_null(block);
    memset(block, GUARD, bytes);
    return block;
}

void rm_test_batch_open(struct rm_test_batch *batch, const char *name, const char *library,
                        const char *options, uint64_t seed, uint64_t first_world, uint32_t worlds)
{
    static struct rm_world_config config;
    rm_test_world_config(&config, name, options);
    if (library)
        snprintf(config.library, sizeof(config.library), "%s", library);
    rm_test_batch_open_configured(batch, &config, seed, first_world, worlds);
}

void rm_test_batch_open_configured(struct rm_test_batch *batch,
                                   const struct rm_world_config *config, uint64_t seed,
                                   uint64_t first_world, uint32_t worlds)
{
    struct rm_error error = {{0}};
    memset(batch, 0, sizeof(*batch));
    if (rm_world_open_configured(&batch->world, config, &error) < 0 ||
        rm_world_create(&batch->world, config, seed, first_world, worlds, &batch->env, &error) < 0)
        fail_msg("%s: %s", config->name, error.text);
    batch->spec = batch->world.ops->describe(batch->env);
    batch->worlds = worlds;
    for (uint32_t a = 0; a < batch->spec->agents; a++) {
        const struct rm_env_agent *agent = &batch->spec->agent[a];
        struct rm_env_buffers *out = &batch->out[a];
        batch->obs_bytes[a] = rm_env_obs_bytes(agent);
        out->obs_stride = (ptrdiff_t)batch->obs_bytes[a] + GUARD_BYTES;
        out->obs = guarded(worlds * (size_t)out->obs_stride);
        if (agent->has_mask) {
            out->mask_stride = agent->actions + GUARD_BYTES;
            out->mask = guarded(worlds * (size_t)out->mask_stride);
        }
        out->reward = guarded(worlds * sizeof(float) + GUARD_BYTES);
        out->flags = guarded(worlds + GUARD_BYTES);
        out->figures = guarded(worlds * batch->spec->figures * sizeof(double) + GUARD_BYTES);
        batch->actions[a] = calloc((size_t)worlds * rm_test_batch_words(agent), sizeof(int32_t));
        batch->const_actions[a] = batch->actions[a];
    }
}

void rm_test_batch_close(struct rm_test_batch *batch)
{
    rm_test_batch_guards(batch);
    for (uint32_t a = 0; a < batch->spec->agents; a++) {
        free(batch->out[a].obs);
        free(batch->out[a].mask);
        free(batch->out[a].reward);
        free(batch->out[a].flags);
        free(batch->out[a].figures);
        free(batch->actions[a]);
    }
    batch->world.ops->close(batch->env);
    rm_world_close(&batch->world);
}

void rm_test_batch_reset(struct rm_test_batch *batch)
{
    assert_int_equal(batch->world.ops->reset(batch->env, batch->out), 0);
}

void rm_test_batch_step(struct rm_test_batch *batch, uint32_t phase)
{
    if (batch->world.ops->step(batch->env, phase, batch->const_actions, batch->out) != 0)
        fail_msg("step: %s", batch->world.ops->last_error(batch->env));
}

/* A legal action, each with equal probability. */
static int32_t draw_action(struct rm_rng *rng, uint32_t actions, const uint8_t *mask)
{
    uint32_t legal = 0;
    for (uint32_t i = 0; i < actions; i++)
        legal += !mask || mask[i];
    assert_true(legal > 0);
    uint32_t n = rm_rng_below(rng, legal), action = 0;
    for (;; action++)
        if ((!mask || mask[action]) && n-- == 0)
            return (int32_t)action;
}

void rm_test_batch_draw(struct rm_test_batch *batch, uint64_t seed, uint64_t first_world,
                        uint32_t phase, uint64_t time)
{
    for (uint32_t a = 0; a < batch->spec->agents; a++) {
        const struct rm_env_agent *agent = &batch->spec->agent[a];
        if (agent->phase != phase)
            continue;
        for (uint32_t w = 0; w < batch->worlds; w++) {
            struct rm_rng rng =
                rm_rng_at(seed, RM_STREAM_TEST, (uint32_t)(first_world + w), time * 64 + a);
            const uint8_t *mask = rm_test_batch_mask(batch, a, w);
            uint32_t choices = rm_test_batch_choices(agent), words = rm_test_batch_words(agent);
            float low[64], high[64];
            for (uint32_t c = 0; c < choices; c++) {
                uint32_t actions = choices > 1 ? agent->choice_actions[c] : agent->actions;
                batch->actions[a][w * words + c] = draw_action(&rng, actions, mask);
                mask = mask ? mask + actions : NULL;
            }
            assert_true(words - choices <= 64);
            rm_env_real_bounds(agent, low, high);
            for (uint32_t i = 0; i < words - choices; i++) {
                const float real = low[i] + (high[i] - low[i]) * rm_rng_float(&rng);
                memcpy(&batch->actions[a][w * words + choices + i], &real, sizeof real);
            }
        }
    }
}

const void *rm_test_batch_obs(const struct rm_test_batch *batch, uint32_t agent, uint32_t world)
{
    return (const char *)batch->out[agent].obs + (ptrdiff_t)world * batch->out[agent].obs_stride;
}

const uint8_t *rm_test_batch_mask(const struct rm_test_batch *batch, uint32_t agent, uint32_t world)
{
    const struct rm_env_buffers *out = &batch->out[agent];
    return out->mask ? out->mask + (ptrdiff_t)world * out->mask_stride : NULL;
}

static void check_guard(const void *at)
{
    for (int i = 0; i < GUARD_BYTES; i++)
        assert_int_equal(((const uint8_t *)at)[i], GUARD);
}

void rm_test_batch_guards(const struct rm_test_batch *batch)
{
    for (uint32_t a = 0; a < batch->spec->agents; a++) {
        for (uint32_t w = 0; w < batch->worlds; w++) {
            check_guard((const char *)rm_test_batch_obs(batch, a, w) + batch->obs_bytes[a]);
            if (batch->out[a].mask)
                check_guard(rm_test_batch_mask(batch, a, w) + batch->spec->agent[a].actions);
        }
        check_guard(batch->out[a].reward + batch->worlds);
        check_guard(batch->out[a].flags + batch->worlds);
    }
}

const char *rm_test_build_path(const char *name)
{
    static char path[1200];
    ssize_t n = readlink("/proc/self/exe", path, 1000);
    assert_true(n > 0);
    path[n] = 0;
    char *tests = strstr(path, "/tests/");
    for (char *next = tests; next; next = strstr(next + 1, "/tests/"))
        tests = next; /* the last one */
    assert_non_null(tests);
    snprintf(tests + 1, 150, "%s", name);
    return path;
}
