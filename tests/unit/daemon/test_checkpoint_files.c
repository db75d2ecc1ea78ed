/* Checkpoints on the disk: what is sealed is whole, what is damaged is refused, what is old goes.
 */
#include "daemon/checkpoint_files.h"
#include "shm/base/file.h"
#include "tests/support/daemon.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

static char run[64];

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

static void put(uint64_t number, const char *name, const char *text)
{
    char folder[RM_SESSION_PATH_MAX], path[RM_SESSION_PATH_MAX + 64];
    assert_int_equal(rm_session_checkpoint_folder(run, number, true, folder, NULL), 0);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void make(uint64_t number, double score)
{
    struct rm_error error = {""};
    struct rm_checkpoint_facts facts = {.run = "t",
                                        .number = number,
                                        .step = 100 * number,
                                        .updates = 7,
                                        .round = 3,
                                        .score = score,
                                        .config = json_pack("{s:i,s:f}", "seed", 1, "x", 0.5)};
    assert_int_equal(rm_checkpoint_begin(run, number, &error), 0);
    put(number, "shared-0.state", "rows");
    put(number, "policies/a.safetensors", "weights");
    if (rm_checkpoint_seal(run, &facts, NULL, &error))
        fail_msg("%s", error.text);
    rm_checkpoint_facts_free(&facts);
}

static const char *folder_of(uint64_t number)
{
    static char folder[RM_SESSION_PATH_MAX];
    rm_session_checkpoint_folder(run, number, false, folder, NULL);
    return folder;
}

static void what_is_sealed_is_whole(void **state)
{
    struct rm_checkpoint_facts facts;
    struct rm_error error = {""};
    uint64_t numbers[4];
    (void)state;
    make(3, NAN);
    assert_int_equal(rm_checkpoint_list(run, numbers, 4), 1);
    assert_int_equal(numbers[0], 3);
    if (rm_checkpoint_check(folder_of(3), true, &facts, &error))
        fail_msg("%s", error.text);
    assert_string_equal(facts.run, "t");
    assert_int_equal(facts.number, 3);
    assert_int_equal(facts.step, 300);
    assert_int_equal(facts.round, 3);
    assert_true(isnan(facts.score));
    assert_true(json_real_value(json_object_get(facts.config, "x")) == 0.5);
    rm_checkpoint_facts_free(&facts);
}

/* A world can make files beside those of its run, without end and without number. */
static void what_a_world_adds_ends_with_words(void **state)
{
    static const _Atomic uint64_t past_ns = 1;
    struct rm_checkpoint_facts facts = {
        .run = "t", .number = 7, .score = NAN, .config = json_pack("{s:i}", "seed", 1)};
    struct rm_error error = {""};
    char name[128], folder[RM_SESSION_PATH_MAX];
    (void)state;
    assert_int_equal(rm_session_checkpoint_folder(run, 7, true, folder, NULL), 0);
    assert_int_equal(rm_checkpoint_begin(run, 7, &error), 0);
    put(7, "endless", "rows");
    assert_int_equal(rm_checkpoint_seal(run, &facts, &past_ns, &error), -ECANCELED);
    if (!strstr(error.text, ": was still being read at the deadline"))
        fail_msg("%s", error.text);
    for (int i = 0; i < 4096; i++) {
        snprintf(name, sizeof name, "%d", i);
        put(7, name, "");
    }
    assert_int_equal(rm_checkpoint_seal(run, &facts, NULL, &error), -E2BIG);
    if (!strstr(error.text, "more than 4096 files"))
        fail_msg("%s", error.text);
    rm_checkpoint_abandon(run, 7);
    assert_int_equal(rm_checkpoint_begin(run, 7, &error), 0);
    for (int i = 0; i < 4096; i++) {
        snprintf(name, sizeof name, "%s/checkpoints/000007.tmp/%d", run, i);
        assert_int_equal(mkdir(name, 0755), 0);
    }
    assert_int_equal(rm_checkpoint_seal(run, &facts, NULL, &error), -E2BIG);
    rm_checkpoint_abandon(run, 7);
    assert_int_equal(access(folder, F_OK), -1);
    rm_checkpoint_facts_free(&facts);
}

/* A thread's stack would not hold a call for each level. */
static void what_is_too_deep_stays(void **state)
{
    char path[4096];
    (void)state;
    assert_int_equal(rm_checkpoint_begin(run, 7, NULL), 0);
    put(7, "file", "");
    size_t n = (size_t)snprintf(path, sizeof path, "%s/checkpoints/000007.tmp", run);
    for (int i = 0; i < 2000 && n + 3 < sizeof path; i++, n += 2) {
        memcpy(path + n, "/d", 3);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    rm_checkpoint_abandon(run, 7);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(rm_checkpoint_begin(run, 7, NULL), 0);
    snprintf(path, sizeof path, "%s/checkpoints/000007.tmp/file", run);
    assert_int_equal(access(path, F_OK), -1);
}

/* Every byte of every file, flipped: refused. Whitespace of the manifest may be what it will, as
 * long as it says the same. */
static void what_is_damaged_is_refused(void **state)
{
    static const char *const names[] = {"shared-0.state", "policies/a.safetensors",
                                        "manifest.json"};
    char path[RM_SESSION_PATH_MAX + 64];
    struct rm_checkpoint_facts facts;
    (void)state;
    make(1, 2.5);
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
        snprintf(path, sizeof path, "%s/%s", folder_of(1), names[f]);
        FILE *file = fopen(path, "r+b");
        assert_non_null(file);
        for (long i = 0;; i++) {
            fseek(file, i, SEEK_SET);
            const int byte = fgetc(file);
            if (byte == EOF)
                break;
            if (byte == ' ' || byte == '\n')
                continue;
            fseek(file, i, SEEK_SET);
            fputc(byte ^ 1, file);
            fflush(file);
            if (rm_checkpoint_check(folder_of(1), true, &facts, NULL) != -EBADMSG)
                fail_msg("%s: byte %ld can be flipped", names[f], i);
            fseek(file, i, SEEK_SET);
            fputc(byte, file);
            fflush(file);
        }
        fclose(file);
    }
    assert_int_equal(rm_checkpoint_check(folder_of(1), true, &facts, NULL), 0);
    rm_checkpoint_facts_free(&facts);
    snprintf(path, sizeof path, "%s/%s", folder_of(1), names[0]);
    unlink(path);
    assert_int_equal(rm_checkpoint_check(folder_of(1), true, &facts, NULL), -EBADMSG);
}

/* The manifest of checkpoint 1 with one member another, and the hash that belongs to it. */
static void claim(const char *member, const char *value)
{
    char path[RM_SESSION_PATH_MAX + 64], hex[17];
    snprintf(path, sizeof path, "%s/manifest.json", folder_of(1));
    json_t *outer = json_load_file(path, 0, NULL), *inner = json_object_get(outer, "manifest");
    json_t *other = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;
    assert_non_null(inner);
    if (other)
        json_object_set_new(inner, member, other);
    else
        json_object_del(inner, member);
    char *text = json_dumps(inner, JSON_COMPACT | JSON_SORT_KEYS);
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)XXH3_64bits(text, strlen(text)));
    json_object_set_new(outer, "xxh3", json_string(hex));
    assert_int_equal(json_dump_file(outer, path, 0), 0);
    free(text);
    json_decref(outer);
}

/* A manifest whose hash is right, but that says what cannot be. */
static void what_is_claimed_is_checked(void **state)
{
    static const struct {
        const char *member, *value, *words;
    } claims[] = {
        {"files", NULL, "lists no files"},
        {"files", "[]", "lists no files"},
        {"files", "{\"a\": 1}", "lists no files"},
        {"files", "[1]", "without name"},
        {"files", "[{\"name\": \"/dev/zero\", \"bytes\": 1, \"xxh3\": \"0\"}]",
         "outside of the checkpoint"},
        {"files", "[{\"name\": \"a/../../b\", \"bytes\": 1, \"xxh3\": \"0\"}]",
         "outside of the checkpoint"},
        {"files", "[{\"name\": \"policies\", \"bytes\": 0, \"xxh3\": \"0\"}]", "policies"},
        {"files", "[{\"name\": \"pipe\", \"bytes\": 0, \"xxh3\": \"0\"}]", "pipe"},
        {"format", "\"ringmaster-checkpoint-0\"", "its format is"},
        {"format", "\"\\u001b]0;mine\\u0007\\nall is well\"",
         "its format is \"?]0;mine?;all is well\""},
        {"step", "-1", "impossible numbers"},
        {"number", "0", "impossible numbers"},
        {"config", NULL, "lacks a member"},
    };
    char path[RM_SESSION_PATH_MAX + 64];
    struct rm_checkpoint_facts facts;
    (void)state;
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        struct rm_error error = {""};
        make(1, 1);
        snprintf(path, sizeof path, "%s/pipe", folder_of(1));
        assert_int_equal(mkfifo(path, 0600), 0);
        claim(claims[i].member, claims[i].value);
        assert_int_equal(rm_checkpoint_check(folder_of(1), true, &facts, &error), -EBADMSG);
        if (!strstr(error.text, claims[i].words))
            fail_msg("\"%s\" does not say \"%s\"", error.text, claims[i].words);
        rm_file_remove_all(folder_of(1));
    }
}

static void prune(uint32_t newest, bool best, struct rm_error *missing)
{
    const struct rm_checkpoints_kept kept = {.newest = newest, .best = best};
    rm_checkpoint_prune(run, &kept, missing);
}

static void old_ones_go(void **state)
{
    uint64_t numbers[16];
    (void)state;
    make(1, 1);
    make(2, 9);
    make(4, 2);
    make(5, NAN);
    make(10, 3);
    assert_int_equal(rm_checkpoint_begin(run, 11, NULL), 0);
    put(11, "shared-0.state", "half");
    prune(2, true, NULL);
    assert_int_equal(rm_checkpoint_list(run, numbers, 16), 3);
    assert_int_equal(numbers[0], 10);
    assert_int_equal(numbers[1], 5);
    assert_int_equal(numbers[2], 2); /* the best */
    char path[RM_SESSION_PATH_MAX];
    rm_session_checkpoint_folder(run, 11, true, path, NULL);
    assert_int_equal(access(path, F_OK), -1);
    prune(1, false, NULL);
    assert_int_equal(rm_checkpoint_list(run, numbers, 16), 1);
    assert_int_equal(numbers[0], 10);
}

/* What another process removes of one is said, and it is not counted as one that is kept. */
static void one_that_lacks_a_file_counts_as_none(void **state)
{
    char path[RM_SESSION_PATH_MAX + 64];
    uint64_t numbers[16];
    struct rm_checkpoint_facts facts;
    struct rm_error error = {""};
    (void)state;
    make(1, 1);
    make(2, 1);
    make(3, 9);
    snprintf(path, sizeof path, "%s/shared-0.state", folder_of(3));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rm_checkpoint_check(folder_of(3), false, &facts, &error), -EBADMSG);
    assert_non_null(strstr(error.text, "a file of the checkpoint was removed"));
    assert_non_null(strstr(error.text, "shared-0.state"));
    error.text[0] = '\0';
    prune(1, true, &error);
    assert_non_null(strstr(error.text, "shared-0.state"));
    assert_int_equal(rm_checkpoint_list(run, numbers, 16), 2);
    assert_int_equal(numbers[1], 2);
}

/* One whose bytes were found to be others, as long as they were, displaces no older one. */
static void one_that_was_found_damaged_counts_as_none(void **state)
{
    const struct rm_checkpoints_kept kept = {
        .newest = 2, .best = true, .damaged_above = 2, .damaged_to = 4};
    uint64_t numbers[16];
    struct rm_error error = {""};
    (void)state;
    make(1, 5);
    make(2, 1);
    make(3, 9);
    make(4, 2);
    make(5, 2);
    rm_checkpoint_prune(run, &kept, &error);
    assert_string_equal(error.text, ""); /* that it is passed over was said */
    assert_int_equal(rm_checkpoint_list(run, numbers, 16), 5);
    make(6, 2);
    rm_checkpoint_prune(run, &kept, &error);
    assert_int_equal(rm_checkpoint_list(run, numbers, 16), 3);
    assert_int_equal(numbers[0], 6);
    assert_int_equal(numbers[1], 5);
    assert_int_equal(numbers[2], 1); /* the best that is whole */
}

/* Not through a link in its place, nor what is another user's. */
static void what_may_not_be_read_is_not_damaged(void **state)
{
    char path[RM_SESSION_PATH_MAX + 64], aside[sizeof path + 8];
    struct rm_checkpoint_facts facts;
    struct rm_error error = {""};
    (void)state;
    make(1, 1);
    snprintf(path, sizeof path, "%s/manifest.json", folder_of(1));
    snprintf(aside, sizeof aside, "%s.moved", path);
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(symlink(aside, path), 0);
    assert_int_equal(rm_checkpoint_check(folder_of(1), true, &facts, &error), -EACCES);
    assert_non_null(strstr(error.text, "cannot be read: "));
    assert_non_null(strstr(error.text, "is a symbolic link"));
    assert_int_equal(rename(aside, path), 0);
    if (geteuid() != 0)
        return;
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_int_equal(rm_checkpoint_check(folder_of(1), true, &facts, &error), -EACCES);
    assert_non_null(strstr(error.text, "belongs to user 65534"));
}

/* An evaluation that comes after a checkpoint says more about it than the one before. */
static void a_later_score_counts(void **state)
{
    struct rm_checkpoint_facts before, after;
    struct rm_error error = {""};
    uint64_t numbers[16];
    (void)state;
    make(1, 5);
    make(2, 4);
    make(3, 1);
    make(4, NAN);
    assert_int_equal(rm_checkpoint_check(folder_of(2), true, &before, &error), 0);
    assert_int_equal(rm_manifest_rescore(folder_of(2), 7.25, &error), 0);
    assert_int_equal(rm_checkpoint_check(folder_of(2), true, &after, &error), 0);
    assert_true(after.score == 7.25);
    assert_int_equal(after.step, before.step);
    assert_int_equal(after.updates, before.updates);
    assert_int_equal(after.number, 2);
    assert_true(json_equal(after.config, before.config));
    rm_checkpoint_facts_free(&before);
    rm_checkpoint_facts_free(&after);
    prune(1, true, NULL);
    assert_int_equal(rm_checkpoint_list(run, numbers, 16), 2);
    assert_int_equal(numbers[0], 4);
    assert_int_equal(numbers[1], 2);
    assert_int_equal(rm_manifest_rescore(folder_of(2), NAN, &error), 0);
    assert_int_equal(rm_checkpoint_check(folder_of(2), true, &after, &error), 0);
    assert_true(isnan(after.score));
    rm_checkpoint_facts_free(&after);
    /* One that is damaged is not made to look whole. */
    char path[RM_SESSION_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/manifest.json", folder_of(2));
    assert_int_equal(truncate(path, 40), 0);
    assert_int_equal(rm_manifest_rescore(folder_of(2), 1, &error), -EBADMSG);
    assert_int_equal(rm_manifest_rescore(folder_of(9), 1, &error), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_sealed_is_whole, make_run, remove_run),
        cmocka_unit_test_setup_teardown(what_a_world_adds_ends_with_words, make_run, remove_run),
        cmocka_unit_test_setup_teardown(what_is_too_deep_stays, make_run, remove_run),
        cmocka_unit_test_setup_teardown(what_is_damaged_is_refused, make_run, remove_run),
        cmocka_unit_test_setup_teardown(what_is_claimed_is_checked, make_run, remove_run),
        cmocka_unit_test_setup_teardown(old_ones_go, make_run, remove_run),
        cmocka_unit_test_setup_teardown(one_that_lacks_a_file_counts_as_none, make_run, remove_run),
        cmocka_unit_test_setup_teardown(one_that_was_found_damaged_counts_as_none, make_run,
                                        remove_run),
        cmocka_unit_test_setup_teardown(what_may_not_be_read_is_not_damaged, make_run, remove_run),
        cmocka_unit_test_setup_teardown(a_later_score_counts, make_run, remove_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
