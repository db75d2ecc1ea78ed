/* Packed histories (learner/net/history.h): the embedding of their rows, and the queries alone.
 *
 * A row's token is the sum of three: what it is (a transition by a product of its features, a query
 * by a row of a table, <c> and </c> by a vector each), the row of its type, and the row of its
 * position. */
#include "learner/net/history.h"

#include "learner/net/steps/steps.h"

#include <string.h>

enum kept { FEATURES, D_TRANSITIONS };
enum { ENDS = 2 };

int rm_compile_history(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    const struct rm_history_shape *shape = &c->net->shape.history;
    const uint32_t width = c->place.form.features, units = layer->units;
    if (!shape->queries)
        return rm_compile_refuse(c, "takes packed histories, and algorithm.name makes none");
    if (c->layer > 0 || c->value || c->input || !rm_compile_reads_input(c))
        return rm_compile_refuse(c, "must be the first layer of network.layers");
    if (c->net->config.normalize_observations)
        return rm_compile_refuse(c, "takes kinds and codes as they are; "
                                    "network.normalize_observations must be off");
    if (width <= RM_HISTORY_FEATURES || c->place.form.tokens <= shape->queries)
        return rm_compile_refuse(c,
                                 "%u places of %u numbers; it needs more than %u queries, and "
                                 "features behind the first %u numbers",
                                 c->place.form.tokens, width, shape->queries, RM_HISTORY_FEATURES);
    if (units == 0 || units > RM_UNITS_MAX)
        return rm_compile_refuse(c, "units must be from 1 to %u", RM_UNITS_MAX);
    const uint32_t context = c->place.form.tokens - shape->queries;
    if (layer->codes < context ||
        layer->codes <= rm_history_seen(context, shape->queries, shape->queries - 1))
        return rm_compile_refuse(c, "a table of %u codes has no row for the last of %u positions",
                                 layer->codes, context + 1);
    struct rm_row_form out = rm_vector_form(c->place.form, units);
    out.queries = shape->queries;
    struct rm_step *s = rm_compile_step(c, RM_STEP_HISTORY, out);
    const uint32_t flags = RM_TENSOR_TRAINED | RM_TENSOR_TABLE;
    rm_compile_product(c, s, "context.", width - RM_HISTORY_FEATURES, units, false);
    s->weight =
        rm_compile_tensor(c, "query", flags, 2, (const uint32_t[]){shape->query_codes, units});
    rm_compile_tensor(c, "ends", flags, 2, (const uint32_t[]){ENDS, units});
    rm_compile_tensor(c, "type", flags, 2, (const uint32_t[]){RM_HISTORY_TYPES, units});
    rm_compile_tensor(c, "position", flags, 2, (const uint32_t[]){layer->codes, units});
    return 0;
}

/* The tables stand one after another in the arena. */
struct tables {
    size_t query, ends, type, position, floats; /* floats into the arena; of all */
};

static struct tables tables_of(const struct rm_net *net, const struct rm_step *s)
{
    const size_t units = s->out.features;
    struct tables t = {.query = s->weight};
    t.ends = t.query + net->shape.history.query_codes * units;
    t.type = t.ends + ENDS * units;
    t.position = t.type + RM_HISTORY_TYPES * units;
    t.floats = t.position + s->layer.codes * units - t.query;
    return t;
}

static bool buffers(struct rm_net_workspace *w, const struct rm_step *s, struct rm_step_buffers *b)
{
    const size_t rows = rm_workspace_rows_held(w, s, &s->in);
    return rm_workspace_want(w, true, &b->kept[FEATURES], rows * s->product[0].in) &&
           rm_workspace_want(w, w->training, &b->kept[D_TRANSITIONS], rows * s->out.features);
}

/* Rows of the tables that a row of the history takes. RM_NO_OFFSET: of the product. */
struct place {
    size_t own, type, position;
};

static size_t code_of(float code, uint32_t codes)
{
    return code >= 0 && code < (float)codes ? (size_t)code : 0;
}

/* Row `i` of `rows` of a sample. */
static struct place place_of(const struct rm_net *net, const struct rm_step *s, const float *x,
                             uint32_t i, uint32_t rows)
{
    const struct rm_history_shape *shape = &net->shape.history;
    const struct tables t = tables_of(net, s);
    const size_t units = s->out.features;
    const uint32_t queries = shape->queries < rows ? shape->queries : rows;
    const uint32_t context = rows - queries;
    const uint32_t at = i < context ? i : rm_history_seen(context, queries, i - context);
    struct place p = {RM_NO_OFFSET, t.type, t.position};
    p.position += (at < s->layer.codes ? at : s->layer.codes - 1) * units;
    if (i >= context) {
        p.own = t.query + code_of(x[1], shape->query_codes) * units;
    } else if (x[0] == (float)RM_HISTORY_BEGIN || x[0] == (float)RM_HISTORY_END) {
        const size_t end = x[0] == (float)RM_HISTORY_END;
        p.own = t.ends + end * units;
        p.type += (1 + end) * units;
    }
    return p;
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_net_product *m = &s->product[0];
    const uint32_t *spans = rm_spans_of(p, &s->in);
    const size_t units = s->out.features, width = s->in.features, n = rm_rows_of(p, &s->in);
    float *features = rows->own->kept[FEATURES] + rm_kept_at(p, &s->in) * m->in;
    for (size_t r = 0; r < n; r++)
        memcpy(features + r * m->in, rows->x + r * width + RM_HISTORY_FEATURES,
               m->in * sizeof *features);
    rm_net_product_forward(p, m, &rows->own->product[0], features, n, RM_ACT_NONE, rows->y);
    for (uint32_t sample = 0; sample < p->states; sample++)
        for (uint32_t r = spans[sample], had = rm_cache_had(p, sample); r < spans[sample + 1];
             r++) {
            const size_t row = r - spans[0];
            const struct place at =
                place_of(p->w->net, s, rows->x + row * width, had + r - spans[sample],
                         had + spans[sample + 1] - spans[sample]);
            const float *type = p->params + at.type, *position = p->params + at.position;
            float *y = rows->y + row * units;
            const float *own = at.own == RM_NO_OFFSET ? y : p->params + at.own;
            for (size_t u = 0; u < units; u++)
                y[u] = own[u] + type[u] + position[u];
        }
}

static void add_to(float *to, const float *dy, size_t units)
{
    for (size_t u = 0; u < units; u++)
        to[u] += dy[u];
}

static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_net_product *m = &s->product[0];
    const struct tables t = tables_of(p->w->net, s);
    const uint32_t *spans = rm_spans_of(p, &s->in);
    const size_t units = s->out.features, width = s->in.features, n = rm_rows_of(p, &s->in);
    float *d = rows->own->kept[D_TRANSITIONS];
    memset(p->grads + t.query, 0, t.floats * sizeof *p->grads);
    for (uint32_t sample = 0; sample < p->states; sample++)
        for (uint32_t r = spans[sample]; r < spans[sample + 1]; r++) {
            const size_t row = r - spans[0];
            const struct place at = place_of(p->w->net, s, rows->x + row * width, r - spans[sample],
                                             spans[sample + 1] - spans[sample]);
            const float *dy = rows->dy + row * units;
            add_to(p->grads + at.type, dy, units);
            add_to(p->grads + at.position, dy, units);
            if (at.own == RM_NO_OFFSET) {
                memcpy(d + row * units, dy, units * sizeof *d);
                continue;
            }
            add_to(p->grads + at.own, dy, units);
            memset(d + row * units, 0, units * sizeof *d);
        }
    rm_net_product_backward(p, m, &rows->own->product[0], rows->own->kept[FEATURES], d, n, NULL);
}

/* PyTorch's initial embeddings are N(0, 1). The limits of its truncated normal, 2, are a hundred of
 * these deviations away. */
static void init(const struct rm_net *net, const struct rm_step *s, float *params,
                 struct rm_rng *rng)
{
    const struct tables t = tables_of(net, s);
    const double small = 0.02;
    rm_init_fill_normal(params + t.query, t.ends - t.query, 1, rng);
    rm_init_fill_normal(params + t.ends, t.type - t.ends, small, rng);
    rm_init_fill_normal(params + t.type, t.position - t.type, 1, rng);
    rm_init_fill_normal(params + t.position, t.query + t.floats - t.position, small, rng);
}

const struct rm_step_ops rm_history_step = {
    .name = "history", .buffers = buffers, .forward = forward, .backward = backward, .init = init};

/* --- the queries alone ----------------------------------------------------------------------- */

struct rm_row_form rm_queries_form(struct rm_row_form history)
{
    history.tokens = history.queries;
    history.padded = history.queries = 0;
    return history;
}

void rm_compile_queries(struct rm_compiler *c)
{
    rm_compile_step(c, RM_STEP_QUERIES, rm_queries_form(c->place.form));
}

/* The last rows of a sample: number and first one; fewer than queries only in a damaged sample. */
static struct rm_span_rows {
    size_t from, rows, missing;
} queries_of(const uint32_t *spans, uint32_t sample, uint32_t queries)
{
    const uint32_t all = spans[sample + 1] - spans[sample], rows = all < queries ? all : queries;
    return (struct rm_span_rows){spans[sample + 1] - rows - spans[0], rows, queries - rows};
}

void rm_queries_pick(const struct rm_pass *p, const struct rm_step *s, const float *x, size_t n,
                     float *y)
{
    const uint32_t *spans = rm_spans_of(p, &s->in), queries = s->in.queries;
    for (uint32_t i = 0; i < p->states; i++, y += queries * n) {
        const struct rm_span_rows of = queries_of(spans, i, queries);
        memset(y, 0, of.missing * n * sizeof *y);
        memcpy(y + of.missing * n, x + of.from * n, of.rows * n * sizeof *y);
    }
}

void rm_queries_put(const struct rm_pass *p, const struct rm_step *s, const float *y, size_t n,
                    float *x)
{
    const uint32_t *spans = rm_spans_of(p, &s->in), queries = s->in.queries;
    for (uint32_t i = 0; i < p->states; i++, y += queries * n) {
        const struct rm_span_rows of = queries_of(spans, i, queries);
        const size_t first = spans[i] - spans[0];
        memset(x + first * n, 0, (of.from - first) * n * sizeof *x);
        memcpy(x + of.from * n, y + of.missing * n, of.rows * n * sizeof *x);
    }
}

static void pick(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    rm_queries_pick(p, s, rows->x, s->in.features, rows->y);
}

static void pick_back(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    if (rows->dx)
        rm_queries_put(p, s, rows->dy, s->in.features, rows->dx);
}

const struct rm_step_ops rm_queries_step = {
    .name = "queries", .forward = pick, .backward = pick_back};
