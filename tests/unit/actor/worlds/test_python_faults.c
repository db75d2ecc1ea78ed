/* Python worlds that raise, crash, hang or pry: what the log says, what continues, what remains. */
#include "tests/support/batch.h"
#include "tests/support/daemon.h"
#include "tests/support/python.h"
#include "tests/support/unit.h"

#include "actor/worlds/bridges/python.h"
#include "actor/worlds/sandbox.h"
#include "shm/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAST (RM_ENV_TERMINATED | RM_ENV_TRUNCATED)

static struct rm_test_batch batch;
static struct rm_world_config config;

static void open_slow(const char *act, double takes_s, uint32_t workers, double deadline_s,
                      enum rm_sandbox_mode sandbox)
{
    char options[128];
    snprintf(options, sizeof options, "{\"act\": \"%s\", \"seeds\": 1, \"takes\": %g}", act,
             takes_s);
    rm_test_python_place(workers, deadline_s, sandbox);
    rm_test_python_config(&config, "games:faulty", options);
    rm_test_batch_open_configured(&batch, &config, 7, 0, 4);
    rm_test_batch_reset(&batch);
    for (uint32_t w = 0; w < 4; w++)
        batch.actions[0][w] = 1;
}

static void open_faulty(const char *act, uint32_t workers, double deadline_s,
                        enum rm_sandbox_mode sandbox)
{
    open_slow(act, 0, workers, deadline_s, sandbox);
}

static void step(void)
{
    rm_test_batch_step(&batch, 0);
    rm_test_batch_guards(&batch);
}

/* The third step goes wrong, in both workers' first worlds: their episodes end void, the next ones
 * begin, and the report has every word. */
static void goes_on_after(const char *act, int episodes, double deadline_s,
                          const char *const *words)
{
    rm_test_said_begin();
    open_faulty(act, 2, deadline_s, RM_SANDBOX_AUTO);
    for (int episode = 0; episode < episodes; episode++) {
        for (int t = 1; t <= 4; t++) {
            step();
            for (uint32_t w = 0; w < 4; w++) {
                const uint8_t wanted = t == 3   ? RM_ENV_TRUNCATED | RM_ENV_VOID
                                       : t == 4 ? RM_ENV_FIRST
                                                : 0;
                if (batch.out[0].flags[w] != wanted)
                    fail_msg("%s: step %d, world %u: flags %#x", act, t, w, batch.out[0].flags[w]);
            }
        }
    }
    rm_test_batch_close(&batch);
    const char *said = rm_test_said_end();
    for (; *words; words++)
        if (!strstr(said, *words))
            fail_msg("%s: \"%s\" is not in:\n%s", act, *words, said);
}
#define GOES_ON_AFTER(act, ...) goes_on_after(act, 2, 60, (const char *const[]){__VA_ARGS__, NULL})

static void an_exception_is_reported_whole(void **state)
{
    (void)state;
    GOES_ON_AFTER("raises", "<3>world 0 (test), seed 7, reset seed ",
                  ", episode 0, step 3, action 1: ValueError: the treasure is gone (games.py:",
                  "<3>world 2 (test), seed 7, ", "episode 1, step 3, action 1: ",
                  "Traceback (most recent call last):", "raise ValueError(");
    GOES_ON_AFTER("exits", "SystemExit: 3");
    GOES_ON_AFTER("wide", "the observation has shape (4,); its space says shape (3,)");
    GOES_ON_AFTER("broken", "the observation has dtype float64", "uint8: whole numbers");
    GOES_ON_AFTER("beyond", "the observation has numbers that uint8 does not hold: 300 at (1,)");
    GOES_ON_AFTER("shut", "the action mask in info leaves no legal action");
    GOES_ON_AFTER("masked", "an action mask with this observation, but there was none");
    GOES_ON_AFTER("vague", "the observation is nan at (1,): learners need finite numbers");
    GOES_ON_AFTER("worthless", "the reward is inf: learners need finite numbers");
}

static void a_death_is_reported_with_its_signal(void **state)
{
    (void)state;
    GOES_ON_AFTER("leaves", "world 0 (test), seed 7, ", "its process ended with exit code 9");
    GOES_ON_AFTER("kills", "its process was ended by signal 9 (Killed)");
    GOES_ON_AFTER("crashes", "its process was ended by signal 11 (Segmentation fault)",
                  "Fatal Python error: Segmentation fault", "in crashes");
}

/* While a worker has another request its actor sleeps until it expects the answer: it notices the
 * worker's end nevertheless. It may leave the worker's core, but keeps the right to run on all. */
static void a_death_is_noticed_while_another_request_waits(void **state)
{
    cpu_set_t before, after;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    rm_test_said_begin();
    open_slow("kills", 0.2, 1, 1, RM_SANDBOX_AUTO);
    for (int t = 1; t <= 3; t++)
        step();
    for (uint32_t w = 0; w < 4; w++)
        assert_int_equal(batch.out[0].flags[w], RM_ENV_TRUNCATED | RM_ENV_VOID);
    rm_test_batch_close(&batch);
    const char *said = rm_test_said_end();
    if (!strstr(said, "its process was ended by signal 9 (Killed)"))
        fail_msg("%s", said);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

static void a_hang_is_ended_with_its_stacks(void **state)
{
    (void)state;
    static const char *const stacks[] = {"took longer than allowed (actor.step_deadline_s 4)",
                                         "in hangs", NULL};
    goes_on_after("hangs", 1, 4, stacks);
    goes_on_after("ignores", 1, 4, (const char *const[]){"took longer than allowed", NULL});
}

/* The first episode ends with step 2; the next one begins in another worker. */
static void a_hang_in_reset_is_ended(void **state)
{
    static const uint8_t flags[] = {0, RM_ENV_TRUNCATED, RM_ENV_DEAD, RM_ENV_FIRST};
    (void)state;
    rm_test_said_begin();
    rm_test_python_place(1, 4, RM_SANDBOX_AUTO);
    rm_test_python_config(&config, "games:stuck", NULL);
    rm_test_batch_open_configured(&batch, &config, 7, 0, 1);
    rm_test_batch_reset(&batch);
    for (int t = 0; t < 4; t++) {
        step();
        assert_int_equal(batch.out[0].flags[0], flags[t]);
    }
    rm_test_batch_close(&batch);
    const char *said = rm_test_said_end();
    assert_non_null(strstr(said, "took longer than allowed (actor.step_deadline_s 4)"));
    assert_non_null(strstr(said, "in reset"));
}

/* What ordinary worlds do has no effect but in the log. */
static void odd_habits_harm_nobody(void **state)
{
    static const char *const acts[] = {"prints", "threads", "handles"};
    (void)state;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        rm_test_said_begin();
        open_faulty(acts[i], 2, 60, RM_SANDBOX_AUTO);
        for (int t = 1; t <= 5; t++) {
            step();
            for (uint32_t w = 0; w < 4; w++)
                assert_int_equal(batch.out[0].flags[w], 0);
        }
        rm_test_batch_close(&batch);
        const char *said = rm_test_said_end();
        assert_true((strstr(said, "a line of the world's") != NULL) == (i == 0));
    }
}

/* No replacement mends a world that always fails: step() says so in the end. */
static void what_fails_always_is_given_up(void **state)
{
    static struct rm_experiment experiment;
    (void)state;
    experiment.actor.python_workers = 1;
    experiment.actor.step_deadline_s = 60;
    experiment.supervisor.deaths_max = 3;
    experiment.supervisor.deaths_window_s = 1000;
    rm_test_said_begin();
    open_faulty("raises", 1, 60, RM_SANDBOX_AUTO);
    rm_python_place(&experiment, NULL);
    int rc = 0, steps = 0;
    while (rc == 0 && steps++ < 100)
        rc = batch.world.ops->step(batch.env, 0, batch.const_actions, batch.out);
    char error[512];
    snprintf(error, sizeof error, "%s", batch.world.ops->last_error(batch.env));
    rm_test_batch_close(&batch);
    rm_test_said_end();
    assert_true(rc < 0);
    assert_int_equal(steps, 3 + 4 + 4);
    if (!strstr(error, "ValueError: the treasure is gone"))
        fail_msg("%s", error);
}

/* --- what it may do ----------------------------------------------------------------------------
 */

enum {
    WRITES = 1,
    READS = 2,
    CONNECTS = 4,
    UNIX = 8,
    STARTS = 16,
    FORKS = 32,
    SIGNALS = 64,
    OWN = 128
};

static unsigned pry(enum rm_sandbox_mode sandbox, bool network)
{
    static struct rm_experiment experiment;
    char folder[] = "/tmp/rm-python-XXXXXX", options[256], path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/secret", folder);
    close(open(path, O_CREAT | O_WRONLY, 0644));
    snprintf(options, sizeof options, "{\"pid\": %d, \"folder\": \"%s\"}", getpid(), folder);
    experiment.actor.python_workers = 1;
    experiment.actor.step_deadline_s = 60;
    experiment.actor.sandbox = sandbox;
    experiment.actor.network = network;
    experiment.supervisor.deaths_max = 5;
    rm_python_place(&experiment, NULL);
    rm_test_python_config(&config, "games:prying", options);
    rm_test_batch_open_configured(&batch, &config, 7, 0, 1);
    rm_test_batch_reset(&batch);
    const unsigned could = (unsigned)((const float *)rm_test_batch_obs(&batch, 0, 0))[2];
    rm_test_batch_close(&batch);
    rm_file_remove_all(folder);
    return could;
}

static void a_confined_world_has_its_own_folder(void **state)
{
    (void)state;
    assert_int_equal(pry(RM_SANDBOX_OFF, false),
                     WRITES | READS | CONNECTS | UNIX | STARTS | FORKS | SIGNALS | OWN);
    struct rm_error error = {""};
    struct rm_sandbox_program program;
    static const char *const nothing[] = {NULL};
    const struct rm_sandbox_program_needs needs = {
        .readable = nothing, .executable = nothing, .writable = "/tmp"};
    const char *lacks;
    assert_int_equal(rm_sandbox_program_prepare(&program, &needs, &lacks, &error), 0);
    rm_sandbox_program_free(&program);
    if (lacks) {
        print_message("%s\n", lacks);
        skip();
    }
    assert_int_equal(pry(RM_SANDBOX_AUTO, false), OWN);
    assert_int_equal(pry(RM_SANDBOX_ON, true), OWN | CONNECTS);
}

/* --- what is left ------------------------------------------------------------------------------
 */

/* Processes whose parent is `pid`, and the number of files of the temporary folder. */
static int children_of(pid_t pid, pid_t *found, int most)
{
    char path[64], text[512];
    DIR *all = opendir("/proc");
    int n = 0;
    assert_non_null(all);
    for (struct dirent *one; (one = readdir(all));) {
        snprintf(path, sizeof path, "/proc/%.20s/stat", one->d_name);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        const ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            close(fd);
        text[got > 0 ? got : 0] = '\0';
        const char *after = strrchr(text, ')');
        int parent = 0;
        if (after && sscanf(after + 2, "%*c %d", &parent) == 1 && parent == pid && n < most)
            found[n++] = atoi(one->d_name);
    }
    closedir(all);
    return n;
}

static void nobody_survives_a_killed_actor(void **state)
{
    pid_t workers[4] = {0};
    int ready[2], status;
    char go;
    (void)state;
    assert_int_equal(pipe(ready), 0);
    const pid_t actor = fork();
    if (actor == 0) {
        open_faulty("hangs", 2, 60, RM_SANDBOX_AUTO);
        step();
        (void)!write(ready[1], "x", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &go, 1), 1);
    assert_int_equal(children_of(actor, workers, 4), 2);
    kill(actor, SIGKILL);
    assert_int_equal(waitpid(actor, &status, 0), actor);
    for (int i = 0; i < 2; i++)
        for (int t = 0; rm_test_process_there(workers[i]); t++) {
            assert_true(t < 6000);
            usleep(10000);
        }
    close(ready[0]);
    close(ready[1]);
}

/* Programs that a world which is not confined has started, in sessions of their own. */
static void nothing_that_it_started_survives(void **state)
{
    int ready[2], status;
    pid_t pids[2];
    (void)state;
    for (int killed = 0; killed < 2; killed++) {
        assert_int_equal(pipe(ready), 0);
        const pid_t actor = fork();
        if (actor == 0) {
            rm_test_python_place(1, 60, RM_SANDBOX_OFF);
            rm_test_python_config(&config, "games:starting", NULL);
            rm_test_batch_open_configured(&batch, &config, 7, 0, 1);
            rm_test_batch_reset(&batch);
            const float *seen = rm_test_batch_obs(&batch, 0, 0);
            pids[0] = (pid_t)seen[1];
            pids[1] = (pid_t)seen[2];
            (void)!write(ready[1], pids, sizeof pids);
            if (!killed) {
                rm_test_batch_close(&batch);
                _exit(0);
            }
            for (;;)
                pause();
        }
        assert_int_equal(read(ready[0], pids, sizeof pids), sizeof pids);
        if (killed)
            kill(actor, SIGKILL);
        assert_int_equal(waitpid(actor, &status, 0), actor);
        for (int i = 0; i < 2; i++)
            for (int t = 0; rm_test_process_there(pids[i]); t++) {
                assert_true(t < 6000);
                usleep(10000);
            }
        close(ready[0]);
        close(ready[1]);
    }
}

/* Its worker grows by the episode: another one takes its place, and what is open then is void. */
static void a_worker_that_grows_is_replaced(void **state)
{
    static struct rm_experiment experiment;
    (void)state;
    experiment.actor.python_workers = 1;
    experiment.actor.step_deadline_s = 60;
    experiment.actor.recycle_mb = 400;
    experiment.supervisor.deaths_max = 2;
    experiment.supervisor.deaths_window_s = 1000;
    rm_python_place(&experiment, NULL);
    rm_test_python_config(&config, "games:hoarding", NULL);
    rm_test_said_begin();
    rm_test_batch_open_configured(&batch, &config, 7, 0, 2);
    rm_test_batch_reset(&batch);
    const float *seen = rm_test_batch_obs(&batch, 0, 0);
    const float first = seen[2];
    int voids = 0;
    for (int t = 0; seen[2] == first || seen[2] == 0; t++) {
        assert_true(t < 100000);
        batch.actions[0][0] = batch.actions[0][1] = 1;
        step();
        voids += (batch.out[0].flags[0] & RM_ENV_VOID) != 0;
        usleep(1000); /* memory is looked at once a second */
    }
    assert_int_equal(batch.out[0].flags[0], RM_ENV_FIRST);
    rm_test_batch_close(&batch);
    const char *said = rm_test_said_end();
    assert_true(voids <= 1);
    assert_non_null(strstr(said, "(actor.recycle_mb 400): replaced"));
}

/* Makes a run's directory, for worlds that are opened from here on; `path`: that of their files. */
static void begin_run(char *run, char path[64])
{
    static struct rm_experiment experiment;
    assert_non_null(mkdtemp(run));
    snprintf(path, 64, "%s/tmp", run);
    experiment.actor.python_workers = 1;
    experiment.actor.step_deadline_s = 60;
    rm_python_place(&experiment, run);
    rm_test_python_config(&config, "games:corridor", NULL);
}

static void temporary_files_are_gone(void **state)
{
    char run[] = "/tmp/rm-python-XXXXXX", path[64];
    (void)state;
    begin_run(run, path);
    rm_test_batch_open_configured(&batch, &config, 7, 0, 1);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_nlink, 3); /* one folder in it */
    rm_test_batch_close(&batch);
    assert_int_equal(stat(path, &st), -1);
    assert_int_equal(rmdir(run), 0);
}

/* The folder of an actor that was killed is removed by the next one; that of one that runs is not.
 */
static void files_of_a_killed_actor_are_gone_with_the_next(void **state)
{
    char run[] = "/tmp/rm-python-XXXXXX", path[64];
    int status, up[2];
    char byte;
    struct stat st;
    (void)state;
    begin_run(run, path);
    assert_int_equal(pipe(up), 0);
    const pid_t actor = fork();
    if (actor == 0) {
        rm_test_batch_open_configured(&batch, &config, 7, 0, 1);
        (void)!write(up[1], "", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(up[0], &byte, 1), 1);
    rm_test_batch_open_configured(&batch, &config, 7, 0, 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_nlink, 4); /* both run */
    rm_test_batch_close(&batch);
    kill(actor, SIGKILL);
    assert_int_equal(waitpid(actor, &status, 0), actor);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_nlink, 3);
    rm_test_batch_open_configured(&batch, &config, 7, 0, 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_nlink, 3); /* its own alone */
    rm_test_batch_close(&batch);
    assert_int_equal(stat(path, &st), -1);
    assert_int_equal(rmdir(run), 0);
    close(up[0]);
    close(up[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exception_is_reported_whole),
        cmocka_unit_test(a_death_is_reported_with_its_signal),
        cmocka_unit_test(a_death_is_noticed_while_another_request_waits),
        cmocka_unit_test(a_hang_is_ended_with_its_stacks),
        cmocka_unit_test(a_hang_in_reset_is_ended),
        cmocka_unit_test(odd_habits_harm_nobody),
        cmocka_unit_test(what_fails_always_is_given_up),
        cmocka_unit_test(a_confined_world_has_its_own_folder),
        cmocka_unit_test(nobody_survives_a_killed_actor),
        cmocka_unit_test(nothing_that_it_started_survives),
        cmocka_unit_test(a_worker_that_grows_is_replaced),
        cmocka_unit_test(temporary_files_are_gone),
        cmocka_unit_test(files_of_a_killed_actor_are_gone_with_the_next),
    };
    if (!rm_test_python()) {
        puts("1..0 # SKIP /usr/bin/python3 has no NumPy");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
