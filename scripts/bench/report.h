/* report: how a benchmark reports. Each figure is the median of several runs, with its spread, its
 * ceiling measured in the same run (fraction = value / ceiling) and what it is compared with
 * (ratio = value / baseline). Printed as a row of a table, and appended as one JSON object a line
 * to the file named by RM_BENCH_OUT, which scripts/bench/run collects into build/bench.json. */
#ifndef RM_SCRIPTS_BENCH_REPORT_H
#define RM_SCRIPTS_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>

struct rm_bench_result {
    const char *name;     /* "ring.bandwidth" */
    const char *unit;     /* "GB/s" */
    const double *values; /* one per run; sorted in place of a copy by the reporter */
    size_t runs;          /* at least 5 */
    double ceiling;       /* same unit; 0 = none */
    double baseline;      /* same unit; 0 = none */
    const char *note;     /* NULL or a few words */
};

void rm_bench_report(const struct rm_bench_result *result);
double rm_bench_median(const double *values, size_t n);

/* Is `name` asked for? From the command line: no names = all; a name or a prefix ending in '*'. */
bool rm_bench_wanted(int argc, char **argv, const char *name);

/* Ceilings, measured now on this core: FMA peak in GFLOP/s (float32, best instruction set found)
 * and memcpy bandwidth in GB/s for blocks of `bytes`. */
double rm_bench_fma_gflops(void);
double rm_bench_fma_gflops_of(const char *isa); /* held to "x86-64-v2", -v3 or -v4; "bf16": with
                                                   products of bf16, where the core has them */
double rm_bench_fma_once(const char *isa); /* some 0.1 ms of it, for taking turns with another */
double rm_bench_memcpy_gbs(size_t bytes);

/* Pins the calling thread to core `cpu`. */
void rm_bench_pin(int cpu);

#endif
