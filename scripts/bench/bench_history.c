/* Networks over packed histories, on the cores that there are.
 *
 * distil.train   updates of config/darkroom-distil.json (a transformer of 227,656 parameters) with
 *                16 regions of 80 queries, two of them without a region before it. Samples are
 *                queries. Ceiling: the operations that the queries need (behind the last attention,
 *                only their own rows), at the FMA peak of the cores.
 * distil.act     acting with it in eight lanes, on one core, with keys and values of the context
 *                kept; compared with acting by the whole context.
 * cuda.distil.update   milliseconds of such an update with 13 regions, on a GPU, batches crossing
 *                from the host. Skipped where there is none. */
#include "learner/net/history.h"

#include "actor/context.h"
#include "actor/worlds/plan.h"
#include "config/config.h"
#include "learner/algo/trainer.h"
#include "learner/device_choice.h"
#include "learner/net/net.h"
#include "scripts/bench/report.h"
#include "shm/base/clock.h"
#include "shm/base/rng.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 9, PAIRS = 16, REGION = 80, CONTEXT = 2 * REGION + 2, FEATURES = 10 };
enum { ACTIONS = 5, TYPES = 3, CELLS = 9, LANES = 8, DEVICE_PAIRS = 13 };

static void need(int code, const struct rm_error *error)
{
    if (code) {
        fprintf(stderr, "bench_history: %s\n", error->text);
        exit(1);
    }
}

/* The experiment, with its network and its shape. */
static struct rm_experiment experiment;
static struct rm_plan plan;

static void load(uint32_t pairs)
{
    char batch[32];
    const struct rm_override set[] = {{batch}};
    struct rm_error error = {""};
    snprintf(batch, sizeof batch, "sample.batch=%u", pairs);
    need(rm_config_load(&experiment, "config/darkroom-distil.json", set, 1, &error), &error);
    need(rm_plan_make(&plan, &experiment, &error), &error);
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

static bool is_first(uint32_t pair)
{
    return pair % 12 == 0;
}

/* Operations of a region of an update, with so many rows of context. */
static double region_flops(uint32_t context)
{
    const struct rm_net_shape shape =
        rm_history_shape(context, REGION, FEATURES, CELLS * CELLS, ACTIONS, TYPES);
    struct rm_net *net;
    struct rm_error error;
    need(rm_net_compile(&net, &experiment.network, &shape, &error), &error);
    const double flops = rm_net_forward_flops(net, 1, 0) + rm_net_backward_flops(net, 1, 0);
    rm_net_destroy(net);
    return flops;
}

/* Seconds of `updates` updates, in each of the runs. Two more come before, unless there is one. */
static void train(struct rm_backend *b, uint32_t updates, int runs, double *seconds, double *peak)
{
    const struct rm_batch_extras none = {0};
    const struct rm_trainer_spec spec = {
        .experiment = &experiment, .backend = b, .shape = plan.policy[0].shape, .name = "policy"};
    struct rm_batch batch = {.size = experiment.sample.batch,
                             .inputs = spec.shape.inputs,
                             .actions = ACTIONS,
                             .queries = REGION};
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    struct rm_trainer *trainer;
    struct rm_error error = {""};
    uint64_t number = 0;
    need(rm_batch_alloc(&batch, &none, &error), &error);
    need(rm_trainer_create(&trainer, &spec, &error), &error);
    for (uint32_t i = 0; i < batch.size; i++)
        put_region(&rng, is_first(i), batch.obs + (size_t)i * batch.inputs);
    for (uint32_t i = 0; i < batch.size * REGION; i++)
        batch.action[i] = (int32_t)rm_rng_below(&rng, ACTIONS);
    for (int r = runs > 1 ? -2 : 0; r < runs; r++) {
        const double now = rm_bench_fma_once(NULL);
        *peak = now > *peak ? now : *peak;
        const uint64_t start = rm_now_ns();
        for (uint32_t i = 0; i < updates; i++)
            rm_trainer_update(trainer, &batch, ++number, NULL);
        b->ops->finish(b);
        if (r >= 0)
            seconds[r] = (double)(rm_now_ns() - start) * 1e-9;
    }
    if (b->ops->failed(b, &error))
        need(-EIO, &error);
    rm_trainer_destroy(trainer);
    rm_batch_free(&batch);
}

static void train_on_cores(uint32_t threads)
{
    struct rm_backend *b;
    struct rm_error error;
    double values[RUNS], peak = 0, flops = 0;
    char note[64];
    load(PAIRS);
    need(rm_backend_cpu_create(&b, threads, "auto", &error), &error);
    train(b, 4, RUNS, values, &peak);
    rm_backend_destroy(b);
    for (int r = 0; r < RUNS; r++)
        values[r] = 4.0 * PAIRS * REGION / values[r];
    for (uint32_t i = 0; i < PAIRS; i++)
        flops += region_flops(is_first(i) ? REGION : CONTEXT) / (PAIRS * REGION);
    snprintf(note, sizeof note, "%u thread%s, %.2f Mflop a sample", threads,
             threads == 1 ? "" : "s", flops * 1e-6);
    rm_bench_report(&(struct rm_bench_result){"distil.train", "samples/s", values, RUNS,
                                              threads * peak * 1e9 / flops, 0, note});
}

/* Returns false if there is no device. */
static bool train_on_device(void)
{
    const struct rm_device_request request = {.device = "cuda:0"};
    const char *fewer = getenv("RM_BENCH_UPDATES"); /* to see whether it runs */
    const uint32_t updates = fewer ? 1 : 20, pairs = fewer ? 1 : DEVICE_PAIRS;
    const int runs = fewer ? 1 : RUNS;
    struct rm_device_choice choice;
    struct rm_backend *b;
    struct rm_error error = {""};
    double values[RUNS], unused = 0;
    if (rm_device_choose(&choice, &request, &error)) {
        printf("cuda.distil.update: skipped: %s\n", error.text);
        return false;
    }
    load(pairs);
    need(rm_device_open(&b, &choice, &request, &error), &error);
    train(b, updates, runs, values, &unused);
    rm_device_close(b);
    for (int r = 0; r < runs; r++)
        values[r] *= 1e3 / updates;
    rm_bench_report(&(struct rm_bench_result){.name = "cuda.distil.update",
                                              .unit = "ms",
                                              .values = values,
                                              .runs = runs,
                                              .note = fewer ? "80 samples" : "1,040 samples"});
    return true;
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
    load(PAIRS);
    const struct rm_net_shape shape = plan.policy[0].shape, alone = rm_history_alone(shape);
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    struct rm_backend *b;
    struct rm_net *net;
    struct rm_net_workspace *w;
    struct rm_context *kept, *whole;
    struct rm_error error;
    need(rm_backend_cpu_create(&b, 1, "auto", &error), &error);
    need(rm_net_compile(&net, &experiment.network, &alone, &error), &error);
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
    bool done = true;
    if (rm_bench_wanted(argc, argv, "distil.train"))
        train_on_cores(sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1);
    if (rm_bench_wanted(argc, argv, "distil.act"))
        act();
    if (rm_bench_wanted(argc, argv, "cuda.distil.update"))
        done = train_on_device();
    return done ? 0 : 77;
}
