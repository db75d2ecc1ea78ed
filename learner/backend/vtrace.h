/* vtrace: off-policy corrected targets and advantages (Espeholt 2018, eq. 1 and section 4.2), for
 * rollouts that an older policy acted in. Rows are those of gae.h. With ratio_t = pi(a_t) /
 * mu(a_t):
 *
 *   rho_t = min(rho_max, ratio_t),  c_t = lambda min(c_max, ratio_t)
 *   delta_t   = rho_t (r_(t+1) + discount_t V_(t+1) - V_t)
 *   v_t - V_t = delta_t + discount_t c_t (v_(t+1) - V_(t+1))
 *   A_t       = rho_t (r_(t+1) + discount_t v_(t+1) - V_t)
 *
 * where v is V in rows that are no samples. rho weighs the whole error, not the reward alone. */
#ifndef RM_LEARNER_BACKEND_VTRACE_H
#define RM_LEARNER_BACKEND_VTRACE_H

#include "learner/backend/gae.h"

struct rm_vtrace {
    float lambda, rho_max, c_max;
    const float *ratio; /* (steps, lanes); arbitrary in rows that are no samples */
};

/* advantage, target: (steps, lanes). */
void rm_vtrace(const struct rm_rollout_rows *rows, const struct rm_vtrace *vtrace, float *advantage,
               float *target);

#endif
