/* What publishing weights costs the learner and the actors: 1.2 MB, one writer on a core of its
 * own, four readers sharing another, each of which copies every new version that it notices.
 *
 * weights.publish   microseconds a publication takes. Baseline: a memcpy of as many bytes between
 *     two private buffers by the same process while the readers go on.
 * weights.read      microseconds a copy out takes, by one reader with the core for itself at the
 *     time. Baseline: the same memcpy there. The note counts copies and how many had to be made
 *     again because the writer lapped them; a reader never waits for the writer. */
#include "scripts/bench/pair.h"

#include "shm/weights.h"

#include <string.h>

enum { RUNS = 7, READERS = 4, PUBLICATIONS = 200, SAMPLES = 1 << 14 };
#define COUNT    300000u /* floats: 1.2 MB */
#define PAUSE_US 500

struct bench {
    struct rm_pair_gate gate;
    struct rm_weights weights;
    _Alignas(128) _Atomic uint32_t over;
    _Alignas(128) _Atomic uint64_t reads;
    _Atomic uint64_t retries;
    double publish_us, memcpy_us, read_us, read_memcpy_us;
};

static struct bench *b;

static float *arena(void)
{
    float *memory = malloc(COUNT * sizeof *memory);
    if (!memory)
        _exit(1);
    memset(memory, 0, COUNT * sizeof *memory);
    return memory;
}

static double since_us(uint64_t start)
{
    return (double)(rm_now_ns() - start) * 1e-3;
}

static int writer(void *arg)
{
    (void)arg;
    float *params = arena(), *other = arena();
    static double publish[PUBLICATIONS], plain[PUBLICATIONS];
    rm_pair_wait(&b->gate);
    for (int i = 0; i < PUBLICATIONS; i++) {
        uint64_t start = rm_now_ns();
        rm_weights_publish(&b->weights, params, (struct rm_weights_stamp){.updates = (uint64_t)i});
        publish[i] = since_us(start);
        usleep(PAUSE_US);
        start = rm_now_ns();
        memcpy(other, params, COUNT * sizeof *params);
        __asm__ volatile("" : : "r"(other) : "memory");
        plain[i] = since_us(start);
        usleep(PAUSE_US);
    }
    b->publish_us = rm_bench_median(publish, PUBLICATIONS);
    b->memcpy_us = rm_bench_median(plain, PUBLICATIONS);
    RM_RAISE(&b->over, 1);
    return 0;
}

static int read_all(bool timed)
{
    float *params = arena(), *other = arena();
    static double copy[SAMPLES], plain[SAMPLES];
    size_t n = 0;
    uint64_t last = 0, reads = 0, retries = 0;
    rm_pair_wait(&b->gate);
    while (!RM_SEE(&b->over)) {
        if (rm_weights_latest(&b->weights).version == last) {
            usleep(100);
            continue;
        }
        struct rm_weights_stamp stamp;
        uint64_t start = rm_now_ns();
        if (!rm_weights_read(&b->weights, params, COUNT, &stamp, &retries))
            continue;
        double us = since_us(start);
        if (stamp.version < last)
            return 1;
        last = stamp.version;
        reads++;
        if (timed && n < SAMPLES) {
            copy[n] = us;
            start = rm_now_ns();
            memcpy(other, params, COUNT * sizeof *params);
            __asm__ volatile("" : : "r"(other) : "memory");
            plain[n++] = since_us(start);
        }
    }
    RM_ADD(&b->reads, reads);
    RM_ADD(&b->retries, retries);
    if (timed) {
        b->read_us = rm_bench_median(copy, n);
        b->read_memcpy_us = rm_bench_median(plain, n);
    }
    return 0;
}

static int timed_reader(void *arg)
{
    (void)arg;
    return read_all(true);
}

/* The others share the second core with the first. */
static int other_reader(void *arg)
{
    (void)arg;
    rm_bench_pin((int)(1 % sysconf(_SC_NPROCESSORS_ONLN)));
    return read_all(false);
}

int main(int argc, char **argv)
{
    static int (*const members[])(void *) = {writer, timed_reader, other_reader, other_reader,
                                             other_reader};
    static double publish[RUNS], plain[RUNS], copy[RUNS], read_plain[RUNS];
    bool both = rm_bench_wanted(argc, argv, "weights.publish");
    if (!both && !rm_bench_wanted(argc, argv, "weights.read"))
        return 0;
    b = rm_pair_memory(sizeof *b);
    struct rm_error error;
    if (rm_weights_create(&b->weights, 0, COUNT, COUNT, &error)) {
        fprintf(stderr, "bench_weights: %s\n", error.text);
        return 1;
    }
    for (int i = 0; i < RUNS; i++) {
        RM_POKE(&b->over, 0);
        rm_pair_run(&b->gate, 1 + READERS, members, NULL);
        publish[i] = b->publish_us;
        plain[i] = b->memcpy_us;
        copy[i] = b->read_us;
        read_plain[i] = b->read_memcpy_us;
    }
    char note[96];
    snprintf(note, sizeof note, "%llu copies out, %llu made again; x memcpy",
             (unsigned long long)RM_PEEK(&b->reads), (unsigned long long)RM_PEEK(&b->retries));
    if (both)
        rm_bench_report(&(struct rm_bench_result){.name = "weights.publish",
                                                  .unit = "us",
                                                  .values = publish,
                                                  .runs = RUNS,
                                                  .baseline = rm_bench_median(plain, RUNS),
                                                  .note = "1.2 MB, 4 readers; x memcpy"});
    rm_bench_report(&(struct rm_bench_result){.name = "weights.read",
                                              .unit = "us",
                                              .values = copy,
                                              .runs = RUNS,
                                              .baseline = rm_bench_median(read_plain, RUNS),
                                              .note = note});
    return 0;
}
