/* The power fails while checkpoints are made: before every operation on the disk, with everything
 * that was not synced by then there, gone, emptied, zeros, torn, or any one of it alone there or
 * gone. And bytes of a checkpoint change while it lies there. Whoever starts afterwards goes on
 * from the newest checkpoint that had been made, or from the one that was being made, whole. */
#include "config/config.h"
#include "daemon/resume.h"
#include "daemon/run_lock.h"
#include "shm/base/file.h"
#include "tests/crash/recording.h"
#include "tests/crash/small_checkpoint.h"
#include "tests/support/daemon.h"
#include "tests/support/unit.h"

#define CHECKPOINTS 4

static struct rm_resumed looking;
static char root[64], found[64];
static struct rm_experiment experiment;
static struct rm_run_directory made;
static int done_by[CHECKPOINTS + 1]; /* operations by the time at which checkpoint i was made */

static int make_folders(void **state)
{
    static const char text[] = "{\"name\": \"t\", \"world\": {\"name\": \"count\"},"
                               "\"algorithm\": {\"name\": \"dqn\"},"
                               "\"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 4}]}}";
    struct rm_error error = {""};
    (void)state;
    if (rm_config_parse(&experiment, "t", text, strlen(text), NULL, 0, &error))
        print_error("%s\n", error.text);
    return small_folder(root) || small_folder(found) || error.text[0];
}

static int remove_folders(void **state)
{
    (void)state;
    record_end();
    rm_file_remove_all(root);
    rm_file_remove_all(found);
    return 0;
}

/* A run from its very beginning: its directory, and checkpoints of which the first ones go again.
 */
static void make_all(void)
{
    char runs[96];
    struct rm_error error = {""};
    struct rm_run_lock lock = {.fd = -1};
    json_t *config = rm_config_to_json(&experiment);
    snprintf(runs, sizeof runs, "%s/runs", root);
    if (rm_run_directory_create(&made, runs, "t", &lock, &error))
        fail_msg("%s", error.text);
    for (uint64_t i = 1; i <= CHECKPOINTS; i++) {
        assert_int_equal(small_make(made.path, i, config), 0);
        done_by[i] = record_count;
    }
    json_decref(config);
    rm_run_lock_leave(&lock);
}

static void empty_found(void)
{
    rm_file_remove_all(found);
    assert_int_equal(mkdir(found, 0755), 0);
}

/* What a daemon that starts with what is in `found` goes on from: the checkpoint's number, or 0. */
static uint64_t resumed(void)
{
    struct rm_error error = {""};
    snprintf(experiment.run.directory, sizeof experiment.run.directory, "%s/runs", found);
    static struct rm_run_directory run;
    static struct rm_run_lock lock;
    run.path[0] = '\0';
    lock = (struct rm_run_lock){.fd = -1};
    looking = (struct rm_resumed){.when = RM_RESUME_MAY, .directory = &run, .lock = &lock};
    if (rm_resume_find(&looking, &experiment, &error))
        fail_msg("%s", error.text);
    rm_run_lock_leave(&lock);
    if (!looking.from[0])
        return 0;
    const uint64_t number = strtoull(strrchr(looking.from, '/') + 1, NULL, 10);
    if (!small_is(looking.from, number))
        fail_msg("%s: not what was written", looking.from);
    return number;
}

/* --- the power fails ------------------------------------------------------------------------- */

static struct record_tree after;

/* Different losses may leave the same. */
static uint64_t seen[1u << 14];

static bool is_new(uint64_t last)
{
    const uint64_t hash = record_hash(&after) + last + 1;
    for (uint64_t i = hash;; i++) {
        uint64_t *at = &seen[i % (sizeof seen / sizeof *seen)];
        if (*at == hash)
            return false;
        if (*at == 0) {
            *at = hash;
            return true;
        }
    }
}

/* Returns how many states that are new were looked at. */
static unsigned lose(int end, enum record_loss loss, int which)
{
    uint64_t last = 0;
    while (last < CHECKPOINTS && done_by[last + 1] <= end)
        last++;
    record_replay(&after, end, loss, which);
    if (!is_new(last))
        return 0;
    empty_found();
    record_make(&after, 0, found);
    const uint64_t number = resumed();
    if ((number != last && number != last + 1) || looking.passed_over[0])
        fail_msg(
            "operation %d of %d, loss %d of %d: goes on from %llu, when %llu had been made%s%s",
            end, record_count, (int)loss, which, (unsigned long long)number,
            (unsigned long long)last, looking.passed_over[0] ? ": " : "", looking.passed_over);
    return 1;
}

static unsigned lose_in_every_way(int end)
{
    unsigned ways = 0;
    for (int loss = LOSS_NONE; loss < LOSS_ONE; loss++)
        ways += lose(end, (enum record_loss)loss, -1);
    for (int i = 0; i < end; i++)
        if (record_op[i].lasts_by >= end)
            for (int loss = LOSS_ONE; loss < LOSS_KINDS; loss++)
                ways += lose(end, (enum record_loss)loss, i);
    return ways;
}

/* The recording tells all that happened: played to its end, it makes what is really there. */
static void is_all_there(const char *a, const char *b)
{
    char command[160];
    snprintf(command, sizeof command, "diff -r --no-dereference %s %s", a, b);
    assert_int_equal(system(command), 0);
}

static void the_power_fails(void **state)
{
    unsigned ways = 0;
    (void)state;
    record_begin(root);
    make_all();
    record_end();
    record_replay(&after, record_count, LOSS_NONE, -1);
    empty_found();
    record_make(&after, 0, found);
    is_all_there(root, found);
    for (int end = 0; end <= record_count; end++)
        ways += lose_in_every_way(end);
    printf("  %d operations, %u states of the disk\n", record_count, ways);
    assert_true(record_count > 150);
    tree_clear(&after);
}

/* After a loss in the middle of one, the next is made as ever. */
static void the_next_one_is_made(void **state)
{
    char path[PATH_MAX], latest[PATH_MAX];
    json_t *config = rm_config_to_json(&experiment);
    (void)state;
    record_begin(root);
    make_all();
    record_end();
    for (int end = done_by[2]; end < done_by[3]; end++) {
        record_replay(&after, end, LOSS_BYTES, -1);
        empty_found();
        record_make(&after, 0, found);
        const uint64_t number = resumed();
        assert_true(number == 2 || number == 3);
        snprintf(path, sizeof path, "%s/runs/t/latest", found);
        assert_non_null(realpath(path, latest));
        assert_int_equal(small_make(latest, number + 1, config), 0);
        assert_int_equal(resumed(), number + 1);
        assert_string_equal(looking.passed_over, "");
    }
    json_decref(config);
    tree_clear(&after);
}

/* --- what lies there changes ----------------------------------------------------------------- */

static void copy_found(void)
{
    char command[160];
    empty_found();
    snprintf(command, sizeof command, "cp -a %s/. %s", root, found);
    assert_int_equal(system(command), 0);
}

static int open_found(const char *name, size_t *bytes)
{
    char path[PATH_MAX];
    struct stat about = {.st_size = 0};
    snprintf(path, sizeof path, "%s/runs/t/latest/checkpoints/%06d/%s", found, CHECKPOINTS, name);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && fstat(fd, &about) == 0);
    *bytes = (size_t)about.st_size;
    return fd;
}

static const char *const files[] = {"manifest.json",   "shared-0.state",
                                    "actor-0.state",   "learner-0.safetensors",
                                    "learner-0.state", "policies/a.safetensors"};
#define FILES (sizeof files / sizeof *files)

/* The manifest may be written differently, such as with other spaces, where it says the same. */
static json_t *manifest(int fd)
{
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return json_loadfd(fd, 0, NULL);
}

static bool says_the_same(int fd, const json_t *before)
{
    json_t *now = manifest(fd);
    const bool same = before && now && json_equal(before, now);
    json_decref(now);
    return same;
}

/* The newest is refused, and the one before taken; where `same`, the newest may stay. The whole way
 * of a start is gone only now and then: it takes its time. */
static bool is_noticed(bool start, bool same)
{
    char folder[PATH_MAX];
    struct rm_checkpoint_facts facts;
    snprintf(folder, sizeof folder, "%s/runs/t/latest/checkpoints/%06d", found, CHECKPOINTS);
    if (rm_checkpoint_check(folder, true, &facts, NULL) == 0) {
        rm_checkpoint_facts_free(&facts);
        return same;
    }
    return !start ||
           (resumed() == CHECKPOINTS - 1 && strstr(looking.passed_over, "/000004") != NULL);
}

static void any_byte_changes(void **state)
{
    size_t bytes, changed = 0;
    (void)state;
    make_all();
    copy_found();
    assert_int_equal(resumed(), CHECKPOINTS);
    for (size_t f = 0; f < FILES; f++) {
        const int fd = open_found(files[f], &bytes);
        json_t *before = f == 0 ? manifest(fd) : NULL;
        for (size_t i = 0; i < bytes; i++, changed++) {
            uint8_t was, is;
            assert_int_equal(pread(fd, &was, 1, (off_t)i), 1);
            is = was ^ (uint8_t)(1u << i % 8);
            assert_int_equal(pwrite(fd, &is, 1, (off_t)i), 1);
            if (!is_noticed(i % 32 == 0, says_the_same(fd, before)))
                fail_msg("%s: byte %zu can be changed", files[f], i);
            assert_int_equal(pwrite(fd, &was, 1, (off_t)i), 1);
        }
        json_decref(before);
        close(fd);
    }
    assert_int_equal(resumed(), CHECKPOINTS);
    printf("  %zu bytes, each of them changed\n", changed);
}

/* Cut short, or longer than it was. */
static void any_file_changes_its_length(void **state)
{
    size_t bytes;
    (void)state;
    make_all();
    for (size_t f = 0; f < FILES; f++) {
        copy_found();
        const int fd = open_found(files[f], &bytes);
        const size_t lengths[] = {bytes + 1, bytes - 1, bytes / 2, 1, 0};
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            assert_int_equal(ftruncate(fd, (off_t)lengths[i]), 0);
            if (resumed() != CHECKPOINTS - 1)
                fail_msg("%s: may have %zu bytes instead of %zu", files[f], lengths[i], bytes);
        }
        close(fd);
    }
}

static void any_file_is_missing(void **state)
{
    char path[PATH_MAX];
    (void)state;
    make_all();
    for (size_t f = 0; f < FILES; f++) {
        copy_found();
        snprintf(path, sizeof path, "%s/runs/t/latest/checkpoints/%06d/%s", found, CHECKPOINTS,
                 files[f]);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(resumed(), CHECKPOINTS - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_power_fails, make_folders, remove_folders),
        cmocka_unit_test_setup_teardown(the_next_one_is_made, make_folders, remove_folders),
        cmocka_unit_test_setup_teardown(any_byte_changes, make_folders, remove_folders),
        cmocka_unit_test_setup_teardown(any_file_changes_its_length, make_folders, remove_folders),
        cmocka_unit_test_setup_teardown(any_file_is_missing, make_folders, remove_folders),
    };
    alarm(900); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
