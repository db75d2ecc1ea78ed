/* look: searches what the last forward and backward pass of a workspace left for numbers that are
 * not finite, in the order in which they came about, so that the first to be found is where it
 * began: parameters, inputs, every layer's result from the first to the output, then gradients from
 * the output's back to the first layer's. For debug.check_finite. */
#ifndef RM_LEARNER_NET_LOOK_H
#define RM_LEARNER_NET_LOOK_H

#include "learner/net/net.h"

#include <stdbool.h>

struct rm_net_finding {
    char where[128];      /* "parameter layers.2.weight", "input", "result of layers.2 (linear)",
                             "gradient of head.bias" */
    uint64_t row, column; /* of the first such number: tensors of one dimension are one row */
    double value;
    uint64_t count; /* of such numbers there */
};

/* `input` must be what the last forward pass of this training workspace was given. grads (NULL: not
 * looked at) has the layout of params. Returns whether anything was found. Allocates on a finding
 * only. */
bool rm_net_look(const struct rm_net_workspace *workspace, const float *params,
                 const struct rm_net_input *input, const float *grads,
                 struct rm_net_finding *finding);

#endif
