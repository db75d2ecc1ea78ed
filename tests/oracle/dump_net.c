/* dump_net DIRECTORY: runs each network of tests/support/nets.c on random numbers and writes what
 * went in and what came out, for tests/oracle/parity.py: NAME.json says what it is, NAME.f32 holds
 * the arrays in the order of its "arrays". A thousand steps of Adam follow on the squared distance
 * to fixed targets. */
#include "config/schema.h"
#include "tests/support/nets.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADAM_STEPS = 1000 };

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

static json_t *describe(const struct named_net *of, const struct rm_net *net)
{
    const struct rm_network_config *c = &of->config;
    json_t *layers = json_array(), *tensors = json_array();
    for (uint32_t i = 0; i < c->layer_count; i++)
        json_array_append_new(
            layers, json_pack("{sssisi}", "type", rm_layer_rows[c->layers[i].type].type, "units",
                              (int)c->layers[i].units, "cosines", (int)c->layers[i].cosines));
    const struct rm_net_tensor *t;
    size_t n = rm_net_tensors(net, &t);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(tensors, json_pack("[siiI]", t[i].name, (int)t[i].shape[0],
                                                 t[i].dims == 2 ? (int)t[i].shape[1] : 0,
                                                 (json_int_t)t[i].offset));
    return json_pack(
        "{sosbsbsssisisisisososi}", "layers", layers, "dueling", c->dueling, "noisy_head",
        c->noisy_head, "noise_kind", c->noise == RM_NOISE_FACTORISED ? "factorised" : "independent",
        "actions", (int)of->shape.actions, "outputs_per_action", (int)of->shape.outputs_per_action,
        "batch", (int)of->batch, "quantiles", (int)of->quantiles, "tensors", tensors, "noisy",
        json_boolean(of->noise), "adam_steps", ADAM_STEPS);
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
    rm_net_init(net, params, rm_rng_at(21, RM_STREAM_INIT, 0, 0));
    put(d, "params", params, n);
    put(d, "x", x, x_n);
    put(d, "tau", tau, tau_n);
    put(d, "noise", noise, noise_n);
    put(d, "d_out", d_out, out);
    put(d, "wanted", wanted, out);
    const struct rm_net_input input = {.x = x,
                                       .batch = of->batch,
                                       .tau = of->quantiles ? tau : NULL,
                                       .quantiles = of->quantiles,
                                       .noise = of->noise ? noise : NULL};
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
        struct rm_adam adam = {2.5e-4f, 0.9f, 0.999f, 1e-8f, step, 0};
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
    float *owned[] = {params, grads, m, v, x, tau, noise, d_out, wanted};
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
    dump(&d, &treasurehunt_net, argv[1]);
    rm_backend_destroy(d.b);
    return 0;
}
