/* random_net: networks drawn at random, which between them have every layer, every kind of head and
 * of input. */
#ifndef RM_TESTS_SUPPORT_RANDOM_NET_H
#define RM_TESTS_SUPPORT_RANDOM_NET_H

#include "tests/support/nets.h"

struct random_net {
    struct named_net of; /* its name is the field below */
    char name[64];
};

/* Kinds that `number` goes through in turn: vectors, actor-critics, images, codes, tokens,
 * pointers, recurrent ones, quantiles, several inputs. */
#define RANDOM_NET_KINDS 9u

/* Network `number`: the same on every host. Small: some thousand parameters. */
void random_net_draw(uint32_t number, struct random_net *net);

#endif
