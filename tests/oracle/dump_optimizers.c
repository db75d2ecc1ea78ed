/* dump_optimizers DIRECTORY: takes each optimizer 200 steps along random gradients and writes what
 * went in and what came out, for tests/oracle/optimizers.py: NAME.json says what it is, NAME.f32
 * holds the first parameters, the gradients of all steps one after the other, and the last
 * parameters. */
#include "config/schema.h"
#include "learner/algo/optimizer.h"
#include "tests/support/optimizer_step.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 200, INPUTS = 11, ACTIONS = 3 };

struct sample {
    const char *name;
    enum rm_optimizer_kind kind;
    double momentum, weight_decay, grad_clip;
    enum rm_schedule_kind schedule;
    uint64_t warmup, span;
    bool decay_all;
};

static const struct sample samples[] = {
    {"adam", RM_OPTIMIZER_ADAM, 0, 0, 0, RM_SCHEDULE_CONSTANT, 0, 0, false},
    {"adam-clipped", RM_OPTIMIZER_ADAM, 0, 0, 1.5, RM_SCHEDULE_CONSTANT, 0, 0, false},
    {"adam-linear", RM_OPTIMIZER_ADAM, 0, 0, 0, RM_SCHEDULE_LINEAR, 0, 150, false},
    {"adam-cosine", RM_OPTIMIZER_ADAM, 0, 0, 0, RM_SCHEDULE_COSINE, 0, 150, false},
    {"adam-warm-up", RM_OPTIMIZER_ADAM, 0, 0, 0, RM_SCHEDULE_COSINE, 40, 150, false},
    {"adamw", RM_OPTIMIZER_ADAMW, 0, 0.2, 0, RM_SCHEDULE_CONSTANT, 0, 0, false},
    {"adamw-all", RM_OPTIMIZER_ADAMW, 0, 0.2, 0, RM_SCHEDULE_CONSTANT, 0, 0, true},
    {"rmsprop", RM_OPTIMIZER_RMSPROP, 0, 0, 0, RM_SCHEDULE_CONSTANT, 0, 0, false},
    {"rmsprop-momentum", RM_OPTIMIZER_RMSPROP, 0.9, 0, 1.5, RM_SCHEDULE_CONSTANT, 0, 0, false},
    {"muon", RM_OPTIMIZER_MUON, 0.95, 0.1, 0, RM_SCHEDULE_CONSTANT, 0, 0, false},
};

static const char *const schedules[] = {"constant", "linear", "cosine"};

static void fail(const char *what)
{
    fprintf(stderr, "dump_optimizers: %s\n", what);
    exit(1);
}

static void put(FILE *file, const float *x, size_t n)
{
    if (fwrite(x, sizeof *x, n, file) != n)
        fail("cannot write");
}

static struct rm_experiment experiment_of(const struct sample *s)
{
    static struct rm_experiment e;
    memset(&e, 0, sizeof e);
    e.optimizer.name = s->kind;
    e.optimizer.learning_rate = 3e-3;
    e.optimizer.beta1 = 0.9;
    e.optimizer.beta2 = 0.99;
    e.optimizer.epsilon = 1e-6;
    e.optimizer.momentum = s->momentum;
    e.optimizer.weight_decay = s->weight_decay;
    e.optimizer.decay_all = s->decay_all;
    e.optimizer.grad_clip = s->grad_clip;
    e.optimizer.schedule.kind = s->schedule;
    e.optimizer.schedule.warmup = s->warmup;
    e.optimizer.schedule.span = s->span;
    e.optimizer.schedule.end = 0.1;
    e.network.layer_count = 3;
    e.network.layers[0] = (struct rm_layer_config){.type = RM_LAYER_LINEAR, .units = 24};
    e.network.layers[1] = (struct rm_layer_config){.type = RM_LAYER_TANH};
    e.network.layers[2] = (struct rm_layer_config){.type = RM_LAYER_LINEAR, .units = 40};
    return e;
}

static json_t *describe(const struct sample *s, const struct rm_experiment *e,
                        const struct rm_net *net)
{
    json_t *tensors = json_array();
    const struct rm_net_tensor *t;
    const size_t n = rm_net_tensors(net, &t);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(
            tensors, json_pack("[iiIb]", (int)t[i].shape[0], t[i].dims > 1 ? (int)t[i].shape[1] : 0,
                               (json_int_t)t[i].offset, t[i].flags & RM_TENSOR_MATRIX ? 1 : 0));
    return json_pack(
        "{sssssisfsfsfsfsfsfsbsfsssIsIsfsIso}", "name", s->name, "optimizer",
        rm_optimizer_names[s->kind], "steps", STEPS, "learning_rate", e->optimizer.learning_rate,
        "beta1", e->optimizer.beta1, "beta2", e->optimizer.beta2, "epsilon", e->optimizer.epsilon,
        "momentum", s->momentum, "weight_decay", s->weight_decay, "decay_all", s->decay_all,
        "grad_clip", s->grad_clip, "schedule", schedules[s->schedule], "warmup",
        (json_int_t)s->warmup, "span", (json_int_t)s->span, "end", e->optimizer.schedule.end,
        "count", (json_int_t)rm_net_param_count(net), "tensors", tensors);
}

static void dump(struct rm_backend *b, const struct sample *s, const char *directory)
{
    const struct rm_experiment e = experiment_of(s);
    const struct rm_net_shape shape = {
        .inputs = INPUTS, .actions = ACTIONS, .outputs_per_action = 1};
    struct rm_net *net;
    struct rm_optimizer *optimizer;
    struct rm_error error;
    char path[512];
    if (rm_net_compile(&net, &e.network, &shape, &error) ||
        rm_optimizer_create(&optimizer, b, &e, net, &error))
        fail(error.text);
    const size_t n = rm_net_param_count(net);
    float *params = b->ops->alloc(b, n), *grads = b->ops->alloc(b, n);
    snprintf(path, sizeof path, "%s/%s.f32", directory, s->name);
    FILE *file = fopen(path, "wb");
    if (!file || !params || !grads)
        fail(path);
    rm_net_init(net, params, rm_rng_at(7, RM_STREAM_INIT, 0, 0));
    put(file, params, n);
    for (uint64_t k = 1; k <= STEPS; k++) {
        b->ops->normals(b, 7, RM_STREAM_TEST, 0, k, n, grads);
        for (size_t i = 0; i < n; i++)
            grads[i] = (grads[i] + 0.3f) * (i % 7 == 0 ? 1e-4f : 0.1f);
        put(file, grads, n);
        const struct rm_test_step step = {.params = params, .grads = grads, .loss = 1, .update = k};
        rm_test_optimizer_step(optimizer, &step);
    }
    put(file, params, n);
    if (fclose(file))
        fail("cannot write");
    json_t *about = describe(s, &e, net);
    snprintf(path, sizeof path, "%s/%s.json", directory, s->name);
    if (!about || json_dump_file(about, path, JSON_INDENT(1)))
        fail(path);
    json_decref(about);
    b->ops->release(b, params);
    b->ops->release(b, grads);
    rm_optimizer_destroy(optimizer);
    rm_net_destroy(net);
}

int main(int argc, char **argv)
{
    struct rm_backend *b;
    struct rm_error error;
    if (argc != 2)
        fail("usage: dump_optimizers DIRECTORY");
    if (rm_backend_cpu_create(&b, 1, "auto", &error))
        fail(error.text);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        dump(b, &samples[i], argv[1]);
    rm_backend_destroy(b);
    return 0;
}
