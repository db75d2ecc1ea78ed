/* How fast experience goes through a ring, from one process to another.
 *
 * ring.bandwidth, .16k, .64k   one process writes rows of 4, 16, 64 KiB as fast as it can, another
 *     copies rows out that it draws at random, and checks that they were not overwritten. The value
 *     is bytes written plus bytes read back a second. Ceiling: the same two processes on the same
 *     cores doing the same copies with memcpy in memory of the same size of their own, with nothing
 *     shared and nothing checked. Baseline: that memcpy by one process alone.
 * ring.rows   small rows (16 lanes of 16 bytes) a second, written while another process samples.
 *     Baseline: without the other process. */
#include "scripts/bench/pair.h"

#include "shm/base/rng.h"
#include "shm/ring.h"

#include <string.h>

enum { RUNS = 7 };
#define RUN_NS    (150 * RM_NS_PER_MS)
#define FOOTPRINT ((size_t)64 << 20) /* several times a cache */
#define DRAWS     4096u              /* indices drawn ahead, so that drawing is not measured */

struct bench {
    struct rm_pair_gate gate;
    struct rm_ring ring;
    char *own[2];                           /* FOOTPRINT each, for the ceiling */
    size_t bytes;                           /* of a row's observations */
    _Alignas(128) _Atomic uint64_t done[2]; /* bytes, or rows */
    _Alignas(128) _Atomic uint64_t spoiled;
    double seconds[2];
};

static struct bench *b;

static void draw(uint32_t *draws, uint32_t below)
{
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    for (unsigned i = 0; i < DRAWS; i++)
        draws[i] = rm_rng_below(&rng, below);
}

static void *block(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory)
        exit(1);
    memset(memory, 1, bytes);
    return memory;
}

static int finish(int who, uint64_t count, uint64_t start)
{
    RM_POKE(&b->done[who], count);
    b->seconds[who] = (double)(rm_now_ns() - start) * 1e-9;
    return 0;
}

static int ring_writer(void *arg)
{
    (void)arg;
    char *from = block(b->bytes);
    uint64_t bytes = 0, start = rm_pair_wait(&b->gate);
    while (rm_now_ns() - start < RUN_NS)
        for (int i = 0; i < 16; i++) {
            struct rm_row row;
            if (!rm_ring_reserve(&b->ring, &row))
                return 1;
            memcpy(row.obs, from, b->bytes);
            rm_ring_commit(&b->ring);
            bytes += b->bytes;
        }
    return finish(0, bytes, start);
}

static int ring_reader(void *arg)
{
    (void)arg;
    char *to = block(b->bytes);
    static uint32_t draws[DRAWS];
    /* Not the very oldest, as a learner's sampler keeps away from them too. */
    draw(draws, b->ring.spec.rows - 16);
    uint64_t bytes = 0, spoiled = 0, start = rm_pair_wait(&b->gate);
    for (unsigned at = 0; rm_now_ns() - start < RUN_NS;) {
        uint64_t first, behind;
        rm_ring_window(&b->ring, &first, &behind);
        for (int i = 0; i < 16; i++) {
            uint64_t index = behind - 1 - draws[at++ % DRAWS];
            rm_ring_copy_out(to, rm_ring_row(&b->ring, index).obs, b->bytes);
            if (rm_ring_intact(&b->ring, index))
                bytes += b->bytes;
            else
                spoiled++;
        }
    }
    RM_ADD(&b->spoiled, spoiled);
    return finish(1, bytes, start);
}

static int memcpy_writer(void *arg)
{
    (void)arg;
    char *from = block(b->bytes);
    const size_t rows = FOOTPRINT / b->bytes;
    uint64_t n = 0, start = rm_pair_wait(&b->gate);
    while (rm_now_ns() - start < RUN_NS)
        for (int i = 0; i < 16; i++) {
            memcpy(b->own[0] + (n++ % rows) * b->bytes, from, b->bytes);
            __asm__ volatile("" : : : "memory");
        }
    return finish(0, n * b->bytes, start);
}

static int memcpy_reader(void *arg)
{
    (void)arg;
    char *to = block(b->bytes);
    static uint32_t draws[DRAWS];
    draw(draws, (uint32_t)(FOOTPRINT / b->bytes));
    uint64_t n = 0, start = rm_pair_wait(&b->gate);
    while (rm_now_ns() - start < RUN_NS)
        for (int i = 0; i < 16; i++) {
            memcpy(to, b->own[1] + (size_t)draws[n++ % DRAWS] * b->bytes, b->bytes);
            __asm__ volatile("" : : "r"(to) : "memory");
        }
    return finish(1, n * b->bytes, start);
}

static double rate(unsigned members, int (*const member[])(void *))
{
    double sum = 0;
    rm_pair_run(&b->gate, members, member, NULL);
    for (unsigned i = 0; i < members; i++)
        sum += (double)RM_PEEK(&b->done[i]) / b->seconds[i];
    return sum;
}

static void make_ring(uint32_t rows, uint32_t lanes, uint32_t obs_bytes)
{
    struct rm_ring_spec spec = {
        .rows = rows, .lanes = lanes, .obs_bytes = obs_bytes, .action_words = 1};
    struct rm_error error;
    if (rm_ring_create(&b->ring, &spec, &error)) {
        fprintf(stderr, "bench_ring: %s\n", error.text);
        exit(1);
    }
    rm_ring_writer_open(&b->ring);
    for (uint32_t i = 0; i < 2 * rows; i++) {
        struct rm_row row;
        rm_ring_reserve(&b->ring, &row);
        memset(row.obs, 1, (size_t)lanes * obs_bytes);
        rm_ring_commit(&b->ring);
    }
}

static void bandwidth(const char *name, size_t bytes)
{
    static int (*const through_ring[])(void *) = {ring_writer, ring_reader};
    static int (*const copying[])(void *) = {memcpy_writer, memcpy_reader};
    double values[RUNS], ceilings[RUNS], alone[RUNS];
    b->bytes = bytes;
    make_ring((uint32_t)(FOOTPRINT / bytes), 1, (uint32_t)bytes);
    RM_POKE(&b->spoiled, 0);
    for (int i = 0; i < RUNS; i++) {
        values[i] = rate(2, through_ring) * 1e-9;
        ceilings[i] = rate(2, copying) * 1e-9;
        alone[i] = rate(1, copying) * 1e-9;
    }
    char note[96];
    snprintf(note, sizeof note, "write + read back; %llu copies spoiled; x one memcpy alone",
             (unsigned long long)RM_PEEK(&b->spoiled));
    rm_bench_report(&(struct rm_bench_result){.name = name,
                                              .unit = "GB/s",
                                              .values = values,
                                              .runs = RUNS,
                                              .ceiling = rm_bench_median(ceilings, RUNS),
                                              .baseline = rm_bench_median(alone, RUNS),
                                              .note = note});
    rm_ring_close(&b->ring);
}

/* --- small rows ------------------------------------------------------------------------------ */

static int small_writer(void *arg)
{
    (void)arg;
    uint64_t rows = 0, start = rm_pair_wait(&b->gate);
    while (rm_now_ns() - start < RUN_NS)
        for (int i = 0; i < 64; i++, rows++) {
            struct rm_row row;
            if (!rm_ring_reserve(&b->ring, &row))
                return 1;
            memset(row.obs, (int)rows, 16 * 16);
            for (int lane = 0; lane < 16; lane++) {
                row.reward[lane] = 1.0f;
                row.flags[lane] = 0;
                row.action[lane] = lane;
            }
            *row.policy_version = rows;
            rm_ring_commit(&b->ring);
        }
    return finish(0, rows, start);
}

static int small_reader(void *arg)
{
    (void)arg;
    static uint32_t draws[DRAWS];
    draw(draws, b->ring.spec.rows - 1024);
    char to[16 * 16];
    uint64_t rows = 0, start = rm_pair_wait(&b->gate);
    for (unsigned at = 0; rm_now_ns() - start < RUN_NS;) {
        /* A batch: one look at the window, one check of its oldest row. */
        uint64_t first, behind, oldest = 0;
        rm_ring_window(&b->ring, &first, &behind);
        for (int i = 0; i < 64; i++) {
            uint32_t age = 1 + draws[at++ % DRAWS];
            rm_ring_copy_out(to, rm_ring_row(&b->ring, behind - age).obs, sizeof to);
            oldest = age > oldest ? age : oldest;
        }
        rows += rm_ring_intact(&b->ring, behind - oldest) ? 64 : 0;
    }
    RM_POKE(&b->spoiled, rows);
    return finish(1, 0, start);
}

static void small_rows(const char *name)
{
    static int (*const both[])(void *) = {small_writer, small_reader};
    double values[RUNS], alone[RUNS], sampled[RUNS];
    make_ring(1u << 15, 16, 16);
    for (int i = 0; i < RUNS; i++) {
        values[i] = rate(2, both);
        sampled[i] = (double)RM_PEEK(&b->spoiled) / b->seconds[1];
        alone[i] = rate(1, both);
    }
    char note[64];
    snprintf(note, sizeof note, "%.3g rows/s sampled meanwhile; x nobody sampling",
             rm_bench_median(sampled, RUNS));
    rm_bench_report(&(struct rm_bench_result){.name = name,
                                              .unit = "rows/s",
                                              .values = values,
                                              .runs = RUNS,
                                              .baseline = rm_bench_median(alone, RUNS),
                                              .note = note});
    rm_ring_close(&b->ring);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        size_t bytes;
    } sizes[] = {{"ring.bandwidth", 4 << 10},
                 {"ring.bandwidth.16k", 16 << 10},
                 {"ring.bandwidth.64k", 64 << 10}};
    bool all = rm_bench_wanted(argc, argv, "ring.bandwidth");
    b = rm_pair_memory(sizeof *b);
    for (int i = 0; i < 2; i++) {
        b->own[i] = rm_pair_memory(FOOTPRINT);
        memset(b->own[i], 1, FOOTPRINT);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (all || rm_bench_wanted(argc, argv, sizes[i].name))
            bandwidth(sizes[i].name, sizes[i].bytes);
    if (rm_bench_wanted(argc, argv, "ring.rows"))
        small_rows("ring.rows");
    return 0;
}
