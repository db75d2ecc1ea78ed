#include "gemm.h"

#include <string.h>

#include <algorithm>
#include <vector>

namespace rm_emulated
{
namespace
{
#define TILE_M  16u
#define TILE_N  6u
#define PIECE_K 256u
#define BLOCK_M 128u /* rows of A that stay in the cache: BLOCK_M * PIECE_K floats */

typedef float vec __attribute__((vector_size(32), aligned(4)));

/* c(16, 6) += a(k, 16)^T b(k, 6) */
#define TILE_BODY                                                                                  \
    vec s[TILE_N][2];                                                                              \
    for (unsigned j = 0; j < TILE_N; j++)                                                          \
        for (unsigned h = 0; h < 2; h++)                                                           \
            memcpy(&s[j][h], c + j * TILE_M + h * 8, sizeof s[j][h]);                              \
    for (size_t p = 0; p < k; p++) {                                                               \
        vec x[2];                                                                                  \
        memcpy(x, a + p * TILE_M, sizeof x);                                                       \
        for (unsigned j = 0; j < TILE_N; j++) {                                                    \
            const float y = b[p * TILE_N + j];                                                     \
            s[j][0] += x[0] * y;                                                                   \
            s[j][1] += x[1] * y;                                                                   \
        }                                                                                          \
    }                                                                                              \
    for (unsigned j = 0; j < TILE_N; j++)                                                          \
        for (unsigned h = 0; h < 2; h++)                                                           \
            memcpy(c + j * TILE_M + h * 8, &s[j][h], sizeof s[j][h]);

__attribute__((target("avx2,fma"))) void tile_fast(const float *a, const float *b, size_t k,
                                                   float *c)
{
    TILE_BODY
}

void tile_plain(const float *a, const float *b, size_t k, float *c)
{
    TILE_BODY
}

typedef void tile_fn(const float *, const float *, size_t, float *);

tile_fn *choose()
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? tile_fast : tile_plain;
}

/* Rows (or columns) of x in groups of `tile`, side by side for each k; zeros after the last. */
void pack(const matrix &x, size_t step, size_t k_step, size_t first, size_t count, size_t k0,
          size_t k, size_t tile, float *to)
{
    for (size_t g = 0; g < count; g += tile, to += tile * k) {
        const size_t there = std::min(tile, count - g);
        if (there < tile)
            memset(to, 0, tile * k * sizeof *to);
        for (size_t p = 0; p < k; p++)
            for (size_t i = 0; i < there; i++)
                to[p * tile + i] = x.read(x.at, (first + g + i) * step + (k0 + p) * k_step);
    }
}

size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}
} // namespace

void multiply(const matrix &a, const matrix &b, size_t m, size_t n, size_t k, float *out)
{
    static tile_fn *const tile = choose();
    std::vector<float> left(BLOCK_M * PIECE_K), right(round_up(n, TILE_N) * PIECE_K);
    memset(out, 0, m * n * sizeof *out);
    for (size_t k0 = 0; k0 < k; k0 += PIECE_K) {
        const size_t kn = std::min<size_t>(PIECE_K, k - k0);
        pack(b, b.column_step, b.row_step, 0, n, k0, kn, TILE_N, right.data());
        for (size_t m0 = 0; m0 < m; m0 += BLOCK_M) {
            const size_t mn = std::min<size_t>(BLOCK_M, m - m0);
            pack(a, a.row_step, a.column_step, m0, mn, k0, kn, TILE_M, left.data());
            for (size_t j = 0; j < n; j += TILE_N)
                for (size_t i = 0; i < mn; i += TILE_M) {
                    float c[TILE_M * TILE_N] = {0};
                    const size_t rows = std::min<size_t>(TILE_M, mn - i);
                    const size_t columns = std::min<size_t>(TILE_N, n - j);
                    tile(left.data() + i * kn, right.data() + j * kn, kn, c);
                    for (size_t q = 0; q < columns; q++)
                        for (size_t p = 0; p < rows; p++)
                            out[(j + q) * m + m0 + i + p] += c[q * TILE_M + p];
                }
        }
    }
}
} // namespace rm_emulated
