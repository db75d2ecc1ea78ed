/* net: a network compiled from its configuration into one flat parameter arena and a plan of
 * buffers. Forward and backward, batched, float32, row-major (B, features).
 *
 * The arena: its first `act_count` floats (moments of inputs, weights, biases) suffice to act; only
 * training needs the rest (the state value of an actor-critic network, sigmas of noisy layers). The
 * learner keeps parameters, gradients and Adam moments as arenas of equal layout; the shared
 * weights region holds one; the actor copies the first act_count floats.
 *
 * A net is immutable and may be shared by threads; a workspace belongs to one thread (its backend
 * may use more inside). No allocation after rm_net_workspace_create().
 *
 * The result of a row depends neither on the other rows of the batch nor on the number of threads:
 * every output element is one chain of fused multiply-adds over k in a fixed order. Tests check
 * this to the bit. */
#ifndef RM_LEARNER_NET_NET_H
#define RM_LEARNER_NET_NET_H

#include "config/experiment.h"
#include "config/net_shape.h"
#include "learner/backend/backend.h"
#include "shm/base/error.h"
#include "shm/base/rng.h"

#include <stddef.h>
#include <stdint.h>

struct rm_net;
struct rm_net_workspace;
struct rm_net_cache;

/* Errors name the layer: "network.layers[2]: ...". */
int rm_net_compile(struct rm_net **net, const struct rm_network_config *config,
                   const struct rm_net_shape *shape, struct rm_error *error);
void rm_net_destroy(struct rm_net *net);

size_t rm_net_param_count(const struct rm_net *net); /* floats of the arena */
size_t rm_net_act_count(const struct rm_net *net);   /* leading floats that suffice to act */
size_t rm_net_noise_count(const struct rm_net *net); /* normals per noisy forward pass, 0 if none */
uint32_t rm_net_inputs(const struct rm_net *net);
uint32_t rm_net_outputs(const struct rm_net *net); /* of a row: actions * outputs_per_action, 2 per
                                                      real number, and the value of actor-critic
                                                      networks; of a packed history (history.h):
                                                      queries * (actions + types) */
bool rm_net_uses_quantiles(const struct rm_net *net); /* has a cosine embedding: needs tau */
bool rm_net_takes_codes(const struct rm_net *net);    /* an embedding reads the input, or part of
                                                         it: there x is int32 */
bool rm_net_is_recurrent(const struct rm_net *net);
uint32_t rm_net_state_count(const struct rm_net *net); /* floats of recurrent state per lane */
uint32_t rm_net_value_state_count(
    const struct rm_net *net); /* of these, the last ones: those of a separate value trunk */
double rm_net_forward_flops(const struct rm_net *net, uint32_t batch, uint32_t quantiles);
double rm_net_backward_flops(const struct rm_net *net, uint32_t batch, uint32_t quantiles);

/* A tensor of the arena by name, for files and tools: "layers.0.weight" (out, in). */
struct rm_net_tensor {
    char name[96];
    uint32_t dims;
    uint32_t shape[4];
    uint32_t flags; /* enum rm_net_tensor_flag */
    size_t offset;  /* floats into the arena */
};
size_t rm_net_tensors(const struct rm_net *net, const struct rm_net_tensor **tensors);

/* Fills the arena. network.init `default`: weights and biases U(+-1/sqrt(fan_in)); the others as
 * their names say, with network.gain in layers and policy_gain or value_gain in heads, biases 0.
 * Noisy: U(+-sqrt(3/fan_in)), factorised U(+-1/sqrt(fan_in)), sigma as configured. Layer norm 1
 * and 0; moments of inputs 0 and 1.
 */
void rm_net_init(const struct rm_net *net, float *params, struct rm_rng rng);

/* The results that a workspace computes. */
enum rm_net_use {
    RM_NET_INFER = 0, /* the whole output */
    RM_NET_TRAIN,     /* the same, and backward */
    RM_NET_ACT,       /* only logits or values of actions: reads act_count floats of params */
    RM_NET_VALUE,     /* only the state value; actor-critic only */
    RM_NET_LEARN,     /* only rm_net_learn(): a large network processes rows in chunks, with buffers
                       * for one chunk. rm_net_forward() takes only as many rows as the buffers
                       * hold */
};

/* Buffers for up to `max_batch` rows (times `max_quantiles` where the net uses them). */
int rm_net_workspace_create(struct rm_net_workspace **workspace, const struct rm_net *net,
                            struct rm_backend *backend, uint32_t max_batch, uint32_t max_quantiles,
                            enum rm_net_use use, struct rm_error *error);
/* Floats in a row of the workspace's results: rm_net_outputs(); without the value for RM_NET_ACT; 1
 * for RM_NET_VALUE. */
uint32_t rm_net_workspace_outputs(const struct rm_net_workspace *workspace);
void rm_net_workspace_destroy(struct rm_net_workspace *workspace);
/* Makes a workspace for training list the rows of an embedding's tables that have a gradient, and
 * clear only these before the next one. So no other code writes to the gradients between passes.
 * Does nothing on a device, with several embeddings, or for tables without `columns`. Call it at
 * most once. */
int rm_net_track_touched(struct rm_net_workspace *workspace, struct rm_error *error);
/* The rows of tables that have a gradient in `grads`, which the last backward pass wrote. *at:
 * where the tables begin in the arena. NULL: not known, any row may have one. */
const struct rm_touched *rm_net_touched(const struct rm_net_workspace *workspace,
                                        const float *grads, size_t *at);
size_t rm_net_workspace_bytes(const struct rm_net_workspace *workspace);
/* Operations of the products of a row's forward pass, as rm_net_forward_flops(): of the layers that
 * the workspace needs, and without the share of tokens that was padding in its batches so far. On a
 * device padding counts. */
double rm_net_workspace_row_flops(const struct rm_net_workspace *workspace, uint32_t quantiles);

/* Packs the weights of `params`; the workspace keeps packed, transposed or noise-free effective
 * weights. Call it before the first forward pass and after every change of params. If an update is
 * captured on a device, call it inside the capture, so that every update packs. */
void rm_net_prepare(struct rm_net_workspace *workspace, const float *params);

/* The input of a pass; all pointers are to the backend's memory. */
struct rm_net_input {
    const void *x; /* (batch, inputs) float, or int32 where rm_net_takes_codes(); with `index`,
                      (anything, inputs) */
    const uint32_t *index; /* (batch) row b of the batch is row index[b] of x; NULL: row b */
    uint32_t batch;
    const float *tau;   /* (batch, quantiles) in [0,1), or NULL */
    uint32_t quantiles; /* 0 when the net uses none */
    const float
        *noise; /* (noise_count) standard normals, one draw for the whole batch; NULL: off */
    /* Dropout is off if `dropout_update` is 0, and in workspaces for acting. The draws of a layer
     * are rm_dropout_of(dropout_seed, RM_STREAM_DROPOUT, a, dropout_update), where `a` is the
     * layer's index, plus RM_LAYERS_MAX in the value's own list, plus 2 RM_LAYERS_MAX in a list of
     * an input. Feature i of a row uses draw row * features + i. */
    uint64_t dropout_seed, dropout_update;
    uint32_t rows_before; /* for dropout: rows of the batch before these, on other devices */
    /* For values of real actions (rm_net_shape.acts): `action` has the actions, (batch, acts). A
     * backward pass writes their gradient to `d_action`, unless that is NULL. `action_only`: the
     * pass does not compute gradients of products' weights. */
    const float *action;
    float *d_action;
    bool action_only;
    /* Recurrent networks: rows are (steps, lanes) with batch = steps * lanes. A lane's row of
     * states has the states of all recurrent layers in order (LSTM: h, then c); those of the
     * value's own layers come last, and RM_NET_ACT omits them. `state` and `next_state` may be the
     * same memory. */
    uint32_t steps;         /* 0 and 1: one */
    const float *state;     /* (lanes, state_count) before the first step; NULL: zeros */
    float *next_state;      /* (lanes, state_count) after the last step; may be NULL */
    const uint8_t *restart; /* (steps, lanes) non-zero: the state is zero before this step */
    /* Networks over histories. Row b continues the context that `cache` (cache.h) keeps of lane
     * cache_lane + b, and adds its own context. NULL: rows are whole histories. */
    struct rm_net_cache *cache;
    uint32_t cache_lane;
};

/* A loss that is a sum over rows. rows() gets the network's outputs of rows [first, first + rows)
 * and writes their gradients. Several threads may call it at the same time for different rows; its
 * results must not depend on the division. The sums of all calls are added up in a fixed order. */
#define RM_NET_SUMS 8
struct rm_net_loss {
    void (*rows)(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                 double sums[RM_NET_SUMS]);
    void *self;
};

/* Returns (batch, [quantiles,] actions * outputs_per_action), valid until the next forward of this
 * workspace. Output index: action * outputs_per_action + j. Dueling is already combined. Actor-
 * critic: (batch, actions + 1), the state value last; see enum rm_net_use for parts of it. */
const float *rm_net_forward(struct rm_net_workspace *workspace, const float *params,
                            const struct rm_net_input *input);

/* As rm_net_forward(), but rm_net_backward() must not follow. So a workspace for training, too, may
 * process the rows in tiles, with the packed weights of rm_net_learn(). */
const float *rm_net_infer(struct rm_net_workspace *workspace, const float *params,
                          const struct rm_net_input *input);

/* Gradients of the last forward pass, with the same params and input, which must be unchanged.
 * `d_out` has the shape of the result; `grads` (param_count) is overwritten. The input's gradient
 * is not computed. */
void rm_net_backward(struct rm_net_workspace *workspace, const float *params,
                     const struct rm_net_input *input, const float *d_out, float *grads);

/* Forward, loss and backward in one: the same as the two calls above with the loss between, but may
 * process the rows in parts that fit a cache and use all threads at once. The workspace must be one
 * for training. grads (param_count) is overwritten, sums[] set. */
void rm_net_learn(struct rm_net_workspace *workspace, const float *params,
                  const struct rm_net_input *input, const struct rm_net_loss *loss, float *grads,
                  double sums[RM_NET_SUMS]);

/* For measurements: a trained pass once more. d_out NULL: as rm_net_learn(), with a loss that costs
 * next to nothing; else forward and backward. Counts no tokens and no padding. */
void rm_net_repeat(struct rm_net_workspace *workspace, const float *params,
                   const struct rm_net_input *input, const float *d_out, float *grads);

/* For debug.check_finite. rm_net_watch() sets whether rm_net_learn() checks inputs and results
 * while they are in the cache. rm_net_learned_finite() returns whether all of them were finite in
 * the last rm_net_learn(); false if no check was made since the previous call. */
void rm_net_watch(struct rm_net_workspace *workspace, bool watch);
bool rm_net_learned_finite(struct rm_net_workspace *workspace);

/* Running normalisation of inputs (network.normalize_observations): offsets of two vectors of the
 * arena, mean and 1 / deviation, (inputs) each. Their gradients are zeros; the owner of the moments
 * writes them into params. x becomes clip((x - mean) * scale, +-observation_clip). SIZE_MAX without
 * normalisation. */
size_t rm_net_input_mean_at(const struct rm_net *net);
size_t rm_net_input_scale_at(const struct rm_net *net);

/* Offsets of the value's last product, for PopArt: its weights and its bias. Without a state value
 * the offsets are SIZE_MAX and `weights` is 0. */
struct rm_net_value_output {
    size_t weight, bias; /* floats into the arena */
    uint32_t weights;
};
struct rm_net_value_output rm_net_value_output(const struct rm_net *net);

/* Flags of a tensor, which say how an optimizer treats it. */
enum rm_net_tensor_flag {
    RM_TENSOR_TRAINED = 1, /* moved by gradients */
    RM_TENSOR_MATRIX = 2,  /* a weight matrix: decayed, orthogonalised */
    RM_TENSOR_TABLE = 4,   /* rows are looked up: an update has gradients for few rows */
};

#endif
