/* Worlds that crash, hang or leave while they are made, before anybody depends on them. */
#include "actor/worlds/sandbox.h"
#include "actor/worlds/described.h"
#include "config/config.h"
#include "daemon/probe.h"
#include "tests/support/batch.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* As numbered in unit/actor/data/rogue_world.c. */
enum {
    NOTHING = 0,
    WRITE = 3,
    FAULT = 6,
    SOCKET = 8,
    KILL = 10,
    ABORT,
    EXIT,
    HANG,
    OWNER = 18,
    ASYNC,
    OUTLIVE = 21,
    CRY = 99,
    SPEAK = 100
};

static char config[1024];

static void describe(int act, int names)
{
    snprintf(config, sizeof config,
             "{\"name\":\"x\",\"seed\":7,\"world\":{\"name\":\"rogue\",\"library\":\"%s\","
             "\"options\":{\"create\":%d,\"names\":%d}},\"actor\":{\"worlds\":1}}",
             rm_test_build_path("tests/worlds/rogue.so"), act, names);
}

static int probe_named(int act, int names, double patience_s, struct rm_error *error)
{
    static struct rm_experiment experiment;
    describe(act, names);
    assert_int_equal(rm_config_parse(&experiment, "t", config, strlen(config), NULL, 0, error), 0);
    const int rc = rm_probe_world(&experiment, patience_s, NULL, error);
    assert_true((rc == 0) == (experiment.world.description != NULL));
    rm_probe_forget(&experiment);
    return rc;
}

static int probe(int act, double patience_s, struct rm_error *error)
{
    return probe_named(act, 0, patience_s, error);
}

/* Names become paths, columns and lines on a terminal. */
static void names_that_cannot_be_are_refused(void **state)
{
    struct rm_error error;
    (void)state;
    for (int names = 1; names <= 5; names++) {
        error.text[0] = '\0';
        assert_true(probe_named(NOTHING, names, 30, &error) < 0);
        if (!strstr(error.text, names == 4 ? "agents 0 and 1 are both called 'twin'"
                                           : "letters, digits, '.', '_' and '-'"))
            fail_msg("%d: %s", names, error.text);
        for (const char *c = error.text; *c; c++)
            assert_true((unsigned char)*c >= ' ');
    }
}

static void what_it_says_moves_no_cursor(void **state)
{
    struct rm_error error = {""};
    char *description;
    (void)state;
    assert_int_equal(probe(SPEAK, 30, &error), -EINVAL);
    if (!strstr(error.text, "refuses: ?]0;mine? ?? 2J;ringctl: all is well"))
        fail_msg("%s", error.text);
    assert_int_equal(probe(CRY, 30, &error), -EPROTO);
    if (!strstr(error.text, "?]0;mine? ?? 2J"))
        fail_msg("%s", error.text);
    assert_int_equal(
        rm_probe_library(rm_test_build_path("tests/worlds/rogue.so"), 30, &description, &error), 0);
    struct rm_world_config world = {.description = description};
    struct rm_world_spec spec;
    assert_int_equal(rm_world_spec_open(&spec, &world, 1, &error), 0);
    assert_string_equal(spec.spec->doc, "mis?]behaves");
    rm_world_spec_close(&spec);
    free(description);
}

static void worlds_that_can_be_made_pass(void **state)
{
    struct rm_error error = {""};
    char *description;
    (void)state;
    assert_int_equal(probe(NOTHING, 30, &error), 0);
    assert_int_equal(
        rm_probe_library(rm_test_build_path("tests/worlds/rogue.so"), 30, &description, &error), 0);
    assert_non_null(strstr(description, "\"name\":\"rogue\""));
    free(description);
}

static void a_refusal_is_passed_on(void **state)
{
    struct rm_error error = {""};
    (void)state;
    assert_int_equal(probe(WRITE, 30, &error), -EINVAL);
    if (!strstr(error.text, "world 'rogue' refuses: open for writing"))
        fail_msg("%s", error.text);
}

/* Before the world's code is run: where it cannot, the world is not tried. */
static void the_group_is_entered_first(void **state)
{
    static struct rm_experiment experiment;
    struct rm_error error = {""};
    char path[] = "/tmp/rm-group-XXXXXX", got[8] = "";
    (void)state;
    const int fd = mkstemp(path); /* stands for the kernel's file */
    assert_true(fd >= 0);
    describe(NOTHING, 0);
    assert_int_equal(rm_config_parse(&experiment, "t", config, strlen(config), NULL, 0, &error), 0);
    assert_int_equal(rm_probe_world(&experiment, 30, path, &error), 0);
    rm_probe_forget(&experiment);
    assert_int_equal(pread(fd, got, sizeof got, 0), 1);
    assert_string_equal(got, "0");
    close(fd);
    unlink(path);
    describe(ABORT, 0);
    assert_int_equal(rm_config_parse(&experiment, "t", config, strlen(config), NULL, 0, &error), 0);
    assert_int_equal(rm_probe_world(&experiment, 30, "/nowhere/cgroup.procs", &error), -ENOENT);
    if (!strstr(error.text, "/nowhere/cgroup.procs: No such file"))
        fail_msg("%s", error.text);
}

static void words(int act, double patience_s, const char *a, const char *b)
{
    struct rm_error error = {""};
    assert_int_equal(probe(act, patience_s, &error), act == HANG ? -ETIMEDOUT : -EPROTO);
    if (!strstr(error.text, a) || !strstr(error.text, b) || !strstr(error.text, "rogue.so"))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error.text, a, b);
}

static void a_crash_is_reported(void **state)
{
    (void)state;
    words(ABORT, 30, "ended by signal 6", "SIGABRT in create() of rogue, world 0, seed 7");
    words(FAULT, 30, "ended by signal 11", "SIGSEGV (address 0x0) in create() of rogue");
    words(EXIT, 30, "it ended the process with exit code 0", "");
}

static void a_world_that_never_returns_is_reported(void **state)
{
    (void)state;
    words(HANG, 0.5, "it did not return in 0.5 s", "silent in create() of rogue, world 0, seed 7");
}

/* As an old kernel does, and filters that do not know the call. */
static int refuse_descriptors_of_processes(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
               ? -1
               : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void nobody_waits_for_good_without_a_descriptor_of_the_process(void **state)
{
    int status;
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        struct rm_error error = {""};
        alarm(60); /* ends what would wait for good */
        if (refuse_descriptors_of_processes() < 0)
            _exit(77);
        _exit(probe(NOTHING, 30, &error) == 0 && probe(HANG, 0.5, &error) == -ETIMEDOUT &&
                      strstr(error.text, "it did not return")
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

/* Does this build filter system calls? */
static bool filtered(void)
{
    int status;
    const pid_t child = fork();
    if (child == 0)
        _exit(rm_sandbox_calls(RM_SANDBOX_READS, NULL) == 1 ? 1 : 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* While it is only tried, as by ringctl validate, who tries it is as safe as a daemon. */
static void one_that_is_tried_is_confined(void **state)
{
    static const struct {
        int act;
        const char *call;
    } cases[] = {
        {SOCKET, "socket"}, {KILL, "kill"}, {OWNER, "fcntl"}, {ASYNC, "fcntl"}, {OUTLIVE, "prctl"}};
    (void)state;
    if (!filtered()) {
        print_message("skipped: this build or kernel does not filter system calls\n");
        skip();
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        words(cases[i].act, 30, cases[i].call, "is not allowed) in create() of rogue");
}

/* ringctl says it too, with its exit code, and lives. */
static void validate_outlives_the_world(void **state)
{
    static const int acts[] = {ABORT, FAULT, EXIT};
    char path[] = "/tmp/rm-probe-XXXXXX", command[512], line[1024] = "";
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        describe(acts[i], 0);
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, config, strlen(config), 0), (ssize_t)strlen(config));
        snprintf(command, sizeof command, "%s validate %s 2>&1", rm_test_build_path("bin/ringctl"),
                 path);
        FILE *out = popen(command, "r");
        assert_non_null(out);
        assert_non_null(fgets(line, sizeof line, out));
        const int status = pclose(out);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 4);
        assert_non_null(strstr(line, "the process that tried the world"));
    }
    close(fd);
    unlink(path);
}

static int setup(void **state)
{
    (void)state;
    return setenv("RINGMASTER_LIBEXEC", rm_test_build_path("bin"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worlds_that_can_be_made_pass),
        cmocka_unit_test(names_that_cannot_be_are_refused),
        cmocka_unit_test(what_it_says_moves_no_cursor),
        cmocka_unit_test(the_group_is_entered_first),
        cmocka_unit_test(a_refusal_is_passed_on),
        cmocka_unit_test(a_crash_is_reported),
        cmocka_unit_test(a_world_that_never_returns_is_reported),
        cmocka_unit_test(nobody_waits_for_good_without_a_descriptor_of_the_process),
        cmocka_unit_test(one_that_is_tried_is_confined),
        cmocka_unit_test(validate_outlives_the_world),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
