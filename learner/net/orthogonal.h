/* orthogonal: random matrices of orthonormal rows or columns (Saxe et al., 2014), the same bits on
 * every host. */
#ifndef RM_LEARNER_NET_ORTHOGONAL_H
#define RM_LEARNER_NET_ORTHOGONAL_H

#include "shm/base/rng.h"

#include <stdint.h>

/* Fills p(rows, cols) with orthonormal rows (columns, if there are more rows than columns), times
 * gain, uniformly distributed among such matrices. Returns 0 or -ENOMEM. */
int rm_orthogonal(float *p, uint32_t rows, uint32_t cols, double gain, struct rm_rng *rng);

#endif
