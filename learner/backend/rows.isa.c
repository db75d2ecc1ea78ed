/* Operations on rows: narrow products, sums over columns, layer norm, cosine embedding, dueling. */
#include "learner/backend/isa_math.h"
#include "learner/backend/isa_parts.h"
#include "learner/backend/isa_vector.h"

#include <math.h>

#define LAYER_NORM_EPSILON 1e-5f

typedef float eight __attribute__((vector_size(32), aligned(4)));

/* Weights of narrow layers are packed in rows of a multiple of sixteen floats, filled up with
 * zeros. */
static uint32_t padded(uint32_t in)
{
    return (in + RM_LANES - 1) / RM_LANES * RM_LANES;
}

/* Dot products of `rows` rows with `count` rows of weights: a register of chains over k for each,
 * then a tree. A row's last, incomplete register is read from its tail. Inlined with constant
 * counts, so that the sums stay in registers. */
static inline __attribute__((always_inline)) void dots(const float *x, float (*tail)[VEC_FLOATS],
                                                       const float *w, uint32_t in,
                                                       const uint32_t rows, const uint32_t count,
                                                       float *y, uint32_t out)
{
    const size_t stride = padded(in);
    const uint32_t whole = in / VEC_FLOATS * VEC_FLOATS;
    vec acc[2][8], xk[2];
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t o = 0; o < count; o++)
            acc[r][o] = vec_zero();
    for (uint32_t k = 0; k < whole; k += VEC_FLOATS) {
        for (uint32_t r = 0; r < rows; r++)
            xk[r] = vec_load(x + (size_t)r * in + k);
        for (uint32_t o = 0; o < count; o++) {
            vec wk = vec_load(w + o * stride + k);
            for (uint32_t r = 0; r < rows; r++)
                acc[r][o] = vec_fma(xk[r], wk, acc[r][o]);
        }
    }
    if (whole < in)
        for (uint32_t r = 0; r < rows; r++)
            for (uint32_t o = 0; o < count; o++)
                acc[r][o] = vec_fma(vec_load(tail[r]), vec_load(w + o * stride + whole), acc[r][o]);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t o = 0; o < count; o++)
            y[(size_t)r * out + o] = vec_sum(acc[r][o]);
}

/* One or two rows, all outputs, six at a time: two times six sums fit the sixteen registers of the
 * smaller levels. */
static inline __attribute__((always_inline)) void dots_of_rows(const float *x, const float *w,
                                                               uint32_t in, const uint32_t rows,
                                                               uint32_t out, float *y)
{
    uint32_t rest = in % VEC_FLOATS, o = 0;
    float tail[2][VEC_FLOATS] = {{0}};
    for (uint32_t r = 0; r < rows; r++)
        memcpy(tail[r], x + (size_t)(r + 1) * in - rest, rest * sizeof tail[0][0]);
    for (; o + 6 <= out; o += 6)
        dots(x, tail, w + o * (size_t)padded(in), in, rows, 6, y + o, out);
    w += o * (size_t)padded(in);
#define REST(count)                                                                                \
    case count:                                                                                    \
        dots(x, tail, w, in, rows, count, y + o, out);                                             \
        break;
    switch (out - o) {
        REST(1) REST(2) REST(3) REST(4) REST(5) default : break;
    }
#undef REST
}

void RM_ISA_NAME(narrow)(const float *x, const float *w, const float *bias, uint32_t rows,
                         uint32_t in, uint32_t out, enum rm_activation act, float *y)
{
    uint32_t r = 0;
    for (; r + 2 <= rows; r += 2)
        dots_of_rows(x + (size_t)r * in, w, in, 2, out, y + (size_t)r * out);
    if (r < rows)
        dots_of_rows(x + (size_t)r * in, w, in, 1, out, y + (size_t)r * out);
    RM_ISA_NAME(bias_act)(y, out, rows, out, bias, act, y, out);
}

void RM_ISA_NAME(narrow_pack)(const float *w, uint32_t in, uint32_t out, float *packed)
{
    const size_t stride = padded(in);
    for (uint32_t o = 0; o < out; o++) {
        memcpy(packed + o * stride, w + (size_t)o * in, in * sizeof *w);
        memset(packed + o * stride + in, 0, (stride - in) * sizeof *w);
    }
}

#define DX_ROWS 32u
#define DX_OUTS 64u

#define DX_VECS (RM_NARROW_MAX / VEC_FLOATS)

/* `rows` rows side by side, each a chain over the outputs. Inlined with a constant number of
 * rows. */
static inline __attribute__((always_inline)) void dx_of_rows(const float *dy, uint32_t stride,
                                                             float (*w)[RM_NARROW_MAX],
                                                             uint32_t outs, const uint32_t rows,
                                                             float (*acc)[RM_NARROW_MAX])
{
    vec sum[4][DX_VECS];
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t i = 0; i < DX_VECS; i++)
            sum[r][i] = vec_load(acc[r] + i * VEC_FLOATS);
    for (uint32_t o = 0; o < outs; o++)
        for (uint32_t r = 0; r < rows; r++) {
            const vec d = vec_all(dy[(size_t)r * stride + o]);
            for (uint32_t i = 0; i < DX_VECS; i++)
                sum[r][i] = vec_fma(d, vec_load(w[o] + i * VEC_FLOATS), sum[r][i]);
        }
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t i = 0; i < DX_VECS; i++)
            vec_store(acc[r] + i * VEC_FLOATS, sum[r][i]);
}

/* Rows of weights are filled up with zeros to a whole register, some at a time. */
void RM_ISA_NAME(narrow_dx)(const float *dy, const float *w, uint32_t rows, uint32_t in,
                            uint32_t out, float *dx)
{
    float padded_w[DX_OUTS][RM_NARROW_MAX] = {{0}};
    for (uint32_t r0 = 0; r0 < rows; r0 += DX_ROWS) {
        const uint32_t n = rows - r0 < DX_ROWS ? rows - r0 : DX_ROWS;
        float acc[DX_ROWS][RM_NARROW_MAX] = {{0}};
        for (uint32_t o0 = 0; o0 < out; o0 += DX_OUTS) {
            const uint32_t outs = out - o0 < DX_OUTS ? out - o0 : DX_OUTS;
            const float *from = dy + (size_t)r0 * out + o0;
            for (uint32_t o = 0; o < outs; o++)
                memcpy(padded_w[o], w + (size_t)(o0 + o) * in, in * sizeof *w);
            uint32_t r = 0;
            for (; r + 4 <= n; r += 4)
                dx_of_rows(from + (size_t)r * out, out, padded_w, outs, 4, acc + r);
            for (; r < n; r++)
                dx_of_rows(from + (size_t)r * out, out, padded_w, outs, 1, acc + r);
        }
        for (uint32_t r = 0; r < n; r++)
            memcpy(dx + (size_t)(r0 + r) * in, acc[r], in * sizeof *dx);
    }
}

#define SUM_ROWS 32u

void RM_ISA_NAME(column_sums)(const float *x, uint32_t rows, uint32_t cols, uint32_t from,
                              uint32_t to, float *sums)
{
    for (uint32_t i = from; i < to; i++)
        sums[i] = 0.0f;
    for (uint32_t c0 = from; c0 < to; c0 += 64) {
        uint32_t n = to - c0 < 64 ? to - c0 : 64;
        for (uint32_t r0 = 0; r0 < rows; r0 += SUM_ROWS) {
            uint32_t r1 = rows - r0 < SUM_ROWS ? rows : r0 + SUM_ROWS;
            float block[64] = {0};
            for (uint32_t r = r0; r < r1; r++) {
                const float *row = x + (size_t)r * cols + c0;
                for (uint32_t i = 0; i < n; i++)
                    block[i] += row[i];
            }
            for (uint32_t i = 0; i < n; i++)
                sums[c0 + i] += block[i];
        }
    }
}

/* Eight by eight in registers: pairs, fours, halves. */
static inline __attribute__((always_inline)) void transpose_8x8(const float *x, size_t ldx,
                                                                float *y, size_t ldy)
{
    eight r[8], t[8];
    for (int i = 0; i < 8; i++)
        r[i] = *(const eight *)(x + (size_t)i * ldx);
    for (int i = 0; i < 8; i += 2) {
        t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            r[i + 2 * j] =
                __builtin_shufflevector(t[i + j], t[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            r[i + 2 * j + 1] =
                __builtin_shufflevector(t[i + j], t[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; i++) {
        *(eight *)(y + (size_t)i * ldy) =
            __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(eight *)(y + (size_t)(i + 4) * ldy) =
            __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

void RM_ISA_NAME(transpose)(const float *x, uint32_t rows, uint32_t cols, float *y, uint32_t ldy)
{
    uint32_t c = 0;
    for (; c + 16 <= cols; c += 16) { /* a cache line of x */
        uint32_t r = 0;
        for (; r + 8 <= rows; r += 8) {
            const float *block = x + (size_t)r * cols + c;
            transpose_8x8(block, cols, y + (size_t)c * ldy + r, ldy);
            transpose_8x8(block + 8, cols, y + (size_t)(c + 8) * ldy + r, ldy);
        }
        for (; r < rows; r++)
            for (uint32_t i = c; i < c + 16; i++)
                y[(size_t)i * ldy + r] = x[(size_t)r * cols + i];
    }
    for (; c + 8 <= cols; c += 8) {
        uint32_t r = 0;
        for (; r + 8 <= rows; r += 8)
            transpose_8x8(x + (size_t)r * cols + c, cols, y + (size_t)c * ldy + r, ldy);
        for (; r < rows; r++)
            for (uint32_t i = c; i < c + 8; i++)
                y[(size_t)i * ldy + r] = x[(size_t)r * cols + i];
    }
    for (; c < cols; c++)
        for (uint32_t r = 0; r < rows; r++)
            y[(size_t)c * ldy + r] = x[(size_t)r * cols + c];
    for (c = 0; rows < ldy && c < cols; c++)
        memset(y + (size_t)c * ldy + rows, 0, (ldy - rows) * sizeof *y);
}

/* Sums over a row: sixteen interleaved chains, then a tree. The order does not depend on the level.
 */
enum { REGISTERS = RM_LANES / VEC_FLOATS };
struct chains {
    vec at[REGISTERS];
};

static inline float sum_chains(struct chains c)
{
    for (uint32_t half = REGISTERS / 2; half; half /= 2)
        for (uint32_t i = 0; i < half; i++)
            c.at[i] = vec_add(c.at[i], c.at[i + half]);
    return vec_sum(c.at[0]);
}

/* x[i] to x[i + 15]; from x[n] on `fill`, written to `block`. */
static inline const float *block_at(const float *x, uint32_t i, uint32_t n, float fill,
                                    float *block)
{
    if (i + RM_LANES <= n)
        return x + i;
    for (uint32_t l = 0; l < RM_LANES; l++)
        block[l] = i + l < n ? x[i + l] : fill;
    return block;
}

static inline float sum_of(const float *x, uint32_t n)
{
    struct chains sum = {0};
    float block[RM_LANES];
    for (uint32_t i = 0; i < n; i += RM_LANES) {
        const float *xs = block_at(x, i, n, 0.0f, block);
        for (uint32_t k = 0; k < REGISTERS; k++)
            sum.at[k] = vec_add(sum.at[k], vec_load(xs + k * VEC_FLOATS));
    }
    return sum_chains(sum);
}

static inline float sum_squares_from(const float *x, float mean, uint32_t n)
{
    struct chains sum = {0};
    float block[RM_LANES];
    for (uint32_t i = 0; i < n; i += RM_LANES) {
        const float *xs = block_at(x, i, n, mean, block);
        for (uint32_t k = 0; k < REGISTERS; k++) {
            vec d = vec_load(xs + k * VEC_FLOATS) - vec_all(mean);
            sum.at[k] = vec_fma(d, d, sum.at[k]);
        }
    }
    return sum_chains(sum);
}

void RM_ISA_NAME(layer_norm)(const float *x, const float *gamma, const float *beta, uint32_t rows,
                             uint32_t n, float *y, float *mean, float *rstd)
{
    for (uint32_t r = 0; r < rows; r++, x += n, y += n) {
        float mu = sum_of(x, n) / (float)n;
        float var = sum_squares_from(x, mu, n) / (float)n;
        float rs = 1.0f / sqrtf(var + LAYER_NORM_EPSILON);
        for (uint32_t i = 0; i < n; i++)
            y[i] = RM_FMA((x[i] - mu) * rs, gamma[i], beta[i]);
        mean[r] = mu;
        rstd[r] = rs;
    }
}

/* With h = (x - mean) rstd and g = dy gamma: dx = rstd (g - mean(g) - h mean(g h)). */
void RM_ISA_NAME(layer_norm_dx)(const float *x, const float *gamma, const float *mean,
                                const float *rstd, const float *dy, uint32_t rows, uint32_t n,
                                float *dx)
{
    for (uint32_t r = 0; r < rows; r++, x += n, dy += n, dx += n) {
        float mu = mean[r], rs = rstd[r];
        struct chains sum_g = {0}, sum_gh = {0};
        float xs[RM_LANES], ds[RM_LANES], gs[RM_LANES];
        for (uint32_t i = 0; i < n; i += RM_LANES) {
            const float *xi = block_at(x, i, n, mu, xs), *di = block_at(dy, i, n, 0.0f, ds);
            const float *gi = block_at(gamma, i, n, 0.0f, gs);
            for (uint32_t k = 0; k < REGISTERS;
                 k++, xi += VEC_FLOATS, di += VEC_FLOATS, gi += VEC_FLOATS) {
                vec g = vec_load(di) * vec_load(gi);
                vec h = (vec_load(xi) - vec_all(mu)) * vec_all(rs);
                sum_g.at[k] = vec_add(sum_g.at[k], g);
                sum_gh.at[k] = vec_fma(g, h, sum_gh.at[k]);
            }
        }
        float mean_g = sum_chains(sum_g) / (float)n, mean_gh = sum_chains(sum_gh) / (float)n;
        for (uint32_t i = 0; i < n; i++)
            dx[i] = rs * (dy[i] * gamma[i] - mean_g - (x[i] - mu) * rs * mean_gh);
    }
}

void RM_ISA_NAME(layer_norm_dp)(const float *x, const float *mean, const float *rstd,
                                const float *dy, uint32_t rows, uint32_t n, uint32_t from,
                                uint32_t to, float *dgamma, float *dbeta)
{
    for (uint32_t i = from; i < to; i++)
        dgamma[i] = dbeta[i] = 0.0f;
    for (uint32_t r = 0; r < rows; r++) {
        const float *xr = x + (size_t)r * n, *dr = dy + (size_t)r * n;
        for (uint32_t i = from; i < to; i++) {
            dgamma[i] = RM_FMA(dr[i], (xr[i] - mean[r]) * rstd[r], dgamma[i]);
            dbeta[i] += dr[i];
        }
    }
}

void RM_ISA_NAME(cosines)(const float *tau, size_t rows, uint32_t n, float *c)
{
    for (size_t r = 0; r < rows; r++, c += n) {
        double t = tau[r];
        for (uint32_t i = 0; i < n; i++)
            c[i] = rm_cos_pi(t * (double)(int32_t)(i + 1));
    }
}

void RM_ISA_NAME(broadcast_mul)(const float *x, const float *phi, uint32_t batch, uint32_t q,
                                uint32_t n, float *z)
{
    for (uint32_t b = 0; b < batch; b++, x += n)
        for (uint32_t j = 0; j < q; j++, phi += n, z += n)
            for (uint32_t i = 0; i < n; i++)
                z[i] = x[i] * phi[i];
}

void RM_ISA_NAME(broadcast_mul_dx)(const float *x, const float *phi, const float *dz,
                                   uint32_t batch, uint32_t q, uint32_t n, float *dx, float *dphi)
{
    for (uint32_t b = 0; b < batch; b++, x += n, dx += n) {
        for (uint32_t i = 0; i < n; i++)
            dx[i] = 0.0f;
        for (uint32_t j = 0; j < q; j++, phi += n, dz += n, dphi += n)
            for (uint32_t i = 0; i < n; i++) {
                float d = dz[i];
                dx[i] = RM_FMA(d, phi[i], dx[i]);
                dphi[i] = phi[i] > 0.0f ? d * x[i] : 0.0f;
            }
    }
}

void RM_ISA_NAME(dueling)(const float *in, uint32_t rows, uint32_t actions, uint32_t k, float *q)
{
    for (uint32_t r = 0; r < rows; r++, in += (size_t)(actions + 1) * k, q += (size_t)actions * k)
        for (uint32_t j = 0; j < k; j++) {
            float sum = 0.0f;
            for (uint32_t a = 0; a < actions; a++)
                sum += in[a * k + j];
            float base = in[actions * k + j] - sum / (float)actions;
            for (uint32_t a = 0; a < actions; a++)
                q[a * k + j] = in[a * k + j] + base;
        }
}

void RM_ISA_NAME(dueling_dx)(const float *dq, uint32_t rows, uint32_t actions, uint32_t k,
                             float *din)
{
    for (uint32_t r = 0; r < rows; r++, dq += (size_t)actions * k, din += (size_t)(actions + 1) * k)
        for (uint32_t j = 0; j < k; j++) {
            float sum = 0.0f;
            for (uint32_t a = 0; a < actions; a++)
                sum += dq[a * k + j];
            float mean = sum / (float)actions;
            for (uint32_t a = 0; a < actions; a++)
                din[a * k + j] = dq[a * k + j] - mean;
            din[actions * k + j] = sum;
        }
}

double RM_ISA_NAME(sum_squares_diff)(const float *x, const float *y, size_t n)
{
    double acc[RM_LANES] = {0};
    size_t i = 0;
    for (; i + RM_LANES <= n; i += RM_LANES)
        for (uint32_t l = 0; l < RM_LANES; l++) {
            double d = (double)x[i + l] - (double)y[i + l];
            acc[l] = RM_FMAD(d, d, acc[l]);
        }
    for (uint32_t l = 0; i + l < n; l++) {
        double d = (double)x[i + l] - (double)y[i + l];
        acc[l] = RM_FMAD(d, d, acc[l]);
    }
    double s = 0.0;
    for (uint32_t l = 0; l < RM_LANES; l++)
        s += acc[l];
    return s;
}

double RM_ISA_NAME(sum_squares)(const float *x, size_t n)
{
    double acc[RM_LANES] = {0};
    size_t i = 0;
    for (; i + RM_LANES <= n; i += RM_LANES)
        for (uint32_t l = 0; l < RM_LANES; l++) {
            double d = (double)x[i + l];
            acc[l] = RM_FMAD(d, d, acc[l]);
        }
    for (uint32_t l = 0; i + l < n; l++) {
        double d = (double)x[i + l];
        acc[l] = RM_FMAD(d, d, acc[l]);
    }
    double s = 0.0;
    for (uint32_t l = 0; l < RM_LANES; l++)
        s += acc[l];
    return s;
}
