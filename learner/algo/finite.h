/* finite: debug.check_finite. Finds the first number of an update that is not finite, and logs its
 * tensor or layer and its row. When switched off, costs one test of a word per update. */
#ifndef RM_LEARNER_ALGO_FINITE_H
#define RM_LEARNER_ALGO_FINITE_H

#include "config/experiment.h"
#include "learner/net/net.h"

#include <stdbool.h>
#include <stdint.h>

struct rm_finite {
    enum rm_check_finite check;
    uint32_t every;
    const char *name; /* the policy's */
    uint64_t found;   /* updates with such a number */
};

static inline struct rm_finite rm_finite_of(const struct rm_experiment *experiment,
                                            const char *name)
{
    return (struct rm_finite){experiment->debug.check_finite, experiment->debug.check_every, name,
                              0};
}

/* Whether to check update number `update`; unless switched off, every skipped update is checked. */
static inline bool rm_finite_due(const struct rm_finite *finite, uint64_t update, bool skipped)
{
    if (finite->check == RM_CHECK_FINITE_OFF)
        return false;
    return finite->check == RM_CHECK_FINITE_ALWAYS || skipped || update % finite->every == 0;
}

/* Called after the backward pass and before the step. Searches the results of the workspace's last
 * passes (learner/net/look.h) and logs the first finding; later findings are logged only if their
 * number is a power of two. Returns whether there was a finding. */
bool rm_finite_look(struct rm_finite *finite, uint64_t update,
                    const struct rm_net_workspace *workspace, const float *params,
                    const struct rm_net_input *input, const float *grads);

#endif
