/* kernels: the loops of the CPU backend, one table for each instruction set. A kernel works on the
 * range that its caller passes; it neither allocates nor uses threads. Arrays are row-major float32
 * and need no alignment. */
#ifndef RM_LEARNER_BACKEND_KERNELS_H
#define RM_LEARNER_BACKEND_KERNELS_H

#include "learner/backend/backend.h"
#include "learner/backend/product.h"

/* Normals and uniforms come in groups of this many: element i is a function of i alone. */
#define RM_RANDOM_GROUP 64u

/* Layers with at most this many outputs use `narrow`. */
#define RM_NARROW_MAX 16u
#define RM_NARROW_PAD 16u

struct rm_adam_factors {
    float step; /* learning rate / (1 - beta1^t) */
    float root; /* 1 / sqrt(1 - beta2^t) */
    float beta1, beta2, epsilon, scale;
    float decay; /* learning rate * weight decay */
};

/* Maximum floats per head of attention, whose blocks are on the stack. */
#define RM_ATTENTION_WIDTH_MAX 256u

/* One head of one sample: `rows` rows, `stride` floats apart in q, k and v, `width` floats wide.
 * The first `kept` rows are in the kept keys and values alone. Arrays begin with the row after
 * them. */
struct rm_attention_head {
    const float *q, *k, *v;
    uint32_t rows, stride, width;
    float scale;
    bool causal;
    uint32_t queries; /* as in rm_attention */
    uint32_t first;   /* forward: rows before this one get no result, and need no query */
    uint32_t kept;
    float *kept_keys,
        *kept_values;      /* as in rm_attention, from this head on; NULL: nothing is kept */
    uint32_t sample, head; /* sample of the batch */
    const struct rm_dropout *dropout;
    float *o; /* (rows, width), `o_stride` apart */
    uint32_t o_stride;
    float *log_sum; /* (rows), `log_stride` apart: ln of the sum of exp(scaled score) */
    uint32_t log_stride;
    /* For the backward pass. Gradients have the layout of their tensors. */
    const float *made; /* o, as the forward pass wrote it */
    const float *d_o;
    float *d_q, *d_k, *d_v;
};

struct rm_kernels {
    const char *isa; /* "x86-64-v3" */

    /* product.h: one panel of at most product_panel columns, for all of its k */
    void (*product)(const struct rm_product *p);
    /* n = 1, m = product_columns, all of k; `step` floats from one panel of A to the next */
    void (*product_alone)(const struct rm_product *p, size_t step);
    uint32_t product_columns;
    uint32_t product_panel;
    uint32_t product_depth; /* the part of k for which a panel of A stays in the cache */

    /* y = act(c + bias) for rows of cols, with strides ldc and ldy; c may be y */
    void (*bias_act)(const float *c, size_t ldc, uint32_t rows, uint32_t cols, const float *bias,
                     enum rm_activation act, float *y, size_t ldy);
    /* y(rows,out) = act(x(rows,in) w(out,in)^T + bias), out <= RM_NARROW_MAX; w is packed: rows of
     * `in` padded to a multiple of RM_NARROW_PAD */
    void (*narrow)(const float *x, const float *w, const float *bias, uint32_t rows, uint32_t in,
                   uint32_t out, enum rm_activation act, float *y);
    void (*narrow_pack)(const float *w, uint32_t in, uint32_t out, float *packed);
    /* dx(rows,in) = dy(rows,out) w(out,in), in <= RM_NARROW_MAX */
    void (*narrow_dx)(const float *dy, const float *w, uint32_t rows, uint32_t in, uint32_t out,
                      float *dx);
    /* Column sums of columns [from, to) of x(rows, cols), in fixed blocks of rows. */
    void (*column_sums)(const float *x, uint32_t rows, uint32_t cols, uint32_t from, uint32_t to,
                        float *sums);
    /* y(cols, ldy) = x(rows, cols)^T, then zeros */
    void (*transpose)(const float *x, uint32_t rows, uint32_t cols, float *y, uint32_t ldy);

    void (*activate)(enum rm_activation act, const float *x, size_t n, float *y);
    void (*activate_dx)(enum rm_activation act, const float *x, const float *y, const float *dy,
                        size_t n, float *dx);
    void (*layer_norm)(const float *x, const float *gamma, const float *beta, uint32_t rows,
                       uint32_t n, float *y, float *mean, float *rstd);
    void (*layer_norm_dx)(const float *x, const float *gamma, const float *mean, const float *rstd,
                          const float *dy, uint32_t rows, uint32_t n, float *dx);
    /* Columns [from, to) of dgamma and dbeta. */
    void (*layer_norm_dp)(const float *x, const float *mean, const float *rstd, const float *dy,
                          uint32_t rows, uint32_t n, uint32_t from, uint32_t to, float *dgamma,
                          float *dbeta);
    void (*cosines)(const float *tau, size_t rows, uint32_t n, float *c);
    void (*broadcast_mul)(const float *x, const float *phi, uint32_t batch, uint32_t q, uint32_t n,
                          float *z);
    void (*broadcast_mul_dx)(const float *x, const float *phi, const float *dz, uint32_t batch,
                             uint32_t q, uint32_t n, float *dx, float *dphi);
    void (*noisy_weights)(const float *mu, const float *sigma, const float *eps, size_t n,
                          float *w);
    /* y = x times dropout's factors, 0 or `scale`, of elements [at, at + n) of a part (dropout.h)
     */
    void (*dropout)(uint32_t part_key, uint32_t at, uint32_t below, float scale, const float *x,
                    size_t n, float *y);
    void (*multiply)(const float *x, const float *y, size_t n, float *z);
    void (*normalize)(const float *x, const float *mean, const float *scale, float bound,
                      size_t rows, uint32_t n, float *y);
    /* rows [from, to) of eps_w(out, in) = f(out) f(in)^T, f(x) = sgn(x) sqrt|x| */
    void (*noisy_outer)(const float *eps_in, const float *eps_out, uint32_t in, uint32_t from,
                        uint32_t to, float *eps_w);
    void (*signed_root)(const float *x, size_t n, float *y);
    void (*dueling)(const float *in, uint32_t rows, uint32_t actions, uint32_t k, float *q);
    void (*dueling_dx)(const float *dq, uint32_t rows, uint32_t actions, uint32_t k, float *din);
    /* Write groups [group, group + groups) of the sequence, RM_RANDOM_GROUP numbers each. */
    void (*normals)(uint64_t key, uint32_t a, uint64_t c, uint32_t group, uint32_t groups,
                    float *out);
    void (*uniforms)(uint64_t key, uint32_t a, uint64_t c, uint32_t group, uint32_t groups,
                     float *out);
    double (*sum_squares)(const float *x, size_t n);
    /* y NULL: the sum of squares of x. */
    double (*sum_squares_diff)(const float *x, const float *y, size_t n);
    void (*adam)(const struct rm_adam_factors *f, const float *grads, size_t n, float *params,
                 float *m, float *v);
    void (*rmsprop)(const struct rm_rmsprop *r, float scale, const float *grads, size_t n,
                    float *params, float *m, float *v);
    void (*combine)(float a, const float *x, float c, const float *y, size_t n, float *out);
    /* sum(n) = part 0 + part 1 + ...; part i is at parts + i * stride */
    void (*sum_parts)(const float *parts, uint32_t count, size_t stride, size_t n, float *sum);
    void (*lerp)(float tau, const float *params, size_t n, float *target);

    /* Recurrent cells of lanes [from, to). */
    void (*gru)(const struct rm_cells *cells, uint32_t from, uint32_t to);
    void (*gru_dx)(const struct rm_cells *cells, uint32_t from, uint32_t to);
    void (*lstm)(const struct rm_cells *cells, uint32_t from, uint32_t to);
    void (*lstm_dx)(const struct rm_cells *cells, uint32_t from, uint32_t to);
    void (*add)(const float *x, const float *y, size_t n, float *z);
    /* Attention and tokens. */
    void (*attention)(const struct rm_attention_head *head);
    void (*attention_dx)(const struct rm_attention_head *head);
    /* Mean of rows of n, and its gradient: a scaled row copied to each of `rows`. */
    void (*span_mean)(const float *x, uint32_t rows, uint32_t n, float *y);
    void (*span_mean_dx)(const float *dy, uint32_t rows, uint32_t n, float *dx);
    /* y[r] = scale * <x, rows[r]> */
    void (*span_dots)(const float *x, const float *from, uint32_t rows, uint32_t n, float scale,
                      float *y);
    /* dx += sum d[r] from[r], d_from[r] = d[r] x; d includes the scale. */
    void (*span_dots_dx)(const float *d, const float *x, const float *from, uint32_t rows,
                         uint32_t n, float *dx, float *d_from);
    void (*relate)(const struct rm_relations *e, const int32_t *codes, const float *first,
                   const float *table, uint32_t rows, float *y);
    /* Adds to columns [from, to) of the gradients. */
    void (*relate_dw)(const struct rm_relations *e, const int32_t *codes, const float *dy,
                      uint32_t rows, uint32_t from, uint32_t to, float *d_first, float *d_table);
    /* One sample of a graph. */
    void (*graph_mean)(const struct rm_graph *g, uint32_t sample, const float *x, uint32_t n,
                       float *y);
    void (*graph_mean_dx)(const struct rm_graph *g, uint32_t sample, const float *dy, uint32_t n,
                          float *dx);
    void (*graph_attention)(const struct rm_graph_attention *a, uint32_t sample, const float *qkv,
                            float *stats, float *o);
    void (*graph_attention_dx)(const struct rm_graph_attention *a, uint32_t sample,
                               const float *qkv, const float *o, const float *stats,
                               const float *d_o, float *d_source, float *d_qkv, float *d_score);
};

/* The functions of the table by name. */
/* clang-format off */
#define RM_KERNELS(X) \
    X(product) X(product_alone) X(bias_act) X(narrow) X(narrow_pack) X(narrow_dx) X(column_sums) \
    X(transpose) X(activate) X(activate_dx) X(layer_norm) X(layer_norm_dx) X(layer_norm_dp) \
    X(cosines) X(broadcast_mul) X(broadcast_mul_dx) X(noisy_weights) X(dropout) X(multiply) X(normalize) \
    X(noisy_outer) X(signed_root) X(dueling) X(dueling_dx) X(normals) X(uniforms) X(sum_squares) \
    X(sum_squares_diff) X(adam) X(rmsprop) X(combine) X(sum_parts) X(lerp) X(gru) X(gru_dx) \
    X(lstm) X(lstm_dx) X(add) X(attention) X(attention_dx) X(span_mean) X(span_mean_dx) \
    X(span_dots) X(span_dots_dx) X(relate) X(relate_dw) X(graph_mean) X(graph_mean_dx) \
    X(graph_attention) X(graph_attention_dx)
/* clang-format on */

extern const struct rm_kernels rm_isa_v2_kernels, rm_isa_v3_kernels, rm_isa_v4_kernels;

#endif
