/* reference_net: networks once more, slowly, in double, straight from the configuration and the
 * equations. Shares nothing with learner/net but the names of tensors. */
#ifndef RM_TESTS_SUPPORT_REFERENCE_NET_H
#define RM_TESTS_SUPPORT_REFERENCE_NET_H

#include "learner/net/net.h"

struct reference_input {
    const double *x, *tau, *noise, *action; /* as in rm_net_input */
    uint32_t batch, quantiles;
    uint32_t steps;             /* 0: 1 */
    const double *state;        /* NULL: zeros */
    const uint8_t *restart;     /* NULL: none */
    double *next_state;         /* or NULL */
    struct rm_backend *backend; /* draws dropout's uniforms */
    uint64_t dropout_seed, dropout_update;
};

/* out: (batch, [quantiles,] rm_net_outputs()). */
void reference_forward(const struct rm_network_config *config, const struct rm_net_shape *shape,
                       const struct rm_net *net, const double *params,
                       const struct reference_input *input, double *out);

#endif
