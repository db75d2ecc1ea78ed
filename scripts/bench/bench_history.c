/* Networks over packed histories, on the cores that there are.
 *
 * distil.train   updates of the dark room's transformer (227,656 parameters, four post-norm blocks
 *                of 64, four heads, dropout 0.1): 16 regions of 80 queries, two of them without a
 *                region before it; forward pass, cross-entropy of actions and 0.1 of types,
 *                gradient and AdamW. Samples are queries. Ceiling: the operations that the queries
 *                need (behind the last attention, only their own rows), at the FMA peak of the
 *                cores.
 * distil.act     acting with it in eight lanes, on one core, with keys and values of the context
 *                kept; compared with acting by the whole context. */
#include "learner/net/history.h"

#include "actor/context.h"
#include "learner/net/net.h"
#include "scripts/bench/report.h"
#include "shm/base/clock.h"
#include "shm/base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 9, PAIRS = 16, REGION = 80, CONTEXT = 2 * REGION + 2, FEATURES = 10 };
enum { ACTIONS = 5, TYPES = 3, OUTPUTS = ACTIONS + TYPES, CELLS = 9, BLOCK = 11, BLOCKS = 4 };
enum { LANES = 8 };

static void need(int code, const struct rm_error *error)
{
    if (code) {
        fprintf(stderr, "bench_history: %s\n", error->text);
        exit(1);
    }
}

static struct rm_network_config transformer(void)
{
    static const struct rm_layer_config block[BLOCK] = {
        {.type = RM_LAYER_ATTENTION, .heads = 4, .causal = true, .rate = 0.1, .xavier = true},
        {.type = RM_LAYER_DROPOUT, .rate = 0.1},
        {.type = RM_LAYER_RESIDUAL, .span = 2},
        {.type = RM_LAYER_LAYER_NORM},
        {.type = RM_LAYER_LINEAR, .units = 256},
        {.type = RM_LAYER_GELU},
        {.type = RM_LAYER_DROPOUT, .rate = 0.1},
        {.type = RM_LAYER_LINEAR, .units = 64},
        {.type = RM_LAYER_DROPOUT, .rate = 0.1},
        {.type = RM_LAYER_RESIDUAL, .span = 5},
        {.type = RM_LAYER_LAYER_NORM},
    };
    struct rm_network_config config = {
        .layer_count = 1 + BLOCKS * BLOCK,
        .layers = {{.type = RM_LAYER_HISTORY, .units = 64, .codes = 328}}};
    for (uint32_t i = 0; i < BLOCKS; i++)
        memcpy(config.layers + 1 + i * BLOCK, block, sizeof block);
    return config;
}

static void put_transition(struct rm_rng *rng, float *row)
{
    float f[FEATURES] = {(float)rm_rng_below(rng, CELLS), (float)rm_rng_below(rng, CELLS)};
    f[2 + rm_rng_below(rng, ACTIONS)] = 1;
    f[7] = (float)rm_rng_below(rng, 2);
    f[8] = (float)rm_rng_below(rng, CELLS);
    f[9] = (float)rm_rng_below(rng, CELLS);
    rm_history_put(row, RM_HISTORY_TRANSITION, 0, f, FEATURES);
}

static void put_region(struct rm_rng *rng, bool first, float *x)
{
    const uint32_t width = rm_history_width(FEATURES);
    float *row = x;
    for (uint32_t region = first; region < 2; region++) {
        rm_history_put(row, RM_HISTORY_BEGIN, 0, NULL, FEATURES);
        row += width;
        for (uint32_t i = region; i < REGION; i++, row += width)
            put_transition(rng, row);
        if (region == 0) {
            rm_history_put(row, RM_HISTORY_END, 0, NULL, FEATURES);
            row += width;
        }
    }
    for (uint32_t i = 0; i < REGION; i++)
        rm_history_put(x + (CONTEXT + i) * width, RM_HISTORY_QUERY,
                       rm_rng_below(rng, CELLS * CELLS), NULL, FEATURES);
}

/* Gradient of the cross-entropy of n logits with target `target`; returns it. */
static double cross_entropy(const float *z, uint32_t n, uint32_t target, float scale, float *d)
{
    float most = z[0];
    for (uint32_t i = 1; i < n; i++)
        most = z[i] > most ? z[i] : most;
    float sum = d[0] = expf(z[0] - most);
    for (uint32_t i = 1; i < n; i++)
        sum += d[i] = expf(z[i] - most);
    for (uint32_t i = 0; i < n; i++)
        d[i] = scale * (d[i] / sum - (i == target ? 1.0f : 0.0f));
    return (double)scale * (double)(logf(sum) + most - z[target]);
}

static void put_loss(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                     double sums[RM_NET_SUMS])
{
    const uint8_t *actions = self;
    const float scale = 1.0f / (PAIRS * REGION);
    for (uint32_t i = 0; i < rows * REGION; i++) {
        const float *z = out + (size_t)i * OUTPUTS;
        float *d = d_out + (size_t)i * OUTPUTS;
        sums[0] += cross_entropy(z, ACTIONS, actions[first * REGION + i], scale, d);
        sums[0] += cross_entropy(z + ACTIONS, TYPES, i % REGION == REGION - 1 ? 2 : 0, 0.1f * scale,
                                 d + ACTIONS);
    }
}

static bool is_first(uint32_t pair)
{
    return pair % 12 == 0;
}

/* Operations of a region of an update, with so many rows of context. */
static double region_flops(uint32_t context)
{
    const struct rm_network_config config = transformer();
    const struct rm_net_shape shape =
        rm_history_shape(context, REGION, FEATURES, CELLS * CELLS, ACTIONS, TYPES);
    struct rm_net *net;
    struct rm_error error;
    need(rm_net_compile(&net, &config, &shape, &error), &error);
    const double flops = rm_net_forward_flops(net, 1, 0) + rm_net_backward_flops(net, 1, 0);
    rm_net_destroy(net);
    return flops;
}

static void train(uint32_t threads)
{
    const struct rm_network_config config = transformer();
    const struct rm_net_shape shape =
        rm_history_shape(CONTEXT, REGION, FEATURES, CELLS * CELLS, ACTIONS, TYPES);
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    struct rm_backend *b;
    struct rm_net *net;
    struct rm_net_workspace *w;
    struct rm_error error;
    need(rm_backend_cpu_create(&b, threads, "auto", &error), &error);
    need(rm_net_compile(&net, &config, &shape, &error), &error);
    need(rm_net_workspace_create(&w, net, b, PAIRS, 1, RM_NET_TRAIN, &error), &error);
    const size_t n = rm_net_param_count(net);
    float *params = b->ops->alloc(b, n), *grads = b->ops->alloc(b, n), *m = b->ops->alloc(b, n);
    float *v = b->ops->alloc(b, n), *x = b->ops->alloc(b, (size_t)PAIRS * shape.inputs);
    static uint8_t actions[PAIRS * REGION];
    if (!params || !grads || !m || !v || !x)
        exit(1);
    for (uint32_t i = 0; i < PAIRS; i++)
        put_region(&rng, is_first(i), x + (size_t)i * shape.inputs);
    for (size_t i = 0; i < sizeof actions; i++)
        actions[i] = (uint8_t)rm_rng_below(&rng, ACTIONS);
    rm_net_init(net, params, rm_rng_at(1, RM_STREAM_INIT, 0, 0));
    const struct rm_net_loss loss = {put_loss, actions};
    double values[RUNS], peak = 0;
    for (int r = -2, step = 1; r < RUNS; r++, step++) {
        const double now = rm_bench_fma_once(NULL);
        peak = now > peak ? now : peak;
        const uint64_t start = rm_now_ns();
        for (int i = 0; i < 4; i++) {
            const struct rm_net_input input = {.x = x,
                                               .batch = PAIRS,
                                               .dropout_seed = 1,
                                               .dropout_update = (uint64_t)(4 * step + i)};
            const struct rm_adam adam = {3e-4f, 0.9f, 0.99f, 1e-8f, (uint64_t)step, 0.01f};
            double sums[RM_NET_SUMS];
            rm_net_prepare(w, params);
            rm_net_learn(w, params, &input, &loss, grads, sums);
            b->ops->adam(b, &adam, 1.0f, grads, n, params, m, v);
        }
        if (r >= 0)
            values[r] = 4.0 * PAIRS * REGION / ((double)(rm_now_ns() - start) * 1e-9);
    }
    double flops = 0;
    for (uint32_t i = 0; i < PAIRS; i++)
        flops += region_flops(is_first(i) ? REGION : CONTEXT) / (PAIRS * REGION);
    char note[64];
    snprintf(note, sizeof note, "%u thread%s, %.2f Mflop a sample", threads,
             threads == 1 ? "" : "s", flops * 1e-6);
    rm_bench_report(&(struct rm_bench_result){"distil.train", "samples/s", values, RUNS,
                                              threads * peak * 1e9 / flops, 0, note});
    float *all[] = {params, grads, m, v, x};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        b->ops->release(b, all[i]);
    rm_net_workspace_destroy(w);
    rm_net_destroy(net);
    rm_backend_destroy(b);
}

/* --- acting ---------------------------------------------------------------------------------- */

/* Two regions' steps of all lanes, with a cache or without; seconds. */
static double act_regions(struct rm_context *context, struct rm_net_workspace *w,
                          const float *params, struct rm_rng *rng)
{
    uint8_t obs[LANES][2], flags[LANES] = {0};
    float reward[LANES], types[LANES][TYPES] = {{1}};
    int32_t action[LANES];
    const struct rm_context_step step = {0, LANES, obs[0], reward, flags};
    struct rm_error error;
    const uint64_t start = rm_now_ns();
    for (uint32_t s = 0; s < 2 * REGION; s++) {
        for (uint32_t i = 0; i < LANES; i++) {
            obs[i][0] = (uint8_t)rm_rng_below(rng, CELLS);
            obs[i][1] = (uint8_t)rm_rng_below(rng, CELLS);
            reward[i] = (float)rm_rng_below(rng, 2);
            action[i] = (int32_t)rm_rng_below(rng, ACTIONS);
        }
        need(rm_context_see(context, &step, &error), &error);
        const struct rm_net_input input = {.x = rm_context_inputs(context, &step),
                                           .batch = LANES,
                                           .cache = rm_context_cache(context)};
        rm_net_forward(w, params, &input);
        rm_context_act(context, &step, action, types[0]);
    }
    return (double)(rm_now_ns() - start) * 1e-9;
}

static void act(void)
{
    static const struct rm_env_agent agent = {.name = "agent_0",
                                              .dtype = RM_ENV_U8,
                                              .dims = 1,
                                              .shape = {2},
                                              .high = CELLS - 1,
                                              .actions = ACTIONS};
    const struct rm_network_config config = transformer();
    const struct rm_net_shape shape =
        rm_history_shape(CONTEXT, REGION, FEATURES, CELLS * CELLS, ACTIONS, TYPES);
    const struct rm_net_shape alone = rm_history_alone(shape);
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    struct rm_backend *b;
    struct rm_net *net;
    struct rm_net_workspace *w;
    struct rm_context *kept, *whole;
    struct rm_error error;
    need(rm_backend_cpu_create(&b, 1, "auto", &error), &error);
    need(rm_net_compile(&net, &config, &alone, &error), &error);
    need(rm_net_workspace_create(&w, net, b, LANES, 1, RM_NET_ACT, &error), &error);
    need(rm_context_create(&kept, &agent, &shape, net, LANES, &error), &error);
    need(rm_context_create(&whole, &agent, &shape, NULL, LANES, &error), &error);
    float *params = b->ops->alloc(b, rm_net_param_count(net));
    if (!params)
        exit(1);
    rm_net_init(net, params, rm_rng_at(1, RM_STREAM_INIT, 0, 0));
    rm_net_prepare(w, params);
    double with[RUNS], without[RUNS];
    for (int r = -1; r < RUNS; r++) { /* the first regions are shorter */
        const double fast = act_regions(kept, w, params, &rng);
        const double slow = act_regions(whole, w, params, &rng);
        if (r >= 0) {
            with[r] = 2.0 * REGION * LANES / fast;
            without[r] = 2.0 * REGION * LANES / slow;
        }
    }
    rm_bench_report(&(struct rm_bench_result){
        "distil.act", "steps/s", with, RUNS, 0, rm_bench_median(without, RUNS),
        "one core, 8 lanes; ratio: the whole context for every action"});
    b->ops->release(b, params);
    rm_context_destroy(kept);
    rm_context_destroy(whole);
    rm_net_workspace_destroy(w);
    rm_net_destroy(net);
    rm_backend_destroy(b);
}

int main(int argc, char **argv)
{
    if (rm_bench_wanted(argc, argv, "distil.train"))
        train(sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1);
    if (rm_bench_wanted(argc, argv, "distil.act"))
        act();
    return 0;
}
