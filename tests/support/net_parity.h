/* net_parity: whole networks on the CPU and on a device, with equal parameters and rows: results,
 * gradients, states, and a pass for the result alone. On the device once more as a captured graph,
 * which must give the same bits. The CPU computing in another way passes for a device: there it is
 * simply done once more. */
#ifndef RM_TESTS_SUPPORT_NET_PARITY_H
#define RM_TESTS_SUPPORT_NET_PARITY_H

#include "tests/support/nets.h"

#include "learner/backend/plugin.h"

struct net_parity {
    /* |device - CPU| / |CPU| of the vectors of all results and of all gradients */
    double result, gradient;
    /* What these may be. Where products are of fewer bits: at least what the CPU's own vectors move
     * by, four times, when parameters and rows are off by as little, since activations with a
     * kink and rows that are nearly equal make any error larger. */
    double result_allowed, gradient_allowed;
    uint64_t bits; /* a hash of the device's */
    bool captured; /* the graph's are the same */
    bool failed;   /* no memory, or the device's error */
};

struct net_parity net_check(const struct named_net *of, struct rm_backend *cpu,
                            struct rm_backend *device, enum rm_compute compute, uint64_t seed);

#endif
