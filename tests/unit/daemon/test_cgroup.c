/* Groups with limits, in a directory that stands for the kernel's: what is written where, and the
 * messages for what is missing. */
#include "tests/support/unit.h"

#include "daemon/cgroup.h"
#include "shm/base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];
static struct rm_cgroup group;

static const char *at(const char *path)
{
    static char full[4][PATH_MAX];
    static unsigned turn;
    char *to = full[turn++ % 4];
    snprintf(to, PATH_MAX, "%s/%s", root, path);
    return to;
}

static void put(const char *path, const char *text)
{
    FILE *out = fopen(at(path), "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static void holds(const char *path, const char *text)
{
    char got[256] = "";
    FILE *in = fopen(at(path), "r");
    assert_non_null(in);
    got[fread(got, 1, sizeof got - 1, in)] = '\0';
    fclose(in);
    assert_string_equal(got, text);
}

/* The kernel makes these files with the directory. */
static void make(const char *path)
{
    static const char *const files[] = {"cgroup.procs",     "memory.max", "memory.swap.max",
                                        "memory.oom.group", "pids.max",   "memory.events",
                                        "pids.events",      "cgroup.kill"};
    char file[128];
    assert_int_equal(mkdir(at(path), 0755), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(file, sizeof file, "%s/%s", path, files[i]);
        put(file, "");
    }
}

static int setup(void **state)
{
    char own[32];
    (void)state;
    strcpy(root, "/tmp/rm-cgroup-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    make("unit");
    make("unit/supervisor");
    make("unit/actor-0");
    snprintf(own, sizeof own, "%d\n", (int)getpid());
    put("unit/cgroup.procs", own);
    put("unit/cgroup.controllers", "cpu memory pids\n");
    put("unit/cgroup.subtree_control", "");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rm_file_remove_all(root);
    return 0;
}

static void a_worker_has_its_limits(void **state)
{
    char procs[PATH_MAX];
    struct rm_error error = {""};
    (void)state;
    if (rm_cgroup_open(&group, root, "1:name=systemd:/x\n0::/unit\n", &error) < 0)
        fail_msg("%s", error.text);
    holds("unit/supervisor/cgroup.procs", "0");
    holds("unit/cgroup.subtree_control", "+memory +pids");
    assert_int_equal(rm_cgroup_make(&group, "actor-0", 1u << 30, 64, procs, sizeof procs, &error),
                     0);
    assert_string_equal(procs, at("unit/actor-0/cgroup.procs"));
    holds("unit/actor-0/memory.max", "1073741824");
    holds("unit/actor-0/memory.swap.max", "0");
    holds("unit/actor-0/memory.oom.group", "1");
    holds("unit/actor-0/pids.max", "64");
    put("unit/actor-0/memory.swap.max", "");
    put("unit/actor-0/memory.max", ""); /* the kernel's files are no texts that grow */
    put("unit/actor-0/pids.max", "");
    assert_int_equal(rm_cgroup_make(&group, "actor-0", 0, 0, procs, sizeof procs, &error), 0);
    holds("unit/actor-0/memory.max", "max");
    holds("unit/actor-0/memory.swap.max", "max");
    holds("unit/actor-0/pids.max", "max");
}

/* Kernels that do not count swap, or cannot kill groups. */
static void what_limits_did_is_read(void **state)
{
    char procs[PATH_MAX];
    struct rm_error error = {""};
    struct rm_cgroup_events events;
    (void)state;
    assert_int_equal(rm_cgroup_open(&group, root, "0::/unit\n", &error), 0);
    assert_int_equal(unlink(at("unit/actor-0/memory.swap.max")), 0);
    assert_int_equal(unlink(at("unit/actor-0/memory.oom.group")), 0);
    assert_int_equal(rm_cgroup_make(&group, "actor-0", 1, 1, procs, sizeof procs, &error), 0);
    put("unit/actor-0/memory.events",
        "low 0\nhigh 0\nmax 91\noom 4\noom_kill 3\noom_group_kill 2\n");
    put("unit/actor-0/pids.events", "max 12\n");
    rm_cgroup_read_events(&group, "actor-0", &events);
    assert_int_equal(events.oom, 4);
    assert_int_equal(events.oom_kill, 3);
    assert_int_equal(events.refused, 12);
    rm_cgroup_clear(&group, "actor-0");
    holds("unit/actor-0/cgroup.kill", "1");
    rm_cgroup_read_events(&group, "absent", &events);
    assert_int_equal(events.oom + events.oom_kill + events.refused, 0);
    rm_cgroup_clear(&group, "absent");
}

static void refused(const char *membership, int code, const char *words)
{
    struct rm_error error = {""};
    assert_int_equal(rm_cgroup_open(&group, root, membership, &error), code);
    if (!strstr(error.text, words))
        fail_msg("\"%s\" lacks \"%s\"", error.text, words);
    assert_string_equal(group.path, "");
}

static void what_is_missing_is_reported(void **state)
{
    (void)state;
    refused("4:memory:/x\n1:name=systemd:/x\n", -ENOTSUP, "no control groups of version 2");
    refused("0::/absent\n", -ENOENT, "control groups of version 2 are not in use");
    put("unit/cgroup.controllers", "cpu memory pidsomething\n");
    refused("0::/unit\n", -ENOTSUP, "the controllers memory and pids are missing (set Delegate=");
    put("unit/cgroup.controllers", "cpu memory pids\n");
    put("unit/cgroup.procs", "1\n");
    refused("0::/unit\n", -EBUSY, "other processes are in this group");
    put("unit/cgroup.procs", "");
    assert_int_equal(unlink(at("unit/cgroup.subtree_control")), 0);
    refused("0::/unit\n", -ENOENT, "cgroup.subtree_control");
}

/* Whatever this host has: groups that can be made below, or the reason that is this host's. */
static void this_host_says_why_not(void **state)
{
    struct rm_error error = {""};
    (void)state;
    const int rc = rm_cgroup_open_own(&group, &error);
    print_message("%s\n", rc < 0 ? error.text : group.path);
    if (access(RM_CGROUP_ROOT "/cgroup.controllers", F_OK) != 0) {
        assert_int_equal(rc, -ENOTSUP);
        assert_non_null(strstr(error.text, RM_CGROUP_ROOT " is not of version 2"));
    } else if (rc < 0) {
        static const char *const reasons[] = {"the controllers memory and pids are missing",
                                              "other processes are in this group", "cannot be made",
                                              "cgroup.subtree_control"};
        size_t known = 0;
        for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
            known += strstr(error.text, reasons[i]) != NULL;
        assert_true(known > 0);
    } else {
        char procs[PATH_MAX];
        assert_int_equal(strncmp(group.path, RM_CGROUP_ROOT, strlen(RM_CGROUP_ROOT)), 0);
        if (rm_cgroup_make(&group, "test", 0, 64, procs, sizeof procs, &error) < 0)
            fail_msg("%s", error.text);
        assert_int_equal(access(procs, W_OK), 0);
    }
    if (rc < 0)
        assert_string_equal(group.path, "");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_worker_has_its_limits),
        T(what_limits_did_is_read),
        T(what_is_missing_is_reported),
        cmocka_unit_test(this_host_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
