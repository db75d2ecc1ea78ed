/* Cells of recurrent layers, one unit of one lane for a thread, with the equations of
 * recurrent.isa.c. */
#include "learner/backend/cuda/map.h"
#include "learner/backend/cuda/math.h"
#include "learner/backend/cuda/ops.h"

namespace
{

struct gru_cell {
    const float *gx, *gh, *h;
    uint32_t n;
    float *gates, *y;
    __device__ void at(size_t l, uint32_t i) const
    {
        const size_t three = l * 3 * n + i, four = l * 4 * n + i;
        const float r = rm_logistic(gx[three] + gh[three]);
        const float z = rm_logistic(gx[three + n] + gh[three + n]);
        const float m = gh[three + 2 * (size_t)n];
        const float c = tanhf(fmaf(r, m, gx[three + 2 * (size_t)n]));
        gates[four] = r;
        gates[four + n] = z;
        gates[four + 2 * (size_t)n] = c;
        gates[four + 3 * (size_t)n] = m;
        y[l * n + i] = fmaf(z, h[l * n + i] - c, c);
    }
};

struct gru_cell_back {
    const float *gates, *h, *dy;
    uint32_t n;
    float *dgx, *dgh, *dh;
    __device__ void at(size_t l, uint32_t i) const
    {
        const size_t three = l * 3 * n + i, four = l * 4 * n + i;
        const float r = gates[four], z = gates[four + n];
        const float c = gates[four + 2 * (size_t)n], m = gates[four + 3 * (size_t)n];
        const float d = dy[l * n + i];
        const float dc = d * (1.0f - z) * fmaf(-c, c, 1.0f);
        const float dz = d * (h[l * n + i] - c) * z * (1.0f - z);
        const float dr = dc * m * r * (1.0f - r);
        dgx[three] = dgh[three] = dr;
        dgx[three + n] = dgh[three + n] = dz;
        dgx[three + 2 * (size_t)n] = dc;
        dgh[three + 2 * (size_t)n] = dc * r;
        dh[l * n + i] = d * z;
    }
};

struct lstm_cell {
    const float *gx, *gh, *c;
    uint32_t n;
    float *gates, *c_next, *y;
    __device__ float sum(size_t at) const
    {
        return gx[at] + gh[at];
    }
    __device__ void at(size_t l, uint32_t i) const
    {
        const size_t four = l * 4 * n + i, five = l * 5 * n + i, one = l * n + i;
        const float in = rm_logistic(sum(four)), keep = rm_logistic(sum(four + n));
        const float made = tanhf(sum(four + 2 * (size_t)n));
        const float out = rm_logistic(sum(four + 3 * (size_t)n));
        const float cell = fmaf(keep, c[one], in * made), bent = tanhf(cell);
        gates[five] = in;
        gates[five + n] = keep;
        gates[five + 2 * (size_t)n] = made;
        gates[five + 3 * (size_t)n] = out;
        gates[five + 4 * (size_t)n] = bent;
        c_next[one] = cell;
        y[one] = out * bent;
    }
};

struct lstm_cell_back {
    const float *gates, *c, *dy;
    float *dc;
    uint32_t n;
    float *dgates;
    __device__ void at(size_t l, uint32_t i) const
    {
        const size_t four = l * 4 * n + i, five = l * 5 * n + i, one = l * n + i;
        const float in = gates[five], keep = gates[five + n], made = gates[five + 2 * (size_t)n];
        const float out = gates[five + 3 * (size_t)n], bent = gates[five + 4 * (size_t)n];
        const float dyi = dy[one], d = fmaf(dyi * out, fmaf(-bent, bent, 1.0f), dc[one]);
        dgates[four] = d * made * in * (1.0f - in);
        dgates[four + n] = d * c[one] * keep * (1.0f - keep);
        dgates[four + 2 * (size_t)n] = d * in * fmaf(-made, made, 1.0f);
        dgates[four + 3 * (size_t)n] = dyi * bent * out * (1.0f - out);
        dc[one] = d * keep;
    }
};

} // namespace

void rm_cuda_gru(struct rm_backend *b, const float *gx, const float *gh, const float *h,
                 uint32_t lanes, uint32_t n, float *gates, float *y)
{
    rm_map(rm_cuda_of(b), "gru", gru_cell{gx, gh, h, n, gates, y}, (size_t)lanes, n);
}

void rm_cuda_gru_dx(struct rm_backend *b, const float *gates, const float *h, const float *dy,
                    uint32_t lanes, uint32_t n, float *dgx, float *dgh, float *dh)
{
    rm_map(rm_cuda_of(b), "gru_dx", gru_cell_back{gates, h, dy, n, dgx, dgh, dh}, (size_t)lanes, n);
}

void rm_cuda_lstm(struct rm_backend *b, const float *gx, const float *gh, const float *c,
                  uint32_t lanes, uint32_t n, float *gates, float *c_next, float *y)
{
    rm_map(rm_cuda_of(b), "lstm", lstm_cell{gx, gh, c, n, gates, c_next, y}, (size_t)lanes, n);
}

void rm_cuda_lstm_dx(struct rm_backend *b, const float *gates, const float *c, const float *dy,
                     float *dc, uint32_t lanes, uint32_t n, float *dgates)
{
    rm_map(rm_cuda_of(b), "lstm_dx", lstm_cell_back{gates, c, dy, dc, n, dgates}, (size_t)lanes, n);
}
