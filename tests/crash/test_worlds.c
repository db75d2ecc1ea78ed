/* Worlds that crash or never return, in a real run: the report names signal, call, world, seed,
 * episode and step; a world that does so always ends the run with that reason. */
#include "tests/support/batch.h"
#include "tests/support/daemon.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct rm_test_daemon d;

static int teardown(void **state)
{
    (void)state;
    rm_test_daemon_end(&d);
    return 0;
}

/* A run of one actor with two worlds that dies twice. Only one that hangs has to be killed for its
 * silence: on a loaded host any other may be silent for a while, too. */
static void run_world(const char *name, const char *mode, const char *world, bool hangs)
{
    char config[1024];
    snprintf(config, sizeof config,
             "{\"name\":\"x\",\"seed\":3,\"mode\":\"%s\",\"run\":{\"steps\":100000},"
             "\"world\":{%s},"
             "\"actor\":{\"count\":1,\"worlds\":2},\"sample\":{\"min_fill\":5000},"
             "\"supervisor\":{\"deaths_max\":2,\"respawn_floor_s\":0.01,\"heartbeat_s\":%d}}",
             mode, world, hangs ? 2 : 120);
    assert_int_equal(rm_test_daemon_home(&d, name, config), 0);
    assert_int_equal(rm_test_daemon_start(&d, NULL, false, 0), 0);
    assert_int_equal(rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S), 1);
}

/* The second world has the fault. */
static void run(const char *name, const char *mode, const char *fault)
{
    char world[256];
    snprintf(world, sizeof world,
             "\"name\":\"count\",\"options\":{\"length\":1000,\"max_steps\":20,"
             "\"fault_world\":1,%s}",
             fault);
    run_world(name, mode, world, strstr(fault, "hang") != NULL);
}

/* The shared object of unit/actor/data/rogue_world.c, by the number of what it does. */
static void run_rogue(const char *name, int act)
{
    char world[512];
    snprintf(world, sizeof world,
             "\"name\":\"rogue\",\"library\":\"%s\",\"options\":{\"act\":%d,\"at\":33}",
             rm_test_build_path("tests/worlds/rogue.so"), act);
    run_world(name, "free", world, false);
}

/* The reason of the run's end and, at length, the log say all of `words` (ends with NULL). */
static void says(const char *const *words)
{
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_non_null(summary);
    assert_string_equal(json_string_value(rm_test_path(summary, "state")), "failed");
    const char *reason = json_string_value(rm_test_path(summary, "reason"));
    const char *log = rm_test_daemon_file(&d, "log.txt");
    for (size_t i = 0; words[i]; i++) {
        if (!strstr(reason, words[i]) || !strstr(log, words[i]))
            fprintf(stderr, "reason: %s\nlog:\n%s\n", reason, log);
        assert_non_null(strstr(reason, words[i]));
        assert_non_null(strstr(log, words[i]));
    }
    /* The stack, with the program in it. */
    assert_non_null(strstr(log, "ringmaster-"));
    assert_non_null(strstr(log, "(+0x"));
    json_decref(summary);
}

/* World 1's 50th step is in its third episode. */
#define AT_50 "worlds 0..1, seed ", "; world 1: episode 2, step "

static void a_crash_is_reported(void **state)
{
    (void)state;
    run("crash", "free", "\"crash_step\":50");
    says((const char *[]){"died 2 times", "ended by signal 11 (Segmentation fault): SIGSEGV",
                          "in step() of count", AT_50, NULL});
}

static void a_hang_is_reported(void **state)
{
    (void)state;
    run("hang", "lockstep", "\"hang_step\":50");
    says((const char *[]){"died 2 times",
                          "killed after more than 2.0 s without a heartbeat: silent",
                          "in step() of count", AT_50, NULL});
}

static void a_crash_in_a_sequential_run_is_reported(void **state)
{
    (void)state;
    run("solo", "sequential", "\"crash_step\":50");
    says((const char *[]){"died 2 times", "SIGSEGV", "in step() of count", AT_50, NULL});
}

static void a_fault_in_a_shared_object_is_reported(void **state)
{
    (void)state;
    run_rogue("fault", 6);
    says((const char *[]){"died 2 times", "SIGSEGV (address 0x0) in step() of rogue", "seed ",
                          "; world 1: episode 3, step 0", NULL});
    /* The stack shows where in it. */
    assert_non_null(strstr(rm_test_daemon_file(&d, "log.txt"), "rogue.so("));
}

static void a_refused_system_call_is_reported(void **state)
{
    (void)state;
#ifndef RM_HAVE_SECCOMP
    skip();
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip();
#endif
    run_rogue("socket", 8);
    says((const char *[]){"died 2 times", ", socket, is not allowed) in step() of rogue",
                          "; world 1: episode 3, step 0", NULL});
}

static bool gdb_is_here(void)
{
    return system("gdb --version > /dev/null 2>&1") == 0;
}

/* The file that the log names holds what only a debugger knows: lines of the source. */
static void gdb_looks(const char *name, const char *fault, const char *line)
{
    char file[64];
    run(name, "free", fault);
    const char *log = rm_test_daemon_file(&d, "log.txt");
    if (!strstr(log, "actor-0: stacks of all its threads by gdb, "))
        fail_msg("%s", log);
    for (int generation = 1; generation <= 2; generation++) {
        snprintf(file, sizeof file, "stacks/actor-0-%d.txt", generation);
        const char *stack = rm_test_daemon_file(&d, file);
        assert_non_null(stack);
        assert_non_null(strstr(stack, line));
        assert_non_null(strstr(stack, "rm_stepping_step"));
    }
}

static void gdb_looks_at_a_crash(void **state)
{
    (void)state;
    if (!gdb_is_here())
        skip();
    gdb_looks("gdb-crash", "\"crash_step\":50", "count.c:");
    says((const char *[]){"ended by signal 11 (Segmentation fault): SIGSEGV", NULL});
}

static void gdb_looks_at_a_hang(void **state)
{
    (void)state;
    if (!gdb_is_here())
        skip();
    gdb_looks("gdb-hang", "\"hang_step\":50", "count.c:");
    says((const char *[]){"killed after more than 2.0 s without a heartbeat: silent", NULL});
}

/* Without one, and with one that does not do its work, the process's own report stands. */
static void without_gdb_it_is_said(void **state)
{
    (void)state;
    setenv("RINGMASTER_GDB", "", 1);
    run("no-gdb", "free", "\"crash_step\":50");
    assert_non_null(strstr(rm_test_daemon_file(&d, "log.txt"), "gdb is not installed: "));
    says((const char *[]){"SIGSEGV", "in step() of count", AT_50, NULL});
    rm_test_daemon_end(&d);
    setenv("RINGMASTER_GDB", "/bin/false", 1);
    run("bad-gdb", "free", "\"crash_step\":50");
    unsetenv("RINGMASTER_GDB");
    assert_non_null(strstr(rm_test_daemon_file(&d, "log.txt"), "actor-0: gdb gave no stack: "));
    says((const char *[]){"SIGSEGV", "in step() of count", AT_50, NULL});
}

#define T(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_crash_is_reported),
        T(a_hang_is_reported),
        T(a_crash_in_a_sequential_run_is_reported),
        T(a_fault_in_a_shared_object_is_reported),
        T(a_refused_system_call_is_reported),
        T(gdb_looks_at_a_crash),
        T(gdb_looks_at_a_hang),
        T(without_gdb_it_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
