/* shm/base/error: replacing a message, putting context before it, cutting what is too long. */
#include "tests/support/unit.h"

#include "shm/base/error.h"

#include <errno.h>
#include <string.h>

static void replaces_and_returns_code(void **state)
{
    (void)state;
    struct rm_error e = {.text = "old"};
    assert_int_equal(rm_fail(&e, -ENOENT, "no %s in %d", "row", 7), -ENOENT);
    assert_string_equal(e.text, "no row in 7");
    assert_int_equal(rm_fail(NULL, -EINVAL, "nobody listens"), -EINVAL);
    assert_int_equal(rm_fail_within(NULL, -EINVAL, "nobody listens"), -EINVAL);
}

static void message_may_hold_itself(void **state)
{
    (void)state;
    struct rm_error e = {.text = "inner"};
    rm_fail(&e, -EIO, "outer (%s)", e.text);
    assert_string_equal(e.text, "outer (inner)");
}

static void context_goes_before(void **state)
{
    (void)state;
    struct rm_error e = {{0}};
    rm_fail(&e, -EIO, "short read");
    assert_int_equal(rm_fail_within(&e, -EIO, "file %s", "a.json"), -EIO);
    rm_fail_within(&e, -EIO, "loading");
    assert_string_equal(e.text, "loading: file a.json: short read");
}

static void too_long_is_cut_at_the_end(void **state)
{
    (void)state;
    static char text[3 * RM_ERROR_TEXT];
    memset(text, 'x', sizeof text - 1);
    struct rm_error e;
    rm_fail(&e, -EIO, "%s", text);
    assert_int_equal(strlen(e.text), RM_ERROR_TEXT - 1);
    rm_fail_within(&e, -EIO, "context");
    assert_int_equal(strlen(e.text), RM_ERROR_TEXT - 1);
    assert_memory_equal(e.text, "context: xxx", 12);
    rm_fail_within(&e, -EIO, "%s", text); /* context alone fills it */
    assert_int_equal(strlen(e.text), RM_ERROR_TEXT - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaces_and_returns_code),
        cmocka_unit_test(message_may_hold_itself),
        cmocka_unit_test(context_goes_before),
        cmocka_unit_test(too_long_is_cut_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
