/* Scores and ends of episodes, and checks of what a world returns. */
#include "actor/worlds/arrivals.h"
#include "actor/worlds/scan.h"
#include "learner/net/features.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { WORLDS = 11, ELEMENTS = 3, ACTIONS = 4 };

static const float codebook[5] = {0, 1, 2, 3, 4};
static struct rm_env_agent agents[2];
static const char *const causes[] = {"hunger", "poison", "age", NULL};
static const struct rm_env_figure figures[] = {{.name = "food"},
                                               {.name = "cause", .words = causes}};
static const struct rm_env_spec spec = {
    .name = "made_up", .agents = 2, .phases = 2, .agent = agents, .figures = 2, .figure = figures};

struct seen {
    uint32_t agent_episodes[2], world_episodes[WORLDS];
    double agent_score[2], world_score;
    double food, cause; /* of the last one */
    uint32_t steps;
    uint64_t world_steps;
};

static struct seen seen;
static struct rm_arrivals arrivals;
static float obs[WORLDS * ELEMENTS], reward[WORLDS];
static uint8_t flags[WORLDS], mask[WORLDS * ACTIONS];
static double came_to[WORLDS * 2];

static void on_agent(void *self, uint32_t agent, uint32_t world, const struct rm_episode *episode)
{
    struct seen *s = self;
    (void)world;
    s->agent_episodes[agent]++;
    s->agent_score[agent] = episode->score;
    s->food = episode->figures[0];
    s->cause = episode->figures[1];
    s->steps = episode->steps;
}

static void on_world(void *self, uint32_t world, double score, uint64_t steps)
{
    struct seen *s = self;
    s->world_episodes[world]++;
    s->world_score = score;
    s->world_steps = steps;
}

static int setup(void **state)
{
    (void)state;
    seen = (struct seen){0};
    for (uint32_t a = 0; a < 2; a++)
        agents[a] = (struct rm_env_agent){.name = a ? "second" : "first",
                                          .phase = a,
                                          .dtype = RM_ENV_F32,
                                          .dims = 1,
                                          .shape = {ELEMENTS},
                                          .actions = ACTIONS};
    memset(came_to, 0, sizeof came_to);
    memset(obs, 0, sizeof obs);
    memset(reward, 0, sizeof reward);
    memset(mask, 1, sizeof mask);
    memset(flags, RM_ENV_FIRST, sizeof flags);
    return rm_arrivals_create(&arrivals, &spec, 100, WORLDS,
                              (struct rm_episode_sink){&seen, on_agent, on_world}, NULL);
}

static int teardown(void **state)
{
    (void)state;
    rm_arrivals_destroy(&arrivals);
    return 0;
}

static int take_masked(uint32_t agent, uint64_t step, const uint8_t *legal, uint32_t *counted,
                       struct rm_error *error)
{
    struct rm_arrival in = {.worlds = WORLDS,
                            .obs = (const uint8_t *)obs,
                            .mask = legal,
                            .reward = reward,
                            .flags = flags,
                            .figures = came_to};
    return rm_arrivals_count(&arrivals, agent, step, &in, counted, error);
}

static uint32_t counted_lanes(uint32_t agent, uint64_t step)
{
    struct rm_error error = {""};
    uint32_t counted = 0;
    int rc = take_masked(agent, step, NULL, &counted, &error);
    if (rc < 0)
        fprintf(stderr, "%s\n", error.text);
    assert_int_equal(rc, 0);
    return counted;
}

static void refused(uint32_t agent, uint64_t step, const uint8_t *legal, const char *const *words)
{
    struct rm_error error = {""};
    uint32_t counted;

    assert_int_equal(take_masked(agent, step, legal, &counted, &error), -EBADMSG);
    for (; *words; words++)
        if (!strstr(error.text, *words))
            fail_msg("\"%s\" does not name %s", error.text, *words);
}
#define REFUSED(agent, step, legal, ...)                                                           \
    refused(agent, step, legal, (const char *const[]){__VA_ARGS__, NULL})

static void scores_add_up_over_an_episode(void **state)
{
    (void)state;
    for (uint32_t w = 0; w < WORLDS; w++)
        reward[w] = 1000; /* meaningless with first */
    assert_int_equal(counted_lanes(0, 0), WORLDS);
    assert_int_equal(counted_lanes(1, 0), WORLDS);
    memset(flags, 0, sizeof flags);
    for (uint32_t w = 0; w < WORLDS; w++)
        reward[w] = (float)w;
    assert_int_equal(counted_lanes(0, 1), WORLDS);
    assert_int_equal(counted_lanes(1, 1), WORLDS);
    flags[9] = RM_ENV_TERMINATED;
    assert_int_equal(counted_lanes(0, 2), WORLDS - 1);
    assert_int_equal(seen.agent_episodes[0], 1);
    assert_true(seen.agent_score[0] == 18);
    assert_int_equal(seen.world_episodes[9], 0); /* the second agent has not ended */
    flags[9] = RM_ENV_TRUNCATED | RM_ENV_VOID;
    assert_int_equal(counted_lanes(1, 2), WORLDS - 1);
    assert_int_equal(seen.world_episodes[9], 1);
    assert_true(seen.world_score == 36);
    assert_true(arrivals.episodes[9] == 1 && arrivals.finished == 1);
    assert_int_equal(arrivals.age[9], 2);
    flags[9] = RM_ENV_FIRST;
    assert_int_equal(counted_lanes(0, 3), WORLDS);
    assert_int_equal(arrivals.age[9], 0);
    assert_int_equal(arrivals.age[8], 3);
    assert_true(arrivals.score[9] == 0 && arrivals.score[8] == 24);
}

/* Figures of last rows are taken, and those of others are not looked at. */
static void figures_come_with_last_rows(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * WORLDS; i++)
        came_to[i] = INFINITY;
    counted_lanes(0, 0);
    memset(flags, 0, sizeof flags);
    counted_lanes(0, 1);
    counted_lanes(0, 2);
    flags[3] = RM_ENV_TERMINATED;
    came_to[6] = 2.5;
    came_to[7] = 2;
    counted_lanes(0, 3);
    assert_true(seen.food == 2.5 && seen.cause == 2);
    assert_int_equal(seen.steps, 3);
    memset(flags, 0, sizeof flags);
    flags[3] = RM_ENV_FIRST;
    flags[5] = RM_ENV_TRUNCATED;
    came_to[10] = came_to[11] = NAN; /* it has none */
    counted_lanes(0, 4);
    assert_true(isnan(seen.food) && isnan(seen.cause));
    memset(flags, 0, sizeof flags);
    flags[5] = RM_ENV_FIRST;
    counted_lanes(0, 5);
    memset(flags, 0, sizeof flags);
    flags[5] = RM_ENV_TERMINATED;
    static const double bad[] = {3, -1, 0.5, INFINITY};
    came_to[10] = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        came_to[11] = bad[i];
        REFUSED(0, 6, NULL, "world 105", "figure cause is", "its words are 0..2");
    }
    came_to[10] = -INFINITY;
    came_to[11] = 1;
    REFUSED(0, 6, NULL, "figure food is -inf");
}

static void the_dead_neither_count_nor_earn(void **state)
{
    (void)state;
    flags[4] = RM_ENV_DEAD;
    assert_int_equal(counted_lanes(0, 0), WORLDS - 1);
    memset(flags, 0, sizeof flags);
    flags[2] = RM_ENV_DEAD;
    flags[4] = RM_ENV_DEAD;
    reward[2] = 5;
    assert_int_equal(counted_lanes(0, 1), WORLDS - 2);
    flags[2] = RM_ENV_TRUNCATED;
    reward[2] = 1;
    assert_int_equal(counted_lanes(0, 2), WORLDS - 2);
    assert_true(seen.agent_score[0] == 1);
    assert_int_equal(seen.world_episodes[2], 1);
}

static void impossible_flags_are_refused_by_name(void **state)
{
    (void)state;
    flags[3] = 0;
    REFUSED(0, 0, NULL, "world 103", "made_up", "first", "episode 0", "step 0", "without FIRST");
    flags[3] = RM_ENV_FIRST;
    rm_arrivals_reset(&arrivals);
    counted_lanes(0, 0);
    flags[10] = RM_ENV_FIRST;
    memset(flags, 0, 10);
    REFUSED(0, 7, NULL, "world 110", "step 7", "middle of an episode");
    flags[10] = 0x40;
    REFUSED(0, 7, NULL, "unknown");
    flags[10] = RM_ENV_VOID;
    REFUSED(0, 7, NULL, "VOID without TRUNCATED");
    flags[10] = RM_ENV_DEAD | RM_ENV_TERMINATED;
    REFUSED(0, 7, NULL, "DEAD together");
    flags[10] = RM_ENV_FIRST | RM_ENV_TERMINATED;
    REFUSED(0, 7, NULL, "FIRST together with TERMINATED");
}

static void numbers_that_are_none_are_refused_by_name(void **state)
{
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (uint32_t w = 0; w < WORLDS; w++) {
            char world[32];
            snprintf(world, sizeof world, "world %u ", 100 + w);
            reward[w] = bad[i];
            REFUSED(1, 0, NULL, world, "second", "reward");
            reward[w] = 0;
            obs[w * ELEMENTS + 2] = bad[i];
            REFUSED(1, 0, NULL, world, "second", "element 2");
            obs[w * ELEMENTS + 2] = 0;
        }
    reward[0] = 3e38f; /* large is not infinite */
    obs[5] = -1e-42f;  /* nor is a denormal */
    counted_lanes(1, 0);
}

static void masks_must_leave_a_choice(void **state)
{
    (void)state;
    memset(mask + 6 * ACTIONS, 0, ACTIONS);
    REFUSED(0, 0, mask, "world 106", "first", "no legal action");
    mask[6 * ACTIONS + 3] = 1;
    uint32_t counted;
    assert_int_equal(take_masked(0, 0, mask, &counted, NULL), 0);
    memset(flags, 0, sizeof flags);
    flags[6] = RM_ENV_TERMINATED;
    memset(mask + 6 * ACTIONS, 0, ACTIONS); /* a last observation needs no answer */
    assert_int_equal(take_masked(0, 1, mask, &counted, NULL), 0);
}

/* Of every one of several. */
static void masks_must_leave_something_of_each_choice(void **state)
{
    uint32_t counted;
    (void)state;
    agents[0].choices = 2;
    agents[0].choice_actions[0] = 1;
    agents[0].choice_actions[1] = ACTIONS - 1;
    memset(mask + 6 * ACTIONS + 1, 0, ACTIONS - 1);
    REFUSED(0, 0, mask, "world 106", "first", "no legal action of choice 1");
    memset(mask + 6 * ACTIONS, 1, ACTIONS);
    mask[5 * ACTIONS] = 0;
    REFUSED(0, 0, mask, "world 105", "first", "no legal action of choice 0");
    mask[5 * ACTIONS] = 1;
    mask[5 * ACTIONS + 1] = 0;
    assert_int_equal(take_masked(0, 0, mask, &counted, NULL), 0);
}

static void codes_must_be_in_the_book(void **state)
{
    uint8_t *code = (uint8_t *)obs;

    (void)state;
    agents[0].dtype = RM_ENV_CODE8;
    agents[0].codes = 5;
    agents[0].channels = 1;
    agents[0].codebook = codebook;
    for (uint32_t i = 0; i < WORLDS * ELEMENTS; i++) {
        char world[32], element[32];
        snprintf(world, sizeof world, "world %u ", 100 + i / ELEMENTS);
        snprintf(element, sizeof element, "element %u ", i % ELEMENTS);
        code[i] = 5;
        REFUSED(0, 0, NULL, world, element, "codes are 0..4");
        code[i] = 4;
    }
    counted_lanes(0, 0);
}

/* Entries of a byte, then at most two floats that are counted: what lies behind a count is nothing.
 */
static void several_observations_are_checked_one_by_one(void **state)
{
    static const struct rm_env_observation list[] = {
        {.name = "cell",
         .dtype = RM_ENV_CODE8,
         .dims = 1,
         .shape = {1},
         .codes = 5,
         .channels = 1,
         .codebook = codebook},
        {.name = "speeds", .dtype = RM_ENV_F32, .dims = 1, .shape = {1}, .counted = 1},
    };
    (void)state;
    agents[0].observations = 2;
    agents[0].observation = list;
    assert_int_equal(rm_features_bytes(&agents[0]), ELEMENTS * sizeof(float));
    for (uint32_t w = 0; w < WORLDS; w++) {
        char world[32];
        float *entry = obs + w * ELEMENTS;
        uint8_t *cell = (uint8_t *)entry;
        uint32_t count = 2;
        snprintf(world, sizeof world, "world %u ", 100 + w);
        *cell = 5;
        REFUSED(0, 0, NULL, world, "observation cell", "codes are 0..4");
        *cell = 4;
        memcpy(&entry[1], &count, sizeof count);
        REFUSED(0, 0, NULL, world, "observation speeds counts 2", "at most 1");
        entry[2] = NAN;
        count = 1;
        memcpy(&entry[1], &count, sizeof count);
        REFUSED(0, 0, NULL, world, "observation speeds is nan", "element 0");
        count = 0;
        memcpy(&entry[1], &count, sizeof count);
    }
    counted_lanes(0, 0);
}

static void clearing_touches_only_what_is_flagged(void **state)
{
    (void)state;
    for (size_t n = 0; n < 40; n++)
        for (size_t at = 0; at < n; at++) {
            int32_t to[40];
            uint8_t bits[40] = {0};
            for (size_t i = 0; i < 40; i++)
                to[i] = 7;
            bits[at] = RM_ENV_TRUNCATED;
            bits[(at + 1) % n] |= RM_ENV_FIRST;
            rm_scan_clear(to, bits, RM_ENV_TRUNCATED | RM_ENV_DEAD, n);
            for (size_t i = 0; i < 40; i++)
                assert_int_equal(to[i], i == at ? 0 : 7);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(scores_add_up_over_an_episode, setup, teardown),
        cmocka_unit_test_setup_teardown(figures_come_with_last_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(the_dead_neither_count_nor_earn, setup, teardown),
        cmocka_unit_test_setup_teardown(impossible_flags_are_refused_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_that_are_none_are_refused_by_name, setup, teardown),
        cmocka_unit_test_setup_teardown(masks_must_leave_a_choice, setup, teardown),
        cmocka_unit_test_setup_teardown(masks_must_leave_something_of_each_choice, setup, teardown),
        cmocka_unit_test_setup_teardown(codes_must_be_in_the_book, setup, teardown),
        cmocka_unit_test_setup_teardown(several_observations_are_checked_one_by_one, setup,
                                        teardown),
        cmocka_unit_test(clearing_touches_only_what_is_flagged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
