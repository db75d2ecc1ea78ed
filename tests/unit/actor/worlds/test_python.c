/* Python worlds as batches of worlds: what they show, how they begin and end, in however many
 * workers. */
#include "actor/worlds/bridges/python.h"
#include "learner/net/features.h"
#include "shm/base/clock.h"
#include "shm/station.h"
#include "tests/support/batch.h"
#include "tests/support/python.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS 60

static struct rm_test_batch batch;
static struct rm_world_config config;

static void open_world(const char *python, const char *options, uint32_t worlds, uint32_t workers)
{
    rm_test_python_place(workers, 60, RM_SANDBOX_AUTO);
    rm_test_python_config(&config, python, options);
    rm_test_batch_open_configured(&batch, &config, 7, 0, worlds);
    rm_test_batch_reset(&batch);
}

static void step(uint32_t phase)
{
    rm_test_batch_step(&batch, phase);
    rm_test_batch_guards(&batch);
}

static const float *floats(uint32_t agent, uint32_t world)
{
    return rm_test_batch_obs(&batch, agent, world);
}

/* NOLINTBEGIN(bugprone-macro-parentheses): lists, not expressions */
#define ROW(agent, world, flag, paid, ...)                                                         \
    row(agent, world, (const float[]){__VA_ARGS__},                                                \
        sizeof((float[]){__VA_ARGS__}) / sizeof(float), flag, paid)
/* NOLINTEND(bugprone-macro-parentheses) */

/* The last number of an observation is the seed; other tests check it. */
static void row(uint32_t agent, uint32_t world, const float *wanted, size_t n, uint8_t flags,
                float reward)
{
    const float *obs = floats(agent, world);
    for (size_t i = 0; i < n; i++)
        if (obs[i] != wanted[i])
            fail_msg("element %zu is %g, not %g", i, (double)obs[i], (double)wanted[i]);
    assert_int_equal(batch.out[agent].flags[world], flags);
    assert_true(batch.out[agent].reward[world] == reward);
}

/* World 0 goes on, world 1 goes back and forth until its time is over. */
static void rows_are_those_of_the_world(void **state)
{
    (void)state;
    open_world("games:corridor", "{\"length\": 3, \"most\": 5}", 2, 1);
    assert_int_equal(batch.spec->agents, 1);
    assert_int_equal(batch.spec->agent[0].dtype, RM_ENV_F32);
    assert_int_equal(batch.spec->agent[0].shape[0], 3);
    assert_int_equal(batch.spec->agent[0].actions, 2);
    assert_int_equal(batch.spec->agent[0].has_mask, 0);
    ROW(0, 0, RM_ENV_FIRST, 0, 0, 0);
    ROW(0, 1, RM_ENV_FIRST, 0, 0, 0);
    const float begun = floats(0, 0)[2];
    for (int t = 1; t <= 6; t++) {
        batch.actions[0][0] = 1;
        batch.actions[0][1] = 0;
        step(0);
        if (t <= 3)
            ROW(0, 0, t == 3 ? RM_ENV_TERMINATED : 0, t == 3 ? 1.0f : -0.5f, (float)t, (float)t);
        else
            ROW(0, 0, t == 4 ? RM_ENV_FIRST : 0, t == 4 ? 0.0f : -0.5f, (float)(t - 4),
                (float)(t - 4));
        if (t <= 5)
            ROW(0, 1, t == 5 ? RM_ENV_TRUNCATED : 0, -0.5f, 0, (float)t);
        else
            ROW(0, 1, RM_ENV_FIRST, 0, 0, 0);
    }
    assert_true(floats(0, 0)[2] != begun); /* another episode, another seed */
    rm_test_batch_reset(&batch);
    ROW(0, 0, RM_ENV_FIRST, 0, 0, 0, begun);
    rm_test_batch_close(&batch);
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t rows_of(uint32_t phase)
{
    uint64_t hash = 0;
    for (uint32_t a = 0; a < batch.spec->agents; a++)
        for (uint32_t w = 0; batch.spec->agent[a].phase == phase && w < batch.worlds; w++) {
            hash = mix(hash, rm_test_batch_obs(&batch, a, w), batch.obs_bytes[a]);
            hash = mix(hash, &batch.out[a].reward[w], sizeof(float));
            hash = mix(hash, &batch.out[a].flags[w], 1);
        }
    return hash;
}

static void open_to_play(const char *python, uint64_t seed, uint32_t worlds, uint32_t workers)
{
    rm_test_python_place(workers, 60, RM_SANDBOX_AUTO);
    rm_test_python_config(&config, python, NULL);
    rm_test_batch_open_configured(&batch, &config, seed, 3, worlds);
    rm_test_batch_reset(&batch);
}

/* A check sum of all rows of some steps with random actions. */
static uint64_t play(const char *python, uint64_t seed, uint32_t worlds, uint32_t workers)
{
    uint64_t hash = 0;
    open_to_play(python, seed, worlds, workers);
    for (uint64_t t = 0; t < STEPS; t++)
        for (uint32_t phase = 0; phase < batch.spec->phases; phase++) {
            const uint64_t rows = rows_of(phase);
            hash = mix(hash, &rows, sizeof rows);
            rm_test_batch_draw(&batch, 5, 3, phase, t);
            rm_test_batch_step(&batch, phase);
        }
    rm_test_batch_close(&batch);
    return hash;
}

/* The same, each group being asked for its next step before the others are heard. */
static uint64_t play_in_groups(const char *python, uint64_t seed, uint32_t worlds, uint32_t workers,
                               uint32_t groups)
{
    uint64_t hash = 0;
    open_to_play(python, seed, worlds, workers);
    const struct rm_world_groups *ops = batch.world.groups;
    assert_int_equal(ops->count(batch.env), groups);
    for (uint64_t t = 0; t < STEPS; t++) {
        for (uint32_t left = (1u << groups) - 1; left;) {
            const uint32_t g = ops->first(batch.env, left);
            assert_true(left & 1u << g);
            left &= ~(1u << g);
            assert_int_equal(ops->receive(batch.env, g, batch.out), 0);
            rm_test_batch_guards(&batch);
            rm_test_batch_draw(&batch, 5, 3, 0, t);
            const uint64_t rows = left ? 0 : rows_of(0); /* all are there, and none of the next */
            hash = left ? hash : mix(hash, &rows, sizeof rows);
            assert_int_equal(ops->ask(batch.env, g, batch.const_actions), 0);
        }
    }
    rm_test_batch_close(&batch);
    return hash;
}

static bool has_stepper(void)
{
    return access(rm_test_build_path("lib/ringmaster-stepper.so"), R_OK) == 0;
}

/* With the loop in Python, which is for interpreters that cannot run the one in C. */
static uint64_t play_in_python(const char *python, uint64_t seed, uint32_t worlds, uint32_t workers)
{
    setenv("RINGMASTER_STEPPER", "/nowhere", 1);
    const uint64_t hash = play(python, seed, worlds, workers);
    setenv("RINGMASTER_STEPPER", rm_test_build_path("lib/ringmaster-stepper.so"), 1);
    return hash;
}

/* A world whose reset() sets step(). */
static void steps_are_those_of_the_episode(void **state)
{
    (void)state;
    open_to_play("games:switching", 7, 2, 1);
    for (uint64_t t = 0; t < STEPS; t++) {
        rm_test_batch_draw(&batch, 5, 3, 0, t);
        step(0);
        for (uint32_t w = 0; w < 2; w++) {
            const bool fast = (uint32_t)floats(0, w)[2] % 2;
            if (!(batch.out[0].flags[w] & RM_ENV_FIRST))
                assert_int_equal(batch.out[0].reward[w] == 2, fast);
        }
    }
    rm_test_batch_close(&batch);
}

static void the_loop_is_in_c(void **state)
{
    (void)state;
    open_to_play("games:called", 7, 2, 1);
    rm_test_batch_draw(&batch, 5, 3, 0, 0);
    step(0);
    assert_true(floats(0, 0)[0] == (has_stepper() ? 1 : 0));
    rm_test_batch_close(&batch);
}

/* Whatever generator a world draws from, and wherever it is. */
static void rows_depend_on_seed_and_world_alone(void **state)
{
    static const char *const worlds[] = {
        "games:corridor", "games:drawing",          "games:drawing_late", "games:built",
        "games:sampling", "games:samplings",        "games:masked",       "games:several",
        "games:meeting",  "games:sampling_meeting", "games:nim",          "games:sampling_nim",
        "games:levers",   "games:both_levers",      "games:varied",       "games:switching"};
    (void)state;
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        const uint64_t one = play(worlds[i], 7, 5, 1);
        for (uint32_t workers = 1; workers <= 5; workers += 4)
            if (play(worlds[i], 7, 5, workers) != one)
                fail_msg("%s: other rows with %u workers", worlds[i], workers);
        if (has_stepper() && play_in_python(worlds[i], 7, 5, 3) != one)
            fail_msg("%s: other rows with the loop in Python", worlds[i]);
        if (i < 4 && play(worlds[i], 8, 5, 1) == one)
            fail_msg("%s: the same rows with another seed", worlds[i]);
    }
}

/* Worlds of one process that draw when they are made are not alike. */
static void worlds_are_made_with_seeds_of_their_own(void **state)
{
    (void)state;
    open_to_play("games:built", 7, 2, 1);
    assert_true(floats(0, 0)[0] != floats(0, 1)[0]);
    rm_test_batch_close(&batch);
}

/* Two halves of a worker's, of several workers those of each; together they are all. */
static void groups_step_apart(void **state)
{
    static const struct {
        uint32_t worlds, workers, groups;
    } cases[] = {{1, 1, 1}, {2, 1, 2}, {5, 1, 2}, {5, 2, 2}, {5, 3, 3}, {12, 6, 4}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t worlds = cases[i].worlds, workers = cases[i].workers;
        if (play("games:drawing", 7, worlds, workers) !=
            play_in_groups("games:drawing", 7, worlds, workers, cases[i].groups))
            fail_msg("%u worlds of %u workers: other rows in groups", worlds, workers);
        uint32_t next = 0;
        open_to_play("games:corridor", 7, worlds, workers);
        for (uint32_t g = 0; g < cases[i].groups; g++) {
            const struct rm_world_group group = batch.world.groups->group(batch.env, g);
            assert_int_equal(group.first, next);
            assert_true(group.worlds > 0);
            next += group.worlds;
        }
        assert_int_equal(next, worlds);
        rm_test_batch_close(&batch);
    }
    open_to_play("games:nim", 7, 4, 2); /* in turn */
    assert_int_equal(batch.world.groups->count(batch.env), 1);
    rm_test_batch_close(&batch);
    open_world("games:corridors", "{\"mode\": \"NEXT_STEP\"}", 4, 1); /* all at once */
    assert_int_equal(batch.world.groups->count(batch.env), 1);
    rm_test_batch_close(&batch);
}

/* Worlds differ in how long they take. */
static void who_is_ready_first_comes_first(void **state)
{
    char folder[] = "/tmp/rm-test-XXXXXX", path[64], options[96];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/held", folder);
    snprintf(options, sizeof options, "{\"file\": \"%s\"}", path);
    rm_test_python_place(2, 60, RM_SANDBOX_OFF);
    rm_test_python_config(&config, "games:waiting", options);
    rm_test_batch_open_configured(&batch, &config, 7, 0, 2);
    rm_test_batch_reset(&batch);
    const struct rm_world_groups *ops = batch.world.groups;
    FILE *held = fopen(path, "w");
    assert_non_null(held);
    fprintf(held, "%d", (int)floats(0, 0)[2]);
    fclose(held);
    for (uint32_t g = 0; g < 2; g++)
        assert_int_equal(ops->ask(batch.env, g, batch.const_actions), 0);
    assert_int_equal(ops->first(batch.env, 3), 1);
    assert_int_equal(ops->receive(batch.env, 1, batch.out), 0);
    assert_true(floats(0, 1)[1] == 1);
    assert_int_equal(ops->ask(batch.env, 1, batch.const_actions), 0); /* it goes on meanwhile */
    assert_int_equal(ops->first(batch.env, 3), 1);
    unlink(path);
    assert_int_equal(ops->first(batch.env, 1), 0);
    assert_int_equal(ops->receive(batch.env, 0, batch.out), 0);
    assert_true(floats(0, 0)[1] == 1);
    rm_test_batch_close(&batch);
    rmdir(folder);
}

static void steps_of_worlds_can_be_lengthened(void **state)
{
    static struct rm_experiment e = {.debug = {.lengthen = RM_STATION_WORLD, .lengthen_by = 2}};
    (void)state;
    rm_python_lengthen(&e);
    open_world("games:slow", NULL, 1, 1);
    const uint64_t begin = rm_now_ns();
    for (int t = 0; t < 4; t++)
        step(0);
    assert_in_range(rm_now_ns() - begin, 4 * 3 * 5000000, UINT64_MAX);
    rm_test_batch_close(&batch);
    e.debug.lengthen_by = 0;
    rm_python_lengthen(&e);
}

/* One of several observations: its name, type and place; a code is one-hot, `codes` wide. */
static void expect_named(uint32_t i, const char *name, uint32_t dtype, uint32_t elements, size_t at,
                         uint32_t codes)
{
    const struct rm_env_agent *agent = &batch.spec->agent[0];
    const struct rm_env_observation *of = &agent->observation[i];
    assert_string_equal(of->name, name);
    assert_int_equal(of->dtype, dtype);
    assert_int_equal(rm_observation_elements(of), elements);
    assert_int_equal(rm_features_place(agent, 0, i).at, at);
    assert_int_equal(of->codes, codes);
    assert_int_equal(of->channels, codes);
    for (uint32_t k = 0; k < codes * codes; k++)
        assert_true(of->codebook[k] == (k / codes == k % codes ? 1 : 0));
}

/* Leaves of Dicts and Tuples, by their keys, each in its own type, at multiples of 4 bytes. */
static void leaves_are_named_observations(void **state)
{
    static const uint8_t first[] = {1, 2, 3, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 2, 0, 0};
    static const uint8_t second[] = {1, 2, 3, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 0, 0};
    (void)state;
    open_world("games:several", NULL, 2, 1);
    const struct rm_env_agent *agent = &batch.spec->agent[0];
    assert_int_equal(agent->observations, 4);
    expect_named(0, "cells", RM_ENV_U8, 4, 0, 0);
    expect_named(1, "hand", RM_ENV_CODE8, 1, 4, 3);
    expect_named(2, "more.0", RM_ENV_U8, 2, 8, 0);
    expect_named(3, "more.1", RM_ENV_CODE8, 2, 12, 3);
    assert_int_equal(rm_features_bytes(agent), sizeof first);
    assert_true(agent->observation[0].high == 9 && agent->observation[1].high == 2);
    assert_int_equal(agent->has_mask, 1);
    assert_int_equal(agent->choices, 2);
    assert_int_equal(agent->choice_actions[0], 2);
    assert_int_equal(agent->choice_actions[1], 3);
    assert_memory_equal(rm_test_batch_obs(&batch, 0, 1), first, sizeof first);
    assert_memory_equal(rm_test_batch_mask(&batch, 0, 1), "\1\1\0\1\1", 5);
    for (uint32_t w = 0; w < 2; w++) {
        batch.actions[0][2 * w] = 1;
        batch.actions[0][2 * w + 1] = 1 + (int32_t)w;
    }
    step(0);
    for (uint32_t w = 0; w < 2; w++) {
        assert_memory_equal(rm_test_batch_obs(&batch, 0, w), second, sizeof second);
        assert_true(batch.out[0].reward[w] == 81 + (float)w);
    }
    rm_test_batch_close(&batch);
}

static void give(uint32_t w, uint32_t word, float real)
{
    const uint32_t words = rm_test_batch_words(&batch.spec->agent[0]);
    memcpy(&batch.actions[0][w * words + word], &real, sizeof real);
}

/* A Box of actions; and two of them beside a choice, which comes first. */
static void real_actions_arrive(void **state)
{
    (void)state;
    open_world("games:levers", NULL, 2, 2);
    const struct rm_env_agent *agent = &batch.spec->agent[0];
    assert_int_equal(agent->actions, 0);
    assert_int_equal(agent->boxes, 1);
    assert_string_equal(agent->box[0].name, "action");
    assert_int_equal(agent->box[0].values, 2);
    assert_true(agent->box[0].low[1] == -2 && agent->box[0].high[0] == 2);
    for (uint32_t w = 0; w < 2; w++) {
        give(w, 0, 0.25f + (float)w);
        give(w, 1, -2);
    }
    step(0);
    ROW(0, 0, 0, 0, 0.25f, -2, 0);
    ROW(0, 1, 0, 0, 1.25f, -2, 0);
    rm_test_batch_close(&batch);
    open_world("games:both_levers", NULL, 1, 1);
    agent = &batch.spec->agent[0];
    assert_int_equal(agent->actions, 3);
    assert_int_equal(agent->boxes, 2);
    assert_string_equal(agent->box[0].name, "pull");
    assert_string_equal(agent->box[1].name, "push");
    batch.actions[0][0] = 2;
    give(0, 1, 0.1f); /* above 0.1, which is no float */
    give(0, 2, 1.5f);
    give(0, 3, -0.5f);
    step(0);
    ROW(0, 0, 0, 2, 1.5f, -0.5f, 0.1f);
    rm_test_batch_close(&batch);
}

static void small_types_are_kept(void **state)
{
    int16_t place;
    (void)state;
    open_world("games:numbered", NULL, 1, 1);
    assert_int_equal(batch.spec->agent[0].dtype, RM_ENV_I16);
    assert_int_equal(batch.spec->agent[0].shape[0], 1);
    assert_true(batch.spec->agent[0].high == 299);
    batch.actions[0][0] = 1;
    step(0);
    memcpy(&place, rm_test_batch_obs(&batch, 0, 0), sizeof place);
    assert_int_equal(place, 1);
    rm_test_batch_close(&batch);
}

static void libraries_use_one_thread_unless_told_otherwise(void **state)
{
    (void)state;
    setenv("OPENBLAS_NUM_THREADS", "3", 1);
    unsetenv("OMP_NUM_THREADS");
    unsetenv("MKL_NUM_THREADS");
    open_world("games:threads_of_libraries", NULL, 1, 1);
    ROW(0, 0, RM_ENV_FIRST, 0, 1, 3, 1);
    rm_test_batch_close(&batch);
    unsetenv("OPENBLAS_NUM_THREADS");
}

/* In a confined worker, which starts no processes. */
static void glfw_is_imported_without_a_process(void **state)
{
    (void)state;
    rm_test_python_place(1, 60, RM_SANDBOX_AUTO);
    rm_test_python_config(&config, "games:rendered", NULL);
    rm_test_batch_open_configured(&batch, &config, 7, 0, 1);
    rm_test_batch_close(&batch);
}

static void masks_come_from_the_info(void **state)
{
    (void)state;
    open_world("games:masked", NULL, 1, 1);
    assert_memory_equal(rm_test_batch_mask(&batch, 0, 0), "\0\1", 2);
    batch.actions[0][0] = 1;
    step(0);
    assert_memory_equal(rm_test_batch_mask(&batch, 0, 0), "\1\1", 2);
    rm_test_batch_close(&batch);
}

/* --- figures ---------------------------------------------------------------------------------- */

static double figure(uint32_t world, uint32_t f)
{
    return batch.out[0].figures[world * batch.spec->figures + f];
}

/* Names are found by playing to an episode's end, sorted; what is no number is none. */
static void figures_are_numbers_of_the_last_info(void **state)
{
    (void)state;
    open_world("games:counting", NULL, 2, 2);
    assert_true(batch.spec->figures == 3 || batch.spec->figures == 4);
    assert_string_equal(batch.spec->figure[0].name, "endless");
    assert_string_equal(batch.spec->figure[1].name, "lost");
    assert_string_equal(batch.spec->figure[batch.spec->figures - 1].name, "way_made");
    for (int t = 1; t <= 9; t++) {
        batch.actions[0][0] = 1;
        batch.actions[0][1] = 0;
        step(0);
        if (t != 4)
            continue;
        assert_int_equal(batch.out[0].flags[0], RM_ENV_TERMINATED);
        assert_true(isnan(figure(0, 0)));
        assert_true(figure(0, 1) == 1);
        assert_true(figure(0, batch.spec->figures - 1) == 4);
    }
    assert_int_equal(batch.out[0].flags[1], RM_ENV_TRUNCATED);
    assert_true(figure(1, 1) == 0.5);
    assert_true(figure(1, batch.spec->figures - 1) == 0);
    rm_test_batch_close(&batch);

    open_world("games:listing", NULL, 1, 1);
    assert_int_equal(batch.spec->figures, 2);
    assert_string_equal(batch.spec->figure[0].name, "rare");
    rm_test_batch_close(&batch);
}

/* What workers do not find by playing is no figure, and one of them says so. */
static void late_figures_are_reported(void **state)
{
    (void)state;
    rm_test_said_begin();
    open_world("games:counting_late", NULL, 2, 2);
    assert_int_equal(batch.spec->figures, 0);
    for (int t = 1; t <= 3100; t++)
        step(0);
    assert_int_equal(batch.out[0].flags[1], RM_ENV_TRUNCATED);
    rm_test_batch_close(&batch);
    const char *said = rm_test_said_end(), *sentence =
                                               "came too late to be a figure: list it in the "
                                               "environment's metadata[\"figures\"]";
    assert_non_null(strstr(said, "<4>info has 'way made' at an episode's end"));
    assert_non_null(strstr(said, sentence));
}

/* --- showing ---------------------------------------------------------------------------------- */

static void worlds_show_themselves(void **state)
{
    static char text[4096];
    static uint8_t rgb[16 * 8 * 3];
    (void)state;
    rm_python_show(false);
    open_world("games:drawn", NULL, 3, 2);
    batch.actions[0][0] = batch.actions[0][1] = 0;
    batch.actions[0][2] = 1;
    step(0);
    const struct rm_env_ops *ops = batch.world.ops;
    assert_int_equal(ops->show_text(batch.env, 0, text, sizeof text), 7);
    assert_string_equal(text, "\u2588...\n");
    ops->show_text(batch.env, 2, text, sizeof text);
    assert_string_equal(text, ".\u2588..\n");
    rm_test_batch_close(&batch);

    for (int strict = 0; strict < 2; strict++) { /* in letters */
        open_world("games:drawn",
                   strict ? "{\"modes\": [\"rgb_array\"]}"
                          : "{\"modes\": [\"rgb_array\"], \"strict\": false}",
                   1, 1);
        ops->show_text(batch.env, 0, text, sizeof text);
        assert_string_equal(text, "@@@@\n@@@@\n@@@@\n@@@@\n");
        rm_test_batch_close(&batch);
    }

    open_world("games:alone", NULL, 1, 1); /* one a process, and the first was not rendered */
    ops->show_text(batch.env, 0, text, sizeof text);
    assert_string_equal(text, "@@@@\n@@@@\n@@@@\n@@@@\n");
    rm_test_batch_close(&batch);

    open_world("games:corridor", NULL, 1, 1); /* what it sees */
    ops->show_text(batch.env, 0, text, sizeof text);
    assert_memory_equal(text, "agent_0: [", 10);
    rm_test_batch_close(&batch);

    open_world("games:nim", NULL, 1, 1); /* of agents who act in turn */
    ops->show_text(batch.env, 0, text, sizeof text);
    assert_memory_equal(text, "x: [", 4);
    rm_test_batch_close(&batch);

    rm_python_show(true);
    open_world("games:drawn", NULL, 2, 1);
    assert_int_equal(batch.spec->picture_width, 16);
    assert_int_equal(batch.spec->picture_height, 8);
    batch.actions[0][0] = batch.actions[0][1] = 1;
    step(0);
    assert_int_equal(ops->show_picture(batch.env, 1, rgb), 0);
    for (int x = 0; x < 16; x++)
        assert_int_equal(rgb[3 * (16 * 5 + x)], x >= 4 && x < 8 ? 255 : 0);
    rm_test_batch_close(&batch);
    rm_python_show(false);
}

/* --- vector environments ---------------------------------------------------------------------- */

/* World 0 goes on and ends after 4 steps, world 1 stays and is cut off after 9; then both begin.
 * World 2 does as world 0, beside an environment that is no world. */
static void vector_worlds(const char *options, bool dummy_step)
{
    open_world("games:corridors", options, 3, 1);
    for (int t = 1; t <= 11; t++) {
        for (uint32_t w = 0; w < 3; w++)
            batch.actions[0][w] = w % 2 == 0;
        step(0);
        for (uint32_t w = 0; w < 3; w += 2) {
            /* where it has begun anew before anybody could answer, it went back at the start */
            const int late = t > 4 && dummy_step;
            const int place = t <= 4 ? t : t <= 5 ? 0 : t - 5;
            if (t <= 8)
                ROW(0, w,
                    t == 4   ? RM_ENV_TERMINATED
                    : t == 5 ? RM_ENV_FIRST
                             : 0,
                    t == 4   ? 1.0f
                    : t == 5 ? 0.0f
                             : -0.5f,
                    (float)place, (float)(t <= 4 ? t : t - 5 + late));
            if (w + 1 == 3)
                continue;
            if (t <= 9)
                ROW(0, w + 1, t == 9 ? RM_ENV_TRUNCATED : 0, -0.5f, 0, (float)t);
            else
                ROW(0, w + 1, t == 10 ? RM_ENV_FIRST : 0, t == 10 ? 0 : -0.5f, 0,
                    (float)(t - 10 + dummy_step));
        }
    }
    rm_test_batch_close(&batch);
}

static void vector_environments_are_several_worlds(void **state)
{
    (void)state;
    vector_worlds("{\"mode\": \"NEXT_STEP\"}", false);
    vector_worlds("{\"mode\": \"SAME_STEP\"}", true);
    vector_worlds("{\"mode\": \"SAME_STEP\", \"final\": \"final_observation\"}", true);
    vector_worlds("{\"mode\": \"DISABLED\"}", false);
}

/* World 0 ends after 4 steps, world 1 after 9. */
static void figures_come_from_final_infos(void **state)
{
    (void)state;
    open_world("games:corridors", "{\"mode\": \"SAME_STEP\"}", 2, 1);
    assert_int_equal(batch.spec->figures, 1);
    assert_string_equal(batch.spec->figure[0].name, "steps");
    for (int t = 1; t <= 9; t++) {
        batch.actions[0][0] = 1;
        batch.actions[0][1] = 0;
        step(0);
        if (t == 4)
            assert_true(figure(0, 0) == 4);
    }
    assert_true(figure(1, 0) == 9);
    rm_test_batch_close(&batch);
}

/* World 0 goes on; the step that starts its second episode takes what is legal at the start, where
 * at the end of the first everything was. */
static void starts_of_vector_environments_are_legal(void **state)
{
    static const char *const options[] = {
        "{\"mode\": \"NEXT_STEP\", \"masked\": \"info\"}",
        "{\"mode\": \"SAME_STEP\", \"masked\": \"info\"}",
        "{\"mode\": \"DISABLED\", \"masked\": \"info\"}",
        "{\"mode\": \"NEXT_STEP\", \"masked\": \"observation\"}",
        "{\"mode\": \"SAME_STEP\", \"masked\": \"observation\"}",
        "{\"mode\": \"DISABLED\", \"masked\": \"observation\"}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const float on = strstr(options[i], "SAME") ? 1 : 0; /* it has gone on already */
        open_world("games:corridors", options[i], 1, 1);
        assert_memory_equal(rm_test_batch_mask(&batch, 0, 0), "\0\1", 2);
        for (int t = 1; t <= 5; t++) {
            batch.actions[0][0] = 1;
            step(0);
            ROW(0, 0,
                t < 4    ? 0
                : t == 4 ? RM_ENV_TERMINATED
                         : RM_ENV_FIRST,
                t < 4    ? -0.5f
                : t == 4 ? 1.0f
                         : 0.0f,
                t <= 4 ? (float)t : on, t <= 4 ? (float)t : on);
        }
        assert_memory_equal(rm_test_batch_mask(&batch, 0, 0), on > 0 ? "\1\1" : "\0\1", 2);
        rm_test_batch_close(&batch);
    }
}

/* --- PettingZoo ------------------------------------------------------------------------------- */

static void agents_come_and_go(void **state)
{
    static const uint8_t flags[][3] = {
        {RM_ENV_FIRST, RM_ENV_FIRST, RM_ENV_DEAD},
        {0, 0, RM_ENV_FIRST},
        {0, RM_ENV_TERMINATED, 0},
        {0, RM_ENV_DEAD, 0},
        {RM_ENV_TRUNCATED, RM_ENV_DEAD, RM_ENV_TRUNCATED},
        {RM_ENV_FIRST, RM_ENV_FIRST, RM_ENV_DEAD},
    };
    (void)state;
    open_world("games:meeting", NULL, 2, 2);
    assert_int_equal(batch.spec->agents, 3);
    assert_int_equal(batch.spec->phases, 1);
    assert_string_equal(batch.spec->agent[2].name, "c_c");
    for (size_t t = 0; t < sizeof flags / sizeof *flags; t++) {
        for (uint32_t a = 0; a < 3; a++)
            for (uint32_t w = 0; w < 2; w++) {
                assert_int_equal(batch.out[a].flags[w], flags[t][a]);
                if (!(flags[t][a] & RM_ENV_DEAD))
                    ROW(a, w, flags[t][a], flags[t][a] & RM_ENV_FIRST ? 0 : 2, (float)(t % 5),
                        (float)a);
                batch.actions[a][w] = 2;
            }
        step(0);
    }
    rm_test_batch_close(&batch);
}

/* x takes one stick, o two: o wins. Both see the end, and the next game begins. */
static void turns_are_phases(void **state)
{
    (void)state;
    open_world("games:nim", NULL, 1, 1);
    assert_int_equal(batch.spec->phases, 2);
    assert_int_equal(batch.spec->agent[1].phase, 1);
    assert_int_equal(batch.spec->agent[0].dtype, RM_ENV_I8);
    for (int game = 0; game < 2; game++) {
        const int8_t *x = rm_test_batch_obs(&batch, 0, 0), *o = rm_test_batch_obs(&batch, 1, 0);
        assert_int_equal(batch.out[0].flags[0], RM_ENV_FIRST);
        assert_int_equal(*x, 3);
        assert_memory_equal(rm_test_batch_mask(&batch, 0, 0), "\1\1", 2);
        batch.actions[0][0] = 0;
        step(0);
        assert_int_equal(batch.out[1].flags[0], RM_ENV_FIRST);
        assert_int_equal(*o, 2);
        batch.actions[1][0] = 1;
        step(1);
        assert_int_equal(batch.out[0].flags[0], RM_ENV_TERMINATED);
        assert_true(batch.out[0].reward[0] == -1);
        assert_int_equal(*x, 0);
        step(0);
        assert_int_equal(batch.out[1].flags[0], RM_ENV_TERMINATED);
        assert_true(batch.out[1].reward[0] == 1);
        step(1);
    }
    rm_test_batch_close(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_world),
        cmocka_unit_test(steps_are_those_of_the_episode),
        cmocka_unit_test(the_loop_is_in_c),
        cmocka_unit_test(rows_depend_on_seed_and_world_alone),
        cmocka_unit_test(worlds_are_made_with_seeds_of_their_own),
        cmocka_unit_test(groups_step_apart),
        cmocka_unit_test(who_is_ready_first_comes_first),
        cmocka_unit_test(steps_of_worlds_can_be_lengthened),
        cmocka_unit_test(leaves_are_named_observations),
        cmocka_unit_test(real_actions_arrive),
        cmocka_unit_test(small_types_are_kept),
        cmocka_unit_test(libraries_use_one_thread_unless_told_otherwise),
        cmocka_unit_test(glfw_is_imported_without_a_process),
        cmocka_unit_test(masks_come_from_the_info),
        cmocka_unit_test(figures_are_numbers_of_the_last_info),
        cmocka_unit_test(late_figures_are_reported),
        cmocka_unit_test(worlds_show_themselves),
        cmocka_unit_test(vector_environments_are_several_worlds),
        cmocka_unit_test(figures_come_from_final_infos),
        cmocka_unit_test(starts_of_vector_environments_are_legal),
        cmocka_unit_test(agents_come_and_go),
        cmocka_unit_test(turns_are_phases),
    };
    if (!rm_test_python()) {
        puts("1..0 # SKIP /usr/bin/python3 has no NumPy");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
