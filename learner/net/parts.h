/* parts: the inside of a compiled network. Only for the files of this room.
 *
 * A network is a list of steps; a step comes after the steps that it reads. A step reads the rows
 * of one step (`from`, RM_FROM_INPUT: the network's input) or of two (`other`). Several steps may
 * read a step's result: backward.c adds up their gradients.
 *
 * A kind of step is one file of steps/: compiling a layer to it, its buffers, forward and backward.
 * To add one:
 *   - a line of RM_STEPS below, and one of rm_layer_compile in steps.c;
 *   - in its file, `int rm_compile_NAME(struct rm_compiler *, const struct rm_layer_config *)`,
 *     which checks that the layer is allowed here (else rm_compile_refuse()), calls
 *     rm_compile_step() once or more and takes parameters by rm_compile_product() or
 *     rm_compile_tensor();
 *   - `const struct rm_step_ops rm_NAME_step`, whose functions are described below.
 * step_product.c implements products with weights: packing, noise, gradients, initial values,
 * flops, memory. A step declares its products and calls rm_net_product_forward() and
 * rm_net_product_backward(). */
#ifndef RM_LEARNER_NET_PARTS_H
#define RM_LEARNER_NET_PARTS_H

#include "learner/backend/device.h"
#include "learner/backend/token_set.h"
#include "learner/net/net.h"
#include "learner/net/tiles.h"

#include <stdbool.h>

/* The kinds of steps. X(NAME, name) declares RM_STEP_NAME and its functions, rm_name_step. */
/* clang-format off */
#define RM_STEPS(X) \
    X(LINEAR, linear) /* y = act(x W^T + b), noisy or not */ \
    X(ACTIVATE, activate) \
    X(LAYER_NORM, layer_norm) \
    X(COSINE, cosine) /* z = x * ReLU(cos(pi i tau) W^T + b): rows become rows * quantiles */ \
    X(DUELING, dueling) \
    X(NORMALIZE, normalize) /* of inputs, by their running moments */ \
    X(JOIN, join) /* (rows, a) and (rows, b) side by side */ \
    X(SLICE, slice) /* some numbers of each row, side by side */ \
    X(GRU, gru) \
    X(LSTM, lstm) \
    X(TOKENS, tokens) /* from this step on, padding has no rows */ \
    X(SPREAD, spread) /* tokens side by side, zeros for padding */ \
    X(POSITION, position) /* adds the table's row for its place to each token */ \
    X(MEAN_POOL, mean_pool) \
    X(FIRST, first) /* the first token alone */ \
    X(ATTENTION, attention) \
    X(POINTER, pointer) \
    X(ONE_HOT, one_hot) \
    X(NEIGHBOURS, neighbours) /* nodes, each beside the mean of its neighbours */ \
    X(GRAPH_ATTENTION, graph_attention) \
    X(OWN_NODE, own_node) /* one node of a graph alone */ \
    X(RESIDUAL, residual) \
    X(EMBEDDING, embedding) \
    X(CONV2D, conv2d) \
    X(DROPOUT, dropout) \
    X(DEVIATION, deviation) /* logarithms of deviations, the same in every row, after the means */ \
    X(ACTION, action) /* real actions, joined with the features of the observation */ \
    X(HISTORY, history) /* tokens of a packed history */ \
    X(QUERIES, queries) /* its queries alone */
/* clang-format on */

#define RM_STEP_KIND(NAME, name) RM_STEP_##NAME,
enum rm_step_kind { RM_STEPS(RM_STEP_KIND) RM_STEP_COUNT };
#undef RM_STEP_KIND

#define RM_NO_OFFSET        SIZE_MAX
#define RM_FROM_INPUT       UINT32_MAX /* value of rm_step.from: the network's input */
#define RM_FROM_NOTHING     (UINT32_MAX - 1)
#define RM_NET_PRODUCTS_MAX 4
#define RM_KEPT_MAX         12
#define RM_UNITS_MAX        65536u

/* The form of the rows between two steps. A state (an observation) has `tokens` rows of `features`,
 * times the number of quantiles after a cosine embedding. `padded`: only tokens that are not
 * padding have rows (see spans.c), one after another. */
struct rm_row_form {
    uint32_t features;
    uint32_t tokens; /* 1: a plain vector or an image */
    uint32_t padded; /* 0: every token has a row; n: tokens that are padding by rm_net.sets[n - 1]
                        have none */
    uint32_t
        queries; /* number of a state's last rows that are queries (history.h); 0: no history */
    uint32_t channels, height, width; /* features = their product; 0: not an image */
    bool per_quantile;
};

/* A matrix product with bias within a step: (rows, in) to (rows, out). */
struct rm_net_product {
    uint32_t in, out;
    bool noisy;
    double gain;                     /* factor of the initial weights */
    size_t weight, bias;             /* offsets in the arena, in floats */
    size_t sigma_weight, sigma_bias; /* the same; RM_NO_OFFSET unless noisy */
    size_t noise;                    /* offset in a draw of noise, in floats */
};

struct rm_step {
    enum rm_step_kind kind;
    struct rm_layer_config layer; /* as configured; zeros if the step has no layer */
    uint32_t number;              /* index of the layer in its list; plus RM_LAYERS_MAX in the
                                     value's own list, plus 2 RM_LAYERS_MAX in those of inputs */
    uint32_t from, other;         /* indices of the steps that it reads; other: RM_FROM_NOTHING if
                                     it reads only one */
    struct rm_row_form in, out;   /* `in`: the form of the rows of `from` */
    enum rm_activation act;       /* applied to its result */
    bool value;                   /* only the state value needs this step: acting leaves it out */
    bool trains;                  /* it has trained parameters, or depends on a step that has */
    uint32_t product_count;
    struct rm_net_product product[RM_NET_PRODUCTS_MAX];
    size_t weight, bias; /* offsets of other parameters in the arena; RM_NO_OFFSET: none */
    uint32_t state;      /* recurrent: offset in a lane's row of states, in floats */
    int32_t lowest;      /* embedding: the code of the table's first row */
    uint32_t at;         /* slice: the first of the numbers */
    uint32_t edges_at, edges_most, own_at; /* graph layers: as in struct rm_graph */
};

/* Maximum number of steps: one for each layer of `layers` and `value_layers`, three for each layer
 * of inputs; SLICE, TOKENS, SPREAD and JOIN for each input or group; and four for heads. */
#define RM_STEPS_MAX (5 * (RM_LAYERS_MAX + 2) + 4 + 4 * RM_INPUTS_MAX)
/* One set of tokens for each input or group, and one for all inputs together. */
#define RM_TOKEN_SETS_MAX (RM_INPUTS_MAX + 1)
#define RM_TENSORS_MAX    ((3 * (RM_LAYERS_MAX + 2) + 4) * 8)

struct rm_net {
    struct rm_network_config config;
    struct rm_net_shape shape;
    uint32_t step_count;
    struct rm_step steps[RM_STEPS_MAX];
    uint32_t act_result;   /* the step that makes logits or action values */
    uint32_t value_result; /* the step that makes the state value; RM_FROM_NOTHING: none */
    uint32_t result;       /* the step that makes the network's whole output */
    uint32_t prefix;       /* steps before quantiles multiply the rows; 0: no quantiles */
    size_t param_count, act_count, noise_count;
    uint32_t outputs, act_outputs;
    uint32_t act_state, value_state; /* recurrent state of a lane, in floats */
    size_t input_mean, input_scale;  /* offsets in the arena; RM_NO_OFFSET: not normalised */
    bool uses_quantiles, takes_codes;
    uint32_t set_count; /* of sets[]; 0: padding has rows */
    struct rm_token_set sets[RM_TOKEN_SETS_MAX];
    size_t tensor_count;
    struct rm_net_tensor tensors[RM_TENSORS_MAX];
};

/* --- compiling ------------------------------------------------------------------------------- */

struct rm_net_place { /* position of the compiler: the rows that the next step reads */
    uint32_t at;
    struct rm_row_form form;
};

struct rm_compiler {
    struct rm_net *net;
    struct rm_net_observation now;       /* the observation that the current layers read */
    const struct rm_input_config *input; /* whose layers these are; NULL: of no input */
    bool codes;                          /* the current layers begin with an embedding */
    uint32_t first_number;               /* rm_step.number of the first layer of `layers` */
    struct rm_error *error;
    struct rm_net_place place;
    const struct rm_layer_config *layers; /* the list that is compiled */
    uint32_t layer_count;                 /* of `layers` */
    uint32_t layer;                       /* index of the current layer; layer_count: the head */
    bool value;                           /* `layers` are the value's own, or the head is */
    struct rm_net_place before[RM_LAYERS_MAX]; /* the input of each layer */
    bool acted;                                /* the network reads the action, too */
    bool kept[RM_LAYERS_MAX + 1]; /* another step also reads this layer's input, so no activation
                                     may be fused into the step that makes it */
};

typedef int (*rm_compile_fn)(struct rm_compiler *c, const struct rm_layer_config *layer);

/* Fails with "network.layers[2]: gru: " and the message; -EINVAL. */
int rm_compile_refuse(struct rm_compiler *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds the next step, from c->place to rows of the form `out`, which become c->place. */
struct rm_step *rm_compile_step(struct rm_compiler *c, enum rm_step_kind kind,
                                struct rm_row_form out);
/* Adds the parameters "layers.2.PART" of d0 * d1 * ... floats. Returns their offset. */
size_t rm_compile_tensor(struct rm_compiler *c, const char *part, uint32_t flags, uint32_t dims,
                         const uint32_t *shape);
size_t rm_compile_vector(struct rm_compiler *c, const char *part, uint32_t n);
/* Adds a product to step s, with tensors "PREFIXweight" and "PREFIXbias". Returns its index in
 * s->product. */
uint32_t rm_compile_product(struct rm_compiler *c, struct rm_step *s, const char *prefix,
                            uint32_t in, uint32_t out, bool noisy);
/* Adds floats of recurrent state per lane for step s. */
void rm_compile_state(struct rm_compiler *c, struct rm_step *s, uint32_t floats);
/* Whether the next step reads an observation directly. */
bool rm_compile_reads_input(const struct rm_compiler *c);
/* Does a step, or one that it depends on, have trained parameters? */
bool rm_compile_trains(const struct rm_net *net, uint32_t step);
/* Compiles a list of layers. */
int rm_compile_layers(struct rm_compiler *c, const struct rm_layer_config *layers, uint32_t count);
bool rm_compile_looks_across(const struct rm_layer_config *layers, uint32_t count);
bool rm_compile_ends_in_pointer(const struct rm_network_config *config);
/* rm_compile_form(): the form of an observation's rows in the input. rm_compile_set(): its set of
 * tokens. */
struct rm_row_form rm_compile_form(const struct rm_net_observation *of);
struct rm_token_set rm_compile_set(const struct rm_compiler *c, const struct rm_net_observation *of,
                                   uint32_t tokens);
/* The step that made c->place, if an activation may still be fused into it; else NULL. */
struct rm_step *rm_compile_fusable(struct rm_compiler *c);

static inline struct rm_row_form rm_vector_form(struct rm_row_form like, uint32_t features)
{
    return (struct rm_row_form){.features = features,
                                .tokens = like.tokens,
                                .padded = like.padded,
                                .queries = like.queries,
                                .per_quantile = like.per_quantile};
}

/* --- running --------------------------------------------------------------------------------- */

struct rm_net_product_buffers {
    float *packed;  /* mean weights, packed */
    float *noisy_w; /* effective weights (out, in) of the last noisy forward */
    float *noisy_b;
    float *noisy_packed;
    float *packed_dx; /* training: effective weights as pack_dx() leaves them; NULL: not needed */
    float *eps_w, *eps_b;                 /* factorised noise, expanded */
    const float *now_packed, *now_bias;   /* of the current pass */
    bool fresh;                           /* `packed` has the current parameters */
    bool fresh_dx;                        /* `packed_dx` has the current parameters and noise */
    bool last_noisy;                      /* the last forward pass used noise */
    const float *last_eps_w, *last_eps_b; /* that noise */
    struct rm_image_rows images; /* form of a compact input, without `batch`; channels 0: the input
                                    is not compact */
};

/* Buffers of one step. Those that a step does not need are NULL. */
struct rm_step_buffers {
    float *y;                 /* the step's result */
    float *dy;                /* training: gradient of that result */
    bool whole;               /* y has the rows of all states, not only those of one group */
    bool compact;             /* a device's y and dy are compact images (backend.h) */
    float *pre;               /* training: the argument of an activation whose gradient needs it */
    float *kept[RM_KEPT_MAX]; /* buffers that the kind of step defines in its file */
    bool fresh; /* the members of kept[] that depend on parameters alone are up to date */
    struct rm_net_product_buffers product[RM_NET_PRODUCTS_MAX];
};

struct rm_net_workspace {
    const struct rm_net *net;
    struct rm_backend *backend;
    uint32_t max_batch, max_quantiles;
    enum rm_net_use use;
    bool training;
    bool watched;    /* rm_net_watch(): rm_net_learn() checks that results are finite */
    bool looked;     /* rm_net_learn() has checked results since they were last asked for */
    bool odd;        /* it has found a number that is not finite since then */
    uint32_t later;  /* the step whose rm_step_ops.backward() rm_net_backward() leaves to its
                        caller; RM_FROM_NOTHING: none */
    uint32_t result; /* the step whose result is returned */
    bool needed[RM_STEPS_MAX];
    struct rm_step_buffers steps[RM_STEPS_MAX];
    float *gathered;   /* (max_batch, inputs): rows picked by an index */
    float *scratch[2]; /* training: gradients of the rows of `from` and `other`, if another step's
                          gradient of these rows is there already: they are added to it */
    float *d_out;      /* training: the gradient that the loss of rm_net_learn() writes */
    const float *x;    /* the rows that the last forward read */
    struct rm_net_tiles *tiles; /* NULL: the network does not use tiles */
    bool in_chunks;             /* RM_NET_LEARN: batches are cut into chunks of max_batch rows */
    float *chunk_grads;         /* gradients of a chunk after the first */
    uint32_t *chunk_index;      /* rows of an incomplete chunk, filled up */
    /* If padding has no rows: in each set of tokens state i has the rows spans[i] to spans[i + 1],
     * and row r is token slots[r] of its state. spans (max_batch + 1), slots (max_batch * tokens of
     * the set); on a device, in its memory. */
    uint32_t *spans[RM_TOKEN_SETS_MAX], *slots[RM_TOKEN_SETS_MAX];
    /* Of all batches so far, by set; 0 on a device. */
    uint64_t tokens[RM_TOKEN_SETS_MAX], padding[RM_TOKEN_SETS_MAX];
    /* rm_net_track_touched(): which rows of the tables from `touched_at` on have a gradient in
     * `touched_grads` (NULL: not known); touched.rows NULL: they are not listed. */
    struct rm_touched touched;
    const float *touched_grads;
    size_t touched_at;
    float **owned; /* every allocation */
    size_t owned_count, floats;
};

/* One run through the steps. The current rows are those of states [first, first + states). */
struct rm_pass {
    struct rm_net_workspace *w;
    struct rm_backend *b;
    const struct rm_backend_ops *ops;
    const float *params;
    const struct rm_net_input *input;
    float *grads; /* backward: the whole arena */
    uint32_t first, states;
};

/* The current rows of a step. `dx` and `d_other` are NULL if not needed. */
struct rm_rows {
    struct rm_step_buffers *own;
    const float *x, *other; /* the step's input; int32 codes if the network takes them */
    float *y;
    float *dy; /* backward: a step may overwrite it, except the step that makes the network's
    result, whose dy belongs to the caller */
    float *dx, *d_other; /* backward: overwritten */
};

struct rm_step_ops {
    const char *name;
    /* The functions of a kind of step. A member may be NULL if the kind does not need it. */
    /* tiles.h uses a network if all its steps have one of these, and all their buffers come from
     * rm_workspace_want(). Rows depend neither on other rows nor on their position in the batch; on
     * those of their own lane alone; on those of their own state alone. */
    bool by_row, by_lane, by_state;
    bool pre; /* keeps the argument of an activation that needs it (rm_activation_reads_input) */
    /* Allocates kept[] by rm_workspace_want(). Returns false if there is no memory. */
    bool (*buffers)(struct rm_net_workspace *w, const struct rm_step *s, struct rm_step_buffers *b);
    /* Called before the rows, once per forward pass: computes what depends on parameters and noise
     * alone. Products are ready by then. */
    void (*prepare)(const struct rm_pass *p, const struct rm_step *s, struct rm_step_buffers *b);
    void (*forward)(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows);
    /* Processes all rows at once, and overwrites the gradients of the step's parameters. */
    void (*backward)(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows);
    /* Initialises parameters that no product has. */
    void (*init)(const struct rm_net *net, const struct rm_step *s, float *params,
                 struct rm_rng *rng);
    /* Returns the operations for the rows of one state (and quantile), without those of products;
     * less those of rows that products leave out. */
    double (*flops)(const struct rm_step *s);
};

/* steps.c */
extern const struct rm_step_ops *const rm_step_ops[RM_STEP_COUNT];
extern const rm_compile_fn rm_layer_compile[RM_LAYER_TYPE_COUNT];

/* Is the workspace's memory on a device? Then a step processes all rows at once. If padding has no
 * rows, buffers have room for every token, because only the device knows the number of rows. Unused
 * rows at the end are finite, and their gradients are zeros, so they add nothing to the gradients
 * of weights. */
static inline bool rm_on_device(const struct rm_net_workspace *w)
{
    return w->backend->device != NULL;
}

/* Whether the number of rows depends on the observations, and the host knows it. */
static inline bool rm_rows_vary(const struct rm_net_workspace *w)
{
    return w->net->set_count && !rm_on_device(w);
}

/* y = x, both in the backend's memory. */
static inline void rm_copy_floats(const struct rm_pass *p, float *y, const float *x, size_t n)
{
    p->ops->copy(p->b, y, x, n * sizeof *y);
}

/* rm_spans_of(): where the rows of each current state of a padded form begin and end.
 * rm_slots_of(): the token of each row. */
static inline const uint32_t *rm_spans_of(const struct rm_pass *p, const struct rm_row_form *form)
{
    return p->w->spans[form->padded - 1] + p->first;
}

static inline const uint32_t *rm_slots_of(const struct rm_pass *p, const struct rm_row_form *form)
{
    const uint32_t *slots = p->w->slots[form->padded - 1];
    return rm_on_device(p->w) ? slots : slots + rm_spans_of(p, form)[0];
}

/* Number of rows of this form that `states` states have, from `first` on. */
static inline size_t rm_state_rows(const struct rm_net_workspace *w,
                                   const struct rm_net_input *input, const struct rm_row_form *form,
                                   uint32_t first, uint32_t states)
{
    if (form->padded && !rm_on_device(w)) {
        const uint32_t *spans = w->spans[form->padded - 1] + first;
        return spans[states] - spans[0];
    }
    return (size_t)states * form->tokens * (form->per_quantile ? input->quantiles : 1);
}

/* Number of current rows of this form. */
static inline size_t rm_rows_of(const struct rm_pass *p, const struct rm_row_form *form)
{
    return rm_state_rows(p->w, p->input, form, p->first, p->states);
}

/* The current rows of a padded form, for the backend's operations. */
static inline struct rm_spans rm_span_rows(const struct rm_pass *p, const struct rm_row_form *form)
{
    return (struct rm_spans){.spans = rm_spans_of(p, form),
                             .slots = rm_slots_of(p, form),
                             .batch = p->states,
                             .places = form->tokens,
                             .rows = (uint32_t)rm_rows_of(p, form)};
}

/* Number of rows of this form before the current ones. */
static inline size_t rm_rows_before(const struct rm_pass *p, const struct rm_row_form *form)
{
    return rm_state_rows(p->w, p->input, form, 0, p->first);
}

/* Whether the rows that the step reads from `from` are compact. */
static inline bool rm_reads_compact(const struct rm_net_workspace *w, const struct rm_step *s)
{
    return s->from < w->net->step_count && w->steps[s->from].compact;
}

/* Offset of the current rows in a kept[] buffer of rows of this form; in training it has all
 * rows. */
static inline size_t rm_kept_at(const struct rm_pass *p, const struct rm_row_form *form)
{
    return p->w->training ? rm_rows_before(p, form) : 0;
}

/* Is the gradient of the input that step s reads from `from` needed? */
static inline bool rm_step_needs_dx(const struct rm_net *net, const struct rm_step *s)
{
    return s->from < net->step_count && net->steps[s->from].trains;
}

/* compact.c: chooses the steps on a device whose results and their gradients are compact images:
 * convolutions whose only reader takes compact rows, if the backend supports them. Call before any
 * buffer is made. */
void rm_compact_choose(struct rm_net_workspace *w);
/* steps/conv2d.c: the convolution of step s for rows that are not compact. */
struct rm_conv rm_step_conv(const struct rm_net_workspace *w, const struct rm_step *s);

/* workspace.c: an empty list of rows of step s's tables; false: no memory. */
bool rm_touched_make(struct rm_touched *touched, const struct rm_step *s);
void rm_touched_free(struct rm_touched *touched);
void rm_touched_forget(struct rm_touched *touched);

/* steps/embedding.c: the gradient of step s's tables, whose touched rows the workspace lists, from
 * all tokens of the pass; and list_touched() of the tables. */
void rm_embedding_touched(const struct rm_pass *p, const struct rm_step *s,
                          const struct rm_token_part *parts, uint32_t count);
void rm_embedding_list(struct rm_backend *b, const struct rm_step *s,
                       const struct rm_token_part *part, struct rm_touched *touched);

/* cache.c: the rows of lanes' contexts that attention reads again in later passes. */
struct rm_net_cache {
    const struct rm_net *net;
    uint32_t lanes;
    uint32_t rows;               /* room for so many of a lane: whole blocks */
    uint32_t *count;             /* (lanes) rows kept of the context */
    float *keys[RM_STEPS_MAX];   /* of each attention: (lanes, rows * units), see attention.h */
    float *values[RM_STEPS_MAX]; /* alike */
};
/* Number of rows that the cache has of the lane of state `i` of the pass; 0 without a cache. */
uint32_t rm_cache_had(const struct rm_pass *p, uint32_t i);
/* Keeps the context rows of the pass. */
void rm_cache_keep(struct rm_net_workspace *w, const struct rm_net_input *input);

/* look.c: whether the input and all results of the last forward pass are finite. */
bool rm_net_results_finite(const struct rm_net_workspace *w, const struct rm_net_input *input);

/* learn.c: rows of a chunk. Many rows make reading weights and gradients cheap, few rows keep
 * buffers small. An incomplete chunk is filled up to a multiple of RM_CHUNK_STEP with copies of its
 * last row, whose gradients are zero, because the backend has kernels for few numbers of rows. */
#define RM_CHUNK_ROWS 512u
#define RM_CHUNK_STEP 64u
bool rm_net_fits_chunks(const struct rm_net *net);

/* Minimum number of rows for which a forward pass is cut into tiles for several threads. */
#define RM_TILES_WORTH 64u

/* forward.c: the two parts of rm_net_forward(). rm_net_ready() prepares weights,
 * rm_net_forward_ready() computes the rows. */
void rm_net_ready(struct rm_net_workspace *w, const float *params,
                  const struct rm_net_input *input);
const float *rm_net_forward_ready(struct rm_net_workspace *w, const float *params,
                                  const struct rm_net_input *input);

/* workspace.c. rm_net_workspace_create(), with or without tiles. */
int rm_workspace_make(struct rm_net_workspace **out, const struct rm_net *net,
                      struct rm_backend *backend, uint32_t max_batch, uint32_t max_quantiles,
                      enum rm_net_use use, bool tiles, struct rm_error *error);

/* Floats of a lane's row of states, without the value's if only the policy acts. */
static inline size_t rm_workspace_states(const struct rm_net_workspace *w)
{
    return w->use == RM_NET_ACT ? w->net->act_state
                                : (size_t)w->net->act_state + w->net->value_state;
}

/* workspace.c. rm_workspace_want() allocates *p if it is needed; false: no memory.
 * rm_workspace_rows_held(): rows of this form that a kept[] buffer of step s must have. */
bool rm_workspace_want(struct rm_net_workspace *w, bool needed, float **p, size_t floats);
size_t rm_workspace_rows_held(const struct rm_net_workspace *w, const struct rm_step *s,
                              const struct rm_row_form *form);

/* spans.c. rm_spans_find() finds the rows of w->x in all sets. rm_spans_group() returns the number
 * of states from `first` on that together have at most `most` rows in each set: at least one, at
 * most `most`. */
void rm_spans_find(struct rm_net_workspace *w, uint32_t batch);
uint32_t rm_spans_group(const struct rm_net_workspace *w, uint32_t first, uint32_t batch,
                        uint32_t most);

/* step_product.c */
bool rm_net_product_buffers(struct rm_net_workspace *w, const struct rm_net_product *m, size_t rows,
                            struct rm_net_product_buffers *b);
void rm_net_product_ready(const struct rm_pass *p, const struct rm_net_product *m,
                          struct rm_net_product_buffers *b);
void rm_net_product_forward(const struct rm_pass *p, const struct rm_net_product *m,
                            const struct rm_net_product_buffers *b, const float *x, size_t rows,
                            enum rm_activation act, float *y);
/* For a product without noise: adds the gradients of some rows to those of weights and, if
 * `biases`, of biases; writes dx unless NULL. Only if the backend has linear_dw_add(). */
void rm_net_product_backward_more(const struct rm_pass *p, const struct rm_net_product *m,
                                  struct rm_net_product_buffers *b, const float *x, const float *dy,
                                  size_t rows, bool biases, float *dx);
/* Writes only dx. */
void rm_net_product_dx(const struct rm_pass *p, const struct rm_net_product *m,
                       struct rm_net_product_buffers *b, const float *dy, size_t rows, float *dx);
/* Writes the gradients of weights, biases and sigmas, and dx unless NULL. */
void rm_net_product_backward(const struct rm_pass *p, const struct rm_net_product *m,
                             struct rm_net_product_buffers *b, const float *x, const float *dy,
                             size_t rows, float *dx);
/* Changes dy to the gradient before s->act, in place. */
void rm_step_through_activation(const struct rm_pass *p, const struct rm_step *s,
                                const struct rm_step_buffers *b, float *dy);

/* init.c: initial weights (out, in) by network.init, and `n` biases, which use the weights'
 * fan-in. */
void rm_init_weights(const struct rm_net *net, float *p, uint32_t out, uint32_t in, uint32_t fan_in,
                     uint32_t fan_out, double gain, struct rm_rng *rng);
void rm_init_biases(const struct rm_net *net, float *p, uint32_t n, uint32_t fan_in,
                    struct rm_rng *rng);
void rm_init_fill(float *p, size_t n, double value);
void rm_init_fill_uniform(float *p, size_t n, double bound, struct rm_rng *rng); /* +-bound */
void rm_init_normals(double *p, size_t n, struct rm_rng *rng);
void rm_init_fill_normal(float *p, size_t n, double deviation, struct rm_rng *rng);

/* Whether the gradient of an activation needs the activation's argument, not only its result. */
static inline bool rm_activation_reads_input(enum rm_activation act)
{
    return act == RM_ACT_GELU || act == RM_ACT_SILU;
}

/* Rows of a group for each thread: with 250 features, rows and weights fit into a cache of 1 MB. */
#define RM_GROUP_ROWS 128u

/* Number of states that a forward pass processes at a time if there are many rows; at most the
 * batch that the buffers hold. */
uint32_t rm_net_group_states(const struct rm_net_workspace *workspace, uint32_t quantiles);

#endif
