/* cpu: what the files of the CPU backend share. */
#ifndef RM_LEARNER_BACKEND_CPU_H
#define RM_LEARNER_BACKEND_CPU_H

#include "learner/backend/backend.h"
#include "learner/backend/direct.h"
#include "learner/backend/kernels.h"
#include "learner/backend/kernels_sequence.h"
#include "learner/backend/pool.h"

/* Chunks of the flat operations, and of sums. Fixed: they are part of the order of additions. All
 * operations on an arena have the same, so that a thread finds in its cache what it left there. */
#define RM_CPU_CHUNK    1024u
#define RM_CPU_PARTIALS 4096u

struct rm_cpu {
    struct rm_backend backend;
    const struct rm_kernels *kernels;
    const struct rm_sequence_kernels *sequence;
    struct rm_pool *pool;
    float *panels; /* weights that the gradient of an input loads */
    size_t panel_floats;
    bool bf16; /* products as in bf16.h */
    double partials[RM_CPU_PARTIALS];
};

static inline struct rm_cpu *rm_cpu_of(struct rm_backend *b)
{
    return b->self;
}

/* Runs tiles on the pool when the work is worth waking it (it depends on the shape alone), else in
 * place. `cost` in floats touched or multiply-adds / 16. */
static inline void rm_cpu_run(struct rm_cpu *cpu, rm_pool_fn fn, void *work, uint32_t tiles,
                              double cost)
{
    if (cost > 32768.0 && tiles > 1) {
        rm_pool_run(cpu->pool, fn, work, tiles);
        return;
    }
    for (uint32_t i = 0; i < tiles; i++)
        fn(work, i);
}

/* cpu_linear.c */
int rm_cpu_reserve(struct rm_backend *b, uint32_t batch, uint32_t in, uint32_t out, bool training);
size_t rm_cpu_packed_floats(struct rm_backend *b, uint32_t out, uint32_t in);
void rm_cpu_pack(struct rm_backend *b, const float *w, uint32_t out, uint32_t in, float *wt);
void rm_cpu_linear(struct rm_backend *b, const float *x, const float *wt, const float *bias,
                   uint32_t batch, uint32_t in, uint32_t out, enum rm_activation act, float *y);
void rm_cpu_linear_dx(struct rm_backend *b, const float *dy, const float *w, uint32_t batch,
                      uint32_t in, uint32_t out, float *dx);
size_t rm_cpu_packed_dx_floats(struct rm_backend *b, uint32_t out, uint32_t in);
void rm_cpu_pack_dx(struct rm_backend *b, const float *w, uint32_t out, uint32_t in, float *wt);
void rm_cpu_linear_dx_packed(struct rm_backend *b, const float *dy, const float *wt, uint32_t batch,
                             uint32_t in, uint32_t out, float *dx);
void rm_cpu_linear_dw_add(struct rm_backend *b, const float *dy, const float *x, uint32_t batch,
                          uint32_t in, uint32_t out, float *dw, float *db);
void rm_cpu_linear_dw(struct rm_backend *b, const float *dy, const float *x, uint32_t batch,
                      uint32_t in, uint32_t out, float *dw, float *db);

/* cpu_rows.c */
void rm_cpu_layer_norm(struct rm_backend *b, const float *x, const float *gamma, const float *beta,
                       uint32_t rows, uint32_t n, float *y, float *mean, float *rstd);
void rm_cpu_layer_norm_dx(struct rm_backend *b, const float *x, const float *gamma,
                          const float *mean, const float *rstd, const float *dy, uint32_t rows,
                          uint32_t n, float *dx, float *dgamma, float *dbeta);
void rm_cpu_cosines(struct rm_backend *b, const float *tau, size_t rows, uint32_t n, float *c);
void rm_cpu_broadcast_mul(struct rm_backend *b, const float *x, const float *phi, uint32_t batch,
                          uint32_t q, uint32_t n, float *z);
void rm_cpu_broadcast_mul_dx(struct rm_backend *b, const float *x, const float *phi,
                             const float *dz, uint32_t batch, uint32_t q, uint32_t n, float *dx,
                             float *dphi);
void rm_cpu_dueling(struct rm_backend *b, const float *in, uint32_t rows, uint32_t actions,
                    uint32_t k, float *q);
void rm_cpu_dueling_dx(struct rm_backend *b, const float *dq, uint32_t rows, uint32_t actions,
                       uint32_t k, float *din);
void rm_cpu_noisy_factors(struct rm_backend *b, const float *eps, uint32_t in, uint32_t out,
                          float *eps_w, float *eps_b);
void rm_cpu_gather(struct rm_backend *b, const void *x, const uint32_t *index, uint32_t rows,
                   uint32_t n, void *y);
void rm_cpu_normalize(struct rm_backend *b, const float *x, const float *mean, const float *scale,
                      float bound, size_t rows, uint32_t n, float *y);
void rm_cpu_join(struct rm_backend *b, const float *x, const float *y, size_t rows, uint32_t n,
                 uint32_t m, float *z);
void rm_cpu_split(struct rm_backend *b, const float *z, size_t rows, uint32_t n, uint32_t m,
                  float *x, float *y);

/* cpu_conv.c */
size_t rm_cpu_conv2d_packed_floats(struct rm_backend *b, const struct rm_conv *c);
void rm_cpu_conv2d_pack(struct rm_backend *b, const struct rm_conv *c, const float *w, float *wt);
size_t rm_cpu_conv2d_scratch_floats(struct rm_backend *b, const struct rm_conv *c, bool training);
int rm_cpu_conv2d_reserve(struct rm_backend *b, const struct rm_conv *c, uint32_t batch,
                          bool training);
void rm_cpu_conv2d(struct rm_backend *b, const struct rm_conv *c, const float *x, const float *wt,
                   const float *bias, uint32_t batch, enum rm_activation act, float *y,
                   float *scratch);
void rm_cpu_conv2d_dx(struct rm_backend *b, const struct rm_conv *c, const float *dy,
                      const float *w, uint32_t batch, float *dx, float *scratch);
void rm_cpu_conv2d_dw(struct rm_backend *b, const struct rm_conv *c, const float *dy,
                      const float *x, uint32_t batch, float *dw, float *db, float *scratch);

/* cpu_embedding.c */
void rm_cpu_embed(struct rm_backend *b, const struct rm_embedding *e, const int32_t *codes,
                  const float *table, float *y);
void rm_cpu_embed_dw(struct rm_backend *b, const struct rm_embedding *e, const int32_t *codes,
                     const float *dy, float *dtable);

/* cpu_flat.c */
void rm_cpu_dropout(struct rm_backend *b, uint64_t key, uint32_t stream, uint32_t a, uint64_t c,
                    float rate, size_t first, size_t n, const float *x, float *y);
void rm_cpu_activate(struct rm_backend *b, enum rm_activation act, const float *x, size_t n,
                     float *y);
void rm_cpu_activate_dx(struct rm_backend *b, enum rm_activation act, const float *x,
                        const float *y, const float *dy, size_t n, float *dx);
void rm_cpu_noisy_weights(struct rm_backend *b, const float *mu, const float *sigma,
                          const float *eps, size_t n, float *w);
void rm_cpu_multiply(struct rm_backend *b, const float *x, const float *y, size_t n, float *z);
void rm_cpu_normals(struct rm_backend *b, uint64_t key, uint32_t stream, uint32_t a, uint64_t c,
                    size_t n, float *out);
void rm_cpu_uniforms(struct rm_backend *b, uint64_t key, uint32_t stream, uint32_t a, uint64_t c,
                     size_t n, float *out);
double rm_cpu_sum_squares(struct rm_backend *b, const float *x, size_t n);
double rm_cpu_sum_squares_diff(struct rm_backend *b, const float *x, const float *y, size_t n);
void rm_cpu_adam(struct rm_backend *b, const struct rm_adam *adam, float scale, const float *grads,
                 size_t n, float *params, float *m, float *v);
void rm_cpu_rmsprop(struct rm_backend *b, const struct rm_rmsprop *rmsprop, float scale,
                    const float *grads, size_t n, float *params, float *m, float *v);
void rm_cpu_combine(struct rm_backend *b, float a, const float *x, float c, const float *y,
                    size_t n, float *out);
void rm_cpu_sum_parts(struct rm_backend *b, const float *parts, uint32_t count, size_t stride,
                      size_t n, float *sum);
void rm_cpu_lerp(struct rm_backend *b, float tau, const float *params, size_t n, float *target);

/* cpu_sequence.c */
void rm_cpu_gru(struct rm_backend *b, const float *gx, const float *gh, const float *h,
                uint32_t lanes, uint32_t n, float *gates, float *y);
void rm_cpu_gru_dx(struct rm_backend *b, const float *gates, const float *h, const float *dy,
                   uint32_t lanes, uint32_t n, float *dgx, float *dgh, float *dh);
void rm_cpu_lstm(struct rm_backend *b, const float *gx, const float *gh, const float *c,
                 uint32_t lanes, uint32_t n, float *gates, float *c_next, float *y);
void rm_cpu_lstm_dx(struct rm_backend *b, const float *gates, const float *c, const float *dy,
                    float *dc, uint32_t lanes, uint32_t n, float *dgates);
void rm_cpu_restart(struct rm_backend *b, const float *x, size_t x_stride, const uint8_t *restart,
                    uint32_t rows, uint32_t n, float *y, size_t y_stride);
void rm_cpu_add(struct rm_backend *b, const float *x, const float *y, size_t n, float *z);
void rm_cpu_attention(struct rm_backend *b, const struct rm_attention *a, const float *qkv,
                      float *o, float *stats);
void rm_cpu_attention_dx(struct rm_backend *b, const struct rm_attention *a, const float *qkv,
                         const float *o, float *stats, const float *d_o, float *d_qkv);
void rm_cpu_span_mean(struct rm_backend *b, const float *x, const uint32_t *spans, uint32_t batch,
                      uint32_t n, float *y);
void rm_cpu_span_mean_dx(struct rm_backend *b, const float *dy, const uint32_t *spans,
                         uint32_t batch, uint32_t rows, uint32_t n, float *dx);
void rm_cpu_span_first(struct rm_backend *b, const float *x, const uint32_t *spans, uint32_t batch,
                       uint32_t n, float *y);
void rm_cpu_span_first_dx(struct rm_backend *b, const float *dy, const uint32_t *spans,
                          uint32_t batch, uint32_t rows, uint32_t n, float *dx);
void rm_cpu_spread(struct rm_backend *b, const float *x, const uint32_t *spans,
                   const uint32_t *slots, uint32_t batch, uint32_t places, uint32_t n, float *y);
void rm_cpu_spread_dx(struct rm_backend *b, const float *dy, const uint32_t *spans,
                      const uint32_t *slots, uint32_t batch, uint32_t rows, uint32_t places,
                      uint32_t n, float *dx);
void rm_cpu_relate(struct rm_backend *b, const struct rm_relations *e, const int32_t *codes,
                   const float *first, const float *table, uint32_t rows, float *y);
void rm_cpu_relate_dw(struct rm_backend *b, const struct rm_relations *e, const int32_t *codes,
                      const float *dy, uint32_t rows, float *d_first, float *d_table);
void rm_cpu_pointer(struct rm_backend *b, const struct rm_pointer *p, const float *x, float *y);
void rm_cpu_pointer_dx(struct rm_backend *b, const struct rm_pointer *p, const float *x,
                       const float *dy, float *dx);

#endif
