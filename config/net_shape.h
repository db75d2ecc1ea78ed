/* net_shape: what a world and an algorithm require of a network: the layout of its input and its
 * head. Filled by rm_plan_net_shape() (actor/worlds/plan.h), part of the plan. Plain data. */
#ifndef RM_CONFIG_NET_SHAPE_H
#define RM_CONFIG_NET_SHAPE_H

#include "config/experiment.h"

#include <stdint.h>

#define RM_CHOICES_MAX 8

/* The head of a network. */
enum rm_net_head {
    RM_HEAD_VALUES = 0,   /* a value per action (times outputs_per_action), maybe dueling */
    RM_HEAD_LOGITS,       /* a logit per action, initial gain network.policy_gain; behind them means
                           * and deviations of reals */
    RM_HEAD_ACTOR_CRITIC, /* the same, then one state value: outputs = actions + 2 reals + 1. The
                           * value has the trunk of the policy or its own (network.trunk) and comes
                           * after act_count in the arena, so acting needs none of it */
};

/* One of several observations in an input row: the counts of its frames, if it is counted, then its
 * elements. */
struct rm_net_observation {
    char name[RM_INPUT_NAME_MAX];
    uint32_t at, counts, words; /* where it is in the row, its counts, its numbers after them */
    uint32_t item;              /* counted: numbers of each that is counted */
    uint32_t dims, dim[4];      /* as in struct rm_net_shape; dims 0: a vector */
    double low, high;
};

struct rm_net_shape {
    uint32_t inputs; /* features of one input row (frame stack included) */
    uint32_t actions;
    uint32_t outputs_per_action; /* 1; QR-DQN: number of quantiles */
    uint32_t choices;            /* independent choices of a step; `actions` is the sum over
                                  * choices. 0 and 1: one choice, of `actions` */
    uint32_t choice_actions[RM_CHOICES_MAX]; /* choices > 1 */
    uint32_t reals;                          /* real numbers of a step, beside the choices or alone
                                              * (`actions` 0): the policy has a mean and the
                                              * logarithm of a deviation for each */
    uint32_t deviation_of_state;             /* 0: the logarithms are parameters */
    uint32_t acts;                           /* values of real actions: the action is an input of
                                              * so many numbers, and there is one value */
    enum rm_net_head head;
    /* Layout of a row, for layers that use it; dims 0: a vector. conv2d: (channels, height, width),
     * where frames of a stack are channels. Tokens (attention, pointer): (tokens, features);
     * embedding: one token per number, or (tokens, numbers) summed within the token. */
    uint32_t dims;
    uint32_t dim[4];
    double low, high; /* bounds of every element; embedding: codes = high - low + 1 */
    /* Packed histories (learner/net/history.h), for a network that begins with the layer `history`;
     * queries 0: the input is none. */
    struct rm_history_shape {
        uint32_t queries;     /* of a sample */
        uint32_t query_codes; /* a query is a whole number below this; 0: an observation */
        uint32_t types;       /* logits behind those of actions */
    } history;
    /* Several observations in a row, or one that is counted: then the row itself is a vector. */
    uint32_t observations;
    struct rm_net_observation observation[RM_INPUTS_MAX];
};

#endif
