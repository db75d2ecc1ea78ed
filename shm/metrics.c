/* The name tables and metric tables of the board (board.h). */
#include "shm/atomic.h"
#include "shm/board.h"

#include <assert.h>
#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define NAMES(function, type, count, ...)                                                          \
    const char *function(type value)                                                               \
    {                                                                                              \
        static const char *const names[] = {__VA_ARGS__};                                          \
        static_assert(COUNT(names) == (count), "one name for each phase");                         \
        return (unsigned)value < COUNT(names) ? names[value] : "unknown";                          \
    }

NAMES(
    rm_phase_name, enum rm_phase,
    RM_PHASE_COUNT, [RM_PHASE_OTHER] = "other", [RM_PHASE_ENVIRONMENT] = "environment",
    [RM_PHASE_INFERENCE] = "inference", [RM_PHASE_RING] = "ring", [RM_PHASE_WAITING] = "waiting",
    [RM_PHASE_SAMPLING] = "sampling", [RM_PHASE_UPLOAD] = "upload", [RM_PHASE_FORWARD] = "forward",
    [RM_PHASE_BACKWARD] = "backward", [RM_PHASE_OPTIMIZER] = "optimizer",
    [RM_PHASE_PUBLISH] = "publish", [RM_PHASE_CHECKPOINT] = "checkpoint")

NAMES(rm_wait_name, enum rm_wait,
      RM_WAIT_COUNT, [RM_WAIT_OTHER] = "other", [RM_WAIT_LIMITER] = "limiter",
      [RM_WAIT_WEIGHTS] = "weights", [RM_WAIT_ROWS] = "rows", [RM_WAIT_CREDIT] = "credit",
      [RM_WAIT_ROUND] = "round", [RM_WAIT_CHECKPOINT] = "checkpoint", [RM_WAIT_PAUSE] = "pause")

NAMES(rm_role_name, enum rm_role,
      RM_ROLE_COUNT, [RM_ROLE_ACTOR] = "actor", [RM_ROLE_LEARNER] = "learner",
      [RM_ROLE_EVALUATOR] = "evaluator", [RM_ROLE_RECORDER] = "recorder", [RM_ROLE_SOLO] = "solo")

NAMES(rm_worker_state_name, enum rm_worker_state, RM_WORKER_FAILED + 1, [RM_WORKER_NONE] = "none",
      [RM_WORKER_STARTING] = "starting", [RM_WORKER_BUSY] = "busy", [RM_WORKER_WAITING] = "waiting",
      [RM_WORKER_DONE] = "done", [RM_WORKER_FAILED] = "failed")

NAMES(rm_run_state_name, enum rm_run_state, RM_RUN_STOPPED + 1, [RM_RUN_STARTING] = "starting",
      [RM_RUN_RUNNING] = "running", [RM_RUN_PAUSED] = "paused", [RM_RUN_STOPPING] = "stopping",
      [RM_RUN_DONE] = "done", [RM_RUN_FAILED] = "failed", [RM_RUN_STOPPED] = "stopped")

#define METRIC(block, kind_, type_, name_, field, unit_, doc_)                                     \
    {                                                                                              \
        .name = (name_), .unit = (unit_), .kind = RM_METRIC_##kind_, .type = RM_METRIC_##type_,    \
        .offset = offsetof(struct block, field), .doc = (doc_)                                     \
    }
#define POLICY(...) METRIC(rm_board_policy, __VA_ARGS__)
#define WORKER(...) METRIC(rm_board_worker, __VA_ARGS__)

const struct rm_metric rm_policy_metrics[] = {
    POLICY(COUNTER, U64, "env_steps", env_steps, "steps",
           "agent steps taken: observations for which the agent chose an action that counts"),
    POLICY(COUNTER, U64, "inserted", limiter.inserted, "transitions",
           "transitions that the limiter counts as inserted"),
    POLICY(COUNTER, U64, "sampled", limiter.sampled, "transitions",
           "transitions that the limiter counts as sampled"),
    POLICY(GAUGE, F64, "samples_per_insert", limiter.samples_per_insert, "1",
           "sampled transitions that the limiter allows for each inserted one; 0: any number"),
    POLICY(GAUGE, F64, "limiter_min", limiter.min_error, "transitions",
           "least that inserted * samples_per_insert - sampled may be: learners wait there"),
    POLICY(GAUGE, F64, "limiter_max", limiter.max_error, "transitions",
           "most that it may be: actors wait there"),
    POLICY(COUNTER, U64, "rows_lost", rows_lost, "rows",
           "rows reserved by an actor that died before committing them"),
    POLICY(COUNTER, U64, "lag_sum", lag_sum, "updates",
           "policy lag while acting, summed over vector steps"),
    POLICY(COUNTER, U64, "lag_count", lag_count, "steps", "vector steps in lag_sum"),
    POLICY(GAUGE, U64, "lag_max", lag_max, "updates", "largest policy lag while acting"),
    POLICY(COUNTER, U64, "insert_blocked_ns", insert_blocked_ns, "nanoseconds",
           "time that actors slept because the limiter held them back"),
    POLICY(COUNTER, U64, "updates", updates, "updates", "optimizer steps"),
    POLICY(COUNTER, U64, "updates_skipped", updates_skipped, "updates",
           "updates skipped because the loss or a gradient was not finite"),
    POLICY(COUNTER, U64, "samples", samples, "transitions", "transitions sampled for training"),
    POLICY(COUNTER, U64, "samples_torn", samples_torn, "transitions",
           "transitions drawn again because the writer overwrote them while they were copied"),
    POLICY(COUNTER, U64, "published", published, "versions", "weights versions published"),
    POLICY(COUNTER, U64, "publish_skipped", publish_skipped, "versions",
           "publications skipped because the weights had changed too little, or had exploded"),
    POLICY(COUNTER, U64, "device_bytes_in", device_bytes_in, "bytes",
           "bytes that the learner copied to its device"),
    POLICY(COUNTER, U64, "device_bytes_out", device_bytes_out, "bytes",
           "bytes that the learner copied back from its device"),
    POLICY(COUNTER, U64, "device_waits", device_waits, "times",
           "times that the learner waited for its device"),
    POLICY(GAUGE, U64, "parameters", parameters, "numbers", "parameters that are trained"),
    POLICY(GAUGE, F64, "update_flops", update_flops, "operations",
           "floating-point operations of the products of an update, without padding; a "
           "multiply-add is two"),
    POLICY(GAUGE, F64, "update_fixed", update_fixed, "1",
           "part of the time of an update's passes that does not depend on the number of rows, "
           "measured after the learner's first update; 0: not measured"),
    POLICY(GAUGE, F64, "core_flops", core_flops, "operations/s",
           "most float32 operations a second of a core, measured when the learner started; 0: it "
           "trains on a device"),
    POLICY(GAUGE, F64, "core_flops_bf16", core_flops_bf16, "operations/s",
           "the same with products of bf16; 0: a core has no instruction for them"),
    POLICY(
        GAUGE, F64, "copy_bytes", copy_bytes, "bytes/s",
        "most bytes a second that a core copies in memory, measured when the learner started; 0: "
        "what it trains fits into caches"),
    POLICY(COUNTER, U64, "sample_blocked_ns", sample_blocked_ns, "nanoseconds",
           "time that the learner slept because the limiter held it back"),
    POLICY(COUNTER, U64, "age_sum", age_sum, "steps",
           "age of sampled transitions in env steps of the policy, summed"),
    POLICY(COUNTER, U64, "age_count", age_count, "transitions", "transitions in age_sum"),
    POLICY(GAUGE, U64, "replay_rows", replay_rows, "transitions", "transitions held"),
    POLICY(GAUGE, U64, "replay_capacity", replay_capacity, "transitions",
           "most transitions that can be held"),
    POLICY(GAUGE, F64, "loss", loss, "1", "loss of the latest update"),
    POLICY(GAUGE, F64, "grad_norm", grad_norm, "1",
           "global gradient norm of the latest update, before clipping"),
    POLICY(GAUGE, F64, "q_mean", q_mean, "1", "mean action value of the latest batch"),
    POLICY(GAUGE, F64, "learning_rate", learning_rate, "1", "learning rate in use"),
    POLICY(GAUGE, F64, "publish_change", publish_change, "1",
           "relative change of the weights at the latest publication"),
    POLICY(GAUGE, F64, "epsilon", epsilon, "1", "exploration rate in use"),
    POLICY(COUNTER, U64, "rollouts", rollouts, "rollouts", "rollouts trained on"),
    POLICY(COUNTER, U64, "rollouts_dropped", rollouts_dropped, "rollouts",
           "rollouts dropped because the weights they acted with were too old"),
    POLICY(COUNTER, U64, "rollbacks", rollbacks, "roll-backs",
           "rollbacks of the learner to its last good weights"),
    POLICY(GAUGE, U64, "lag_min_rollout", lag_min_rollout, "updates",
           "smallest policy lag of the latest rollout's rows when training on it began"),
    POLICY(GAUGE, F64, "lag_mean_rollout", lag_mean_rollout, "updates", "its mean"),
    POLICY(GAUGE, U64, "lag_max_rollout", lag_max_rollout, "updates", "its largest"),
    POLICY(GAUGE, F64, "policy_loss", policy_loss, "1",
           "policy loss, mean over the latest rollout's updates; distill: cross-entropy of "
           "actions in the latest update"),
    POLICY(GAUGE, F64, "value_loss", value_loss, "1",
           "value loss, mean over the latest rollout's updates"),
    POLICY(GAUGE, F64, "entropy", entropy, "nats",
           "entropy of the policy, mean over the latest rollout's updates; from replay: of the "
           "latest update"),
    POLICY(GAUGE, F64, "kl", kl, "nats",
           "estimated divergence from the policy that acted, of the latest rollout's last pass"),
    POLICY(GAUGE, F64, "clip_fraction", clip_fraction, "1",
           "samples whose probability ratio was clipped, mean over the latest rollout's updates"),
    POLICY(GAUGE, F64, "explained_variance", explained_variance, "1",
           "1 - Var(return - value) / Var(return) of the latest rollout"),
    POLICY(GAUGE, F64, "value_mean", value_mean, "1", "PopArt: mean of returns"),
    POLICY(GAUGE, F64, "value_deviation", value_deviation, "1", "PopArt: deviation of returns"),
    POLICY(GAUGE, F64, "temperature", temperature, "1", "sac: weight of the entropy"),
    POLICY(GAUGE, F64, "priority_max", priority_max, "1", "largest priority so far"),
    POLICY(GAUGE, F64, "reward_scale", reward_scale, "1", "what rewards are divided by"),
    POLICY(GAUGE, F64, "type_loss", type_loss, "nats",
           "distill: cross-entropy of what follows a step, in the latest update"),
    POLICY(GAUGE, F64, "held_out_loss", held_out_loss, "1",
           "distill: loss over the histories held out, measured every evaluation.interval"),
    POLICY(GAUGE, F64, "held_out_policy_loss", held_out_policy_loss, "nats",
           "distill: its cross-entropy of actions"),
    POLICY(COUNTER, U64, "eval_seq", eval_seq, "evaluations", "evaluations finished"),
    POLICY(GAUGE, U64, "eval_version", eval_version, "versions",
           "weights version of the latest evaluation"),
};
const size_t rm_policy_metric_count = COUNT(rm_policy_metrics);

#define PHASE(name_, phase)                                                                        \
    WORKER(COUNTER, SPENT, "phase_" name_ "_ns", phase_ns[phase], "nanoseconds",                   \
           "time spent in phase " name_)

#define WAIT(name_, wait, what)                                                                    \
    WORKER(COUNTER, SPENT, "wait_" name_ "_ns", wait_ns[wait], "nanoseconds",                      \
           "part of phase waiting: asleep until " what)

const struct rm_metric rm_worker_metrics[] = {
    WORKER(COUNTER, U64, "generation", generation, "processes",
           "processes that have had this slot, the current one included"),
    WORKER(GAUGE, U64, "heartbeat_ns", heartbeat_ns, "nanoseconds",
           "monotonic time of the latest sign of life"),
    WORKER(COUNTER, U64, "turns", turns, "turns", "turns that did something"),
    WORKER(COUNTER, U64, "sleeps", sleeps, "sleeps", "times the worker slept until woken"),
    WORKER(GAUGE, U64, "rss_bytes", rss_bytes, "bytes", "resident memory"),
    WORKER(COUNTER, U64, "steps", steps, "steps",
           "actors, the evaluator, learners that have the worlds: steps of agent 0 over all worlds "
           "of the process"),
    WORKER(COUNTER, U64, "cpu_ns", cpu_ns, "nanoseconds",
           "processor time of all threads of the process; in sequential mode the first duty has it "
           "for all"),
    WORKER(COUNTER, U64, "run_delay_ns", run_delay_ns, "nanoseconds",
           "time that the main thread could run and had no core, by the kernel's schedstat; in "
           "sequential mode the first duty has it for all"),
    WORKER(COUNTER, U64, "world_cpu_ns", world_cpu_ns, "nanoseconds",
           "processor time of the Python processes that step the worker's worlds"),
    WORKER(COUNTER, U64, "recorded_rows", recorded_rows, "rows",
           "recorder: rows of agents in worlds that are on disk"),
    WORKER(COUNTER, U64, "lost_rows", lost_rows, "rows",
           "recorder: rows that it could not keep up with, or could not write"),
    WORKER(COUNTER, U64, "recorded_bytes", recorded_bytes, "bytes",
           "recorder: size of the recording"),
    WORKER(COUNTER, U64, "acting_flops", acting_flops, "operations",
           "actors: floating-point operations of the products of forward passes"),
    PHASE("other", RM_PHASE_OTHER),
    PHASE("environment", RM_PHASE_ENVIRONMENT),
    PHASE("inference", RM_PHASE_INFERENCE),
    PHASE("ring", RM_PHASE_RING),
    PHASE("waiting", RM_PHASE_WAITING),
    PHASE("sampling", RM_PHASE_SAMPLING),
    PHASE("upload", RM_PHASE_UPLOAD),
    PHASE("forward", RM_PHASE_FORWARD),
    PHASE("backward", RM_PHASE_BACKWARD),
    PHASE("optimizer", RM_PHASE_OPTIMIZER),
    PHASE("publish", RM_PHASE_PUBLISH),
    PHASE("checkpoint", RM_PHASE_CHECKPOINT),
    WAIT("other", RM_WAIT_OTHER, "the run continues; for an evaluator, until a request"),
    WAIT("limiter", RM_WAIT_LIMITER, "the limiter allows more"),
    WAIT("weights", RM_WAIT_WEIGHTS, "a learner publishes weights"),
    WAIT("rows", RM_WAIT_ROWS, "actors finish a rollout"),
    WAIT("credit", RM_WAIT_CREDIT, "the learner frees rows of the ring"),
    WAIT("round", RM_WAIT_ROUND, "the others finish the round"),
    WAIT("checkpoint", RM_WAIT_CHECKPOINT, "all duties' state is copied for a checkpoint"),
    WAIT("pause", RM_WAIT_PAUSE, "the run is resumed"),
};
const size_t rm_worker_metric_count = COUNT(rm_worker_metrics);
static_assert(COUNT(rm_worker_metrics) == 13 + RM_PHASE_COUNT + RM_WAIT_COUNT,
              "a metric for each phase and each reason to wait");

double rm_metric_value(const struct rm_metric *metric, const void *block)
{
    const char *word = (const char *)block + metric->offset;
    if (metric->type == RM_METRIC_F64)
        return RM_PEEK((const _Atomic double *)(const void *)word);
    if (metric->type == RM_METRIC_SPENT)
        return (double)rm_board_spent_ns(block, (const _Atomic uint64_t *)(const void *)word);
    return (double)RM_PEEK((const _Atomic uint64_t *)(const void *)word);
}
