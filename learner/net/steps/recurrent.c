/* Recurrent layers: GRU (Cho et al., 2014) and LSTM (Hochreiter and Schmidhuber, 1997), with the
 * equations, the gates' order and the two vectors of biases of PyTorch's nn.GRU (the reset gate
 * applies to the product) and nn.LSTM.
 *
 * Rows are (steps, lanes). The products of the input are made for as many steps at once as stay in
 * a core's cache until they are needed (on a device for all), those of the state step by step. The
 * backward pass goes through all steps and ends at the first one: the state before the first step
 * gets no gradient. */
#include "learner/net/steps/steps.h"

#include <string.h>

enum product { IH, HH };

/* Rows of the steps that are processed together: their gates and the gates' gradients fill half of
 * a core's second-level cache. */
#define TOGETHER_ROWS 256u
#define ANY_ROWS      1023u /* reserved: for all numbers of rows */

/* H, C: the state before each row, zeros where it restarts. GX, GH: products of the input, of the
 * steps that are taken together, and of the state, of one step; their gradients in D_GX, D_GH, of
 * the same steps as GX (LSTM: one for both). NEXT_C: after each row. */
enum kept { GX, GH, H, GATES, C, NEXT_C, D_GX, D_GH, D_Y, D_H, D_C, KEPT };

static uint32_t gates_of(const struct rm_step *s)
{
    return s->kind == RM_STEP_LSTM ? 4 : 3;
}

/* Floats per unit that a cell keeps for its gradient. */
static uint32_t kept_gates_of(const struct rm_step *s)
{
    return s->kind == RM_STEP_LSTM ? 5 : 4;
}

int rm_compile_recurrent(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    bool lstm = layer->type == RM_LAYER_LSTM;
    uint32_t n = layer->units, in = c->place.form.features;
    if (n == 0 || n > RM_UNITS_MAX / 4)
        return rm_compile_refuse(c, "units must be from 1 to %u", RM_UNITS_MAX / 4);
    if (c->place.form.tokens > 1 || (c->codes && c->place.at == RM_FROM_INPUT))
        return rm_compile_refuse(c, "needs one row of features per observation; these are tokens "
                                    "(put a mean_pool first)");
    if (c->place.form.per_quantile)
        return rm_compile_refuse(c, "must stand before the cosine_embedding");
    struct rm_step *s =
        rm_compile_step(c, lstm ? RM_STEP_LSTM : RM_STEP_GRU, rm_vector_form(c->place.form, n));
    rm_compile_product(c, s, "ih.", in, gates_of(s) * n, false);
    rm_compile_product(c, s, "hh.", n, gates_of(s) * n, false);
    rm_compile_state(c, s, lstm ? 2 * n : n);
    return 0;
}

static bool buffers(struct rm_net_workspace *w, const struct rm_step *s, struct rm_step_buffers *b)
{
    bool lstm = s->kind == RM_STEP_LSTM, training = w->training;
    size_t n = s->out.features, rows = w->max_batch, gates = gates_of(s);
    const struct {
        bool needed;
        size_t floats;
    } want[KEPT] = {
        [GX] = {true, rows * gates * n},
        [GH] = {true, rows * gates * n},
        [H] = {true, rows * n},
        [GATES] = {true, rows * kept_gates_of(s) * n},
        [C] = {lstm, rows * n},
        [NEXT_C] = {lstm, rows * n},
        [D_GX] = {training, rows * gates * n},
        [D_GH] = {training && !lstm, rows * gates * n},
        [D_Y] = {training, rows * n},
        [D_H] = {training, 2 * rows * n},
        [D_C] = {training && lstm, rows * n},
    };
    for (uint32_t i = 0; i < s->product_count && training && w->backend->ops->linear_dw_add; i++)
        if (w->backend->ops->reserve(w->backend, ANY_ROWS, s->product[i].in, s->product[i].out,
                                     true))
            return false;
    for (size_t i = 0; i < KEPT; i++)
        if (!rm_workspace_want(w, want[i].needed, &b->kept[i], want[i].floats))
            return false;
    return true;
}

static size_t state_stride(const struct rm_pass *p)
{
    return rm_workspace_states(p->w);
}

static uint32_t steps_of(const struct rm_pass *p)
{
    return p->input->steps ? p->input->steps : 1;
}

/* The current lanes: a pass of one step may have only some, from p->first on. */
static uint32_t lanes_of(const struct rm_pass *p)
{
    return steps_of(p) == 1 ? p->states : p->input->batch / steps_of(p);
}

/* The state before step t, `n` floats at `offset` of a lane's row: the input's, or the previous
 * step's. */
static void state_before(const struct rm_pass *p, uint32_t t, uint32_t lanes, uint32_t n,
                         size_t offset, const float *left, float *state)
{
    const struct rm_net_input *in = p->input;
    const uint8_t *restart = in->restart ? in->restart + p->first + (size_t)t * lanes : NULL;
    const size_t stride = state_stride(p);
    float *to = state + (size_t)t * lanes * n;
    if (t > 0)
        p->ops->restart(p->b, left + (size_t)(t - 1) * lanes * n, n, restart, lanes, n, to, n);
    else if (in->state)
        p->ops->restart(p->b, in->state + p->first * stride + offset, stride, restart, lanes, n, to,
                        n);
    else
        p->ops->restart(p->b, NULL, 0, restart, lanes, n, to, n);
}

static void keep_last(const struct rm_pass *p, uint32_t lanes, uint32_t n, size_t offset,
                      const float *last)
{
    const size_t stride = state_stride(p);
    if (p->input->next_state)
        p->ops->restart(p->b, last, n, NULL, lanes, n,
                        p->input->next_state + p->first * stride + offset, stride);
}

/* Number of steps that are processed together. */
static uint32_t together(const struct rm_pass *p, uint32_t steps, uint32_t lanes)
{
    const uint32_t most = TOGETHER_ROWS / lanes ? TOGETHER_ROWS / lanes : 1;
    return p->ops->linear_dw_add && most < steps ? most : steps;
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    bool lstm = s->kind == RM_STEP_LSTM;
    uint32_t n = s->out.features, steps = steps_of(p), lanes = lanes_of(p);
    uint32_t gates = gates_of(s), kept = kept_gates_of(s), some = together(p, steps, lanes);
    float *y = rows->y;
    for (uint32_t t = 0; t < steps; t++) {
        size_t row = (size_t)t * lanes, at = row * n;
        const float *gx = b->kept[GX] + (size_t)(t % some) * lanes * n * gates;
        if (t % some == 0)
            rm_net_product_forward(
                p, &s->product[IH], &b->product[IH], rows->x + row * s->product[IH].in,
                (size_t)(steps - t < some ? steps - t : some) * lanes, RM_ACT_NONE, b->kept[GX]);
        state_before(p, t, lanes, n, s->state, y, b->kept[H]);
        rm_net_product_forward(p, &s->product[HH], &b->product[HH], b->kept[H] + at, lanes,
                               RM_ACT_NONE, b->kept[GH]);
        if (lstm)
            state_before(p, t, lanes, n, s->state + n, b->kept[NEXT_C], b->kept[C]);
        const struct rm_cells cells = {.lanes = lanes,
                                       .n = n,
                                       .gx = gx,
                                       .gh = b->kept[GH],
                                       .state = b->kept[lstm ? C : H] + at,
                                       .gates = b->kept[GATES] + at * kept,
                                       .y = y + at,
                                       .next_c = lstm ? b->kept[NEXT_C] + at : NULL};
        (lstm ? p->ops->lstm : p->ops->gru)(p->b, &cells);
    }
    size_t last = (size_t)(steps - 1) * lanes * n;
    keep_last(p, lanes, n, s->state, y + last);
    if (lstm)
        keep_last(p, lanes, n, s->state + n, b->kept[NEXT_C] + last);
}

/* The backward pass of step t, the `index`-th of those processed together: from the gradients of
 * its result and of its cell to D_H (and D_C), the gradient of the state before it, which is zero
 * if the state restarted. */
static void step_back(const struct rm_pass *p, const struct rm_step *s, struct rm_step_buffers *b,
                      uint32_t t, uint32_t index, uint32_t lanes, const float *dy)
{
    bool lstm = s->kind == RM_STEP_LSTM;
    uint32_t n = s->out.features, gates = gates_of(s);
    size_t at = (size_t)t * lanes * n, floats = (size_t)lanes * n;
    const uint8_t *restart = p->input->restart;
    float *through = b->kept[D_H] + floats, *d_gx = b->kept[D_GX] + index * floats * gates;
    float *d_gh = lstm ? d_gx : b->kept[D_GH] + index * floats * gates;
    const struct rm_cells cells = {.lanes = lanes,
                                   .n = n,
                                   .state = b->kept[lstm ? C : H] + at,
                                   .gates = b->kept[GATES] + at * kept_gates_of(s),
                                   .dy = dy,
                                   .dgx = d_gx,
                                   .dgh = d_gh,
                                   .d_state = b->kept[lstm ? D_C : D_H]};
    (lstm ? p->ops->lstm_dx : p->ops->gru_dx)(p->b, &cells);
    if (t == 0)
        return;
    rm_net_product_dx(p, &s->product[HH], &b->product[HH], d_gh, lanes,
                      lstm ? b->kept[D_H] : through);
    if (!lstm)
        p->ops->add(p->b, b->kept[D_H], through, floats, b->kept[D_H]);
    if (!restart)
        return;
    restart += (size_t)t * lanes;
    p->ops->restart(p->b, b->kept[D_H], n, restart, lanes, n, b->kept[D_H], n);
    if (lstm)
        p->ops->restart(p->b, b->kept[D_C], n, restart, lanes, n, b->kept[D_C], n);
}

/* Gradients of the weights, and of the input, by steps [first, first + count). The two biases of an
 * LSTM have the same gradient. */
static void weights_back(const struct rm_pass *p, const struct rm_step *s,
                         struct rm_step_buffers *b, const struct rm_rows *rows, uint32_t first,
                         uint32_t count, uint32_t lanes)
{
    const struct rm_net_product *ih = &s->product[IH], *hh = &s->product[HH];
    const bool lstm = s->kind == RM_STEP_LSTM;
    const size_t row = (size_t)first * lanes, n = (size_t)count * lanes;
    const float *x = rows->x + row * ih->in, *h = b->kept[H] + row * hh->in;
    const float *d_gh = b->kept[lstm ? D_GX : D_GH];
    float *dx = rows->dx ? rows->dx + row * ih->in : NULL;
    if (n == p->input->batch) {
        rm_net_product_backward(p, ih, &b->product[IH], x, b->kept[D_GX], n, dx);
        rm_net_product_backward(p, hh, &b->product[HH], h, d_gh, n, NULL);
        return;
    }
    if (n + row == p->input->batch) { /* the first in the backward pass */
        p->ops->fill(p->b, 0.0f, (size_t)ih->in * ih->out, p->grads + ih->weight);
        p->ops->fill(p->b, 0.0f, ih->out, p->grads + ih->bias);
        p->ops->fill(p->b, 0.0f, (size_t)hh->in * hh->out, p->grads + hh->weight);
        p->ops->fill(p->b, 0.0f, hh->out, p->grads + hh->bias);
    }
    rm_net_product_backward_more(p, ih, &b->product[IH], x, b->kept[D_GX], n, true, dx);
    rm_net_product_backward_more(p, hh, &b->product[HH], h, d_gh, n, !lstm, NULL);
    if (lstm && first == 0)
        memcpy(p->grads + hh->bias, p->grads + ih->bias, ih->out * sizeof *p->grads);
}

static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    bool lstm = s->kind == RM_STEP_LSTM;
    uint32_t n = s->out.features, steps = steps_of(p), lanes = lanes_of(p);
    uint32_t some = together(p, steps, lanes);
    size_t floats = (size_t)lanes * n;
    if (lstm)
        p->ops->fill(p->b, 0.0f, floats, b->kept[D_C]);
    for (uint32_t t = steps; t-- > 0;) {
        const float *dy = rows->dy + t * floats;
        if (t + 1 < steps) {
            p->ops->add(p->b, dy, b->kept[D_H], floats, b->kept[D_Y]);
            dy = b->kept[D_Y];
        }
        step_back(p, s, b, t, t % some, lanes, dy);
        if (t % some == 0)
            weights_back(p, s, b, rows, t, steps - t < some ? steps - t : some, lanes);
    }
}

/* As PyTorch's: everything within 1 / sqrt(units). */
static void init(const struct rm_net *net, const struct rm_step *s, float *params,
                 struct rm_rng *rng)
{
    for (uint32_t i = 0; i < s->product_count && net->config.init == RM_INIT_DEFAULT; i++) {
        const struct rm_net_product *m = &s->product[i];
        rm_init_weights(net, params + m->weight, m->out, m->in, s->out.features, m->out, 1.0, rng);
        rm_init_biases(net, params + m->bias, m->out, s->out.features, rng);
    }
}

const struct rm_step_ops rm_gru_step = {.name = "gru",
                                        .by_lane = true,
                                        .buffers = buffers,
                                        .forward = forward,
                                        .backward = backward,
                                        .init = init};
const struct rm_step_ops rm_lstm_step = {.name = "lstm",
                                         .by_lane = true,
                                         .buffers = buffers,
                                         .forward = forward,
                                         .backward = backward,
                                         .init = init};
