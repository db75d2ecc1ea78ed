/* Operations on rows: narrow products, sums over columns, layer norm, cosine embedding, dueling. */
#include "learner/backend/isa_math.h"
#include "learner/backend/isa_parts.h"

#include <math.h>

#define LAYER_NORM_EPSILON 1e-5f

/* Sixteen floats; on the smaller levels the compiler makes two or four registers of it. */
typedef float lanes __attribute__((vector_size(64), aligned(4)));

static float sum_lanes(const float *a)
{
    float s8[8], s4[4];
    for (int i = 0; i < 8; i++)
        s8[i] = a[i] + a[i + 8];
    for (int i = 0; i < 4; i++)
        s4[i] = s8[i] + s8[i + 4];
    return (s4[0] + s4[2]) + (s4[1] + s4[3]);
}

static float act_of(enum rm_activation act, float x)
{
    float y = x;
    RM_ISA_NAME(activate)(act, &x, 1, &y);
    return y;
}

/* Dot products of up to four weight rows with one input row, sixteen chains each over k. */
static void dots(const float *x, const float *w, uint32_t in, uint32_t count, float *sums)
{
    float acc[4][RM_LANES] = {{0}};
    uint32_t k = 0;
    if (count == 4) {
        lanes a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};
        const float *w1 = w + in, *w2 = w1 + in, *w3 = w2 + in;
        for (; k + RM_LANES <= in; k += RM_LANES) {
            lanes xk = *(const lanes *)(x + k);
            a0 += xk * *(const lanes *)(w + k);
            a1 += xk * *(const lanes *)(w1 + k);
            a2 += xk * *(const lanes *)(w2 + k);
            a3 += xk * *(const lanes *)(w3 + k);
        }
        memcpy(acc[0], &a0, sizeof a0);
        memcpy(acc[1], &a1, sizeof a1);
        memcpy(acc[2], &a2, sizeof a2);
        memcpy(acc[3], &a3, sizeof a3);
    } else {
        for (uint32_t o = 0; o < count; o++) {
            lanes a = {0};
            const float *wo = w + (size_t)o * in;
            for (k = 0; k + RM_LANES <= in; k += RM_LANES)
                a += *(const lanes *)(x + k) * *(const lanes *)(wo + k);
            memcpy(acc[o], &a, sizeof a);
        }
    }
    for (uint32_t o = 0; o < count; o++) {
        for (uint32_t i = k; i < in; i++)
            acc[o][i - k] += x[i] * w[(size_t)o * in + i];
        sums[o] = sum_lanes(acc[o]);
    }
}

void RM_ISA_NAME(narrow)(const float *x, const float *w, const float *bias, uint32_t rows,
                         uint32_t in, uint32_t out, enum rm_activation act, float *y)
{
    for (uint32_t r = 0; r < rows; r++, x += in, y += out) {
        for (uint32_t o = 0; o < out; o += 4)
            dots(x, w + (size_t)o * in, in, out - o < 4 ? out - o : 4, y + o);
        for (uint32_t o = 0; o < out; o++)
            y[o] += bias[o];
        if (act != RM_ACT_NONE)
            for (uint32_t o = 0; o < out; o++)
                y[o] = act_of(act, y[o]);
    }
}

void RM_ISA_NAME(narrow_dx)(const float *dy, const float *w, uint32_t rows, uint32_t in,
                            uint32_t out, float *dx)
{
    for (uint32_t r = 0; r < rows; r++, dy += out, dx += in) {
        float acc[RM_NARROW_MAX] = {0};
        for (uint32_t o = 0; o < out; o++)
            for (uint32_t i = 0; i < in; i++)
                acc[i] = RM_FMA(dy[o], w[(size_t)o * in + i], acc[i]);
        memcpy(dx, acc, in * sizeof *dx);
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

void RM_ISA_NAME(transpose)(const float *x, uint32_t rows, uint32_t cols, float *y)
{
    enum { T = 16 };
    for (uint32_t r0 = 0; r0 < rows; r0 += T)
        for (uint32_t c0 = 0; c0 < cols; c0 += T) {
            uint32_t rn = rows - r0 < T ? rows - r0 : T, cn = cols - c0 < T ? cols - c0 : T;
            for (uint32_t c = 0; c < cn; c++)
                for (uint32_t r = 0; r < rn; r++)
                    y[(size_t)(c0 + c) * rows + r0 + r] = x[(size_t)(r0 + r) * cols + c0 + c];
        }
}

/* Sixteen interleaved chains, then a tree: the order does not depend on the level. */
static float sum_of(const float *x, uint32_t n)
{
    float acc[RM_LANES] = {0};
    uint32_t i = 0;
    for (; i + RM_LANES <= n; i += RM_LANES)
        for (uint32_t l = 0; l < RM_LANES; l++)
            acc[l] += x[i + l];
    for (uint32_t l = 0; i + l < n; l++)
        acc[l] += x[i + l];
    return sum_lanes(acc);
}

static float sum_products(const float *x, const float *y, float shift, uint32_t n)
{
    float acc[RM_LANES] = {0};
    uint32_t i = 0;
    for (; i + RM_LANES <= n; i += RM_LANES)
        for (uint32_t l = 0; l < RM_LANES; l++)
            acc[l] = RM_FMA(x[i + l] - shift, y[i + l] - shift, acc[l]);
    for (uint32_t l = 0; i + l < n; l++)
        acc[l] = RM_FMA(x[i + l] - shift, y[i + l] - shift, acc[l]);
    return sum_lanes(acc);
}

void RM_ISA_NAME(layer_norm)(const float *x, const float *gamma, const float *beta, uint32_t rows,
                             uint32_t n, float *y, float *mean, float *rstd)
{
    for (uint32_t r = 0; r < rows; r++, x += n, y += n) {
        float mu = sum_of(x, n) / (float)n;
        float var = sum_products(x, x, mu, n) / (float)n;
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
        float g_acc[RM_LANES] = {0}, gh_acc[RM_LANES] = {0};
        uint32_t i = 0;
        for (; i + RM_LANES <= n; i += RM_LANES)
            for (uint32_t l = 0; l < RM_LANES; l++) {
                float g = dy[i + l] * gamma[i + l];
                g_acc[l] += g;
                gh_acc[l] = RM_FMA(g, (x[i + l] - mu) * rs, gh_acc[l]);
            }
        for (uint32_t l = 0; i + l < n; l++) {
            float g = dy[i + l] * gamma[i + l];
            g_acc[l] += g;
            gh_acc[l] = RM_FMA(g, (x[i + l] - mu) * rs, gh_acc[l]);
        }
        float mean_g = sum_lanes(g_acc) / (float)n, mean_gh = sum_lanes(gh_acc) / (float)n;
        for (i = 0; i < n; i++)
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

/* cos(pi t) for t >= 0, t the exact product in double: the nearest even multiple comes off exactly
 * and what is left, in [-1, 1], is folded to [-1/2, 1/2]. 1e-7 absolute. */
static inline float cos_pi(double t)
{
    double whole = (t * 0.5 + 0x1.8p52) - 0x1.8p52;
    float r = abs_of((float)(t - 2.0 * whole)); /* [0, 1] */
    float h = 0.5f - r;                         /* cos(pi r) = sin(pi h), |h| <= 1/2 */
    float s = h * h;
    float p = RM_FMA(-7.0283039e-3f, s, 8.2050350e-2f);
    p = RM_FMA(p, s, -5.9925219e-1f);
    p = RM_FMA(p, s, 2.5501633f);
    p = RM_FMA(p, s, -5.1677128f);
    return h * RM_FMA(p, s, 3.14159265f);
}

void RM_ISA_NAME(cosines)(const float *tau, size_t rows, uint32_t n, float *c)
{
    for (size_t r = 0; r < rows; r++, c += n) {
        double t = tau[r];
        for (uint32_t i = 0; i < n; i++)
            c[i] = cos_pi(t * (double)(int32_t)(i + 1));
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
                dphi[i] = d * x[i];
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
