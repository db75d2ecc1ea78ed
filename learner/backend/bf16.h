/* bf16: products of layers with inputs rounded to bfloat16 and sums in float32 (learner.compute
 * "bf16"), on processors that have an instruction for it. Parameters and results stay float32;
 * inputs are rounded on the way, a tile at a time, and weights when they are packed.
 *
 * Narrow layers, with at most RM_NARROW_MAX inputs or outputs, have other loops and stay float32:
 * they would gain little, and observations and heads keep their precision.
 *
 * Tiles depend on the shape alone, and an element is added up in the order of k, in groups that
 * depend on k alone, so results are the same for any number of threads and for every batch that a
 * row is in. */
#ifndef RM_LEARNER_BACKEND_BF16_H
#define RM_LEARNER_BACKEND_BF16_H

#include "learner/backend/backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_cpu;

/* Whether this backend computes layers of this shape in bf16. */
bool rm_bf16_takes(const struct rm_cpu *cpu, uint32_t in, uint32_t out);

/* W(out, in) in panels, of outputs for forward, of inputs for the gradient of the input. */
size_t rm_bf16_packed_floats(uint32_t out, uint32_t in);
void rm_bf16_pack(struct rm_cpu *cpu, const float *w, uint32_t out, uint32_t in, float *wt);
size_t rm_bf16_packed_dx_floats(uint32_t out, uint32_t in);
void rm_bf16_pack_dx(struct rm_cpu *cpu, const float *w, uint32_t out, uint32_t in, float *wt);

/* The backend's linear() and linear_dx() with w packed. */
void rm_bf16_linear(struct rm_cpu *cpu, const float *x, const float *wt, const float *bias,
                    uint32_t batch, uint32_t in, uint32_t out, enum rm_activation act, float *y);
void rm_bf16_linear_dx(struct rm_cpu *cpu, const float *dy, const float *wt, uint32_t batch,
                       uint32_t in, uint32_t out, float *dx);

/* y(rows, m) = or += x(rows, k) A(k, m), in the calling thread alone; A is rounded before. */
size_t rm_bf16_rounded_floats(uint32_t k, uint32_t m);
void rm_bf16_round_matrix(const float *a, uint32_t k, uint32_t m, float *rounded);
void rm_bf16_multiply(const float *x, const float *rounded, uint32_t rows, uint32_t k, uint32_t m,
                      bool add, float *y);

/* One tile of dw(out, in) = or += dy(rows, out)^T x(rows, in). */
uint32_t rm_bf16_dw_tiles(uint32_t in, uint32_t out);
void rm_bf16_dw_tile(const float *dy, const float *x, uint32_t rows, uint32_t in, uint32_t out,
                     bool add, float *dw, uint32_t tile);

#endif
