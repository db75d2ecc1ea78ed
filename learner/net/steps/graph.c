/* Layers over the edges of a graph. Nodes are the rows of a counted observation NAME; the
 * observation NAME_edges has their edges (graph.h), NAME_node the number of the own node. They
 * stand in the input row, whose numbers these steps read as they came from the world. */
#include "learner/net/steps/steps.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- compiling ------------------------------------------------------------------------------- */

static const struct rm_net_observation *part_of(const struct rm_compiler *c, const char *suffix)
{
    char name[RM_INPUT_NAME_MAX + 16];
    snprintf(name, sizeof name, "%s%s", c->input->name, suffix);
    for (uint32_t i = 0; i < c->net->shape.observations; i++)
        if (!strcmp(c->net->shape.observation[i].name, name))
            return &c->net->shape.observation[i];
    return NULL;
}

/* Whether the layer stands behind the nodes of a graph, which has edges. */
static int check(struct rm_compiler *c)
{
    if (!c->input || c->input->is_group)
        return rm_compile_refuse(c, "belongs in a list of network.inputs, that of a graph's nodes");
    const struct rm_net_observation *edges = part_of(c, "_edges");
    if (!edges)
        return rm_compile_refuse(c, "needs edges: the world shows no observation %s_edges",
                                 c->input->name);
    if (!c->place.form.padded || c->now.counts != 1)
        return rm_compile_refuse(c,
                                 "needs nodes: %s must be a counted observation of (nodes, "
                                 "features), without frame stacks",
                                 c->input->name);
    if (edges->dims != 1 || edges->counts != 1)
        return rm_compile_refuse(c, "%s_edges must be a counted list of numbers", c->input->name);
    return 0;
}

static void put_edges(struct rm_compiler *c, struct rm_step *s)
{
    const struct rm_net_observation *edges = part_of(c, "_edges");
    s->edges_at = edges->at + edges->counts;
    s->edges_most = edges->words;
}

int rm_compile_message_passing(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    int code = check(c);
    if (code)
        return code;
    put_edges(c, rm_compile_step(c, RM_STEP_NEIGHBOURS,
                                 rm_vector_form(c->place.form, 2 * c->place.form.features)));
    return rm_compile_linear(c, layer);
}

int rm_compile_graph_attention(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    const struct rm_row_form form = c->place.form;
    const uint32_t units = layer->units ? layer->units : form.features, heads = layer->heads;
    int code = check(c);
    if (code)
        return code;
    if (heads == 0 || units % heads || units > RM_UNITS_MAX / 3)
        return rm_compile_refuse(c, "%u heads do not divide a width of %u", heads, units);
    struct rm_step *s =
        rm_compile_step(c, RM_STEP_GRAPH_ATTENTION, rm_vector_form(form, form.features));
    put_edges(c, s);
    rm_compile_product(c, s, "qkv.", form.features, 3 * units, false);
    s->weight = rm_compile_tensor(c, "score", RM_TENSOR_TRAINED, 2,
                                  (const uint32_t[]){heads, 2 * (units / heads)});
    rm_compile_product(c, s, "out.", units, form.features, false);
    return 0;
}

int rm_compile_graph_pool(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    const struct rm_net_place nodes = c->place;
    struct rm_row_form one = rm_vector_form(nodes.form, nodes.form.features);
    int code = check(c);
    if (code)
        return code;
    const struct rm_net_observation *own = part_of(c, "_node");
    if (!own || own->counts || own->words != 1)
        return rm_compile_refuse(c, "needs the own node: an observation %s_node of one number",
                                 c->input->name);
    one.tokens = 1;
    one.padded = 0;
    code = rm_compile_mean_pool(c, layer);
    if (code)
        return code;
    const struct rm_net_place mean = c->place;
    c->place = nodes;
    struct rm_step *s = rm_compile_step(c, RM_STEP_OWN_NODE, one);
    s->own_at = own->at;
    const struct rm_net_place picked = c->place;
    c->place = mean;
    one.features *= 2;
    s = rm_compile_step(c, RM_STEP_JOIN, one);
    s->other = picked.at;
    return 0;
}

/* --- neighbours, and one node ---------------------------------------------------------------- */

static struct rm_graph graph_of(const struct rm_pass *p, const struct rm_step *s)
{
    return (struct rm_graph){.x = p->w->x + (size_t)p->first * p->w->net->shape.inputs,
                             .spans = rm_spans_of(p, &s->in),
                             .width = p->w->net->shape.inputs,
                             .edges_at = s->edges_at,
                             .edges_most = s->edges_most,
                             .own_at = s->own_at,
                             .batch = p->states,
                             .rows = (uint32_t)rm_rows_of(p, &s->in)};
}

static void gather(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_graph g = graph_of(p, s);
    p->ops->graph_mean(p->b, &g, rows->x, s->in.features, rows->y);
}

static void gather_back(const struct rm_pass *p, const struct rm_step *s,
                        const struct rm_rows *rows)
{
    const struct rm_graph g = graph_of(p, s);
    if (rows->dx)
        p->ops->graph_mean_dx(p->b, &g, rows->dy, s->in.features, rows->dx);
}

const struct rm_step_ops rm_neighbours_step = {
    .name = "neighbours", .by_state = true, .forward = gather, .backward = gather_back};

static void pick(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_graph g = graph_of(p, s);
    p->ops->graph_own(p->b, &g, rows->x, s->in.features, rows->y);
}

static void pick_back(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_graph g = graph_of(p, s);
    if (rows->dx)
        p->ops->graph_own_dx(p->b, &g, rows->dy, s->in.features, rows->dx);
}

const struct rm_step_ops rm_own_node_step = {
    .name = "own_node", .by_state = true, .forward = pick, .backward = pick_back};

/* --- attention ------------------------------------------------------------------------------- */

/* Rows of a group of states in the backward pass; one state may have more. Sums of gradients depend
 * on the groups, so these do not depend on the number of threads. */
enum { GROUP_ROWS = 512 };

enum product { QKV_PRODUCT, OUT_PRODUCT };
enum kept { QKV, O, STATS, D_QKV, D_O, D_SOURCE, D_SCORE };

static uint32_t units_of(const struct rm_step *s)
{
    return s->product[OUT_PRODUCT].in;
}

static bool buffers(struct rm_net_workspace *w, const struct rm_step *s, struct rm_step_buffers *b)
{
    const size_t rows = rm_workspace_rows_held(w, s, &s->in), units = units_of(s);
    const size_t heads = s->layer.heads;
    const size_t least = s->in.tokens > GROUP_ROWS ? s->in.tokens : GROUP_ROWS;
    const size_t back = rm_on_device(w) || rows < least ? rows : least;
    return rm_workspace_want(w, true, &b->kept[QKV], rows * 3 * units) &&
           rm_workspace_want(w, true, &b->kept[O], rows * units) &&
           rm_workspace_want(w, true, &b->kept[STATS], rows * heads * RM_GRAPH_STATS) &&
           rm_workspace_want(w, w->training, &b->kept[D_QKV], back * 3 * units) &&
           rm_workspace_want(w, w->training, &b->kept[D_O], back * units) &&
           rm_workspace_want(w, w->training, &b->kept[D_SOURCE], back * heads) &&
           rm_workspace_want(w, w->training, &b->kept[D_SCORE], w->max_batch * 2 * units);
}

static struct rm_graph_attention attention_of(const struct rm_pass *p, const struct rm_step *s)
{
    return (struct rm_graph_attention){.graph = graph_of(p, s),
                                       .score = p->params + s->weight,
                                       .heads = s->layer.heads,
                                       .units = units_of(s)};
}

static void attend(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    const struct rm_graph_attention a = attention_of(p, s);
    const size_t n = rm_rows_of(p, &s->in), at = rm_kept_at(p, &s->in);
    float *qkv = b->kept[QKV] + at * 3 * a.units, *o = b->kept[O] + at * a.units;
    rm_net_product_forward(p, &s->product[QKV_PRODUCT], &b->product[QKV_PRODUCT], rows->x, n,
                           RM_ACT_NONE, qkv);
    p->ops->graph_attention(p->b, &a, qkv, b->kept[STATS] + at * a.heads * RM_GRAPH_STATS, o);
    rm_net_product_forward(p, &s->product[OUT_PRODUCT], &b->product[OUT_PRODUCT], o, n, RM_ACT_NONE,
                           rows->y);
}

/* The first states overwrite the gradients of weights, the others are added. */
static void product_back(const struct rm_pass *p, const struct rm_net_product *m,
                         struct rm_net_product_buffers *b, const float *x, const float *dy,
                         size_t rows, float *dx)
{
    if (p->first == 0 || p->input->action_only)
        rm_net_product_backward(p, m, b, x, dy, rows, dx);
    else
        rm_net_product_backward_more(p, m, b, x, dy, rows, true, dx);
}

static void attend_back_group(const struct rm_pass *p, const struct rm_step *s,
                              const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    const struct rm_graph_attention a = attention_of(p, s);
    const size_t n = rm_rows_of(p, &s->in), at = rm_rows_before(p, &s->in);
    const size_t width = at * s->in.features;
    const float *qkv = b->kept[QKV] + at * 3 * a.units, *o = b->kept[O] + at * a.units;
    product_back(p, &s->product[OUT_PRODUCT], &b->product[OUT_PRODUCT], o, rows->dy + width, n,
                 b->kept[D_O]);
    p->ops->graph_attention_dx(p->b, &a, qkv, o, b->kept[STATS] + at * a.heads * RM_GRAPH_STATS,
                               b->kept[D_O], b->kept[D_SOURCE], b->kept[D_QKV],
                               b->kept[D_SCORE] + (size_t)p->first * 2 * a.units);
    product_back(p, &s->product[QKV_PRODUCT], &b->product[QKV_PRODUCT], rows->x + width,
                 b->kept[D_QKV], n, rows->dx ? rows->dx + width : NULL);
}

/* In groups of states, so that gradients between the two products stay in the cache. */
static void attend_back(const struct rm_pass *p, const struct rm_step *s,
                        const struct rm_rows *rows)
{
    const size_t score = 2 * (size_t)units_of(s);
    struct rm_pass group = *p;
    for (group.first = 0; group.first < p->states; group.first += group.states) {
        if (!rm_on_device(p->w))
            group.states = rm_spans_group(p->w, group.first, p->states, GROUP_ROWS);
        attend_back_group(&group, s, rows);
    }
    p->ops->sum_parts(p->b, rows->own->kept[D_SCORE], p->states, score, score,
                      p->grads + s->weight);
}

static void init(const struct rm_net *net, const struct rm_step *s, float *params,
                 struct rm_rng *rng)
{
    const uint32_t units = units_of(s);
    (void)net;
    rm_init_fill_normal(params + s->weight, 2 * (size_t)units, sqrt(s->layer.heads / (2.0 * units)),
                        rng);
}

const struct rm_step_ops rm_graph_attention_step = {.name = "graph_attention",
                                                    .by_state = true,
                                                    .buffers = buffers,
                                                    .forward = attend,
                                                    .backward = attend_back,
                                                    .init = init};
