#include "learner/backend/ceiling.h"

#include "learner/backend/bf16_kernels.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Twelve independent chains hide the latency of two multiply-adds a cycle on every processor that
 * has them. The factor keeps the numbers finite; the sum is stored so that nothing is dropped. */
#define CHAINS 12
#define TURNS  20000

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

/* Products of bf16 with operands in the first-level cache. */
static double bf16_products(void)
{
    enum { ROWS = 32, PAIRS = 64 };
    _Alignas(64) uint32_t a[PAIRS * RM_BF16_PANEL] = {0}, b[ROWS * PAIRS] = {0};
    _Alignas(64) float c[ROWS * RM_BF16_PANEL];
    const struct rm_bf16_part part = {.a = a,
                                      .b = b,
                                      .c = c,
                                      .lda = RM_BF16_PANEL,
                                      .ldb = PAIRS,
                                      .ldc = RM_BF16_PANEL,
                                      .rows = ROWS,
                                      .columns = RM_BF16_PANEL,
                                      .pairs = PAIRS,
                                      .tiles = rm_bf16_tiles()};
    for (int i = 0; i < TURNS / 20; i++)
        rm_bf16_rows(&part);
    rm_bf16_release_tiles();
    keep = c[0];
    return 4.0 * ROWS * RM_BF16_PANEL * PAIRS * (TURNS / 20.0);
}

static double fma_flops(const char *isa)
{
    bool any = !isa || strcmp(isa, "auto") == 0;
    if (!any && strcmp(isa, "bf16") == 0 && rm_bf16_supported())
        return bf16_products();
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

static double processor_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double rm_ceiling_flops(const char *isa, unsigned tries)
{
    double best = 0;
    for (unsigned i = 0; i < tries; i++) {
        const double start = processor_s(), operations = fma_flops(isa);
        const double seconds = processor_s() - start;
        if (seconds > 0 && operations / seconds > best)
            best = operations / seconds;
    }
    return best;
}

double rm_ceiling_copy(size_t bytes, unsigned tries)
{
    double best = 0;
    char *from = bytes ? malloc(bytes) : NULL, *to = bytes ? malloc(bytes) : NULL;
    if (from && to) {
        memset(from, 1, bytes);
        memset(to, 2, bytes);
        size_t turns = (size_t)(16u << 20) / bytes + 1;
        for (unsigned i = 0; i < tries; i++) {
            const double start = processor_s();
            for (size_t t = 0; t < turns; t++) {
                memcpy(to, from, bytes);
                __asm__ volatile("" : : "r"(to) : "memory");
            }
            const double seconds = processor_s() - start;
            if (seconds > 0 && (double)bytes * (double)turns / seconds > best)
                best = (double)bytes * (double)turns / seconds;
        }
    }
    free(from);
    free(to);
    return best;
}
