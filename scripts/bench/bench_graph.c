/* Networks over graphs, on one core: the levels of generated corridors and mazes as the platformer
 * shows them, forward and backward.
 *
 * w2.graph           config/platformer-gat.json: attention over edges and tokens, 128 small mazes.
 * w2.graph.bf16      the same with products in bf16; the ceiling is that of float32.
 * w2.graph.messages  config/platformer-sg-c0.json: two rounds of messages, 128 corridors.
 *
 * Counted in the products of the nodes that are there. Ceiling: the core's FMA peak. */
#include "actor/worlds/plan.h"
#include "actor/worlds/worlds.h"
#include "config/config.h"
#include "learner/net/features.h"
#include "learner/net/net.h"
#include "scripts/bench/report.h"
#include "shm/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 9, STATES = 128 };

static struct rm_backend *backend;

static void need(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench_graph: %s\n", what);
        exit(1);
    }
}

struct update {
    struct rm_net *net;
    struct rm_net_workspace *workspace;
    float *params, *grads, *d_out, *x;
    struct rm_net_input input;
    double nodes; /* of all states */
};

static const struct rm_net_observation *graph_of(const struct rm_net_shape *shape)
{
    uint32_t i = 0;
    while (strcmp(shape->observation[i].name, "graph") != 0)
        i++;
    return &shape->observation[i];
}

/* The first observations of STATES levels, as inputs. Returns how many nodes they have. */
static double observe(const struct rm_experiment *e, float *x, const struct rm_net_shape *shape)
{
    const uint32_t inputs = shape->inputs;
    struct rm_world world;
    struct rm_env *env;
    struct rm_error error = {""};
    need(rm_world_open_configured(&world, &e->world, &error) == 0, error.text);
    need(rm_world_create(&world, &e->world, 1, 0, STATES, &env, &error) == 0, error.text);
    const struct rm_env_agent *agent = &world.ops->describe(env)->agent[0];
    const size_t bytes = rm_features_bytes(agent);
    uint8_t *obs = calloc(STATES, bytes), *mask = calloc(STATES, agent->actions);
    float reward[STATES];
    uint8_t flags[STATES];
    const struct rm_env_buffers out = {.obs = obs,
                                       .obs_stride = (ptrdiff_t)bytes,
                                       .mask = mask,
                                       .mask_stride = agent->actions,
                                       .reward = reward,
                                       .flags = flags};
    double nodes = 0;
    need(obs && mask && world.ops->reset(env, &out) == 0, "no observations");
    for (uint32_t s = 0; s < STATES; s++) {
        rm_features_take(agent, 0, obs + s * bytes, x + (size_t)s * inputs);
        nodes += x[(size_t)s * inputs + graph_of(shape)->at]; /* the count */
    }
    free(obs);
    free(mask);
    world.ops->close(env);
    rm_world_close(&world);
    return nodes;
}

static void make(struct update *u, const struct rm_experiment *e, const struct rm_plan *plan)
{
    const struct rm_backend_ops *ops = backend->ops;
    const struct rm_net_shape *shape = &plan->policy[0].shape;
    struct rm_error error = {""};
    need(rm_net_compile(&u->net, &e->network, shape, &error) == 0, error.text);
    need(rm_net_workspace_create(&u->workspace, u->net, backend, STATES, 1, RM_NET_TRAIN, &error) ==
             0,
         error.text);
    const size_t params = rm_net_param_count(u->net), out = STATES * rm_net_outputs(u->net);
    u->params = ops->alloc(backend, params);
    u->grads = ops->alloc(backend, params);
    u->d_out = ops->alloc(backend, out);
    u->x = ops->alloc(backend, (size_t)STATES * shape->inputs);
    need(u->params && u->grads && u->d_out && u->x, "out of memory");
    ops->normals(backend, 1, RM_STREAM_TEST, 0, 0, out, u->d_out);
    rm_net_init(u->net, u->params, rm_rng_at(1, RM_STREAM_INIT, 0, 0));
    rm_net_prepare(u->workspace, u->params);
    u->nodes = observe(e, u->x, shape);
    u->input = (struct rm_net_input){.x = u->x, .batch = STATES};
}

static void unmake(struct update *u)
{
    float *owned[] = {u->params, u->grads, u->d_out, u->x};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        backend->ops->release(backend, owned[i]);
    rm_net_workspace_destroy(u->workspace);
    rm_net_destroy(u->net);
}

static void run(struct update *u)
{
    rm_net_prepare(u->workspace, u->params);
    rm_net_forward(u->workspace, u->params, &u->input);
    rm_net_backward(u->workspace, u->params, &u->input, u->d_out, u->grads);
}

/* node_macs: multiply-adds of a node's products. */
static void bench(const char *name, const char *file, double node_macs)
{
    static struct rm_experiment e;
    static struct rm_plan plan;
    struct rm_error error = {""};
    struct update u;
    double values[RUNS], peaks[RUNS];
    char note[96];
    need(rm_config_load(&e, file, NULL, 0, &error) == 0, error.text);
    need(rm_plan_make(&plan, &e, &error) == 0, error.text);
    make(&u, &e, &plan);
    const double most = graph_of(&plan.policy[0].shape)->dim[0];
    const double others = rm_net_forward_flops(u.net, STATES, 1) - 2 * node_macs * most * STATES;
    const double flops = 3 * (others + 2 * node_macs * u.nodes);
    run(&u);
    for (int r = 0; r < RUNS; r++) {
        uint32_t times = 0;
        peaks[r] = rm_bench_fma_gflops(); /* beside each run: clocks change */
        const uint64_t start = rm_now_ns();
        uint64_t now = start;
        for (; now - start < 200000000; now = rm_now_ns(), times++)
            run(&u);
        values[r] = flops * times / (double)(now - start);
    }
    snprintf(note, sizeof note, "%d states, %.0f nodes each", STATES, u.nodes / STATES);
    rm_bench_report(&(struct rm_bench_result){name, "GFLOP/s", values, RUNS,
                                              rm_bench_median(peaks, RUNS), 0, note});
    unmake(&u);
}

int main(int argc, char **argv)
{
    struct rm_error error;
    rm_bench_pin(0);
    const double attention = 50 * 128 + 3 * 4 * 128 * 128 + 128 * 256; /* of a node */
    need(rm_backend_cpu_create(&backend, 1, "auto", &error) == 0, error.text);
    if (rm_bench_wanted(argc, argv, "w2.graph"))
        bench("w2.graph", "config/platformer-gat.json", attention);
    if (rm_bench_wanted(argc, argv, "w2.graph.messages"))
        bench("w2.graph.messages", "config/platformer-sg-c0.json", 50 * 32 + 2 * 64 * 32);
    rm_backend_destroy(backend);
    need(rm_backend_cpu_create_for(&backend, 1, "auto", RM_COMPUTE_BF16, &error) == 0, error.text);
    if (rm_bench_wanted(argc, argv, "w2.graph.bf16"))
        bench("w2.graph.bf16", "config/platformer-gat.json", attention);
    rm_backend_destroy(backend);
    return 0;
}
