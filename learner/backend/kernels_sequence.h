/* kernels_sequence: the loops of recurrent cells, attention and tokens that are not matrix products
 * with weights; one table per instruction set. Like kernels.h: all work on a range that the caller
 * cut, none allocates or knows of threads. Row-major, float32. */
#ifndef RM_LEARNER_BACKEND_KERNELS_SEQUENCE_H
#define RM_LEARNER_BACKEND_KERNELS_SEQUENCE_H

#include "learner/backend/backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Floats per head that attention can take: its blocks stand on the stack. */
#define RM_ATTENTION_WIDTH_MAX 256u

/* One head of one sample: `rows` rows, `stride` floats apart in q, k and v, `width` floats wide. */
struct rm_attention_head {
    const float *q, *k, *v;
    uint32_t rows, stride, width;
    float scale;
    bool causal;
    float *o; /* (rows, width), `o_stride` apart */
    uint32_t o_stride;
    float *log_sum; /* (rows) `log_stride` apart: of exp of the scaled scores */
    uint32_t log_stride;
    /* backward: gradients, laid out like what they belong to */
    const float *made; /* o */
    const float *d_o;
    float *d_q, *d_k, *d_v;
};

struct rm_sequence_kernels {
    void (*gru)(const float *gx, const float *gh, const float *h, uint32_t lanes, uint32_t n,
                float *gates, float *y);
    void (*gru_dx)(const float *gates, const float *h, const float *dy, uint32_t lanes, uint32_t n,
                   float *dgx, float *dgh, float *dh);
    void (*lstm)(const float *gx, const float *gh, const float *c, uint32_t lanes, uint32_t n,
                 float *gates, float *c_next, float *y);
    void (*lstm_dx)(const float *gates, const float *c, const float *dy, float *dc, uint32_t lanes,
                    uint32_t n, float *dgates);
    void (*add)(const float *x, const float *y, size_t n, float *z);
    void (*attention)(const struct rm_attention_head *head);
    void (*attention_dx)(const struct rm_attention_head *head);
    /* Mean of rows of n, and a row scaled into each of `rows`. */
    void (*mean)(const float *x, uint32_t rows, uint32_t n, float *y);
    void (*mean_dx)(const float *dy, uint32_t rows, uint32_t n, float *dx);
    /* y[r] = scale * <x, rows[r]> */
    void (*dots)(const float *x, const float *from, uint32_t rows, uint32_t n, float scale,
                 float *y);
    /* dx += sum d[r] from[r], d_from[r] = d[r] x; d has the scale in it. */
    void (*dots_dx)(const float *d, const float *x, const float *from, uint32_t rows, uint32_t n,
                    float *dx, float *d_from);
    void (*relate)(const struct rm_relations *e, const int32_t *codes, const float *first,
                   const float *table, uint32_t rows, float *y);
    /* Columns [from, to) of the gradients, which are added to. */
    void (*relate_dw)(const struct rm_relations *e, const int32_t *codes, const float *dy,
                      uint32_t rows, uint32_t from, uint32_t to, float *d_first, float *d_table);
};

extern const struct rm_sequence_kernels rm_isa_v2_sequence_kernels, rm_isa_v3_sequence_kernels,
    rm_isa_v4_sequence_kernels;

#endif
