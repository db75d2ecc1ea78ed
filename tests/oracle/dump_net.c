/* dump_net DIRECTORY: runs each network of tests/support/nets.c and some drawn ones on random
 * numbers and writes what went in and what came out, for tests/oracle/parity.py: NAME.json says
 * what it is, NAME.f32 holds the arrays in the order of its "arrays". A thousand steps of Adam
 * follow on the squared distance to fixed targets. */
#include "config/schema.h"
#include "config/traits.h"
#include "learner/backend/attention.h"
#include "tests/support/nets.h"
#include "tests/support/random_net.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ADAM_STEPS = 1000,
    DROPOUT_SEED = 5,
    DROPOUT_UPDATE = 9,
    DROPOUT_FLOATS = 65536,
    RANDOM_NETS = 64
};

struct dump {
    struct rm_backend *b;
    json_t *arrays;
    FILE *file;
};

static void fail(const char *what)
{
    fprintf(stderr, "dump_net: %s\n", what);
    exit(1);
}

static void put(struct dump *d, const char *name, const float *x, size_t n)
{
    json_array_append_new(d->arrays, json_pack("[sI]", name, (json_int_t)n));
    if (fwrite(x, sizeof *x, n, d->file) != n)
        fail("cannot write");
}

static float *draw(struct dump *d, uint32_t a, size_t n, bool normal)
{
    float *p = d->b->ops->alloc(d->b, n + 1);
    if (!p)
        fail("out of memory");
    (normal ? d->b->ops->normals : d->b->ops->uniforms)(d->b, 21, RM_STREAM_TEST, a, 0, n, p);
    return p;
}

static json_t *describe_layers(const struct rm_layer_config *layers, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct rm_layer_config *l = &layers[i];
        json_array_append_new(
            list,
            json_pack("{sssisisisisisisisbsfsisisbsisi}", "type", rm_layer_rows[l->type].type,
                      "units", (int)l->units, "cosines", (int)l->cosines, "kernel", (int)l->kernel,
                      "stride", (int)l->stride, "padding", (int)l->padding, "heads", (int)l->heads,
                      "span", (int)l->span, "causal", l->causal, "rate", l->rate, "columns",
                      (int)l->columns, "first_codes", (int)l->first_codes, "difference",
                      l->difference, "column", (int)l->column, "codes", (int)l->codes));
    }
    return list;
}

static json_t *describe_input(const struct rm_network_config *c, const struct rm_input_config *own)
{
    return json_pack("{ss so si si}", "name", own->name, "layers",
                     describe_layers(c->input_layers + own->first, own->layer_count), "first",
                     (int)(2 * RM_LAYERS_MAX + own->first), "group", (int)own->group);
}

/* Several observations, in the world's order, with their layers. */
static json_t *describe_inputs(const struct named_net *of)
{
    const struct rm_network_config *c = &of->config;
    const struct rm_input_config none = {.first = 0};
    json_t *list = json_array();
    for (uint32_t i = 0; i < of->shape.observations; i++) {
        const struct rm_net_observation *o = &of->shape.observation[i];
        const struct rm_input_config *own = rm_network_input(c, o->name);
        json_t *dims = json_array(), *about = describe_input(c, own ? own : &none);
        for (uint32_t d = 0; d < o->dims; d++)
            json_array_append_new(dims, json_integer(o->dim[d]));
        json_object_update_new(about, json_pack("{sssisisisisosfsb}", "name", o->name, "at",
                                                (int)o->at, "counts", (int)o->counts, "words",
                                                (int)o->words, "item", (int)o->item, "dims", dims,
                                                "low", o->low, "of_graph", !own));
        json_array_append_new(list, about);
    }
    return list;
}

/* Groups of inputs, by their number. */
static json_t *describe_groups(const struct rm_network_config *c)
{
    json_t *groups = json_object();
    char number[16];
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (!c->inputs[i].is_group)
            continue;
        json_t *about = describe_input(c, &c->inputs[i]);
        json_object_set_new(about, "as_tokens",
                            json_boolean(c->inputs[i].combine == RM_COMBINE_TOKENS));
        snprintf(number, sizeof number, "%u", i + 1);
        json_object_set_new(groups, number, about);
    }
    return groups;
}

/* Histories are trained by AdamW, with decay of all parameters. */
static double decay_of(const struct named_net *of)
{
    return of->shape.history.queries ? 0.01 : 0;
}

static json_t *describe(const struct named_net *of, const struct rm_net *net)
{
    static const char *const heads[] = {[RM_HEAD_VALUES] = "values",
                                        [RM_HEAD_LOGITS] = "logits",
                                        [RM_HEAD_ACTOR_CRITIC] = "critic"};
    const struct rm_network_config *c = &of->config;
    json_t *tensors = json_array(), *dims = json_array();
    const struct rm_net_tensor *t;
    size_t n = rm_net_tensors(net, &t);
    for (size_t i = 0; i < n; i++) {
        json_t *shape = json_array();
        for (uint32_t d = 0; d < t[i].dims; d++)
            json_array_append_new(shape, json_integer(t[i].shape[d]));
        json_array_append_new(tensors,
                              json_pack("[soIb]", t[i].name, shape, (json_int_t)t[i].offset,
                                        (t[i].flags & RM_TENSOR_TRAINED) != 0));
    }
    for (uint32_t d = 0; d < of->shape.dims; d++)
        json_array_append_new(dims, json_integer(of->shape.dim[d]));
    json_t *about =
        json_pack("{sososbsbsssisisisososi}", "layers", describe_layers(c->layers, c->layer_count),
                  "value_layers", describe_layers(c->value_layers, c->value_layer_count), "dueling",
                  c->dueling, "noisy_head", c->noisy_head, "noise_kind",
                  c->noise == RM_NOISE_FACTORISED ? "factorised" : "independent", "actions",
                  (int)of->shape.actions, "outputs_per_action", (int)of->shape.outputs_per_action,
                  "batch", (int)of->batch, "tensors", tensors, "noisy", json_boolean(of->noise),
                  "adam_steps", ADAM_STEPS);
    json_t *more =
        json_pack("{sisssbsbsfsosfsbsisisi}", "quantiles", (int)of->quantiles, "head",
                  heads[of->shape.head], "separate", c->trunk == RM_TRUNK_SEPARATE, "normalized",
                  c->normalize_observations, "clip", c->observation_clip, "dims", dims, "low",
                  of->shape.low, "codes", rm_net_takes_codes(net), "steps", (int)test_net_steps(of),
                  "state", (int)rm_net_state_count(net), "layers_max", RM_LAYERS_MAX);
    if (!about || !more || json_object_update(about, more) ||
        json_object_set_new(about, "inputs", describe_inputs(of)) ||
        json_object_set_new(about, "groups", describe_groups(c)) ||
        json_object_set_new(about, "as_tokens", json_boolean(c->combine == RM_COMBINE_TOKENS)) ||
        json_object_set_new(about, "queries", json_integer(of->shape.history.queries)) ||
        json_object_set_new(about, "weight_decay", json_real(decay_of(of))))
        fail("cannot describe the network");
    json_decref(more);
    return about;
}

/* What dropout makes of the weights of each attention: (batch, heads, tokens, tokens), tokens
 * counted without padding. */
static void put_kept(struct dump *d, const struct named_net *of)
{
    const size_t n = of->shape.dim[0];
    for (uint32_t i = 0; i < of->config.layer_count; i++) {
        const struct rm_layer_config *l = &of->config.layers[i];
        if (l->type != RM_LAYER_ATTENTION || l->rate <= 0)
            continue;
        char name[32];
        const struct rm_dropout drop =
            rm_dropout_of(DROPOUT_SEED, RM_STREAM_DROPOUT, i, DROPOUT_UPDATE, l->rate);
        const size_t floats = of->batch * l->heads * n * n;
        float *kept = d->b->ops->alloc(d->b, floats);
        for (size_t k = 0; k < floats; k++) {
            const size_t row = k / n % n, head = k / n / n % l->heads;
            const uint32_t key = rm_attention_row_key(&drop, (uint32_t)(k / n / n / l->heads),
                                                      (uint32_t)head, (uint32_t)row);
            kept[k] = rm_dropout_kept(key, (uint32_t)(k % n), drop.below, drop.scale);
        }
        snprintf(name, sizeof name, "kept.%u", i);
        put(d, name, kept, floats);
        d->b->ops->release(d->b, kept);
    }
}

/* What each dropout layer makes of ones. */
static void put_dropout(struct dump *d, const struct rm_layer_config *layers, uint32_t count,
                        uint32_t base, size_t floats)
{
    for (uint32_t i = 0; i < count; i++) {
        if (layers[i].type != RM_LAYER_DROPOUT)
            continue;
        char name[32];
        float *u = d->b->ops->alloc(d->b, floats);
        const struct rm_dropout drop = rm_dropout_of(DROPOUT_SEED, RM_STREAM_DROPOUT, base + i,
                                                     DROPOUT_UPDATE, layers[i].rate);
        d->b->ops->fill(d->b, 1.0f, floats, u);
        d->b->ops->dropout(d->b, &drop, 0, floats, u, u);
        snprintf(name, sizeof name, "dropout.%u", base + i);
        put(d, name, u, floats);
        d->b->ops->release(d->b, u);
    }
}

/* A third of the tokens become padding where there are some, among them all of the second state. */
static void leave_out_tokens(const struct named_net *of, float *x, size_t n)
{
    size_t state = of->shape.inputs, each = of->shape.dims ? state / of->shape.dim[0] : state;
    const bool tokens = of->shape.dims && of->shape.dims < 3 && !of->shape.history.queries;
    for (size_t i = 0; tokens && i < n; i++)
        if (i / each % 3 == 1 || i / state == 1)
            x[i] = 0;
}

static void dump(struct dump *d, const struct named_net *of, const char *directory)
{
    char path[512], stem[64];
    struct rm_net *net;
    struct rm_net_workspace *w;
    struct rm_error error;
    const struct rm_backend_ops *ops = d->b->ops;
    uint32_t q = of->quantiles ? of->quantiles : 1;
    if (rm_net_compile(&net, &of->config, &of->shape, &error) ||
        rm_net_workspace_create(&w, net, d->b, of->batch, q, true, &error))
        fail(error.text);
    snprintf(stem, sizeof stem, "%s", of->name);
    for (char *c = stem; *c; c++)
        if (*c == ' ' || *c == ',')
            *c = '_';
    snprintf(path, sizeof path, "%s/%s.f32", directory, stem);
    d->file = fopen(path, "wb");
    if (!d->file)
        fail(path);
    d->arrays = json_array();

    size_t n = rm_net_param_count(net), out = (size_t)of->batch * q * rm_net_outputs(net);
    size_t noise_n = of->noise ? rm_net_noise_count(net) : 0;
    size_t x_n = (size_t)of->batch * of->shape.inputs, tau_n = of->quantiles ? of->batch * q : 0;
    float *params = ops->alloc(d->b, n), *grads = ops->alloc(d->b, n), *m = ops->alloc(d->b, n);
    float *v = ops->alloc(d->b, n), *x = draw(d, 1, x_n, true), *tau = draw(d, 2, tau_n, false);
    float *noise = draw(d, 3, noise_n, true), *d_out = draw(d, 4, out, true);
    float *wanted = draw(d, 5, out, true);
    size_t state_n = (size_t)of->batch * rm_net_state_count(net); /* of at most so many lanes */
    float *state = draw(d, 6, state_n, true);
    uint8_t *restart = calloc(of->batch, 1);
    float *restarts = draw(d, 7, of->batch, false);
    for (uint32_t i = 0; i < of->batch && state_n; i++)
        restarts[i] = restart[i] = restarts[i] < 0.25f;
    test_net_input(of, net, x, x_n, NULL);
    leave_out_tokens(of, x, x_n);
    rm_net_init(net, params, rm_rng_at(21, RM_STREAM_INIT, 0, 0));
    put(d, "params", params, n);
    put(d, "x", x, x_n);
    put(d, "tau", tau, tau_n);
    put(d, "noise", noise, noise_n);
    put(d, "d_out", d_out, out);
    put(d, "wanted", wanted, out);
    put(d, "state", state, state_n);
    put(d, "restart", restarts, of->batch);
    put_dropout(d, of->config.layers, of->config.layer_count, 0,
                of->shape.history.queries ? 4 * DROPOUT_FLOATS : DROPOUT_FLOATS);
    put_kept(d, of);
    for (uint32_t i = 0; i < of->config.input_count; i++)
        put_dropout(d, of->config.input_layers + of->config.inputs[i].first,
                    of->config.inputs[i].layer_count,
                    2 * RM_LAYERS_MAX + of->config.inputs[i].first, DROPOUT_FLOATS);
    const struct rm_network_config *c = &of->config;
    if (of->shape.head == RM_HEAD_ACTOR_CRITIC && c->trunk == RM_TRUNK_SEPARATE)
        put_dropout(d, c->value_layer_count ? c->value_layers : c->layers,
                    c->value_layer_count ? c->value_layer_count : c->layer_count, RM_LAYERS_MAX,
                    DROPOUT_FLOATS);
    const struct rm_net_input input = {.x = x,
                                       .batch = of->batch,
                                       .tau = of->quantiles ? tau : NULL,
                                       .quantiles = of->quantiles,
                                       .noise = of->noise ? noise : NULL,
                                       .dropout_seed = DROPOUT_SEED,
                                       .dropout_update = DROPOUT_UPDATE,
                                       .steps = test_net_steps(of),
                                       .state = state_n ? state : NULL,
                                       .restart = state_n ? restart : NULL};
    rm_net_prepare(w, params);
    put(d, "out", rm_net_forward(w, params, &input), out);
    rm_net_backward(w, params, &input, d_out, grads);
    put(d, "grads", grads, n);
    for (uint64_t step = 1; step <= ADAM_STEPS; step++) {
        rm_net_prepare(w, params);
        const float *y = rm_net_forward(w, params, &input);
        for (size_t i = 0; i < out; i++)
            d_out[i] = 2.0f * (y[i] - wanted[i]) / (float)out;
        rm_net_backward(w, params, &input, d_out, grads);
        struct rm_adam adam = {2.5e-4f, 0.9f, 0.999f, 1e-8f, step, (float)decay_of(of)};
        ops->adam(d->b, &adam, 1.0f, grads, n, params, m, v);
    }
    put(d, "trained", params, n);
    if (fclose(d->file))
        fail("cannot write");

    json_t *about = describe(of, net);
    if (!about)
        fail("cannot describe the network");
    json_object_set_new(about, "arrays", d->arrays);
    snprintf(path, sizeof path, "%s/%s.json", directory, stem);
    if (json_dump_file(about, path, JSON_INDENT(1)))
        fail(path);
    json_decref(about);
    free(restart);
    float *owned[] = {params, grads, m, v, x, tau, noise, d_out, wanted, state, restarts};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        ops->release(d->b, owned[i]);
    rm_net_workspace_destroy(w);
    rm_net_destroy(net);
}

int main(int argc, char **argv)
{
    struct dump d = {0};
    struct rm_error error;
    if (argc != 2)
        fail("usage: dump_net DIRECTORY");
    if (rm_backend_cpu_create(&d.b, 1, "auto", &error))
        fail(error.text);
    for (size_t i = 0; i < test_net_count; i++)
        dump(&d, &test_nets[i], argv[1]);
    for (uint32_t i = 0; i < RANDOM_NETS; i++) {
        struct random_net net;
        random_net_draw(i, &net);
        dump(&d, &net.of, argv[1]);
    }
    dump(&d, &darkroom_net, argv[1]);
    dump(&d, &treasurehunt_net, argv[1]);
    rm_backend_destroy(d.b);
    return 0;
}
