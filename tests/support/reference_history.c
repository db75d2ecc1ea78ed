#include "tests/support/reference_history.h"

#include "tests/support/reference_sequence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void reference_history(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    char product[48];
    snprintf(product, sizeof product, "%s.context", name);
    const double *weight = reference_tensor(w, product, "weight"),
                 *bias = reference_tensor(w, product, "bias"),
                 *query = w->shape->history.query_codes ? reference_tensor(w, name, "query") : NULL,
                 *ends = reference_tensor(w, name, "ends"),
                 *type = reference_tensor(w, name, "type"),
                 *position = reference_tensor(w, name, "position");
    const size_t width = w->rows.width, features = width - 2, n = c->units, tokens = w->tokens;
    struct reference_rows y = {reference_floats(w->rows.count * n), w->rows.count, n, tokens, {0}};
    uint8_t *sees = malloc(tokens * tokens);
    for (size_t r = 0, first = 0; r < w->rows.count; r++) {
        const double *x = w->rows.v + r * width;
        double *to = y.v + r * n;
        const size_t kind = (size_t)x[0];
        size_t seen = 0; /* besides itself */
        if (r == first + tokens)
            first = r;
        if (r == first)
            reference_see(w->valid + first, tokens, true, w->shape->history.queries, sees);
        if (!w->valid[r])
            continue;
        for (size_t s = 0; s < tokens; s++)
            seen += s != r - first && sees[(r - first) * tokens + s];
        for (size_t i = 0; i < n; i++) {
            double own = bias[i];
            for (size_t k = 0; k < features; k++)
                own += weight[i * features + k] * x[2 + k];
            if (kind == 2 || kind == 3)
                own = ends[(kind - 2) * n + i];
            if (kind == 4 && query)
                own = query[(size_t)x[1] * n + i];
            to[i] = own + type[(kind == 2 || kind == 3 ? kind - 1 : 0) * n + i] +
                    position[seen * n + i];
        }
    }
    free(sees);
    reference_replace(w, y);
}

void reference_queries(struct reference_walk *w)
{
    const size_t n = w->rows.width, queries = w->shape->history.queries, tokens = w->tokens;
    const size_t states = w->input->batch;
    struct reference_rows y = {
        .v = reference_floats(states * queries * n), .count = states * queries, .width = n};
    for (size_t s = 0; s < states; s++) /* the last rows, none of which is padding */
        memcpy(y.v + s * queries * n, w->rows.v + ((s + 1) * tokens - queries) * n,
               queries * n * sizeof *y.v);
    reference_replace(w, y);
}
