#include "config/schema.h"

/* Initialisers, not expressions: parentheses around a string or a type would be in the way. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define FIELD_BYTES(field) sizeof(((struct rm_experiment *)0)->field)
#define AT(field)          .offset = offsetof(struct rm_experiment, field), .bytes = FIELD_BYTES(field)
#define SPAN(first, last)                                                                          \
    .offset = offsetof(struct rm_experiment, first),                                               \
    .bytes = offsetof(struct rm_experiment, last) + FIELD_BYTES(last) -                            \
             offsetof(struct rm_experiment, first)
#define SAFE_INTEGER 9007199254740991.0 /* 2^53 - 1 */

#define NUMBER(key, later, field, kind, least, most, value, what, heat, text)                      \
    {                                                                                              \
        .path = key, .on_resume = RM_ON_RESUME_##later, .type = kind, AT(field), .low = least,     \
        .high = most, .fallback = value, .unit = what, .hot = heat, .doc = text                    \
    }
#define U32(key, later, field, least, most, value, what, text)                                     \
    NUMBER(key, later, field, RM_KEY_U32, least, most, value, what, RM_COLD, text)
#define U64(key, later, field, least, most, value, what, text)                                     \
    NUMBER(key, later, field, RM_KEY_U64, least, most, value, what, RM_COLD, text)
#define F64(key, later, field, least, most, value, what, text)                                     \
    NUMBER(key, later, field, RM_KEY_F64, least, most, value, what, RM_COLD, text)
#define HOT(key, later, field, kind, least, most, value, what, heat, text)                         \
    NUMBER(key, later, field, kind, least, most, value, what, heat, text)
/* Above `least`, which itself is not allowed. */
#define ABOVE(key, later, field, least, most, value, what, heat, text)                             \
    {                                                                                              \
        .path = key, .on_resume = RM_ON_RESUME_##later, .type = RM_KEY_F64, AT(field),             \
        .low = least, .high = most, .low_open = true, .fallback = value, .unit = what,             \
        .hot = heat, .doc = text                                                                   \
    }
#define BOOL(key, later, field, value, text)                                                       \
    {                                                                                              \
        .path = key, .on_resume = RM_ON_RESUME_##later, .type = RM_KEY_BOOL, AT(field), .high = 1, \
        .fallback = value, .unit = "", .hot = RM_COLD, .doc = text                                 \
    }
#define ENUM(key, later, field, list, value, text)                                                 \
    {                                                                                              \
        .path = key, .on_resume = RM_ON_RESUME_##later, .type = RM_KEY_ENUM, AT(field),            \
        .fallback = value, .names = list, .unit = "", .hot = RM_COLD, .doc = text                  \
    }
#define TEXT(key, later, field, kind, least, most, value, text)                                    \
    {                                                                                              \
        .path = key, .on_resume = RM_ON_RESUME_##later, .type = kind, AT(field), .low = least,     \
        .high = most, .fallback_text = value, .unit = "", .hot = RM_COLD, .doc = text              \
    }
#define COMPOUND(key, later, kind, first, last, value, text)                                       \
    {                                                                                              \
        .path = key, .on_resume = RM_ON_RESUME_##later, .type = kind, SPAN(first, last),           \
        .fallback_text = value, .unit = "", .hot = RM_COLD, .doc = text                            \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

const struct rm_key rm_keys[] = {
    TEXT("name", ANY, name, RM_KEY_NAME, 1, 47, "experiment",
         "What the experiment is called: part of the run directory, the control socket and logs."),
    U64("seed", SAME, seed, 0, SAFE_INTEGER, 1, "",
        "Seed of every random stream: worlds, exploration, initial weights, sampling, noise."),
    ENUM("mode", SAME, mode, rm_mode_names, RM_MODE_FREE,
         "`free`: every worker in its own process, waiting only for data or the limiter. "
         "`lockstep`: "
         "processes with one barrier per round, bit-identical for a seed. `sequential`: all duties "
         "in turn in one process, equal to lockstep bit for bit."),

    U64("run.steps", MORE, run.steps, 0, 1e15, 50000, "steps",
        "Steps each agent takes, over all worlds together; 0 runs until stopped."),
    TEXT("run.directory", ANY, run.directory, RM_KEY_TEXT, 1, RM_PATH_TEXT_MAX - 1, "runs",
         "Where run directories are made. Relative paths start at the working directory."),
    U32("run.round_steps", SAME, run.round_steps, 1, 1000000, 64, "vector steps",
        "Lockstep and sequential: vector steps every actor takes per round."),

    {.path = "world.name",
     .type = RM_KEY_TEXT,
     AT(world.name),
     .low = 1,
     .high = RM_TEXT_MAX - 1,
     .required = true,
     .unit = "",
     .hot = RM_COLD,
     .doc = "Which world: a built-in one (`ringctl envs` lists them), or a name for that of "
            "`world.library` or `world.python`; of `world.python` there is one if none is given."},
    TEXT("world.library", SAME, world.library, RM_KEY_TEXT, 0, RM_PATH_TEXT_MAX - 1, "",
         "Path of a shared object that exports the world; empty: built in. Relative paths start at "
         "the "
         "working directory."),
    TEXT(
        "world.python", SAME, world.python, RM_KEY_TEXT, 0, RM_PATH_TEXT_MAX - 1, "",
        "A world in Python: `gymnasium:ID`, or `module:function` that returns an Env, a "
        "VectorEnv, a ParallelEnv or an AECEnv; empty: none. Modules are looked for in the working "
        "directory and in `world.directory`."),
    TEXT("world.interpreter", ANY, world.interpreter, RM_KEY_TEXT, 0, RM_PATH_TEXT_MAX - 1, "",
         "Path of the Python interpreter that `world.python` needs, with NumPy. Empty: that of "
         "`VIRTUAL_ENV`, else `python3` on the PATH."),
    TEXT("world.directory", ANY, world.directory, RM_KEY_TEXT, 0, RM_PATH_TEXT_MAX - 1, "",
         "Where relative paths among the world's options begin; empty: the folder of the "
         "experiment's file."),
    COMPOUND("world.options", SAME, RM_KEY_OPTIONS, world.options, world.options, "{}",
             "What the world is told, by name: numbers, booleans, texts, paths and lists of these. "
             "The world itself says which it takes (`ringctl envs`) and checks them."),

    U32("actor.count", SAME, actor.count, 1, 128, 1, "processes", "Actor processes."),
    U32("actor.worlds", SAME, actor.worlds, 1, 65536, 8, "worlds",
        "Worlds in all, split over the actors as evenly as can be. An actor steps its worlds "
        "together, with one batched forward pass."),
    U32("actor.quantiles", SAME, actor.quantiles, 1, 1024, 32, "quantiles",
        "IQN: quantile draws averaged per acting decision."),
    BOOL("actor.noise", SAME, actor.noise, 0,
         "Networks with noisy layers: actors explore by their noise (Fortunato 2018), drawn anew "
         "for "
         "every vector step, along with epsilon. Else they take the means, as evaluations do."),
    ENUM(
        "actor.device", SAME, actor.device, rm_actor_device_names, RM_ACTOR_CPU,
        "Where worlds are stepped. `cpu`: by actor processes. `cuda`: on the learner's GPU, where "
        "the policy acts in them and learns from them without a transfer but of figures; there are "
        "no actors then. For ppo, in worlds that are compiled for it: goodhart and cartpole."),
    BOOL("actor.pin", ANY, actor.pin, 0, "Pins each worker to a core."),
    ENUM("actor.sandbox", ANY, actor.sandbox, rm_sandbox_names, RM_SANDBOX_AUTO,
         "What processes that step worlds may do besides. `auto`: worlds of `world.library` can "
         "read files, but neither write them, but for those of the run, nor open sockets or start "
         "processes, as far as the kernel can see to it. `on`: the same for all worlds, or the run "
         "fails. `off`: whatever the daemon may."),
    U64("actor.process_limit", ANY, actor.process_limit, 0, 4194304, 64, "processes",
        "Most processes and threads of each actor and of the evaluator, in worlds of "
        "`world.library`, where the host lets them have a control group of their own; 0: no "
        "limit."),
    U64("actor.memory_limit", ANY, actor.memory_limit, 0, 1e15, 0, "bytes",
        "Most private memory of each actor and of the evaluator, stacks of threads included, "
        "shared rings not; in sequential mode of the one process; 0: no limit. Where actors "
        "have a control group of their own, 64 MiB more bound all memory that they make use of "
        "first. Python workers have the same bound each."),
    U32("actor.python_workers", SAME, actor.python_workers, 1, 256, 1, "processes",
        "Python processes of each actor, and of the evaluator, over which its Python worlds are "
        "dealt."),
    BOOL("actor.network", ANY, actor.network, 0,
         "Whether confined Python worlds may open sockets."),
    F64("actor.step_deadline_s", ANY, actor.step_deadline_s, 0.1, 86400, 60, "s",
        "Longest time for a step or the beginning of an episode of a Python worker's worlds; one "
        "that takes longer is replaced. To be made, they have ten times as long."),

    F64("epsilon.start", SAME, epsilon.start, 0, 1, 1.0, "",
        "Probability of a uniformly random action at the start."),
    HOT("epsilon.end", ANY, epsilon.end, RM_KEY_F64, 0, 1, 0.05, "", RM_HOT_EPSILON_END,
        "Least probability of a random action: where the decay ends."),
    ENUM("epsilon.decay", SAME, epsilon.decay, rm_decay_names, RM_DECAY_LINEAR,
         "`linear`: from start to end over `epsilon.span` units. `exponential`: times "
         "`epsilon.factor` each unit, down to the end."),
    ENUM("epsilon.unit", SAME, epsilon.unit, rm_decay_unit_names, RM_DECAY_STEPS,
         "What the decay counts: steps of an agent over all worlds, or episodes over all worlds."),
    ABOVE("epsilon.factor", SAME, epsilon.factor, 0, 1, 0.999, "per unit", RM_COLD,
          "Exponential decay: the factor per unit."),
    U64("epsilon.span", SAME, epsilon.span, 1, 1e15, 10000, "units",
        "Linear decay: units from start to end."),

    COMPOUND("policy.map", SAME, RM_KEY_MAP, policy.map, policy.list, "\"independent\"",
             "Which agent is served by which policy. `\"independent\"`: one policy each. "
             "`\"shared\"`: one for all. A list such as `[0, 1, 1]`: agent i is served by policy "
             "list[i]; policies are numbered from 0 without gaps."),
    COMPOUND(
        "policy.frozen", SAME, RM_KEY_FROZEN, policy.frozen_count, policy.frozen, "[]",
        "Opponents for self-play: `[{\"policy\": 1, \"of\": 0, \"every\": 1000, \"keep\": "
        "8}]` does not train policy 1; every 1000 updates of policy 0 it takes one of its last "
        "8 snapshots."),

    U64("ring.capacity", SAME, ring.capacity, 16, 1073741824, 50000, "transitions",
        "Transitions kept per policy, over all actors; rounded up to whole rows and powers of "
        "two."),

    U32("sample.batch", SAME, sample.batch, 1, 65536, 64, "transitions", "Transitions per update."),
    U32("sample.n_step", SAME, sample.n_step, 1, 64, 1, "steps",
        "Rewards summed before bootstrapping; shorter where an episode ends."),
    F64("sample.gamma", SAME, sample.gamma, 0, 1, 0.99, "per step", "Discount."),
    U32("sample.frame_stack", SAME, sample.frame_stack, 1, 64, 1, "frames",
        "Observations given to the network at once, oldest first, zeros before an episode's first; "
        "1: only the current one."),
    U64("sample.min_fill", SAME, sample.min_fill, 1, 1073741824, 1000, "transitions",
        "Transitions in the ring before the first update."),
    U32("sample.sequence", SAME, sample.sequence, 1, 4096, 80, "steps",
        "R2D2: steps of a sequence that are trained on."),
    U32("sample.burn_in", SAME, sample.burn_in, 0, 4096, 40, "steps",
        "R2D2: steps before them that only warm up the recurrent state."),
    U32("sample.period", SAME, sample.period, 1, 4096, 40, "steps",
        "R2D2: steps between the starts of two sequences of a lane."),

    ENUM("priority.kind", SAME, priority.kind, rm_priority_names, RM_PRIORITY_UNIFORM,
         "How transitions are drawn from replay: all alike, or `proportional` to their priority "
         "(Schaul 2016)."),
    F64("priority.alpha", SAME, priority.alpha, 0, 1, 0.6, "",
        "Exponent of the priority: 0 is uniform."),
    ABOVE("priority.epsilon", SAME, priority.epsilon, 0, 1, 1e-6, "", RM_COLD,
          "Added to the absolute error, so that nothing is never drawn."),
    F64("priority.beta_start", SAME, priority.beta_start, 0, 1, 0.4, "",
        "Exponent of the importance weights at the first update."),
    F64("priority.beta_end", SAME, priority.beta_end, 0, 1, 1, "", "Where that exponent ends."),
    U64("priority.beta_span", SAME, priority.beta_span, 0, 1e15, 0, "updates",
        "Updates from start to end; 0: over the whole run."),
    F64("priority.max_share", SAME, priority.max_share, 0, 1, 0.9, "",
        "R2D2: a sequence's priority is this share of its largest error plus the rest of its mean "
        "error."),

    U32("rollout.steps", SAME, rollout.steps, 1, 65536, 128, "vector steps",
        "ppo, appo, vtrace: vector steps of a rollout. Every world brings that many rows."),
    U32("rollout.max_policy_lag", SAME, rollout.max_policy_lag, 0, 1, 0, "rollouts",
        "ppo: 0, actors wait for the new weights after every rollout; 1, they act one rollout "
        "ahead while the learner trains."),
    U64("rollout.staleness_max", SAME, rollout.staleness_max, 0, 1e12, 0, "updates",
        "appo, vtrace: a rollout whose weights are more updates old than this is dropped and "
        "counted; 0: none is."),
    U32("rollout.queue", SAME, rollout.queue, 2, 64, 2, "rollouts",
        "appo, vtrace: rollouts that an actor may be ahead of what the learner has taken; then it "
        "waits."),

    HOT("limiter.updates_per_step", ANY, limiter.updates_per_step, RM_KEY_F64, 0, 1000, 0.25,
        "updates", RM_HOT_UPDATES_PER_STEP,
        "Optimizer steps per agent step of the policy. Whichever side is ahead sleeps. 0: free "
        "running, as many updates as the learner can make."),
    HOT("limiter.slack_updates", ANY, limiter.slack_updates, RM_KEY_F64, 0, 1e9, 8, "updates",
        RM_HOT_SLACK_UPDATES,
        "How far actors and learner may drift apart before one sleeps, either way."),
    ENUM(
        "limiter.wake", ANY, limiter.wake, rm_wake_kind_names, RM_WAKE_EVENT,
        "`event`: a sleeper is woken by an eventfd. `poll`: it looks every `limiter.poll_us`, as a "
        "baseline to compare with."),
    U32("limiter.poll_us", ANY, limiter.poll_us, 1, 1000000, 1000, "microseconds",
        "Time between looks when polling."),

    ENUM("algorithm.name", SAME, algorithm.name, rm_algorithm_names, RM_ALGORITHM_DQN,
         "Learning from replay: `dqn` (Mnih 2015; double: Hasselt 2016), `qr-dqn` (Dabney 2018a), "
         "`iqn` (Dabney 2018b), `r2d2` (Kapturowski 2019), `sac` (discrete: Christodoulou 2019). "
         "From rollouts: `ppo` (Schulman 2017), `appo` (PPO's clipping over V-trace), `vtrace` "
         "(Espeholt 2018)."),
    ENUM("algorithm.form", SAME, algorithm.form, rm_form_names, RM_FORM_PAPER,
         "`paper`: as published. `sorrel-seq`, `sorrel-mp`: IQN with the peculiarities of the "
         "treasurehunt programs of Sorrel, for comparison with them."),
    BOOL("algorithm.double_q", SAME, algorithm.double_q, 1,
         "The online network chooses the next action, the target network values it."),
    U32("algorithm.quantiles", SAME, algorithm.quantiles, 1, 1024, 32, "quantiles",
        "QR-DQN: fixed quantiles per action. IQN: draws N for the online network per update."),
    U32("algorithm.target_quantiles", SAME, algorithm.target_quantiles, 1, 1024, 32, "quantiles",
        "IQN: draws N' for the target network per update."),
    ABOVE("algorithm.kappa", SAME, algorithm.kappa, 0, 1e6, 1, "", RM_COLD,
          "Where the Huber loss turns from quadratic to linear."),
    ENUM(
        "algorithm.target.update", SAME, algorithm.target.update, rm_target_update_names,
        RM_TARGET_SOFT,
        "`soft`: the target network moves by `algorithm.target.tau` after every update. `hard`: it "
        "is copied every `algorithm.target.interval` updates."),
    ABOVE("algorithm.target.tau", ANY, algorithm.target.tau, 0, 1, 0.005, "per update",
          RM_HOT_TARGET_TAU, "Soft update: the fraction moved."),
    U64("algorithm.target.interval", SAME, algorithm.target.interval, 1, 1e12, 1000, "updates",
        "Hard update: updates between copies. The form `sorrel-seq` copies that often besides "
        "moving softly, as the original does (every 200)."),
    F64("algorithm.gae_lambda", SAME, algorithm.gae_lambda, 0, 1, 0.95, "",
        "ppo: lambda of generalised advantage estimation (Schulman 2016). appo, vtrace: lambda of "
        "V-trace."),
    ABOVE("algorithm.clip", SAME, algorithm.clip, 0, 10, 0.2, "", RM_COLD,
          "ppo, appo: how far the probability ratio may go from 1 (Schulman 2017, eq. 7)."),
    F64("algorithm.value_clip", SAME, algorithm.value_clip, 0, 1e9, 0, "",
        "ppo, appo, vtrace: how far the value may go from that of the rollout, in units of the "
        "value "
        "head's output; 0: no clipping."),
    HOT("algorithm.entropy_coefficient", ANY, algorithm.entropy_coefficient, RM_KEY_F64, 0, 100, 0,
        "", RM_HOT_ENTROPY_COEFFICIENT, "ppo, appo, vtrace: weight of the policy's entropy."),
    F64("algorithm.value_coefficient", SAME, algorithm.value_coefficient, 0, 100, 0.5, "",
        "ppo, appo, vtrace: weight of the value loss, which has a factor 1/2 of its own."),
    U32("algorithm.epochs", SAME, algorithm.epochs, 1, 1000, 4, "passes",
        "ppo, appo: passes over a rollout."),
    U32("algorithm.minibatches", SAME, algorithm.minibatches, 1, 65536, 4, "parts",
        "ppo, appo, vtrace: parts that a rollout is cut into; one optimizer step each. Recurrent "
        "networks: each has whole lanes, so there are no more parts than those."),
    ENUM(
        "algorithm.normalize_advantages", SAME, algorithm.normalize_advantages, rm_normalise_names,
        RM_NORMALISE_MINIBATCH,
        "ppo, appo, vtrace: to mean 0 and deviation 1 over each minibatch, over the whole rollout, "
        "or not."),
    F64("algorithm.target_kl", SAME, algorithm.target_kl, 0, 1e9, 0, "nats",
        "ppo, appo: the rest of a rollout's passes is skipped once a pass's estimated divergence "
        "from the policy that it began with is larger (ppo: the one that acted); 0: never."),
    ABOVE("algorithm.rho_max", SAME, algorithm.rho_max, 0, 1e9, 1, "", RM_COLD,
          "V-trace: bound of rho, the weight of an error."),
    ABOVE("algorithm.c_max", SAME, algorithm.c_max, 0, 1e9, 1, "", RM_COLD,
          "V-trace: bound of c, the weight with which errors are carried back."),
    BOOL("algorithm.normalize_rewards", SAME, algorithm.normalize_rewards, 0,
         "ppo, appo, vtrace: rewards are divided by the running deviation of the discounted "
         "return."),
    F64("algorithm.reward_clip", SAME, algorithm.reward_clip, 0, 1e9, 10, "",
        "Bound of normalised rewards; 0: none."),
    ENUM("algorithm.value_head", SAME, algorithm.value_head, rm_value_head_names, RM_VALUE_PLAIN,
         "ppo, appo, vtrace: `plain`, or `popart`: targets normalised, outputs preserved (van "
         "Hasselt 2016, Hessel 2019)."),
    ABOVE("algorithm.popart_beta", SAME, algorithm.popart_beta, 0, 1, 0.01, "per update", RM_COLD,
          "PopArt: step of the running moments; the k-th takes 1/k as long as that is larger."),
    ENUM("algorithm.popart_deviation", SAME, algorithm.popart_deviation, rm_popart_deviation_names,
         RM_POPART_MOMENTS,
         "PopArt: `moments`, the deviation follows from the running first and second moments of "
         "the returns, as published; `averaged`, its square is the running mean of the batches' "
         "variances, as in the original of the Goodhart grid."),
    ABOVE("algorithm.temperature", SAME, algorithm.temperature, 0, 1e6, 1, "", RM_COLD,
          "sac: weight of the entropy; where it starts if it is tuned."),
    BOOL("algorithm.tune_temperature", SAME, algorithm.tune_temperature, 1,
         "sac: the temperature follows the target entropy."),
    F64("algorithm.target_entropy_ratio", SAME, algorithm.target_entropy_ratio, 0, 1, 0.98, "",
        "sac: target entropy, as a fraction of that of the uniform policy."),
    BOOL("algorithm.value_rescale", SAME, algorithm.value_rescale, 1,
         "r2d2: values are learned as h(x) = sgn(x)(sqrt(abs(x) + 1) - 1) + 0.001 x."),

    COMPOUND("network.layers", SAME, RM_KEY_LAYERS, network.layer_count, network.layers,
             "[{\"type\": \"linear\", \"units\": 128}, {\"type\": \"relu\"},"
             " {\"type\": \"linear\", \"units\": 128}, {\"type\": \"relu\"}]",
             "Layers between the observation and the head, in order, at most 64. The head is added "
             "by itself: a value or a logit per action, over all tokens side by side where there "
             "are some."),
    BOOL("network.head.dueling", SAME, network.dueling, 0,
         "Dueling head (Wang 2016): Q = V + A - mean A."),
    BOOL("network.head.noisy", SAME, network.noisy_head, 0, "The layers of the head are noisy."),
    ENUM("network.noise", SAME, network.noise, rm_noise_kind_names, RM_NOISE_FACTORISED,
         "Of all noisy layers (Fortunato 2018): `factorised` or `independent` Gaussian noise."),
    F64("network.sigma0", SAME, network.sigma0, 0, 10, 0.5, "",
        "Initial sigma of noisy layers: as it is for independent noise; divided by sqrt(inputs of "
        "the layer) for factorised noise. Their weights begin uniform within sqrt(3/inputs), or "
        "1/sqrt(inputs) for factorised noise, whatever `network.init` says (Fortunato 2018)."),
    ENUM("network.init", SAME, network.init, rm_init_names, RM_INIT_DEFAULT,
         "Initial weights: `default`, uniform within 1/sqrt(inputs), biases too; the others have "
         "biases 0: `orthogonal` (Saxe 2014), `xavier_uniform`, `xavier_normal` (Glorot 2010), "
         "`kaiming_uniform`, `kaiming_normal` (He 2015)."),
    ABOVE("network.gain", SAME, network.gain, 0, 100, 1.4142135623730951, "", RM_COLD,
          "Gain of initial weights of layers, but for `default`."),
    ABOVE("network.policy_gain", SAME, network.policy_gain, 0, 100, 0.01, "", RM_COLD,
          "The same of the policy's head."),
    ABOVE("network.value_gain", SAME, network.value_gain, 0, 100, 1, "", RM_COLD,
          "The same of the value's head."),
    ENUM("network.trunk", SAME, network.trunk, rm_trunk_names, RM_TRUNK_SEPARATE,
         "ppo, appo, vtrace: whether policy and value share the layers or have their own."),
    COMPOUND("network.value_layers", SAME, RM_KEY_LAYERS, network.value_layer_count,
             network.value_layers, "[]",
             "With a separate trunk: the value's layers; empty: the same as `network.layers`, with "
             "weights of their own."),
    BOOL("network.normalize_observations", SAME, network.normalize_observations, 0,
         "Inputs are normalised by their running mean and deviation, which are part of the policy "
         "and the same for actors and learner."),
    ABOVE("network.observation_clip", SAME, network.observation_clip, 0, 1e9, 10, "", RM_COLD,
          "Bound of normalised inputs."),

    ENUM("optimizer.name", SAME, optimizer.name, rm_optimizer_names, RM_OPTIMIZER_ADAM,
         "`adam` (Kingma 2015), `adamw` (Loshchilov 2019), `rmsprop` (Hinton 2012), `muon` (Jordan "
         "2024: matrices by orthogonalised momentum, the rest by AdamW)."),
    {.path = "optimizer.learning_rate",
     .on_resume = RM_ON_RESUME_ANY,
     .type = RM_KEY_F64,
     AT(optimizer.learning_rate),
     .low = 0,
     .high = 1,
     .low_open = true,
     .fallback = 2.5e-4,
     .unit = "",
     .hot = RM_HOT_LEARNING_RATE,
     .doc = "Step size; where schedules start from."},
    F64("optimizer.beta1", SAME, optimizer.beta1, 0, 0.999999, 0.9, "",
        "Decay of the mean of gradients."),
    F64("optimizer.beta2", SAME, optimizer.beta2, 0, 0.99999999, 0.999, "",
        "Decay of the mean of squared gradients."),
    ABOVE("optimizer.epsilon", SAME, optimizer.epsilon, 0, 1, 1e-8, "", RM_COLD,
          "Added to the denominator."),
    HOT("optimizer.grad_clip", ANY, optimizer.grad_clip, RM_KEY_F64, 0, 1e9, 10, "",
        RM_HOT_GRAD_CLIP, "Largest norm of the whole gradient; 0: no clipping."),
    BOOL("optimizer.clip_apart", SAME, optimizer.clip_apart, 0,
         "ppo, appo, vtrace: the state value's own parameters (its head; with a separate trunk all "
         "of it) and the rest are clipped to `optimizer.grad_clip` each, by norms of their own."),
    F64("optimizer.momentum", SAME, optimizer.momentum, 0, 0.999999, 0, "",
        "rmsprop, muon: momentum. Muon's own figure is 0.95."),
    F64("optimizer.weight_decay", SAME, optimizer.weight_decay, 0, 1, 0, "",
        "adamw, muon: decoupled decay of weight matrices."),
    ENUM("optimizer.schedule.kind", SAME, optimizer.schedule.kind, rm_schedule_names,
         RM_SCHEDULE_CONSTANT,
         "How the learning rate falls after the warm-up: not, linearly, or as half a cosine."),
    U64("optimizer.schedule.warmup", SAME, optimizer.schedule.warmup, 0, 1e12, 0, "updates",
        "Updates over which the rate rises linearly to the full one."),
    U64("optimizer.schedule.span", SAME, optimizer.schedule.span, 0, 1e15, 0, "updates",
        "Updates over which it falls; 0: over the run, by agent steps of `run.steps`."),
    F64("optimizer.schedule.end", SAME, optimizer.schedule.end, 0, 1, 0, "",
        "Fraction of the rate at the end."),

    HOT("publish.interval", ANY, publish.interval, RM_KEY_U32, 1, 1000000000, 10, "updates",
        RM_HOT_PUBLISH_INTERVAL,
        "Updates between publications of weights to the actors. ppo, appo, vtrace: not used, they "
        "publish after every rollout."),
    HOT("publish.min_change", ANY, publish.min_change, RM_KEY_F64, 0, 1, 0, "",
        RM_HOT_PUBLISH_MIN_CHANGE,
        "A publication is skipped while the relative change of the weights since the last one is "
        "smaller; 0: never skipped. Not used by ppo, appo, vtrace."),

    U32("learner.threads", ANY, learner.threads, 1, 256, 1, "threads",
        "Threads per learner. Results do not depend on it."),
    {.path = "learner.isa",
     .type = RM_KEY_CHOICE,
     AT(learner.isa),
     .names = rm_isa_names,
     .fallback_text = "auto",
     .unit = "",
     .hot = RM_COLD,
     .doc = "Instruction set of the kernels: `auto` takes the best of this machine."},
    TEXT("learner.device", ANY, learner.device, RM_KEY_TEXT, 3, RM_TEXT_MAX - 1, "auto",
         "Where policies are trained: `cpu`, `cuda:N` (the N-th GPU, from 0), a GPU by its UUID "
         "(`GPU-...`, or enough of it), or `auto`: a GPU where there is one, the algorithm can use "
         "it and an update is large enough to be worth it, else the CPU; the log says which and "
         "why. With several GPUs `auto` gives policies one each in turn."),
    U32("learner.devices", ANY, learner.devices, 1, 16, 1, "GPUs",
        "GPUs on which one process trains each policy together, from `cuda:N` on or as `auto` "
        "finds them: each learns from its part of every batch, and gradients are put together by "
        "NCCL. An update is that of one GPU, but for rounding; with `actor.device` \"cuda\" each "
        "steps "
        "its part of the worlds and learns from that."),
    ENUM("learner.compute", SAME, learner.compute, rm_compute_names, RM_COMPUTE_FP32,
         "How products are computed, in learning and in acting. Parameters, optimizer and sums are "
         "float32 always. On the CPU `bf16` needs AVX512_BF16, and `fp32` takes the place of what "
         "it has not got; the log says which. Layers of up to 16 inputs or outputs are `fp32` "
         "there."),
    ENUM("learner.feed", ANY, learner.feed, rm_feed_names, RM_FEED_AUTO,
         "GPUs: how batches of replay get there. `staged`: made on the host, one copy each. "
         "`resident`: every row crosses once, into a replay on the device, and batches are drawn "
         "and made there. `registered`: the device takes rows out of the shared ring. `auto` "
         "measures at start; the log says what it chose. Results do not depend on it, but with "
         "priorities: then `resident` draws know of errors at once, the others up to three updates "
         "later, and `auto` is `resident` where it can be had."),
    ENUM("learner.processes", ANY, learner.processes, rm_learner_processes_names, RM_LEARNERS_EACH,
         "Whether every policy's learner has a process of its own, or `one` has them all, in turn "
         "in one thread. On a GPU each keeps streams of its own, so small updates of several "
         "policies run side by side in one context; when that process dies, all of them begin "
         "anew."),
    U32("learner.device_faults", ANY, learner.device_faults, 1, 1000, 3, "faults",
        "Errors of one GPU, each of which cost a learner its process, after which that GPU is left "
        "alone for the rest of the run: `auto` goes on elsewhere, a GPU asked for by name fails "
        "the run."),

    HOT("evaluation.interval", ANY, evaluation.interval, RM_KEY_U64, 0, 1e15, 0, "steps",
        RM_HOT_EVALUATION_INTERVAL,
        "Agent steps between evaluations while training; 0: only at the end."),
    U32("evaluation.episodes", ANY, evaluation.episodes, 1, 1000000, 20, "episodes",
        "Greedy episodes per evaluation while training."),
    U32("evaluation.final_episodes", ANY, evaluation.final_episodes, 0, 1000000, 100, "episodes",
        "Greedy episodes at the end of the run; 0: none."),
    U32("evaluation.worlds", ANY, evaluation.worlds, 1, 65536, 10, "worlds",
        "Worlds the evaluator runs side by side."),
    U32("evaluation.quantiles", ANY, evaluation.quantiles, 1, 1024, 32, "quantiles",
        "IQN: quantile draws averaged per evaluated decision."),
    COMPOUND("evaluation.options", ANY, RM_KEY_OPTIONS, evaluation.options, evaluation.options,
             "{}",
             "Options of the worlds that evaluations play, in place of those of the same name in "
             "`world.options`; what agents see and do must stay the same."),
    ENUM("evaluation.answer", ANY, evaluation.answer, rm_answer_names, RM_ANSWER_GREEDY,
         "ppo, appo, vtrace, sac: evaluated with the likeliest action, or with draws."),

    F64("supervisor.heartbeat_s", ANY, supervisor.heartbeat_s, 0.1, 86400, 30, "seconds",
        "A busy worker silent for longer is killed and started anew."),
    F64("supervisor.respawn_floor_s", ANY, supervisor.respawn_floor_s, 0.01, 3600, 0.25, "seconds",
        "Least time between two starts of a worker; doubled at every death in a row."),
    F64("supervisor.backoff_max_s", ANY, supervisor.backoff_max_s, 0.01, 86400, 30, "seconds",
        "Longest wait before a worker is started anew."),
    U32("supervisor.deaths_max", ANY, supervisor.deaths_max, 1, 100000, 10, "deaths",
        "Deaths of one worker within `supervisor.deaths_window_s` before the run fails."),
    F64("supervisor.deaths_window_s", ANY, supervisor.deaths_window_s, 0.1, 604800, 120, "seconds",
        "Over which deaths are counted."),
    F64("supervisor.stop_grace_s", ANY, supervisor.stop_grace_s, 0.1, 3600, 10, "seconds",
        "When the run is stopped: how long its last checkpoint may take, and after that workers, "
        "from "
        "SIGTERM to SIGKILL."),

    TEXT("control.socket", ANY, control.socket, RM_KEY_TEXT, 0, 107, "",
         "Path of the control socket; empty: the default place."),

    HOT("metrics.interval_s", ANY, metrics.interval_s, RM_KEY_F64, 0.01, 86400, 1, "seconds",
        RM_HOT_METRICS_INTERVAL,
        "Time between rows of metrics; doubled whenever the run has taken 10000 times as long, so "
        "that "
        "files of a run of months stay small."),
    U64("metrics.interval_steps", ANY, metrics.interval_steps, 0, 1e15, 0, "steps",
        "Steps per agent between further rows, so that a run of less than a second has a curve; "
        "at most a hundred rows a second, and in long runs fewer, as with `metrics.interval_s`. 0: "
        "a "
        "200th of `run.steps`, or where there is no end no row by steps. Every evaluation adds a "
        "row "
        "too."),
    BOOL("metrics.csv", ANY, metrics.csv, 1, "Writes metrics as CSV into the run directory."),
    ENUM(
        "metrics.tensorboard", ANY, metrics.tensorboard, rm_tensorboard_tags_names,
        RM_TENSORBOARD_MAIN,
        "What is written for TensorBoard, into `tensorboard/` beside the run directories: nothing, "
        "the main numbers (returns, lengths of episodes, evaluations, losses, rates, policy lag), "
        "or every column of metrics.csv."),

    HOT("checkpoint.interval_s", ANY, checkpoint.interval_s, RM_KEY_F64, 0, 1e7, 600, "seconds",
        RM_HOT_CHECKPOINT_INTERVAL,
        "Time between checkpoints; 0: only when asked for, and before the run is stopped."),
    BOOL("checkpoint.at_end", ANY, checkpoint.at_end, 1,
         "Makes one when the budget is spent, before the final evaluation: from it the run goes on "
         "when "
         "`run.steps` is raised."),
    U32("checkpoint.keep", ANY, checkpoint.keep, 1, 1000, 3, "checkpoints",
        "How many of the newest are kept."),
    BOOL("checkpoint.keep_best", ANY, checkpoint.keep_best, 1,
         "Keeps the one of the highest evaluation too, and writes that evaluation's policies into "
         "`policies/best/`."),

    ENUM("debug.check_finite", ANY, debug.check_finite, rm_check_finite_names, RM_CHECK_FINITE_OFF,
         "Whether everything an update makes is looked through for non-finite numbers, to name the "
         "first: never, every `debug.check_every` updates, or always. The loss and the norm of the "
         "gradient are checked in any case."),
    U32("debug.check_every", ANY, debug.check_every, 1, 1000000000, 1000, "updates",
        "Updates between two such checks when they are `sampled`."),
    U32("debug.finite_patience", ANY, debug.finite_patience, 1, 1000000, 10, "updates",
        "Updates with a non-finite loss or gradient in a row before the learner goes back to its "
        "last good weights; each is skipped and counted."),
    U32("debug.rollbacks_max", ANY, debug.rollbacks_max, 0, 1000, 3, "roll-backs",
        "Roll-backs before the learner gives up."),
};
const size_t rm_key_count = sizeof(rm_keys) / sizeof(rm_keys[0]);
