/* How long waking another process takes.
 *
 * wake.round_trip       two processes on two cores wake each other in turn, each asleep until it is
 *     woken; the median time of a round trip. Baseline: the same with bare eventfds, blocking read
 *     and write.
 * wake.round_trip.p99   the same, 99th percentile of each. */
#include "scripts/bench/pair.h"

#include "shm/wake.h"

#include <string.h>
#include <sys/eventfd.h>

enum { RUNS = 7, TRIPS = 4000, WARM = 200 };

struct bench {
    struct rm_pair_gate gate;
    struct rm_wake_word words[2];
    struct rm_wake wakes[2];
    int bare[2];
    _Alignas(128) _Atomic uint64_t ball; /* ball % 2: whose turn */
    double trip_us[TRIPS];
};

static struct bench *b;

static void await(int who)
{
    while (RM_SEE(&b->ball) % 2 != (uint64_t)who) {
        rm_wake_prepare(&b->wakes[who]);
        if (RM_SEE(&b->ball) % 2 == (uint64_t)who)
            rm_wake_cancel(&b->wakes[who]);
        else
            rm_wake_wait(&b->wakes[who], 0);
    }
}

static void pass(int who)
{
    RM_RAISE(&b->ball, RM_PEEK(&b->ball) + 1);
    rm_wake_signal(&b->wakes[1 - who]);
}

static int wake_first(void *arg)
{
    (void)arg;
    rm_pair_wait(&b->gate);
    for (int i = -WARM; i < TRIPS; i++) {
        uint64_t start = rm_now_ns();
        pass(0);
        await(0);
        if (i >= 0)
            b->trip_us[i] = (double)(rm_now_ns() - start) * 1e-3;
    }
    return 0;
}

static int wake_second(void *arg)
{
    (void)arg;
    rm_pair_wait(&b->gate);
    for (int i = -WARM; i < TRIPS; i++) {
        await(1);
        pass(1);
    }
    return 0;
}

static void bare_read(int fd)
{
    uint64_t count;
    if (read(fd, &count, sizeof count) != sizeof count)
        _exit(1);
}

static void bare_write(int fd)
{
    const uint64_t one = 1;
    if (write(fd, &one, sizeof one) != sizeof one)
        _exit(1);
}

static int bare_first(void *arg)
{
    (void)arg;
    rm_pair_wait(&b->gate);
    for (int i = -WARM; i < TRIPS; i++) {
        uint64_t start = rm_now_ns();
        bare_write(b->bare[1]);
        bare_read(b->bare[0]);
        if (i >= 0)
            b->trip_us[i] = (double)(rm_now_ns() - start) * 1e-3;
    }
    return 0;
}

static int bare_second(void *arg)
{
    (void)arg;
    rm_pair_wait(&b->gate);
    for (int i = -WARM; i < TRIPS; i++) {
        bare_read(b->bare[1]);
        bare_write(b->bare[0]);
    }
    return 0;
}

static int ascending(const void *x, const void *y)
{
    double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

static void measure(int (*const members[])(void *), double *p50, double *p99)
{
    rm_pair_run(&b->gate, 2, members, NULL);
    qsort(b->trip_us, TRIPS, sizeof b->trip_us[0], ascending);
    *p50 = b->trip_us[TRIPS / 2];
    *p99 = b->trip_us[TRIPS * 99 / 100];
}

int main(int argc, char **argv)
{
    static int (*const by_wake[])(void *) = {wake_first, wake_second};
    static int (*const bare[])(void *) = {bare_first, bare_second};
    double wake50[RUNS], wake99[RUNS], bare50[RUNS], bare99[RUNS];
    bool median = rm_bench_wanted(argc, argv, "wake.round_trip");
    bool tail = median || rm_bench_wanted(argc, argv, "wake.round_trip.p99");
    if (!tail)
        return 0;

    b = rm_pair_memory(sizeof *b);
    for (int i = 0; i < 2; i++) {
        struct rm_error error;
        b->wakes[i] = (struct rm_wake){&b->words[i], rm_wake_create_fd(&error)};
        b->bare[i] = eventfd(0, EFD_CLOEXEC);
        if (b->wakes[i].fd < 0 || b->bare[i] < 0) {
            perror("eventfd");
            return 1;
        }
    }
    for (int i = 0; i < RUNS; i++) {
        measure(by_wake, &wake50[i], &wake99[i]);
        measure(bare, &bare50[i], &bare99[i]);
    }
    if (median)
        rm_bench_report(&(struct rm_bench_result){.name = "wake.round_trip",
                                                  .unit = "us",
                                                  .values = wake50,
                                                  .runs = RUNS,
                                                  .baseline = rm_bench_median(bare50, RUNS),
                                                  .note = "x bare eventfds"});
    rm_bench_report(&(struct rm_bench_result){.name = "wake.round_trip.p99",
                                              .unit = "us",
                                              .values = wake99,
                                              .runs = RUNS,
                                              .baseline = rm_bench_median(bare99, RUNS),
                                              .note = "x bare eventfds"});
    return 0;
}
