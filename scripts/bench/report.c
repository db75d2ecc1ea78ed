#include "scripts/bench/report.h"

#include "learner/backend/ceiling.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double *sorted(const double *values, size_t n)
{
    double *copy = malloc((n ? n : 1) * sizeof *copy);
    if (!copy)
        return NULL;
    memcpy(copy, values, n * sizeof *copy);
    qsort(copy, n, sizeof *copy, ascending);
    return copy;
}

double rm_bench_median(const double *values, size_t n)
{
    double *copy = n ? sorted(values, n) : NULL;
    if (!copy)
        return 0;
    double median = n % 2 ? copy[n / 2] : (copy[n / 2 - 1] + copy[n / 2]) / 2;
    free(copy);
    return median;
}

/* Strings of a result are ours, but quotes in a note must not spoil the line. */
static void put_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        if ((unsigned char)*text >= 0x20)
            fputc(*text, out);
    }
    fputc('"', out);
}

static void put_number(FILE *out, const char *key, double value, double of)
{
    if (of > 0)
        fprintf(out, ",\"%s\":%.6g", key, value);
    else
        fprintf(out, ",\"%s\":null", key);
}

static void put_json(FILE *out, const struct rm_bench_result *r, double median, double min,
                     double max)
{
    fputs("{\"name\":", out);
    put_string(out, r->name);
    fprintf(out, ",\"value\":%.6g,\"unit\":", median);
    put_string(out, r->unit);
    put_number(out, "ceiling", r->ceiling, r->ceiling);
    put_number(out, "fraction", r->ceiling > 0 ? median / r->ceiling : 0, r->ceiling);
    put_number(out, "baseline", r->baseline, r->baseline);
    put_number(out, "ratio", r->baseline > 0 ? median / r->baseline : 0, r->baseline);
    fprintf(out, ",\"runs\":%zu,\"min\":%.6g,\"max\":%.6g", r->runs, min, max);
    if (r->note) {
        fputs(",\"note\":", out);
        put_string(out, r->note);
    }
    fputs("}\n", out);
}

void rm_bench_report(const struct rm_bench_result *r)
{
    double *values = sorted(r->values, r->runs);
    double min = values && r->runs ? values[0] : 0;
    double max = values && r->runs ? values[r->runs - 1] : 0;
    double median = rm_bench_median(r->values, r->runs);
    free(values);

    printf("%-34s %12.5g %-12s [%.4g .. %.4g]", r->name, median, r->unit, min, max);
    if (r->ceiling > 0)
        printf("  %5.1f %% of %.4g", 100 * median / r->ceiling, r->ceiling);
    if (r->baseline > 0)
        printf("  %.3g x %.4g", median / r->baseline, r->baseline);
    if (r->note)
        printf("  (%s)", r->note);
    putchar('\n');
    fflush(stdout);

    const char *path = getenv("RM_BENCH_OUT");
    if (!path || !*path)
        return;
    FILE *out = fopen(path, "ae");
    if (!out) {
        perror(path);
        return;
    }
    put_json(out, r, median, min, max);
    if (fclose(out) != 0)
        perror(path);
}

bool rm_bench_wanted(int argc, char **argv, const char *name)
{
    if (argc < 2)
        return true;
    for (int i = 1; i < argc; i++) {
        size_t n = strlen(argv[i]);
        if (n > 0 && argv[i][n - 1] == '*' ? strncmp(argv[i], name, n - 1) == 0
                                           : strcmp(argv[i], name) == 0)
            return true;
    }
    return false;
}

/* --- ceilings -------------------------------------------------------------------------------- */

#define TRIES 20

double rm_bench_fma_once(const char *isa)
{
    return rm_ceiling_flops(isa, 1) / 1e9;
}

double rm_bench_fma_gflops(void)
{
    return rm_bench_fma_gflops_of(NULL);
}

double rm_bench_fma_gflops_of(const char *isa)
{
    return rm_ceiling_flops(isa, TRIES) / 1e9;
}

double rm_bench_memcpy_gbs(size_t bytes)
{
    return rm_ceiling_copy(bytes, TRIES) / 1e9;
}

void rm_bench_pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        perror("cannot pin");
}
