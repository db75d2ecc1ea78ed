#include "learner/algo/finite.h"

#include "learner/net/look.h"
#include "shm/base/severity.h"

#include <inttypes.h>
#include <stdio.h>

bool rm_finite_look(struct rm_finite *finite, uint64_t update,
                    const struct rm_net_workspace *workspace, const float *params,
                    const struct rm_net_input *input, const float *grads)
{
    struct rm_net_finding f;
    if (!rm_net_look(workspace, params, input, grads, &f))
        return false;
    finite->found++;
    if ((finite->found & (finite->found - 1)) == 0)
        fprintf(stderr,
                RM_SEVERITY_WARNING "learner of %s: update %" PRIu64
                                    ": not finite: %s, row %" PRIu64 ", column %" PRIu64
                                    " is %g, one of %" PRIu64 "; %" PRIu64
                                    " updates with such numbers so far\n",
                finite->name, update, f.where, f.row, f.column, f.value, f.count, finite->found);
    return true;
}
