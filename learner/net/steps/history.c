/* Packed histories (learner/net/history.h): the embedding of their rows, and the queries alone.
 *
 * A row's token is the sum of three: what it is (a transition by a product of its features, a query
 * by a row of a table or, tied, by the same product, <c> and </c> by a vector each), the row of its
 * type, and the row of its position. */
#include "learner/net/history.h"

#include "learner/net/steps/steps.h"

enum kept { FEATURES, CODES, ROWS, ZEROS };

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
    if (shape->query_codes)
        rm_compile_tensor(c, "query", flags, 2, (const uint32_t[]){shape->query_codes, units});
    rm_compile_tensor(c, "ends", flags, 2, (const uint32_t[]){RM_HISTORY_ENDS, units});
    rm_compile_tensor(c, "type", flags, 2, (const uint32_t[]){RM_HISTORY_TYPES, units});
    rm_compile_tensor(c, "position", flags, 2, (const uint32_t[]){layer->codes, units});
    return 0;
}

/* The bias of the product is the first row of the table: it stands before the others, which stand
 * one after another. */
static size_t table_of(const struct rm_step *s)
{
    return s->product[0].bias;
}

static struct rm_history_codes codes_of(const struct rm_pass *p, const struct rm_step *s)
{
    const struct rm_history_shape *shape = &p->w->net->shape.history;
    return (struct rm_history_codes){.spans = rm_spans_of(p, &s->in),
                                     .batch = p->states,
                                     .rows = (uint32_t)rm_rows_of(p, &s->in),
                                     .width = s->in.features,
                                     .queries = shape->queries,
                                     .query_codes = shape->query_codes,
                                     .positions = s->layer.codes};
}

static struct rm_embedding embedding_of(const struct rm_history_codes *h, const struct rm_step *s)
{
    return (struct rm_embedding){.rows = h->rows,
                                 .numbers = RM_HISTORY_CODES,
                                 .codes = rm_history_table_rows(h),
                                 .units = s->out.features};
}

static bool buffers(struct rm_net_workspace *w, const struct rm_step *s, struct rm_step_buffers *b)
{
    const size_t rows = rm_workspace_rows_held(w, s, &s->in);
    return rm_workspace_want(w, true, &b->kept[FEATURES], rows * s->product[0].in) &&
           rm_workspace_want(w, true, &b->kept[CODES], rows * RM_HISTORY_CODES) &&
           rm_workspace_want(w, true, &b->kept[ROWS], rows * s->out.features) &&
           rm_workspace_want(w, true, &b->kept[ZEROS], s->out.features);
}

/* Rows follow those that the cache has of their sample. */
static void find_codes(const struct rm_pass *p, const struct rm_history_codes *h, const float *x,
                       int32_t *codes)
{
    if (p->ops->history_codes) {
        p->ops->history_codes(p->b, h, x, codes);
        return;
    }
    for (uint32_t i = 0; i < h->batch; i++) {
        const uint32_t had = rm_cache_had(p, i), n = h->spans[i + 1] - h->spans[i];
        for (uint32_t r = 0; r < n; r++, x += h->width, codes += RM_HISTORY_CODES)
            rm_history_row_codes(h, x, had + r, had + n, codes);
    }
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_net_product *m = &s->product[0];
    const struct rm_history_codes h = codes_of(p, s);
    const struct rm_embedding e = embedding_of(&h, s);
    const size_t at = rm_kept_at(p, &s->in);
    struct rm_net_product_buffers unbiased = rows->own->product[0];
    float *features = rows->own->kept[FEATURES] + at * m->in;
    float *sums = rows->own->kept[ROWS] + at * e.units;
    int32_t *codes = (int32_t *)(void *)rows->own->kept[CODES] + at * RM_HISTORY_CODES;
    unbiased.now_bias = rows->own->kept[ZEROS];
    p->ops->split(p->b, rows->x, h.rows, RM_HISTORY_FEATURES, m->in, NULL, features);
    rm_net_product_forward(p, m, &unbiased, features, h.rows, RM_ACT_NONE, rows->y);
    find_codes(p, &h, rows->x, codes);
    p->ops->embed(p->b, &e, codes, p->params + table_of(s), sums);
    p->ops->add(p->b, rows->y, sums, (size_t)h.rows * e.units, rows->y);
}

/* Rows that are no input of the product have features of zeros, so its weights get their gradient
 * from all rows. The table's gradient replaces that of the bias. */
static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_history_codes h = codes_of(p, s);
    const struct rm_embedding e = embedding_of(&h, s);
    const int32_t *codes = (const int32_t *)(const void *)rows->own->kept[CODES];
    rm_net_product_backward(p, &s->product[0], &rows->own->product[0], rows->own->kept[FEATURES],
                            rows->dy, h.rows, NULL);
    p->ops->embed_dw(p->b, &e, codes, rows->dy, p->grads + table_of(s));
}

/* PyTorch's initial embeddings are N(0, 1). The limits of its truncated normal, 2, are a hundred of
 * these deviations away. */
static void init(const struct rm_net *net, const struct rm_step *s, float *params,
                 struct rm_rng *rng)
{
    const struct {
        size_t rows;
        double deviation;
    } tables[] = {{net->shape.history.query_codes, 1},
                  {RM_HISTORY_ENDS, 0.02},
                  {RM_HISTORY_TYPES, 1},
                  {s->layer.codes, 0.02}};
    float *at = params + table_of(s) + s->out.features;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const size_t floats = tables[i].rows * s->out.features;
        rm_init_fill_normal(at, floats, tables[i].deviation, rng);
        at += floats;
    }
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

static void pick(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_spans of = rm_span_rows(p, &s->in);
    p->ops->span_last(p->b, &of, s->in.queries, rows->x, s->in.features, rows->y);
}

static void pick_back(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_spans of = rm_span_rows(p, &s->in);
    if (rows->dx)
        p->ops->span_last_dx(p->b, &of, s->in.queries, rows->dy, s->in.features, rows->dx);
}

const struct rm_step_ops rm_queries_step = {
    .name = "queries", .forward = pick, .backward = pick_back};
