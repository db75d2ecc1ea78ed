/* How fast one learner makes updates of the treasure hunt: batch 64, IQN with 12 quantiles, one
 * thread.
 *
 * iqn.update    GFLOP/s of whole updates, sampling and publishing included. Ceiling: this core's
 * FMA peak, measured between the runs. After it, a line that says where the time goes. */
#include "actor/actor.h"
#include "actor/worlds/plan.h"
#include "config/config.h"
#include "learner/algo/trainer.h"
#include "learner/learner.h"
#include "scripts/bench/report.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 7, UPDATES = 60, WARM_UP = 20, FILL_ROWS = 1500 };

static struct rm_session session;
static struct rm_experiment experiment;

static void fail(const struct rm_error *error)
{
    fprintf(stderr, "bench_learner: %s\n", error->text);
    exit(1);
}

/* The shipped experiment, its five agents on one policy so that one actor and one learner do, and
 * acting at random so that filling the ring takes no time. */
static void open_session(void)
{
    static struct rm_plan plan;
    static const struct rm_override set[] = {
        {"mode=free"},   {"policy.map=shared"}, {"limiter.updates_per_step=0"}, {"epsilon.end=1"},
        {"run.steps=0"}, {"actor.count=1"},     {"learner.threads=1"},
    };
    struct rm_error error = {""};
    if (rm_config_load(&experiment, "config/treasurehunt.json", set, sizeof set / sizeof *set,
                       &error) ||
        rm_plan_make(&plan, &experiment, &error) ||
        rm_session_create(&session, &experiment, &plan, &error))
        fail(&error);
}

static double update_flops(void)
{
    struct rm_error error = {""};
    struct rm_backend *backend;
    struct rm_trainer *trainer;
    struct rm_trainer_spec spec = {
        .experiment = &experiment,
        .shape = session.plan.policy[0].shape,
        .name = "policy",
        .masks = session.plan.policy[0].mask_bytes > 0,
    };

    if (rm_backend_cpu_create(&backend, 1, experiment.learner.isa, &error))
        fail(&error);
    spec.backend = backend;
    if (rm_trainer_create(&trainer, &spec, &error))
        fail(&error);
    const double flops = rm_trainer_update_flops(trainer);
    printf("iqn.update: %.1f MFLOP an update, batch %u, %s\n", flops / 1e6, experiment.sample.batch,
           backend->description);
    rm_trainer_destroy(trainer);
    rm_backend_destroy(backend);
    return flops;
}

static void turn(struct rm_duty *duty)
{
    struct rm_error error = {""};
    if (duty->do_work(duty->self, &error) <= 0)
        fail(&error);
}

static void print_phases(const uint64_t *before, const uint64_t *after, uint32_t updates)
{
    double total = 0;
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        total += (double)(after[p] - before[p]);
    printf("iqn.update: %.3f ms an update:", total / updates / 1e6);
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        if (after[p] > before[p])
            printf(" %s %.1f%%", rm_phase_name((enum rm_phase)p),
                   100 * (double)(after[p] - before[p]) / total);
    printf("\n");
}

static void snapshot(const struct rm_board_worker *slot, uint64_t *out)
{
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        out[p] = RM_PEEK(&slot->phase_ns[p]);
}

static void bench_update(struct rm_duty *learner)
{
    double values[RUNS], peak[RUNS];
    uint64_t before[RM_PHASE_COUNT], after[RM_PHASE_COUNT];
    const double flops = update_flops();
    for (int i = 0; i < WARM_UP; i++)
        turn(learner);
    learner->clock->since_ns = rm_now_ns();
    snapshot(learner->slot, before);
    for (int r = 0; r < RUNS; r++) {
        const uint64_t start = rm_now_ns();
        for (int i = 0; i < UPDATES; i++)
            turn(learner);
        values[r] = flops * UPDATES / (double)(rm_now_ns() - start);
        peak[r] = rm_bench_fma_gflops();
        learner->clock->since_ns = rm_now_ns(); /* the peak is not the learner's time */
    }
    snapshot(learner->slot, after);
    rm_bench_report(&(struct rm_bench_result){
        .name = "iqn.update",
        .unit = "GFLOP/s",
        .values = values,
        .runs = RUNS,
        .ceiling = rm_bench_median(peak, RUNS),
        .note = "treasure hunt, batch 64, sampling and publishing included; one thread",
    });
    print_phases(before, after, RUNS * UPDATES);
}

int main(int argc, char **argv)
{
    struct rm_error error = {""};
    struct rm_actor *actor;
    struct rm_learner *learner;
    struct rm_duty acting, learning;
    if (!rm_bench_wanted(argc, argv, "iqn.update"))
        return 0;
    rm_bench_pin(0);
    open_session();
    if (rm_learner_create(&learner, &session, 0, "", &learning, &error) ||
        rm_actor_create(&actor, &session, 0, &acting, &error))
        fail(&error);
    for (int i = 0; i < FILL_ROWS; i++)
        turn(&acting);
    bench_update(&learning);
    rm_actor_destroy(actor);
    rm_learner_destroy(learner);
    rm_session_close(&session);
    return 0;
}
