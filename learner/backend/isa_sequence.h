/* isa_sequence: the functions behind the table of kernels_sequence.h, declared for the files that
 * are compiled per level. */
#ifndef RM_LEARNER_BACKEND_ISA_SEQUENCE_H
#define RM_LEARNER_BACKEND_ISA_SEQUENCE_H

#include "learner/backend/isa.h"
#include "learner/backend/kernels_sequence.h"

void RM_ISA_NAME(gru)(const float *gx, const float *gh, const float *h, uint32_t lanes, uint32_t n,
                      float *gates, float *y);
void RM_ISA_NAME(gru_dx)(const float *gates, const float *h, const float *dy, uint32_t lanes,
                         uint32_t n, float *dgx, float *dgh, float *dh);
void RM_ISA_NAME(lstm)(const float *gx, const float *gh, const float *c, uint32_t lanes, uint32_t n,
                       float *gates, float *c_next, float *y);
void RM_ISA_NAME(lstm_dx)(const float *gates, const float *c, const float *dy, float *dc,
                          uint32_t lanes, uint32_t n, float *dgates);
void RM_ISA_NAME(add)(const float *x, const float *y, size_t n, float *z);
void RM_ISA_NAME(attention)(const struct rm_attention_head *head);
void RM_ISA_NAME(attention_dx)(const struct rm_attention_head *head);
void RM_ISA_NAME(span_mean)(const float *x, uint32_t rows, uint32_t n, float *y);
void RM_ISA_NAME(span_mean_dx)(const float *dy, uint32_t rows, uint32_t n, float *dx);
void RM_ISA_NAME(span_dots)(const float *x, const float *from, uint32_t rows, uint32_t n,
                            float scale, float *y);
void RM_ISA_NAME(span_dots_dx)(const float *d, const float *x, const float *from, uint32_t rows,
                               uint32_t n, float *dx, float *d_from);
void RM_ISA_NAME(relate)(const struct rm_relations *e, const int32_t *codes, const float *first,
                         const float *table, uint32_t rows, float *y);
void RM_ISA_NAME(relate_dw)(const struct rm_relations *e, const int32_t *codes, const float *dy,
                            uint32_t rows, uint32_t from, uint32_t to, float *d_first,
                            float *d_table);

#endif
