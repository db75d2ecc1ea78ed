/* Multi-head self-attention over the tokens of a state (Vaswani et al., 2017), with a projection in
 * (queries, keys and values in one product, as PyTorch's in_proj) and one out. Padding has no rows
 * here, so no token attends to it. */
#include "learner/backend/kernels.h"
#include "learner/net/steps/steps.h"

#include <math.h>
#include <string.h>

enum product { QKV_PRODUCT, OUT_PRODUCT };
enum kept { QKV, O, STATS, D_QKV, D_O, ASKED_O, D_ASKED_O, KEPT };

/* Behind the last attention of a history all rows go their own ways, to a head that reads only the
 * queries. So only queries go on from there: other rows have keys and values, and no result. */
static bool asks(const struct rm_step *s)
{
    return s->in.queries && !s->out.queries;
}

int rm_compile_attention(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    const struct rm_row_form form = c->place.form;
    uint32_t units = layer->units ? layer->units : form.features;
    if (!form.padded)
        return rm_compile_refuse(c, "needs tokens: observations of (tokens, features), or an "
                                    "embedding before it");
    if (layer->heads == 0 || units % layer->heads || units > RM_UNITS_MAX / 3)
        return rm_compile_refuse(c, "%u heads do not divide a width of %u", layer->heads, units);
    if (units / layer->heads > RM_ATTENTION_WIDTH_MAX)
        return rm_compile_refuse(c, "%u units a head; at most %u are possible",
                                 units / layer->heads, RM_ATTENTION_WIDTH_MAX);
    if (form.queries && !layer->causal)
        return rm_compile_refuse(c, "over a history it must be causal");
    const uint32_t behind = c->layer + 1;
    const bool last = !rm_compile_looks_across(c->layers + behind, c->layer_count - behind);
    struct rm_step *s = rm_compile_step(
        c, RM_STEP_ATTENTION,
        rm_vector_form(form.queries && last ? rm_queries_form(form) : form, form.features));
    rm_compile_product(c, s, "qkv.", form.features, 3 * units, false);
    rm_compile_product(c, s, "out.", units, form.features, false);
    return 0;
}

static uint32_t units_of(const struct rm_step *s)
{
    return s->product[OUT_PRODUCT].in;
}

static bool buffers(struct rm_net_workspace *w, const struct rm_step *s, struct rm_step_buffers *b)
{
    size_t rows = rm_workspace_rows_held(w, s, &s->in), units = units_of(s);
    size_t asked = rm_workspace_rows_held(w, s, &s->out);
    return rm_workspace_want(w, true, &b->kept[QKV], rows * 3 * units) &&
           rm_workspace_want(w, true, &b->kept[O], rows * units) &&
           rm_workspace_want(w, true, &b->kept[STATS], rows * 2 * s->layer.heads) &&
           rm_workspace_want(w, w->training, &b->kept[D_QKV], rows * 3 * units) &&
           rm_workspace_want(w, w->training, &b->kept[D_O], rows * units) &&
           rm_workspace_want(w, asks(s), &b->kept[ASKED_O], asked * units) &&
           rm_workspace_want(w, asks(s) && w->training, &b->kept[D_ASKED_O], asked * units);
}

static struct rm_dropout dropout_of(const struct rm_pass *p, const struct rm_step *s)
{
    const struct rm_net_input *in = p->input;
    if (s->layer.rate <= 0 || !in->dropout_update || p->w->use == RM_NET_ACT)
        return (struct rm_dropout){.below = 0};
    return rm_dropout_of(in->dropout_seed, RM_STREAM_DROPOUT, s->number, in->dropout_update,
                         s->layer.rate);
}

static struct rm_attention attention_of(const struct rm_pass *p, const struct rm_step *s)
{
    return (struct rm_attention){.spans = rm_spans_of(p, &s->in),
                                 .batch = p->states,
                                 .heads = s->layer.heads,
                                 .units = units_of(s),
                                 .causal = s->layer.causal,
                                 .rows = (uint32_t)rm_rows_of(p, &s->in),
                                 .queries = s->in.queries,
                                 .queries_alone = asks(s),
                                 .dropout = dropout_of(p, s),
                                 .before = p->first + p->input->rows_before};
}

/* What the cache has of the pass's lanes. */
static struct rm_attention_kept kept_of(const struct rm_pass *p, const struct rm_step *s)
{
    const struct rm_net_cache *c = p->input->cache;
    if (!c)
        return (struct rm_attention_kept){.rows = NULL};
    const size_t index = (size_t)(s - p->w->net->steps), stride = (size_t)c->rows * units_of(s);
    const size_t lane = p->input->cache_lane + p->first;
    return (struct rm_attention_kept){c->count + lane, c->keys[index] + lane * stride,
                                      c->values[index] + lane * stride, stride};
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    struct rm_attention a = attention_of(p, s);
    a.kept = kept_of(p, s);
    size_t n = rm_rows_of(p, &s->in), at = rm_kept_at(p, &s->in);
    float *qkv = b->kept[QKV] + at * 3 * a.units, *o = b->kept[O] + at * a.units;
    rm_net_product_forward(p, &s->product[QKV_PRODUCT], &b->product[QKV_PRODUCT], rows->x, n,
                           RM_ACT_NONE, qkv);
    p->ops->attention(p->b, &a, qkv, o, b->kept[STATS] + at * 2 * a.heads);
    if (asks(s)) {
        const struct rm_spans of = rm_span_rows(p, &s->in);
        float *asked = b->kept[ASKED_O] + rm_kept_at(p, &s->out) * a.units;
        p->ops->span_last(p->b, &of, s->in.queries, o, a.units, asked);
        o = asked;
    }
    rm_net_product_forward(p, &s->product[OUT_PRODUCT], &b->product[OUT_PRODUCT], o,
                           rm_rows_of(p, &s->out), RM_ACT_NONE, rows->y);
}

static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    const struct rm_attention a = attention_of(p, s);
    size_t n = rm_rows_of(p, &s->in);
    const bool some = asks(s);
    const struct rm_spans of = rm_span_rows(p, &s->in);
    rm_net_product_backward(p, &s->product[OUT_PRODUCT], &b->product[OUT_PRODUCT],
                            b->kept[some ? ASKED_O : O], rows->dy, rm_rows_of(p, &s->out),
                            b->kept[some ? D_ASKED_O : D_O]);
    if (some)
        p->ops->span_last_dx(p->b, &of, s->in.queries, b->kept[D_ASKED_O], a.units, b->kept[D_O]);
    p->ops->attention_dx(p->b, &a, b->kept[QKV], b->kept[O], b->kept[STATS], b->kept[D_O],
                         b->kept[D_QKV]);
    rm_net_product_backward(p, &s->product[QKV_PRODUCT], &b->product[QKV_PRODUCT], rows->x,
                            b->kept[D_QKV], n, rows->dx);
}

/* Scores and sums of values, with no padding: one for each row that a row sees. If only queries go
 * on, less what products do not do, or need not, for the other rows: queries and results. */
static double flops(const struct rm_step *s)
{
    const double tokens = s->in.tokens, queries = s->in.queries, context = tokens - queries;
    double pairs = tokens * tokens * (s->layer.causal ? 0.5 : 1.0), less = 0.0;
    if (s->in.queries)
        pairs = context * (context + 1) / 2 + queries * (context - (queries - 1) / 2 + 1);
    if (asks(s)) {
        pairs -= context * (context + 1) / 2;
        less = 2.0 * context * units_of(s) * (s->in.features + s->out.features);
    }
    return 4.0 * pairs * units_of(s) - less;
}

/* As torch.nn.MultiheadAttention begins. */
static void init(const struct rm_net *net, const struct rm_step *s, float *params,
                 struct rm_rng *rng)
{
    const struct rm_net_product *qkv = &s->product[QKV_PRODUCT], *out = &s->product[OUT_PRODUCT];
    (void)net;
    if (!s->layer.xavier)
        return;
    const double bound = sqrt(6.0 / ((double)qkv->in + qkv->out));
    rm_init_fill_uniform(params + qkv->weight, (size_t)qkv->in * qkv->out, bound, rng);
    rm_init_fill(params + qkv->bias, qkv->out, 0);
    rm_init_fill(params + out->bias, out->out, 0);
}

const struct rm_step_ops rm_attention_step = {.name = "attention",
                                              .by_state = true,
                                              .buffers = buffers,
                                              .forward = forward,
                                              .backward = backward,
                                              .flops = flops,
                                              .init = init};
