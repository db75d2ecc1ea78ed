/* Death of a learner whose device draws and keeps the priorities (learner/feed.h): at every kernel
 * of an update, and by kill -9 at random moments. What the device wrote through to shared memory is
 * a tree that any successor goes on with, on the CPU or on a device, and no row is lost. */
#include "learner/feed.h"
#include "learner/priority_tree.h"
#include "shm/atomic.h"
#include "shm/base/rng.h"
#include "tests/crash/victim.h"
#include "tests/support/crew.h"
#include "tests/support/emulated.h"
#include "tests/support/rows.h"
#include "tests/support/unit.h"

#include <string.h>

enum { WORLDS = 4, ROWS = 400, SLOTS = 40, BATCH = 32, N_STEP = 3 };
enum { DIED = 70, BEGUN = 4 };

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
    rm_test_device_use();
    return s;
}

static void end(struct scene *s)
{
    rm_ring_close(&s->ring);
    rm_priorities_close(&s->tree);
}

static void write_rows(struct scene *s, uint32_t count)
{
    const uint32_t from = RM_PEEK(&s->written);
    if (from + count > ROWS)
        return;
    rm_test_rows_write(&rows, &s->ring, 0, from, from + count);
    RM_POKE(&s->written, from + count);
}

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

/* --- who dies -------------------------------------------------------------------------------- */

struct learner {
    struct rm_backend *device;
    struct rm_sampler *sampler;
    struct rm_feed *feed;
    struct rm_device_sampler draw;
    float *error; /* on the device */
};

static void *on_device(struct learner *l, size_t bytes)
{
    return l->device->device->alloc(l->device, bytes, &failure);
}

static int take_over(struct scene *s, struct learner *l)
{
    const struct rm_sampler_spec spec = spec_of(s);
    memset(l, 0, sizeof *l);
    l->device = rm_test_device_open();
    const struct rm_feed_spec feed = {
        .backend = l->device, .sampler = &spec, .kind = RM_FEED_RESIDENT, .name = "policy"};
    if (rm_sampler_create(&l->sampler, &spec, &failure) ||
        rm_feed_create(&l->feed, &feed, &failure))
        return 1;
    rm_sampler_elsewhere(l->sampler, true);
    l->draw = *rm_feed_draw(l->feed);
    l->draw.knobs = on_device(l, sizeof *l->draw.knobs);
    l->draw.turn = on_device(l, rm_device_turn_bytes(1));
    l->draw.figures = on_device(l, sizeof *l->draw.figures);
    l->draw.told = on_device(l, sizeof *l->draw.told);
    l->draw.picks = on_device(l, BATCH * sizeof *l->draw.picks);
    l->draw.action = on_device(l, BATCH * sizeof *l->draw.action);
    l->draw.ret = on_device(l, BATCH * sizeof *l->draw.ret);
    l->draw.discount = on_device(l, BATCH * sizeof *l->draw.discount);
    l->draw.weight = on_device(l, BATCH * sizeof *l->draw.weight);
    l->draw.leaf = on_device(l, BATCH * sizeof *l->draw.leaf);
    l->error = on_device(l, BATCH * sizeof *l->error);
    return l->error ? 0 : 1;
}

static void send(struct learner *l, const void *to, const void *from, size_t bytes)
{
    l->device->ops->upload(l->device, (float *)to, from, bytes / sizeof(float));
}

static void one_update(struct scene *s, struct learner *l)
{
    const uint64_t u = RM_PEEK(&s->updates) + 1;
    const struct rm_device_knobs knobs = {.before = u - 1};
    _Alignas(8) uint8_t turn[sizeof(struct rm_device_turn) + sizeof(struct rm_row_span)];
    float error[BATCH];
    for (uint32_t i = 0; i < BATCH; i++)
        error[i] = (float)((u * 7 + i * 3) % 29);
    rm_sampler_window_free(l->sampler);
    rm_feed_bring(l->feed, l->sampler);
    rm_feed_turn(l->feed, l->sampler, 1, (void *)turn);
    send(l, l->draw.knobs, &knobs, sizeof knobs);
    send(l, l->draw.turn, turn, sizeof turn);
    send(l, l->error, error, sizeof error);
    l->device->device->finish(l->device);
    l->device->device->feed->draw(l->device, &l->draw);
    l->device->device->feed->learned(l->device, &l->draw, l->error);
    l->device->device->finish(l->device);
    RM_POKE(&s->updates, u);
}

/* Goes on until it is killed, or its device gives an error. */
static int learner(void *arg)
{
    struct scene *s = arg;
    struct learner l;
    if (take_over(s, &l))
        return l.device && l.device->device->failed(l.device, &failure) ? DIED : 1;
    while (!l.device->device->failed(l.device, &failure))
        one_update(s, &l);
    return DIED;
}

/* A few updates of a successor, which ends well if all of them drew. */
static int successor(void *arg)
{
    struct scene *s = arg;
    struct learner l;
    struct rm_device_drawn told;
    if (take_over(s, &l))
        return 1;
    for (int i = 0; i < 3; i++)
        one_update(s, &l);
    if (l.device->device->failed(l.device, &failure))
        return 2;
    l.device->ops->download(l.device, (float *)(void *)&told,
                            (const float *)(const void *)l.draw.told, sizeof told / sizeof(float));
    return told.dry ? 3 : told.rejected ? 4 : told.age_count == 3 * BATCH ? 0 : 5;
}

/* --- what is left ---------------------------------------------------------------------------- */

static void check(struct scene *s)
{
    const struct rm_sampler_spec spec = spec_of(s);
    const uint32_t written = RM_PEEK(&s->written);
    struct rm_sampler *sampler = NULL;
    assert_int_equal(victim_wait(victim_start(successor, s, NULL, 0)), 0);
    if (rm_sampler_create(&sampler, &spec, &failure))
        fail_msg("%s", failure.text);
    rm_sampler_window_free(sampler);
    for (uint32_t w = 0; w < WORLDS; w++)
        for (uint32_t i = written > SLOTS ? written - SLOTS : 0; i < written; i++) {
            const bool in = i + N_STEP < written &&
                            rm_test_rows_expect(&rows, w, i, written, N_STEP, 0.9).valid;
            assert_int_equal(rm_priority_at(&s->tree, i % SLOTS * WORLDS + w) > 0, in);
        }
    const uint64_t number = RM_PEEK(&s->updates) + 1;
    assert_true(rm_sampler_draw(sampler, number, rm_sampler_batch(sampler)));
    assert_int_equal(rm_sampler_counts(sampler).rejected, 0);
    rm_sampler_destroy(sampler);
}

/* Every kernel of a take-over and of the updates behind it: those before it have run, no other. */
static void learner_dies_at_every_kernel(void **state)
{
    (void)state;
    struct scene *s = begin();
    write_rows(s, 12);
    for (unsigned nth = 1; nth <= 12; nth++) {
        char fault[32];
        snprintf(fault, sizeof fault, "launch:719@%u", nth);
        write_rows(s, 7);
        setenv("RM_EMULATED_FAULT", fault, 1);
        const pid_t pid = victim_start(learner, s, NULL, 0);
        unsetenv("RM_EMULATED_FAULT");
        assert_int_equal(victim_wait(pid), DIED);
        check(s);
    }
    assert_true(RM_PEEK(&s->written) > SLOTS && RM_PEEK(&s->updates) > 12);
    end(s);
}

static void random_kills(void **state)
{
    (void)state;
    struct rm_rng rng = rm_rng_at(3, RM_STREAM_TEST, 1, 0);
    struct scene *s = begin();
    write_rows(s, 50);
    const unsigned kills = (unsigned)(12 * rm_torture_seconds(1.0));
    for (unsigned i = 0; i < kills; i++) {
        const uint64_t before = RM_PEEK(&s->updates);
        write_rows(s, 5);
        pid_t pid = victim_start(learner, s, NULL, 0);
        while (RM_PEEK(&s->updates) < before + BEGUN && waitpid(pid, NULL, WNOHANG) == 0)
            usleep(100);
        usleep(rm_rng_below(&rng, 3000));
        kill(pid, SIGKILL);
        assert_int_equal(victim_wait(pid), VICTIM_KILLED);
        check(s);
    }
    printf("  %u kills, %llu updates\n", kills, (unsigned long long)RM_PEEK(&s->updates));
    end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learner_dies_at_every_kernel),
        cmocka_unit_test(random_kills),
    };
    alarm(240); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
