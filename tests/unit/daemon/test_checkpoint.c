/* The table of a checkpoint's stages, over a session whose workers are this test. */
#include "daemon/checkpoint.h"

#include "config/config.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/file.h"
#include "shm/layout.h"
#include "tests/support/daemon.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rm_session session;
static struct rm_supervisor supervisor;
static struct rm_log journal;
static uv_loop_t loop;
static struct rm_checkpointer c;
static struct rm_run_lock lock;
static unsigned losses;
static char directory[64];
static double file_hot[RM_HOT_COUNT];
static enum rm_checkpoint_run where_it_is;

/* What the run did after checkpoints. */
static struct {
    unsigned times;
    enum rm_checkpoint_after latest;
    char why[64];
} then;

static enum rm_checkpoint_run where(void *user)
{
    (void)user;
    return where_it_is;
}

static void do_then(void *user, enum rm_checkpoint_after after, const char *why)
{
    (void)user;
    then.times++;
    then.latest = after;
    snprintf(then.why, sizeof then.why, "%s", why);
    if (after == RM_AFTER_STOP)
        rm_checkpointer_cancel(&c, "the run is ending");
}

static void lose(void *user, const char *why)
{
    (void)user, (void)why;
    losses++;
    rm_checkpointer_cancel(&c, "the run is ending");
}

static void drop_event(void *user, const char *name, json_t *data)
{
    (void)user, (void)name;
    json_decref(data);
}

static const struct rm_checkpointer_ops ops = {
    .where = where, .then = do_then, .lost = lose, .event = drop_event};

static uint32_t workers(void)
{
    return rm_worker_evaluator(&session.objects);
}

static int setup(void **state)
{
    (void)state;
    memset(&then, 0, sizeof then);
    memset(&c, 0, sizeof c);
    lock = (struct rm_run_lock){.fd = -1};
    losses = 0;
    memset(&supervisor, 0, sizeof supervisor);
    where_it_is = RM_RUN_IS_TRAINING;
    snprintf(directory, sizeof directory, "/tmp/rm-checkpoint-XXXXXX");
    if (!mkdtemp(directory) ||
        rm_test_session(&session, "{\"name\":\"x\",\"world\":{\"name\":\"count\"},"
                                  "\"actor\":{\"count\":2,\"worlds\":2},"
                                  "\"algorithm\":{\"name\":\"dqn\"},"
                                  "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":4}]},"
                                  "\"supervisor\":{\"stop_grace_s\":600}}") < 0)
        return -1;
    supervisor.count = session.objects.workers;
    for (uint32_t i = 0; i < session.objects.workers; i++) {
        supervisor.workers[i].state = RM_SUPERVISED_UP;
        supervisor.workers[i].generation = 1;
        RM_RAISE(&session.board.workers[i].state, RM_WORKER_BUSY);
    }
    journal = (struct rm_log){.fd = -1, .echo_fd = -1};
    const struct rm_checkpointer_spec spec = {.session = &session,
                                              .supervisor = &supervisor,
                                              .log = &journal,
                                              .loop = &loop,
                                              .run_directory = directory,
                                              .lock = &lock,
                                              .file_hot = file_hot,
                                              .ops = &ops};
    rm_config_hot_values(&session.experiment, file_hot);
    uv_loop_init(&loop);
    rm_checkpointer_open(&c, &spec);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rm_checkpointer_cancel(&c, "the test is over");
    while (c.stage != RM_CHECKPOINT_IDLE)
        uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&c.timer, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    rm_session_close(&session);
    rm_run_lock_leave(&lock);
    rm_file_remove_all(directory);
    return uv_loop_close(&loop);
}

/* Runs the loop until the checkpoint is there. */
static void until(enum rm_checkpoint_stage stage)
{
    while (c.stage != stage)
        uv_run(&loop, UV_RUN_ONCE);
}

static void hold(void)
{
    for (uint32_t i = 0; i < workers(); i++)
        RM_RAISE(&session.board.workers[i].checkpoint_held, c.number);
}

static void write_parts(void)
{
    for (uint32_t i = 0; i < workers(); i++)
        RM_RAISE(&session.board.workers[i].checkpoint_written, c.number);
}

static bool are_released(void)
{
    const struct rm_board_run *run = session.board.run;
    return RM_PEEK(&run->checkpoint_released) >= RM_PEEK(&run->checkpoint_request);
}

static uint64_t ask(void)
{
    struct rm_error error = {""};
    uint64_t number = 0;
    if (rm_checkpointer_ask(&c, &number, &error))
        fail_msg("%s", error.text);
    return number;
}

/* From holding to the disk. */
static void make(void)
{
    until(RM_CHECKPOINT_HOLDING);
    hold();
    until(RM_CHECKPOINT_AWAITING);
    write_parts();
}

static void goes_through_its_stages(void **state)
{
    (void)state;
    assert_int_equal(ask(), 1);
    assert_int_equal(c.stage, RM_CHECKPOINT_BEGINNING);
    until(RM_CHECKPOINT_HOLDING);
    assert_false(are_released());
    hold();
    until(RM_CHECKPOINT_AWAITING);
    assert_true(are_released());
    assert_int_equal(ask(), 2); /* after this one */
    write_parts();
    until(RM_CHECKPOINT_SEALING);
    until(RM_CHECKPOINT_BEGINNING);
    assert_int_equal(c.last, 1);
    make();
    until(RM_CHECKPOINT_IDLE);
    assert_int_equal(c.last, 2);
    assert_int_equal(c.made, 2);
    assert_int_equal(c.failed, 0);
    assert_int_equal(then.times, 0);
    assert_true(rm_checkpointer_is_current(&c));
}

/* The loop learns of a gap at the end of the turn that it fell into: times noted since are not
 * moved into the future, from where workers would have had ages to hold. */
static void a_gap_before_it_began_is_not_its_own(void **state)
{
    (void)state;
    ask();
    until(RM_CHECKPOINT_HOLDING);
    rm_checkpointer_away(&c, 3600 * RM_NS_PER_S, rm_now_ns());
    for (int i = 0; i < 20; i++) {
        uv_run(&loop, UV_RUN_ONCE);
        if (c.stage != RM_CHECKPOINT_HOLDING)
            fail_msg("%s", c.why);
    }
    until(RM_CHECKPOINT_HOLDING);
    hold();
    until(RM_CHECKPOINT_AWAITING);
    rm_checkpointer_away(&c, 3600 * RM_NS_PER_S, rm_now_ns());
    write_parts();
    until(RM_CHECKPOINT_IDLE);
    assert_int_equal(c.made, 1);
    assert_true(c.held_until_ns >= c.held_from_ns);
}

/* Of a stop that was noted after the gap. */
static void a_gap_does_not_make_the_grace_longer(void **state)
{
    (void)state;
    rm_checkpointer_end(&c, RM_AFTER_STOP, "terminated");
    rm_checkpointer_away(&c, 3600 * RM_NS_PER_S, rm_now_ns());
    assert_true(c.end_by_ns <= rm_now_ns() + 600 * RM_NS_PER_S);
}

/* Whatever comes after: who still writes its part of an earlier one could not write one of this. */
static void who_still_writes_is_waited_for(void **state)
{
    static const enum rm_checkpoint_after all[] = {RM_AFTER_PAUSE, RM_AFTER_EVALUATE,
                                                   RM_AFTER_STOP};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct rm_board_worker *slot = &session.board.workers[1];
        struct rm_error error = {""};
        uint64_t number;
        RM_RAISE(&slot->checkpoint_held, ++c.number);
        assert_int_equal(rm_checkpointer_ask(&c, &number, &error), -EAGAIN);
        assert_non_null(strstr(error.text, "actor-1 still writes its part of an earlier one"));
        rm_checkpointer_end(&c, all[i], "enough");
        assert_int_equal(c.stage, RM_CHECKPOINT_WAITING);
        uv_run(&loop, UV_RUN_ONCE); /* looks again */
        assert_int_equal(c.stage, RM_CHECKPOINT_WAITING);
        RM_RAISE(&slot->checkpoint_written, c.number);
        make();
        until(RM_CHECKPOINT_IDLE);
        assert_int_equal(c.last, 2 * (i + 1));
        assert_int_equal(then.times, i + 1);
        assert_int_equal(then.latest, all[i]);
    }
    assert_string_equal(then.why, "enough");
}

static void a_death_gives_it_up(void **state)
{
    (void)state;
    ask();
    until(RM_CHECKPOINT_HOLDING);
    supervisor.workers[0].generation++;
    until(RM_CHECKPOINT_IDLE);
    assert_int_equal(c.failed, 1);
    assert_true(are_released());
    assert_non_null(strstr(c.why, "died"));
}

/* A learner may be within a rollout of many long updates: it is waited for as long as it makes
 * them. */
static void a_learner_within_a_rollout_is_waited_for(void **state)
{
    struct rm_board_worker *learner = &session.board.workers[workers() - 1];
    (void)state;
    assert_int_equal(RM_PEEK(&learner->role), RM_ROLE_LEARNER);
    ask();
    until(RM_CHECKPOINT_HOLDING);
    for (int minutes = 0; minutes < 20; minutes += 2) {
        c.held_from_ns -= 121 * RM_NS_PER_S;
        c.turned_ns -= 121 * RM_NS_PER_S;
        RM_ADD_OWN(&learner->turns, 1);
        uv_run(&loop, UV_RUN_ONCE);
        assert_int_equal(c.stage, RM_CHECKPOINT_HOLDING);
    }
    make();
    until(RM_CHECKPOINT_IDLE);
    assert_int_equal(c.last, 1);
}

/* Without turns for 120 s, and with turns for half an hour, it is given up; so it is where only an
 * actor has turns. */
static void who_does_not_hold_is_named(void **state)
{
    struct rm_board_worker *actor = &session.board.workers[0];
    struct rm_board_worker *learner = &session.board.workers[workers() - 1];
    const struct {
        uint64_t held_s, turned_s;
        struct rm_board_worker *turns;
        const char *why;
    } cases[] = {
        {121, 121, actor, "did not finish its turn within 121 s"},
        {1801, 0, learner, "did not finish its turn within 1801 s"},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ask();
        until(RM_CHECKPOINT_HOLDING);
        RM_RAISE(&actor->checkpoint_held, c.number);
        c.held_from_ns -= cases[i].held_s * RM_NS_PER_S;
        c.turned_ns -= cases[i].turned_s * RM_NS_PER_S;
        RM_ADD_OWN(&cases[i].turns->turns, 1);
        until(RM_CHECKPOINT_IDLE);
        assert_int_equal(c.failed, i + 1);
        assert_true(are_released());
        if (!strstr(c.why, cases[i].why) || strncmp(c.why, "actor-1", strlen("actor-1")) != 0)
            fail_msg("%s", c.why);
        RM_RAISE(&actor->checkpoint_written, c.number);
    }
}

/* For who cannot ask again another one is made, as soon as the worker is back. */
static void a_death_has_the_last_one_made_again(void **state)
{
    (void)state;
    rm_checkpointer_end(&c, RM_AFTER_STOP, "terminated");
    until(RM_CHECKPOINT_HOLDING);
    hold();
    until(RM_CHECKPOINT_AWAITING);
    assert_false(are_released()); /* nothing is learned after it */
    supervisor.workers[2].state = RM_SUPERVISED_BACKING_OFF;
    until(RM_CHECKPOINT_WAITING);
    assert_true(are_released());
    assert_int_equal(then.times, 0);
    supervisor.workers[2].generation++;
    supervisor.workers[2].state = RM_SUPERVISED_UP;
    write_parts();
    make();
    until(RM_CHECKPOINT_IDLE);
    assert_int_equal(c.last, 2);
    assert_int_equal(then.times, 1);
    assert_string_equal(then.why, "terminated");
}

/* A stop is content with the one in hand as long as nothing was learned after it. */
static void a_stop_has_what_was_learned(void **state)
{
    (void)state;
    ask();
    until(RM_CHECKPOINT_HOLDING);
    rm_checkpointer_end(&c, RM_AFTER_STOP, "early");
    make();
    until(RM_CHECKPOINT_IDLE);
    assert_int_equal(c.last, 1);
    assert_int_equal(then.times, 1);

    ask();
    until(RM_CHECKPOINT_HOLDING);
    hold();
    until(RM_CHECKPOINT_AWAITING);
    rm_checkpointer_end(&c, RM_AFTER_STOP, "late");
    write_parts();
    until(RM_CHECKPOINT_BEGINNING);
    make();
    until(RM_CHECKPOINT_IDLE);
    assert_int_equal(c.last, 3);
    assert_int_equal(then.times, 2);
    assert_string_equal(then.why, "late");
}

static void a_stop_ends_with_its_grace(void **state)
{
    (void)state;
    session.experiment.supervisor.stop_grace_s = 0.01;
    rm_checkpointer_end(&c, RM_AFTER_STOP, "terminated");
    until(RM_CHECKPOINT_IDLE); /* nobody holds */
    assert_int_equal(then.times, 1);
    assert_int_equal(then.latest, RM_AFTER_STOP);
    assert_string_equal(c.why, "supervisor.stop_grace_s have passed");
    assert_int_equal(c.made, 0);
}

static void cancelled_it_ends_when_its_thread_is_back(void **state)
{
    (void)state;
    ask();
    ask();
    assert_int_equal(c.stage, RM_CHECKPOINT_BEGINNING);
    rm_checkpointer_cancel(&c, "first");
    assert_int_equal(c.stage, RM_CHECKPOINT_ABANDONING);
    rm_checkpointer_cancel(&c, "second");
    until(RM_CHECKPOINT_IDLE);
    assert_string_equal(c.why, "first");
    assert_int_equal(c.number, 1); /* and no other is begun */
    assert_int_equal(c.failed, 1);
}

/* The path of checkpoint `number` while it is written, or of `name` in it. */
static const char *unfinished(uint64_t number, const char *name)
{
    static char path[RM_SESSION_PATH_MAX + 64];
    char folder[RM_SESSION_PATH_MAX];
    assert_int_equal(rm_session_checkpoint_folder(directory, number, true, folder, NULL), 0);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* To sealing, of a checkpoint with a file of so many bytes, which are all read. */
static void seal_with(off_t bytes)
{
    ask();
    until(RM_CHECKPOINT_HOLDING);
    hold();
    until(RM_CHECKPOINT_AWAITING);
    FILE *file = fopen(unfinished(c.number, "large"), "w");
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), bytes), 0);
    fclose(file);
    write_parts();
    until(RM_CHECKPOINT_SEALING);
}

static void one_that_is_sealed_has_the_grace_of_a_stop(void **state)
{
    (void)state;
    seal_with(1 << 28);
    rm_checkpointer_cancel(&c, "the run is ending");
    until(RM_CHECKPOINT_IDLE);
    if (c.made != 1)
        fail_msg("%s", c.why);
    session.experiment.supervisor.stop_grace_s = 0.1;
    seal_with((off_t)1 << 42);
    rm_checkpointer_cancel(&c, "the run is ending");
    until(RM_CHECKPOINT_IDLE);
    assert_int_equal(c.failed, 1);
    assert_non_null(strstr(c.why, ": was still being read at the deadline"));
}

/* Another process holds the lock of the run until it is killed. */
static pid_t other_daemon(void)
{
    struct rm_run_lock its = {.fd = -1};
    char byte = 0;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(unlink(lock.path), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        if (rm_run_lock_take(&its, directory, NULL) == 0 && write(ready[1], &byte, 1) == 1)
            for (;;)
                pause();
        _exit(1);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

/* It writes a checkpoint of the same number, which stays; and the run ends before any `after`. */
static void who_lost_the_run_removes_nothing(void **state)
{
    static const enum rm_checkpoint_stage stages[] = {RM_CHECKPOINT_IDLE, RM_CHECKPOINT_AWAITING};
    struct rm_error error = {""};
    uint64_t numbers[1];
    (void)state;
    for (unsigned i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        assert_int_equal(rm_run_lock_take(&lock, directory, &error), 0);
        if (stages[i] == RM_CHECKPOINT_AWAITING) {
            ask();
            until(RM_CHECKPOINT_HOLDING);
            hold();
            until(RM_CHECKPOINT_AWAITING);
        }
        const pid_t other = other_daemon();
        if (stages[i] == RM_CHECKPOINT_IDLE) {
            assert_int_equal(rm_checkpoint_begin(directory, c.number + 1, &error), 0);
            rm_checkpointer_end(&c, RM_AFTER_PAUSE, "");
        }
        write_parts();
        until(RM_CHECKPOINT_IDLE);
        while (c.removals)
            uv_run(&loop, UV_RUN_ONCE);
        kill(other, SIGKILL);
        assert_int_equal(waitpid(other, NULL, 0), other);
        assert_int_equal(access(unfinished(c.number, ""), F_OK), 0);
        assert_int_equal(losses, i + 1);
        assert_int_equal(then.times, 0);
        assert_non_null(strstr(c.why, "already running"));
        rm_run_lock_leave(&lock);
    }
    assert_int_equal(rm_checkpoint_list(directory, numbers, 1), 0);
}

/* Whether this process has a file of that path open. */
static bool is_open(const char *path)
{
    char link[64], target[sizeof directory + 64];
    for (int fd = 0; fd < 256; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(link, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        if (strcmp(target, path) == 0)
            return true;
    }
    return false;
}

/* A third checkpoint is being sealed, and will remove the others. Returns the file that it reads
 * until the file is truncated. */
static const char *seal_third(void)
{
    struct rm_error error = {""};
    assert_int_equal(rm_run_lock_take(&lock, directory, &error), 0);
    for (unsigned i = 0; i < 2; i++) {
        ask();
        make();
        until(RM_CHECKPOINT_IDLE);
    }
    session.experiment.checkpoint.keep = 1;
    seal_with((off_t)1 << 42); /* is read until it is truncated, and so does not count as whole */
    const char *large = unfinished(c.number, "large");
    while (!is_open(large))
        usleep(1000);
    return large;
}

/* The other daemon keeps its checkpoints by its own `checkpoint.keep`. */
static void who_lost_the_run_while_it_sealed_removes_nothing(void **state)
{
    uint64_t numbers[4];
    (void)state;
    const char *large = seal_third();
    const pid_t other = other_daemon();
    assert_int_equal(truncate(large, 0), 0);
    until(RM_CHECKPOINT_IDLE);
    kill(other, SIGKILL);
    assert_int_equal(waitpid(other, NULL, 0), other);
    assert_int_equal(rm_checkpoint_list(directory, numbers, 4), 3);
    assert_int_equal(losses, 1);
    rm_run_lock_leave(&lock);
}

static void who_cannot_lock_the_run_removes_nothing_and_warns(void **state)
{
    uint64_t numbers[4];
    (void)state;
    const char *large = seal_third();
    assert_int_equal(unlink(lock.path), 0);
    assert_int_equal(mkdir(lock.path, 0755), 0);
    assert_int_equal(truncate(large, 0), 0);
    until(RM_CHECKPOINT_IDLE);
    assert_int_equal(rm_checkpoint_list(directory, numbers, 4), 3);
    assert_int_equal(losses, 0);
    assert_int_equal(c.made, 3);
    assert_non_null(strstr(c.warned.text, "older checkpoints stay: "));
}

static void where_there_can_be_none_it_goes_on_without(void **state)
{
    struct rm_error error = {""};
    uint64_t number;
    (void)state;
    where_it_is = RM_RUN_IS_STARTING;
    assert_int_equal(rm_checkpointer_ask(&c, &number, &error), -ENODATA);
    rm_checkpointer_end(&c, RM_AFTER_PAUSE, "");
    assert_int_equal(c.stage, RM_CHECKPOINT_IDLE);
    assert_int_equal(then.latest, RM_AFTER_PAUSE);
    rm_checkpointer_insist(&c); /* of the first step that there is */
    assert_int_equal(c.stage, RM_CHECKPOINT_WAITING);
    where_it_is = RM_RUN_IS_TRAINING;
    make();
    until(RM_CHECKPOINT_IDLE);
    assert_int_equal(c.made, 1);
    where_it_is = RM_RUN_IS_ENDING;
    assert_int_equal(rm_checkpointer_ask(&c, &number, &error), -ENODATA);
    rm_checkpointer_end(&c, RM_AFTER_STOP, "asked to");
    assert_int_equal(then.times, 2);
    assert_int_equal(c.made, 1);
}

/* What a run cannot have come to, and rings that do not fit together: nothing is sealed. */
static void what_a_world_wrote_is_not_sealed(void **state)
{
    const struct {
        _Atomic uint64_t *word;
        uint64_t value;
        const char *why;
    } cases[] = {
        {&session.board.workers[0].steps, 9606124022238530272u, "step 9606124022238530272"},
        {&session.board.workers[1].steps, 1ull << 62, "step 4611686018427387904"},
        {&session.board.policies[0].updates, UINT64_MAX, "update 18446744073709551615"},
        {&session.board.round->current, 1ull << 60, "round 1152921504606846976"},
        {&session.board.run->evaluations, 1ull << 63, "evaluation 9223372036854775808"},
        {&session.rings[1].shared->committed, 77, "ring of actor 1, policy 0"},
    };
    uint64_t numbers[1];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint64_t before = RM_PEEK(cases[i].word);
        ask();
        until(RM_CHECKPOINT_HOLDING);
        RM_POKE(cases[i].word, cases[i].value);
        hold();
        until(RM_CHECKPOINT_IDLE);
        RM_POKE(cases[i].word, before);
        if (!strstr(c.why, cases[i].why))
            fail_msg("%s: %s", cases[i].why, c.why);
        assert_int_equal(c.failed, i + 1);
        assert_true(are_released());
        write_parts();
    }
    assert_int_equal(rm_checkpoint_list(directory, numbers, 1), 0);
    RM_POKE(&session.board.workers[0].steps, 5000);
    ask();
    make();
    until(RM_CHECKPOINT_IDLE);
    assert_int_equal(c.made, 1);
}

/* The one line names the worker and the error. */
static void who_could_not_write_is_named(void **state)
{
    (void)state;
    ask();
    until(RM_CHECKPOINT_HOLDING);
    hold();
    until(RM_CHECKPOINT_AWAITING);
    RM_POKE(&session.board.workers[1].checkpoint_failed, ENOSPC);
    write_parts();
    until(RM_CHECKPOINT_IDLE);
    assert_int_equal(c.failed, 1);
    assert_string_equal(c.why, "actor-1 could not write its part: No space left on device");
    RM_POKE(&session.board.workers[1].checkpoint_failed, 0);
    ask();
    make();
    until(RM_CHECKPOINT_IDLE);
    assert_int_equal(c.made, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(goes_through_its_stages),
        T(a_gap_before_it_began_is_not_its_own),
        T(a_gap_does_not_make_the_grace_longer),
        T(who_still_writes_is_waited_for),
        T(a_death_gives_it_up),
        T(a_learner_within_a_rollout_is_waited_for),
        T(who_does_not_hold_is_named),
        T(a_death_has_the_last_one_made_again),
        T(a_stop_has_what_was_learned),
        T(a_stop_ends_with_its_grace),
        T(cancelled_it_ends_when_its_thread_is_back),
        T(one_that_is_sealed_has_the_grace_of_a_stop),
        T(who_lost_the_run_removes_nothing),
        T(who_lost_the_run_while_it_sealed_removes_nothing),
        T(who_cannot_lock_the_run_removes_nothing_and_warns),
        T(where_there_can_be_none_it_goes_on_without),
        T(what_a_world_wrote_is_not_sealed),
        T(who_could_not_write_is_named),
    };
    alarm(300); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
