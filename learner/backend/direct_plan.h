/* direct_plan: the kernels of direct.c for one shape of convolution. */
#ifndef RM_LEARNER_BACKEND_DIRECT_PLAN_H
#define RM_LEARNER_BACKEND_DIRECT_PLAN_H

#include "learner/backend/direct.h"

#include <libxsmm.h>

/* C(m, n) = or += A(m, k) B, in tiles; column-major as in gemm.h. B is (k, n), or (n, k) where
 * `outer`. */
struct rm_direct_product {
    uint32_t m, n, k;
    uint32_t tile_m, tile_n;
    int lda, ldb, ldc;
    bool outer;
    libxsmm_smmfunction kernel[2][2][2]; /* [adds][last of m][last of n] */
};

struct rm_direct_plan {
    struct rm_conv conv;
    struct rm_direct_product forward, dx, dw;
};

/* NULL only when out of memory. Looking up one that exists is safe in any thread. */
const struct rm_direct_plan *rm_direct_plan(struct rm_direct *direct, const struct rm_conv *c);

void rm_direct_product(const struct rm_direct_product *p, bool adds, const float *a, const float *b,
                       float *c);

#endif
