/* look: searches the results of a workspace's last forward and backward pass for numbers that are
 * not finite, in the order of computation: parameters, inputs, every layer's result from the first
 * to the output, then gradients from the output's back to the first layer's. So the first finding
 * is where the numbers first became not finite. For debug.check_finite. */
#ifndef RM_LEARNER_NET_LOOK_H
#define RM_LEARNER_NET_LOOK_H

#include "learner/net/net.h"

#include <stdbool.h>

struct rm_net_finding {
    char where[128];      /* "parameter layers.2.weight", "input", "result of layers.2 (linear)",
                             "gradient of head.bias" */
    uint64_t row, column; /* of the first such number; a tensor of one dimension is one row */
    double value;
    uint64_t count; /* number of such numbers */
};

/* `input` must be the input of the last forward pass of this training workspace. grads (NULL: not
 * searched) has the layout of params. Returns whether there was a finding. Allocates memory only
 * after a finding. */
bool rm_net_look(const struct rm_net_workspace *workspace, const float *params,
                 const struct rm_net_input *input, const float *grads,
                 struct rm_net_finding *finding);

#endif
