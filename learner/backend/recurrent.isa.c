/* Cells of recurrent layers, one step of some lanes. Plain loops, which the compiler vectorises. */
#include "learner/backend/isa_math.h"
#include "learner/backend/isa_parts.h"

/* 1 / (1 + e^-x) = (1 + tanh(x / 2)) / 2 */
static inline float logistic_of(float x)
{
    return RM_FMA(0.5f, tanh_of(0.5f * x), 0.5f);
}

/* One lane at a time. Its arrays do not overlap; the compiler must know that to vectorise all
 * loops, and forgets it after inlining. */
static __attribute__((noinline)) void gru_lane(uint32_t n, const float *restrict gx,
                                               const float *restrict gh, const float *restrict h,
                                               float *restrict r, float *restrict z,
                                               float *restrict c, float *restrict m,
                                               float *restrict y)
{
    for (uint32_t i = 0; i < n; i++) {
        r[i] = logistic_of(gx[i] + gh[i]);
        z[i] = logistic_of(gx[n + i] + gh[n + i]);
        m[i] = gh[2 * (size_t)n + i];
        c[i] = tanh_of(RM_FMA(r[i], m[i], gx[2 * (size_t)n + i]));
        y[i] = RM_FMA(z[i], h[i] - c[i], c[i]);
    }
}

void RM_ISA_NAME(gru)(const float *gx, const float *gh, const float *h, uint32_t lanes, uint32_t n,
                      float *gates, float *y)
{
    for (size_t l = 0; l < lanes; l++) {
        float *g = gates + l * 4 * n;
        gru_lane(n, gx + l * 3 * n, gh + l * 3 * n, h + l * n, g, g + n, g + 2 * (size_t)n,
                 g + 3 * (size_t)n, y + l * n);
    }
}

static __attribute__((noinline)) void
gru_lane_dx(uint32_t n, const float *restrict r, const float *restrict z, const float *restrict c,
            const float *restrict m, const float *restrict h, const float *restrict dy,
            float *restrict dgx_r, float *restrict dgx_z, float *restrict dgx_c,
            float *restrict dgh_r, float *restrict dgh_z, float *restrict dgh_c, float *restrict dh)
{
    for (uint32_t i = 0; i < n; i++) {
        float dc = dy[i] * (1.0f - z[i]) * RM_FMA(-c[i], c[i], 1.0f);
        float dz = dy[i] * (h[i] - c[i]) * z[i] * (1.0f - z[i]);
        float dr = dc * m[i] * r[i] * (1.0f - r[i]);
        dgx_r[i] = dgh_r[i] = dr;
        dgx_z[i] = dgh_z[i] = dz;
        dgx_c[i] = dc;
        dgh_c[i] = dc * r[i];
        dh[i] = dy[i] * z[i];
    }
}

void RM_ISA_NAME(gru_dx)(const float *gates, const float *h, const float *dy, uint32_t lanes,
                         uint32_t n, float *dgx, float *dgh, float *dh)
{
    for (size_t l = 0; l < lanes; l++) {
        const float *g = gates + l * 4 * n;
        float *x = dgx + l * 3 * n, *s = dgh + l * 3 * n;
        gru_lane_dx(n, g, g + n, g + 2 * (size_t)n, g + 3 * (size_t)n, h + l * n, dy + l * n, x,
                    x + n, x + 2 * (size_t)n, s, s + n, s + 2 * (size_t)n, dh + l * n);
    }
}

static __attribute__((noinline)) void
lstm_lane(uint32_t n, const float *restrict gx, const float *restrict gh, const float *restrict c,
          float *restrict in, float *restrict keep, float *restrict new, float *restrict out,
          float *restrict bent, float *restrict c_next, float *restrict y)
{
    for (uint32_t i = 0; i < n; i++) {
        in[i] = logistic_of(gx[i] + gh[i]);
        keep[i] = logistic_of(gx[n + i] + gh[n + i]);
        new[i] = tanh_of(gx[2 * (size_t)n + i] + gh[2 * (size_t)n + i]);
        out[i] = logistic_of(gx[3 * (size_t)n + i] + gh[3 * (size_t)n + i]);
        c_next[i] = RM_FMA(keep[i], c[i], in[i] * new[i]);
        bent[i] = tanh_of(c_next[i]);
        y[i] = out[i] * bent[i];
    }
}

void RM_ISA_NAME(lstm)(const float *gx, const float *gh, const float *c, uint32_t lanes, uint32_t n,
                       float *gates, float *c_next, float *y)
{
    for (size_t l = 0; l < lanes; l++) {
        float *g = gates + l * 5 * n;
        lstm_lane(n, gx + l * 4 * n, gh + l * 4 * n, c + l * n, g, g + n, g + 2 * (size_t)n,
                  g + 3 * (size_t)n, g + 4 * (size_t)n, c_next + l * n, y + l * n);
    }
}

static __attribute__((noinline)) void
lstm_lane_dx(uint32_t n, const float *restrict in, const float *restrict keep,
             const float *restrict new, const float *restrict out, const float *restrict bent,
             const float *restrict c, const float *restrict dy, float *restrict dc,
             float *restrict d_in, float *restrict d_keep, float *restrict d_new,
             float *restrict d_out)
{
    for (uint32_t i = 0; i < n; i++) {
        float d = RM_FMA(dy[i] * out[i], RM_FMA(-bent[i], bent[i], 1.0f), dc[i]);
        d_in[i] = d * new[i] * in[i] * (1.0f - in[i]);
        d_keep[i] = d * c[i] * keep[i] * (1.0f - keep[i]);
        d_new[i] = d * in[i] * RM_FMA(-new[i], new[i], 1.0f);
        d_out[i] = dy[i] * bent[i] * out[i] * (1.0f - out[i]);
        dc[i] = d * keep[i];
    }
}

void RM_ISA_NAME(lstm_dx)(const float *gates, const float *c, const float *dy, float *dc,
                          uint32_t lanes, uint32_t n, float *dgates)
{
    for (size_t l = 0; l < lanes; l++) {
        const float *g = gates + l * 5 * n;
        float *d = dgates + l * 4 * n;
        lstm_lane_dx(n, g, g + n, g + 2 * (size_t)n, g + 3 * (size_t)n, g + 4 * (size_t)n,
                     c + l * n, dy + l * n, dc + l * n, d, d + n, d + 2 * (size_t)n,
                     d + 3 * (size_t)n);
    }
}

void RM_ISA_NAME(add)(const float *x, const float *y, size_t n, float *z)
{
    for (size_t i = 0; i < n; i++)
        z[i] = x[i] + y[i];
}
