/* kill -9 while a checkpoint is written, at every named site: whoever looks afterwards finds the
 * new one whole or the one before, never something between, and the next one is written as ever. */
#include "tests/crash/victim.h"
#include "tests/support/daemon.h"
#include "tests/support/unit.h"

#ifndef RM_FAULT_SITES
#define RM_FAULT_SITES
#endif
#include "shm/base/fault.c"

#include "daemon/checkpoint.c"
#include "daemon/checkpoint_files.c"
#include "daemon/checkpoint_manifest.c"
#include "shm/base/clock.h"
#include "shm/base/file.h"

static char run[64];
static struct rm_checkpointer made;

/* Checkpoint *arg, then only the newest is kept. */
static int writer(void *arg)
{
    const uint64_t number = *(const uint64_t *)arg;
    struct rm_error error = {""};
    struct rm_checkpointer *c = &made;
    uint64_t rows = number * 1000;
    uv_work_t work = {.data = &made};
    struct rm_checkpoint_facts facts = {.run = "t",
                                        .number = number,
                                        .step = 100 * number,
                                        .score = (double)number,
                                        .config = json_pack("{s:i}", "seed", 1)};
    c->spec.run_directory = run;
    c->number = number;
    if (rm_checkpoint_begin(run, number, &error) || rm_state_create(&c->shared, &error))
        return 1;
    rm_state_bytes(c->shared, "rows", &rows, sizeof rows);
    write_shared(&work);
    if (c->rc || rm_checkpoint_seal(run, &facts, NULL, &error))
        return 2;
    rm_checkpoint_facts_free(&facts);
    rm_checkpoint_prune(run, &(struct rm_checkpoints_kept){.newest = 1}, NULL);
    return 0;
}

/* The newest checkpoint, which must be whole and hold what was saved. */
static uint64_t newest(void)
{
    char folder[RM_SESSION_PATH_MAX], path[RM_SESSION_PATH_MAX];
    struct rm_checkpoint_facts facts = {0};
    struct rm_error error = {""};
    struct rm_state *s;
    uint64_t numbers[8], rows = 0;
    const size_t n = rm_checkpoint_list(run, numbers, 8);
    assert_true(n > 0);
    assert_int_equal(rm_session_checkpoint_folder(run, numbers[0], false, folder, &error), 0);
    if (rm_checkpoint_check(folder, true, &facts, &error))
        fail_msg("%s", error.text);
    assert_int_equal(facts.step, 100 * numbers[0]);
    rm_checkpoint_facts_free(&facts);
    assert_int_equal(rm_session_checkpoint_file(folder, "shared", 0, "state", path, &error), 0);
    assert_int_equal(rm_state_create(&s, &error), 0);
    assert_int_equal(rm_state_read(s, path, &error), 0);
    rm_state_load(s);
    rm_state_bytes(s, "rows", &rows, sizeof rows);
    assert_int_equal(rm_state_end(s, &error), 0);
    rm_state_destroy(s);
    assert_int_equal(rows, numbers[0] * 1000);
    return numbers[0];
}

static const struct {
    const char *name;
    bool there; /* is the new one there when the writer dies here? */
} sites[] = {
    {"checkpoint.begin.before", false},     {"checkpoint.begin.after", false},
    {"checkpoint.shared.before", false},    {"checkpoint.shared.after", false},
    {"checkpoint.seal.before", false},      {"checkpoint.seal.hashed", false},
    {"checkpoint.manifest.written", false}, {"checkpoint.seal.manifest", false},
    {"checkpoint.seal.synced", false},      {"checkpoint.seal.renamed", true},
    {"checkpoint.seal.after", true},        {"checkpoint.prune.before", true},
};

static void writer_dies_at_every_site(void **state)
{
    (void)state;
    uint64_t number = 1, slowest = 0;
    assert_int_equal(victim_wait(victim_start(writer, &number, NULL, 0)), 0);
    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++) {
        const uint64_t before = newest();
        number++;
        assert_int_equal(victim_wait(victim_start(writer, &number, sites[i].name, 1)),
                         VICTIM_KILLED);
        const uint64_t dead_ns = rm_now_ns();
        assert_int_equal(newest(), sites[i].there ? number : before);
        /* The next attempt takes the same number where that is still free. */
        number += sites[i].there;
        assert_int_equal(victim_wait(victim_start(writer, &number, NULL, 0)), 0);
        assert_int_equal(newest(), number);
        uint64_t numbers[8];
        assert_int_equal(rm_checkpoint_list(run, numbers, 8), 1);
        slowest = rm_now_ns() - dead_ns > slowest ? rm_now_ns() - dead_ns : slowest;
    }
    printf("  from the death to the next checkpoint whole: %.1f ms at most\n",
           (double)slowest / 1e6);
}

static int make_run(void **state)
{
    (void)state;
    snprintf(run, sizeof run, "/tmp/rm-checkpoints-XXXXXX");
    return mkdtemp(run) ? 0 : -1;
}

static int remove_run(void **state)
{
    (void)state;
    rm_file_remove_all(run);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(writer_dies_at_every_site, make_run, remove_run),
    };
    alarm(900); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
