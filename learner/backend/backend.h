/* backend: a table of the operations of networks and optimizers. The CPU's is built in; CUDA's is a
 * plugin (plugin.h) with the same table and that of device.h. Pointers are to the backend's
 * (device) memory, except where a comment names another.
 *
 * Each learner or actor has one backend object, which owns its threads.
 *
 * ORDER. On the CPU an operation is complete when it returns. A device (`staged`) runs operations
 * in the order of the calls, in its COMPUTE queue, after the calls have returned. upload(),
 * download() and sum_squares() are complete when they return, and must not be used inside an
 * update. Code for both reads results by copy_out(), mark() and wait(), which on the CPU cost
 * nothing.
 *
 * The order of a reduction is fixed and independent of the number of threads: work is cut into
 * tiles whose size does not depend on threads, and one tile computes each output element. */
#ifndef RM_LEARNER_BACKEND_BACKEND_H
#define RM_LEARNER_BACKEND_BACKEND_H

#include "config/compute.h"
#include "learner/backend/attention.h"
#include "learner/backend/dropout.h"
#include "learner/backend/graph.h"
#include "learner/backend/history_codes.h"
#include "learner/backend/token_set.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RM_BACKEND_API 3

struct rm_queue_mark;

/* A device's copies may run beside its operations. */
enum rm_queue {
    RM_QUEUE_COMPUTE = 0,
    RM_QUEUE_IN,  /* host to device */
    RM_QUEUE_OUT, /* device to host */
    RM_QUEUES
};

enum rm_activation {
    RM_ACT_NONE = 0,
    RM_ACT_RELU,
    RM_ACT_TANH,
    RM_ACT_GELU,
    RM_ACT_SILU,
    RM_ACT_ELU,
    RM_ACT_LEAKY_RELU,
    RM_ACT_SIGMOID,
    RM_ACT_COUNT,
};

struct rm_adam {
    float learning_rate, beta1, beta2, epsilon;
    uint64_t step;      /* 1 for the first update */
    float weight_decay; /* decoupled (Loshchilov 2019): params shrink by learning_rate * this */
};

struct rm_rmsprop {
    float learning_rate, alpha, epsilon; /* alpha: decay of the mean of squares */
    float momentum;                      /* 0: none, and no memory for it */
};

/* Rows of samples: sample i has the rows spans[i] to spans[i + 1]. */
struct rm_spans {
    const uint32_t *spans;  /* (batch + 1) */
    const uint32_t *slots;  /* (rows) each row's place in its sample, below `places` */
    uint32_t batch, places; /* samples; places of a sample */
    /* Rows of a result that has one row for each row of a sample. On a device this is the size of
     * the buffer, because only the device knows the spans; it sets the rows after the last sample's
     * to zero. The CPU has no such rows. */
    uint32_t rows;
};

/* Tokens of groups of numbers: a token's row is the sum, over its groups and their columns, of rows
 * of a table. The first column has a table of its own if `first_codes` is not 0; with `difference`
 * the last column's are subtracted. A number that is 0 or in no table adds nothing. */
struct rm_relations {
    uint32_t numbers; /* numbers of a token, a multiple of columns */
    uint32_t columns, codes, first_codes, units;
    bool difference;
};

/* Both tables of rm_relations, one after another, and which of their rows have a gradient. On the
 * CPU, where an update then costs what it touches, not what the tables have. */
struct rm_touched {
    uint32_t units, total; /* of all rows */
    uint32_t count;        /* of rows with a gradient; all others are zeros */
    uint32_t *rows;        /* (total + 1), `count` of them in the order of their first use */
    bool *has;             /* (total + 1): is the row among these? The last one is true. */
};

/* Some tokens with their gradients: codes (rows, numbers), dy (rows, units); and, if `listed` is
 * not NULL, the rows of the tables that they select, perhaps without rows that an earlier part
 * lists. */
struct rm_token_part {
    const int32_t *codes;
    const float *dy;
    uint32_t rows, listed_count;
    const uint32_t *listed;
};

/* A score for each row of a sample except the first: the product of the row with the first row. The
 * score of row r is output slots[r] - 1 of its sample; other outputs are 0. */
struct rm_pointer {
    const uint32_t *spans; /* (batch + 1), as in rm_attention; no sample is empty */
    const uint32_t *slots; /* (rows) places of rows in their sample: the first is 0 */
    uint32_t batch, units, outputs;
    float scale;   /* of the products */
    uint32_t rows; /* as in rm_spans: of dx */
};

/* Convolution of images (channels, height, width) to images of out_channels; a row is one image. A
 * square kernel moves over the image in steps of `stride`, with `padding` zeros on every side.
 * Weights are (out_channels, channels, kernel, kernel). out_* follow from the other members.
 *
 * COMPACT rows are images (height, width, channels) with 16 bits a number, in the format of the
 * backend's products. Only devices have them, for convolutions that conv2d_compact() accepts. */
struct rm_conv {
    uint32_t channels, height, width;
    uint32_t kernel, stride, padding;
    uint32_t out_channels, out_height, out_width;
    bool x_compact, y_compact; /* the input, the result (and its gradient) is compact */
};

/* Rows of `numbers` codes each. The table has `codes` rows of `units`; the first one is for code
 * `lowest`. A code outside the table counts as the first. */
struct rm_embedding {
    uint32_t rows, numbers, codes, units;
    int32_t lowest;
};

/* One step of recurrent cells, `lanes` rows of n units. gx = W_ih x + b_ih and gh = W_hh h + b_hh
 * with the gates side by side, in the order and with the equations of PyTorch (nn.GRU, nn.LSTM):
 * GRU reset, update, new (lanes, 3n); LSTM input, forget, cell, output (lanes, 4n). The step reads
 * gx, gh and state and writes gates, y and next_c; its gradient reads gates, state and dy and
 * writes dgx, dgh and d_state. */
struct rm_cells {
    uint32_t lanes, n;
    const float *gx, *gh;
    const float *state; /* (lanes, n) before the step: of a GRU h, of an LSTM c */
    float *gates;       /* kept for the gradient: GRU (lanes, 4n), LSTM (lanes, 5n) */
    float *y, *next_c;  /* (lanes, n); next_c: of an LSTM */
    const float *dy;    /* (lanes, n) */
    float *dgx, *dgh;   /* as gx and gh; of an LSTM both have the same gradient, dgx */
    float *d_state;     /* (lanes, n) of a GRU written, without the gradient that passes through gh;
                           of an LSTM the gradient of next_c before the call, and of c after it */
};

/* Rows of compact images as the input of linear layers. */
struct rm_image_rows {
    uint32_t batch, channels, places;
};

struct rm_backend {
    uint32_t api;
    const char *name;      /* "cpu" */
    char description[128]; /* "cpu x86-64-v4, 2 threads" */
    uint32_t threads;
    const struct rm_backend_ops *ops;
    /* Memory is not the host's, and results are known only after a wait. */
    bool staged;
    const struct rm_device_ops *device; /* device.h; NULL unless staged */
    void *self;
    /* The CPU backend calls it at each large operation, so that a long update does not look like a
     * hang. The owner of the backend sets it; NULL: not called. */
    void (*alive)(void *user);
    void *alive_user;
};

struct rm_backend_ops {
    void (*destroy)(struct rm_backend *b);

    /* For work that is cut into tiles of several operations; both are NULL in backends that do not
     * need it. view() creates a backend of one thread with the kernels of b; b outlives it. run()
     * calls fn(work, 0 .. tiles - 1), each once, on all threads of b, and fn may call the
     * operations of a view. A view shares the memory of reserve(), so create all views before
     * run(). Results must not depend on the thread. */
    int (*view)(struct rm_backend *b, struct rm_backend **view); /* 0 or -ENOMEM */
    void (*run)(struct rm_backend *b, void (*fn)(void *work, uint32_t tile), void *work,
                uint32_t tiles);

    float *(*alloc)(struct rm_backend *b,
                    size_t floats);                 /* zeroed, 64-byte aligned; NULL if full */
    void (*release)(struct rm_backend *b, void *p); /* NULL: nothing */
    void (*upload)(struct rm_backend *b, float *to, const float *from, size_t floats);
    void (*download)(struct rm_backend *b, float *to, const float *from, size_t floats);

    /* The same as alloc(), in bytes; *error says what was requested. */
    void *(*alloc_bytes)(struct rm_backend *b, size_t bytes, struct rm_error *error);
    /* Host memory for copy_in() and copy_out(), zeroed; a device's is pinned. NULL: none left.
     * release_host() accepts NULL. */
    void *(*alloc_host)(struct rm_backend *b, size_t bytes, struct rm_error *error);
    void (*release_host)(struct rm_backend *b, void *p);

    /* Copies of bytes from memory of alloc_host() and to it; within the backend's memory; zeros
     * there. On the CPU `to` may be `from`. */
    void (*copy_in)(struct rm_backend *b, enum rm_queue queue, void *to, const void *from,
                    size_t bytes);
    void (*copy_out)(struct rm_backend *b, enum rm_queue queue, void *to, const void *from,
                     size_t bytes);
    void (*copy)(struct rm_backend *b, void *to, const void *from, size_t bytes);
    void (*clear)(struct rm_backend *b, void *at, size_t bytes);

    /* A mark is a position in a queue; on the CPU it is NULL. A mark that was never set counts as
     * passed. */
    int (*mark_create)(struct rm_backend *b, struct rm_queue_mark **mark, struct rm_error *error);
    void (*mark_destroy)(struct rm_backend *b, struct rm_queue_mark *mark);
    void (*mark)(struct rm_backend *b, enum rm_queue queue, struct rm_queue_mark *mark);
    /* Later work in the queue waits for the mark. */
    void (*follow)(struct rm_backend *b, enum rm_queue queue, struct rm_queue_mark *mark);
    bool (*passed)(struct rm_backend *b, struct rm_queue_mark *mark); /* never waits */
    void (*wait)(struct rm_backend *b, struct rm_queue_mark *mark);   /* the host waits */
    void (*finish)(struct rm_backend *b);                             /* for all queues */
    /* Whether there was a sticky error (device.h); the text names device, UUID, call and error. */
    bool (*failed)(struct rm_backend *b, struct rm_error *error);

    /* Returns the first key c of an update's normals(), uniforms() and dropout(): times * (*before
     * + 1). A device reads *before when they run: until the next call it adds times * *before to
     * the c of a call. before NULL: 0, and nothing is added. */
    uint64_t (*draws)(struct rm_backend *b, const uint64_t *before, uint64_t times);

    /* Allocates the memory of the linear operations for up to `batch` rows of this shape, so that
     * they allocate nothing later; `training` for the gradients too. Optional to call. Returns 0 or
     * -ENOMEM. */
    int (*reserve)(struct rm_backend *b, uint32_t batch, uint32_t in, uint32_t out, bool training);

    void (*fill)(struct rm_backend *b, float value, size_t n, float *x);

    /* y(B,out) = act(x(B,in) W(out,in)^T + bias(out)); the pre-activation is not kept. wt is W
     * packed or transposed by pack(), or W itself if packed_floats() is 0. */
    size_t (*packed_floats)(struct rm_backend *b, uint32_t out, uint32_t in);
    void (*pack)(struct rm_backend *b, const float *w, uint32_t out, uint32_t in, float *wt);
    void (*linear)(struct rm_backend *b, const float *x, const float *wt, const float *bias,
                   uint32_t batch, uint32_t in, uint32_t out, enum rm_activation act, float *y);
    /* dx(B,in) = dy(B,out) W(out,in) */
    void (*linear_dx)(struct rm_backend *b, const float *dy, const float *w, uint32_t batch,
                      uint32_t in, uint32_t out, float *dx);
    /* The same with W packed by pack_dx(), which pays if several calls use one W. The three
     * functions are NULL in backends that have no use for them; packed_dx_floats() is 0 for shapes
     * that have none. */
    size_t (*packed_dx_floats)(struct rm_backend *b, uint32_t out, uint32_t in);
    void (*pack_dx)(struct rm_backend *b, const float *w, uint32_t out, uint32_t in, float *wt);
    void (*linear_dx_packed)(struct rm_backend *b, const float *dy, const float *wt, uint32_t batch,
                             uint32_t in, uint32_t out, float *dx);
    /* dw(out,in) = dy(B,out)^T x(B,in); db(out) = column sums of dy */
    void (*linear_dw)(struct rm_backend *b, const float *dy, const float *x, uint32_t batch,
                      uint32_t in, uint32_t out, float *dw, float *db);
    /* The same, but adds to dw and db; db NULL: the gradient of biases is not needed. For rows that
     * are still in a core's cache; NULL in backends that should get all rows at once. A reserve()
     * for 1023 rows is enough for any number of rows. */
    void (*linear_dw_add)(struct rm_backend *b, const float *dy, const float *x, uint32_t batch,
                          uint32_t in, uint32_t out, float *dw, float *db);

    /* y = act(x), and dx = dy * act'(.) from the activation's result y (and its argument x for GELU
     * and SiLU). Works in place. */
    void (*activate)(struct rm_backend *b, enum rm_activation act, const float *x, size_t n,
                     float *y);
    void (*activate_dx)(struct rm_backend *b, enum rm_activation act, const float *x,
                        const float *y, const float *dy, size_t n, float *dx);

    /* Layer norm over rows of n: y = (x - mean) / sqrt(var + 1e-5) * gamma + beta; writes mean and
     * 1/std (rows) for the gradient, whose dx may be NULL. */
    void (*layer_norm)(struct rm_backend *b, const float *x, const float *gamma, const float *beta,
                       uint32_t rows, uint32_t n, float *y, float *mean, float *rstd);
    void (*layer_norm_dx)(struct rm_backend *b, const float *x, const float *gamma,
                          const float *mean, const float *rstd, const float *dy, uint32_t rows,
                          uint32_t n, float *dx, float *dgamma, float *dbeta);

    /* IQN (Dabney 2018b, eq. 4): c(rows, n)[i] = cos(pi * (i+1) * tau[row]), i = 0..n-1 */
    void (*cosines)(struct rm_backend *b, const float *tau, size_t rows, uint32_t n, float *c);
    /* z(batch*q, n) = x(batch, n) broadcast over q, times phi(batch*q, n), and its gradients. phi
     * is the result of a ReLU, and dphi is the gradient of that ReLU's argument. */
    void (*broadcast_mul)(struct rm_backend *b, const float *x, const float *phi, uint32_t batch,
                          uint32_t q, uint32_t n, float *z);
    void (*broadcast_mul_dx)(struct rm_backend *b, const float *x, const float *phi,
                             const float *dz, uint32_t batch, uint32_t q, uint32_t n, float *dx,
                             float *dphi);

    /* Noisy layers (Fortunato 2018): w_eff = mu + sigma * eps elementwise; dsigma = dw * eps */
    void (*noisy_weights)(struct rm_backend *b, const float *mu, const float *sigma,
                          const float *eps, size_t n, float *w);
    /* Factorised noise: eps = in + out normals; eps_w(out,in)[o][i] = f(eps_out[o]) f(eps_in[i]),
     * eps_b(out) = f(eps_out), f(x) = sgn(x) sqrt|x|. */
    void (*noisy_factors)(struct rm_backend *b, const float *eps, uint32_t in, uint32_t out,
                          float *eps_w, float *eps_b);
    void (*multiply)(struct rm_backend *b, const float *x, const float *y, size_t n, float *z);
    /* Convolution of `batch` images: y = act(conv(x, w) + bias), and the gradients of x, and of w
     * and bias. wt: w packed by conv2d_pack(), or w itself if conv2d_packed_floats() is 0. The
     * caller owns `scratch` (conv2d_scratch_floats); conv2d_reserve allocates all other memory for
     * up to `batch` images, as `reserve` does. */
    size_t (*conv2d_packed_floats)(struct rm_backend *b, const struct rm_conv *c);
    void (*conv2d_pack)(struct rm_backend *b, const struct rm_conv *c, const float *w, float *wt);
    size_t (*conv2d_scratch_floats)(struct rm_backend *b, const struct rm_conv *c, bool training);
    int (*conv2d_reserve)(struct rm_backend *b, const struct rm_conv *c, uint32_t batch,
                          bool training);
    void (*conv2d)(struct rm_backend *b, const struct rm_conv *c, const float *x, const float *wt,
                   const float *bias, uint32_t batch, enum rm_activation act, float *y,
                   float *scratch);
    void (*conv2d_dx)(struct rm_backend *b, const struct rm_conv *c, const float *dy,
                      const float *w, uint32_t batch, float *dx, float *scratch);
    void (*conv2d_dw)(struct rm_backend *b, const struct rm_conv *c, const float *dy,
                      const float *x, uint32_t batch, float *dw, float *db, float *scratch);

    /* For layers between images: whether all three functions above accept the compact rows of `c`.
     * NULL, as the functions below: the backend has no compact rows. compact_activate_dx: dy = dy *
     * act'(y), in place, of n numbers, for activations whose gradient needs their result alone. The
     * others: linear() and its gradients with compact x and dx; the columns of w stay (channels,
     * places); wt is packed by compact_pack(), of packed_floats(). */
    bool (*conv2d_compact)(struct rm_backend *b, const struct rm_conv *c);
    void (*compact_activate_dx)(struct rm_backend *b, enum rm_activation act, const float *y,
                                size_t n, float *dy);
    void (*compact_pack)(struct rm_backend *b, const float *w, uint32_t out,
                         const struct rm_image_rows *x, float *wt);
    void (*compact_linear)(struct rm_backend *b, const float *x, const struct rm_image_rows *rows,
                           const float *wt, const float *bias, uint32_t out, enum rm_activation act,
                           float *y);
    void (*compact_linear_dx)(struct rm_backend *b, const float *dy, const float *w,
                              const struct rm_image_rows *rows, uint32_t out, float *dx);
    void (*compact_linear_dw)(struct rm_backend *b, const float *dy, const float *x,
                              const struct rm_image_rows *rows, uint32_t out, float *dw, float *db);

    /* y(rows, units) = sums of the table's rows for each row's codes, and the table's gradient,
     * summed in the order of rows. */
    void (*embed)(struct rm_backend *b, const struct rm_embedding *e, const int32_t *codes,
                  const float *table, float *y);
    void (*embed_dw)(struct rm_backend *b, const struct rm_embedding *e, const int32_t *codes,
                     const float *dy, float *dtable);

    /* y = x / (1 - rate), or 0 with probability `rate`, by dropout.h, of elements first to first +
     * n: part i has elements i * 2^32 and up. y may be x. */
    void (*dropout)(struct rm_backend *b, const struct rm_dropout *d, size_t first, size_t n,
                    const float *x, float *y);
    /* The same of rows(.., n). The elements of sample i are counted from (first + i) * places * n
     * on, so they do not depend on the length of other samples. */
    void (*span_dropout)(struct rm_backend *b, const struct rm_dropout *d, const struct rm_spans *s,
                         uint32_t first, uint32_t n, const float *x, float *y);

    /* y(rows, n): row r is row index[r] of x(.., n), of 32-bit words of any type. */
    void (*gather)(struct rm_backend *b, const void *x, const uint32_t *index, uint32_t rows,
                   uint32_t n, void *y);
    /* y(rows, n) = (x - mean(n)) * scale(n), clipped to +-bound */
    void (*normalize)(struct rm_backend *b, const float *x, const float *mean, const float *scale,
                      float bound, size_t rows, uint32_t n, float *y);
    /* z(rows, n + m) = x(rows, n) and y(rows, m) side by side; split() is the inverse, where x or y
     * may be NULL. Without y it reads n numbers of each row, so z may begin inside of a row. */
    void (*join)(struct rm_backend *b, const float *x, const float *y, size_t rows, uint32_t n,
                 uint32_t m, float *z);
    void (*split)(struct rm_backend *b, const float *z, size_t rows, uint32_t n, uint32_t m,
                  float *x, float *y);

    /* Dueling (Wang 2016): in(rows, (actions + 1) * k): advantages then values; out(rows,
     * actions*k): Q = V + A - mean_a A, and its gradient. */
    void (*dueling)(struct rm_backend *b, const float *in, uint32_t rows, uint32_t actions,
                    uint32_t k, float *q);
    void (*dueling_dx)(struct rm_backend *b, const float *dq, uint32_t rows, uint32_t actions,
                       uint32_t k, float *din);

    /* One step of recurrent cells, and its gradient. */
    void (*gru)(struct rm_backend *b, const struct rm_cells *cells);
    void (*gru_dx)(struct rm_backend *b, const struct rm_cells *cells);
    void (*lstm)(struct rm_backend *b, const struct rm_cells *cells);
    void (*lstm_dx)(struct rm_backend *b, const struct rm_cells *cells);
    /* y = x, with zeros in the rows whose `restart` is 1 (NULL: none). Works in place. x NULL: y is
     * zeros. */
    void (*restart)(struct rm_backend *b, const float *x, size_t x_stride, const uint8_t *restart,
                    uint32_t rows, uint32_t n, float *y, size_t y_stride);
    /* z = x + y; z may be x or y */
    void (*add)(struct rm_backend *b, const float *x, const float *y, size_t n, float *z);

    /* o(rows, units) = softmax(q k^T / sqrt(units / heads)) v per sample and head. Writes stats
     * (rows, 2 heads) for the gradient. units / heads is at most 256. */
    void (*attention)(struct rm_backend *b, const struct rm_attention *a, const float *qkv,
                      float *o, float *stats);
    void (*attention_dx)(struct rm_backend *b, const struct rm_attention *a, const float *qkv,
                         const float *o, float *stats, const float *d_o, float *d_qkv);

    /* For backends whose host cannot see the padding: computes spans(batch + 1) and slots of
     * x(batch, set->width) for the tokens that are there. NULL on the CPU: see learner/net/spans.c.
     */
    void (*find_spans)(struct rm_backend *b, const void *x, uint32_t batch,
                       const struct rm_token_set *set, uint32_t *spans, uint32_t *slots);
    /* y(batch, n): with `mean` the mean of each sample's rows, 0 for a sample without rows; else
     * its first row. The gradient dx is zero in rows that y does not depend on. */
    void (*span_one)(struct rm_backend *b, const struct rm_spans *s, const float *x, uint32_t n,
                     bool mean, float *y);
    void (*span_one_dx)(struct rm_backend *b, const struct rm_spans *s, const float *dy, uint32_t n,
                        bool mean, float *dx);
    /* y(batch, last, n): the last rows of each sample, zeros in place of those that it lacks; and
     * the gradient, which is zero in other rows. */
    void (*span_last)(struct rm_backend *b, const struct rm_spans *s, uint32_t last, const float *x,
                      uint32_t n, float *y);
    void (*span_last_dx)(struct rm_backend *b, const struct rm_spans *s, uint32_t last,
                         const float *dy, uint32_t n, float *dx);
    /* For the same backends as find_spans(): codes(rows, RM_HISTORY_CODES) of x(rows, h->width). */
    void (*history_codes)(struct rm_backend *b, const struct rm_history_codes *h, const float *x,
                          int32_t *codes);
    /* y(batch, places, n): row r of sample i at position slots[r], zeros in other positions; and
     * the gradient. */
    void (*spread)(struct rm_backend *b, const struct rm_spans *s, const float *x, uint32_t n,
                   float *y);
    void (*spread_dx)(struct rm_backend *b, const struct rm_spans *s, const float *dy, uint32_t n,
                      float *dx);
    /* y(rows, units) from codes(rows, numbers), first(first_codes, units), table(codes, units). */
    void (*relate)(struct rm_backend *b, const struct rm_relations *e, const int32_t *codes,
                   const float *first, const float *table, uint32_t rows, float *y);
    void (*relate_dw)(struct rm_backend *b, const struct rm_relations *e, const int32_t *codes,
                      const float *dy, uint32_t rows, float *d_first, float *d_table);
    /* Adds the rows that the tokens select to the list. NULL on devices. */
    void (*list_touched)(struct rm_backend *b, const struct rm_relations *e,
                         const struct rm_token_part *part, struct rm_touched *touched);
    /* The same of both tables, of which only the touched rows were not zeros, from tokens in
     * `count` parts; finds the rows that are touched now. NULL on devices. */
    void (*relate_touched)(struct rm_backend *b, const struct rm_relations *e,
                           const struct rm_token_part *parts, uint32_t count,
                           struct rm_touched *touched, float *d_tables);
    void (*pointer)(struct rm_backend *b, const struct rm_pointer *p, const float *x, float *y);
    void (*pointer_dx)(struct rm_backend *b, const struct rm_pointer *p, const float *x,
                       const float *dy, float *dx);

    /* y(rows, n - 1 + codes) from x(rows, n): the other numbers of each row, then zeros with a 1 at
     * the number in `column`. */
    void (*one_hot)(struct rm_backend *b, const float *x, size_t rows, uint32_t n, uint32_t column,
                    uint32_t codes, float *y);
    /* Over graphs (graph.h): y(rows, 2 n), each node's row and the mean of its neighbours';
     * y(batch, n), the row of each sample's own node, zeros if it has none; attention, with
     * stats(rows, heads, RM_GRAPH_STATS), d_source(rows, heads) and d_score(batch, 2 units), whose
     * sum over samples is the gradient of `score`. */
    void (*graph_mean)(struct rm_backend *b, const struct rm_graph *g, const float *x, uint32_t n,
                       float *y);
    void (*graph_mean_dx)(struct rm_backend *b, const struct rm_graph *g, const float *dy,
                          uint32_t n, float *dx);
    void (*graph_own)(struct rm_backend *b, const struct rm_graph *g, const float *x, uint32_t n,
                      float *y);
    void (*graph_own_dx)(struct rm_backend *b, const struct rm_graph *g, const float *dy,
                         uint32_t n, float *dx);
    void (*graph_attention)(struct rm_backend *b, const struct rm_graph_attention *a,
                            const float *qkv, float *stats, float *o);
    void (*graph_attention_dx)(struct rm_backend *b, const struct rm_graph_attention *a,
                               const float *qkv, const float *o, float *stats, const float *d_o,
                               float *d_source, float *d_qkv, float *d_score);

    /* n standard normals, a pure function of (key, a, b): Philox and Box-Muller; and uniforms. */
    void (*normals)(struct rm_backend *b, uint64_t key, uint32_t stream, uint32_t a, uint64_t c,
                    size_t n, float *out);
    void (*uniforms)(struct rm_backend *b, uint64_t key, uint32_t stream, uint32_t a, uint64_t c,
                     size_t n, float *out);

    /* Sum of squares in a fixed order, in double. Not finite if an input is not. */
    double (*sum_squares)(struct rm_backend *b, const float *x, size_t n);
    /* out[0] = sum of (x - y)^2, out[1] = sum of y^2, in the backend's memory. */
    void (*change)(struct rm_backend *b, const float *x, const float *y, size_t n, double out[2]);
    /* Adam (Kingma 2015, algorithm 1) on grads * scale. NULL on devices, as rmsprop(): see
     * device_optimizer.h. */
    void (*adam)(struct rm_backend *b, const struct rm_adam *adam, float scale, const float *grads,
                 size_t n, float *params, float *m, float *v);
    /* sum_squares() and adam() of touched rows. NULL on devices. A row whose gradient is 0 does not
     * move. */
    double (*touched_squares)(struct rm_backend *b, const struct rm_touched *touched,
                              const float *x);
    void (*touched_adam)(struct rm_backend *b, const struct rm_adam *adam, float scale,
                         const struct rm_touched *touched, const float *grads, float *params,
                         float *m, float *v);
    /* RMSProp (Hinton 2012, lecture 6e) on grads * scale; m NULL without momentum. */
    void (*rmsprop)(struct rm_backend *b, const struct rm_rmsprop *rmsprop, float scale,
                    const float *grads, size_t n, float *params, float *m, float *v);
    /* out = a x + c y; out may be x or y */
    void (*combine)(struct rm_backend *b, float a, const float *x, float c, const float *y,
                    size_t n, float *out);
    /* sum(n) = part 0 + part 1 + ..., in this order; part i is n floats at parts + i * stride */
    void (*sum_parts)(struct rm_backend *b, const float *parts, uint32_t count, size_t stride,
                      size_t n, float *sum);
    /* target += tau * (params - target) */
    void (*lerp)(struct rm_backend *b, float tau, const float *params, size_t n, float *target);
};

/* The names of the operations, except the seven first: on memory and queues, of all backends, of
 * the CPU alone, and of devices alone. A backend declares its functions and fills its table by
 * these lists. */
/* clang-format off */
#define RM_QUEUE_OPERATIONS(X) \
    X(alloc_bytes) X(alloc_host) X(release_host) X(copy_in) X(copy_out) X(copy) X(clear) \
    X(mark_create) X(mark_destroy) X(mark) X(follow) X(passed) X(wait) X(finish) X(failed) X(draws)
#define RM_OPERATIONS(X) \
    X(reserve) X(fill) X(packed_floats) X(pack) X(linear) X(linear_dx) X(linear_dw) X(activate) \
    X(activate_dx) X(layer_norm) X(layer_norm_dx) X(cosines) X(broadcast_mul) X(broadcast_mul_dx) \
    X(noisy_weights) X(noisy_factors) X(multiply) X(conv2d_packed_floats) X(conv2d_pack) \
    X(conv2d_scratch_floats) X(conv2d_reserve) X(conv2d) X(conv2d_dx) X(conv2d_dw) X(embed) \
    X(embed_dw) X(dropout) X(span_dropout) X(gather) X(normalize) X(join) X(split) X(dueling) X(dueling_dx) X(gru) \
    X(gru_dx) X(lstm) X(lstm_dx) X(restart) X(add) X(attention) X(attention_dx) X(span_one) \
    X(span_one_dx) X(span_last) X(span_last_dx) X(spread) X(spread_dx) X(relate) X(relate_dw) \
    X(pointer) X(pointer_dx) X(one_hot) X(graph_mean) X(graph_mean_dx) X(graph_own) \
    X(graph_own_dx) X(graph_attention) X(graph_attention_dx) X(normals) X(uniforms) X(sum_squares) X(change) \
    X(combine) X(sum_parts) X(lerp)
#define RM_CPU_OPERATIONS(X) \
    X(packed_dx_floats) X(pack_dx) X(linear_dx_packed) X(linear_dw_add) X(adam) X(rmsprop) \
    X(list_touched) X(relate_touched) X(touched_squares) X(touched_adam)
#define RM_DEVICE_OPERATIONS(X) \
    X(conv2d_compact) X(compact_activate_dx) X(compact_pack) X(compact_linear) \
    X(compact_linear_dx) X(compact_linear_dw) X(find_spans) X(history_codes)
/* clang-format on */

/* isa: "auto", or x86-64-v2, v3 or v4, which is an error if the host lacks it. */
int rm_backend_cpu_create(struct rm_backend **backend, uint32_t threads, const char *isa,
                          struct rm_error *error);
/* The same with products in bf16, if `compute` asks for it and the host has an instruction for it;
 * else in fp32 (tf32 and fp16 need a GPU). The description says which. */
int rm_backend_cpu_create_for(struct rm_backend **backend, uint32_t threads, const char *isa,
                              enum rm_compute compute, struct rm_error *error);
/* Whether products are in bf16 for this isa on this host. */
bool rm_backend_cpu_has_bf16(const char *isa);
void rm_backend_destroy(struct rm_backend *backend);

#endif
