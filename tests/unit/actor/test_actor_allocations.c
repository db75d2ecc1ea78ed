/* Once created, actors and evaluators allocate nothing. Counts calls of the allocator between two
 * points of this thread by standing in for it. */
#include <stddef.h>
#include <stdio.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void)
{
    puts("skipped: a sanitizer stands in for the allocator");
    return 77;
}
#else

#include "actor/actor.h"
#include "actor/evaluator.h"
#include "shm/atomic.h"
#include "tests/support/acting.h"
#include "tests/support/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static _Thread_local volatile unsigned long allocations;

__attribute__((visibility("default"))) void *malloc(size_t size)
{
    allocations = allocations + 1;
    return __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
    allocations = allocations + 1;
    return __libc_calloc(n, size);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t size)
{
    allocations = allocations + 1;
    return __libc_realloc(p, size);
}

__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t size)
{
    allocations = allocations + 1;
    return __libc_memalign(alignment, size);
}

static void the_counter_counts(void **state)
{
    unsigned long before = allocations;
    (void)state;
    void *volatile p = malloc(10);
    free(p);
    assert_true(allocations > before);
}

static void turns_allocate_nothing(const char *json, uint32_t turns)
{
    static struct rm_session session;
    struct rm_actor *actor;
    struct rm_evaluator *evaluator;
    struct rm_duty act, evaluate;
    struct rm_error error = {""};

    assert_int_equal(rm_test_session(&session, json), 0);
    rm_test_publish_random(&session, 1, 0);
    assert_int_equal(rm_actor_create(&actor, &session, 0, &act, &error), 0);
    assert_int_equal(rm_evaluator_create(&evaluator, &session, &evaluate, &error), 0);
    for (uint32_t round = 0; round < 3; round++) {
        if (round)
            rm_test_publish_random(&session, 1 + round, round);
        unsigned long before = allocations;
        RM_RAISE(&session.board.run->evaluate_request, round + 1);
        for (uint32_t t = 0; t < turns; t++) {
            assert_true(act.do_work(act.self, &error) > 0);
            assert_true(evaluate.do_work(evaluate.self, &error) >= 0);
        }
        assert_int_equal(allocations - before, 0);
    }
    rm_actor_destroy(actor);
    rm_evaluator_destroy(evaluator);
    rm_session_close(&session);
}

static void with_small_networks(void **state)
{
    (void)state;
    turns_allocate_nothing("{\"name\": \"a\", \"seed\": 1, \"world\": {\"name\": \"cartpole\"},"
                           " \"actor\": {\"count\": 1, \"worlds\": 100},"
                           " \"limiter\": {\"updates_per_step\": 0},"
                           " \"epsilon\": {\"start\": 0.3, \"end\": 0.1},"
                           " \"evaluation\": {\"episodes\": 4, \"worlds\": 2},"
                           " \"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 64},"
                           "  {\"type\": \"tanh\"}]}}",
                           60);
}

static void with_quantiles_and_stacks(void **state)
{
    (void)state;
    turns_allocate_nothing(
        "{\"name\": \"b\", \"seed\": 1, \"world\": {\"name\": \"treasurehunt\"},"
        " \"actor\": {\"count\": 1, \"worlds\": 3, \"quantiles\": 8},"
        " \"sample\": {\"frame_stack\": 5},"
        " \"limiter\": {\"updates_per_step\": 0}, \"epsilon\": {\"start\": 0.3, \"end\": 0.1},"
        " \"evaluation\": {\"episodes\": 2, \"worlds\": 2, \"quantiles\": 8},"
        " \"algorithm\": {\"name\": \"iqn\"},"
        " \"network\": {\"head\": {\"dueling\": true, \"noisy\": true}, \"layers\": ["
        "  {\"type\": \"linear\", \"units\": 16}, {\"type\": \"relu\"},"
        "  {\"type\": \"cosine_embedding\", \"cosines\": 64},"
        "  {\"type\": \"noisy_linear\", \"units\": 16}, {\"type\": \"relu\"}]}}",
        30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_counter_counts),
        cmocka_unit_test(with_small_networks),
        cmocka_unit_test(with_quantiles_and_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
