/* learner/backend/pool: every tile once, whatever the numbers; many short jobs, with pauses long
 * enough for helpers to fall asleep. */
#include "learner/backend/pool.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define TILES_MAX 1000

struct work {
    _Atomic uint32_t runs[TILES_MAX];
};

static void count(void *work, uint32_t tile)
{
    ((struct work *)work)->runs[tile]++;
}

static void run_checked(struct rm_pool *pool, uint32_t tiles)
{
    static struct work w[2]; /* two in turn: a straggler of the last job would show */
    static unsigned turn;
    struct work *now = &w[turn++ & 1];
    memset(now, 0, sizeof *now);
    rm_pool_run(pool, count, now, tiles);
    for (uint32_t i = 0; i < TILES_MAX; i++)
        assert_int_equal(now->runs[i], i < tiles);
}

static void every_tile_once(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        struct rm_pool *pool;
        struct rm_error error;
        assert_int_equal(rm_pool_create(&pool, threads, &error), 0);
        assert_int_equal(rm_pool_threads(pool), threads);
        for (uint32_t i = 0; i < 2000; i++)
            run_checked(pool, i * 7 % (i % 50 == 0 ? TILES_MAX : 20));
        for (uint32_t i = 0; i < 10; i++) {
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
            run_checked(pool, 16);
        }
        rm_pool_destroy(pool);
    }
}

static void idle_pool_goes_away(void **state)
{
    (void)state;
    struct rm_pool *pool;
    struct rm_error error;
    assert_int_equal(rm_pool_create(&pool, 3, &error), 0);
    rm_pool_destroy(pool); /* never ran */
    rm_pool_destroy(NULL);
    assert_int_equal(rm_pool_create(&pool, 0, &error), -EINVAL);
    assert_int_equal(rm_pool_create(&pool, 5000, &error), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_once),
        cmocka_unit_test(idle_pool_goes_away),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
