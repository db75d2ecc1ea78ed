/* What a GPU makes of updates; skipped where there is none. scripts/gpu-check runs it beside the
 * same updates in PyTorch (scripts/bench/gpu/torch_updates.py).
 *
 * cuda.copy        GB/s from pinned memory to the device, blocks of 64 MiB
 * cuda.mlp.update  microseconds of a DQN update of two layers of 128, batch 1024, batches crossing
 *                  from the host; how often it allocated or the host waited is in the note
 * cuda.w1.updates  updates/s of the treasure hunt's five IQN learners, in one process on one
 * device. Baseline: the same on the CPU, one learner on one core, measured between the runs
 * cuda.w3.device   environment steps/s of the Goodhart grid on the device: worlds, acting and PPO's
 *                  updates there, bf16 products, publishing included; 281 MFLOP a step
 * cuda.feed        GB/s that crossed to the device in those updates; ceiling: cuda.copy */
#include "actor/worlds/plan.h"
#include "config/config.h"
#include "learner/algo/trainer.h"
#include "learner/backend/device.h"
#include "learner/device_choice.h"
#include "learner/learner.h"
#include "scripts/bench/report.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 5, LEARNERS = 5, COPY_BYTES = 64 << 20 };

static uint32_t updates = 400, warm_up = 20; /* $RM_BENCH_UPDATES: fewer, to see whether it runs */

static void fail(const struct rm_error *error)
{
    fprintf(stderr, "bench_cuda: %s\n", error->text);
    exit(1);
}

/* --- a learner without rings: batches of random numbers ----------------------------------------
 */

struct bench_learner {
    struct rm_experiment *experiment;
    struct rm_plan plan;
    struct rm_backend *backend;
    struct rm_trainer *trainer;
    struct rm_batch batch;
    uint64_t updates;
};

static float *random_floats(size_t n, uint64_t seed)
{
    float *x = malloc(n * sizeof *x);
    struct rm_rng rng = rm_rng_at(seed, RM_STREAM_TEST, 0, 0);
    if (!x)
        abort();
    for (size_t i = 0; i < n; i++)
        x[i] = rm_rng_float(&rng);
    return x;
}

static void fill_batch(struct bench_learner *l, uint64_t seed)
{
    const struct rm_net_shape *shape = &l->plan.policy[0].shape;
    const uint32_t n = l->experiment->sample.batch;
    struct rm_rng rng = rm_rng_at(seed, RM_STREAM_TEST, 1, 0);
    l->batch = (struct rm_batch){.size = n, .inputs = shape->inputs, .actions = shape->actions};
    l->batch.obs = random_floats((size_t)n * shape->inputs, seed);
    l->batch.next_obs = random_floats((size_t)n * shape->inputs, seed + 1);
    l->batch.ret = random_floats(n, seed + 2);
    l->batch.discount = random_floats(n, seed + 3);
    l->batch.action = malloc(n * sizeof *l->batch.action);
    if (!l->batch.action)
        abort();
    for (uint32_t i = 0; i < n; i++)
        l->batch.action[i] = (int32_t)rm_rng_below(&rng, shape->actions);
}

static void open_learner(struct bench_learner *l, const char *file, const struct rm_override *set,
                         size_t count, struct rm_backend *backend, uint64_t seed)
{
    struct rm_error error = {""};
    memset(l, 0, sizeof *l);
    l->experiment = calloc(1, sizeof *l->experiment);
    if (!l->experiment)
        abort();
    if (rm_config_load(l->experiment, file, set, count, &error) ||
        rm_plan_make(&l->plan, l->experiment, &error))
        fail(&error);
    l->backend = backend;
    const struct rm_trainer_spec spec = {
        .experiment = l->experiment,
        .backend = backend,
        .shape = l->plan.policy[0].shape,
        .name = "policy",
    };
    if (rm_trainer_create(&l->trainer, &spec, &error))
        fail(&error);
    fill_batch(l, seed);
}

static void close_learner(struct bench_learner *l)
{
    rm_trainer_destroy(l->trainer);
    free(l->batch.obs);
    free(l->batch.next_obs);
    free(l->batch.ret);
    free(l->batch.discount);
    free(l->batch.action);
    free(l->experiment);
}

static void update_all(struct bench_learner *l, uint32_t learners, uint32_t times)
{
    struct rm_error error = {""};
    for (uint32_t i = 0; i < times; i++)
        for (uint32_t j = 0; j < learners; j++)
            rm_trainer_update(l[j].trainer, &l[j].batch, ++l[j].updates, NULL);
    for (uint32_t j = 0; j < learners; j++) {
        if (!l[j].backend->device)
            continue;
        l[j].backend->ops->finish(l[j].backend);
        if (l[j].backend->ops->failed(l[j].backend, &error))
            fail(&error);
    }
}

/* --- figures -----------------------------------------------------------------------------------
 */

static struct rm_backend *open_device(const struct rm_device_choice *choice,
                                      const struct rm_device_request *request)
{
    struct rm_backend *backend;
    struct rm_error error = {""};
    if (rm_device_open(&backend, choice, request, &error))
        fail(&error);
    return backend;
}

static double copy_rate(struct rm_backend *b)
{
    struct rm_error error = {""};
    double values[RUNS];
    void *to = b->ops->alloc_bytes(b, COPY_BYTES, &error);
    void *from = to ? b->ops->alloc_host(b, COPY_BYTES, &error) : NULL;
    if (!from)
        fail(&error);
    for (int r = -1; r < RUNS; r++) { /* the first is not counted */
        const uint64_t start = rm_now_ns();
        for (int i = 0; i < 8; i++)
            b->ops->copy_in(b, RM_QUEUE_IN, to, from, COPY_BYTES);
        b->ops->finish(b);
        if (r >= 0)
            values[r] = 8.0 * COPY_BYTES / (double)(rm_now_ns() - start);
    }
    b->ops->release_host(b, from);
    b->ops->release(b, to);
    rm_bench_report(&(struct rm_bench_result){
        .name = "cuda.copy", .unit = "GB/s", .values = values, .runs = RUNS});
    return rm_bench_median(values, RUNS);
}

static void bench_mlp(const struct rm_device_choice *choice,
                      const struct rm_device_request *request)
{
    static const struct rm_override set[] = {
        {"network.layers=[{\"type\":\"linear\",\"units\":128},{\"type\":\"relu\"},"
         "{\"type\":\"linear\",\"units\":128},{\"type\":\"relu\"}]"},
        {"sample.batch=1024"},
        {"sample.min_fill=1024"},
    };
    struct rm_backend *backend = open_device(choice, request);
    struct rm_device_counts before, after;
    struct bench_learner learner;
    double values[RUNS];
    char note[160];
    open_learner(&learner, "config/cartpole-dqn.json", set, sizeof set / sizeof *set, backend, 1);
    update_all(&learner, 1, warm_up);
    backend->device->counts(backend, &before);
    for (int r = 0; r < RUNS; r++) {
        const uint64_t start = rm_now_ns();
        update_all(&learner, 1, updates);
        values[r] = (double)(rm_now_ns() - start) / updates / 1e3;
    }
    backend->device->counts(backend, &after);
    snprintf(note, sizeof note, "%.2f allocations, %.2f waits, %.2f graphs an update",
             (double)(after.allocations - before.allocations) / (RUNS * updates),
             (double)(after.synchronizations - before.synchronizations) / (RUNS * updates),
             (double)(after.graph_launches - before.graph_launches) / (RUNS * updates));
    rm_bench_report(&(struct rm_bench_result){
        .name = "cuda.mlp.update", .unit = "us", .values = values, .runs = RUNS, .note = note});
    close_learner(&learner);
    rm_backend_destroy(backend);
}

static double cpu_rate(struct bench_learner *l)
{
    const uint32_t n = updates / 8 ? updates / 8 : 1;
    const uint64_t start = rm_now_ns();
    update_all(l, 1, n);
    return n / ((double)(rm_now_ns() - start) / 1e9);
}

/* Five learners of a backend, so streams, each. */
static void bench_w1(const struct rm_device_choice *choice, const struct rm_device_request *request,
                     double copied)
{
    static const char file[] = "config/treasurehunt.json";
    struct rm_device_counts counts;
    struct bench_learner learners[LEARNERS], cpu;
    struct rm_backend *backend;
    struct rm_error error = {""};
    double values[RUNS], fed[RUNS], baseline[RUNS];
    for (int i = 0; i < LEARNERS; i++)
        open_learner(&learners[i], file, NULL, 0, open_device(choice, request),
                     1 + 10 * (uint64_t)i);
    if (rm_backend_cpu_create(&backend, 1, "auto", &error))
        fail(&error);
    open_learner(&cpu, file, NULL, 0, backend, 1);
    update_all(learners, LEARNERS, warm_up);
    cpu_rate(&cpu);
    for (int r = 0; r < RUNS; r++) {
        uint64_t bytes = 0;
        for (int i = 0; i < LEARNERS; i++) {
            learners[i].backend->device->counts(learners[i].backend, &counts);
            bytes -= counts.bytes_in;
        }
        const uint64_t start = rm_now_ns();
        update_all(learners, LEARNERS, updates);
        const double s = (double)(rm_now_ns() - start) / 1e9;
        for (int i = 0; i < LEARNERS; i++) {
            learners[i].backend->device->counts(learners[i].backend, &counts);
            bytes += counts.bytes_in;
        }
        values[r] = LEARNERS * updates / s;
        fed[r] = (double)bytes / s / 1e9;
        baseline[r] = cpu_rate(&cpu);
    }
    rm_bench_report(&(struct rm_bench_result){.name = "cuda.w1.updates",
                                              .unit = "1/s",
                                              .values = values,
                                              .runs = RUNS,
                                              .baseline = rm_bench_median(baseline, RUNS),
                                              .note = "five learners; baseline: one CPU core"});
    rm_bench_report(&(struct rm_bench_result){
        .name = "cuda.feed", .unit = "GB/s", .values = fed, .runs = RUNS, .ceiling = copied});
    for (int i = 0; i < LEARNERS; i++) {
        close_learner(&learners[i]);
        rm_backend_destroy(learners[i].backend);
    }
    close_learner(&cpu);
    rm_backend_destroy(backend);
}

/* A whole learner with its worlds, turn by turn. */
static void bench_w3(void)
{
    static struct rm_experiment experiment;
    static struct rm_plan plan;
    static struct rm_session session;
    const bool short_of_time = getenv("RM_BENCH_UPDATES");
    const struct rm_override set[] = {
        {"actor.device=cuda"},
        {"learner.device=cuda:0"},
        {"learner.compute=bf16"},
        {"algorithm.minibatches=1"},
        {"optimizer.schedule.kind=constant"},
        {"run.steps=0"},
        {short_of_time ? "actor.worlds=2" : "actor.worlds=192"},
        {short_of_time ? "rollout.steps=4" : "rollout.steps=128"},
    };
    const uint64_t rollouts = short_of_time ? 1 : 4;
    struct rm_error error = {""};
    struct rm_learner *learner;
    struct rm_duty duty;
    double values[RUNS];
    if (rm_config_load(&experiment, "config/goodhart-ppo.json", set, sizeof set / sizeof *set,
                       &error) ||
        rm_plan_make(&plan, &experiment, &error) ||
        rm_session_create(&session, &experiment, &plan, &error) ||
        rm_learner_create(&learner, &session, 0, "", &duty, &error))
        fail(&error);
    const struct rm_board_policy *counters = &session.board.policies[0];
    for (int r = -1; r < RUNS; r++) { /* the first warms up */
        const uint64_t from = RM_PEEK(&counters->rollouts);
        const uint64_t steps = RM_PEEK(&counters->env_steps), start = rm_now_ns();
        while (RM_PEEK(&counters->rollouts) < from + rollouts)
            if (duty.do_work(duty.self, &error) < 0)
                fail(&error);
        if (r >= 0)
            values[r] = (double)(RM_PEEK(&counters->env_steps) - steps) /
                        ((double)(rm_now_ns() - start) / 1e9);
    }
    rm_bench_report(&(struct rm_bench_result){.name = "cuda.w3.device",
                                              .unit = "steps/s",
                                              .values = values,
                                              .runs = RUNS,
                                              .note = "281 MFLOP a step"});
    rm_learner_destroy(learner);
    rm_session_close(&session);
}

int main(int argc, char **argv)
{
    const struct rm_device_request request = {.device = "cuda:0", .isa = "auto", .threads = 1};
    struct rm_device_choice choice;
    struct rm_error error = {""};
    const char *fewer = getenv("RM_BENCH_UPDATES");
    const bool mlp = rm_bench_wanted(argc, argv, "cuda.mlp.update");
    const bool w1 =
        rm_bench_wanted(argc, argv, "cuda.w1.updates") || rm_bench_wanted(argc, argv, "cuda.feed");
    const bool w3 = rm_bench_wanted(argc, argv, "cuda.w3.device");
    if (!mlp && !w1 && !w3 && !rm_bench_wanted(argc, argv, "cuda.copy"))
        return 0;
    if (fewer)
        updates = (uint32_t)strtoul(fewer, NULL, 10), warm_up = 4;
    if (rm_device_choose(&choice, &request, &error)) {
        printf("cuda.*: skipped: %s\n", error.text);
        return 77;
    }
    printf("cuda.*: %s\n", choice.why);
    struct rm_backend *backend = open_device(&choice, &request);
    const double copied = copy_rate(backend);
    rm_backend_destroy(backend);
    if (mlp)
        bench_mlp(&choice, &request);
    if (w1)
        bench_w1(&choice, &request, copied);
    if (w3)
        bench_w3();
    return 0;
}
