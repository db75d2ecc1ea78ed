/* Writing a checkpoint goes wrong in every way and at every step: killed at each named site and
 * before each system call, the disk full, broken or writing less than it was given. What is called
 * a checkpoint afterwards is whole, the one before or the new one, and the next one succeeds. */
#ifndef RM_FAULT_SITES
#define RM_FAULT_SITES
#endif
#include "daemon/checkpoint_files.c"
#include "daemon/checkpoint_manifest.c"
#include "shm/base/fault.c"

#include "shm/base/file.h"
#include "tests/crash/disk.h"
#include "tests/crash/small_checkpoint.h"
#include "tests/crash/victim.h"
#include "tests/support/daemon.h"
#include "tests/support/unit.h"

static char run[64];

static int make_run(void **state)
{
    (void)state;
    return small_folder(run);
}

static int remove_run(void **state)
{
    (void)state;
    rm_file_remove_all(run);
    return 0;
}

static int make_one(uint64_t number)
{
    json_t *config = json_object();
    const int rc = small_make(run, number, config);
    json_decref(config);
    return rc;
}

static int victim(void *number)
{
    return make_one(*(uint64_t *)number) ? 1 : 0;
}

static int victim_of_calls(void *number)
{
    disk_way = DISK_KILLED;
    return victim(number);
}

/* The newest that is whole; everything that has a name must be. */
static uint64_t newest(void)
{
    uint64_t numbers[16];
    const size_t n = rm_checkpoint_list(run, numbers, 16);
    for (size_t i = 0; i < n; i++) {
        char folder[RM_SESSION_PATH_MAX];
        struct rm_checkpoint_facts facts;
        struct rm_error error = {""};
        assert_int_equal(rm_session_checkpoint_folder(run, numbers[i], false, folder, NULL), 0);
        const int rc = rm_checkpoint_check(folder, true, &facts, &error);
        /* One that was being removed may lack its manifest: then it is no checkpoint any more. */
        if (rc && i < 2)
            fail_msg("%s", error.text);
        if (rc == 0) {
            assert_int_equal(facts.step, 100 * numbers[i]);
            assert_true(small_is(folder, numbers[i]));
            rm_checkpoint_facts_free(&facts);
        }
    }
    return n ? numbers[0] : 0;
}

/* After the attempt at `number`: it or the one before is there. */
static void one_of_two(uint64_t number, const char *what, unsigned nth)
{
    const uint64_t have = newest();
    if (have != number && have != number - 1)
        fail_msg("%s, %u: checkpoint %llu is the newest after an attempt at %llu", what, nth,
                 (unsigned long long)have, (unsigned long long)number);
}

/* --- the tests ------------------------------------------------------------------------------- */

static void killed_at_every_site(void **state)
{
    static const char *const sites[] = {
        "checkpoint.begin.before", "checkpoint.begin.after",   "checkpoint.seal.before",
        "checkpoint.seal.hashed",  "checkpoint.seal.manifest", "checkpoint.manifest.written",
        "checkpoint.seal.synced",  "checkpoint.seal.renamed",  "checkpoint.seal.after",
        "checkpoint.prune.before",
    };
    uint64_t number = 3;
    (void)state;
    for (uint64_t i = 1; i <= number; i++)
        assert_int_equal(make_one(i), 0);
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
        number++;
        assert_int_equal(victim_wait(victim_start(victim, &number, sites[i], 1)), 1000 + SIGKILL);
        one_of_two(number, sites[i], 1);
        number++;
        assert_int_equal(make_one(number), 0);
        assert_int_equal(newest(), number);
    }
}

static void killed_before_every_call(void **state)
{
    uint64_t number = 3;
    unsigned n = 0;
    int end;
    (void)state;
    for (uint64_t i = 1; i <= number; i++)
        assert_int_equal(make_one(i), 0);
    do {
        disk_wrong_at = ++n;
        number++;
        end = victim_wait(victim_start(victim_of_calls, &number, NULL, 0));
        one_of_two(number, "killed before call", n);
        number++;
        assert_int_equal(make_one(number), 0);
        assert_int_equal(newest(), number);
    } while (end == 1000 + SIGKILL);
    assert_int_equal(end, 0);
    assert_true(n > 60);
}

/* Where the call that failed was one of removing old ones, the new one stands. */
static void failing_calls(enum disk_way how, const char *what)
{
    uint64_t number = 3;
    bool reached = true;
    for (uint64_t i = 1; i <= number; i++)
        assert_int_equal(make_one(i), 0);
    for (unsigned n = 1; reached; n++) {
        number++;
        disk_way = how;
        disk_wrong_at = n;
        disk_calls = 0;
        const int rc = make_one(number);
        reached = disk_calls >= n;
        disk_way = DISK_WELL;
        one_of_two(number, what, n);
        if (rc == 0)
            assert_int_equal(newest(), number);
        if (how == DISK_SHORT || !reached)
            assert_int_equal(rc, 0);
        number++;
        assert_int_equal(make_one(number), 0);
        assert_int_equal(newest(), number);
    }
}

static void no_space_at_every_call(void **state)
{
    (void)state;
    failing_calls(DISK_NO_SPACE, "ENOSPC at call");
}

static void full_from_every_call_on(void **state)
{
    (void)state;
    failing_calls(DISK_FULL, "no space any more from call");
}

static void errors_at_every_call(void **state)
{
    (void)state;
    failing_calls(DISK_BROKEN, "EIO at call");
}

static void short_writes_are_made_whole(void **state)
{
    (void)state;
    failing_calls(DISK_SHORT, "a short write at call");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_at_every_site, make_run, remove_run),
        cmocka_unit_test_setup_teardown(killed_before_every_call, make_run, remove_run),
        cmocka_unit_test_setup_teardown(no_space_at_every_call, make_run, remove_run),
        cmocka_unit_test_setup_teardown(full_from_every_call_on, make_run, remove_run),
        cmocka_unit_test_setup_teardown(errors_at_every_call, make_run, remove_run),
        cmocka_unit_test_setup_teardown(short_writes_are_made_whole, make_run, remove_run),
    };
    alarm(900); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
