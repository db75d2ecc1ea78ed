#include "tests/support/reference_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const double *reference_tensor(const struct reference_walk *w, const char *layer, const char *part)
{
    char name[80];
    snprintf(name, sizeof name, "%s.%s", layer, part);
    const struct rm_net_tensor *all;
    size_t n = rm_net_tensors(w->net, &all);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0)
            return w->params + all[i].offset;
    fprintf(stderr, "no tensor %s\n", name);
    abort();
}

double *reference_floats(size_t n)
{
    double *p = calloc(n ? n : 1, sizeof *p);
    if (!p)
        abort();
    return p;
}

struct reference_rows reference_product(const struct reference_rows *x, const double *weight,
                                        const double *bias, size_t out)
{
    struct reference_rows y = {reference_floats(x->count * out), x->count, out, x->tokens, {0}};
    for (size_t r = 0; r < x->count; r++)
        for (size_t o = 0; o < out; o++) {
            double s = bias[o];
            for (size_t i = 0; i < x->width; i++)
                s += x->v[r * x->width + i] * weight[o * x->width + i];
            y.v[r * out + o] = s;
        }
    return y;
}

void reference_replace(struct reference_walk *w, struct reference_rows y)
{
    free(w->rows.v);
    w->rows = y;
}

struct reference_rows reference_copy(const struct reference_rows *from)
{
    struct reference_rows to = *from;
    to.v = reference_floats(from->count * from->width);
    memcpy(to.v, from->v, from->count * from->width * sizeof *to.v);
    return to;
}
