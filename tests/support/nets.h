/* nets: the networks that tests of learner/net go through. */
#ifndef RM_TESTS_SUPPORT_NETS_H
#define RM_TESTS_SUPPORT_NETS_H

#include "learner/net/net.h"

struct named_net {
    const char *name;
    struct rm_network_config config;
    struct rm_net_shape shape;
    uint32_t batch, quantiles;
    bool noise;
};

/* Random floats in x (any numbers) become codes where the network takes those, int32 in place.
 * `copy`, unless NULL, gets the numbers that a network sees. */
void test_net_input(const struct named_net *of, const struct rm_net *net, float *x, size_t n,
                    double *copy);

extern const struct named_net test_nets[];
extern const size_t test_net_count;

/* Steps in the batch of a recurrent network: its largest divisor below it. Others: 0. */
uint32_t test_net_steps(const struct named_net *of);

/* A transformer over packed histories. */
extern const struct named_net darkroom_net;

/* The network of treasurehunt: 625 features, 4 actions. */
extern const struct named_net treasurehunt_net;

#endif
