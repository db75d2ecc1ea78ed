/* per: prioritised replay on a device: entering rows in the tree, and priorities of errors
 * (device_draw.h). */
#ifndef RM_LEARNER_BACKEND_CUDA_PER_H
#define RM_LEARNER_BACKEND_CUDA_PER_H

#include "learner/backend/cuda/draw.h"

/* Enters rows that have arrived since the last draw. */
void rm_cuda_enter(struct rm_cuda *c, const struct rm_device_sampler *draw);

/* Members of struct rm_device_feed_ops. */
void rm_cuda_draw(struct rm_backend *b, const struct rm_device_sampler *draw); /* draw.cu */
void rm_cuda_learned(struct rm_backend *b, const struct rm_device_sampler *draw,
                     const float *error);
void rm_cuda_add_up(struct rm_backend *b, const struct rm_device_sampler *draw);

#endif
