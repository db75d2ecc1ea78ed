/* Keys and values that are kept: a network over histories gets the same bits from rows that are new
 * as from whole histories. */
#include "learner/net/cache.h"

#include "learner/net/history.h"
#include "shm/base/rng.h"
#include "tests/support/levels.h"
#include "tests/support/nets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES = 10, WIDTH = 12, CONTEXT = 162, PLACES = CONTEXT + 1, QUERY_CODES = 81 };
enum { OUTPUTS = 5 + 3, LANES = 3, INPUTS = PLACES * WIDTH };

struct bench {
    struct rm_net *net;
    float *params;
    struct rm_net_workspace *workspace;
    struct rm_net_cache *cache;
    float rows[LANES][CONTEXT * WIDTH]; /* histories */
    uint32_t count[LANES];              /* their rows */
    float *x, *whole;                   /* (LANES, INPUTS), (LANES, OUTPUTS) */
    struct rm_rng rng;
};

static void open_bench(struct bench *b, struct rm_backend *backend)
{
    const struct rm_net_shape shape =
        rm_history_alone(rm_history_shape(CONTEXT, 80, FEATURES, QUERY_CODES, 5, 3));
    struct rm_error error;
    memset(b, 0, sizeof *b);
    assert_int_equal(shape.dim[0], PLACES);
    assert_int_equal(shape.inputs, INPUTS);
    if (rm_net_compile(&b->net, &darkroom_net.config, &shape, &error) ||
        rm_net_workspace_create(&b->workspace, b->net, backend, LANES, 1, RM_NET_ACT, &error) ||
        rm_net_cache_create(&b->cache, b->net, LANES, &error))
        fail_msg("%s", error.text);
    b->params = malloc(rm_net_param_count(b->net) * sizeof *b->params);
    rm_net_init(b->net, b->params, rm_rng_at(3, RM_STREAM_INIT, 0, 0));
    rm_net_prepare(b->workspace, b->params);
    b->x = calloc((size_t)LANES * INPUTS, sizeof *b->x);
    b->whole = calloc((size_t)LANES * OUTPUTS, sizeof *b->whole);
    b->rng = rm_rng_at(7, RM_STREAM_TEST, 0, 0);
}

static void close_bench(struct bench *b)
{
    rm_net_cache_destroy(b->cache);
    rm_net_workspace_destroy(b->workspace);
    rm_net_destroy(b->net);
    free(b->params);
    free(b->x);
    free(b->whole);
}

static void add_row(struct bench *b, uint32_t lane, enum rm_history_kind kind)
{
    float f[FEATURES] = {0};
    f[0] = (float)rm_rng_below(&b->rng, 9);
    f[1] = (float)rm_rng_below(&b->rng, 9);
    f[2 + rm_rng_below(&b->rng, 5)] = 1;
    f[7] = (float)rm_rng_below(&b->rng, 2);
    f[8] = (float)rm_rng_below(&b->rng, 9);
    f[9] = (float)rm_rng_below(&b->rng, 9);
    rm_history_put(b->rows[lane] + b->count[lane]++ * WIDTH, kind, 0,
                   kind == RM_HISTORY_TRANSITION ? f : NULL, FEATURES);
}

/* A row of input: a lane's rows from `from` on, and the query. */
static void put_input(struct bench *b, uint32_t lane, uint32_t from, uint32_t query)
{
    float *x = b->x + (size_t)lane * INPUTS;
    memset(x, 0, INPUTS * sizeof *x);
    memcpy(x, b->rows[lane] + from * WIDTH, (b->count[lane] - from) * WIDTH * sizeof *x);
    rm_history_put(x + CONTEXT * WIDTH, RM_HISTORY_QUERY, query, NULL, FEATURES);
}

/* Both passes for lanes [first, first + count). */
static void expect_equal(struct bench *b, uint32_t first, uint32_t count)
{
    uint32_t query[LANES];
    const size_t from = (size_t)first * INPUTS, floats = (size_t)count * OUTPUTS;
    for (uint32_t lane = first; lane < first + count; lane++) {
        query[lane] = rm_rng_below(&b->rng, QUERY_CODES);
        put_input(b, lane, 0, query[lane]);
    }
    const struct rm_net_input whole = {.x = b->x + from, .batch = count};
    memcpy(b->whole, rm_net_forward(b->workspace, b->params, &whole), floats * sizeof *b->whole);
    for (uint32_t lane = first; lane < first + count; lane++)
        put_input(b, lane, rm_net_cache_rows(b->cache, lane), query[lane]);
    const struct rm_net_input rest = {
        .x = b->x + from, .batch = count, .cache = b->cache, .cache_lane = first};
    const float *out = rm_net_forward(b->workspace, b->params, &rest);
    assert_memory_equal(out, b->whole, floats * sizeof *out);
    for (uint32_t lane = first; lane < first + count; lane++)
        assert_int_equal(rm_net_cache_rows(b->cache, lane), b->count[lane]);
}

/* Lanes grow at different paces, up to all places; one begins again in between. */
static void the_same_bits(void **state)
{
    struct level_state *level = *state;
    struct bench b;
    open_bench(&b, level->backend);
    for (uint32_t lane = 0; lane < LANES; lane++)
        add_row(&b, lane, RM_HISTORY_BEGIN);
    expect_equal(&b, 0, LANES);
    while (b.count[0] < CONTEXT) {
        add_row(&b, 0, b.count[0] == 81 ? RM_HISTORY_END : RM_HISTORY_TRANSITION);
        for (uint32_t i = 0; i < 5 && b.count[1] < CONTEXT; i++)
            add_row(&b, 1, RM_HISTORY_TRANSITION);
        if (b.count[0] % 3 == 0)
            add_row(&b, 2, RM_HISTORY_TRANSITION);
        if (b.count[0] == 90) {
            rm_net_cache_forget(b.cache, 2);
            b.count[2] = 0;
            add_row(&b, 2, RM_HISTORY_BEGIN);
        }
        if (b.count[0] % 4 == 0)
            expect_equal(&b, 1, 2);
        if (b.count[0] % 7 == 0 || b.count[0] == CONTEXT)
            expect_equal(&b, 0, LANES);
    }
    close_bench(&b);
}

/* What is kept does count: the same query gets another answer after other rows. */
static void what_is_kept_counts(void **state)
{
    struct level_state *level = *state;
    struct bench b;
    float was[OUTPUTS];
    open_bench(&b, level->backend);
    add_row(&b, 0, RM_HISTORY_BEGIN);
    add_row(&b, 0, RM_HISTORY_TRANSITION);
    expect_equal(&b, 0, 1);
    put_input(&b, 0, 2, 40);
    const struct rm_net_input input = {.x = b.x, .batch = 1, .cache = b.cache};
    memcpy(was, rm_net_forward(b.workspace, b.params, &input), sizeof was);
    assert_memory_equal(rm_net_forward(b.workspace, b.params, &input), was, sizeof was);
    rm_net_cache_forget(b.cache, 0);
    assert_memory_not_equal(rm_net_forward(b.workspace, b.params, &input), was, sizeof was);
    close_bench(&b);
}

static void packed_queries_are_refused(void **state)
{
    const struct rm_net_shape shape = rm_history_shape(CONTEXT, 80, FEATURES, QUERY_CODES, 5, 3);
    struct rm_net_cache *cache;
    struct rm_net *net;
    struct rm_error error;
    (void)state;
    assert_int_equal(rm_net_compile(&net, &darkroom_net.config, &shape, &error), 0);
    assert_int_equal(rm_net_cache_create(&cache, net, 1, &error), -EINVAL);
    assert_string_equal(error.text, "network: a cache is for histories of one query, not of 80");
    assert_null(cache);
    rm_net_destroy(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits),
        cmocka_unit_test(what_is_kept_counts),
        cmocka_unit_test(packed_queries_are_refused),
    };
    return run_on_levels(tests, sizeof tests / sizeof tests[0]);
}
