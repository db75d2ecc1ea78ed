/* Forward passes: first the weights of all steps, then the rows, in groups so small that a step's
 * result is still in the cache when the next step reads it. A row's result does not depend on its
 * group. */
#include "learner/net/parts.h"

/* Rows that products process at a time; groups are multiples of it if possible. */
#define GROUP_STEP 32u

/* The group's rows of step `index`'s result. */
static const float *made_by(const struct rm_pass *p, uint32_t index)
{
    const struct rm_net *net = p->w->net;
    if (index == RM_FROM_INPUT)
        return p->w->x + (size_t)p->first * net->shape.inputs;
    if (index == RM_FROM_NOTHING)
        return NULL;
    const struct rm_step_buffers *b = &p->w->steps[index];
    const struct rm_row_form *form = &net->steps[index].out;
    return b->whole ? b->y + rm_rows_before(p, form) * form->features : b->y;
}

/* Runs steps [from, to) for the group's states. */
static void run_steps(const struct rm_pass *p, uint32_t from, uint32_t to)
{
    struct rm_net_workspace *w = p->w;
    for (uint32_t i = from; i < to; i++) {
        const struct rm_step *s = &w->net->steps[i];
        struct rm_step_buffers *b = &w->steps[i];
        if (!w->needed[i])
            continue;
        float *y = b->whole ? b->y + rm_rows_before(p, &s->out) * s->out.features : b->y;
        const struct rm_rows rows = {
            .own = b, .x = made_by(p, s->from), .other = made_by(p, s->other), .y = y};
        rm_step_ops[s->kind]->forward(p, s, &rows);
    }
}

uint32_t rm_net_group_states(const struct rm_net_workspace *w, uint32_t quantiles)
{
    uint32_t most = RM_GROUP_ROWS * w->backend->threads / quantiles, states = most;
    while (states && states * quantiles % GROUP_STEP)
        states--;
    if (!states)
        states = most ? most : 1;
    return states;
}

/* Whether a recurrent network's rows may go through the steps in parts: lanes are independent,
 * unless their buffers are kept for a backward pass. */
static bool rows_are_apart(const struct rm_net_workspace *w, const struct rm_net_input *input)
{
    const struct rm_net *net = w->net;
    return !rm_net_state_count(net) ||
           (input->steps <= 1 && !w->training && !net->uses_quantiles && !net->set_count);
}

static const float *rows_of(struct rm_net_workspace *w, const struct rm_net_input *input)
{
    if (!input->index)
        return input->x;
    w->backend->ops->gather(w->backend, input->x, input->index, input->batch, w->net->shape.inputs,
                            w->gathered);
    return w->gathered;
}

void rm_net_ready(struct rm_net_workspace *w, const float *params, const struct rm_net_input *input)
{
    const struct rm_net *net = w->net;
    const struct rm_pass p = {w, w->backend, w->backend->ops, params, input, NULL, 0, input->batch};
    for (uint32_t i = 0; i < net->step_count; i++) {
        const struct rm_step *s = &net->steps[i];
        if (!w->needed[i])
            continue;
        for (uint32_t j = 0; j < s->product_count; j++)
            rm_net_product_ready(&p, &s->product[j], &w->steps[i].product[j]);
        if (rm_step_ops[s->kind]->prepare)
            rm_step_ops[s->kind]->prepare(&p, s, &w->steps[i]);
    }
}

const float *rm_net_forward_ready(struct rm_net_workspace *w, const float *params,
                                  const struct rm_net_input *input)
{
    const struct rm_net *net = w->net;
    struct rm_pass p = {w, w->backend, w->backend->ops, params, input, NULL, 0, input->batch};
    w->x = rows_of(w, input);
    if (net->set_count)
        rm_spans_find(w, input->batch);
    if (!rows_are_apart(w, input)) {
        run_steps(&p, 0, net->step_count);
        return w->steps[w->result].y;
    }
    run_steps(&p, 0, net->prefix);
    uint32_t group = rm_on_device(w)
                         ? input->batch
                         : rm_net_group_states(w, net->uses_quantiles ? input->quantiles : 1);
    bool padded = rm_rows_vary(w) && !net->uses_quantiles;
    for (p.first = 0; p.first < input->batch; p.first += p.states) {
        p.states = input->batch - p.first < group ? input->batch - p.first : group;
        if (padded)
            p.states = rm_spans_group(w, p.first, input->batch, group);
        run_steps(&p, net->prefix, net->step_count);
    }
    if (input->cache)
        rm_cache_keep(w, input);
    return w->steps[w->result].y;
}

static const float *in_tiles(struct rm_net_workspace *w, const float *params,
                             const struct rm_net_input *input)
{
    rm_net_tiles_forward(w->tiles, params, input, w->steps[w->result].y);
    return w->steps[w->result].y;
}

const float *rm_net_forward(struct rm_net_workspace *w, const float *params,
                            const struct rm_net_input *input)
{
    if (w->in_chunks && input->batch > w->max_batch) {
        struct rm_net_input first = *input;
        first.batch = w->max_batch;
        return rm_net_forward(w, params, &first);
    }
    if (!w->training && !input->cache && input->batch >= RM_TILES_WORTH &&
        rm_net_tiles_take(w->tiles, input))
        return in_tiles(w, params, input);
    rm_net_ready(w, params, input);
    return rm_net_forward_ready(w, params, input);
}

/* If rows are trained in tiles, the tiles' weights are ready, so no others are packed. */
const float *rm_net_infer(struct rm_net_workspace *w, const float *params,
                          const struct rm_net_input *input)
{
    if (w->training && input->batch <= w->max_batch && rm_net_tiles_take(w->tiles, input))
        return in_tiles(w, params, input);
    return rm_net_forward(w, params, input);
}
