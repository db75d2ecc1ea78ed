/* finite: debug.check_finite. Says in the log where the first number that is not finite came up in
 * an update: which tensor or layer, which row. Off, it is one test of a word per update. */
#ifndef RM_LEARNER_ALGO_FINITE_H
#define RM_LEARNER_ALGO_FINITE_H

#include "config/experiment.h"
#include "learner/net/net.h"

#include <stdbool.h>
#include <stdint.h>

struct rm_finite {
    enum rm_check_finite check;
    uint32_t every;
    const char *name; /* of the policy */
    uint64_t found;   /* updates in which something was */
};

static inline struct rm_finite rm_finite_of(const struct rm_experiment *experiment,
                                            const char *name)
{
    return (struct rm_finite){experiment->debug.check_finite, experiment->debug.check_every, name,
                              0};
}

/* Whether update number `update` is to be looked through; `skipped` ones are unless it is off. */
static inline bool rm_finite_due(const struct rm_finite *finite, uint64_t update, bool skipped)
{
    if (finite->check == RM_CHECK_FINITE_OFF)
        return false;
    return finite->check == RM_CHECK_FINITE_ALWAYS || skipped || update % finite->every == 0;
}

/* After the backward pass and before the step. Looks at what the workspace's last passes left (see
 * learner/net/look.h) and reports the first finding to stderr; from the second on only when their
 * number is a power of two. Returns whether there was one. */
bool rm_finite_look(struct rm_finite *finite, uint64_t update,
                    const struct rm_net_workspace *workspace, const float *params,
                    const struct rm_net_input *input, const float *grads);

#endif
