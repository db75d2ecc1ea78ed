/* What every world promises (actor/env.h): rows that are in order, results that depend on the seed,
 * the world id and the actions but not on the batch, and states that go on as if nothing had
 * happened. The worked example outside the tree is tried as well. */
#include "actor/worlds/rule_check.h"
#include "tests/support/batch.h"
#include "tests/support/effort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CHANCE = 0, FIXED = 1, LIBRARY = 2 }; /* FIXED: nothing in it is random */

static const struct subject {
    const char *name, *options;
    int kind;
} subjects[] = {
    {"treasurehunt", NULL, CHANCE},
    {"treasurehunt", "agents=3 size=6 turns=7 spawn=0.2 final_observation=1", CHANCE},
    {"treasurehunt", "agents=1 size=4 turns=1", CHANCE},
    {"cartpole", NULL, CHANCE},
    {"cartpole", "velocities=0 max_steps=12", CHANCE},
    {"acrobot", "max_steps=60", CHANCE},
    {"mountaincar", NULL, CHANCE},
    {"mountaincar_continuous", "max_steps=90", CHANCE},
    {"pendulum", NULL, CHANCE},
    {"frozenlake", NULL, CHANCE},
    {"frozenlake", "size=8 slippery=0", FIXED},
    {"taxi", NULL, CHANCE},
    {"taxi", "rain=1 mask=0 max_steps=30", CHANCE},
    {"taxi", "fickle_passenger=1 fickle_probability=0.9", CHANCE},
    {"frozenlake", "desc=[\"SFFHF\",\"FHSFG\",\"GFFFS\"] reward_ice=-0.25", CHANCE},
    {"goodhart", "max_steps=60", CHANCE},
    {"goodhart", "mode=1 compat=1 t0_stagger=1 food_min=4000 food_max=4000 max_steps=200", CHANCE},
    {"darkroom", NULL, FIXED},
    {"darkroom", "goals=2 numbered=1 truncate=1", FIXED},
    {"darkroom", "goal=[0,8] compat=1", FIXED},
    {"sokoban", NULL, CHANCE},
    {"sokoban", "size=5 boxes=1 pulls=3 mask=0 max_steps=30", CHANCE},
    {"connect", NULL, FIXED},
    {"connect", "columns=3 rows=3 line=3 gravity=0 opening=1", CHANCE},
    {"connect", "opponent=1 second=1", CHANCE},
    {"prover", NULL, CHANCE},
    {"prover", "compat=1 split=\"test\" double_reset=1", CHANCE},
    {"prover", "labels=\"corrupted\" variables=40000", CHANCE},
    {"platformer", NULL, CHANCE},
    {"platformer", "stage=\"c3\" max_steps=40 observe=[\"doors\",\"game_state\"]", CHANCE},
    {"platformer", "stage=\"c2\" max_steps=150", CHANCE},
    {"platformer", "stage=\"m1\" compat=1 levels=3 max_steps=90 observe=[\"reach\"]", CHANCE},
    {"count", NULL, FIXED},
    {"count", "agents=5 phases=3 length=3 mask=1", FIXED},
    {"count", "agents=2 choices=3 mask=1", FIXED},
    {"count", "choices=2 length=3", FIXED},
    {"count", "agents=2 phases=2 stamp=1 max_steps=9", FIXED},
    {"pairing", NULL, CHANCE},
    {"pairing", "max_steps=3", CHANCE},
    {"tictactoe", NULL, LIBRARY | FIXED},
    {"tictactoe", "opening=1 draw=0.5", LIBRARY},
};
enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]), STEPS = 230 };

static void open_subject(struct rm_test_batch *batch, const struct subject *subject, uint64_t seed,
                         uint64_t first, uint32_t worlds)
{
    rm_test_batch_open(batch, subject->name,
                       subject->kind & LIBRARY ? rm_test_build_path("examples/tictactoe.so") : NULL,
                       subject->options, seed, first, worlds);
}

/* Everything that an agent of a world was given in one row. */
static uint64_t digest(const struct rm_test_batch *batch, uint32_t a, uint32_t w, uint64_t hash)
{
    const uint8_t *parts[4] = {rm_test_batch_obs(batch, a, w), rm_test_batch_mask(batch, a, w),
                               (const uint8_t *)&batch->out[a].reward[w], &batch->out[a].flags[w]};
    size_t sizes[4] = {batch->obs_bytes[a], parts[1] ? batch->spec->agent[a].actions : 0,
                       sizeof(float), 1};
    for (int p = 0; p < 4; p++)
        for (size_t i = 0; i < sizes[p]; i++)
            hash = (hash ^ parts[p][i]) * 0x100000001b3u;
    return hash;
}

/* Plays `steps` steps from time `from`; adds every row of world w to hash[w]. */
static void play(struct rm_test_batch *batch, uint64_t first, uint64_t from, int steps,
                 uint64_t *hash)
{
    for (int t = 0; t < steps; t++) {
        for (uint32_t phase = 0; phase < batch->spec->phases; phase++) {
            for (uint32_t a = 0; a < batch->spec->agents; a++)
                if (batch->spec->agent[a].phase == phase)
                    for (uint32_t w = 0; w < batch->worlds; w++)
                        hash[w] = digest(batch, a, w, hash[w]);
            rm_test_batch_draw(batch, 99, first, phase, from + (uint64_t)t);
            rm_test_batch_step(batch, phase);
        }
    }
}

/* Ids that cross 2^32 in the middle of a batch. */
static const uint64_t firsts[] = {0, 1000, 0xfffffffcu};

static void test_batches(void **unused)
{
    (void)unused;
    for (int s = 0; s < SUBJECTS; s++) {
        for (uint32_t f = 0; f < 3; f += rm_test_effort(1, 2)) {
            static const uint32_t splits[][3] = {{8, 0, 0}, {4, 4, 0}, {1, 2, 5}};
            uint64_t hash[3][8] = {{0}};
            for (int split = 0; split < 3; split++) {
                uint32_t at = 0;
                for (int part = 0; part < 3 && splits[split][part]; part++) {
                    struct rm_test_batch batch;
                    open_subject(&batch, &subjects[s], 7, firsts[f] + at, splits[split][part]);
                    rm_test_batch_reset(&batch);
                    play(&batch, firsts[f] + at, 0, STEPS, &hash[split][at]);
                    rm_test_batch_close(&batch);
                    at += splits[split][part];
                }
            }
            assert_memory_equal(hash[0], hash[1], sizeof(hash[0]));
            assert_memory_equal(hash[0], hash[2], sizeof(hash[0]));
        }
    }
}

/* Worlds that draw numbers go different ways in different worlds, episodes and seeds. */
static void test_seeds_and_worlds_differ(void **unused)
{
    (void)unused;
    for (int s = 0; s < SUBJECTS; s++) {
        if (subjects[s].kind & FIXED)
            continue;
        uint64_t hash[2][4] = {{0}};
        for (int seed = 0; seed < 2; seed++) {
            struct rm_test_batch batch;
            open_subject(&batch, &subjects[s], 7 + (uint64_t)seed, 0, 4);
            rm_test_batch_reset(&batch);
            for (uint32_t w = 0; w < 4; w++)
                hash[seed][w] = digest(&batch, 0, w, 0);
            play(&batch, 0, 0, STEPS, hash[seed]);
            rm_test_batch_close(&batch);
        }
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < i; j++)
                assert_true(hash[i / 4][i % 4] != hash[j / 4][j % 4]);
    }
}

/* What `ringctl check-world` tries: order and flags of rows, batches, saved states, reset(). */
static void test_rules_are_kept(void **unused)
{
    (void)unused;
    for (int s = 0; s < SUBJECTS; s++) {
        static struct rm_rule_check check;
        struct rm_world world;
        struct rm_world_config config;
        struct rm_error error = {""};
        const char *library =
            subjects[s].kind & LIBRARY ? rm_test_build_path("examples/tictactoe.so") : NULL;
        rm_test_world_config(&config, subjects[s].name, subjects[s].options);
        if (rm_world_open(&world, subjects[s].name, library, &error) < 0 ||
            rm_rule_check_run(&check, &world, &config, 7, 0, &error) < 0)
            fail_msg("%s: %s", subjects[s].name, error.text);
        for (int r = 0; r < RM_RULE_COUNT; r++)
            if (check.rule[r].tried != (r != RM_RULE_PROCESS) || check.rule[r].times)
                fail_msg("%s %s: %s: %s", subjects[s].name,
                         subjects[s].options ? subjects[s].options : "", rm_rule_words[r],
                         check.rule[r].text);
        assert_true(check.episodes > 0);
        assert_int_equal(check.seedless, (subjects[s].kind & FIXED) != 0);
        rm_world_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_seeds_and_worlds_differ),
        cmocka_unit_test(test_rules_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
