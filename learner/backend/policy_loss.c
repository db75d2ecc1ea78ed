#include "learner/backend/policy_loss.h"

#include "learner/backend/policy_loss_kernels.h"
#include "shm/base/isa.h"

static rm_policy_loss_kernel *const of_level[] = {
    [RM_LEVEL_V2] = rm_isa_v2_policy_loss,
    [RM_LEVEL_V3] = rm_isa_v3_policy_loss,
    [RM_LEVEL_V4] = rm_isa_v4_policy_loss,
};

void rm_policy_loss_add_errors(const struct rm_policy_loss *p, uint32_t first, uint32_t rows,
                               const float *out, double sums[2])
{
    for (uint32_t i = 0; i < rows; i++) {
        const size_t row = p->index ? p->index[first + i] : first + i;
        const float v = out[(size_t)(i + 1) * p->outputs - 1];
        const struct rm_value_errors e =
            rm_value_errors(v, p->target[row], p->value[row], p->value_clip, RM_ERROR_LARGER);
        sums[0] += (double)(e.free * p->valid[row]);
        sums[1] += (double)(e.held * p->valid[row]);
    }
}

void rm_policy_loss_rows(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                         double sums[RM_NET_SUMS])
{
    of_level[rm_isa_level()](self, first, rows, out, d_out, sums);
}
