/* States: what goes out comes back in, by name, and what does not fit is refused in words. */
#include "shm/base/state.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct thing {
    uint64_t count;
    double ages[3];
    float weights[2];
};

static void thing_state(struct thing *t, struct rm_state *s)
{
    rm_state_enter(s, "thing");
    RM_STATE(s, "count", t->count);
    rm_state_bytes(s, "ages", t->ages, sizeof t->ages);
    rm_state_floats(s, "weights", t->weights, 2);
    rm_state_leave(s);
}

static const struct thing some = {7, {1, 2, 3}, {0.5f, -0.5f}};

static struct rm_state *saved(void)
{
    struct rm_error error = {""};
    struct thing t = some;
    struct rm_state *s;
    assert_int_equal(rm_state_create(&s, &error), 0);
    thing_state(&t, s);
    assert_int_equal(rm_state_end(s, &error), 0);
    return s;
}

static void comes_back(void **unused)
{
    struct rm_error error = {""};
    struct rm_state *s = saved();
    struct thing t = {0};
    (void)unused;
    assert_int_equal(rm_state_count(s), 3);
    assert_string_equal(rm_state_at(s, 1)->name, "thing.ages");
    for (int twice = 0; twice < 2; twice++) {
        memset(&t, 0, sizeof t);
        rm_state_load(s);
        thing_state(&t, s);
        assert_int_equal(rm_state_end(s, &error), 0);
        assert_memory_equal(&t, &some, sizeof t);
    }
    rm_state_destroy(s);
}

static void refused(struct rm_state *s, struct thing *t, int code, const char *words)
{
    struct rm_error error = {""};
    rm_state_load(s);
    thing_state(t, s);
    assert_int_equal(rm_state_end(s, &error), code);
    if (!strstr(error.text, words))
        fail_msg("\"%s\" does not say \"%s\"", error.text, words);
    rm_state_destroy(s);
}

static void says_what_does_not_fit(void **unused)
{
    struct rm_error error = {""};
    struct thing t = {0};
    struct rm_state *s;
    const uint64_t count = 1;
    (void)unused;

    assert_int_equal(rm_state_create(&s, &error), 0);
    refused(s, &t, -EPROTO, "thing.count: is missing");

    assert_int_equal(rm_state_create(&s, &error), 0);
    assert_int_equal(rm_state_add(s, "thing.count", RM_STATE_BYTES, &count, 4, &error), 0);
    refused(s, &t, -EPROTO, "thing.count: has 4 bytes; this run needs 8");
    assert_int_equal(t.count, 0);

    s = saved();
    assert_int_equal(rm_state_add(s, "other", RM_STATE_BYTES, &count, 8, &error), 0);
    assert_int_equal(rm_state_add(s, "other", RM_STATE_BYTES, &count, 8, &error), -EEXIST);
    refused(s, &t, -EPROTO, "other: no object of this run has this part");
}

static void one_name_for_one_part(void **unused)
{
    struct rm_error error = {""};
    struct rm_state *s;
    int a = 1;
    (void)unused;
    assert_int_equal(rm_state_create(&s, &error), 0);
    RM_STATE(s, "a", a);
    RM_STATE(s, "a", a);
    assert_int_equal(rm_state_end(s, &error), -EEXIST);
    rm_state_destroy(s);
}

/* Every byte of the file, flipped. */
static void files_are_checked(void **unused)
{
    char path[] = "/tmp/rm-state-XXXXXX";
    struct rm_error error = {""};
    struct rm_state *s = saved(), *back;
    struct thing t = {0};
    (void)unused;
    close(mkstemp(path));
    assert_int_equal(rm_state_write(s, path, RM_STATE_ALL, &error), 0);
    rm_state_destroy(s);
    assert_int_equal(rm_state_create(&back, &error), 0);
    assert_int_equal(rm_state_read(back, path, &error), 0);
    rm_state_load(back);
    thing_state(&t, back);
    assert_int_equal(rm_state_end(back, &error), 0);
    assert_memory_equal(&t, &some, sizeof t);
    rm_state_destroy(back);

    FILE *file = fopen(path, "r+b");
    fseek(file, 0, SEEK_END);
    const long bytes = ftell(file);
    for (long i = 0; i < bytes; i++) {
        fseek(file, i, SEEK_SET);
        const int byte = fgetc(file);
        fseek(file, i, SEEK_SET);
        fputc(byte ^ 0x10, file);
        fflush(file);
        assert_int_equal(rm_state_create(&back, &error), 0);
        assert_true(rm_state_read(back, path, &error) < 0);
        rm_state_destroy(back);
        fseek(file, i, SEEK_SET);
        fputc(byte, file);
        fflush(file);
    }
    fclose(file);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(says_what_does_not_fit),
        cmocka_unit_test(one_name_for_one_part),
        cmocka_unit_test(files_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
