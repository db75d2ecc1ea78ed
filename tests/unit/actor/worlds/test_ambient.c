/* What a world may leave changed is put back when its call is over. */
#include "actor/worlds/ambient.h"
#include "actor/worlds/watch.h"
#include "tests/support/batch.h"

#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* As numbered in data/rogue_world.c. */
enum { UMASK = 25, LEAVE, BLOCK, NUMBERS = 35, LOCALE, PAUSE };

static struct rm_world world;
static struct rm_env *env;
static const struct rm_watch watch = {.world = "rogue", .worlds = 1, .seed = 5};

/* A world that does this in its `at`-th step. */
static void make(int act, int at)
{
    struct rm_world_config config = {.description = NULL};
    struct rm_error error = {""};
    snprintf(config.options, sizeof config.options, "{\"act\": %d, \"at\": %d}", act, at);
    if (rm_world_open(&world, "rogue", rm_test_build_path("tests/worlds/rogue.so"), &error) < 0 ||
        rm_world_create(&world, &config, 5, 0, 1, &env, &error) < 0)
        fail_msg("%s", error.text);
}

static int call(enum rm_watch_call which)
{
    static float obs, reward;
    static uint8_t flags;
    const int32_t action = 0, *actions = &action;
    const struct rm_env_buffers out = {
        .obs = &obs, .obs_stride = sizeof obs, .reward = &reward, .flags = &flags};
    rm_watch_enter(&watch, which);
    const int rc = which == RM_WATCH_STEP ? world.ops->step(env, 0, &actions, &out)
                                          : world.ops->reset(env, &out);
    rm_watch_leave();
    return rc;
}

static void unmake(void)
{
    world.ops->close(env);
    rm_world_close(&world);
}

static void numbers_are_computed_as_before(void **state)
{
    volatile double one = 1, three = 3, tiny = 1e-310;
    volatile long double wide = 1;
    char to[64], from[64];
    (void)state;
    make(NUMBERS, 1);
    const double third = one / three;
    assert_int_equal(call(RM_WATCH_RESET), 0);
    assert_int_equal(call(RM_WATCH_STEP), 0);
    assert_int_equal(fegetround(), FE_TONEAREST);
    assert_true(one / three == third && -one / three == -third);
    assert_true(tiny / 2 > 0);
    wide = wide + 1; /* no room in the registers: not a number */
    assert_true(wide == 2);
    memset(from, 7, sizeof from);
    memmove(to, from, sizeof to);
#ifdef __x86_64__
    uint64_t flags;
    __asm__ volatile("pushfq\n\tpopq %0" : "=r"(flags));
    assert_false(flags & (1u << 10));
#endif
    unmake();
}

static void numbers_are_written_as_before(void **state)
{
    (void)state;
    make(LOCALE, 1);
    assert_int_equal(call(RM_WATCH_RESET), 0);
    assert_int_equal(call(RM_WATCH_STEP), 0);
    assert_string_equal(setlocale(LC_ALL, NULL), "C");
    assert_true(uselocale((locale_t)0) == LC_GLOBAL_LOCALE);
    unmake();
}

/* Looked at with the step after a millisecond, and after every other call. */
static void what_takes_system_calls_is_put_back_soon(void **state)
{
    char before[256], after[256];
    sigset_t blocked;
    (void)state;
    const mode_t mask = umask(027);
    assert_non_null(getcwd(before, sizeof before));
    for (int act = UMASK; act <= BLOCK; act++) {
        make(act, 1);
        assert_int_equal(call(RM_WATCH_RESET), 0);
        assert_int_equal(call(RM_WATCH_STEP), 0);
        usleep(20000); /* the coarse clock's step is smaller on every kernel */
        assert_int_equal(call(RM_WATCH_STEP), 0);
        assert_int_equal(umask(027), 027);
        assert_non_null(getcwd(after, sizeof after));
        assert_string_equal(after, before);
        sigprocmask(SIG_SETMASK, NULL, &blocked);
        assert_false(sigismember(&blocked, SIGTERM));
        unmake();
    }
    umask(mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_computed_as_before),
        cmocka_unit_test(numbers_are_written_as_before),
        cmocka_unit_test(what_takes_system_calls_is_put_back_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
