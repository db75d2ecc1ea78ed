/* Contexts of lanes: their transitions, regions and inputs, to the float, and that a network acts
 * alike with the whole context and with what it kept of it. */
#include "actor/context.h"

#include "learner/net/features.h"
#include "learner/net/history.h"
#include "shm/base/rng.h"
#include "tests/support/effort.h"
#include "tests/support/levels.h"
#include "tests/support/nets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES = 10, WIDTH = 12, REGION = 80, CONTEXT = 2 * REGION + 2, PLACES = CONTEXT + 1 };
enum { ACTIONS = 5, TYPES = 3, OUTPUTS = ACTIONS + TYPES, INPUTS = PLACES * WIDTH, LANES = 3 };

/* As the world darkroom describes its agent. */
static const struct rm_env_agent cell_agent = {.name = "agent_0",
                                               .dtype = RM_ENV_U8,
                                               .dims = 1,
                                               .shape = {2},
                                               .low = 0,
                                               .high = 8,
                                               .actions = 5};

static struct rm_net_shape shape_of(uint32_t region)
{
    return rm_history_shape(2 * region + 2, region, FEATURES, 81, ACTIONS, TYPES);
}

/* The same with queries that are observations. */
static struct rm_net_shape tied(struct rm_net_shape shape)
{
    shape.history.query_codes = 0;
    return shape;
}

static struct rm_context *open_context(struct rm_net_shape shape, const struct rm_net *net,
                                       uint32_t lanes)
{
    struct rm_context *c;
    struct rm_error error;
    if (rm_context_create(&c, &cell_agent, &shape, net, lanes, &error))
        fail_msg("%s", error.text);
    return c;
}

/* A step of one lane: what it shows. */
struct shown {
    uint8_t obs[2];
    float reward;
    uint8_t flags;
};

static struct rm_context_step step_of(uint32_t lane, const struct shown *s)
{
    return (struct rm_context_step){lane, 1, s->obs, &s->reward, &s->flags};
}

static void see(struct rm_context *c, uint32_t lane, struct shown s)
{
    const struct rm_context_step step = step_of(lane, &s);
    struct rm_error error;
    if (rm_context_see(c, &step, &error))
        fail_msg("%s", error.text);
}

static void act(struct rm_context *c, uint32_t lane, struct shown s, int32_t action, bool end)
{
    const struct rm_context_step step = step_of(lane, &s);
    const float types[TYPES] = {0.5f, 0.25f, end ? 0.75f : 0.25f};
    rm_context_act(c, &step, &action, types);
}

static void see_and_act(struct rm_context *c, uint32_t lane, struct shown s, int32_t action,
                        bool end)
{
    see(c, lane, s);
    act(c, lane, s, action, end);
}

/* A lane's rows, oldest first. */
static const float *rows_of(const struct rm_context *c, uint32_t lane, uint32_t *rows)
{
    *rows = c->lane[lane].rows;
    return c->rows + (size_t)lane * (c->places + 1) * c->width;
}

/* The kinds of a lane's rows, as letters. */
static void expect_kinds(const struct rm_context *c, uint32_t lane, const char *expected)
{
    static const char letters[] = "_tbeq";
    char kinds[CONTEXT + 1] = "";
    uint32_t rows;
    const float *row = rows_of(c, lane, &rows);
    for (uint32_t i = 0; i < rows; i++)
        kinds[i] = letters[(size_t)row[i * WIDTH]];
    assert_string_equal(kinds, expected);
}

static void expect_row(const struct rm_context *c, uint32_t lane, uint32_t row,
                       const float features[FEATURES])
{
    uint32_t rows;
    const float *all = rows_of(c, lane, &rows);
    assert_in_range(row, 0, rows - 1);
    assert_true(all[row * WIDTH] == (float)RM_HISTORY_TRANSITION && all[row * WIDTH + 1] == 0);
    assert_memory_equal(all + row * WIDTH + RM_HISTORY_FEATURES, features,
                        FEATURES * sizeof *features);
}

/* The tokens of the dark room: (4, 4), action 2, reward 0; queries 40 and 80; and an input of the
 * whole context. */
static void tokens(void **state)
{
    struct rm_context *c = open_context(shape_of(REGION), NULL, 1);
    const struct shown first = {{4, 4}, 0, RM_ENV_FIRST}, last = {{8, 8}, 1, 0};
    const struct rm_context_step begins = step_of(0, &first), ends = step_of(0, &last);
    (void)state;
    see(c, 0, first);
    const float *x = rm_context_inputs(c, &begins);
    assert_true(x[0] == (float)RM_HISTORY_BEGIN);
    for (uint32_t i = 1; i < CONTEXT * WIDTH; i++)
        assert_true(x[i] == 0);
    assert_true(x[CONTEXT * WIDTH] == (float)RM_HISTORY_QUERY && x[CONTEXT * WIDTH + 1] == 40);
    act(c, 0, first, 2, false);
    see(c, 0, (struct shown){{4, 5}, 0, 0});
    expect_kinds(c, 0, "bt");
    expect_row(c, 0, 1, (const float[]){4, 4, 0, 0, 1, 0, 0, 0, 4, 5});
    see_and_act(c, 0, (struct shown){{4, 5}, 0, 0}, 0, false);
    see(c, 0, last);
    expect_row(c, 0, 2, (const float[]){4, 5, 1, 0, 0, 0, 0, 1, 8, 8});
    x = rm_context_inputs(c, &ends);
    assert_true(x[CONTEXT * WIDTH + 1] == 80);
    uint32_t rows;
    assert_memory_equal(x, rows_of(c, 0, &rows), 3 * WIDTH * sizeof *x);
    rm_context_destroy(c);
}

/* Before any observation, too, a lane's input ends with a query. */
static void tokens_of_tied_queries(void **state)
{
    struct rm_context *c = open_context(tied(shape_of(REGION)), NULL, 1);
    const struct shown dead = {{0, 0}, 0, RM_ENV_DEAD}, first = {{4, 5}, 0, RM_ENV_FIRST};
    const struct rm_context_step none = step_of(0, &dead), begins = step_of(0, &first);
    (void)state;
    see(c, 0, dead);
    const float *query = rm_context_inputs(c, &none) + CONTEXT * WIDTH;
    assert_true(query[0] == (float)RM_HISTORY_QUERY && query[2] == 0 && query[3] == 0);
    see(c, 0, first);
    query = rm_context_inputs(c, &begins) + CONTEXT * WIDTH;
    const float expected[WIDTH] = {RM_HISTORY_QUERY, 0, 4, 5};
    assert_memory_equal(query, expected, sizeof expected);
    rm_context_destroy(c);
}

/* A history runs on over the ends of episodes: the last transition ends in the true last
 * observation, and none leads from there to the next episode's first. */
static void ends_of_episodes(void **state)
{
    struct rm_context *c = open_context(shape_of(REGION), NULL, 1);
    (void)state;
    see_and_act(c, 0, (struct shown){{4, 4}, 0, RM_ENV_FIRST}, 0, false);
    see_and_act(c, 0, (struct shown){{5, 4}, 1, RM_ENV_TERMINATED}, 3, true);
    expect_kinds(c, 0, "bt");
    expect_row(c, 0, 1, (const float[]){4, 4, 1, 0, 0, 0, 0, 1, 5, 4});
    see_and_act(c, 0, (struct shown){{4, 4}, 0, RM_ENV_FIRST}, 1, false);
    expect_kinds(c, 0, "bt");
    see_and_act(c, 0, (struct shown){{3, 4}, 0, 0}, 4, false);
    expect_row(c, 0, 2, (const float[]){4, 4, 0, 1, 0, 0, 0, 0, 3, 4});
    see_and_act(c, 0, (struct shown){{4, 4}, 0, RM_ENV_TRUNCATED | RM_ENV_VOID}, 0, false);
    expect_kinds(c, 0, "btt"); /* what the action led to is not known */
    see_and_act(c, 0, (struct shown){{4, 4}, 0, RM_ENV_FIRST}, 0, false);
    see_and_act(c, 0, (struct shown){{4, 4}, 0, RM_ENV_DEAD}, 0, false);
    see_and_act(c, 0, (struct shown){{4, 4}, 0, RM_ENV_DEAD}, 0, false);
    expect_kinds(c, 0, "btt");
    rm_context_destroy(c);
}

/* Regions of three: by their length, and by the network's word, after the action. */
static void regions(void **state)
{
    struct rm_context *c = open_context(shape_of(3), NULL, 2);
    (void)state;
    see_and_act(c, 0, (struct shown){{0, 0}, 0, RM_ENV_FIRST}, 0, false);
    for (uint8_t i = 1; i < 3; i++)
        see_and_act(c, 0, (struct shown){{i, 0}, 0, 0}, 0, false);
    expect_kinds(c, 0, "btt");
    see_and_act(c, 0, (struct shown){{3, 0}, 0, 0}, 0, true);
    expect_kinds(c, 0, "bttteb");
    see_and_act(c, 0, (struct shown){{4, 0}, 0, 0}, 0, false);
    expect_kinds(c, 0, "bteb"); /* the network's region of one; the one before it is dropped */
    expect_row(c, 0, 1, (const float[]){3, 0, 1, 0, 0, 0, 0, 0, 4, 0});
    for (uint8_t i = 5; i < 7; i++)
        see_and_act(c, 0, (struct shown){{i, 0}, 0, 0}, 0, false);
    expect_kinds(c, 0, "btebtt");
    see_and_act(c, 0, (struct shown){{7, 0}, 0, 0}, 0, false);
    expect_kinds(c, 0, "bttteb");
    expect_row(c, 0, 1, (const float[]){4, 0, 1, 0, 0, 0, 0, 0, 5, 0});
    for (uint8_t i = 0; i < 2; i++)
        see_and_act(c, 0, (struct shown){{8, 0}, 0, 0}, 0, false);
    expect_kinds(c, 0, "btttebtt"); /* as long as it gets: 2 * 3 + 2 */
    expect_kinds(c, 1, "b");        /* each lane has its own */
    see_and_act(c, 1, (struct shown){{0, 0}, 0, RM_ENV_FIRST}, 0, true);
    see_and_act(c, 1, (struct shown){{1, 0}, 0, 0}, 0, false);
    expect_kinds(c, 1, "bteb");
    rm_context_forget(c);
    expect_kinds(c, 0, "b");
    expect_kinds(c, 1, "b");
    rm_context_destroy(c);
}

/* Lengths and places of the paper's regions of 80. */
static void places(void **state)
{
    struct rm_context *c = open_context(shape_of(REGION), NULL, 1);
    uint32_t rows = 0;
    (void)state;
    see_and_act(c, 0, (struct shown){{4, 4}, 0, RM_ENV_FIRST}, 4, false);
    for (uint32_t step = 1; step < 12 * REGION; step++) {
        see_and_act(c, 0, (struct shown){{4, 4}, 0, 0}, 4, false);
        const float *row = rows_of(c, 0, &rows);
        const uint32_t taken = step % REGION;
        assert_int_equal(rows, step < REGION ? 1 + taken : 83 + taken);
        assert_true(row[0] == (float)RM_HISTORY_BEGIN);
        if (step >= REGION)
            assert_true(row[81 * WIDTH] == (float)RM_HISTORY_END &&
                        row[82 * WIDTH] == (float)RM_HISTORY_BEGIN);
    }
    assert_int_equal(rows, CONTEXT);
    rm_context_destroy(c);
}

/* --- with a network -------------------------------------------------------------------------- */

struct player {
    struct rm_context *context;
    struct rm_net_workspace *workspace;
    float out[LANES * OUTPUTS];
};

static void answer(struct player *p, const float *params, const struct rm_context_step *step,
                   const int32_t *action)
{
    struct rm_error error;
    float types[LANES * TYPES];
    if (rm_context_see(p->context, step, &error))
        fail_msg("%s", error.text);
    const struct rm_net_input input = {.x = rm_context_inputs(p->context, step),
                                       .batch = step->count,
                                       .cache = rm_context_cache(p->context),
                                       .cache_lane = step->first};
    memcpy(p->out, rm_net_forward(p->workspace, params, &input),
           (size_t)step->count * OUTPUTS * sizeof *p->out);
    for (uint32_t i = 0; i < step->count; i++)
        memcpy(types + i * TYPES, p->out + i * OUTPUTS + ACTIONS, TYPES * sizeof *types);
    rm_context_act(p->context, step, action, types);
}

/* The world of lane `lane`: a walk, episodes of 20 steps. */
static void walk(struct rm_rng *rng, uint32_t step, uint8_t obs[LANES][2], float *reward,
                 uint8_t *flags, int32_t *action)
{
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint32_t at = (step + lane) % 21;
        flags[lane] = step == 0 || at == 0 ? RM_ENV_FIRST : at == 20 ? RM_ENV_TERMINATED : 0;
        obs[lane][0] = (uint8_t)rm_rng_below(rng, 9);
        obs[lane][1] = (uint8_t)rm_rng_below(rng, 9);
        reward[lane] = (float)rm_rng_below(rng, 2);
        action[lane] = (int32_t)rm_rng_below(rng, ACTIONS);
    }
}

/* The same logits with what is kept as with the whole context in every step, over many regions,
 * which the network closes at times, too; and different lanes close at different times. */
static void kept_equals(const struct level_state *level, struct rm_net_shape regions, float bias)
{
    const struct rm_net_shape shape = rm_history_alone(regions);
    struct rm_rng rng = rm_rng_at(9, RM_STREAM_TEST, 0, 0);
    struct rm_net *net;
    struct rm_error error;
    struct player kept, whole;
    uint8_t obs[LANES][2], flags[LANES];
    float reward[LANES];
    int32_t action[LANES];
    uint32_t by_word = 0, full = 0, before[LANES] = {0};
    assert_int_equal(rm_net_compile(&net, &darkroom_net.config, &shape, &error), 0);
    float *params = malloc(rm_net_param_count(net) * sizeof *params);
    rm_net_init(net, params, rm_rng_at(3, RM_STREAM_INIT, 0, 0));
    params[rm_net_param_count(net) - 1] += bias; /* of the type "end" */
    struct player *players[] = {&kept, &whole};
    for (size_t i = 0; i < 2; i++) {
        players[i]->context = open_context(regions, i == 0 ? net : NULL, LANES);
        assert_int_equal(rm_net_workspace_create(&players[i]->workspace, net, level->backend, LANES,
                                                 1, RM_NET_ACT, &error),
                         0);
        rm_net_prepare(players[i]->workspace, params);
    }
    for (uint32_t s = 0; s < rm_test_effort(450, 200); s++) {
        walk(&rng, s, obs, reward, flags, action);
        const struct rm_context_step step = {0, LANES, obs[0], reward, flags};
        answer(&kept, params, &step, action);
        answer(&whole, params, &step, action);
        assert_memory_equal(kept.out, whole.out, sizeof kept.out);
        for (uint32_t lane = 0; lane < LANES; lane++) {
            uint32_t rows;
            rows_of(kept.context, lane, &rows);
            by_word += rows < before[lane] && before[lane] < CONTEXT;
            full += rows < before[lane] && before[lane] == CONTEXT;
            before[lane] = rows;
        }
    }
    assert_true(by_word > 0 && full > 0);
    for (size_t i = 0; i < 2; i++) {
        rm_context_destroy(players[i]->context);
        rm_net_workspace_destroy(players[i]->workspace);
    }
    free(params);
    rm_net_destroy(net);
}

static void kept_equals_whole(void **state)
{
    kept_equals(*state, shape_of(REGION), 0.3f);
    kept_equals(*state, tied(shape_of(REGION)), -0.6f);
}

/* --- what is refused ------------------------------------------------------------------------- */

static void refusals(void **state)
{
    struct rm_env_agent more = cell_agent;
    const struct rm_net_shape shape = shape_of(REGION);
    struct rm_context *c;
    struct rm_error error;
    (void)state;
    more.actions = 4;
    assert_int_equal(rm_context_create(&c, &more, &shape, NULL, 1, &error), -EINVAL);
    assert_string_equal(error.text,
                        "agent agent_0 has 81 different observations and 4 actions, rows of 11 "
                        "numbers; the network takes 81, 5 and 12");
    assert_null(c);
    c = open_context(shape_of(REGION), NULL, 1);
    const struct shown outside = {{4, 9}, 0, RM_ENV_FIRST};
    const struct rm_context_step step = step_of(0, &outside);
    assert_int_equal(rm_context_see(c, &step, &error), -EBADMSG);
    assert_string_equal(error.text,
                        "lane 0 of agent agent_0: an observation is outside of its bounds "
                        "or no whole number, so it cannot be a query");
    rm_context_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens),  cmocka_unit_test(tokens_of_tied_queries),
        cmocka_unit_test(regions), cmocka_unit_test(ends_of_episodes),
        cmocka_unit_test(places),  cmocka_unit_test(refusals),
    };
    const struct CMUnitTest with_network[] = {
        cmocka_unit_test(kept_equals_whole),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + run_on_levels(with_network, 1);
}
