/* priority_scene: rows, a tree of priorities and what is counted of a learner, in memory that it
 * shares with the test that kills it; what tests of learners that die while they change priorities
 * share. */
#ifndef RM_TESTS_CRASH_PRIORITY_SCENE_H
#define RM_TESTS_CRASH_PRIORITY_SCENE_H

#include "learner/priority_tree.h"
#include "learner/sampler.h"
#include "shm/atomic.h"
#include "tests/support/crew.h"
#include "tests/support/rows.h"
#include "tests/support/unit.h"

enum { WORLDS = 4, ROWS = 400, SLOTS = 40, BATCH = 32, N_STEP = 3 };

static struct rm_error failure;
static struct rm_test_rows rows;
static struct rm_env_agent agent;

struct scene {
    struct rm_ring ring;
    struct rm_priorities tree;
    struct rm_sampler_source source;
    _Atomic uint32_t written; /* rows */
    _Atomic uint64_t updates;
};

static struct scene *begin(void)
{
    static const uint32_t lengths[] = {7, 10, 5, 13};
    static const uint8_t ends[] = {RM_FLAG_TERMINATED, RM_FLAG_TRUNCATED, RM_FLAG_TRUNCATED,
                                   RM_FLAG_TERMINATED};
    const struct rm_priorities_spec spec = {.slots = SLOTS, .lanes = WORLDS, .sources = 1};
    struct scene *s = rm_crew_memory(sizeof *s);
    agent = rm_test_rows_agent(false);
    rm_test_rows_fill(&rows, WORLDS, ROWS, lengths, ends);
    if (rm_test_rows_ring(&s->ring, 64, WORLDS, false) ||
        rm_priorities_create(&s->tree, &spec, &failure))
        fail_msg("%s", failure.text);
    s->source = (struct rm_sampler_source){&s->ring, 0, WORLDS};
    return s;
}

static void end(struct scene *s)
{
    rm_ring_close(&s->ring);
    rm_priorities_close(&s->tree);
}

/* As far as there are some. */
static void write_rows(struct scene *s, uint32_t count)
{
    const uint32_t from = RM_PEEK(&s->written);
    if (from + count > ROWS)
        return;
    rm_test_rows_write(&rows, &s->ring, 0, from, from + count);
    RM_POKE(&s->written, from + count);
}

/* Whoever takes over samples so. */
static struct rm_sampler_spec spec_of(struct scene *s)
{
    return (struct rm_sampler_spec){
        .sources = &s->source,
        .source_count = 1,
        .agents = 1,
        .agent = &agent,
        .batch = BATCH,
        .n_step = N_STEP,
        .frame_stack = 1,
        .gamma = 0.9,
        .capacity = SLOTS * WORLDS,
        .seed = 5,
        .priorities = &s->tree,
        .alpha = 0.6,
        .epsilon = 1e-3,
    };
}

/* No row is lost, and none is there that cannot be learned from. */
static void check_rows(struct scene *s)
{
    const uint32_t written = RM_PEEK(&s->written);
    for (uint32_t w = 0; w < WORLDS; w++)
        for (uint32_t i = written > SLOTS ? written - SLOTS : 0; i < written; i++) {
            const bool in = i + N_STEP < written &&
                            rm_test_rows_expect(&rows, w, i, written, N_STEP, 0.9).valid;
            assert_int_equal(rm_priority_at(&s->tree, i % SLOTS * WORLDS + w) > 0, in);
        }
}

#endif
