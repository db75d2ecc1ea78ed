/* Batches made on a device from replay rows, compared with the host's: every kind of observation,
 * stacks and masks; and whole runs with every kind of feed. */
#include "actor/env.h"
#include "learner/backend/device_feed.h"
#include "learner/feed.h"
#include "learner/net/features.h"
#include "shm/atomic.h"
#include "shm/base/rng.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/replay_run.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 8, LANES = 3, ELEMENTS = 10, ACTIONS = 3, BATCH = 40, STACK = 3, SOURCES = 2 };

static struct rm_backend *device;

static int open_device(void **state)
{
    (void)state;
    device = rm_test_device_open();
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    rm_backend_destroy(device);
    return 0;
}

/* Rows as they stand in a ring: observations, then masks. */
struct rows {
    uint8_t *bytes, *on_device;
    size_t stride, mask_at;
};

struct bench {
    struct rm_env_agent agent;
    struct rows rows[SOURCES];
    struct rm_device_pick picks[BATCH];
    struct rm_rng rng;
};

static void *on_device(const void *from, size_t bytes)
{
    const size_t words = bytes / 4 + 1;
    float *padded = calloc(words, sizeof *padded);
    void *to = device->ops->alloc_bytes(device, words * 4, NULL);
    assert_true(padded && to);
    if (from)
        memcpy(padded, from, bytes);
    device->ops->upload(device, to, padded, words);
    free(padded);
    return to;
}

static void make_rows(struct bench *b, struct rows *r)
{
    const size_t obs = rm_features_bytes(&b->agent) * LANES;
    r->mask_at = (obs + 63) / 64 * 64;
    r->stride = r->mask_at + 64;
    r->bytes = calloc(ROWS, r->stride);
    assert_non_null(r->bytes);
    for (size_t i = 0; i < ROWS * r->stride; i++)
        r->bytes[i] = (uint8_t)rm_rng_below(&b->rng, 256);
    if (b->agent.observations) /* not always more than there can be */
        for (size_t i = 0; i < (size_t)ROWS * LANES; i++) {
            uint8_t *entry =
                r->bytes + i / LANES * r->stride + i % LANES * rm_features_bytes(&b->agent);
            const uint32_t count = rm_rng_below(&b->rng, 5);
            const float share = rm_rng_float(&b->rng);
            memcpy(entry + rm_features_place(&b->agent, 0, 1).at - 4, &count, sizeof count);
            memcpy(entry + rm_features_place(&b->agent, 0, 3).at, &share, sizeof share);
        }
    else if (b->agent.dtype == RM_ENV_F32) /* numbers, not any bits */
        for (size_t row = 0; row < ROWS; row++)
            for (size_t i = 0; i < (size_t)LANES * ELEMENTS; i++) {
                const float x = rm_rng_float(&b->rng);
                memcpy(r->bytes + row * r->stride + i * sizeof x, &x, sizeof x);
            }
    r->on_device = on_device(r->bytes, ROWS * r->stride);
}

/* Rows just below a wrap of indices. */
static void draw_picks(struct bench *b)
{
    for (uint32_t i = 0; i < BATCH; i++) {
        b->picks[i] = (struct rm_device_pick){
            .row = UINT64_MAX - 5 + rm_rng_below(&b->rng, 8),
            .source = rm_rng_below(&b->rng, SOURCES),
            .lane = rm_rng_below(&b->rng, LANES),
            .before = rm_rng_below(&b->rng, STACK),
            .steps = 1 + rm_rng_below(&b->rng, 3),
        };
    }
}

static const float book[4 * 2] = {1, 2, 3, 4, 5, 6, 7, 8};

static const struct rm_env_observation list[] = {
    {.name = "bytes", .dtype = RM_ENV_I8, .dims = 1, .shape = {3}},
    {.name = "items", .dtype = RM_ENV_I16, .dims = 2, .shape = {3, 2}, .counted = 1},
    {.name = "codes",
     .dtype = RM_ENV_CODE8,
     .dims = 2,
     .shape = {2, 3},
     .codes = 4,
     .channels = 2,
     .codebook = book},
    {.name = "share", .dtype = RM_ENV_F32, .dims = 1, .shape = {1}},
};
enum { SEVERAL = 77 }; /* in the place of a dtype */

static void set_up(struct bench *b, uint32_t dtype)
{
    memset(b, 0, sizeof *b);
    b->rng = rm_rng_at(8, RM_STREAM_TEST, dtype, 0);
    b->agent = (struct rm_env_agent){
        .dtype = dtype, .dims = 1, .shape = {ELEMENTS}, .actions = ACTIONS, .has_mask = 1};
    if (dtype == SEVERAL) {
        b->agent.observations = sizeof list / sizeof list[0];
        b->agent.observation = list;
    }
    if (dtype == RM_ENV_CODE8) {
        b->agent.codes = 4;
        b->agent.channels = 2;
        b->agent.codebook = book;
    }
    for (int i = 0; i < SOURCES; i++)
        make_rows(b, &b->rows[i]);
    draw_picks(b);
}

static void tear_down(struct bench *b)
{
    for (int i = 0; i < SOURCES; i++) {
        free(b->rows[i].bytes);
        device->ops->release(device, b->rows[i].on_device);
    }
}

static const uint8_t *row_at(const struct bench *b, const struct rm_device_pick *p, int64_t offset)
{
    const struct rows *r = &b->rows[p->source];
    return r->bytes + ((p->row + (uint64_t)offset) & (ROWS - 1)) * r->stride;
}

/* The host's stack whose newest frame is `newest` rows after the pick's. */
static void stack(const struct bench *b, const struct rm_device_pick *p, uint32_t newest,
                  uint32_t codes, float *out)
{
    const uint8_t *frames[STACK];
    for (int64_t i = 0; i < STACK; i++) {
        const int64_t offset = (int64_t)newest - (STACK - 1) + i;
        frames[i] = offset < -(int64_t)p->before
                        ? NULL
                        : row_at(b, p, offset) + p->lane * rm_features_bytes(&b->agent);
    }
    rm_features_take_stack(&b->agent, codes, frames, STACK, out);
}

struct made {
    float *obs, *next_obs;
    uint8_t next_mask[(BATCH * ACTIONS + 3) / 4 * 4];
};

static struct made gather(struct bench *b, uint32_t codes)
{
    const uint32_t words = rm_features_words(&b->agent, codes);
    const size_t floats = (size_t)BATCH * STACK * words;
    struct rm_device_source sources[SOURCES];
    for (int i = 0; i < SOURCES; i++)
        sources[i] = (struct rm_device_source){.rows = b->rows[i].on_device,
                                               .stride = b->rows[i].stride,
                                               .row_mask = ROWS - 1,
                                               .mask_at = b->rows[i].mask_at};
    void *buffers[] = {on_device(sources, sizeof sources), on_device(b->picks, sizeof b->picks),
                       on_device(NULL, floats * 4),        on_device(NULL, floats * 4),
                       on_device(NULL, BATCH * ACTIONS),   on_device(book, sizeof book)};
    struct rm_device_decode decode = rm_feed_decode(&b->agent, codes);
    for (uint32_t i = 0; i < decode.observations; i++)
        decode.observation[i].codebook = decode.observation[i].channels ? buffers[5] : NULL;
    const struct rm_device_gather g = {
        .sources = buffers[0],
        .decode = decode,
        .stack = STACK,
        .batch = BATCH,
        .picks = buffers[1],
        .obs = buffers[2],
        .next_obs = buffers[3],
        .next_mask = buffers[4],
    };
    struct made m = {.obs = calloc(floats, 4), .next_obs = calloc(floats, 4)};
    assert_true(m.obs && m.next_obs);
    device->device->feed->gather(device, &g);
    device->ops->download(device, m.obs, buffers[2], floats);
    device->ops->download(device, m.next_obs, buffers[3], floats);
    device->ops->download(device, (float *)(void *)m.next_mask, buffers[4],
                          (BATCH * ACTIONS + 3) / 4);
    rm_test_device_fine(device);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        device->ops->release(device, buffers[i]);
    return m;
}

static void check(struct bench *b, uint32_t codes)
{
    const uint32_t words = rm_features_words(&b->agent, codes);
    const size_t row = (size_t)STACK * words;
    float *expected = calloc(row, sizeof *expected);
    struct made m = gather(b, codes);
    assert_non_null(expected);
    for (uint32_t i = 0; i < BATCH; i++) {
        const struct rm_device_pick *p = &b->picks[i];
        stack(b, p, 0, codes, expected);
        assert_memory_equal(m.obs + i * row, expected, row * sizeof *expected);
        stack(b, p, p->steps, codes, expected);
        assert_memory_equal(m.next_obs + i * row, expected, row * sizeof *expected);
        assert_memory_equal(m.next_mask + (size_t)i * ACTIONS,
                            row_at(b, p, p->steps) + b->rows[0].mask_at + p->lane * ACTIONS,
                            ACTIONS);
    }
    free(expected);
    free(m.obs);
    free(m.next_obs);
}

static void batches_are_the_hosts(void **state)
{
    (void)state;
    for (uint32_t dtype = RM_ENV_U8; dtype <= RM_ENV_CODE8; dtype++) {
        struct bench b;
        set_up(&b, dtype);
        check(&b, 0);
        check(&b, 1);
        tear_down(&b);
    }
}

/* Several observations in an entry, one of them counted; which of them become codes has a bit each.
 */
static void batches_of_several_observations_are_the_hosts(void **state)
{
    (void)state;
    for (uint32_t codes = 0; codes < 8; codes++) {
        struct bench b;
        set_up(&b, SEVERAL);
        check(&b, codes);
        tear_down(&b);
    }
}

/* --- whole runs ------------------------------------------------------------------------------ */

/* The policy that a run in lockstep ends with, fed so. */
static char *policy_of(const char *feed, const char *more, size_t *bytes)
{
    struct rm_replay_run run;
    char json[512];
    snprintf(
        json, sizeof json,
        RM_REPLAY_LOCKSTEP_OF("%u") ", \"learner\": {\"device\": \"cuda:0\", \"feed\": \"%s\"}, "
                                    "\"actor\": {\"count\": 2, \"worlds\": 3}%s",
        rm_test_effort(2000, 200), feed, more);
    rm_replay_run_start(&run, RM_REPLAY_DQN, "sequential", json);
    rm_replay_run_to_its_end(&run);
    char *tensors = rm_replay_run_tensors(&run, bytes);
    const struct rm_board_policy *board = &run.session.board.policies[0];
    assert_true(RM_PEEK(&board->samples) > 0);
    assert_true(RM_PEEK(&board->age_count) == RM_PEEK(&board->samples));
    assert_true(RM_PEEK(&board->age_sum) >= RM_PEEK(&board->samples));
    assert_true(RM_PEEK(&board->device_bytes_in) > 0);
    assert_true(RM_PEEK(&board->device_bytes_out) > 0);
    rm_replay_run_stop(&run);
    return tensors;
}

static void same_policies(const char *const *feeds, size_t count, const char *more)
{
    size_t bytes, first_bytes;
    char *first = policy_of(feeds[0], more, &first_bytes);
    for (size_t i = 1; i < count; i++) {
        char *other = policy_of(feeds[i], more, &bytes);
        assert_int_equal(bytes, first_bytes);
        assert_memory_equal(other, first, bytes);
        free(other);
    }
    free(first);
}

/* By priority the device's own draws know of errors at once, the host's when they have come back.
 */
static void every_feed_trains_the_same_policy(void **state)
{
    static const char *const all[] = {"staged", "resident", "auto"};
    const char *const by_priority = ", \"priority\": {\"kind\": \"proportional\"}";
    (void)state;
    rm_test_device_use();
    same_policies(all, 3, "");
    same_policies(all + 1, 2, by_priority);
}

/* A learner that was made has nothing under way. */
static void a_learner_begins_with_nothing_under_way(void **state)
{
    struct rm_replay_run run;
    (void)state;
    rm_test_device_use();
    if (!rm_test_emulated())
        skip();
    rm_replay_run_start(&run, RM_REPLAY_DQN, "sequential",
                        RM_REPLAY_LOCKSTEP ", \"learner\": {\"device\": \"cuda:0\"}, "
                                           "\"actor\": {\"count\": 1, \"worlds\": 3}");
    assert_int_equal(rm_test_emulated_waiting(), 0);
    for (uint32_t turn = 0; turn < 400 && !rm_test_emulated_waiting(); turn++)
        for (uint32_t i = 0; i <= run.actors; i++)
            rm_test_turn(&run.duty[i]);
    assert_true(rm_test_emulated_waiting() > 0); /* as it would be in the middle of a run */
    rm_replay_run_stop(&run);
}

/* --- too little to draw from ----------------------------------------------------------------- */

struct outcome {
    char *tensors;
    size_t bytes;
    uint64_t updates, samples, sampled, inserted;
};

/* Rounds so short, and returns over so many steps, that the first rounds hold no whole transition.
 */
static struct outcome begin_slowly(const char *learner, const char *more)
{
    struct rm_replay_run run;
    char json[512];
    snprintf(json, sizeof json,
             "\"run\": {\"steps\": %u, \"round_steps\": 2}, \"ring\": {\"capacity\": 512}, "
             "\"sample\": {\"batch\": 4, \"n_step\": 9, \"min_fill\": 4}, \"limiter\": "
             "{\"updates_per_step\": 1}, \"actor\": {\"worlds\": 2}, \"learner\": {%s}%s",
             rm_test_effort(240, 60), learner, more);
    rm_replay_run_start(&run, RM_REPLAY_DQN, "sequential", json);
    rm_replay_run_to_its_end(&run);
    const struct rm_board_policy *board = &run.session.board.policies[0];
    struct outcome o = {.updates = RM_PEEK(&board->updates),
                        .samples = RM_PEEK(&board->samples),
                        .sampled = RM_PEEK(&board->limiter.sampled),
                        .inserted = RM_PEEK(&board->limiter.inserted)};
    o.tensors = rm_replay_run_tensors(&run, &o.bytes);
    rm_replay_run_stop(&run);
    return o;
}

static void same_counts(const struct outcome *x, const struct outcome *y)
{
    assert_int_equal(x->updates, y->updates);
    assert_int_equal(x->samples, y->samples);
    assert_int_equal(x->sampled, y->sampled);
    assert_int_equal(x->inserted, y->inserted);
}

/* The device finds out that there is nothing to draw when the host has counted the draw already:
 * counts are those of a host that knew, and so are policies. */
static void draws_that_found_nothing_are_taken_back(void **state)
{
    static const char *const more[] = {"", ", \"priority\": {\"kind\": \"proportional\"}"};
    (void)state;
    rm_test_device_use();
    for (int i = 0; i < 2; i++) {
        struct outcome cpu = begin_slowly("\"device\": \"cpu\"", more[i]);
        struct outcome here = begin_slowly("\"device\": \"cuda:0\", \"feed\": \"staged\"", more[i]);
        struct outcome there =
            begin_slowly("\"device\": \"cuda:0\", \"feed\": \"resident\"", more[i]);
        assert_true(there.updates > 0);
        assert_int_equal(there.samples, 4 * there.updates);
        assert_int_equal(there.sampled, there.samples);
        if (i == 0) { /* else they act, and episodes end, a little differently */
            same_counts(&here, &cpu);
            same_counts(&there, &cpu);
            assert_int_equal(there.bytes, here.bytes);
            assert_memory_equal(there.tensors, here.tensors, here.bytes);
        }
        free(cpu.tensors);
        free(here.tensors);
        free(there.tensors);
    }
}

/* With "auto", batches are staged if the replay does not fit or leaves the trainer too little
 * memory. "resident" is refused with a message then. Priorities show which of the two is used. */
static void a_replay_that_does_not_fit_is_staged(void **state)
{
    static const char *const faults[] = {"cudaMalloc:2@8", "cudaMalloc:2@30"};
    const char *const by_priority = ", \"priority\": {\"kind\": \"proportional\"}";
    size_t bytes, other_bytes;
    (void)state;
    rm_test_device_use();
    if (!rm_test_emulated())
        skip();
    char *staged = policy_of("staged", by_priority, &bytes);
    char *resident = policy_of("resident", by_priority, &bytes);
    assert_memory_not_equal(staged, resident, bytes);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        rm_test_emulated_fault(faults[i]);
        char *without = policy_of("auto", by_priority, &other_bytes);
        rm_test_emulated_fault(NULL);
        assert_memory_equal(without, staged, bytes);
        free(without);
    }
    free(staged);
    free(resident);
}

/* A device that maps no memory of the host's could not write priorities through. */
static void mappings_that_are_refused_are_done_without(void **state)
{
    const char *const by_priority = ", \"priority\": {\"kind\": \"proportional\"}";
    size_t bytes, other_bytes;
    (void)state;
    rm_test_device_use();
    if (!rm_test_emulated())
        skip();
    char *staged = policy_of("staged", by_priority, &bytes);
    rm_test_emulated_fault("cudaHostRegister:801@1+");
    char *without = policy_of("auto", by_priority, &other_bytes);
    rm_test_emulated_fault(NULL);
    assert_int_equal(other_bytes, bytes);
    assert_memory_equal(without, staged, bytes);
    free(staged);
    free(without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(batches_are_the_hosts, open_device, close_device),
        cmocka_unit_test_setup_teardown(batches_of_several_observations_are_the_hosts, open_device,
                                        close_device),
        cmocka_unit_test(every_feed_trains_the_same_policy),
        cmocka_unit_test(a_learner_begins_with_nothing_under_way),
        cmocka_unit_test(draws_that_found_nothing_are_taken_back),
        cmocka_unit_test(a_replay_that_does_not_fit_is_staged),
        cmocka_unit_test(mappings_that_are_refused_are_done_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
