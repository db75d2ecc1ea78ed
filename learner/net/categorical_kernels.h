/* categorical_kernels: the functions of categorical.isa.c, one copy for every instruction set. */
#ifndef RM_LEARNER_NET_CATEGORICAL_KERNELS_H
#define RM_LEARNER_NET_CATEGORICAL_KERNELS_H

#include "learner/net/categorical.h"

struct rm_categorical_rows {
    const struct rm_categorical *shape;
    const float *logits;
    size_t stride;
    const uint8_t *mask;
    uint32_t n;
};

struct rm_categorical_kernels {
    void (*draw)(const struct rm_categorical_rows *rows, const uint32_t *word, int32_t *action,
                 float *logp);
    void (*logp)(const struct rm_categorical_rows *rows, const int32_t *action, float *logp);
};

extern const struct rm_categorical_kernels rm_isa_v2_categorical, rm_isa_v3_categorical,
    rm_isa_v4_categorical;

#endif
