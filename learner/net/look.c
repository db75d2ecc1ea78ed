#include "learner/net/look.h"

#include "learner/net/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Searches number by number; called only if there is something to find. */
static void locate(struct rm_backend *b, const float *x, size_t rows, size_t columns,
                   struct rm_net_finding *finding)
{
    float *host = malloc(rows * columns * sizeof *host);
    if (!host)
        return;
    b->ops->download(b, host, x, rows * columns);
    for (size_t i = rows * columns; i-- > 0;)
        if (!isfinite(host[i])) {
            finding->row = i / columns;
            finding->column = i % columns;
            finding->value = host[i];
            finding->count++;
        }
    free(host);
}

/* A sum of squares is finite if all numbers are: a double has room for the squares of many
 * floats. */
static bool found(const struct rm_net_workspace *w, const float *x, size_t rows, size_t columns,
                  struct rm_net_finding *finding)
{
    if (!x || isfinite(w->backend->ops->sum_squares(w->backend, x, rows * columns)))
        return false;
    *finding = (struct rm_net_finding){.value = NAN};
    locate(w->backend, x, rows, columns, finding);
    return true;
}

static size_t size_of(const struct rm_net_tensor *t)
{
    size_t n = t->shape[0];
    for (uint32_t d = 1; d < t->dims; d++)
        n *= t->shape[d];
    return n;
}

static bool tensor_found(const struct rm_net_workspace *w, const struct rm_net_tensor *t,
                         const float *arena, const char *what, struct rm_net_finding *finding)
{
    const size_t n = size_of(t), rows = t->dims > 1 ? t->shape[0] : 1;
    if (!found(w, arena + t->offset, rows, n / rows, finding))
        return false;
    snprintf(finding->where, sizeof finding->where, "%s %s", what, t->name);
    return true;
}

/* Names a step "layers.2 (linear)" by its first parameter; a step without parameters by its kind
 * and the last layer before it that has some. */
static void name_step(const struct rm_net *net, uint32_t index, char *text, size_t bytes)
{
    for (uint32_t i = index;; i--) {
        const struct rm_step *s = &net->steps[i];
        const size_t at = s->product_count ? s->product[0].weight : s->weight;
        for (size_t t = 0; at != RM_NO_OFFSET && t < net->tensor_count; t++) {
            const char *name = net->tensors[t].name, *dot = strrchr(name, '.');
            if (net->tensors[t].offset != at || !dot)
                continue;
            snprintf(text, bytes, i == index ? "%.*s (%s)" : "%.*s, through %s", (int)(dot - name),
                     name, rm_step_ops[net->steps[index].kind]->name);
            return;
        }
        if (i == 0)
            break;
    }
    snprintf(text, bytes, "%s", rm_step_ops[net->steps[index].kind]->name);
}

/* Rows of a step's result that are there to be looked at. On a device, which alone knows the spans,
 * all rows of the buffer: those after the last sample's are finite, too. */
static size_t rows_of(const struct rm_net_workspace *w, const struct rm_net_input *input,
                      uint32_t index)
{
    const struct rm_row_form *form = &w->net->steps[index].out;
    if (!w->needed[index] || !w->steps[index].whole || w->steps[index].compact)
        return 0;
    return rm_state_rows(w, input, form, 0, input->batch);
}

static bool step_found(const struct rm_net_workspace *w, const struct rm_net_input *input,
                       uint32_t index, struct rm_net_finding *finding)
{
    const size_t rows = rows_of(w, input, index);
    char name[96];
    if (!rows || !found(w, w->steps[index].y, rows, w->net->steps[index].out.features, finding))
        return false;
    name_step(w->net, index, name, sizeof name);
    snprintf(finding->where, sizeof finding->where, "result of %s", name);
    return true;
}

static bool input_found(const struct rm_net_workspace *w, const struct rm_net_input *input,
                        struct rm_net_finding *finding)
{
    if (w->net->takes_codes || !found(w, w->x, input->batch, w->net->shape.inputs, finding))
        return false;
    snprintf(finding->where, sizeof finding->where, "input");
    return true;
}

static bool is_finite(const struct rm_net_workspace *w, const float *x, size_t n)
{
    return !x || isfinite(w->backend->ops->sum_squares(w->backend, x, n));
}

bool rm_net_results_finite(const struct rm_net_workspace *w, const struct rm_net_input *input)
{
    const struct rm_net *net = w->net;
    bool good = net->takes_codes || is_finite(w, w->x, (size_t)input->batch * net->shape.inputs);
    for (uint32_t i = 0; good && i < net->step_count; i++)
        good = is_finite(w, w->steps[i].y, rows_of(w, input, i) * net->steps[i].out.features);
    return good;
}

void rm_net_watch(struct rm_net_workspace *w, bool watch)
{
    w->watched = watch;
}

bool rm_net_learned_finite(struct rm_net_workspace *w)
{
    const bool fine = w->looked && !w->odd;
    w->looked = w->odd = false;
    return fine;
}

bool rm_net_look(const struct rm_net_workspace *w, const float *params,
                 const struct rm_net_input *all, const float *grads, struct rm_net_finding *finding)
{
    const struct rm_net *net = w->net;
    struct rm_net_input some = *all; /* the rows that rm_net_forward() took */
    const struct rm_net_input *input = &some;
    if (some.batch > w->max_batch)
        some.batch = w->max_batch;
    for (size_t i = 0; i < net->tensor_count; i++)
        if (tensor_found(w, &net->tensors[i], params, "parameter", finding))
            return true;
    if (input_found(w, input, finding))
        return true;
    for (uint32_t i = 0; i < net->step_count; i++)
        if (step_found(w, input, i, finding))
            return true;
    for (size_t i = net->tensor_count; grads && i-- > 0;)
        if (tensor_found(w, &net->tensors[i], grads, "gradient of", finding))
            return true;
    return false;
}
