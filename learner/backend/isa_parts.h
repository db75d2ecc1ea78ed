/* isa_parts: the functions behind one table, declared for the files that are compiled per level. */
#ifndef RM_LEARNER_BACKEND_ISA_PARTS_H
#define RM_LEARNER_BACKEND_ISA_PARTS_H

#include "learner/backend/isa.h"
#include "learner/backend/kernels.h"

/* Columns of a panel of a product, rows of it that the first or second cache holds, and columns at
 * once for a row alone. */
#if defined(__AVX512F__)
#define RM_PRODUCT_PANEL 64u
#define RM_PRODUCT_DEPTH 512u
#define RM_PRODUCT_ALONE 128u
#elif defined(__AVX2__)
#define RM_PRODUCT_PANEL 16u
#define RM_PRODUCT_DEPTH 256u
#define RM_PRODUCT_ALONE 64u
#else
#define RM_PRODUCT_PANEL 16u
#define RM_PRODUCT_DEPTH 256u
#define RM_PRODUCT_ALONE 32u
#endif

void RM_ISA_NAME(product)(const struct rm_product *p);
void RM_ISA_NAME(product_alone)(const struct rm_product *p, size_t step);
void RM_ISA_NAME(bias_act)(const float *c, size_t ldc, uint32_t rows, uint32_t cols,
                           const float *bias, enum rm_activation act, float *y, size_t ldy);
void RM_ISA_NAME(narrow)(const float *x, const float *w, const float *bias, uint32_t rows,
                         uint32_t in, uint32_t out, enum rm_activation act, float *y);
void RM_ISA_NAME(narrow_pack)(const float *w, uint32_t in, uint32_t out, float *packed);
void RM_ISA_NAME(narrow_dx)(const float *dy, const float *w, uint32_t rows, uint32_t in,
                            uint32_t out, float *dx);
void RM_ISA_NAME(column_sums)(const float *x, uint32_t rows, uint32_t cols, uint32_t from,
                              uint32_t to, float *sums);
void RM_ISA_NAME(transpose)(const float *x, uint32_t rows, uint32_t cols, float *y, uint32_t ldy);
void RM_ISA_NAME(activate)(enum rm_activation act, const float *x, size_t n, float *y);
void RM_ISA_NAME(activate_dx)(enum rm_activation act, const float *x, const float *y,
                              const float *dy, size_t n, float *dx);
void RM_ISA_NAME(layer_norm)(const float *x, const float *gamma, const float *beta, uint32_t rows,
                             uint32_t n, float *y, float *mean, float *rstd);
void RM_ISA_NAME(layer_norm_dx)(const float *x, const float *gamma, const float *mean,
                                const float *rstd, const float *dy, uint32_t rows, uint32_t n,
                                float *dx);
void RM_ISA_NAME(layer_norm_dp)(const float *x, const float *mean, const float *rstd,
                                const float *dy, uint32_t rows, uint32_t n, uint32_t from,
                                uint32_t to, float *dgamma, float *dbeta);
void RM_ISA_NAME(cosines)(const float *tau, size_t rows, uint32_t n, float *c);
void RM_ISA_NAME(broadcast_mul)(const float *x, const float *phi, uint32_t batch, uint32_t q,
                                uint32_t n, float *z);
void RM_ISA_NAME(broadcast_mul_dx)(const float *x, const float *phi, const float *dz,
                                   uint32_t batch, uint32_t q, uint32_t n, float *dx, float *dphi);
void RM_ISA_NAME(noisy_weights)(const float *mu, const float *sigma, const float *eps, size_t n,
                                float *w);
void RM_ISA_NAME(multiply)(const float *x, const float *y, size_t n, float *z);
void RM_ISA_NAME(normalize)(const float *x, const float *mean, const float *scale, float bound,
                            size_t rows, uint32_t n, float *y);
void RM_ISA_NAME(noisy_outer)(const float *eps_in, const float *eps_out, uint32_t in, uint32_t from,
                              uint32_t to, float *eps_w);
void RM_ISA_NAME(signed_root)(const float *x, size_t n, float *y);
void RM_ISA_NAME(dueling)(const float *in, uint32_t rows, uint32_t actions, uint32_t k, float *q);
void RM_ISA_NAME(dueling_dx)(const float *dq, uint32_t rows, uint32_t actions, uint32_t k,
                             float *din);
void RM_ISA_NAME(normals)(uint64_t key, uint32_t a, uint64_t c, uint32_t group, uint32_t groups,
                          float *out);
void RM_ISA_NAME(uniforms)(uint64_t key, uint32_t a, uint64_t c, uint32_t group, uint32_t groups,
                           float *out);
double RM_ISA_NAME(sum_squares)(const float *x, size_t n);
double RM_ISA_NAME(sum_squares_diff)(const float *x, const float *y, size_t n);
void RM_ISA_NAME(adam)(const struct rm_adam_factors *f, const float *grads, size_t n, float *params,
                       float *m, float *v);
void RM_ISA_NAME(rmsprop)(const struct rm_rmsprop *r, float scale, const float *grads, size_t n,
                          float *params, float *m, float *v);
void RM_ISA_NAME(combine)(float a, const float *x, float c, const float *y, size_t n, float *out);
void RM_ISA_NAME(sum_parts)(const float *parts, uint32_t count, size_t stride, size_t n,
                            float *sum);
void RM_ISA_NAME(lerp)(float tau, const float *params, size_t n, float *target);

#endif
