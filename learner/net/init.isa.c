/* Normals and projections in double for initial parameters (init_kernels.h). */
#include "learner/net/init_kernels.h"

#include "learner/backend/isa.h"

#include <math.h>
#include <string.h>

#ifdef __clang__ /* gcc does not fuse in ISO C */
#pragma STDC FP_CONTRACT OFF
#endif

/* A register of the level; tiles of TILE x TILE rows leave enough registers. Neither changes the
 * order of any sum. */
#if defined(__AVX512F__)
#define WIDTH 8
#define TILE  4
#elif defined(__AVX2__)
#define WIDTH 4
#define TILE  2
#else
#define WIDTH 2
#define TILE  2
#endif
#define PARTS (RM_INIT_LANES / WIDTH)

typedef double vec __attribute__((vector_size(WIDTH * 8), aligned(8), may_alias));

/* --- normals --------------------------------------------------------------------------------- */

#define BLOCK 64

/* log(u) of normal numbers. u = m 2^e with m in [sqrt(1/2), sqrt(2)), and with s = (m - 1)/(m + 1)
 * log(m) = 2 artanh(s), whose series ends below the last bit. */
static void logs(const double *u, double *out)
{
    int64_t bits[BLOCK];
    memcpy(bits, u, sizeof bits);
    for (int i = 0; i < BLOCK; i++) {
        const int64_t fraction = bits[i] & 0xfffffffffffff;
        const int64_t high = fraction > 0x6a09e667f3bcd; /* of sqrt(2) */
        const int64_t word = fraction | (1023 - high) << 52;
        const double e = (double)((int32_t)(bits[i] >> 52) - 1023 + (int32_t)high);
        double m;
        memcpy(&m, &word, sizeof m);
        const double s = (m - 1) / (m + 1), q = s * s;
        double sum = 1.0 / 23;
        sum = sum * q + 1.0 / 21;
        sum = sum * q + 1.0 / 19;
        sum = sum * q + 1.0 / 17;
        sum = sum * q + 1.0 / 15;
        sum = sum * q + 1.0 / 13;
        sum = sum * q + 1.0 / 11;
        sum = sum * q + 1.0 / 9;
        sum = sum * q + 1.0 / 7;
        sum = sum * q + 1.0 / 5;
        sum = sum * q + 1.0 / 3;
        sum = sum * q;
        out[i] = e * 0.69314718055994530942 + 2 * (s + s * sum);
    }
}

/* cos(2 pi v), v in [0, 1): the nearest quarter turn, and at most an eighth more by the series of
 * cosine and sine. */
static void cosines(const double *v, double *out)
{
    for (int i = 0; i < BLOCK; i++) {
        const double turns = 4 * v[i];
        const int32_t quarter = (int32_t)(turns + 0.5);
        const double a = (turns - quarter) * 1.57079632679489661923, q = a * a;
        double c = -1.0 / 6402373705728000, s = 1.0 / 355687428096000;
        c = c * q + 1.0 / 20922789888000;
        s = s * q - 1.0 / 1307674368000;
        c = c * q - 1.0 / 87178291200;
        s = s * q + 1.0 / 6227020800;
        c = c * q + 1.0 / 479001600;
        s = s * q - 1.0 / 39916800;
        c = c * q - 1.0 / 3628800;
        s = s * q + 1.0 / 362880;
        c = c * q + 1.0 / 40320;
        s = s * q - 1.0 / 5040;
        c = c * q - 1.0 / 720;
        s = s * q + 1.0 / 120;
        c = c * q + 1.0 / 24;
        s = s * q - 1.0 / 6;
        c = c * q - 1.0 / 2;
        s = a + a * (s * q);
        c = c * q + 1;
        const double either = quarter & 1 ? s : c;
        out[i] = (quarter + 1) & 2 ? -either : either;
    }
}

static double uniform(const uint32_t *words)
{
    return (double)(int64_t)(((uint64_t)words[0] << 32 | words[1]) >> 11) * 0x1p-53;
}

static void normals(const uint32_t *words, uint32_t n, double *out)
{
    double u[BLOCK], v[BLOCK], log_u[BLOCK], cos_v[BLOCK];
    for (uint32_t first = 0; first < n; first += BLOCK) {
        const uint32_t count = n - first < BLOCK ? n - first : BLOCK;
        for (uint32_t i = 0; i < BLOCK; i++) {
            const uint32_t *word = words + 4 * (size_t)(first + (i < count ? i : 0));
            u[i] = 1 - uniform(word);
            v[i] = uniform(word + 2);
        }
        logs(u, log_u);
        cosines(v, cos_v);
        for (uint32_t i = 0; i < BLOCK; i++)
            u[i] = sqrt(-2 * log_u[i]) * cos_v[i];
        memcpy(out + first, u, count * sizeof *u);
    }
}

/* --- projections ----------------------------------------------------------------------------- */

/* Columns processed at a time: TILE rows of each of two matrices fit the first-level cache, a
 * block's rows the second-level one. Sums are sums over chunks. */
#define CHUNK 512

static double sum_of(const vec parts[PARTS])
{
    double t[RM_INIT_LANES];
    /* cppcheck-suppress bufferAccessOutOfBounds ; a vec is several doubles */
    memcpy(t, parts, sizeof t);
    return ((t[0] + t[4]) + (t[2] + t[6])) + ((t[1] + t[5]) + (t[3] + t[7]));
}

static void add_dots(const double *x, const double *q, size_t stride, size_t columns, double *c,
                     size_t c_stride)
{
    vec sum[TILE][TILE][PARTS] = {0};
    for (size_t k = 0; k < columns; k += RM_INIT_LANES)
        for (size_t p = 0; p < PARTS; p++)
            for (size_t i = 0; i < TILE; i++)
                for (size_t j = 0; j < TILE; j++)
                    sum[i][j][p] += *(const vec *)(x + i * stride + k + p * WIDTH) *
                                    *(const vec *)(q + j * stride + k + p * WIDTH);
    for (size_t i = 0; i < TILE; i++)
        for (size_t j = 0; j < TILE; j++)
            c[i * c_stride + j] += sum_of(sum[i][j]);
}

static void subtract(double *x, const double *q, size_t stride, size_t columns, const double *c,
                     size_t c_stride)
{
    vec factor[TILE][TILE];
    for (size_t i = 0; i < TILE; i++)
        for (size_t j = 0; j < TILE; j++)
            factor[i][j] = (vec){0} + c[i * c_stride + j];
    for (size_t k = 0; k < columns; k += WIDTH) {
        vec row[TILE];
        for (size_t i = 0; i < TILE; i++)
            row[i] = *(const vec *)(x + i * stride + k);
        for (size_t j = 0; j < TILE; j++) {
            const vec other = *(const vec *)(q + j * stride + k);
            for (size_t i = 0; i < TILE; i++)
                row[i] -= factor[i][j] * other;
        }
        for (size_t i = 0; i < TILE; i++)
            *(vec *)(x + i * stride + k) = row[i];
    }
}

static void project(double *x, uint32_t rows, const double *q, uint32_t n, size_t length,
                    size_t stride, double *c)
{
    memset(c, 0, (size_t)rows * n * sizeof *c);
    for (int step = 0; step < 2; step++)
        for (size_t k = 0; k < length; k += CHUNK) {
            const size_t columns = length - k < CHUNK ? length - k : CHUNK;
            for (uint32_t j = 0; j < n; j += TILE)
                for (uint32_t i = 0; i < rows; i += TILE) {
                    double *xi = x + i * stride + k, *cij = c + (size_t)i * n + j;
                    const double *qj = q + j * stride + k;
                    if (step == 0)
                        add_dots(xi, qj, stride, columns, cij, n);
                    else
                        subtract(xi, qj, stride, columns, cij, n);
                }
        }
}

static double dot(const double *x, const double *q, size_t length)
{
    vec sum[PARTS] = {0};
    for (size_t k = 0; k < length; k += RM_INIT_LANES)
        for (size_t p = 0; p < PARTS; p++)
            sum[p] += *(const vec *)(x + k + p * WIDTH) * *(const vec *)(q + k + p * WIDTH);
    return sum_of(sum);
}

static void project_one(double *x, const double *q, size_t length)
{
    const double c = dot(x, q, length);
    for (size_t k = 0; k < length; k += WIDTH)
        *(vec *)(x + k) -= c * *(const vec *)(q + k);
}

static double square(const double *x, size_t length)
{
    return dot(x, x, length);
}

const struct rm_init_kernels RM_ISA_NAME(init) = {
    .normals = normals, .project = project, .project_one = project_one, .square = square};
