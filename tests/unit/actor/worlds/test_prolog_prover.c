/* The world "prover" in Prolog (config/prolog/prover.pl) beside the built-in one: a thousand
 * queries of the synthetic family, and of a knowledge base with many rules, by random actions. The
 * same successors in the same order, up to the names of variables, the same rewards and ends. */
#include "actor/worlds/builtin/prover_family.h"
#include "shm/base/draw.h"
#include "tests/support/batch.h"
#include "tests/support/effort.h"
#include "tests/support/prover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { EPISODES = 1000, SEED = 5, COLUMNS = 3, TOKEN = RM_PROVER_GOALS * COLUMNS };
enum { TOKENS = 1 + RM_PROVER_ACTIONS };

static struct rm_test_prover_folder folder;
static struct rm_prover_kb *kb;

static int make_family(void **unused)
{
    (void)unused;
    static const char *const names[] = {"train.txt", "valid.txt", "test.txt", "rules.pl"};
    char *text[RM_PROVER_FAMILY_COUNT], error[512];
    size_t bytes[RM_PROVER_FAMILY_COUNT];
    assert_int_equal(rm_prover_family_make(text, bytes), 0);
    rm_test_prover_folder_make(&folder);
    rm_test_prover_folder_write(&folder, "facts.pl", text[RM_PROVER_FAMILY_TRAIN],
                                bytes[RM_PROVER_FAMILY_TRAIN]);
    for (int i = 0; i < RM_PROVER_FAMILY_COUNT; i++) {
        rm_test_prover_folder_write(&folder, names[i], text[i], bytes[i]);
        free(text[i]);
    }
    kb = rm_prover_kb_open(folder.path, 512, error, sizeof error);
    assert_non_null(kb);
    return 0;
}

static int drop_family(void **unused)
{
    (void)unused;
    rm_prover_kb_close(kb);
    rm_test_prover_folder_remove(&folder);
    return 0;
}

/* Variables of a token are numbered in the order in which they appear. */
static void rename_variables(int32_t *token)
{
    int32_t names[TOKEN] = {0};
    int known = 0;
    for (int i = 0; i < TOKEN; i++) {
        if (i % COLUMNS == 0 || token[i] <= (int32_t)kb->constants)
            continue;
        int n = 0;
        while (n < known && names[n] != token[i])
            n++;
        names[n] = token[i];
        known += n == known;
        token[i] = (int32_t)kb->constants + 1 + n;
    }
}

static void write_token(int32_t *token, const rm_prover_atom *atom, uint32_t count)
{
    memset(token, 0, TOKEN * sizeof *token);
    for (uint32_t i = 0; i < count && i < RM_PROVER_GOALS; i++) {
        token[i * COLUMNS] = (int32_t)rm_prover_pred(atom[i]);
        token[i * COLUMNS + 1] = (int32_t)rm_prover_first(atom[i]);
        token[i * COLUMNS + 2] = (int32_t)rm_prover_second(atom[i]);
    }
    rename_variables(token);
}

static void same_choice(const struct rm_test_batch *batch, const struct rm_prover_episode *native)
{
    int32_t token[TOKEN], shown[TOKEN];
    for (uint32_t t = 0; t < TOKENS; t++) {
        const bool state = t == 0, there = t <= native->successors;
        memcpy(token, (const int32_t *)rm_test_batch_obs(batch, 0, 0) + t * TOKEN, sizeof token);
        rename_variables(token);
        write_token(shown, state ? native->shown.atom : native->successor[there ? t - 1 : 0],
                    state   ? native->shown.count
                    : there ? native->size[t - 1]
                            : 0);
        if (memcmp(token, shown, sizeof token) != 0)
            fail_msg("%s %u differs: %s", state ? "state" : "successor", t,
                     rm_test_prover_choice(kb, native));
    }
}

/* The query that the file asks in an episode: by its only random number. */
static rm_prover_atom query_of(uint64_t episode)
{
    struct rm_rng rng;
    rm_draw_world(&rng, SEED, 0, episode);
    const uint64_t high = rm_draw_u32(&rng), rand = (high << 32 | rm_draw_u32(&rng)) >> 2;
    return kb->split[RM_PROVER_TRAIN].query[(rand >> 1) % kb->split[RM_PROVER_TRAIN].count];
}

/* Random actions in both; counts the steps, and returns the number of proofs. */
static uint32_t play_both(const char *data, uint32_t episodes, uint32_t *steps)
{
    struct rm_world_config config = {.name = "prover"};
    struct rm_test_batch batch;
    struct rm_prover_episode native;
    struct rm_prover_engine *engine = rm_prover_engine_create(kb, false);
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    uint32_t proved = 0;
    float reward;
    assert_non_null(engine);
    assert_non_null(getcwd(config.directory, sizeof config.directory));
    snprintf(config.prolog, sizeof config.prolog, "config/prolog/prover.pl");
    snprintf(config.options, sizeof config.options,
             "{\"data\": \"%s\", \"labels\": \"positive\", \"max_errors\": 0}", data);
    rm_test_batch_open_configured(&batch, &config, SEED, 0, 1);
    rm_test_batch_reset(&batch);
    for (uint64_t episode = 0; episode < episodes; episode++) {
        int end = 0;
        assert_int_equal(batch.out[0].flags[0], RM_ENV_FIRST);
        rm_prover_begin(engine, &native, query_of(episode), true);
        while (!end) {
            same_choice(&batch, &native);
            const uint32_t action = rm_rng_below(&rng, native.successors);
            end = rm_prover_play(engine, &native, action, &reward);
            batch.actions[0][0] = (int32_t)action;
            rm_test_batch_step(&batch, 0);
            assert_true(batch.out[0].reward[0] == reward);
            assert_int_equal(batch.out[0].flags[0], end & RM_PROVER_TERMINATED ? RM_ENV_TERMINATED
                                                    : end                      ? RM_ENV_TRUNCATED
                                                                               : 0);
            ++*steps;
        }
        proved += native.proved;
        rm_test_batch_step(&batch, 0);
    }
    rm_test_batch_close(&batch);
    rm_prover_engine_destroy(engine);
    return proved;
}

static void test_agrees(void **unused)
{
    (void)unused;
    const uint32_t episodes = rm_test_effort(EPISODES, 40);
    uint32_t steps = 0;
    assert_in_range(play_both(folder.path, episodes, &steps), episodes / 5, episodes * 3 / 5);
    assert_true(steps > episodes);
}

/* More states than actions: the shortest are offered. Queries need no dot, and may have a depth. */
static void test_many_states(void **unused)
{
    (void)unused;
    static const char facts[] = "p(a,b).\n", train[] = "r(a,b)\n\nr(b,a). 2\n% the end";
    struct rm_prover_kb *family = kb;
    struct rm_test_prover_folder own;
    char rules[2048] = "", error[512];
    uint32_t steps = 0;
    for (int i = 1; i <= 12; i++)
        sprintf(rules + strlen(rules), "r(A,B) :- q(A,c%d), q(B,c%d).\n", i, i);
    for (int i = 1; i <= 11; i++)
        sprintf(rules + strlen(rules), "r(A,B) :- q(A,c%d).\n", i);
    rm_test_prover_folder_make(&own);
    rm_test_prover_folder_write(&own, "facts.pl", facts, strlen(facts));
    rm_test_prover_folder_write(&own, "rules.pl", rules, strlen(rules));
    rm_test_prover_folder_write(&own, "train.txt", train, strlen(train));
    kb = rm_prover_kb_open(own.path, 512, error, sizeof error);
    assert_non_null(kb);
    assert_int_equal(kb->split[RM_PROVER_TRAIN].count, 2);
    assert_int_equal(play_both(own.path, 20, &steps), 0);
    assert_true(steps > 20);
    rm_prover_kb_close(kb);
    rm_test_prover_folder_remove(&own);
    kb = family;
}

/* A query that is corrupted is known nowhere, and has one constant for another. */
static void test_corrupted(void **unused)
{
    (void)unused;
    struct rm_world_config config = {.name = "prover"};
    struct rm_test_batch batch;
    enum { WORLDS = 64 };
    uint32_t queries = 0;
    assert_non_null(getcwd(config.directory, sizeof config.directory));
    snprintf(config.prolog, sizeof config.prolog, "config/prolog/prover.pl");
    snprintf(config.options, sizeof config.options,
             "{\"data\": \"%s\", \"labels\": \"corrupted\", \"follow\": 0}", folder.path);
    rm_test_batch_open_configured(&batch, &config, SEED, 0, WORLDS);
    rm_test_batch_reset(&batch);
    for (uint32_t w = 0; w < WORLDS; w++) {
        const int32_t *row = rm_test_batch_obs(&batch, 0, w);
        const rm_prover_atom query =
            rm_prover_atom_of((uint32_t)row[0], (uint32_t)row[1], (uint32_t)row[2]);
        assert_false(rm_prover_is_known(kb, query));
        struct rm_rng rng;
        rm_draw_world(&rng, SEED, w, 0);
        const uint64_t high = rm_draw_u32(&rng), rand = (high << 32 | rm_draw_u32(&rng)) >> 2;
        const rm_prover_atom from =
            kb->split[RM_PROVER_TRAIN].query[(rand >> 1) % kb->split[RM_PROVER_TRAIN].count];
        assert_int_equal(rm_prover_pred(query), rm_prover_pred(from));
        queries += (rm_prover_first(query) == rm_prover_first(from)) +
                   (rm_prover_second(query) == rm_prover_second(from));
    }
    assert_int_equal(queries, WORLDS);
    rm_test_batch_close(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees),
        cmocka_unit_test(test_many_states),
        cmocka_unit_test(test_corrupted),
    };
    const char *plugin = rm_test_build_path("lib/ringmaster-prolog.so");
    if (access(plugin, R_OK) != 0) {
        puts("1..0 # SKIP built without SWI-Prolog");
        return 77;
    }
    setenv("RINGMASTER_PROLOG_PLUGIN", plugin, 1);
    return cmocka_run_group_tests(tests, make_family, drop_family);
}
