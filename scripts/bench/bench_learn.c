/* Forward and backward passes of small networks, as rm_net_learn() makes them.
 *
 * mlp128.samples      samples a second and core of an 8-128-128-4 ReLU network, batch 1,024
 * learn.cartpole.ROWS samples a second and core of CartPole's policy and value by PPO, 4-64-64 tanh
 *                     each, for minibatches of that many rows; two threads where there are two
 *                     cores
 *
 * The loss costs next to nothing here. Ceiling: what the FMA peak of the cores allows for the
 * products; forward, gradients of weights and of inputs, but of the network's own. */
#include "learner/net/net.h"
#include "scripts/bench/report.h"
#include "shm/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RUNS = 9 };

struct bench {
    const char *name;
    uint32_t batch, threads;
    struct rm_network_config config;
    struct rm_net_shape shape;
    double flops; /* of a sample */
};

#define LINEAR(n)                                                                                  \
    {                                                                                              \
        .type = RM_LAYER_LINEAR, .units = (n)                                                      \
    }
#define ACT(a)                                                                                     \
    {                                                                                              \
        .type = RM_LAYER_##a                                                                       \
    }

static void rows(void *self, uint32_t first, uint32_t n, const float *out, float *d_out,
                 double sums[RM_NET_SUMS])
{
    size_t outputs = *(const size_t *)self;
    (void)first;
    for (size_t i = 0; i < n * outputs; i++)
        d_out[i] = 0.01f * out[i];
    sums[0] += n;
}

static float *uniforms(struct rm_backend *b, size_t n)
{
    float *p = b->ops->alloc(b, n);
    if (!p)
        exit(1);
    b->ops->uniforms(b, 1, RM_STREAM_TEST, 0, 0, n, p);
    return p;
}

static void run(const struct bench *bench)
{
    struct rm_backend *b;
    struct rm_net *net;
    struct rm_net_workspace *w;
    struct rm_error error;
    const char *isa = getenv("RM_BENCH_ISA");
    if (rm_backend_cpu_create(&b, bench->threads, isa ? isa : "auto", &error) ||
        rm_net_compile(&net, &bench->config, &bench->shape, &error) ||
        rm_net_workspace_create(&w, net, b, bench->batch, 0, RM_NET_TRAIN, &error)) {
        fprintf(stderr, "bench_learn: %s\n", error.text);
        exit(1);
    }
    size_t n = rm_net_param_count(net), outputs = rm_net_outputs(net);
    float *params = uniforms(b, n), *grads = uniforms(b, n);
    float *x = uniforms(b, (size_t)bench->batch * bench->shape.inputs);
    uint32_t *index = malloc(bench->batch * sizeof *index);
    if (!index)
        exit(1);
    for (uint32_t i = 0; i < bench->batch; i++)
        index[i] = i * 7 % bench->batch;
    rm_net_init(net, params, rm_rng_at(1, RM_STREAM_INIT, 0, 0));
    const struct rm_net_input input = {.x = x, .index = index, .batch = bench->batch};
    const struct rm_net_loss loss = {rows, &outputs};
    uint32_t repeat = (uint32_t)(3e8 / (bench->flops * bench->batch)) + 1;
    double values[RUNS], peak = 0;
    for (int r = -2; r < RUNS; r++) {
        double sums[RM_NET_SUMS], now = rm_bench_fma_once(isa);
        peak = now > peak ? now : peak;
        uint64_t start = rm_now_ns();
        for (uint32_t i = 0; i < repeat; i++) {
            rm_net_prepare(w, params);
            rm_net_learn(w, params, &input, &loss, grads, sums);
        }
        double seconds = (double)(rm_now_ns() - start) * 1e-9;
        if (r >= 0)
            values[r] = (double)bench->batch * repeat / seconds / bench->threads;
    }
    char note[64];
    snprintf(note, sizeof note, "%u thread%s, %.1f kflop a sample", bench->threads,
             bench->threads == 1 ? "" : "s", bench->flops * 1e-3);
    rm_bench_report(&(struct rm_bench_result){bench->name, "samples/s", values, RUNS,
                                              peak * 1e9 / bench->flops, 0, note});
    free(index);
    float *all[] = {params, grads, x};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        b->ops->release(b, all[i]);
    rm_net_workspace_destroy(w);
    rm_net_destroy(net);
    rm_backend_destroy(b);
}

int main(int argc, char **argv)
{
    const uint32_t threads = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1;
    const struct rm_network_config mlp = {
        .layer_count = 4, .layers = {LINEAR(128), ACT(RELU), LINEAR(128), ACT(RELU)}};
    const struct rm_network_config apart = {
        .layer_count = 4,
        .layers = {LINEAR(64), ACT(TANH), LINEAR(64), ACT(TANH)},
        .trunk = RM_TRUNK_SEPARATE};
    const struct rm_net_shape values = {.inputs = 8, .actions = 4, .outputs_per_action = 1};
    const struct rm_net_shape actor_critic = {
        .inputs = 4, .actions = 2, .outputs_per_action = 1, .head = RM_HEAD_ACTOR_CRITIC};
    const double mlp_flops = 6.0 * (8 * 128 + 128 * 128 + 128 * 4) - 2.0 * 8 * 128;
    const double apart_flops = 6.0 * (2 * 4 * 64 + 2 * 64 * 64 + 64 * 3) - 2.0 * 2 * 4 * 64;
    const struct bench benches[] = {
        {"mlp128.samples", 1024, 1, mlp, values, mlp_flops},
        {"learn.cartpole.256.one", 256, 1, apart, actor_critic, apart_flops},
        {"learn.cartpole.1024.one", 1024, 1, apart, actor_critic, apart_flops},
        {"learn.cartpole.256", 256, threads, apart, actor_critic, apart_flops},
        {"learn.cartpole.1024", 1024, threads, apart, actor_critic, apart_flops},
    };
    for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++)
        if (rm_bench_wanted(argc, argv, benches[i].name))
            run(&benches[i]);
    return 0;
}
