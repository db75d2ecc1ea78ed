/* trained: one network that is moved by gradients: its parameters, their last gradient, a workspace
 * for training and an optimizer. For trainers that have several. Belongs to one thread; nothing is
 * allocated after create. */
#ifndef RM_LEARNER_ALGO_TRAINED_H
#define RM_LEARNER_ALGO_TRAINED_H

#include "learner/algo/guard.h"
#include "learner/algo/optimizer.h"
#include "learner/net/net.h"

struct rm_trained {
    struct rm_backend *backend;
    struct rm_net *net;
    struct rm_net_workspace *space;
    struct rm_optimizer *optimizer;
    size_t count;
    float *params, *grads; /* (count), the backend's memory */
    double norm;           /* of the last gradient */
};

/* A network of experiment->network for batches of `batch` rows. On failure what was made is left
 * for rm_trained_destroy(), which takes a zeroed one too. */
int rm_trained_create(struct rm_trained *trained, struct rm_backend *backend,
                      const struct rm_experiment *experiment, const struct rm_net_shape *shape,
                      uint32_t batch, struct rm_error *error);
void rm_trained_destroy(struct rm_trained *trained);

/* From host memory; the optimizer starts afresh. */
void rm_trained_load(struct rm_trained *trained, const float *params);

/* Declares parameters and optimizer. */
void rm_trained_guard(struct rm_trained *trained, struct rm_guard *guard);

/* The gradient of the last forward pass, from the gradient of its result (the backend's memory). */
void rm_trained_backward(struct rm_trained *trained, const struct rm_net_input *input,
                         const float *d_out);

/* One step along it; rm_net_prepare() must follow. Returns the learning rate. */
double rm_trained_move(struct rm_trained *trained, double loss, uint64_t update, double progress);

#endif
