/* Worlds that misbehave, and actors that come back after a death. */
#include "actor/actor.h"
#include "actor/worlds/watch.h"
#include "config/config.h"
#include "shm/atomic.h"
#include "tests/support/acting.h"
#include "tests/support/session.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct rm_session session;

static void open_session(const char *options)
{
    char json[1024];

    snprintf(json, sizeof json,
             "{\"name\": \"faults\", \"seed\": 1, \"world\": {\"name\": \"count\","
             " \"options\": {%s}},"
             " \"actor\": {\"count\": 2, \"worlds\": 5},"
             " \"limiter\": {\"updates_per_step\": 0},"
             " \"epsilon\": {\"start\": 1, \"end\": 1},"
             " \"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 4}]}}",
             options);
    assert_int_equal(rm_test_session(&session, json), 0);
    rm_test_publish_random(&session, 1, 0);
}

static struct rm_actor *open_actor(uint32_t index, struct rm_duty *duty)
{
    struct rm_actor *actor;
    struct rm_error error = {""};

    if (rm_actor_create(&actor, &session, index, duty, &error) < 0)
        fail_msg("%s", error.text);
    return actor;
}

/* Steps actor 1 (worlds 3 and 4) until it fails; expects these words in what it says. */
static void fails_with(const char *options, uint32_t turns, const char *const *words)
{
    struct rm_error error = {""};
    struct rm_duty duty;
    uint32_t made = 0;
    int rc;

    open_session(options);
    struct rm_actor *actor = open_actor(1, &duty);
    while ((rc = duty.do_work(duty.self, &error)) > 0)
        made++;
    assert_true(rc < 0 && rc != RM_DUTY_DONE);
    assert_int_equal(made, turns);
    for (; *words; words++)
        if (!strstr(error.text, *words))
            fail_msg("\"%s\" does not name %s", error.text, *words);
    rm_actor_destroy(actor);
    rm_session_close(&session);
}
#define FAILS_WITH(options, turns, ...)                                                            \
    fails_with(options, turns, (const char *const[]){__VA_ARGS__, NULL})

static void broken_worlds_are_named(void **state)
{
    (void)state;
    /* what comes with the world's third step is in the row of the fourth turn */
    FAILS_WITH("\"fault_world\": 4, \"nan_step\": 3", 3, "world 4", "count", "agent_0", "episode 0",
               "step 3", "reward");
    FAILS_WITH("\"fault_world\": 3, \"mask\": 1, \"illegal_mask_step\": 2, \"phases\": 2,"
               " \"agents\": 2",
               2, "world 3", "agent_0", "episode 0", "step 2", "no legal action");
    FAILS_WITH("\"fault_world\": 4, \"fail_step\": 5", 4, "worlds 3..4", "count", "fail_step");
    /* the seventh turn is the last row of the first episode, the ninth the second step of the next
     */
    FAILS_WITH("\"length\": 1000, \"max_steps\": 6, \"fault_world\": 3, \"nan_step\": 8", 9,
               "world 3", "episode 1", "step 2");
}

/* A world that kills its process leaves a row reserved; who comes next counts it as lost, begins
 * anew and does not play the same again. */
static void a_respawned_actor_goes_on(void **state)
{
    (void)state;
    open_session("\"length\": 1000, \"max_steps\": 1000000, \"fault_world\": 3,"
                 " \"crash_step\": 41");
    struct rm_ring *ring = rm_session_ring(&session, 1, 0);
    pid_t child = fork();
    if (child == 0) {
        struct rm_duty duty;
        rm_watch_install("test", NULL);
        rm_watch_set_slot(&session.board.workers[1], -1);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        open_actor(1, &duty);
        while (rm_test_turn(&duty) > 0)
            ;
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    const char *report = session.board.workers[1].error;
    assert_non_null(strstr(report, "SIGSEGV in step() of count, worlds 3..4, seed "));
    assert_non_null(strstr(report, ", vector step 40; world 3: episode 0, step 40; world 4: "));
    assert_int_equal(rm_ring_committed(ring), 41);

    struct rm_duty duty;
    struct rm_actor *actor = open_actor(1, &duty);
    assert_int_equal(RM_PEEK(&session.board.policies[0].rows_lost), 1);
    for (int t = 0; t < 40; t++)
        assert_int_equal(rm_test_turn(&duty), 1);
    uint32_t different = 0;
    for (uint64_t t = 0; t < 81; t++) {
        struct rm_row row = rm_ring_row(ring, t);
        assert_int_equal(*row.generation, t < 41 ? 1 : 2);
        for (uint32_t lane = 0; lane < 2; lane++)
            assert_int_equal(row.flags[lane], t == 0 || t == 41 ? RM_FLAG_FIRST : 0);
        if (t < 40)
            different += row.action[0] != rm_ring_row(ring, t + 41).action[0];
    }
    assert_true(different > 5);
    assert_int_equal(RM_PEEK(&session.board.workers[1].steps), 2 * 80);
    rm_actor_destroy(actor);
    rm_session_close(&session);
}

/* Exploration goes on where the predecessor was, not at its start. */
static void a_respawned_actor_keeps_the_rate(void **state)
{
    struct rm_duty duty;

    (void)state;
    open_session("\"length\": 4");
    session.experiment.epsilon.end = 0;
    session.experiment.epsilon.span = 100;
    session.board.run->settings_version = 0; /* as if nothing had been set since the start */
    struct rm_actor *actor = open_actor(1, &duty);
    for (int t = 0; t < 12; t++)
        assert_int_equal(rm_test_turn(&duty), 1);
    double rate = RM_PEEK(&session.board.policies[0].epsilon);
    assert_true(rate < 0.5 && rate > 0.3);
    rm_actor_destroy(actor);
    actor = open_actor(1, &duty);
    assert_int_equal(rm_test_turn(&duty), 1);
    assert_true(RM_PEEK(&session.board.policies[0].epsilon) <= rate + 0.1);
    rm_actor_destroy(actor);
    rm_session_close(&session);
}

static void the_rate_can_be_changed_while_running(void **state)
{
    struct rm_duty duty;

    (void)state;
    open_session("\"length\": 4");
    struct rm_actor *actor = open_actor(0, &duty);
    assert_int_equal(rm_test_turn(&duty), 1);
    assert_true(RM_PEEK(&session.board.policies[0].epsilon) == 1);
    session.experiment.epsilon.span = 1;
    rm_actor_destroy(actor);
    actor = open_actor(0, &duty);
    RM_POKE(&session.board.run->settings[RM_HOT_EPSILON_END], 0.25);
    RM_RAISE(&session.board.run->settings_version, 2);
    assert_int_equal(rm_test_turn(&duty), 1);
    assert_true(RM_PEEK(&session.board.policies[0].epsilon) == 0.25);
    rm_actor_destroy(actor);
    rm_session_close(&session);
}

static void unknown_actors_are_refused(void **state)
{
    struct rm_actor *actor;
    struct rm_duty duty;
    struct rm_error error = {""};

    (void)state;
    open_session("\"length\": 4");
    assert_true(rm_actor_create(&actor, &session, 2, &duty, &error) < 0);
    assert_non_null(strstr(error.text, "0..1"));
    rm_session_close(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_worlds_are_named),
        cmocka_unit_test(a_respawned_actor_goes_on),
        cmocka_unit_test(a_respawned_actor_keeps_the_rate),
        cmocka_unit_test(the_rate_can_be_changed_while_running),
        cmocka_unit_test(unknown_actors_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
