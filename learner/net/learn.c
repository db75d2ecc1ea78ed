/* Forward, loss and backward: in tiles for a small network, in chunks for a large network with many
 * rows, else over all rows at once. */
#include "learner/net/parts.h"

#include <string.h>

bool rm_net_fits_chunks(const struct rm_net *net)
{
    bool fits = !net->uses_quantiles && rm_net_state_count(net) == 0;
    for (uint32_t i = 0; i < net->step_count; i++)
        fits = fits && rm_step_ops[net->steps[i].kind]->by_row;
    return fits;
}

/* Rows [first, first + rows) of the input, filled up to a multiple of RM_CHUNK_STEP. */
static struct rm_net_input chunk_of(struct rm_net_workspace *w, const struct rm_net_input *all,
                                    uint32_t first, uint32_t rows)
{
    struct rm_net_input input = *all;
    input.batch = (rows + RM_CHUNK_STEP - 1) / RM_CHUNK_STEP * RM_CHUNK_STEP;
    for (uint32_t i = 0; i < input.batch; i++) {
        const uint32_t row = first + (i < rows ? i : rows - 1);
        w->chunk_index[i] = all->index ? all->index[row] : row;
    }
    input.index = w->chunk_index;
    return input;
}

static void learn_in_chunks(struct rm_net_workspace *w, const float *params,
                            const struct rm_net_input *input, const struct rm_net_loss *loss,
                            float *grads, double sums[RM_NET_SUMS])
{
    const size_t outputs = w->net->outputs;
    rm_net_ready(w, params, input);
    for (uint32_t first = 0; first < input->batch; first += RM_CHUNK_ROWS) {
        const uint32_t left = input->batch - first;
        const uint32_t rows = left < RM_CHUNK_ROWS ? left : RM_CHUNK_ROWS;
        const struct rm_net_input chunk = chunk_of(w, input, first, rows);
        const float *out = rm_net_forward_ready(w, params, &chunk);
        w->odd = w->odd || (w->watched && !rm_net_results_finite(w, &chunk));
        loss->rows(loss->self, first, rows, out, w->d_out, sums);
        memset(w->d_out + rows * outputs, 0, (chunk.batch - rows) * outputs * sizeof *w->d_out);
        rm_net_backward(w, params, &chunk, w->d_out, first ? w->chunk_grads : grads);
        if (first)
            w->backend->ops->add(w->backend, grads, w->chunk_grads, w->net->param_count, grads);
    }
}

void rm_net_learn(struct rm_net_workspace *w, const float *params, const struct rm_net_input *input,
                  const struct rm_net_loss *loss, float *grads, double sums[RM_NET_SUMS])
{
    memset(sums, 0, RM_NET_SUMS * sizeof *sums);
    w->looked = w->watched;
    w->odd = false;
    if (rm_net_tiles_take(w->tiles, input)) {
        rm_net_tiles_learn(w->tiles, params, input, loss, grads, sums);
        return;
    }
    if (w->in_chunks) {
        learn_in_chunks(w, params, input, loss, grads, sums);
        return;
    }
    const float *out = rm_net_forward(w, params, input);
    w->odd = w->watched && !rm_net_results_finite(w, input);
    loss->rows(loss->self, 0, input->batch, out, w->d_out, sums);
    rm_net_backward(w, params, input, w->d_out, grads);
}

/* A loss without a cost of its own; `self` is the number of floats of a row. */
static void put_ones(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                     double sums[RM_NET_SUMS])
{
    const size_t floats = *(const size_t *)self * rows;
    (void)first;
    (void)out;
    (void)sums;
    for (size_t i = 0; i < floats; i++)
        d_out[i] = 1.0f;
}

void rm_net_repeat(struct rm_net_workspace *w, const float *params,
                   const struct rm_net_input *input, const float *d_out, float *grads)
{
    uint64_t tokens[RM_TOKEN_SETS_MAX], padding[RM_TOKEN_SETS_MAX];
    double sums[RM_NET_SUMS];
    size_t row = w->net->outputs * (size_t)(input->quantiles ? input->quantiles : 1);
    const struct rm_net_loss ones = {put_ones, &row};
    memcpy(tokens, w->tokens, sizeof tokens);
    memcpy(padding, w->padding, sizeof padding);
    if (d_out) {
        rm_net_forward(w, params, input);
        rm_net_backward(w, params, input, d_out, grads);
    } else {
        rm_net_learn(w, params, input, &ones, grads, sums);
    }
    memcpy(w->tokens, tokens, sizeof tokens);
    memcpy(w->padding, padding, sizeof padding);
}
