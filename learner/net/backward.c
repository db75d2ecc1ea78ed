/* Backward passes over all rows at once, from the last step to the first. */
#include "learner/net/parts.h"

struct back {
    struct rm_pass pass;
    bool written[RM_STEPS_MAX]; /* the gradient of this step's result already has a reader's part */
};

/* The memory for a step's gradient of the result of step `index`: that result's gradient, or
 * scratch if another reader's part is there already. NULL: no step needs it. */
static float *gradient_of(const struct back *k, uint32_t index, size_t which)
{
    const struct rm_net_workspace *w = k->pass.w;
    if (index >= w->net->step_count || !w->net->steps[index].trains)
        return NULL;
    return k->written[index] ? w->scratch[which] : w->steps[index].dy;
}

static void settle(struct back *k, uint32_t index, const float *part)
{
    struct rm_net_workspace *w = k->pass.w;
    if (!part)
        return;
    const struct rm_row_form *form = &w->net->steps[index].out;
    if (k->written[index])
        k->pass.ops->add(k->pass.b, w->steps[index].dy, part,
                         rm_rows_of(&k->pass, form) * form->features, w->steps[index].dy);
    k->written[index] = true;
}

static const float *made_by(const struct rm_net_workspace *w, uint32_t index)
{
    if (index == RM_FROM_INPUT)
        return w->x;
    return index == RM_FROM_NOTHING ? NULL : w->steps[index].y;
}

/* The caller's gradients, to which no step writes: see struct rm_rows. */
static float *not_written(const float *d_out)
{
    const union {
        const float *given;
        float *taken;
    } gradients = {.given = d_out};
    return gradients.taken;
}

void rm_net_backward(struct rm_net_workspace *w, const float *params,
                     const struct rm_net_input *input, const float *d_out, float *grads)
{
    struct back k = {
        .pass = {w, w->backend, w->backend->ops, params, input, grads, 0, input->batch}};
    const struct rm_net *net = w->net;
    for (uint32_t i = net->step_count; i-- > 0;) {
        const struct rm_step *s = &net->steps[i];
        struct rm_step_buffers *b = &w->steps[i];
        const struct rm_rows rows = {
            .own = b,
            .x = made_by(w, s->from),
            .other = made_by(w, s->other),
            .y = b->y,
            .dy = i == w->result ? not_written(d_out) : b->dy,
            .dx = gradient_of(&k, s->from, 0),
            .d_other = gradient_of(&k, s->other, 1),
        };
        if (i != w->later)
            rm_step_ops[s->kind]->backward(&k.pass, s, &rows);
        settle(&k, s->from, rows.dx);
        settle(&k, s->other, rows.d_other);
    }
}
