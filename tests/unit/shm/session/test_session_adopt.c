/* A session outlives the daemon that made it, if somebody keeps its descriptors. */
#include "actor/worlds/plan.h"
#include "config/config.h"
#include "shm/atomic.h"
#include "shm/layout.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT_MAX 64

static struct rm_experiment experiment;
static struct rm_plan plan;
static struct rm_error error;

static void configure(const char *more)
{
    char json[1024];
    snprintf(json, sizeof json,
             "{\"name\": \"adopt\", \"world\": {\"name\": \"count\"},"
             " \"actor\": {\"count\": 2, \"worlds\": 4},"
             " \"sample\": {\"min_fill\": 100}, \"ring\": {\"capacity\": 200},"
             " \"priority\": {\"kind\": \"proportional\"}%s}",
             more);
    if (rm_config_parse(&experiment, "test", json, strlen(json), NULL, 0, &error) ||
        rm_plan_make(&plan, &experiment, &error))
        fail_msg("%s", error.text);
}

/* A session that has seen something; its descriptors as a keeper would hold them. */
static uint32_t leave_session(int *fds, uint64_t *rows)
{
    struct rm_session session;
    struct rm_row row;
    configure("");
    assert_int_equal(rm_session_create(&session, &experiment, &plan, &error), 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(rm_ring_reserve(&session.rings[1], &row), 1);
        row.reward[0] = (float)i;
        rm_ring_commit(&session.rings[1]);
    }
    float *params = calloc(session.weights[0].count, sizeof *params);
    assert_non_null(params);
    params[0] = 4.5f;
    rm_weights_publish(&session.weights[0], params, (struct rm_weights_stamp){.updates = 9});
    free(params);
    RM_POKE(&session.board.policies[0].env_steps, 77);
    RM_POKE(&session.board.run->stop, 1);
    RM_POKE(&session.board.workers[0].pid, 1234);
    const uint32_t count = rm_session_kept(&session, fds, KEPT_MAX);
    assert_in_range(count, 6, KEPT_MAX);
    for (uint32_t i = 0; i < count; i++)
        fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
    *rows = rm_session_rows(&session);
    assert_int_equal(*rows, 5);
    rm_session_close(&session);
    return count;
}

static void everything_comes_back(void **state)
{
    struct rm_session session;
    struct rm_weights_stamp stamp;
    int fds[KEPT_MAX];
    float first;
    uint64_t rows;
    (void)state;
    const uint32_t count = leave_session(fds, &rows);
    configure(", \"optimizer\": {\"learning_rate\": 0.125}"); /* may change while running */
    if (rm_session_adopt(&session, &experiment, &plan, fds, count, &error))
        fail_msg("%s", error.text);
    assert_int_equal(rm_session_rows(&session), rows);
    assert_true(rm_ring_row(&session.rings[1], 4).reward[0] == 4.0f);
    assert_int_equal(rm_weights_read(&session.weights[0], &first, 1, &stamp, NULL), 1);
    assert_true(first == 4.5f);
    assert_int_equal(stamp.updates, 9);
    assert_int_equal(RM_PEEK(&session.board.policies[0].env_steps), 77);
    assert_int_equal(RM_PEEK(&session.board.run->stop), 0);
    assert_int_equal(RM_PEEK(&session.board.workers[0].pid), 0);
    assert_true(RM_PEEK(&session.board.run->settings[RM_HOT_LEARNING_RATE]) == 0.125);
    /* It can be kept again, and workers can be given all of it. */
    assert_int_equal(rm_session_kept(&session, fds, KEPT_MAX), count);
    for (uint32_t i = 0; i < count; i++)
        assert_true(fcntl(fds[i], F_GETFD) >= 0);
    rm_session_close(&session);
    for (uint32_t i = 0; i < count; i++)
        assert_true(fcntl(fds[i], F_GETFD) < 0); /* it owned them */
}

static void what_does_not_fit_is_refused(void **state)
{
    static const struct {
        const char *more, *words;
    } cases[] = {
        {", \"seed\": 2", "the configuration has changed since: seed"},
        {", \"network\": {\"layers\": []}", "network.layers"},
    };
    struct rm_session session;
    int fds[KEPT_MAX];
    uint64_t rows;
    (void)state;
    const uint32_t count = leave_session(fds, &rows);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        configure(cases[i].more);
        assert_int_equal(rm_session_adopt(&session, &experiment, &plan, fds, count, &error),
                         -EPROTO);
        if (!strstr(error.text, cases[i].words))
            fail_msg("'%s' lacks '%s'", error.text, cases[i].words);
    }
    configure("");
    assert_int_equal(rm_session_adopt(&session, &experiment, &plan, fds, count - 1, &error),
                     -EPROTO);
    const int board = fds[1];
    fds[1] = fds[2]; /* weights where the board should be */
    assert_int_equal(rm_session_adopt(&session, &experiment, &plan, fds, count, &error), -EPROTO);
    fds[1] = board;
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(close(fds[i]), 0); /* they stayed the caller's */
}

/* What a world writes there may be any number; a session with it could have no checkpoint. */
static void counts_that_cannot_be_are_refused(void **state)
{
    struct rm_session session;
    int fds[KEPT_MAX], kept[KEPT_MAX];
    uint64_t rows;
    (void)state;
    const uint32_t count = leave_session(fds, &rows);
    assert_int_equal(rm_session_adopt(&session, &experiment, &plan, fds, count, &error), 0);
    assert_int_equal(rm_session_kept(&session, kept, KEPT_MAX), count);
    const struct {
        _Atomic uint64_t *at;
        const char *words;
    } cases[] = {
        {&session.board.workers[0].steps, "it says step 9223372036854775808"},
        {&session.board.policies[0].updates, "it says update 9223372036854775808"},
        {&session.board.round->current, "it says round 9223372036854775808"},
        {&session.board.run->evaluations, "it says evaluation 9223372036854775808"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rm_session again;
        const uint64_t before = RM_PEEK(cases[i].at);
        RM_POKE(cases[i].at, (uint64_t)INT64_MAX + 1);
        assert_int_equal(rm_session_adopt(&again, &experiment, &plan, kept, count, &error),
                         -EPROTO);
        if (!strstr(error.text, cases[i].words))
            fail_msg("'%s' lacks '%s'", error.text, cases[i].words);
        RM_POKE(cases[i].at, before);
    }
    rm_session_close(&session);
}

/* By the actor that could write it. */
static void a_damaged_ring_names_its_actor(void **state)
{
    struct rm_session session, again;
    int fds[KEPT_MAX], kept[KEPT_MAX];
    uint64_t rows;
    (void)state;
    const uint32_t count = leave_session(fds, &rows);
    assert_int_equal(rm_session_adopt(&session, &experiment, &plan, fds, count, &error), 0);
    assert_int_equal(rm_session_kept(&session, kept, KEPT_MAX), count);
    struct rm_ring_shared *ring = session.rings[0].shared;
    for (int spoiled = 0; spoiled < 2; spoiled++) {
        const struct rm_ring_shared whole = *ring;
        if (spoiled == 0)
            memset(&ring->header.version, 0, sizeof ring->header.version);
        else
            ring->spec.lanes++;
        assert_int_equal(rm_session_adopt(&again, &experiment, &plan, kept, count, &error),
                         -EPROTO);
        if (!strstr(error.text, " was damaged by actor-0: "))
            fail_msg("spoiled %d: %s", spoiled, error.text);
        memcpy(ring, &whole, sizeof whole);
    }
    rm_session_close(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_back),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(counts_that_cannot_be_are_refused),
        cmocka_unit_test(a_damaged_ring_names_its_actor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
