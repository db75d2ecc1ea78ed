/* The comparison of tokens: what is equal, and that its work does not depend on what differs. */
#include "daemon/web/guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LENGTH 64
#define TOKEN  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
_Static_assert(sizeof TOKEN == LENGTH + 1, "a token");

static void equal_texts_are_equal(void **state)
{
    char same[LENGTH + 1] = TOKEN;
    (void)state;
    assert_true(rm_web_guard_equal(TOKEN, same));
    assert_true(rm_web_guard_equal("a", "a"));
    assert_true(rm_web_guard_equal("\xff", "\xff"));
    assert_true(rm_web_guard_equal("", ""));
}

static void each_bit_of_each_byte_counts(void **state)
{
    char other[LENGTH + 1] = TOKEN;
    (void)state;
    for (size_t i = 0; i < LENGTH; i++)
        for (int bit = 0; bit < 8; bit++) {
            other[i] = (char)(other[i] ^ 1 << bit);
            assert_false(rm_web_guard_equal(TOKEN, other));
            assert_false(rm_web_guard_equal(other, TOKEN));
            other[i] = TOKEN[i];
        }
}

static void other_lengths_differ(void **state)
{
    char other[LENGTH + 2] = TOKEN;
    (void)state;
    assert_false(rm_web_guard_equal(TOKEN, TOKEN "0"));
    assert_false(rm_web_guard_equal(TOKEN "0", TOKEN));
    for (size_t length = LENGTH; length-- > 0;) {
        other[length] = '\0';
        assert_false(rm_web_guard_equal(TOKEN, other));
        assert_false(rm_web_guard_equal(other, TOKEN));
    }
}

typedef bool equal_fn(const char *one, const char *other);

static bool equal_at_once(const char *one, const char *other)
{
    while (*one && *one == *other)
        one++, other++;
    return *one == *other;
}

/* Instructions that a process takes which compares TOKEN with this text; 0: it cannot be traced. */
static long instructions(equal_fn *equal, const char *other)
{
    long count = 0;
    int status;
    const pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(2);
        raise(SIGSTOP);
        _exit(equal(TOKEN, other) ? 1 : 0);
    }
    waitpid(child, &status, 0);
    while (WIFSTOPPED(status)) {
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) < 0)
            kill(child, SIGKILL);
        waitpid(child, &status, 0);
        count++;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) < 2 ? count : 0;
}

/* Counts instructions: times would say less, and not always the same. */
static void the_work_does_not_depend_on_the_difference(void **state)
{
    static const size_t places[] = {0, 1, LENGTH / 2, LENGTH - 1};
    char other[LENGTH + 1] = TOKEN;
    (void)state;
#if defined(__SANITIZE_THREAD__)
    print_message("the thread sanitizer adds instructions that depend on earlier accesses\n");
    skip();
#endif
    const long same = instructions(rm_web_guard_equal, other);
    const long control = instructions(equal_at_once, other);
    if (same == 0) {
        print_message("processes cannot be traced here\n");
        skip();
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        other[places[i]] = '~';
        assert_int_equal(instructions(rm_web_guard_equal, other), same);
        assert_true(instructions(equal_at_once, other) < control);
        other[places[i]] = TOKEN[places[i]];
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_texts_are_equal),
        cmocka_unit_test(each_bit_of_each_byte_counts),
        cmocka_unit_test(other_lengths_differ),
        cmocka_unit_test(the_work_does_not_depend_on_the_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
