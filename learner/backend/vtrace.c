/* Espeholt 2018 (IMPALA), eq. 1, with the trace-cutting coefficients c_i = lambda min(c_max, ratio)
 * of its remark 2. */
#include "learner/backend/vtrace.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

void rm_vtrace(const struct rm_rollout_rows *rows, const struct rm_vtrace *vtrace, float *advantage,
               float *target)
{
    const size_t lanes = rows->lanes;
    for (size_t t = rows->steps; t-- > 0;) {
        const float *reward = rows->reward + (t + 1) * lanes, *value = rows->value + t * lanes;
        const float *next = value + lanes, *valid = rows->valid + t * lanes;
        const float *discount = rows->discount + t * lanes, *ratio = vtrace->ratio + t * lanes;
        float *a = advantage + t * lanes, *v = target + t * lanes;
        const float *v_next = t + 1 < rows->steps ? v + lanes : next;
        for (size_t l = 0; l < lanes; l++) {
            const float rho = fminf(vtrace->rho_max, ratio[l]);
            const float c = vtrace->lambda * fminf(vtrace->c_max, ratio[l]);
            const float delta = rho * (reward[l] + discount[l] * next[l] - value[l]);
            const float beyond = discount[l] * c * (v_next[l] - next[l]);
            const bool sample = valid[l] > 0;
            v[l] = value[l] + (sample ? delta + beyond : 0);
            a[l] = sample ? rho * (reward[l] + discount[l] * v_next[l] - value[l]) : 0;
        }
    }
}
