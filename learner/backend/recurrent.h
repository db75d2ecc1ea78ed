/* recurrent: the equations of recurrent cells, once for all instruction sets and for CUDA: unit i
 * of lane l (struct rm_cells). Gates, products and their gradients have n numbers of each gate,
 * side by side. Include after definitions of RM_INLINE, RM_FMA(a, b, c), RM_TANH(x) and
 * RM_LOGISTIC(x). */
#ifndef RM_LEARNER_BACKEND_RECURRENT_H
#define RM_LEARNER_BACKEND_RECURRENT_H

#include "learner/backend/backend.h"

RM_INLINE void rm_gru_unit(const struct rm_cells *e, size_t l, size_t i)
{
    const size_t n = e->n, one = l * n + i, at = l * 3 * n + i, kept = l * 4 * n + i;
    const float r = RM_LOGISTIC(e->gx[at] + e->gh[at]);
    const float z = RM_LOGISTIC(e->gx[at + n] + e->gh[at + n]);
    const float m = e->gh[at + 2 * n];
    const float c = RM_TANH(RM_FMA(r, m, e->gx[at + 2 * n]));
    const float y = RM_FMA(z, e->state[one] - c, c);
    e->gates[kept] = r;
    e->gates[kept + n] = z;
    e->gates[kept + 2 * n] = c;
    e->gates[kept + 3 * n] = m;
    e->y[one] = y;
}

RM_INLINE void rm_gru_dx_unit(const struct rm_cells *e, size_t l, size_t i)
{
    const size_t n = e->n, one = l * n + i, at = l * 3 * n + i, kept = l * 4 * n + i;
    const float r = e->gates[kept], z = e->gates[kept + n];
    const float c = e->gates[kept + 2 * n], m = e->gates[kept + 3 * n];
    const float dy = e->dy[one];
    const float dc = dy * (1.0f - z) * RM_FMA(-c, c, 1.0f);
    const float dz = dy * (e->state[one] - c) * z * (1.0f - z);
    const float dr = dc * m * r * (1.0f - r);
    e->dgx[at] = e->dgh[at] = dr;
    e->dgx[at + n] = e->dgh[at + n] = dz;
    e->dgx[at + 2 * n] = dc;
    e->dgh[at + 2 * n] = dc * r;
    e->d_state[one] = dy * z;
}

RM_INLINE void rm_lstm_unit(const struct rm_cells *e, size_t l, size_t i)
{
    const size_t n = e->n, one = l * n + i, at = l * 4 * n + i, kept = l * 5 * n + i;
    const float in = RM_LOGISTIC(e->gx[at] + e->gh[at]);
    const float keep = RM_LOGISTIC(e->gx[at + n] + e->gh[at + n]);
    const float made = RM_TANH(e->gx[at + 2 * n] + e->gh[at + 2 * n]);
    const float out = RM_LOGISTIC(e->gx[at + 3 * n] + e->gh[at + 3 * n]);
    const float c = RM_FMA(keep, e->state[one], in * made), bent = RM_TANH(c);
    e->gates[kept] = in;
    e->gates[kept + n] = keep;
    e->gates[kept + 2 * n] = made;
    e->gates[kept + 3 * n] = out;
    e->gates[kept + 4 * n] = bent;
    e->next_c[one] = c;
    e->y[one] = out * bent;
}

RM_INLINE void rm_lstm_dx_unit(const struct rm_cells *e, size_t l, size_t i)
{
    const size_t n = e->n, one = l * n + i, at = l * 4 * n + i, kept = l * 5 * n + i;
    const float in = e->gates[kept], keep = e->gates[kept + n], made = e->gates[kept + 2 * n];
    const float out = e->gates[kept + 3 * n], bent = e->gates[kept + 4 * n];
    const float dy = e->dy[one];
    const float d = RM_FMA(dy * out, RM_FMA(-bent, bent, 1.0f), e->d_state[one]);
    e->dgx[at] = d * made * in * (1.0f - in);
    e->dgx[at + n] = d * e->state[one] * keep * (1.0f - keep);
    e->dgx[at + 2 * n] = d * in * RM_FMA(-made, made, 1.0f);
    e->dgx[at + 3 * n] = dy * bent * out * (1.0f - out);
    e->d_state[one] = d * keep;
}

#endif
