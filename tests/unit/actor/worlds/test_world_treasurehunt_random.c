/* treasurehunt under a uniformly random policy, against what is known exactly (a random agent's
 * move is a symmetric kernel on placements, so placements stay uniform) and against an independent
 * simulation of 100,000 episodes (mean score 257.65, standard deviation 54.1; gems on the grid).
 * The seed is fixed, so the outcome is too; bounds are four standard errors. */
#include "actor/worlds/builtin/treasurehunt.h"
#include "tests/support/batch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { WORLDS = 64, EPISODES = 100, TURNS = 50, AGENTS = 5, GAMES = WORLDS * EPISODES };

static struct {
    double score, score_of[AGENTS];
    double walls, blocked, moves, gems; /* agent-steps */
    double channel[5];                  /* summed observations */
    double on_grid[TURNS + 1];          /* gems after this turn */
    double reward_at[TURNS + 1];        /* of all agents, in this turn */
    uint64_t observations;
} total;

static void observe(const struct rm_test_batch *batch, uint32_t a)
{
    const struct rm_env_agent *agent = &batch->spec->agent[a];
    for (uint32_t w = 0; w < WORLDS; w++) {
        const uint8_t *obs = rm_test_batch_obs(batch, a, w);
        double sums[5] = {0};
        assert_int_equal(obs[12], RM_TREASUREHUNT_AGENT); /* itself: input 112 is 1 */
        for (uint32_t e = 0; e < 25; e++)
            for (uint32_t c = 0; c < 5; c++)
                sums[c] += agent->codebook[obs[e] * 5 + c];
        assert_true(sums[2] >= 9 && sums[2] <= 25);
        for (uint32_t c = 0; c < 5; c++)
            total.channel[c] += sums[c];
        total.observations++;
    }
}

static uint32_t neighbour(uint32_t at, int32_t action)
{
    static const int delta[4] = {-16, 16, -1, 1};
    return (uint32_t)((int)at + delta[action]);
}

/* Classifies what agent a did, from the states before and after its turn. */
static void account(const struct rm_treasurehunt_state *before,
                    const struct rm_treasurehunt_state *after, uint32_t a, int32_t action,
                    uint32_t turn)
{
    uint32_t from = before->y[a] * 16u + before->x[a], to = after->y[a] * 16u + after->x[a];
    int reward = after->reward[a];
    assert_true(to == from || to == neighbour(from, action));
    total.score += reward;
    total.score_of[a] += reward;
    total.reward_at[turn] += reward;
    total.walls += reward == -1;
    total.gems += reward == 10;
    total.moves += to != from;
    total.blocked += to == from && reward == 0;
}

static int run(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    static struct rm_treasurehunt_state before[WORLDS], after[WORLDS];
    struct rm_rng rng = rm_rng_at(77, RM_STREAM_TEST, 0, 0);
    rm_test_batch_open(&batch, "treasurehunt", NULL, NULL, 11, 0, WORLDS);
    rm_test_batch_reset(&batch);
    for (uint32_t row = 0; row < EPISODES * (TURNS + 1); row++) {
        uint32_t turn = row % (TURNS + 1) + 1;
        batch.world.ops->save_state(batch.env, before);
        for (uint32_t a = 0; a < AGENTS; a++) {
            if (turn <= TURNS)
                observe(&batch, a);
            for (uint32_t w = 0; w < WORLDS; w++)
                batch.actions[a][w] = (int32_t)(rm_rng_u32(&rng) >> 30);
            rm_test_batch_step(&batch, a);
        }
        if (turn > TURNS)
            continue;
        batch.world.ops->save_state(batch.env, after);
        for (uint32_t w = 0; w < WORLDS; w++) {
            int collected = 0;
            for (uint32_t a = 0; a < AGENTS; a++) {
                account(&before[w], &after[w], a, batch.actions[a][w], turn);
                collected += after[w].reward[a] == 10;
            }
            total.on_grid[turn] += __builtin_popcountll(before[w].gems) - collected;
        }
    }
    rm_test_batch_close(&batch);
    return 0;
}

static void near(const char *what, double value, double expected, double allowed)
{
    if (!(fabs(value - expected) <= allowed))
        fail_msg("%s is %.5f, expected %.5f within %.5f", what, value, expected, allowed);
}

static void test_score(void **unused)
{
    (void)unused;
    double error = 4 * 54.1 / sqrt(GAMES);
    near("mean score", total.score / GAMES, 257.65, error + 4 * 0.17);
    /* Acting first pays. */
    near("agent 0's score", total.score_of[0] / GAMES, 52.33, 4 * 0.08 * sqrt(1e5 / GAMES));
    near("agent 4's score", total.score_of[4] / GAMES, 50.67, 4 * 0.08 * sqrt(1e5 / GAMES));
}

static void test_rates(void **unused)
{
    (void)unused;
    double n = (double)GAMES * TURNS * AGENTS;
    /* An agent that has bumped once is more likely to be near the wall still: allow for steps of
     * one episode being correlated. */
    double correlated = 4 * 3;
    near("wall rate", total.walls / n, 1.0 / 8, correlated * sqrt(0.125 * 0.875 / n));
    near("blocked rate", total.blocked / n, 1.0 / 18, correlated * sqrt(0.0525 / n));
    near("move rate", total.moves / n, 59.0 / 72, correlated * sqrt(0.148 / n));
    near("gem rate", total.gems / n, 0.11556, correlated * sqrt(0.1022 / n));
}

static void test_observations(void **unused)
{
    (void)unused;
    double n = (double)total.observations;
    assert_true(total.observations == (uint64_t)GAMES * TURNS * AGENTS);
    assert_true(total.channel[0] == 0);
    near("mean wall sum", total.channel[1] / n, 11.4375, 0.05);
    near("mean sand sum", total.channel[2] / n, 18.0625, 0.05);
    near("mean agent sum", total.channel[4] / n, 25.0 / 12, 0.01);
}

static void test_gems(void **unused)
{
    (void)unused;
    static const struct {
        int turn;
        double mean;
    } known[] = {{1, 1.103}, {2, 2.123}, {5, 4.791}, {10, 8.238}, {25, 14.166}, {50, 17.744}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        char what[64];
        snprintf(what, sizeof(what), "gems after turn %d", known[i].turn);
        near(what, total.on_grid[known[i].turn] / GAMES, known[i].mean,
             4 * 0.012 * (1 + sqrt(1e5 / GAMES)));
    }
    static const struct {
        int turn;
        double mean;
    } rewards[] = {{1, 0.167}, {10, 3.579}, {25, 5.778}, {50, 6.904}};
    for (size_t i = 0; i < sizeof(rewards) / sizeof(rewards[0]); i++) {
        char what[64];
        snprintf(what, sizeof(what), "reward of turn %d", rewards[i].turn);
        near(what, total.reward_at[rewards[i].turn] / GAMES, rewards[i].mean,
             4 * 0.026 * (1 + sqrt(1e5 / GAMES)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_score),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_observations),
        cmocka_unit_test(test_gems),
    };
    return cmocka_run_group_tests(tests, run, NULL);
}
