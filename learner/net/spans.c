/* Finds the tokens of a batch that have rows. A token whose numbers are all 0 is padding and has no
 * row; but the first token of a pointer always has one, since it is the state. */
#include "learner/net/parts.h"

#include <string.h>

static bool any(const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (x[i] != 0.0f)
            return true;
    return false;
}

static bool any_code(const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int32_t code;
        memcpy(&code, x + i, sizeof code);
        if (code)
            return true;
    }
    return false;
}

void rm_spans_find(struct rm_net_workspace *w, uint32_t batch)
{
    const struct rm_net *net = w->net;
    const uint32_t tokens = net->input_tokens, numbers = net->shape.inputs / tokens;
    const float *x = w->x;
    uint32_t row = 0;
    if (rm_on_device(w)) {
        w->backend->ops->find_spans(w->backend, x, batch, tokens, numbers, net->takes_codes,
                                    net->keeps_first, w->spans, w->slots);
        return;
    }
    for (uint32_t i = 0; i < batch; i++) {
        w->spans[i] = row;
        for (uint32_t t = 0; t < tokens; t++, x += numbers)
            if ((t == 0 && net->keeps_first) ||
                (net->takes_codes ? any_code(x, numbers) : any(x, numbers)))
                w->slots[row++] = t;
    }
    w->spans[batch] = row;
}

uint32_t rm_spans_group(const struct rm_net_workspace *w, uint32_t first, uint32_t batch,
                        uint32_t most)
{
    uint32_t n = 1;
    while (n < most && first + n < batch && w->spans[first + n + 1] - w->spans[first] <= most)
        n++;
    return n;
}
