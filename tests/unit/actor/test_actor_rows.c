/* Rows are what the worlds gave and what was answered, whoever steps the worlds: the count world
 * says in each observation where it comes from, and its rewards follow from the actions. */
#include "actor/actor.h"
#include "shm/atomic.h"
#include "tests/support/acting.h"
#include "tests/support/session.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { LENGTH = 5, MAX_STEPS = 12, STEPS = 90, ACTORS_MAX = 4 };

struct layout {
    uint32_t actors, worlds, agents, phases, mask;
    const char *map; /* JSON */
    uint32_t stack;  /* frames */
    bool one_hot;    /* observe the place as floats, not the stamp */
};

struct fixture {
    struct rm_session session;
    struct rm_actor *actor[ACTORS_MAX];
    struct rm_duty duty[ACTORS_MAX];
};

static struct fixture *open_fixture(const struct layout *layout, const char *more)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct rm_error error = {""};
    char json[2048];

    assert_non_null(f);
    snprintf(json, sizeof json,
             "{\"name\": \"rows\", \"seed\": 11,"
             " \"world\": {\"name\": \"count\", \"options\": {\"agents\": %u, \"phases\": %u,"
             "   \"length\": %d, \"max_steps\": %d, \"mask\": %u, \"stamp\": %d}},"
             " \"actor\": {\"count\": %u, \"worlds\": %u}, \"policy\": {\"map\": %s},"
             " \"run\": {\"steps\": 0}, \"ring\": {\"capacity\": 8192},"
             " \"sample\": {\"batch\": 8, \"min_fill\": 8, \"frame_stack\": %u},"
             " \"limiter\": {\"updates_per_step\": 0},"
             " \"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 8},"
             "   {\"type\": \"relu\"}]} %s}",
             layout->agents, layout->phases, LENGTH, MAX_STEPS, layout->mask, !layout->one_hot,
             layout->actors, layout->worlds, layout->map, layout->stack, more);
    assert_int_equal(rm_test_session(&f->session, json), 0);
    rm_test_publish_random(&f->session, 5, 40);
    for (uint32_t i = 0; i < layout->actors; i++) {
        int rc = rm_actor_create(&f->actor[i], &f->session, i, &f->duty[i], &error);
        if (rc < 0)
            fail_msg("%s", error.text);
    }
    return f;
}

static void close_fixture(struct fixture *f)
{
    for (uint32_t i = 0; i < f->session.objects.actors; i++)
        rm_actor_destroy(f->actor[i]);
    rm_session_close(&f->session);
    free(f);
}

static void run(struct fixture *f, uint32_t steps)
{
    for (uint32_t t = 0; t < steps; t++)
        for (uint32_t i = 0; i < f->session.objects.actors; i++)
            assert_true(rm_test_turn(&f->duty[i]) > 0);
}

/* One lane of one row. */
struct cell {
    int32_t stamp[4]; /* world, episode, step, agent */
    float reward;
    int32_t action;
    uint8_t flags, mask[2];
};

static struct cell cell_at(struct fixture *f, uint32_t agent, uint64_t world, uint64_t t)
{
    struct rm_session *s = &f->session;
    uint32_t actor = 0, worlds;
    uint64_t first;

    for (;; actor++) {
        rm_session_worlds(&s->experiment, actor, &first, &worlds);
        if (world < first + worlds)
            break;
    }
    struct rm_ring *ring = rm_session_ring(s, actor, s->plan.agent_policy[agent]);
    struct rm_row row = rm_ring_row(ring, ring->spec.first_index + t);
    size_t lane = (size_t)s->plan.agent_slot[agent] * worlds + (world - first);
    struct cell cell = {
        .reward = row.reward[lane], .action = row.action[lane], .flags = row.flags[lane]};

    assert_int_equal(*row.generation, 1);
    assert_int_equal(*row.policy_version, 40);
    memcpy(cell.stamp, row.obs + lane * ring->spec.obs_bytes, sizeof cell.stamp);
    if (row.mask)
        memcpy(cell.mask, row.mask + lane * 2, 2);
    return cell;
}

/* Plays the world by its rules from the actions in the rows, and expects the rows. */
static void check_world(struct fixture *f, const struct layout *l, uint32_t world, uint32_t steps,
                        uint32_t *counted, uint32_t *actions)
{
    uint32_t place[8] = {0};
    float reward[8] = {0};
    int32_t episode = 0, step = 0;
    uint8_t ended = 0;

    for (uint32_t t = 0; t < steps; t++) {
        uint32_t arrived = 0;
        for (uint32_t a = 0; a < l->agents; a++) {
            struct cell c = cell_at(f, a, world, t);
            int32_t expected[4] = {(int32_t)world, episode, step, (int32_t)a};
            assert_memory_equal(c.stamp, expected, sizeof expected);
            assert_int_equal(c.flags, ended ? ended : step == 0 ? RM_FLAG_FIRST : 0);
            assert_true(c.reward == reward[a]);
            assert_true(c.action == 0 || c.action == 1);
            if (l->mask) {
                assert_int_equal(c.mask[0], place[a] > 0);
                assert_true(ended || c.mask[c.action]);
            }
            if (ended) {
                assert_int_equal(c.action, 0);
                continue;
            }
            counted[a]++;
            actions[c.action]++;
            reward[a] = 0;
            if (place[a] < LENGTH) {
                place[a] = c.action ? place[a] + 1 : place[a] ? place[a] - 1 : 0;
                reward[a] = place[a] == LENGTH ? 1.0f : -0.01f;
            }
            arrived += place[a] == LENGTH;
        }
        if (ended) {
            episode++;
            step = 0;
            ended = 0;
            memset(place, 0, sizeof place);
            memset(reward, 0, sizeof reward);
            continue;
        }
        step++;
        if (arrived == l->agents)
            ended = RM_FLAG_TERMINATED;
        else if (step == MAX_STEPS)
            ended = RM_FLAG_TRUNCATED;
    }
}

static const struct layout layouts[] = {
    {1, 1, 1, 1, 0, "\"independent\"", 1, false}, {1, 3, 1, 1, 1, "\"independent\"", 1, false},
    {1, 4, 3, 1, 0, "\"shared\"", 1, false},      {2, 5, 3, 3, 0, "\"independent\"", 1, false},
    {2, 4, 4, 2, 1, "\"shared\"", 1, false},      {1, 2, 5, 5, 0, "\"shared\"", 1, false},
    {2, 3, 4, 4, 1, "[0, 1, 1, 0]", 1, false},    {3, 70, 2, 2, 0, "[0, 0]", 1, false},
    {1, 9, 3, 3, 0, "[1, 0, 1]", 1, false},
};

static void rows_are_what_the_worlds_gave(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        const struct layout *l = &layouts[i];
        struct fixture *f = open_fixture(l, ", \"epsilon\": {\"start\": 0.7, \"end\": 0.7}");
        uint32_t counted[8] = {0}, actions[2] = {0};
        uint64_t steps = 0;

        run(f, STEPS);
        for (uint32_t w = 0; w < l->worlds; w++)
            check_world(f, l, w, STEPS, counted, actions);
        assert_true(actions[0] > 0 && actions[1] > 0);
        /* every counter says the same */
        for (uint32_t p = 0; p < f->session.plan.policies; p++) {
            uint64_t sum = 0;
            for (uint32_t k = 0; k < f->session.plan.policy[p].agents; k++)
                sum += counted[f->session.plan.policy[p].agent[k]];
            assert_int_equal(RM_PEEK(&f->session.board.policies[p].env_steps), sum);
            assert_int_equal(RM_PEEK(&f->session.board.policies[p].limiter.inserted), sum);
            assert_int_equal(RM_PEEK(&f->session.board.policies[p].lag_count),
                             (uint64_t)STEPS * l->actors);
        }
        for (uint32_t k = 0; k < l->actors; k++) {
            steps += RM_PEEK(&f->session.board.workers[k].steps);
            for (uint32_t p = 0; p < f->session.plan.policies; p++)
                assert_int_equal(rm_ring_committed(rm_session_ring(&f->session, k, p)), STEPS);
        }
        assert_int_equal(steps, counted[0]);
        close_fixture(f);
    }
}

/* The same lanes whether one actor steps the worlds or several do. */
static void same_rows(const struct layout *one, const struct layout *many, const char *more)
{
    struct fixture *a = open_fixture(one, more), *b = open_fixture(many, more);

    run(a, STEPS);
    run(b, STEPS);
    for (uint32_t agent = 0; agent < one->agents; agent++)
        for (uint32_t w = 0; w < one->worlds; w++)
            for (uint32_t t = 0; t < STEPS; t++) {
                struct cell x = cell_at(a, agent, w, t), y = cell_at(b, agent, w, t);
                assert_memory_equal(x.stamp, y.stamp, sizeof x.stamp);
                assert_true(x.reward == y.reward);
                assert_int_equal(x.action, y.action);
                assert_int_equal(x.flags, y.flags);
            }
    close_fixture(a);
    close_fixture(b);
}

static void rows_do_not_depend_on_the_split(void **state)
{
    static const char *const more[] = {
        ", \"epsilon\": {\"start\": 1, \"end\": 0, \"span\": 300}",
        ", \"epsilon\": {\"start\": 1, \"end\": 0, \"span\": 20, \"unit\": \"episodes\"}",
        ", \"epsilon\": {\"start\": 0.05, \"end\": 0.05}",
    };
    static const struct layout pairs[][2] = {
        {{1, 4, 1, 1, 0, "\"shared\"", 1, false}, {2, 4, 1, 1, 0, "\"shared\"", 1, false}},
        {{1, 4, 2, 2, 0, "\"independent\"", 1, false},
         {3, 4, 2, 2, 0, "\"independent\"", 1, false}},
        {{1, 70, 3, 1, 1, "\"shared\"", 1, false}, {4, 70, 3, 1, 1, "\"shared\"", 1, false}},
        /* wide enough to be answered in place by one actor, and gathered by the others */
        {{1, 140, 1, 1, 0, "\"shared\"", 1, true}, {4, 140, 1, 1, 0, "\"shared\"", 1, true}},
        {{1, 140, 2, 2, 1, "\"shared\"", 1, true}, {3, 140, 2, 2, 1, "\"shared\"", 1, true}},
        {{1, 6, 2, 1, 0, "\"shared\"", 3, false}, {2, 6, 2, 1, 0, "\"shared\"", 3, false}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
            same_rows(&pairs[k][0], &pairs[k][1], more[i]);
}

static void scores_reach_the_board(void **state)
{
    const struct layout l = {1, 2, 2, 2, 0, "\"independent\"", 1, false};
    struct fixture *f = open_fixture(&l, ", \"epsilon\": {\"start\": 0, \"end\": 0}");
    struct rm_board_view *board = &f->session.board;
    double mean;

    (void)state;
    rm_test_publish_action(&f->session, 0, 1, 40, 0);
    rm_test_publish_action(&f->session, 1, 0, 40, 0);
    run(f, 3 * (MAX_STEPS + 1));
    /* Agent 0 arrives and waits; agent 1 never leaves its place. */
    assert_int_equal(rm_scores_last(&board->agents[0].scores, &mean), 6);
    assert_true(fabs(mean - (1 - 0.01 * (LENGTH - 1))) < 1e-6);
    assert_int_equal(rm_scores_last(&board->agents[1].scores, &mean), 6);
    assert_true(fabs(mean + 0.01 * MAX_STEPS) < 1e-6);
    assert_int_equal(rm_scores_last(&board->run->scores, &mean), 6);
    assert_true(fabs(mean - (1 - 0.01 * (LENGTH - 1) - 0.01 * MAX_STEPS)) < 1e-6);
    close_fixture(f);
}

/* In episodes the rate of a world follows its own episodes, times the number of worlds. */
static void exploration_fades_by_episodes(void **state)
{
    const struct layout l = {1, 2, 1, 1, 0, "\"shared\"", 1, false};
    struct fixture *f = open_fixture(
        &l, ", \"epsilon\": {\"start\": 1, \"end\": 0, \"decay\": \"linear\", \"span\": 4,"
            " \"unit\": \"episodes\"}");

    (void)state;
    rm_test_publish_action(&f->session, 0, 0, 40, 0);
    run(f, STEPS);
    for (uint32_t w = 0; w < l.worlds; w++) {
        uint32_t ones[3] = {0};
        for (uint32_t t = 0; t < STEPS; t++) {
            struct cell c = cell_at(f, 0, w, t);
            ones[c.stamp[1] < 2 ? c.stamp[1] : 2] += (uint32_t)c.action;
        }
        assert_true(ones[0] > 0);     /* rate 1 */
        assert_int_equal(ones[2], 0); /* rate 0 from the third episode on */
    }
    assert_true(RM_PEEK(&f->session.board.policies[0].epsilon) == 0);
    close_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_what_the_worlds_gave),
        cmocka_unit_test(rows_do_not_depend_on_the_split),
        cmocka_unit_test(scores_reach_the_board),
        cmocka_unit_test(exploration_fades_by_episodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
