/* policy_loss_kernels: the functions of policy_loss.isa.c, one copy for every instruction set. */
#ifndef RM_LEARNER_BACKEND_POLICY_LOSS_KERNELS_H
#define RM_LEARNER_BACKEND_POLICY_LOSS_KERNELS_H

#include "learner/backend/policy_loss.h"

typedef void rm_policy_loss_kernel(const struct rm_policy_loss *loss, uint32_t first, uint32_t rows,
                                   const float *out, float *d_out, double sums[RM_NET_SUMS]);

rm_policy_loss_kernel rm_isa_v2_policy_loss, rm_isa_v3_policy_loss, rm_isa_v4_policy_loss;

#endif
