/* Sampling while a writer overtakes: what it spoiled is never given out. */
#include "learner/sampler.h"
#include "shm/base/clock.h"
#include "tests/support/rows.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WORDS 512
#define BATCH 16

static struct rm_env_agent wide = {
    .name = "agent_0", .dtype = RM_ENV_I32, .dims = 1, .shape = {WORDS}, .actions = INT32_MAX};

static struct rm_sampler *make(const struct rm_sampler_source *source,
                               const struct rm_env_agent *agent, uint32_t batch)
{
    struct rm_error error = {""};
    struct rm_sampler *s;
    const struct rm_sampler_spec spec = {
        .sources = source,
        .source_count = 1,
        .agents = 1,
        .agent = agent,
        .batch = batch,
        .n_step = 2,
        .frame_stack = 2,
        .gamma = 1,
        .capacity = 1u << 20,
        .seed = 3,
    };
    if (rm_sampler_create(&s, &spec, &error))
        fail_msg("%s", error.text);
    return s;
}

/* The window is fixed, then the writer laps all of it: every copy is found spoiled. */
static void a_lapped_window_gives_nothing(void **state)
{
    (void)state;
    static struct rm_test_rows rows;
    static const uint32_t length[] = {300};
    static const uint8_t end[] = {RM_FLAG_TERMINATED};
    struct rm_env_agent agent = rm_test_rows_agent(false);
    struct rm_ring ring;
    rm_test_rows_fill(&rows, 1, 200, length, end);
    assert_int_equal(rm_test_rows_ring(&ring, 32, 1, false), 0);
    rm_test_rows_write(&rows, &ring, 0, 0, 40);
    const struct rm_sampler_source source = {&ring, 0, 1};
    struct rm_sampler *s = make(&source, &agent, 1);
    rm_sampler_window_free(s);
    assert_int_equal(rm_sampler_draw(s, 1, rm_sampler_batch(s)), 1);
    rm_test_rows_write(&rows, &ring, 0, 40, 80);
    assert_int_equal(rm_sampler_draw(s, 2, rm_sampler_batch(s)), 0);
    assert_true(rm_sampler_counts(s).torn > 0);
    rm_sampler_window_free(s);
    assert_int_equal(rm_sampler_draw(s, 3, rm_sampler_batch(s)), 1);
    rm_sampler_destroy(s);
    rm_ring_close(&ring);
}

/* Row i is i all over. A process of its own, so that the memory is shared as it is in a run. */
static void write_for_ever(struct rm_ring *ring)
{
    for (int32_t i = 0;; i++) {
        struct rm_row row;
        rm_ring_reserve(ring, &row);
        int32_t *obs = (int32_t *)(void *)row.obs;
        row.flags[0] = i == 0 ? RM_FLAG_FIRST : 0;
        row.reward[0] = (float)(i & 0xffff);
        row.action[0] = i;
        for (uint32_t k = 0; k < WORDS; k++)
            obs[k] = i & 0xffff;
        rm_ring_commit(ring);
    }
}

static void check_one(const struct rm_batch *b, uint32_t k)
{
    const float *obs = b->obs + k * b->inputs, *next = b->next_obs + k * b->inputs;
    const int32_t i = b->action[k];
    const float before = i == 0 ? 0 : (float)((i - 1) & 0xffff); /* row 0 begins the episode */
    for (uint32_t w = 0; w < WORDS; w++) {
        assert_true(obs[WORDS + w] == (float)(i & 0xffff));
        if (obs[w] != before)
            fail_msg("row %d: word %u of the frame before it is %g", i, w, (double)obs[w]);
        assert_true(next[w] == (float)((i + 1) & 0xffff));
        assert_true(next[WORDS + w] == (float)((i + 2) & 0xffff));
    }
    assert_true(b->ret[k] == (float)((i + 1) & 0xffff) + (float)((i + 2) & 0xffff));
}

static void what_is_given_out_is_whole(void **state)
{
    (void)state;
    struct rm_error error = {""};
    struct rm_ring ring;
    const struct rm_ring_spec spec = {
        .rows = 64,
        .lanes = 1,
        .obs_bytes = WORDS * sizeof(int32_t),
        .action_words = 1,
        .first_index = UINT64_MAX - 1000,
    };
    assert_int_equal(rm_ring_create(&ring, &spec, &error), 0);
    rm_ring_writer_open(&ring);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write_for_ever(&ring);
    }
    const struct rm_sampler_source source = {&ring, 0, 1};
    struct rm_sampler *s = make(&source, &wide, BATCH);
    const uint64_t until = rm_now_ns() + RM_NS_PER_S / 2;
    uint32_t batches = 0;
    for (uint64_t u = 1; rm_now_ns() < until || batches == 0; u++) {
        rm_sampler_window_free(s);
        if (!rm_sampler_draw(s, u, rm_sampler_batch(s)))
            continue;
        batches++;
        for (uint32_t k = 0; k < BATCH; k++)
            check_one(rm_sampler_batch(s), k);
    }
    print_message("%u batches whole, %llu copies overtaken and drawn again\n", batches,
                  (unsigned long long)rm_sampler_counts(s).torn);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    rm_sampler_destroy(s);
    rm_ring_close(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lapped_window_gives_nothing),
        cmocka_unit_test(what_is_given_out_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
