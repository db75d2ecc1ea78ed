/* ops: the operations of backend.h, one function each, by the files of this folder; ops.cu puts
 * them into the table. */
#ifndef RM_LEARNER_BACKEND_CUDA_OPS_H
#define RM_LEARNER_BACKEND_CUDA_OPS_H

#include "learner/backend/cuda/cuda.h"

/* All of them; what memory is for has other files. */
void rm_cuda_operations(struct rm_backend_ops *ops);

int rm_cuda_reserve(struct rm_backend *b, uint32_t batch, uint32_t in, uint32_t out, bool training);
void rm_cuda_fill(struct rm_backend *b, float value, size_t n, float *x);
size_t rm_cuda_packed_floats(struct rm_backend *b, uint32_t out, uint32_t in);
void rm_cuda_pack(struct rm_backend *b, const float *w, uint32_t out, uint32_t in, float *wt);
void rm_cuda_linear(struct rm_backend *b, const float *x, const float *wt, const float *bias,
                    uint32_t batch, uint32_t in, uint32_t out, enum rm_activation act, float *y);
void rm_cuda_linear_dx(struct rm_backend *b, const float *dy, const float *w, uint32_t batch,
                       uint32_t in, uint32_t out, float *dx);
void rm_cuda_linear_dw(struct rm_backend *b, const float *dy, const float *x, uint32_t batch,
                       uint32_t in, uint32_t out, float *dw, float *db);
void rm_cuda_activate(struct rm_backend *b, enum rm_activation act, const float *x, size_t n,
                      float *y);
void rm_cuda_activate_dx(struct rm_backend *b, enum rm_activation act, const float *x,
                         const float *y, const float *dy, size_t n, float *dx);
void rm_cuda_layer_norm(struct rm_backend *b, const float *x, const float *gamma, const float *beta,
                        uint32_t rows, uint32_t n, float *y, float *mean, float *rstd);
void rm_cuda_layer_norm_dx(struct rm_backend *b, const float *x, const float *gamma,
                           const float *mean, const float *rstd, const float *dy, uint32_t rows,
                           uint32_t n, float *dx, float *dgamma, float *dbeta);
void rm_cuda_cosines(struct rm_backend *b, const float *tau, size_t rows, uint32_t n, float *c);
void rm_cuda_broadcast_mul(struct rm_backend *b, const float *x, const float *phi, uint32_t batch,
                           uint32_t q, uint32_t n, float *z);
void rm_cuda_broadcast_mul_dx(struct rm_backend *b, const float *x, const float *phi,
                              const float *dz, uint32_t batch, uint32_t q, uint32_t n, float *dx,
                              float *dphi);
void rm_cuda_noisy_weights(struct rm_backend *b, const float *mu, const float *sigma,
                           const float *eps, size_t n, float *w);
void rm_cuda_noisy_factors(struct rm_backend *b, const float *eps, uint32_t in, uint32_t out,
                           float *eps_w, float *eps_b);
void rm_cuda_multiply(struct rm_backend *b, const float *x, const float *y, size_t n, float *z);
size_t rm_cuda_conv2d_packed_floats(struct rm_backend *b, const struct rm_conv *c);
void rm_cuda_conv2d_pack(struct rm_backend *b, const struct rm_conv *c, const float *w, float *wt);
size_t rm_cuda_conv2d_scratch_floats(struct rm_backend *b, const struct rm_conv *c, bool training);
int rm_cuda_conv2d_reserve(struct rm_backend *b, const struct rm_conv *c, uint32_t batch,
                           bool training);
void rm_cuda_conv2d(struct rm_backend *b, const struct rm_conv *c, const float *x, const float *wt,
                    const float *bias, uint32_t batch, enum rm_activation act, float *y,
                    float *scratch);
void rm_cuda_conv2d_dx(struct rm_backend *b, const struct rm_conv *c, const float *dy,
                       const float *w, uint32_t batch, float *dx, float *scratch);
void rm_cuda_conv2d_dw(struct rm_backend *b, const struct rm_conv *c, const float *dy,
                       const float *x, uint32_t batch, float *dw, float *db, float *scratch);
bool rm_cuda_conv2d_compact(struct rm_backend *b, const struct rm_conv *c);
void rm_cuda_compact_activate(struct rm_backend *b, enum rm_activation act, size_t n, float *y);
void rm_cuda_compact_activate_dx(struct rm_backend *b, enum rm_activation act, const float *y,
                                 size_t n, float *dy);
void rm_cuda_compact_pack(struct rm_backend *b, const float *w, uint32_t out,
                          const struct rm_image_rows *x, float *wt);
void rm_cuda_compact_linear(struct rm_backend *b, const float *x, const struct rm_image_rows *rows,
                            const float *wt, const float *bias, uint32_t out,
                            enum rm_activation act, float *y);
void rm_cuda_compact_linear_dx(struct rm_backend *b, const float *dy, const float *w,
                               const struct rm_image_rows *rows, uint32_t out, float *dx);
void rm_cuda_compact_linear_dw(struct rm_backend *b, const float *dy, const float *x,
                               const struct rm_image_rows *rows, uint32_t out, float *dw,
                               float *db);
void rm_cuda_embed(struct rm_backend *b, const struct rm_embedding *e, const int32_t *codes,
                   const float *table, float *y);
void rm_cuda_embed_dw(struct rm_backend *b, const struct rm_embedding *e, const int32_t *codes,
                      const float *dy, float *dtable);
void rm_cuda_dropout(struct rm_backend *b, uint64_t key, uint32_t stream, uint32_t a, uint64_t c,
                     float rate, size_t first, size_t n, const float *x, float *y);
void rm_cuda_gather(struct rm_backend *b, const void *x, const uint32_t *index, uint32_t rows,
                    uint32_t n, void *y);
void rm_cuda_normalize(struct rm_backend *b, const float *x, const float *mean, const float *scale,
                       float bound, size_t rows, uint32_t n, float *y);
void rm_cuda_join(struct rm_backend *b, const float *x, const float *y, size_t rows, uint32_t n,
                  uint32_t m, float *z);
void rm_cuda_split(struct rm_backend *b, const float *z, size_t rows, uint32_t n, uint32_t m,
                   float *x, float *y);
void rm_cuda_dueling(struct rm_backend *b, const float *in, uint32_t rows, uint32_t actions,
                     uint32_t k, float *q);
void rm_cuda_dueling_dx(struct rm_backend *b, const float *dq, uint32_t rows, uint32_t actions,
                        uint32_t k, float *din);
void rm_cuda_gru(struct rm_backend *b, const float *gx, const float *gh, const float *h,
                 uint32_t lanes, uint32_t n, float *gates, float *y);
void rm_cuda_gru_dx(struct rm_backend *b, const float *gates, const float *h, const float *dy,
                    uint32_t lanes, uint32_t n, float *dgx, float *dgh, float *dh);
void rm_cuda_lstm(struct rm_backend *b, const float *gx, const float *gh, const float *c,
                  uint32_t lanes, uint32_t n, float *gates, float *c_next, float *y);
void rm_cuda_lstm_dx(struct rm_backend *b, const float *gates, const float *c, const float *dy,
                     float *dc, uint32_t lanes, uint32_t n, float *dgates);
void rm_cuda_restart(struct rm_backend *b, const float *x, size_t x_stride, const uint8_t *restart,
                     uint32_t rows, uint32_t n, float *y, size_t y_stride);
void rm_cuda_add(struct rm_backend *b, const float *x, const float *y, size_t n, float *z);
void rm_cuda_attention(struct rm_backend *b, const struct rm_attention *a, const float *qkv,
                       float *o, float *stats);
void rm_cuda_attention_dx(struct rm_backend *b, const struct rm_attention *a, const float *qkv,
                          const float *o, float *stats, const float *d_o, float *d_qkv);
void rm_cuda_find_spans(struct rm_backend *b, const void *x, uint32_t batch, uint32_t tokens,
                        uint32_t numbers, bool codes, bool first, uint32_t *spans, uint32_t *slots);
void rm_cuda_span_mean(struct rm_backend *b, const float *x, const uint32_t *spans, uint32_t batch,
                       uint32_t n, float *y);
void rm_cuda_span_mean_dx(struct rm_backend *b, const float *dy, const uint32_t *spans,
                          uint32_t batch, uint32_t rows, uint32_t n, float *dx);
void rm_cuda_span_first(struct rm_backend *b, const float *x, const uint32_t *spans, uint32_t batch,
                        uint32_t n, float *y);
void rm_cuda_span_first_dx(struct rm_backend *b, const float *dy, const uint32_t *spans,
                           uint32_t batch, uint32_t rows, uint32_t n, float *dx);
void rm_cuda_spread(struct rm_backend *b, const float *x, const uint32_t *spans,
                    const uint32_t *slots, uint32_t batch, uint32_t places, uint32_t n, float *y);
void rm_cuda_spread_dx(struct rm_backend *b, const float *dy, const uint32_t *spans,
                       const uint32_t *slots, uint32_t batch, uint32_t rows, uint32_t places,
                       uint32_t n, float *dx);
void rm_cuda_relate(struct rm_backend *b, const struct rm_relations *e, const int32_t *codes,
                    const float *first, const float *table, uint32_t rows, float *y);
void rm_cuda_relate_dw(struct rm_backend *b, const struct rm_relations *e, const int32_t *codes,
                       const float *dy, uint32_t rows, float *d_first, float *d_table);
void rm_cuda_pointer(struct rm_backend *b, const struct rm_pointer *p, const float *x, float *y);
void rm_cuda_pointer_dx(struct rm_backend *b, const struct rm_pointer *p, const float *x,
                        const float *dy, float *dx);
void rm_cuda_normals(struct rm_backend *b, uint64_t key, uint32_t stream, uint32_t a, uint64_t c,
                     size_t n, float *out);
void rm_cuda_uniforms(struct rm_backend *b, uint64_t key, uint32_t stream, uint32_t a, uint64_t c,
                      size_t n, float *out);
double rm_cuda_sum_squares(struct rm_backend *b, const float *x, size_t n);
double rm_cuda_sum_squares_diff(struct rm_backend *b, const float *x, const float *y, size_t n);
void rm_cuda_adam(struct rm_backend *b, const struct rm_adam *adam, float scale, const float *grads,
                  size_t n, float *params, float *m, float *v);
void rm_cuda_rmsprop(struct rm_backend *b, const struct rm_rmsprop *rmsprop, float scale,
                     const float *grads, size_t n, float *params, float *m, float *v);
void rm_cuda_combine(struct rm_backend *b, float a, const float *x, float c, const float *y,
                     size_t n, float *out);
void rm_cuda_sum_parts(struct rm_backend *b, const float *parts, uint32_t count, size_t stride,
                       size_t n, float *sum);
void rm_cuda_lerp(struct rm_backend *b, float tau, const float *params, size_t n, float *target);

#endif
