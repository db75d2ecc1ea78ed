#include "tests/support/draws.h"

#include "learner/priority_tree.h"
#include "shm/layout.h"
#include "tests/support/emulated.h"
#include "tests/support/rows.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALPHA   0.6
#define EPSILON 1e-3

static struct rm_error failure;
struct rm_backend *rm_test_draws_device;
static struct rm_test_rows rows;
static struct rm_env_agent agent;

int rm_test_draws_begin(void **state)
{
    (void)state;
    rm_test_draws_device = rm_test_device_open();
    return 0;
}

int rm_test_draws_end(void **state)
{
    (void)state;
    rm_backend_destroy(rm_test_draws_device);
    return 0;
}

static void *on_device(size_t bytes)
{
    void *p = rm_test_draws_device->ops->alloc_bytes(rm_test_draws_device, bytes, &failure);
    if (!p)
        fail_msg("%s", failure.text);
    return p;
}

void rm_test_draws_send(void *to, const void *from, size_t bytes)
{
    assert_int_equal(bytes % 4, 0);
    rm_test_draws_device->ops->upload(rm_test_draws_device, to, from, bytes / 4);
}

void rm_test_draws_fetch(void *to, const void *from, size_t bytes)
{
    assert_int_equal(bytes % 4, 0);
    rm_test_draws_device->ops->download(rm_test_draws_device, to, from, bytes / 4);
}

/* --- two samplers of the same rings ---------------------------------------------------------- */

struct rm_sampler_spec rm_test_draws_spec(struct rm_test_draws *b, struct rm_test_draws_side *side)
{
    return (struct rm_sampler_spec){
        .sources = b->sources,
        .source_count = RM_DRAWS_RINGS,
        .agents = 1,
        .agent = &agent,
        .batch = RM_DRAWS_BATCH,
        .n_step = 3,
        .frame_stack = b->stack,
        .gamma = 0.9,
        .capacity = RM_DRAWS_SLOTS * RM_DRAWS_WORLDS,
        .seed = 5,
        .policy = 2,
        .priorities = b->by_priority ? &side->tree : NULL,
        .alpha = ALPHA,
        .epsilon = EPSILON,
    };
}

static void make_side(struct rm_test_draws *b, struct rm_test_draws_side *side)
{
    const struct rm_priorities_spec tree = {
        .slots = RM_DRAWS_SLOTS, .lanes = RM_DRAWS_WORLDS, .sources = RM_DRAWS_RINGS};
    if (rm_priorities_create(&side->tree, &tree, &failure))
        fail_msg("%s", failure.text);
    const struct rm_sampler_spec spec = rm_test_draws_spec(b, side);
    if (rm_sampler_create(&side->sampler, &spec, &failure))
        fail_msg("%s", failure.text);
}

void rm_test_draws_feed(struct rm_test_draws *b)
{
    const struct rm_sampler_spec spec = rm_test_draws_spec(b, &b->there);
    const struct rm_feed_spec feed = {.backend = rm_test_draws_device,
                                      .sampler = &spec,
                                      .kind = RM_FEED_RESIDENT,
                                      .name = "policy"};
    if (rm_feed_create(&b->feed, &feed, &failure))
        fail_msg("%s", failure.text);
    assert_non_null(rm_feed_draw(b->feed));
    rm_sampler_device_draws(b->there.sampler, true);
    b->draw = *rm_feed_draw(b->feed);
    b->draw.knobs = on_device(sizeof *b->draw.knobs);
    b->draw.turn = on_device(rm_device_turn_bytes(RM_DRAWS_RINGS));
    b->draw.figures = on_device(sizeof *b->draw.figures);
    b->draw.drawn_copy = on_device(sizeof *b->draw.drawn_copy);
    b->draw.picks = on_device(RM_DRAWS_BATCH * sizeof *b->draw.picks);
    b->draw.action = on_device(RM_DRAWS_BATCH * sizeof *b->draw.action);
    b->draw.ret = on_device(RM_DRAWS_BATCH * sizeof *b->draw.ret);
    b->draw.discount = on_device(RM_DRAWS_BATCH * sizeof *b->draw.discount);
    b->draw.weight = on_device(RM_DRAWS_BATCH * sizeof *b->draw.weight);
    b->draw.leaf = on_device(RM_DRAWS_BATCH * sizeof *b->draw.leaf);
    b->error = on_device(RM_DRAWS_BATCH * sizeof *b->error);
}

void rm_test_draws_open(struct rm_test_draws *b, bool by_priority, uint32_t stack)
{
    static const uint32_t lengths[] = {7, 10, 5, 13};
    static const uint8_t ends[] = {RM_FLAG_TERMINATED, RM_FLAG_TRUNCATED,
                                   RM_FLAG_TRUNCATED | RM_FLAG_VOID, RM_FLAG_TERMINATED};
    memset(b, 0, sizeof *b);
    b->by_priority = by_priority;
    b->stack = stack;
    agent = rm_test_rows_agent(true);
    rm_test_rows_fill(&rows, RM_DRAWS_WORLDS, RM_TEST_ROWS, lengths, ends);
    for (uint32_t i = 0; i < RM_DRAWS_RINGS; i++) { /* one world, and three */
        const uint32_t worlds = i ? 3 : 1;
        assert_int_equal(rm_test_rows_ring(&b->rings[i], RM_DRAWS_RING_ROWS, worlds, true), 0);
        b->sources[i] = (struct rm_sampler_source){&b->rings[i], i ? 1 : 0, worlds};
    }
    make_side(b, &b->host);
    make_side(b, &b->there);
    rm_test_draws_feed(b);
}

/* The feed and what it draws into. */
void rm_test_draws_leave(struct rm_test_draws *b)
{
    const void *made[] = {b->draw.knobs,  b->draw.turn,   b->draw.figures, b->draw.drawn_copy,
                          b->draw.picks,  b->draw.action, b->draw.ret,     b->draw.discount,
                          b->draw.weight, b->draw.leaf,   b->error};
    rm_test_draws_device->ops->finish(rm_test_draws_device);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        rm_test_draws_device->ops->release(rm_test_draws_device, (float *)made[i]);
    rm_feed_destroy(b->feed);
    memset(&b->draw, 0, sizeof b->draw);
    b->error = NULL;
    b->feed = NULL;
}

void rm_test_draws_close(struct rm_test_draws *b)
{
    struct rm_test_draws_side *sides[] = {&b->host, &b->there};
    rm_test_draws_leave(b);
    for (int i = 0; i < 2; i++) {
        rm_sampler_destroy(sides[i]->sampler);
        rm_priorities_close(&sides[i]->tree);
    }
    for (uint32_t i = 0; i < RM_DRAWS_RINGS; i++)
        rm_ring_close(&b->rings[i]);
}

void rm_test_draws_write_unseen(struct rm_test_draws *b, uint32_t count)
{
    for (uint32_t i = 0; i < RM_DRAWS_RINGS; i++)
        rm_test_rows_write(&rows, &b->rings[i], i ? 1 : 0, b->written, b->written + count);
    b->written += count;
}

void rm_test_draws_write(struct rm_test_draws *b, uint32_t count)
{
    rm_test_draws_write_unseen(b, count);
    rm_sampler_window_free(b->host.sampler);
    rm_sampler_window_free(b->there.sampler);
}

void rm_test_draws_write_dead(struct rm_test_draws *b, uint32_t count)
{
    for (uint32_t w = 0; w < RM_DRAWS_WORLDS; w++)
        for (uint32_t i = 0; i < count; i++)
            rows.cell[w][b->written + i].flags = RM_FLAG_DEAD;
    rm_test_draws_write(b, count);
}

/* --- draws ----------------------------------------------------------------------------------- */

void rm_test_draws_there(struct rm_test_draws *b, uint64_t update, double beta,
                         struct rm_test_drawn *d)
{
    const struct rm_update_knobs knobs = {.before = update - 1};
    _Alignas(8)
        uint8_t turn[sizeof(struct rm_device_turn) + RM_DRAWS_RINGS * sizeof(struct rm_row_span)];
    rm_feed_copy(b->feed, b->there.sampler);
    rm_feed_turn(b->feed, b->there.sampler, beta, (void *)turn);
    rm_test_draws_send((void *)b->draw.knobs, &knobs, sizeof knobs);
    rm_test_draws_send((void *)b->draw.turn, turn, sizeof turn);
    rm_test_draws_device->ops->finish(rm_test_draws_device); /* rows have arrived */
    rm_test_draws_device->device->feed->draw(rm_test_draws_device, &b->draw);
    rm_test_draws_fetch(d->picks, b->draw.picks, sizeof d->picks);
    rm_test_draws_fetch(d->action, b->draw.action, sizeof d->action);
    rm_test_draws_fetch(d->ret, b->draw.ret, sizeof d->ret);
    rm_test_draws_fetch(d->discount, b->draw.discount, sizeof d->discount);
    rm_test_draws_fetch(d->weight, b->draw.weight, sizeof d->weight);
    rm_test_draws_fetch(d->leaf, b->draw.leaf, sizeof d->leaf);
    rm_test_draws_fetch(&d->figures, b->draw.figures, sizeof d->figures);
    rm_test_draws_fetch(&d->drawn, b->draw.drawn_copy, sizeof d->drawn);
    rm_test_device_fine(rm_test_draws_device);
}

bool rm_test_draws_here(struct rm_test_draws *b, uint64_t update, double beta,
                        struct rm_test_chosen *c)
{
    c->batch = *rm_sampler_batch(b->host.sampler);
    rm_sampler_set_beta(b->host.sampler, beta);
    return rm_sampler_draw(b->host.sampler, update, &c->batch);
}

/* A pick names the rows whose observations the host's batch has: world, row, episode and step. */
static void same_row(const struct rm_test_draws *b, const struct rm_device_pick *p,
                     const float *obs, const float *next_obs)
{
    const uint32_t world = p->source + p->lane; /* ring 0 has world 0 alone */
    const uint64_t row = p->row - b->rings[p->source].spec.first_index;
    const float *newest = obs + (size_t)(b->stack - 1) * RM_TEST_FEATURES;
    for (uint32_t k = 0; k < b->stack; k++, newest -= RM_TEST_FEATURES) {
        assert_true(newest[0] == (k <= p->before ? (float)world : 0));
        assert_true(newest[1] == (k <= p->before ? (float)(row - k) : 0));
    }
    assert_true(next_obs[(size_t)(b->stack - 1) * RM_TEST_FEATURES + 1] == (float)(row + p->steps));
}

void rm_test_draws_same_items(const struct rm_test_draws *b, const struct rm_test_drawn *d,
                              const struct rm_test_chosen *c)
{
    const size_t floats = c->batch.inputs;
    for (uint32_t i = 0; i < RM_DRAWS_BATCH; i++)
        same_row(b, &d->picks[i], c->batch.obs + i * floats, c->batch.next_obs + i * floats);
}

void rm_test_draws_same(const struct rm_test_draws *b, const struct rm_test_drawn *d,
                        const struct rm_test_chosen *c)
{
    assert_int_equal(d->figures.stop, 0);
    rm_test_draws_same_items(b, d, c);
    for (uint32_t i = 0; i < RM_DRAWS_BATCH; i++) {
        assert_int_equal(d->action[i], c->batch.action[i]);
        assert_true(d->ret[i] == c->batch.ret[i]);
        assert_true(d->discount[i] == c->batch.discount[i]);
        if (b->by_priority) /* powers are rounded as they are */
            assert_true(fabsf(d->weight[i] - c->batch.weight[i]) <= 1e-6f);
    }
    const struct rm_sampler_counts counts = rm_sampler_counts(b->host.sampler);
    assert_int_equal(d->drawn.rejected, counts.rejected);
    assert_int_equal(d->drawn.age_sum, counts.age_sum);
    assert_int_equal(d->drawn.age_count, counts.age_count);
    assert_int_equal(d->drawn.dry, 0);
}

void rm_test_draws_learn(struct rm_test_draws *b, struct rm_test_chosen *c, struct rm_rng *rng)
{
    for (uint32_t i = 0; i < RM_DRAWS_BATCH; i++)
        c->error[i] = rm_rng_below(rng, 5) ? 3 * rm_rng_float(rng) : 0;
    memcpy(c->batch.error, c->error, sizeof c->error);
    rm_sampler_learned(b->host.sampler, &c->batch);
    rm_test_draws_send(b->error, c->error, sizeof c->error);
    rm_test_draws_device->device->feed->learned(rm_test_draws_device, &b->draw, b->error);
}

static void near_doubles(const double *x, const double *y, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (!(fabs(x[i] - y[i]) <= (rm_test_emulated() ? 0 : 1e-12 * fabs(y[i]))))
            fail_msg("%llu: %.17g, the host has %.17g", (unsigned long long)i, x[i], y[i]);
}

void rm_test_draws_same_trees(struct rm_test_draws *b)
{
    const struct rm_priorities *host = &b->host.tree, *kept = &b->there.tree;
    uint64_t entered[RM_DRAWS_RINGS];
    double largest;
    rm_test_draws_device->ops->finish(rm_test_draws_device);
    for (uint32_t l = 0; l < host->levels; l++) {
        double *level = malloc(host->nodes[l] * sizeof *level);
        assert_non_null(level);
        rm_test_draws_fetch(level, b->draw.tree.level[l], host->nodes[l] * sizeof *level);
        near_doubles(level, host->level[l], host->nodes[l]);
        if (l == 0)
            assert_memory_equal(level, kept->level[0],
                                RM_DRAWS_SLOTS * RM_DRAWS_WORLDS * sizeof *level);
        free(level);
    }
    rm_test_draws_fetch(entered, b->draw.tree.entered, sizeof entered);
    rm_test_draws_fetch(&largest, b->draw.tree.largest, sizeof largest);
    near_doubles(&largest, (const double *)(const void *)&host->shared->largest, 1);
    assert_true(largest == RM_PEEK(&kept->shared->largest));
    for (uint32_t i = 0; i < RM_DRAWS_RINGS; i++) {
        assert_int_equal(entered[i], RM_PEEK(&host->entered[i]));
        assert_int_equal(entered[i], RM_PEEK(&kept->entered[i]));
    }
}
