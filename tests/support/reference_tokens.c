#include "tests/support/reference_tokens.h"

#include "learner/backend/attention.h"
#include "tests/support/reference_sequence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void reference_mean_pool(struct reference_walk *w, const struct rm_layer_config *c,
                         const char *name)
{
    (void)c;
    (void)name;
    size_t n = w->rows.width, states = w->rows.count / w->tokens;
    struct reference_rows y = {.v = reference_floats(states * n), .count = states, .width = n};
    for (size_t s = 0; s < states; s++) {
        double count = 0;
        for (size_t t = 0; t < w->tokens; t++)
            count += w->valid[s * w->tokens + t];
        for (size_t t = 0; t < w->tokens; t++)
            for (size_t i = 0; i < n && w->valid[s * w->tokens + t]; i++)
                y.v[s * n + i] += w->rows.v[(s * w->tokens + t) * n + i] / count;
    }
    reference_replace(w, y);
}

void reference_place(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    (void)c;
    const double *table = reference_tensor(w, name, "weight");
    const size_t n = w->rows.width;
    for (size_t r = 0; r < w->rows.count; r++)
        for (size_t i = 0; i < n; i++)
            w->rows.v[r * n + i] += table[r % w->tokens * n + i];
}

/* Dropout of the weights of a state, by the rows that are no padding; NULL: none. */
static float *draw_kept(const struct reference_walk *w, const struct rm_layer_config *c,
                        const char *name, size_t state)
{
    const size_t n = w->tokens;
    const uint8_t *valid = w->valid + state * n;
    const uint64_t number =
        w->first_number + w->layer + (strncmp(name, "value_", 6) == 0 ? RM_LAYERS_MAX : 0);
    if (c->rate <= 0 || !w->input->dropout_update)
        return NULL;
    const struct rm_dropout d = rm_dropout_of(w->input->dropout_seed, RM_STREAM_DROPOUT,
                                              (uint32_t)number, w->input->dropout_update, c->rate);
    float *kept = calloc(c->heads * n * n, sizeof *kept);
    for (uint32_t h = 0; h < c->heads; h++)
        for (uint32_t r = 0, i = 0; r < n; i += valid[r++])
            for (uint32_t s = 0, j = 0; s < n; j += valid[s++])
                kept[(h * n + r) * n + s] = rm_dropout_kept(
                    rm_attention_row_key(&d, (uint32_t)state, h, i), j, d.below, d.scale);
    return kept;
}

void reference_attend(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    char in[48], out[48];
    snprintf(in, sizeof in, "%s.qkv", name);
    snprintf(out, sizeof out, "%s.out", name);
    size_t width = w->rows.width, units = c->units ? c->units : width, count = w->rows.count;
    struct reference_rows qkv = reference_product(&w->rows, reference_tensor(w, in, "weight"),
                                                  reference_tensor(w, in, "bias"), 3 * units);
    struct reference_rows o = {reference_floats(count * units), count, units, w->rows.tokens, {0}};
    uint8_t *sees = malloc(w->tokens * w->tokens);
    for (size_t r = 0; r < count; r += w->tokens) {
        reference_see(w->valid + r, w->tokens, c->causal, w->shape->history.queries, sees);
        float *kept = draw_kept(w, c, name, r / w->tokens);
        reference_attention(qkv.v + r * 3 * units, sees, kept, w->tokens, c->heads, units,
                            o.v + r * units);
        free(kept);
    }
    free(sees);
    free(qkv.v);
    reference_replace(w, o);
    reference_replace(w, reference_product(&w->rows, reference_tensor(w, out, "weight"),
                                           reference_tensor(w, out, "bias"), width));
}

void reference_keep_first(struct reference_walk *w)
{
    size_t n = w->rows.width, states = w->rows.count / w->tokens;
    struct reference_rows y = {.v = reference_floats(states * n), .count = states, .width = n};
    for (size_t s = 0; s < states; s++)
        memcpy(y.v + s * n, w->rows.v + s * w->tokens * n, n * sizeof *y.v);
    reference_replace(w, y);
}

void reference_point(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    w->items = reference_copy(&w->rows);
    size_t n = c->units, states = w->rows.count / w->tokens, actions = w->tokens - 1;
    struct reference_rows f = reference_product(&w->rows, reference_tensor(w, name, "weight"),
                                                reference_tensor(w, name, "bias"), n);
    struct reference_rows y = {
        .v = reference_floats(states * actions), .count = states, .width = actions};
    for (size_t s = 0; s < states; s++)
        for (size_t a = 0; a < actions; a++)
            for (size_t i = 0; i < n && w->valid[s * w->tokens + a + 1]; i++)
                y.v[s * actions + a] += f.v[s * w->tokens * n + i] *
                                        f.v[(s * w->tokens + a + 1) * n + i] / sqrt((double)n);
    free(f.v);
    reference_replace(w, y);
}

void reference_flatten(struct reference_walk *w)
{
    struct reference_rows *x = &w->rows;
    if (!x->tokens)
        return;
    for (size_t r = 0; r < x->count; r++)
        for (size_t i = 0; i < x->width && w->valid && !w->valid[r]; i++)
            x->v[r * x->width + i] = 0;
    x->count /= x->tokens;
    x->width *= x->tokens;
    x->tokens = 0;
}

bool reference_has_layer(const struct rm_network_config *c, enum rm_layer_type type, bool value)
{
    uint32_t count = value ? c->value_layer_count : c->layer_count;
    for (uint32_t i = 0; i < count; i++)
        if ((value ? c->value_layers : c->layers)[i].type == type)
            return true;
    return false;
}

bool reference_looks_across(const struct rm_network_config *c, bool value)
{
    return reference_has_layer(c, RM_LAYER_ATTENTION, value) ||
           reference_has_layer(c, RM_LAYER_POSITION, value) ||
           reference_has_layer(c, RM_LAYER_HISTORY, value) ||
           reference_has_layer(c, RM_LAYER_MEAN_POOL, value) ||
           reference_has_layer(c, RM_LAYER_POINTER, value) ||
           reference_has_layer(c, RM_LAYER_MESSAGE_PASSING, value) ||
           reference_has_layer(c, RM_LAYER_GRAPH_ATTENTION, value) ||
           reference_has_layer(c, RM_LAYER_GRAPH_POOL, value);
}

void reference_cut_tokens(struct reference_walk *w, struct reference_rows *x)
{
    if (!reference_looks_across(w->config, false) && !reference_looks_across(w->config, true))
        return;
    size_t tokens = w->tokens = w->shape->dim[0], n = x->width / tokens;
    *x = (struct reference_rows){x->v, x->count * tokens, n, tokens, {0}};
    if (w->valid)
        return;
    w->valid = calloc(x->count, 1);
    for (size_t i = 0; i < x->count * n; i++)
        w->valid[i / n] |= w->input->x[i] != 0;
    for (size_t r = 0; r < x->count && reference_has_layer(w->config, RM_LAYER_POINTER, false);
         r += tokens)
        w->valid[r] = 1;
}
