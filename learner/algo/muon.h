/* muon: moves one weight matrix along its orthogonalised momentum (Jordan 2024, "Muon: An optimizer
 * for hidden layers in neural networks", kellerjordan.github.io/posts/muon):
 *
 *   M <- mu M + (1 - mu) G            momentum
 *   U  = mu M + (1 - mu) G            Nesterov's look ahead
 *   X  = U / |U|_F, then five times   X <- a X + (b A + c A A) X,  A = X X^T
 *        with (a, b, c) = (3.4445, -4.7750, 2.0315)
 *   W <- (1 - rate decay) W - rate * 0.2 sqrt(max(rows, columns)) X
 *
 * The iteration moves all singular values into about [0.7, 1.2]. The factor 0.2 sqrt(max) gives a
 * step the root mean square of an AdamW step, so one learning rate serves matrices and the rest
 * (Liu 2025, "Muon is scalable for LLM training", eq. 4). Tensors of more than two dimensions are
 * matrices of their first dimension by the others. */
#ifndef RM_LEARNER_ALGO_MUON_H
#define RM_LEARNER_ALGO_MUON_H

#include "learner/backend/backend.h"
#include "shm/base/error.h"

#include <stddef.h>
#include <stdint.h>

/* Buffers for matrices of several shapes, in the backend's memory. */
struct rm_muon {
    struct rm_backend *backend;
    float *x, *next;      /* (rows, columns) */
    float *gram, *square; /* (k, k), k the lesser of the two */
    float *packed;        /* the packed right-hand side of a product */
    float *zeros, *sums;  /* (k) */
};

/* rows[i], columns[i]: the shapes of all matrices. */
int rm_muon_create(struct rm_muon *muon, struct rm_backend *backend, const uint32_t *rows,
                   const uint32_t *columns, uint32_t matrices, struct rm_error *error);
void rm_muon_destroy(struct rm_muon *muon);

struct rm_muon_step {
    float learning_rate, momentum, weight_decay;
    float scale; /* of the gradient */
};

/* Moves w and its momentum m; grads, w and m are (rows, columns). */
void rm_muon_apply(struct rm_muon *muon, const struct rm_muon_step *step, uint32_t rows,
                   uint32_t columns, const float *grads, float *w, float *m);

/* Only the iteration, on muon->x (rows, columns), for devices, which have kernels for the rest. */
void rm_muon_orthogonalise(struct rm_muon *muon, uint32_t rows, uint32_t columns);
float rm_muon_reach(uint32_t rows, uint32_t columns); /* 0.2 sqrt(max(rows, columns)) */

#endif
