/* How fast one actor steps and acts, and what of that the ring costs.
 *
 * cartpole.act_step    agent steps a second of one actor on one core: CartPole with a policy of two
 *                      layers of 64 acting in every world, exploration draws, checks, scores and
 *                      rows written. Ceiling: the forward pass alone at this core's FMA peak.
 * cartpole.ring_share  which part of that time the ring takes: the same worlds and policy once as
 * an actor writes them for a learner, once into four private rows that no learner reads;
 * alternating. */
#include "actor/actor.h"
#include "actor/worlds/plan.h"
#include "actor/stepping.h"
#include "config/config.h"
#include "scripts/bench/report.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 9, PAIRS = 51 };

static const char config[] =
    "{\"name\": \"bench-actor\", \"seed\": 1, \"world\": {\"name\": \"cartpole\"},"
    " \"actor\": {\"count\": 1, \"worlds\": 1024}, \"run\": {\"steps\": 0},"
    " \"epsilon\": {\"start\": 0.05, \"end\": 0.05}, \"ring\": {\"capacity\": 500000},"
    " \"sample\": {\"batch\": 64, \"min_fill\": 1000}, \"limiter\": {\"updates_per_step\": 0},"
    " \"algorithm\": {\"name\": \"dqn\"}, \"network\": {\"layers\": ["
    "  {\"type\": \"linear\", \"units\": 64}, {\"type\": \"relu\"},"
    "  {\"type\": \"linear\", \"units\": 64}, {\"type\": \"relu\"}]}}";

static struct rm_session session;

static void fail(const struct rm_error *error)
{
    fprintf(stderr, "bench_actor: %s\n", error->text);
    exit(1);
}

static void publish_weights(void)
{
    const struct rm_policy_plan *policy = &session.plan.policy[0];
    struct rm_net_shape shape = {
        .inputs = policy->inputs, .actions = policy->actions, .outputs_per_action = 1};
    struct rm_error error = {""};
    struct rm_net *net;

    if (rm_net_compile(&net, &session.experiment.network, &shape, &error) < 0)
        fail(&error);
    float *params = calloc(rm_net_param_count(net), sizeof *params);
    if (!params)
        exit(1);
    rm_net_init(net, params, rm_rng_at(1, RM_STREAM_INIT, 0, 0));
    rm_weights_publish(&session.weights[0], params, (struct rm_weights_stamp){0});
    free(params);
    rm_net_destroy(net);
}

static double flops_per_step(void)
{
    const struct rm_policy_plan *policy = &session.plan.policy[0];
    struct rm_net_shape shape = {
        .inputs = policy->inputs, .actions = policy->actions, .outputs_per_action = 1};
    struct rm_net *net;

    if (rm_net_compile(&net, &session.experiment.network, &shape, NULL) < 0)
        return 0;
    double flops = rm_net_forward_flops(net, 1024, 0) / 1024;
    rm_net_destroy(net);
    return flops;
}

static void open_session(void)
{
    static struct rm_experiment experiment;
    static struct rm_plan plan;
    struct rm_error error = {""};

    if (rm_config_parse(&experiment, "bench_actor", config, strlen(config), NULL, 0, &error) < 0 ||
        rm_plan_make(&plan, &experiment, &error) < 0 ||
        rm_session_create(&session, &experiment, &plan, &error) < 0)
        fail(&error);
    publish_weights();
}

/* The time this thread had of its core: what others did there meanwhile does not count. Neither of
 * the two that are compared ever sleeps. */
static double cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void step_actor(struct rm_duty *duty, uint32_t turns)
{
    struct rm_error error = {""};

    for (uint32_t t = 0; t < turns; t++)
        if (duty->do_work(duty->self, &error) <= 0)
            fail(&error);
}

static void step_private(struct rm_stepping *stepping, uint32_t turns)
{
    struct rm_error error = {""};

    for (uint32_t t = 0; t < turns; t++)
        if (rm_stepping_step(stepping, &error) < 0)
            fail(&error);
}

static void bench_act_step(struct rm_duty *duty)
{
    struct rm_board_worker *slot = duty->slot;
    double values[RUNS];

    for (int i = 0; i < RUNS; i++) {
        uint64_t before = RM_PEEK(&slot->steps);
        uint64_t start = rm_now_ns();
        step_actor(duty, 400);
        values[i] = (double)(RM_PEEK(&slot->steps) - before) / (double)(rm_now_ns() - start) * 1e9;
    }
    rm_bench_report(&(struct rm_bench_result){
        .name = "cartpole.act_step",
        .unit = "steps/s",
        .values = values,
        .runs = RUNS,
        .ceiling = rm_bench_fma_gflops() * 1e9 / flops_per_step(),
        .note = "one actor, one core, 1024 worlds; ceiling: forward pass at FMA peak",
    });
}

static void nobody_agent(void *self, uint32_t agent, uint32_t world,
                         const struct rm_episode *episode)
{
    (void)self, (void)agent, (void)world, (void)episode;
}

static void nobody_world(void *self, uint32_t world, double score, uint64_t steps)
{
    (void)self, (void)world, (void)score, (void)steps;
}

static void bench_ring_share(struct rm_duty *duty)
{
    struct rm_stepping stepping;
    struct rm_ring ring, *rings[1] = {&ring};
    struct rm_error error = {""};
    struct rm_ring_spec spec = session.rings[0].spec;
    struct rm_phase_clock clock;
    double values[RUNS];

    spec.rows = 4;
    if (rm_ring_create(&ring, &spec, &error) < 0)
        fail(&error);
    rm_phase_start(&clock, &session.board.workers[rm_worker_evaluator(&session.objects)]);
    struct rm_stepping_options options = {
        .seed = session.experiment.seed,
        .total_worlds = session.experiment.actor.worlds,
        .worlds = session.experiment.actor.worlds,
        .explore = true,
        .rings = rings,
        .clock = &clock,
        .sink = {NULL, nobody_agent, nobody_world},
    };
    if (rm_stepping_create(&stepping, &session.experiment, &session.plan, &options, &error) < 0)
        fail(&error);
    rm_weights_read(&session.weights[0], stepping.policies[0].acting.params,
                    session.weights[0].act_count, &(struct rm_weights_stamp){0}, NULL);
    rm_acting_prepare(&stepping.policies[0].acting);
    if (rm_stepping_begin(&stepping, &error) < 0)
        fail(&error);
    step_private(&stepping, 200);
    for (int i = 0; i < RUNS; i++) {
        double with[PAIRS], without[PAIRS];
        for (int k = 0; k < PAIRS; k++) {
            double start = cpu_ns();
            step_actor(duty, 10);
            double middle = cpu_ns();
            step_private(&stepping, 10);
            with[k] = middle - start;
            without[k] = cpu_ns() - middle;
        }
        double actor = rm_bench_median(with, PAIRS);
        values[i] = (actor - rm_bench_median(without, PAIRS)) / actor;
    }
    rm_bench_report(&(struct rm_bench_result){
        .name = "cartpole.ring_share",
        .unit = "fraction",
        .values = values,
        .runs = RUNS,
        .note = "of the actor's processor time, against rows that nobody reads",
    });
    rm_stepping_destroy(&stepping);
    rm_ring_close(&ring);
}

int main(int argc, char **argv)
{
    struct rm_actor *actor;
    struct rm_duty duty;
    struct rm_error error = {""};
    bool speed = rm_bench_wanted(argc, argv, "cartpole.act_step");
    bool share = rm_bench_wanted(argc, argv, "cartpole.ring_share");

    if (!speed && !share)
        return 0;
    rm_bench_pin(0);
    open_session();
    if (rm_actor_create(&actor, &session, 0, &duty, &error) < 0)
        fail(&error);
    step_actor(&duty, 600); /* once round the ring, so that its pages are there */
    if (speed)
        bench_act_step(&duty);
    if (share)
        bench_ring_share(&duty);
    rm_actor_destroy(actor);
    rm_session_close(&session);
    return 0;
}
