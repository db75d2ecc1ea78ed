/* Answers queries about a compiled network: sizes, tensors, operations. */
#include "learner/net/parts.h"

size_t rm_net_param_count(const struct rm_net *net)
{
    return net->param_count;
}

size_t rm_net_act_count(const struct rm_net *net)
{
    return net->act_count;
}

size_t rm_net_noise_count(const struct rm_net *net)
{
    return net->noise_count;
}

uint32_t rm_net_inputs(const struct rm_net *net)
{
    return net->shape.inputs;
}

uint32_t rm_net_outputs(const struct rm_net *net)
{
    return net->outputs;
}

bool rm_net_takes_codes(const struct rm_net *net)
{
    return net->takes_codes;
}

bool rm_net_is_recurrent(const struct rm_net *net)
{
    return rm_net_state_count(net) > 0;
}

uint32_t rm_net_state_count(const struct rm_net *net)
{
    return net->act_state + net->value_state;
}

uint32_t rm_net_value_state_count(const struct rm_net *net)
{
    return net->value_state;
}

bool rm_net_uses_quantiles(const struct rm_net *net)
{
    return net->uses_quantiles;
}

size_t rm_net_tensors(const struct rm_net *net, const struct rm_net_tensor **tensors)
{
    *tensors = net->tensors;
    return net->tensor_count;
}

size_t rm_net_input_mean_at(const struct rm_net *net)
{
    return net->input_mean;
}

size_t rm_net_input_scale_at(const struct rm_net *net)
{
    return net->input_scale;
}

struct rm_net_value_output rm_net_value_output(const struct rm_net *net)
{
    if (net->value_result == RM_FROM_NOTHING)
        return (struct rm_net_value_output){SIZE_MAX, SIZE_MAX, 0};
    const struct rm_net_product *m = &net->steps[net->value_result].product[0];
    return (struct rm_net_value_output){m->weight, m->bias, m->in};
}

static double rows_of(const struct rm_row_form *form, double batch, double quantiles)
{
    return batch * form->tokens * (form->per_quantile ? quantiles : 1.0);
}

/* The share of the tokens in rows of this form that is no padding. */
static double filled(const struct rm_net_workspace *w, const struct rm_row_form *form)
{
    if (!form->padded || !w->tokens[form->padded - 1])
        return 1;
    const double tokens = (double)w->tokens[form->padded - 1];
    return tokens / (tokens + (double)w->padding[form->padded - 1]);
}

/* w: only the steps that it needs, without padding; NULL: all of it. */
static double forward_flops(const struct rm_net *net, const struct rm_net_workspace *w,
                            uint32_t batch, uint32_t quantiles)
{
    double flops = 0.0;
    for (uint32_t i = 0; i < net->step_count; i++) {
        const struct rm_step *s = &net->steps[i];
        if (w && !w->needed[i])
            continue;
        /* The cosine embedding's product has as many rows as its result. */
        const struct rm_row_form *form = s->kind == RM_STEP_COSINE ? &s->out : &s->in;
        const double share = w ? filled(w, form) : 1,
                     rows = share * rows_of(form, batch, quantiles);
        for (uint32_t j = 0; j < s->product_count; j++)
            flops += 2.0 * rows * s->product[j].in * s->product[j].out;
        if (rm_step_ops[s->kind]->flops) /* of pairs of tokens: the square, at least */
            flops += share * rows / s->in.tokens * rm_step_ops[s->kind]->flops(s);
    }
    return flops;
}

double rm_net_forward_flops(const struct rm_net *net, uint32_t batch, uint32_t quantiles)
{
    return forward_flops(net, NULL, batch, quantiles);
}

double rm_net_workspace_row_flops(const struct rm_net_workspace *w, uint32_t quantiles)
{
    return forward_flops(w->net, w, 1, quantiles);
}

/* The forward pass's operations once for the gradients of weights, and once more for the gradients
 * of inputs that need them. */
double rm_net_backward_flops(const struct rm_net *net, uint32_t batch, uint32_t quantiles)
{
    double flops = 0.0;
    for (uint32_t i = 0; i < net->step_count; i++) {
        const struct rm_step *s = &net->steps[i];
        bool further = rm_step_needs_dx(net, s);
        const struct rm_row_form *form = s->kind == RM_STEP_COSINE ? &s->out : &s->in;
        double rows = rows_of(form, batch, quantiles);
        double times = s->kind == RM_STEP_COSINE || !further ? 1.0 : 2.0;
        for (uint32_t j = 0; j < s->product_count; j++)
            flops += times * 2.0 * rows * s->product[j].in * s->product[j].out;
        if (rm_step_ops[s->kind]->flops)
            flops += times * rows_of(&s->in, batch, quantiles) / s->in.tokens *
                     rm_step_ops[s->kind]->flops(s);
    }
    return flops;
}
