/* net: a network compiled from its configuration into one flat parameter arena and a plan of
 * buffers. Forward and backward, batched, float32, row-major (B, features).
 *
 * The arena: the first `act_count` floats suffice to act (weights, biases); then what only training
 * needs (sigmas of noisy layers). The learner keeps parameters, gradients and Adam moments as
 * arenas of equal layout; the shared weights region holds one; the actor copies the first act_count
 * floats.
 *
 * A net is immutable and may be shared by threads; a workspace belongs to one thread (its backend
 * may use more inside). No allocation after rm_net_workspace_create().
 *
 * Results do not depend on the batch a row is in, nor on the number of threads: every output
 * element is one chain of fused multiply-adds over k in a fixed order. Tests hold this to the bit.
 */
#ifndef RM_LEARNER_NET_NET_H
#define RM_LEARNER_NET_NET_H

#include "config/experiment.h"
#include "learner/backend/backend.h"
#include "shm/base/error.h"
#include "shm/base/rng.h"

#include <stddef.h>
#include <stdint.h>

struct rm_net_shape {
    uint32_t inputs; /* features of one input row (frame stack included) */
    uint32_t actions;
    uint32_t outputs_per_action; /* 1; QR-DQN: number of quantiles */
};

struct rm_net;
struct rm_net_workspace;

/* Errors name the layer: "network.layers[2]: ...". */
int rm_net_compile(struct rm_net **net, const struct rm_network_config *config,
                   const struct rm_net_shape *shape, struct rm_error *error);
void rm_net_destroy(struct rm_net *net);

size_t rm_net_param_count(const struct rm_net *net); /* floats of the arena */
size_t rm_net_act_count(const struct rm_net *net);   /* leading floats that suffice to act */
size_t rm_net_noise_count(const struct rm_net *net); /* normals per noisy forward pass, 0 if none */
uint32_t rm_net_inputs(const struct rm_net *net);
uint32_t rm_net_outputs(const struct rm_net *net);    /* actions * outputs_per_action */
bool rm_net_uses_quantiles(const struct rm_net *net); /* has a cosine embedding: needs tau */
double rm_net_forward_flops(const struct rm_net *net, uint32_t batch, uint32_t quantiles);

/* A tensor of the arena by name, for files and tools: "layers.0.weight" (out, in). */
struct rm_net_tensor {
    char name[64];
    uint32_t dims;
    uint32_t shape[2];
    size_t offset; /* floats into the arena */
};
size_t rm_net_tensors(const struct rm_net *net, const struct rm_net_tensor **tensors);

/* Fills the arena. Linear: U(+-1/sqrt(fan_in)) or orthogonal; noisy: U(+-sqrt(3/fan_in)), sigma as
 * configured; biases of linear U(+-1/sqrt(fan_in)), orthogonal: 0; layer norm 1 and 0. */
void rm_net_init(const struct rm_net *net, float *params, struct rm_rng rng);

/* Buffers for up to `max_batch` rows (times `max_quantiles` where the net uses them).
 * `training` adds what backward needs. */
int rm_net_workspace_create(struct rm_net_workspace **workspace, const struct rm_net *net,
                            struct rm_backend *backend, uint32_t max_batch, uint32_t max_quantiles,
                            bool training, struct rm_error *error);
void rm_net_workspace_destroy(struct rm_net_workspace *workspace);
size_t rm_net_workspace_bytes(const struct rm_net_workspace *workspace);

/* Tells the workspace that `params` changed (it caches packed, transposed or noise-free effective
 * weights). Must be called before the first forward and after every change of params. */
void rm_net_prepare(struct rm_net_workspace *workspace, const float *params);

struct rm_net_input {
    const float *x; /* (batch, inputs) */
    uint32_t batch;
    const float *tau;   /* (batch, quantiles) in [0,1), or NULL */
    uint32_t quantiles; /* 0 when the net uses none */
    const float
        *noise; /* (noise_count) standard normals, one draw for the whole batch; NULL: off */
};

/* Returns (batch, [quantiles,] actions * outputs_per_action), valid until the next forward of this
 * workspace. Output index: action * outputs_per_action + j. Dueling is already combined. */
const float *rm_net_forward(struct rm_net_workspace *workspace, const float *params,
                            const struct rm_net_input *input);

/* Gradients of the last forward (same params and input, which must still be in place): `d_out` has
 * the shape of its result; `grads` (param_count) is overwritten. The input's gradient is not made.
 */
void rm_net_backward(struct rm_net_workspace *workspace, const float *params,
                     const struct rm_net_input *input, const float *d_out, float *grads);

#endif
