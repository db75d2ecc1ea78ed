/* What a world of a shared object can and cannot do, each in a process that is given up for it. */
#include "actor/worlds/sandbox.h"
#include "actor/worlds/watch.h"
#include "actor/worlds/worlds.h"
#include "tests/support/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* As numbered in data/rogue_world.c. */
enum { NOTHING, THREAD, READ, WRITE, MEMORY, LIMIT, FAULT, FORK, SOCKET, PROGRAM, KILL };
enum { CONFIG = 17, OWNER, ASYNC, LEASE, OUTLIVE, PIN, LOOK, GROW, UMASK, LEAVE };

enum { WELL = 0, SAYS = 3 }; /* how a child ends that is not killed */

static struct rm_board_worker *slot; /* shared with children */
static char directory[32];

static void step(const struct rm_experiment *e, int act)
{
    static float obs, reward;
    static uint8_t flags;
    const int32_t action = 0, *actions = &action;
    const struct rm_env_buffers out = {
        .obs = &obs, .obs_stride = sizeof obs, .reward = &reward, .flags = &flags};
    struct rm_error error = {""};
    struct rm_world world;
    struct rm_env *env;
    struct rm_world_config config = e->world;

    snprintf(config.options, sizeof config.options, "{\"act\": %d}", act);
    if (rm_world_open(&world, "rogue", e->world.library, &error) < 0 ||
        rm_world_create(&world, &config, 5, 0, 1, &env, &error) < 0) {
        snprintf(slot->error, sizeof slot->error, "%.200s", error.text);
        _exit(SAYS);
    }
    const struct rm_watch watch = {.world = "rogue", .worlds = 1, .seed = 5};
    rm_watch_enter(&watch, RM_WATCH_STEP);
    const int rc = world.ops->step(env, 0, &actions, &out);
    rm_watch_leave();
    if (rc < 0)
        snprintf(slot->error, sizeof slot->error, "%.200s", world.ops->last_error(env));
    _exit(rc < 0 ? SAYS : WELL);
}

/* The status of a process that was confined so and let the world act. slot->error: its words. */
static int act(int which, enum rm_sandbox_mode mode, uint64_t memory, const char *writable)
{
    int status;
    memset(slot, 0, sizeof *slot);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static struct rm_experiment e;
        struct rm_error error = {""};
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        e.actor.sandbox = mode;
        e.actor.memory_limit = memory;
        snprintf(e.world.library, sizeof e.world.library, "%s",
                 rm_test_build_path("tests/worlds/rogue.so"));
        if (chdir(directory) < 0 || rm_watch_install("test", &error) < 0 ||
            rm_sandbox_enter(&e, writable, &error) < 0) {
            snprintf(slot->error, sizeof slot->error, "%.200s", error.text);
            _exit(1);
        }
        rm_watch_set_slot(slot, -1);
        step(&e, which);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void says(const char *words)
{
    if (!strstr(slot->error, words))
        fail_msg("\"%s\" is not in \"%s\"", words, slot->error);
}

/* Does this build filter system calls? */
static bool filtered(void)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(rm_sandbox_calls(RM_SANDBOX_READS, NULL) == 1 ? 1 : 0);
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

#define SKIP_UNLESS_FILTERED()                                                                     \
    if (!filtered()) {                                                                             \
        print_message("skipped: this build or kernel does not filter system calls\n");             \
        skip();                                                                                    \
    }

static void worlds_do_what_worlds_do(void **state)
{
    (void)state;
    for (int which = NOTHING; which <= READ; which++) {
        const int status = act(which, RM_SANDBOX_AUTO, 0, NULL);
        if (status != WELL)
            fail_msg("act %d: %d: %s", which, status, slot->error);
    }
    assert_int_equal(act(MEMORY, RM_SANDBOX_AUTO, 0, NULL), WELL);
}

static void other_calls_are_named_and_deadly(void **state)
{
    static const struct {
        int which;
        const char *name;
    } cases[] = {{FORK, "clone"},     {SOCKET, "socket"}, {PROGRAM, "execve"}, {KILL, "kill"},
                 {OWNER, "fcntl"},    {ASYNC, "fcntl"},   {LEASE, "fcntl"},    {OUTLIVE, "prctl"},
                 {LOOK, "prlimit64"}, {UMASK, "umask"},   {LEAVE, "chdir"}};
    (void)state;
    SKIP_UNLESS_FILTERED();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char words[64];
        assert_int_equal(act(cases[i].which, RM_SANDBOX_AUTO, 0, NULL), 128 + SIGSYS);
        snprintf(words, sizeof words, ", %s, is not allowed) in step() of rogue", cases[i].name);
        says(words);
    }
    assert_int_equal(act(LIMIT, RM_SANDBOX_AUTO, 0, NULL), 128 + SIGSYS);
}

/* What libraries try and do without is refused without a report. */
static void some_calls_are_quietly_refused(void **state)
{
    (void)state;
    SKIP_UNLESS_FILTERED();
    assert_int_equal(act(PIN, RM_SANDBOX_AUTO, 0, NULL), SAYS);
    says("sched_setaffinity: Operation not permitted");
    assert_int_equal(act(GROW, RM_SANDBOX_AUTO, 0, NULL), SAYS);
    says("mremap: Cannot allocate memory");
}

/* With Landlock of version 6 no signal gets out, whatever sends it; root's rights are gone. */
static void nothing_of_root_is_left(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        static struct rm_experiment e;
        struct rm_error error = {""};
        e.actor.sandbox = RM_SANDBOX_ON;
        snprintf(e.world.library, sizeof e.world.library, "x");
        const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
        if (rm_sandbox_files(NULL, &error) < 0)
            _exit(2);
        if (version >= 6 && (kill(getppid(), 0) == 0 || errno != EPERM))
            _exit(3);
        const int other = open("/proc/1/environ", O_RDONLY);
        if (version >= 1 && (other >= 0 || ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) == 0))
            _exit(4);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        e.actor.sandbox = RM_SANDBOX_AUTO;
        if (rm_sandbox_enter(&e, NULL, &error) < 0)
            _exit(5);
        char line[128];
        FILE *in = fopen("/proc/self/status", "r");
        unsigned long long effective = ~0ull;
        while (in && fgets(line, sizeof line, in))
            sscanf(line, "CapEff: %llx", &effective);
        _exit(effective & ~6ull ? 6 : 0); /* reading and writing files is left */
    }
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The systemd unit's filter refuses capset(); a daemon without capabilities does not need it. */
static void without_capabilities_none_are_dropped(void **state)
{
    struct sock_filter no_capset[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_capset, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog filter = {sizeof no_capset / sizeof *no_capset, no_capset};
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        static struct rm_experiment e;
        struct rm_error error = {""};
        snprintf(e.world.library, sizeof e.world.library, "x");
        e.actor.sandbox = RM_SANDBOX_AUTO;
        if (geteuid() == 0 && setuid(65534) < 0)
            _exit(1);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0)
            _exit(2);
        _exit(rm_sandbox_enter(&e, NULL, &error) < 0 ? 3 : 0);
    }
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_fault_is_named_in_a_sandbox_too(void **state)
{
    (void)state;
    assert_int_equal(act(FAULT, RM_SANDBOX_AUTO, 0, NULL), 128 + SIGSEGV);
    says("SIGSEGV (address 0x0) in step() of rogue, world 0, seed 5");
}

static void files_are_written_where_they_may_be(void **state)
{
    char subfolder[sizeof directory + 8], file[sizeof directory + 16];
    (void)state;
    SKIP_UNLESS_FILTERED();
    snprintf(subfolder, sizeof subfolder, "%s/sub", directory);
    snprintf(file, sizeof file, "%s/rogue.txt", directory);
    assert_int_equal(act(WRITE, RM_SANDBOX_AUTO, 0, NULL), SAYS);
    says("open for writing: Permission denied");
    assert_int_equal(access(file, F_OK), -1);
    assert_int_equal(act(WRITE, RM_SANDBOX_AUTO, 0, directory), WELL);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkdir(subfolder, 0700), 0);
    pid_t child = fork(); /* for good, so not in this process */
    if (child == 0)
        _exit(rm_sandbox_files(NULL, NULL) == 1 ? 1 : 0);
    int landlock;
    waitpid(child, &landlock, 0);
    if (WIFEXITED(landlock) && WEXITSTATUS(landlock) == 1) {
        assert_int_equal(act(WRITE, RM_SANDBOX_AUTO, 0, subfolder), SAYS);
        assert_int_equal(access(file, F_OK), -1);
    }
    assert_int_equal(rmdir(subfolder), 0);
}

/* He could make root's process write wherever he likes. */
static void a_folder_behind_the_link_of_another_user_is_refused(void **state)
{
    char link[64], below[80];
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can give a link to somebody else */
    snprintf(link, sizeof link, "%s/link", directory);
    snprintf(below, sizeof below, "%s/sub", link);
    assert_int_equal(symlink(directory, link), 0);
    assert_int_equal(mkdir(below, 0700), 0);
    for (uid_t user = 0; user <= 65534; user += 65534) {
        int status;
        assert_int_equal(lchown(link, user, user), 0);
        const pid_t child = fork();
        if (child == 0) {
            struct rm_error error = {""};
            const int files = rm_sandbox_files(below, &error);
            const int writing = rm_sandbox_writing(below, &error);
            _exit(files == -EPERM && writing == -EPERM && strstr(error.text, "is a link of user")
                      ? 1
                  : files >= 0 && writing >= 0 ? 0
                                               : 2);
        }
        waitpid(child, &status, 0);
        assert_true(WIFEXITED(status));
        if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 1)
            assert_int_equal(WEXITSTATUS(status), user != 0);
    }
    assert_int_equal(rmdir(below), 0);
    assert_int_equal(unlink(link), 0);
}

/* Without Landlock, where there is nothing to write the filter alone sees to it. */
static void the_filter_alone_keeps_files_from_being_written(void **state)
{
    (void)state;
    SKIP_UNLESS_FILTERED();
    pid_t child = fork();
    if (child == 0) {
        if (chdir(directory) < 0 || rm_sandbox_calls(RM_SANDBOX_READS, NULL) != 1)
            _exit(1);
        int fd = open("a", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd >= 0 || errno != EACCES)
            _exit(2);
        fd = open("a", O_RDONLY | O_CREAT, 0600);
        if (fd >= 0 || errno != EACCES)
            _exit(3);
        fd = open("/dev/null", O_RDWR);
        if (fd >= 0 || errno != EACCES)
            _exit(4);
        fd = open("/dev/null", O_RDONLY);
        _exit(fd >= 0 ? 0 : 5);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void memory_ends_at_its_limit(void **state)
{
    (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip(); /* their shadows are larger than any limit */
#endif
    assert_int_equal(act(MEMORY, RM_SANDBOX_AUTO, UINT64_C(1) << 30, NULL), SAYS);
    says("malloc: Cannot allocate memory");
    assert_int_equal(act(MEMORY, RM_SANDBOX_OFF, UINT64_C(1) << 30, NULL), SAYS);
}

static void there_is_a_way_out(void **state)
{
    (void)state;
    assert_int_equal(act(FORK, RM_SANDBOX_OFF, 0, NULL), WELL);
    assert_int_equal(act(SOCKET, RM_SANDBOX_OFF, 0, NULL), WELL);
}

static int make(void **state)
{
    (void)state;
    /* cppcheck-suppress invalidFunctionArg ; -1 is what an anonymous mapping takes */
    slot = mmap(NULL, sizeof *slot, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strcpy(directory, "/tmp/rm-sandbox-XXXXXX");
    return slot != MAP_FAILED && mkdtemp(directory) ? 0 : -1;
}

static int unmake(void **state)
{
    (void)state;
    munmap(slot, sizeof *slot);
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worlds_do_what_worlds_do),
        cmocka_unit_test(other_calls_are_named_and_deadly),
        cmocka_unit_test(some_calls_are_quietly_refused),
        cmocka_unit_test(nothing_of_root_is_left),
        cmocka_unit_test(without_capabilities_none_are_dropped),
        cmocka_unit_test(a_fault_is_named_in_a_sandbox_too),
        cmocka_unit_test(files_are_written_where_they_may_be),
        cmocka_unit_test(a_folder_behind_the_link_of_another_user_is_refused),
        cmocka_unit_test(the_filter_alone_keeps_files_from_being_written),
        cmocka_unit_test(memory_ends_at_its_limit),
        cmocka_unit_test(there_is_a_way_out),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
