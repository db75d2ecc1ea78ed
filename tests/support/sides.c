#include "tests/support/sides.h"

#include "learner/algo/algo.h"
#include "shm/base/rng.h"
#include "shm/layout.h"
#include "tests/support/backends.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

#include <string.h>

enum { FEATURES = 5, ACTIONS = 3, RING_ROWS = 64, STACK = 2 };

static struct rm_error failure;
static const struct rm_env_agent agent = {
    .dtype = RM_ENV_F32, .dims = 1, .shape = {FEATURES}, .actions = ACTIONS, .has_mask = 1};

/* --- rows ------------------------------------------------------------------------------------ */

static void open_ring(struct rm_ring *ring)
{
    const struct rm_ring_spec spec = {
        .rows = RING_ROWS,
        .lanes = RM_SIDES_LANES,
        .obs_bytes = FEATURES * sizeof(float),
        .mask_bytes = ACTIONS,
        .action_words = 1,
        .columns = RM_COLUMN_MASK,
        .first_index = UINT64_MAX - 40,
    };
    if (rm_ring_create(ring, &spec, &failure))
        fail_msg("%s", failure.text);
    rm_ring_writer_open(ring);
}

static void fill_row(struct rm_row *row, uint64_t at)
{
    struct rm_rng rng = rm_rng_at(21, RM_STREAM_TEST, 7, at);
    float *obs = (float *)(void *)row->obs;
    for (uint32_t i = 0; i < RM_SIDES_LANES * FEATURES; i++)
        obs[i] = 2 * rm_rng_float(&rng) - 1;
    for (uint32_t lane = 0; lane < RM_SIDES_LANES; lane++) {
        const uint64_t step = at % (6 + lane);
        row->flags[lane] = 0;
        if (step == 0)
            row->flags[lane] = RM_FLAG_FIRST;
        if (step == 5 + lane)
            row->flags[lane] = at / (6 + lane) % 2 ? RM_FLAG_TERMINATED : RM_FLAG_TRUNCATED;
        row->reward[lane] = 2 * rm_rng_float(&rng) - 1;
        row->action[lane] = (int32_t)rm_rng_below(&rng, ACTIONS);
        for (uint32_t a = 0; a < ACTIONS; a++)
            row->mask[lane * ACTIONS + a] = rm_rng_below(&rng, 3) > 0;
    }
    *row->generation = 1;
}

void rm_test_sides_write(struct rm_ring *ring, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct rm_row row;
        rm_ring_reserve(ring, &row);
        fill_row(&row, rm_ring_committed(ring) - ring->spec.first_index);
        rm_ring_commit(ring);
    }
}

void rm_test_sides_write_dead(struct rm_ring *ring, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct rm_row row;
        rm_ring_reserve(ring, &row);
        fill_row(&row, 0);
        memset(row.flags, RM_FLAG_DEAD, RM_SIDES_LANES);
        rm_ring_commit(ring);
    }
}

/* --- who learns from them -------------------------------------------------------------------- */

void rm_test_scene_open(struct rm_test_scene *s, enum rm_algorithm name, bool plain,
                        bool by_priority)
{
    memset(s, 0, sizeof *s);
    s->experiment = rm_test_updates_experiment(name, plain);
    s->experiment.sample.n_step = 3;
    s->experiment.sample.frame_stack = STACK;
    s->experiment.algorithm.target.tau = 0.1;
    s->experiment.priority.kind = by_priority ? RM_PRIORITY_PROPORTIONAL : RM_PRIORITY_UNIFORM;
    open_ring(&s->ring);
    s->source = (struct rm_sampler_source){&s->ring, 0, RM_SIDES_LANES};
}

static void open_trainer(struct rm_test_side *side, const struct rm_experiment *e)
{
    const bool fixed = rm_algo_of(e->algorithm.name)->fixed_fractions;
    const struct rm_trainer_spec spec = {
        .experiment = e,
        .backend = side->feed ? rm_test_device : rm_test_cpu,
        .policy = 2,
        .shape = {.inputs = FEATURES * STACK,
                  .actions = ACTIONS,
                  .outputs_per_action = fixed ? e->algorithm.quantiles : 1},
        .name = "policy",
        .masks = true,
        .draw = side->feed ? rm_feed_draw(side->feed) : NULL,
    };
    if (rm_trainer_create(&side->trainer, &spec, &failure))
        fail_msg("%s", failure.text);
}

void rm_test_side_open(struct rm_test_side *side, const struct rm_test_scene *s, bool on_device)
{
    const struct rm_experiment *e = &s->experiment;
    const struct rm_priorities_spec tree = {
        .slots = RM_SIDES_SLOTS, .lanes = RM_SIDES_LANES, .sources = 1};
    memset(side, 0, sizeof *side);
    if (rm_priorities_create(&side->tree, &tree, &failure))
        fail_msg("%s", failure.text);
    const struct rm_sampler_spec sampler = {
        .sources = &s->source,
        .source_count = 1,
        .agents = 1,
        .agent = &agent,
        .batch = e->sample.batch,
        .n_step = e->sample.n_step,
        .frame_stack = STACK,
        .gamma = 0.95,
        .capacity = RM_SIDES_SLOTS * RM_SIDES_LANES,
        .seed = e->seed,
        .policy = 2,
        .priorities = e->priority.kind == RM_PRIORITY_UNIFORM ? NULL : &side->tree,
        .alpha = 0.6,
        .epsilon = 1e-3,
    };
    const struct rm_feed_spec feed = {
        .backend = rm_test_device, .sampler = &sampler, .kind = RM_FEED_RESIDENT, .name = "policy"};
    if (rm_sampler_create(&side->sampler, &sampler, &failure) ||
        (on_device && rm_feed_create(&side->feed, &feed, &failure)))
        fail_msg("%s", failure.text);
    rm_sampler_device_draws(side->sampler, on_device);
    open_trainer(side, e);
}

void rm_test_side_close(struct rm_test_side *side)
{
    rm_trainer_destroy(side->trainer);
    rm_feed_destroy(side->feed);
    rm_sampler_destroy(side->sampler);
    rm_priorities_close(&side->tree);
}

static double beta_of(uint64_t number)
{
    return 0.4 + 0.006 * (double)number;
}

void rm_test_side_update_here(struct rm_test_side *side, uint64_t number)
{
    struct rm_batch *b = rm_sampler_batch(side->sampler);
    rm_sampler_window_free(side->sampler);
    rm_sampler_set_beta(side->sampler, beta_of(number));
    assert_true(rm_sampler_draw(side->sampler, number, b));
    const struct rm_trainer_result r = rm_trainer_update(side->trainer, b, number, NULL);
    assert_false(r.skipped);
    rm_sampler_learned(side->sampler, b);
    side->ages[number] = rm_sampler_counts(side->sampler).age_sum;
    side->report.made++;
    side->report.mean.loss += r.loss;
    side->report.mean.q_mean += r.q_mean;
}

void rm_test_side_poll(struct rm_test_side *side, bool wait)
{
    struct rm_trainer_report r, *t = &side->report;
    assert_null(rm_trainer_learned(side->trainer)); /* nothing comes back of samples */
    if (!rm_trainer_report(side->trainer, wait, &r))
        return;
    t->made += r.made;
    t->skipped += r.skipped;
    t->mean.loss += (double)r.made * r.mean.loss;
    t->mean.q_mean += (double)r.made * r.mean.q_mean;
    t->drawn.rejected += r.drawn.rejected;
    t->drawn.age_sum += r.drawn.age_sum;
    t->drawn.age_count += r.drawn.age_count;
    t->drawn.dry += r.drawn.dry;
    t->through = r.through;
    if (r.through <= RM_SIDES_UPDATES)
        side->ages[r.through] = t->drawn.age_sum;
}

void rm_test_side_launch(struct rm_test_side *side, struct rm_batch *b, uint64_t number)
{
    rm_sampler_window_free(side->sampler);
    rm_feed_copy(side->feed, side->sampler);
    assert_true(rm_feed_turn(side->feed, side->sampler, beta_of(number), b->turn));
    assert_true(rm_trainer_update(side->trainer, b, number, NULL).late);
}

void rm_test_side_update_there(struct rm_test_side *side, uint64_t number)
{
    struct rm_batch *b = rm_trainer_batch(side->trainer);
    rm_test_side_poll(side, false);
    rm_test_side_launch(side, b, number);
}

uint64_t rm_test_sides_rows_before(uint64_t number)
{
    return number == 1 ? 20 : number == 50 ? 70 : number % 4;
}
