/* What looking after numbers that are not finite costs an update: forward, loss and backward of a
 * 64x64 tanh actor-critic on 256 rows, norm, clipping and Adam, one thread.
 *
 * check_finite.cost: time of such an update with debug.check_finite off - the loss and the norm are
 * looked at, copies are kept to go back to - over that of one that does nothing of the kind. Both
 * take turns; 1 is no cost. Each time has one copy in it (RM_GUARD_INTERVAL).
 *
 * check_finite.always: the same with everything looked through after every update. */
#include "learner/algo/finite.h"
#include "learner/algo/guard.h"
#include "learner/algo/optimizer.h"
#include "learner/backend/device.h"
#include "scripts/bench/report.h"
#include "shm/base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

_Static_assert(RM_GUARD_INTERVAL == 100, "a time has one copy in it");

enum { RUNS = 15, TURNS = 6, UPDATES = 100, BATCH = 256, INPUTS = 4, ACTIONS = 2 };

struct subject {
    struct rm_experiment experiment;
    struct rm_backend *backend;
    struct rm_net *net;
    struct rm_net_workspace *workspace;
    struct rm_optimizer *optimizer;
    struct rm_guard *guard;
    struct rm_finite finite;
    size_t n;
    float *params, *grads, *m, *v, *x, *wanted;
    struct rm_net_input input;
    struct rm_net_loss loss;
    uint64_t updates;
};

static struct subject s;

static void fail(const struct rm_error *error)
{
    fprintf(stderr, "bench_finite: %s\n", error->text);
    exit(1);
}

static void squared(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                    double sums[RM_NET_SUMS])
{
    const float *wanted = ((struct subject *)self)->wanted + (size_t)first * (ACTIONS + 1);
    for (uint32_t i = 0; i < rows * (ACTIONS + 1); i++) {
        const float off = out[i] - wanted[i];
        d_out[i] = off / BATCH;
        sums[0] += 0.5 * (double)off * (double)off;
    }
}

static void open_subject(void)
{
    struct rm_error error = {""};
    struct rm_experiment *e = &s.experiment;
    const struct rm_net_shape shape = {.inputs = INPUTS,
                                       .actions = ACTIONS,
                                       .outputs_per_action = 1,
                                       .head = RM_HEAD_ACTOR_CRITIC};
    static const enum rm_layer_type types[] = {RM_LAYER_LINEAR, RM_LAYER_TANH, RM_LAYER_LINEAR,
                                               RM_LAYER_TANH};
    for (uint32_t i = 0; i < 4; i++)
        e->network.layers[e->network.layer_count++] =
            (struct rm_layer_config){.type = types[i], .units = i % 2 ? 0 : 64};
    e->network.gain = e->network.policy_gain = e->network.value_gain = 1;
    e->network.trunk = RM_TRUNK_SEPARATE;
    e->optimizer.learning_rate = 1e-5;
    e->optimizer.beta1 = 0.9;
    e->optimizer.beta2 = 0.999;
    e->optimizer.epsilon = 1e-5;
    e->optimizer.grad_clip = 0.5;
    e->debug.finite_patience = 10;
    e->debug.rollbacks_max = 3;
    if (rm_backend_cpu_create(&s.backend, 1, "auto", &error) ||
        rm_net_compile(&s.net, &e->network, &shape, &error) ||
        rm_net_workspace_create(&s.workspace, s.net, s.backend, BATCH, 0, RM_NET_TRAIN, &error) ||
        rm_optimizer_create(&s.optimizer, s.backend, e, s.net, &error) ||
        rm_guard_create(&s.guard, e, s.backend, NULL, "policy", &error))
        fail(&error);
    const struct rm_backend_ops *ops = s.backend->ops;
    s.n = rm_net_param_count(s.net);
    s.params = ops->alloc(s.backend, s.n);
    s.grads = ops->alloc(s.backend, s.n);
    s.m = ops->alloc(s.backend, s.n);
    s.v = ops->alloc(s.backend, s.n);
    s.x = ops->alloc(s.backend, BATCH * INPUTS);
    s.wanted = ops->alloc(s.backend, BATCH * (ACTIONS + 1));
    ops->normals(s.backend, 1, RM_STREAM_TEST, 0, 0, BATCH * INPUTS, s.x);
    ops->normals(s.backend, 1, RM_STREAM_TEST, 1, 0, BATCH * (ACTIONS + 1), s.wanted);
    rm_net_init(s.net, s.params, rm_rng_at(1, RM_STREAM_INIT, 0, 0));
    rm_guard_floats(s.guard, s.params, s.n);
    rm_guard_optimizer(s.guard, s.optimizer);
    if (rm_guard_ready(s.guard, &error))
        fail(&error);
    s.input = (struct rm_net_input){.x = s.x, .batch = BATCH};
    s.loss = (struct rm_net_loss){squared, &s};
    rm_net_prepare(s.workspace, s.params);
}

static void bare_update(void)
{
    double sums[RM_NET_SUMS];
    const struct rm_backend_ops *ops = s.backend->ops;
    rm_net_watch(s.workspace, false);
    rm_net_learn(s.workspace, s.params, &s.input, &s.loss, s.grads, sums);
    const double norm = sqrt(ops->sum_squares(s.backend, s.grads, s.n));
    const struct rm_adam adam = {.learning_rate = 1e-5f,
                                 .beta1 = 0.9f,
                                 .beta2 = 0.999f,
                                 .epsilon = 1e-5f,
                                 .step = ++s.updates};
    ops->adam(s.backend, &adam, norm > 0.5 ? (float)(0.5 / norm) : 1.0f, s.grads, s.n, s.params,
              s.m, s.v);
    rm_net_prepare(s.workspace, s.params);
}

/* As learners make it. */
static void update(void)
{
    double sums[RM_NET_SUMS];
    struct rm_error error;
    const struct rm_backend_ops *ops = s.backend->ops;
    rm_net_watch(s.workspace, s.finite.check == RM_CHECK_FINITE_ALWAYS);
    rm_net_learn(s.workspace, s.params, &s.input, &s.loss, s.grads, sums);
    struct rm_update_figures *f = rm_optimizer_figures(s.optimizer);
    struct rm_update_knobs knobs = {0};
    const struct rm_optimizer_put step = {.params = s.params, .grads = s.grads, .knobs = &knobs};
    rm_optimizer_knobs(s.optimizer, ++s.updates, 0, &knobs);
    f->last_loss = sums[0];
    if (s.finite.check != RM_CHECK_FINITE_OFF) {
        const double norm = rm_optimizer_norm(s.optimizer, s.grads);
        if (rm_finite_due(&s.finite, s.updates, !isfinite(f->last_loss) || !isfinite(norm))) {
            if (!rm_net_learned_finite(s.workspace) || !isfinite(norm) ||
                !isfinite(ops->sum_squares(s.backend, s.params, s.n))) {
                rm_net_forward(s.workspace, s.params, &s.input);
                rm_finite_look(&s.finite, s.updates, s.workspace, s.params, &s.input, s.grads);
            }
        }
    }
    rm_optimizer_put(s.optimizer, &step);
    rm_net_prepare(s.workspace, s.params);
    if (rm_guard_judge(s.guard, !f->skip, f->last_loss, f->last_grad_norm, s.updates, &error))
        fail(&error);
}

static uint64_t time_of(void (*make)(void))
{
    const uint64_t start = rm_now_ns();
    for (int i = 0; i < UPDATES; i++)
        make();
    return rm_now_ns() - start;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* A ratio of the least times of both: what else runs on the machine only ever adds. */
static void bench(const char *name, enum rm_check_finite check, const char *note)
{
    double ratio[RUNS], micros = 0;
    s.experiment.debug.check_finite = check;
    s.finite = rm_finite_of(&s.experiment, "policy");
    for (int r = 0; r < RUNS; r++) {
        double bare = INFINITY, with = INFINITY;
        for (int t = 0; t < TURNS; t++) {
            bare = smaller(bare, (double)time_of(bare_update));
            with = smaller(with, (double)time_of(update));
        }
        ratio[r] = with / bare;
        micros = bare / UPDATES / 1e3;
    }
    char text[128];
    snprintf(text, sizeof text, "%s; an update is %.0f us", note, micros);
    rm_bench_report(&(struct rm_bench_result){
        .name = name, .unit = "ratio", .values = ratio, .runs = RUNS, .baseline = 1, .note = text});
}

int main(int argc, char **argv)
{
    const bool cost = rm_bench_wanted(argc, argv, "check_finite.cost");
    const bool always = rm_bench_wanted(argc, argv, "check_finite.always");
    if (!cost && !always)
        return 0;
    rm_bench_pin(0);
    open_subject();
    time_of(bare_update);
    time_of(update);
    if (cost)
        bench("check_finite.cost", RM_CHECK_FINITE_OFF, "off, against none of it");
    if (always)
        bench("check_finite.always", RM_CHECK_FINITE_ALWAYS, "all looked through");
    return 0;
}
