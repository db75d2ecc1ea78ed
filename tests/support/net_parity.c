#include "tests/support/net_parity.h"

#include "learner/backend/device.h"
#include "shm/base/float_word.h"
#include "shm/base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMS, X, INDEX, TAU, NOISE, D_OUT, GRADS, STATE, NEXT, RESTART, ARRAYS };

/* A network with everything that goes in and comes out, in one backend's memory. */
struct side {
    struct rm_backend *b;
    struct rm_net_workspace *train, *infer;
    float *memory[ARRAYS];
    struct rm_net_input input;
    bool failed;
};

struct sizes {
    size_t of[ARRAYS], out;
    bool recurrent;
};

static struct sizes sizes_of(const struct named_net *of, const struct rm_net *net)
{
    const size_t rows = (size_t)of->batch * (of->quantiles ? of->quantiles : 1);
    const uint32_t steps = test_net_steps(of), lanes = of->batch / (steps ? steps : 1);
    const size_t state = (size_t)lanes * rm_net_state_count(net);
    struct sizes s = {.out = rows * rm_net_outputs(net), .recurrent = rm_net_is_recurrent(net)};
    s.of[PARAMS] = s.of[GRADS] = rm_net_param_count(net);
    s.of[X] = (size_t)of->batch * of->shape.inputs;
    s.of[INDEX] = of->batch;
    s.of[TAU] = of->quantiles ? rows : 0;
    s.of[NOISE] = of->noise ? rm_net_noise_count(net) : 0;
    s.of[D_OUT] = s.out;
    s.of[STATE] = s.of[NEXT] = state;
    s.of[RESTART] = s.recurrent ? (of->batch + 3) / 4 : 0;
    return s;
}

/* A third of the tokens becomes padding: among them all of the second state. */
static void leave_out_tokens(const struct named_net *of, float *x, size_t n)
{
    const bool groups = of->shape.dims == 3 && of->config.layers[0].columns;
    if ((of->shape.dims != 2 && !groups) || of->shape.history.queries)
        return;
    const size_t each = of->shape.inputs / of->shape.dim[0], state = of->shape.inputs;
    for (size_t i = 0; i < n; i++)
        if (i / each % 3 == 1 || i / state == 1)
            x[i] = 0.0f;
}

/* The host's numbers of array `which`. */
static void draw(const struct named_net *of, const struct rm_net *net, int which,
                 struct rm_rng *rng, float *to, size_t n)
{
    static const float low[ARRAYS] = {
        [PARAMS] = -0.5f, [X] = -1, [NOISE] = -2, [D_OUT] = -1, [STATE] = -1};
    static const float high[ARRAYS] = {
        [PARAMS] = 0.5f, [X] = 1, [TAU] = 1, [NOISE] = 2, [D_OUT] = 1, [STATE] = 1};
    for (size_t i = 0; i < n; i++)
        to[i] = low[which] + (high[which] - low[which]) * rm_rng_float(rng);
    if (which == X) {
        test_net_input(of, net, to, n, NULL);
        leave_out_tokens(of, to, n);
    }
    for (uint32_t i = 0; which == INDEX && i < n; i++) {
        const uint32_t row = (i * 7 + 3) % of->batch;
        memcpy(to + i, &row, sizeof row);
    }
    for (uint32_t i = 0; which == RESTART && i < 4 * n; i++)
        ((uint8_t *)to)[i] = rm_rng_below(rng, 4) == 0;
}

/* Bits of a product's operands behind the first. */
static const unsigned mantissa[RM_COMPUTE_COUNT] = {
    [RM_COMPUTE_FP32] = 23, [RM_COMPUTE_TF32] = 10, [RM_COMPUTE_BF16] = 7, [RM_COMPUTE_FP16] = 10};

/* Each number off by up to half of what so few bits tell apart, its own way in every `move`. */
static void disturb(float *x, size_t n, unsigned bits, uint32_t move, uint64_t seed)
{
    struct rm_rng rng = rm_rng_at(seed, RM_STREAM_TEST, move, 1);
    for (size_t i = 0; i < n; i++)
        x[i] *= 1.0f + ldexpf(rm_rng_float(&rng) - 0.5f, -(int)bits);
}

static void make(struct side *s, struct rm_backend *b, const struct named_net *of,
                 const struct rm_net *net, const struct sizes *sizes, enum rm_compute compute,
                 uint32_t move, uint64_t seed)
{
    struct rm_error error;
    struct rm_rng rng = rm_rng_at(seed, RM_STREAM_TEST, 0, 0);
    *s = (struct side){.b = b};
    for (int i = 0; i < ARRAYS && !s->failed; i++) {
        const size_t n = sizes->of[i];
        float *host = calloc(n + 1, sizeof *host);
        s->memory[i] = b->ops->alloc(b, n + 1);
        s->failed = !host || !s->memory[i];
        if (!s->failed) {
            draw(of, net, i, &rng, host, n);
            if (move && (i == PARAMS || (i == X && !rm_net_takes_codes(net))))
                disturb(host, n, mantissa[compute], move, seed);
            b->ops->upload(b, s->memory[i], host, n);
        }
        free(host);
    }
    s->failed =
        s->failed ||
        rm_net_workspace_create(&s->train, net, b, of->batch, of->quantiles, RM_NET_TRAIN,
                                &error) ||
        rm_net_workspace_create(&s->infer, net, b, of->batch, of->quantiles, RM_NET_INFER, &error);
    s->input = (struct rm_net_input){
        .x = s->memory[X],
        .index = seed % 2 ? (const uint32_t *)(const void *)s->memory[INDEX] : NULL,
        .batch = of->batch,
        .tau = of->quantiles ? s->memory[TAU] : NULL,
        .quantiles = of->quantiles,
        .noise = of->noise ? s->memory[NOISE] : NULL,
        .dropout_seed = 5,
        .dropout_update = 9,
        .steps = test_net_steps(of),
        .state = sizes->recurrent ? s->memory[STATE] : NULL,
        .next_state = sizes->recurrent ? s->memory[NEXT] : NULL,
        .restart = sizes->recurrent ? (const uint8_t *)s->memory[RESTART] : NULL,
    };
}

static void unmake(struct side *s)
{
    rm_net_workspace_destroy(s->train);
    rm_net_workspace_destroy(s->infer);
    for (int i = 0; i < ARRAYS; i++)
        if (s->memory[i])
            s->b->ops->release(s->b, s->memory[i]);
}

/* Forward, both ways, and backward. Returns where the results are. */
static void pass(struct side *s, const float *out[2])
{
    const float *params = s->memory[PARAMS];
    rm_net_prepare(s->train, params);
    rm_net_prepare(s->infer, params);
    out[1] = rm_net_forward(s->infer, params, &s->input);
    out[0] = rm_net_forward(s->train, params, &s->input);
    rm_net_backward(s->train, params, &s->input, s->memory[D_OUT], s->memory[GRADS]);
}

/* Results of both passes, states and gradients, one after another: (2 out + next + grads). */
static float *collect(struct side *s, const struct sizes *z, const float *const out[2])
{
    const struct rm_backend_ops *ops = s->b->ops;
    float *all = calloc(2 * z->out + z->of[NEXT] + z->of[GRADS] + 1, sizeof *all);
    if (!all)
        return NULL;
    ops->download(s->b, all, out[0], z->out);
    ops->download(s->b, all + z->out, out[1], z->out);
    ops->download(s->b, all + 2 * z->out, s->memory[NEXT], z->of[NEXT]);
    ops->download(s->b, all + 2 * z->out + z->of[NEXT], s->memory[GRADS], z->of[GRADS]);
    return all;
}

static double distance(const float *want, const float *got, size_t n)
{
    double apart = 0.0, length = 0.0;
    for (size_t i = 0; i < n; i++) {
        apart += ((double)want[i] - got[i]) * ((double)want[i] - got[i]);
        length += (double)want[i] * want[i];
    }
    return n ? sqrt(apart) / sqrt(length > 0.0 ? length : 1.0) : 0.0;
}

/* The same passes as a graph: over results that were wiped. */
static bool same_captured(struct side *s, const struct sizes *z, const float *const was[2],
                          const float *before, size_t floats)
{
    const struct rm_device_ops *d = s->b->device;
    struct rm_device_graph *graph = NULL;
    struct rm_error error;
    const float *out[2];
    bool same = false;
    s->b->ops->fill(s->b, NAN, z->of[GRADS], s->memory[GRADS]);
    if (d && d->capture(s->b, &error))
        return false;
    pass(s, out);
    if (d && (d->captured(s->b, &graph, &error) || d->instantiate(s->b, graph, &error)))
        return false;
    if (d)
        d->launch(s->b, graph);
    float *all = collect(s, z, out);
    same = all && out[0] == was[0] && memcmp(all, before, floats * sizeof *all) == 0;
    if (d)
        d->graph_destroy(s->b, graph);
    free(all);
    return same;
}

static const double tolerance[RM_COMPUTE_COUNT] = {[RM_COMPUTE_FP32] = 1e-5,
                                                   [RM_COMPUTE_TF32] = 5e-3,
                                                   [RM_COMPUTE_BF16] = 5e-2,
                                                   [RM_COMPUTE_FP16] = 5e-3};

/* The CPU; the device; the CPU with operands that are off by their rounding. */
enum { PLAIN, DEVICE, MOVED, SIDES = MOVED + 6 };

static uint64_t hash(const float *x, size_t n)
{
    uint64_t bits = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) /* FNV-1a, by words */
        bits = (bits ^ (uint32_t)rm_word_of_float(x[i])) * 0x100000001b3u;
    return bits;
}

struct net_parity net_check(const struct named_net *of, struct rm_backend *cpu,
                            struct rm_backend *device, enum rm_compute compute, uint64_t seed)
{
    struct net_parity r = {0};
    struct rm_error error;
    struct rm_net *net;
    struct side side[SIDES];
    float *all[SIDES] = {NULL};
    const int sides = compute == RM_COMPUTE_FP32 ? MOVED : SIDES;
    if (rm_net_compile(&net, &of->config, &of->shape, &error))
        return (struct net_parity){.failed = true};
    const struct sizes z = sizes_of(of, net);
    const size_t results = 2 * z.out + z.of[NEXT], floats = results + z.of[GRADS];
    for (int k = 0; k < sides; k++) {
        const float *out[2];
        make(&side[k], k == DEVICE ? device : cpu, of, net, &z, compute,
             k < MOVED ? 0 : (uint32_t)(k - MOVED) + 1, seed);
        if (!side[k].failed) {
            pass(&side[k], out);
            all[k] = collect(&side[k], &z, out);
        }
        if (k == DEVICE && all[k])
            r.captured = same_captured(&side[k], &z, out, all[k], floats);
        r.failed = r.failed || !all[k];
    }
    r.failed = r.failed || (device->device && device->ops->failed(device, &error));
    if (!r.failed) {
        const float *cpus = all[PLAIN], *devices = all[DEVICE];
        r.result = distance(cpus, devices, results);
        r.gradient = distance(cpus + results, devices + results, z.of[GRADS]);
        r.result_allowed = r.gradient_allowed = tolerance[compute];
        for (int k = MOVED; k < sides; k++) {
            const double result = distance(cpus, all[k], results);
            const double gradient = distance(cpus + results, all[k] + results, z.of[GRADS]);
            r.result_allowed = fmax(r.result_allowed, 4.0 * result);
            r.gradient_allowed = fmax(r.gradient_allowed, 4.0 * gradient);
        }
        r.bits = hash(devices, floats);
    }
    for (int k = 0; k < sides; k++) {
        unmake(&side[k]);
        free(all[k]);
    }
    rm_net_destroy(net);
    return r;
}
