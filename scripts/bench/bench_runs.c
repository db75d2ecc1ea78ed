/* Training from end to end: real runs by ringctl, with every process that they have.
 *
 * ppo.cartpole.steps     trained environment steps a second: 64 worlds, 64x64 tanh networks of
 *                        their own for policy and value, 4 epochs, 4 minibatches of about 1,000
 *                        samples, two actors, two learner threads. From the start of the workers to
 *                        the last update. Ceiling: the FMA peak of two cores over the arithmetic of
 *                        a step, 13 forward passes of policy and value: one to act and to judge,
 *                        four times three to learn.
 * ppo.cartpole.steps.v3  the same with learners held to AVX2, against AVX2's peak.
 * ppo.cartpole.to_475    seconds from starting ringctl to its end for config/cartpole-ppo.json with
 *                        twice its learning rate and 80,000 steps, after which ten greedy episodes
 *                        score 475 or more: start of all processes, training, evaluation and
 *                        writing the run directory. One run per seed, 1 to 10; a seed that does not
 *                        get there counts as an hour.
 * dqn.cartpole.steps     environment steps a second of DQN with a 256x256 ReLU network, batch 64,
 *                        one update every two steps, the target copied every ten updates: the
 *                        widely used settings for CartPole; 20,000 steps. Two learner threads.
 *                        Ceiling: the FMA peak of two cores over the arithmetic of half an update:
 *                        four forward passes of 64 rows, two of them the gradients', but for the
 *                        observation's.
 * w0.rollout             environment steps a second of two actors with the policy of
 *                        config/prover-ppo.json, 64 worlds: 16,384 steps over the time that the
 *                        slower one steps, acts and writes rows. Ceiling: the FMA peak of two cores
 *                        over 2.66 MFLOP, the forward pass of 5.44 states, which a step shows on
 *                        average.
 * w0.workers.N           the same of N actors: 1, 2, 4, 8 and 16.
 * w0.train               steps a second of the same experiment, acting and learning, over one
 *                        rollout: 10 epochs of 128 minibatches, each sample three forward passes of
 *                        policy and value. Ceiling: the FMA peak of two cores over 82.6 MFLOP.
 * w0.train.small         the same of config/prover-ppo-small.json, 4 epochs, 60,000 steps: 3.28
 *                        MFLOP.
 * w0.*.bf16              the same with learner.compute "bf16"; the ceiling is that of float32.
 * w2.train               steps a second of config/platformer-c0.json with 128 worlds, acting and
 *                        learning: 4 epochs of minibatches of 512. Ceiling: the FMA peak of two
 *                        cores over 0.69 MFLOP.
 * w2.train.checked       the same, with every result of every update searched for non-finite
 *                        numbers.
 * w3.train               steps a second of config/goodhart-ppo.json (a convolutional network of 4
 *                        million parameters, 192 worlds, 4 epochs of one minibatch), with rollouts
 *                        of 16 steps instead of 128, from the first vector step to the last update.
 *                        Ceiling: the FMA peak of two cores over 281 MFLOP: a forward pass to act,
 *                        four times three to learn without the gradient of the observation. */
#include "scripts/bench/report.h"
#include "shm/base/clock.h"
#include "shm/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 5, SEEDS = 10, SETTINGS_MAX = 24 };

#define FORWARD_FLOPS (2.0 * (2 * 4 * 64 + 2 * 64 * 64 + 2 * 64 + 64))
#define STEP_FLOPS    (13.0 * FORWARD_FLOPS)
#define SOLVED        475.0

struct outcome {
    double seconds; /* of the command */
    double trained; /* of these, until the last update */
    double learner; /* of these, the learner's after its start */
    double actor;   /* of these, the busiest actor's, but for its start and its waiting */
    double steps, score;
};

static char program[PATH_MAX], directory[] = "/tmp/rm-bench-runs-XXXXXX";

static void fail(const char *what)
{
    fprintf(stderr, "bench_runs: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void find_program(void)
{
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 32);
    if (n < 0)
        fail("/proc/self/exe");
    program[n] = '\0';
    for (int up = 0; up < 2; up++)
        *strrchr(program, '/') = '\0';
    const size_t used = strlen(program);
    snprintf(program + used, sizeof program - used, "/bin/ringctl");
}

/* The most that a worker of this role booked, but for what is no phase of its work - its start -
 * and perhaps another phase. */
static double seconds_of(const json_t *summary, const char *of, const char *but)
{
    double most = 0;
    size_t i;
    json_t *worker;
    json_array_foreach(json_object_get(summary, "workers"), i, worker)
    {
        const char *role = json_string_value(json_object_get(worker, "role"));
        const json_t *phases = json_object_get(worker, "phases");
        if (!role || strcmp(role, of) != 0)
            continue;
        double share = 1 - json_number_value(json_object_get(phases, "other"));
        if (but)
            share -= json_number_value(json_object_get(phases, but));
        most = fmax(most, share * json_number_value(json_object_get(worker, "booked_s")));
    }
    return most;
}

/* settings: "key=value", NULL at the end. */
static struct outcome run(const char *experiment, const char *const *settings)
{
    char where[64], path[128], config[64];
    const char *arguments[2 * SETTINGS_MAX + 8] = {program, "run", config};
    snprintf(config, sizeof config, "config/%s.json", experiment);
    size_t n = 3;
    snprintf(where, sizeof where, "run.directory=%s", directory);
    arguments[n++] = "--set";
    arguments[n++] = where;
    for (; *settings; settings++) {
        arguments[n++] = "--set";
        arguments[n++] = *settings;
    }
    uint64_t start = rm_now_ns();
    pid_t child = fork();
    if (child < 0)
        fail("fork");
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDOUT_FILENO);
        execv(program, (char **)arguments);
        _exit(127);
    }
    int status;
    waitpid(child, &status, 0);
    struct outcome o = {.seconds = (double)(rm_now_ns() - start) * 1e-9};
    snprintf(path, sizeof path, "%s/%s/latest/summary.json", directory, experiment);
    json_t *summary = json_load_file(path, 0, NULL);
    if (status != 0 || !summary) {
        fprintf(stderr, "bench_runs: %s run failed\n", program);
        exit(1);
    }
    o.trained = json_number_value(json_object_get(summary, "trained_s"));
    o.steps = json_number_value(json_object_get(json_object_get(summary, "progress"), "steps"));
    o.score = json_number_value(json_object_get(json_object_get(summary, "evaluation"), "mean"));
    o.learner = seconds_of(summary, "learner", NULL);
    o.actor = seconds_of(summary, "actor", "waiting");
    json_decref(summary);
    return o;
}

static void bench_steps(const char *name, const char *isa)
{
    char level[48];
    double values[RUNS], peak = 0;
    snprintf(level, sizeof level, "learner.isa=%s", isa);
    const char *const settings[] = {"run.steps=1500000",
                                    "actor.count=2",
                                    "actor.worlds=64",
                                    "rollout.steps=64",
                                    "learner.threads=2",
                                    "evaluation.interval=0",
                                    "evaluation.final_episodes=10",
                                    level,
                                    NULL};
    for (int r = 0; r < RUNS; r++) {
        double now = rm_bench_fma_gflops_of(isa);
        peak = now > peak ? now : peak;
        struct outcome o = run("cartpole-ppo", settings);
        values[r] = o.steps / o.trained;
    }
    rm_bench_report(&(struct rm_bench_result){name, "steps/s", values, RUNS,
                                              2 * peak * 1e9 / STEP_FLOPS, 0,
                                              "231 kflop a step, two cores"});
}

static void bench_solved(const char *name)
{
    double values[SEEDS];
    uint32_t reached = 0;
    for (int s = 0; s < SEEDS; s++) {
        char seed[32];
        snprintf(seed, sizeof seed, "seed=%d", s + 1);
        const char *const settings[] = {seed,
                                        "run.steps=80000",
                                        "optimizer.learning_rate=3e-3",
                                        "learner.threads=2",
                                        "evaluation.interval=0",
                                        "evaluation.final_episodes=10",
                                        NULL};
        struct outcome o = run("cartpole-ppo", settings);
        values[s] = o.score >= SOLVED ? o.seconds : 3600;
        reached += o.score >= SOLVED;
    }
    char note[64];
    snprintf(note, sizeof note, "%u of %d seeds got there", reached, SEEDS);
    rm_bench_report(&(struct rm_bench_result){name, "s", values, SEEDS, 0, 0, note});
}

static void bench_dqn(const char *name)
{
    const double layers[] = {4 * 256, 256 * 256, 256 * 2};
    const double flops = 64.0 * (4 * (layers[0] + layers[1] + layers[2]) - layers[0]);
    const char *const settings[] = {
        ("network.layers=[{\"type\":\"linear\",\"units\":256},{\"type\":\"relu\"},"
         "{\"type\":\"linear\",\"units\":256},{\"type\":\"relu\"}]"),
        "sample.batch=64",
        "sample.n_step=1",
        "limiter.updates_per_step=0.5",
        "algorithm.double_q=false",
        "algorithm.target.update=hard",
        "algorithm.target.interval=10",
        "optimizer.learning_rate=2.3e-3",
        "learner.threads=2",
        "run.steps=20000",
        "evaluation.interval=0",
        "evaluation.final_episodes=1",
        "evaluation.worlds=1",
        NULL};
    double values[RUNS], peak = 0;
    for (int r = 0; r < RUNS; r++) {
        double now = rm_bench_fma_gflops();
        peak = now > peak ? now : peak;
        struct outcome o = run("cartpole-dqn", settings);
        values[r] = o.steps / o.trained;
    }
    rm_bench_report(&(struct rm_bench_result){name, "steps/s", values, RUNS, 2 * peak * 1e9 / flops,
                                              0, "two cores"});
}

/* A shipped experiment on two cores: steps over the learner's seconds, or over the actors'. */
static void bench_shipped(const char *name, const char *experiment, const char *const *settings,
                          double flops, bool acting, const char *note)
{
    double values[RUNS], peak = 0;
    for (int r = 0; r < RUNS; r++) {
        double now = rm_bench_fma_gflops();
        peak = now > peak ? now : peak;
        struct outcome o = run(experiment, settings);
        values[r] = o.steps / (acting ? o.actor : o.learner);
    }
    rm_bench_report(
        &(struct rm_bench_result){name, "steps/s", values, RUNS, 2 * peak * 1e9 / flops, 0, note});
}

#define NO_EVALUATION "evaluation.interval=0", "evaluation.final_episodes=0", "evaluation.worlds=1"
#define TWO_CORES     "learner.threads=2", "actor.count=2", NO_EVALUATION

#define FP32 "learner.compute=fp32"
#define BF16 "learner.compute=bf16"

static void bench_w0_rollout(const char *name, uint32_t actors, const char *compute)
{
    char count[24], note[64];
    snprintf(count, sizeof count, "actor.count=%u", actors);
    snprintf(note, sizeof note, "actors: %u, 64 worlds, 2.66 MFLOP a step", actors);
    const char *const settings[] = {NO_EVALUATION,
                                    compute,
                                    count,
                                    "learner.threads=2",
                                    "actor.worlds=64",
                                    "rollout.steps=256",
                                    "run.steps=16384",
                                    "algorithm.epochs=1",
                                    "algorithm.minibatches=1",
                                    NULL};
    bench_shipped(name, "prover-ppo", settings, 2.66e6, true, note);
}

static void bench_w0_train(const char *name, const char *compute)
{
    const char *const settings[] = {TWO_CORES, compute, "run.steps=16384", NULL};
    bench_shipped(name, "prover-ppo", settings, 82.6e6, false, "82.6 MFLOP a step, two cores");
}

static void bench_w0_small(const char *name, const char *compute)
{
    const char *const settings[] = {TWO_CORES, compute, "run.steps=60000", NULL};
    bench_shipped(name, "prover-ppo-small", settings, 3.28e6, false,
                  "3.28 MFLOP a step, two cores");
}

static void bench_w2(const char *name, const char *check)
{
    const char *const settings[] = {TWO_CORES,
                                    "actor.worlds=64",
                                    "rollout.steps=64",
                                    "algorithm.minibatches=16",
                                    "run.steps=500000",
                                    check,
                                    NULL};
    bench_shipped(name, "platformer-c0", settings, 0.69e6, false, "128 worlds, 0.69 MFLOP a step");
}

static void bench_w3(const char *name)
{
    const char *const settings[] = {
        TWO_CORES,        "rollout.steps=16",     "algorithm.minibatches=1",
        "run.steps=3072", "learner.compute=fp32", NULL};
    bench_shipped(name, "goodhart-ppo", settings, 281e6, false, "281 MFLOP a step, two cores");
}

int main(int argc, char **argv)
{
    find_program();
    if (access("config/cartpole-ppo.json", R_OK) != 0)
        fail("config/cartpole-ppo.json (start this in the project's root)");
    if (!mkdtemp(directory))
        fail(directory);
    if (rm_bench_wanted(argc, argv, "ppo.cartpole.steps"))
        bench_steps("ppo.cartpole.steps", "auto");
    if (rm_bench_wanted(argc, argv, "ppo.cartpole.steps.v3"))
        bench_steps("ppo.cartpole.steps.v3", "x86-64-v3");
    if (rm_bench_wanted(argc, argv, "ppo.cartpole.to_475"))
        bench_solved("ppo.cartpole.to_475");
    if (rm_bench_wanted(argc, argv, "dqn.cartpole.steps"))
        bench_dqn("dqn.cartpole.steps");
    if (rm_bench_wanted(argc, argv, "w0.rollout"))
        bench_w0_rollout("w0.rollout", 2, FP32);
    if (rm_bench_wanted(argc, argv, "w0.rollout.bf16"))
        bench_w0_rollout("w0.rollout.bf16", 2, BF16);
    for (uint32_t actors = 1; actors <= 16; actors *= 2) {
        char name[24];
        snprintf(name, sizeof name, "w0.workers.%u", actors);
        if (rm_bench_wanted(argc, argv, name))
            bench_w0_rollout(name, actors, FP32);
    }
    if (rm_bench_wanted(argc, argv, "w0.train"))
        bench_w0_train("w0.train", FP32);
    if (rm_bench_wanted(argc, argv, "w0.train.bf16"))
        bench_w0_train("w0.train.bf16", BF16);
    if (rm_bench_wanted(argc, argv, "w0.train.small"))
        bench_w0_small("w0.train.small", FP32);
    if (rm_bench_wanted(argc, argv, "w0.train.small.bf16"))
        bench_w0_small("w0.train.small.bf16", BF16);
    if (rm_bench_wanted(argc, argv, "w2.train"))
        bench_w2("w2.train", "debug.check_finite=off");
    if (rm_bench_wanted(argc, argv, "w2.train.checked"))
        bench_w2("w2.train.checked", "debug.check_finite=always");
    if (rm_bench_wanted(argc, argv, "w3.train"))
        bench_w3("w3.train");
    rm_file_remove_all(directory);
    return 0;
}
