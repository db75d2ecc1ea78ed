/* worlds: the functions of device_worlds.h. */
#ifndef RM_LEARNER_BACKEND_CUDA_WORLDS_H
#define RM_LEARNER_BACKEND_CUDA_WORLDS_H

#include "learner/backend/cuda/cuda.h"

extern "C" {
#include "learner/backend/device_worlds.h"
}

/* The table, for plugin.cu. */
extern const struct rm_device_world_ops rm_cuda_worlds;

/* rollouts.cu */
void rm_cuda_worlds_begin(struct rm_backend *b, const struct rm_device_worlds *worlds);
void rm_cuda_worlds_draw(struct rm_backend *b, const struct rm_device_worlds *worlds,
                         const struct rm_device_draw *draw);
void rm_cuda_worlds_end(struct rm_backend *b, const struct rm_device_worlds *worlds,
                        const struct rm_device_orders *orders);

#endif
