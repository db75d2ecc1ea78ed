/* Sleep and wake between processes without any time-out: one lost wake-up hangs the test, which the
 * alarm then ends as failed. And the barrier of rounds, whose waiters sleep the same way. */
#include "tests/support/crew.h"
#include "tests/support/unit.h"

#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/round.h"
#include "shm/wake.h"

#include <stdio.h>
#include <unistd.h>

#define WORKERS 4

static struct rm_error error;

struct course {
    struct rm_wake_word words[WORKERS];
    struct rm_wake wakes[WORKERS];
    _Atomic uint64_t ball;    /* whose turn: ball % 2 */
    _Atomic uint64_t pending; /* work made by wakers */
    _Atomic uint32_t wakers_done;
    _Atomic uint64_t made, taken, sleeps;
    struct rm_round round;
    uint64_t work[2][WORKERS]; /* plain: the barrier itself must order them */
    uint64_t end_ns;
};

static struct course *begin(void)
{
    struct course *c = rm_crew_memory(sizeof *c);
    for (int i = 0; i < WORKERS; i++) {
        c->wakes[i] = (struct rm_wake){&c->words[i], rm_wake_create_fd(&error)};
        assert_true(c->wakes[i].fd >= 0);
    }
    c->end_ns = rm_now_ns() + (uint64_t)(rm_torture_seconds(1.0) * 1e9);
    return c;
}

static void end(struct course *c)
{
    for (int i = 0; i < WORKERS; i++)
        close(c->wakes[i].fd);
}

#define OVER UINT64_MAX

static int player(void *arg, uint32_t who)
{
    struct course *c = arg;
    for (;;) {
        uint64_t ball = RM_SEE(&c->ball);
        if (ball != OVER && ball % 2 != who) {
            rm_wake_prepare(&c->wakes[who]);
            ball = RM_SEE(&c->ball);
            if (ball == OVER || ball % 2 == who) {
                rm_wake_cancel(&c->wakes[who]);
            } else {
                RM_ADD(&c->sleeps, 1);
                rm_wake_wait(&c->wakes[who], 0);
                continue;
            }
        }
        if (ball == OVER)
            return 0;
        bool over = rm_now_ns() >= c->end_ns && ball > 100; /* on a busy host, later */
        RM_ADD(&c->made, 1);
        RM_RAISE(&c->ball, over ? OVER : ball + 1);
        rm_wake_signal(&c->wakes[1 - who]);
        if (over)
            return 0;
    }
}

static void ping_pong_loses_nothing(void **state)
{
    (void)state;
    struct course *c = begin();
    struct rm_crew crew = {0};
    rm_crew_start(&crew, player, c);
    rm_crew_start(&crew, player, c);
    assert_int_equal(rm_crew_join(&crew), 0);
    printf("  passes %llu, sleeps %llu\n", (unsigned long long)c->made,
           (unsigned long long)c->sleeps);
    assert_true(c->made > 100);
    end(c);
}

static int waker(void *arg, uint32_t who)
{
    struct course *c = arg;
    for (uint64_t n = 0; rm_now_ns() < c->end_ns; n++) {
        RM_ADD(&c->pending, 1);
        RM_ADD(&c->made, 1);
        rm_wake_signal(&c->wakes[0]);
        /* Let the sleeper fall asleep, at different points of its loop. */
        for (volatile uint64_t spin = 0; spin < (n * (who + 1) * 37) % 3000; spin++)
            ;
    }
    RM_TOTAL_ADD(&c->wakers_done, 1);
    rm_wake_signal(&c->wakes[0]);
    return 0;
}

static int sleeper(void *arg, uint32_t who)
{
    struct course *c = arg;
    (void)who;
    for (;;) {
        bool last = RM_SEE(&c->wakers_done) == WORKERS - 1;
        uint64_t work = RM_TOTAL_EXCHANGE(&c->pending, 0);
        if (work) {
            RM_ADD(&c->taken, work);
            continue;
        }
        if (last)
            return 0;
        rm_wake_prepare(&c->wakes[0]);
        if (RM_PEEK(&c->pending) || RM_SEE(&c->wakers_done) == WORKERS - 1) {
            rm_wake_cancel(&c->wakes[0]);
        } else {
            RM_ADD(&c->sleeps, 1);
            rm_wake_wait(&c->wakes[0], 0);
        }
    }
}

static void many_wakers_one_sleeper(void **state)
{
    (void)state;
    struct course *c = begin();
    struct rm_crew crew = {0};
    rm_crew_start(&crew, sleeper, c);
    for (int i = 1; i < WORKERS; i++)
        rm_crew_start(&crew, waker, c);
    assert_int_equal(rm_crew_join(&crew), 0);
    printf("  work %llu, sleeps %llu, system calls %u\n", (unsigned long long)c->made,
           (unsigned long long)c->sleeps, c->words[0].signals);
    assert_int_equal(c->taken, c->made);
    end(c);
}

static int participant(void *arg, uint32_t who)
{
    struct course *c = arg;
    for (uint64_t r = 1;; r++) {
        c->work[r & 1][who] = r;
        bool leaving = r > 10 && rm_now_ns() >= c->end_ns && who == (r % WORKERS);
        bool advanced = leaving ? rm_round_leave(&c->round, who) : rm_round_arrive(&c->round, who);
        if (advanced) {
            RM_ADD(&c->made, 1);
            for (int i = 0; i < WORKERS; i++)
                rm_wake_signal(&c->wakes[i]);
        }
        if (leaving)
            return 0;
        while (rm_round_current(&c->round) == r) {
            rm_wake_prepare(&c->wakes[who]);
            if (rm_round_current(&c->round) != r) {
                rm_wake_cancel(&c->wakes[who]);
            } else {
                RM_ADD(&c->sleeps, 1);
                rm_wake_wait(&c->wakes[who], 0);
            }
        }
        if (rm_round_current(&c->round) != r + 1)
            return 2; /* it cannot advance twice without us */
        for (int i = 0; i < WORKERS; i++)
            if (c->work[r & 1][i] != r &&
                RM_PEEK(&c->round.arrived[i]) != UINT64_MAX) /* has not left */
                return 3;
    }
}

static void rounds_hold_everybody_back(void **state)
{
    (void)state;
    struct course *c = begin();
    rm_round_init(&c->round, WORKERS);
    struct rm_crew crew = {0};
    for (int i = 0; i < WORKERS; i++)
        rm_crew_start(&crew, participant, c);
    assert_int_equal(rm_crew_join(&crew), 0);
    uint64_t rounds = rm_round_current(&c->round) - 1;
    printf("  rounds %llu, sleeps %llu\n", (unsigned long long)rounds,
           (unsigned long long)c->sleeps);
    assert_int_equal(c->made, rounds); /* one caller per round completed it */
    assert_true(rounds > 10);
    end(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ping_pong_loses_nothing),
        cmocka_unit_test(many_wakers_one_sleeper),
        cmocka_unit_test(rounds_hold_everybody_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
