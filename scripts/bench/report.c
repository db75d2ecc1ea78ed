#include "scripts/bench/report.h"

#include "shm/base/clock.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

/* Twelve independent chains hide the latency of two multiply-adds a cycle on every processor that
 * has them. The factor keeps the numbers finite; the sum is stored so that nothing is dropped. */
#define CHAINS 12
#define TURNS  20000
#define TRIES  20

static volatile float keep;

#if defined(__x86_64__)

#define FMA_KERNEL(name, target_, vector, lanes, set1, fma)                                        \
    __attribute__((target(target_), noinline)) static double name(void)                            \
    {                                                                                              \
        vector sum[CHAINS], x = set1(0.999f), y = set1(0.001f);                                    \
        for (int c = 0; c < CHAINS; c++)                                                           \
            sum[c] = set1((float)c);                                                               \
        for (int i = 0; i < TURNS; i++) {                                                          \
            _Pragma("GCC unroll 12") for (int c = 0; c < CHAINS; c++) sum[c] = fma(sum[c], x, y);  \
        }                                                                                          \
        for (int c = 1; c < CHAINS; c++)                                                           \
            sum[0] = fma(sum[c], x, sum[0]);                                                       \
        union {                                                                                    \
            vector v;                                                                              \
            float f[lanes];                                                                        \
        } out = {.v = sum[0]};                                                                     \
        keep = out.f[0];                                                                           \
        return 2.0 * (lanes)*CHAINS * TURNS;                                                       \
    }

#define SSE_MULTIPLY_ADD(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
FMA_KERNEL(fma_v2, "sse4.2", __m128, 4, _mm_set1_ps, SSE_MULTIPLY_ADD)
FMA_KERNEL(fma_v3, "avx2,fma", __m256, 8, _mm256_set1_ps, _mm256_fmadd_ps)
FMA_KERNEL(fma_v4, "avx512f", __m512, 16, _mm512_set1_ps, _mm512_fmadd_ps)

/* Two products of bf16 a lane and sum: 0.99 and 0.001, nearly. */
#define BF16_MULTIPLY_ADD(a, b, c)                                                                 \
    _mm512_dpbf16_ps(a, (__m512bh)_mm512_castps_si512(b), (__m512bh)_mm512_castps_si512(c))
FMA_KERNEL(fma_bf16, "avx512f,avx512bf16", __m512, 16, _mm512_set1_ps, BF16_MULTIPLY_ADD)

static double fma_flops(const char *isa)
{
    bool any = !isa || strcmp(isa, "auto") == 0;
    if (!any && strcmp(isa, "bf16") == 0 && __builtin_cpu_supports("avx512bf16"))
        return 2.0 * fma_bf16(); /* twice as many products as floats */
    if (__builtin_cpu_supports("avx512f") && (any || strcmp(isa, "x86-64-v4") == 0))
        return fma_v4();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        (any || strcmp(isa, "x86-64-v2") != 0))
        return fma_v3();
    return fma_v2();
}

#else

static double fma_flops(const char *isa)
{
    float sum[64];
    (void)isa;
    for (int c = 0; c < 64; c++)
        sum[c] = (float)c;
    for (int i = 0; i < TURNS; i++)
        for (int c = 0; c < 64; c++)
            sum[c] = sum[c] * 0.999f + 0.001f;
    keep = sum[0];
    return 2.0 * 64 * TURNS;
}

#endif

double rm_bench_fma_once(const char *isa)
{
    struct timespec start, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    double operations = fma_flops(isa);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return operations /
           ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec));
}

double rm_bench_fma_gflops(void)
{
    return rm_bench_fma_gflops_of(NULL);
}

double rm_bench_fma_gflops_of(const char *isa)
{
    /* The best of several: a ceiling is what the core can do when nobody disturbs it. */
    double best = 0;
    for (int i = 0; i < TRIES; i++) {
        double gflops = rm_bench_fma_once(isa);
        if (gflops > best)
            best = gflops;
    }
    return best;
}

double rm_bench_memcpy_gbs(size_t bytes)
{
    if (bytes == 0)
        return 0;
    char *from = malloc(bytes), *to = malloc(bytes);
    double best = 0;
    if (from && to) {
        memset(from, 1, bytes);
        memset(to, 2, bytes);
        size_t turns = (size_t)(16u << 20) / bytes + 1;
        for (int i = 0; i < TRIES; i++) {
            uint64_t start = rm_now_ns();
            for (size_t t = 0; t < turns; t++) {
                memcpy(to, from, bytes);
                __asm__ volatile("" : : "r"(to) : "memory");
            }
            double gbs = (double)bytes * (double)turns / (double)(rm_now_ns() - start);
            if (gbs > best)
                best = gbs;
        }
    }
    free(from);
    free(to);
    return best;
}

void rm_bench_pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        perror("cannot pin");
}
