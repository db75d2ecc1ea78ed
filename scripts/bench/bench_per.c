/* Prioritised replay on one core: draws from a sum tree of 2^20 leaves, and changes of leaves.
 *
 * per.draw     M draws/s, stratified, batches of 64. Baseline: a plain binary sum tree in an array,
 *              one descent after the other.
 * per.update   M changed leaves/s, in batches of 64 at random. Baseline: the same plain tree, sums
 *              changed by the difference on the way up.
 *
 * Both trees hold the same leaves and get the same numbers, in turn, in the same run. */
#include "learner/priority_tree.h"
#include "scripts/bench/report.h"
#include "shm/base/clock.h"
#include "shm/base/rng.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 9, LEAVES = 1 << 20, BATCH = 64, BATCHES = 4096 };

/* Node i has children 2i and 2i + 1; leaf l is node LEAVES + l. */
static double *plain;
static struct rm_priorities priorities;
static double *draws, *values;
static uint64_t *leaves;
static volatile uint64_t sink;

static void plain_set(uint64_t leaf, double value)
{
    uint64_t at = LEAVES + leaf;
    const double change = value - plain[at];
    for (; at > 0; at /= 2)
        plain[at] += change;
}

static uint64_t plain_find(double u)
{
    uint64_t at = 1;
    while (at < LEAVES) {
        at *= 2;
        if (u >= plain[at] && plain[at + 1] > 0)
            u -= plain[at++];
    }
    return at - LEAVES;
}

static void fail(const char *what)
{
    fprintf(stderr, "bench_per: %s\n", what);
    exit(1);
}

static void open_trees(void)
{
    struct rm_error error = {""};
    const struct rm_priorities_spec spec = {.slots = LEAVES / 8, .lanes = 8, .sources = 1};
    const size_t n = (size_t)BATCH * BATCHES;
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    if (rm_priorities_create(&priorities, &spec, &error))
        fail(error.text);
    plain = calloc(2 * (size_t)LEAVES, sizeof *plain);
    draws = malloc(n * sizeof *draws);
    values = malloc(n * sizeof *values);
    leaves = malloc(n * sizeof *leaves);
    if (!plain || !draws || !values || !leaves)
        fail("no memory");
    for (uint64_t l = 0; l < LEAVES; l++) {
        const double value = 0.05 + rm_rng_double(&rng);
        priorities.level[0][l] = value;
        plain[LEAVES + l] = value;
    }
    rm_priority_rebuild(&priorities);
    for (uint64_t i = LEAVES; i-- > 1;)
        plain[i] = plain[2 * i] + plain[2 * i + 1];
    for (size_t i = 0; i < n; i++) {
        draws[i] = ((double)(i % BATCH) + rm_rng_double(&rng)) / BATCH;
        values[i] = 0.05 + rm_rng_double(&rng);
        leaves[i] = rm_rng_below(&rng, LEAVES);
    }
}

static double million_per_second(uint64_t began)
{
    return (double)BATCH * BATCHES / 1e6 / ((double)(rm_now_ns() - began) / 1e9);
}

static double draw_run(bool ours)
{
    uint64_t found[BATCH], sum = 0;
    double at[BATCH];
    const uint64_t began = rm_now_ns();
    for (size_t b = 0; b < BATCHES; b++) {
        const double total = ours ? rm_priority_total(&priorities) : plain[1];
        for (size_t i = 0; i < BATCH; i++)
            at[i] = draws[b * BATCH + i] * total;
        if (ours)
            rm_priority_find(&priorities, at, BATCH, found);
        else
            for (size_t i = 0; i < BATCH; i++)
                found[i] = plain_find(at[i]);
        for (size_t i = 0; i < BATCH; i++)
            sum += found[i];
    }
    const double rate = million_per_second(began);
    sink = sum;
    return rate;
}

static double update_run(bool ours)
{
    const uint64_t began = rm_now_ns();
    for (size_t b = 0; b < BATCHES; b++) {
        const size_t first = b * BATCH;
        if (ours)
            rm_priority_set(&priorities, leaves + first, values + first, BATCH);
        else
            for (size_t i = first; i < first + BATCH; i++)
                plain_set(leaves[i], values[i]);
    }
    return million_per_second(began);
}

static void bench(int argc, char **argv, const char *name, const char *note, double (*run)(bool))
{
    double ours[RUNS], theirs[RUNS];
    if (!rm_bench_wanted(argc, argv, name))
        return;
    run(true);
    run(false);
    for (int r = 0; r < RUNS; r++) {
        ours[r] = run(true);
        theirs[r] = run(false);
    }
    rm_bench_report(&(struct rm_bench_result){
        .name = name,
        .unit = "M/s",
        .values = ours,
        .runs = RUNS,
        .baseline = rm_bench_median(theirs, RUNS),
        .note = note,
    });
}

int main(int argc, char **argv)
{
    if (!rm_bench_wanted(argc, argv, "per.draw") && !rm_bench_wanted(argc, argv, "per.update"))
        return 0;
    rm_bench_pin(0);
    open_trees();
    bench(argc, argv, "per.draw", "2^20 leaves, batches of 64, one core; against a plain tree",
          draw_run);
    bench(argc, argv, "per.update", "2^20 leaves, batches of 64, one core; against a plain tree",
          update_run);
    rm_priorities_close(&priorities);
    free(plain);
    free(draws);
    free(values);
    free(leaves);
    return 0;
}
