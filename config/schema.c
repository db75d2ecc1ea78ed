#include "config/schema.h"
#include "shm/station.h"

/* These macros expand to initialisers, in which parentheses around a string or a type are
 * errors. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define SEQUENCES          "R2D2, and clone with recurrent layers: "
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
         "Name of the experiment: part of the run directory's path, of the control socket's path "
         "and of log entries."),
    U64("seed", SAME, seed, 0, SAFE_INTEGER, 1, "",
        "Seed of every random stream: worlds, exploration, initial weights, sampling, noise."),
    ENUM("mode", SAME, mode, rm_mode_names, RM_MODE_FREE,
         "`free`: every worker in its own process, waiting only for data or the limiter. "
         "`lockstep`: "
         "processes with one barrier per round, bit-identical for a seed. `sequential`: all duties "
         "in turn in one process, equal to lockstep bit for bit."),

    U64("run.steps", MORE, run.steps, 0, 1e15, 50000, "steps",
        "Steps each agent takes, over all worlds together. 0: the run has no end; with "
        "`policy.from` it makes no steps, and only plays its final evaluation of these "
        "policies."),
    TEXT("run.directory", ANY, run.directory, RM_KEY_TEXT, 1, RM_PATH_TEXT_MAX - 1, "runs",
         "Folder in which run directories are created. Relative paths start at the working "
         "directory."),
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
     .doc = "Name of the world: a built-in one (`ringctl envs` lists them), or a name for the "
            "world of `world.library`, `world.python` or `world.prolog`; without it, the last two "
            "give the world a name."},
    TEXT("world.library", SAME, world.library, RM_KEY_TEXT, 0, RM_PATH_TEXT_MAX - 1, "",
         "Path of a shared object that exports the world; empty: built in. Relative paths start at "
         "the "
         "working directory."),
    TEXT(
        "world.python", SAME, world.python, RM_KEY_TEXT, 0, RM_PATH_TEXT_MAX - 1, "",
        "A world in Python: `gymnasium:ID`, or `module:function` that returns an Env, a "
        "VectorEnv, a ParallelEnv or an AECEnv; empty: none. Modules are looked for in the working "
        "directory and in `world.directory`."),
    TEXT("world.prolog", SAME, world.prolog, RM_KEY_TEXT, 0, RM_PATH_TEXT_MAX - 1, "",
         "A world in Prolog: path of its file, a module that exports `env_spec/1`, `reset/2`, "
         "`actions/2`, `step/4` and `observation/2`; empty: none. A relative path starts at "
         "`world.directory`. Needs SWI-Prolog."),
    TEXT("world.interpreter", ANY, world.interpreter, RM_KEY_TEXT, 0, RM_PATH_TEXT_MAX - 1, "",
         "Path of the Python interpreter that `world.python` needs, with NumPy. Empty: that of "
         "`VIRTUAL_ENV`, else `python3` on the PATH."),
    TEXT("world.directory", ANY, world.directory, RM_KEY_TEXT, 0, RM_PATH_TEXT_MAX - 1, "",
         "Folder at which relative paths in the world's options and in `world.prolog` start; "
         "empty: the folder of the experiment's file."),
    COMPOUND("world.options", SAME, RM_KEY_OPTIONS, world.options, world.options, "{}",
             "Options of the world, by name: numbers, booleans, texts, paths and lists of these. "
             "The world has a table of its options (`ringctl envs`) and checks them."),

    COMPOUND(
        "curriculum", SAME, RM_KEY_STAGES, curriculum, curriculum, "[]",
        "Stages of the run, in order: `[{\"options\": {\"size\": 4}, \"until\": {\"figure\": "
        "\"success\", \"over\": 50, \"at_least\": 0.8}}, {\"options\": {\"size\": 8}}]`. While "
        "a stage lasts, worlds have its options in place of those of the same name in "
        "`world.options`; what agents see and do must stay the same. `until` names a figure: "
        "`return` (of an agent's episode), `length`, one of the world, or `FIGURE.WORD` for "
        "the share of a word; `agent`: whose, by default the first's. When its mean over the "
        "latest episodes of the stage, at least `over` of them (100), is `at_least` or "
        "`at_most` the given number, the next stage begins: episodes in progress are cut, "
        "with bootstrapping. A stage never goes back, unless it has `back`: the same, but "
        "with `below` or `above`; then the stage before it begins again. Evaluations do not "
        "follow the stages: they play `world.options` with `evaluation.options`. Not for "
        "worlds whose agents act in turn."),

    U32("actor.count", SAME, actor.count, 1, 128, 1, "processes", "Actor processes."),
    U32("actor.worlds", SAME, actor.worlds, 1, 65536, 8, "worlds",
        "Worlds of all actors together, split over the actors as evenly as possible. An actor "
        "steps its worlds together, with one batched forward pass."),
    U32("actor.quantiles", SAME, actor.quantiles, 1, 1024, 32, "quantiles",
        "IQN: quantile draws averaged per acting decision."),
    U64("actor.random_steps", SAME, actor.random_steps, 0, 1e15, 0, "steps",
        "sac in worlds of real actions: steps of each agent, over all worlds together, with "
        "uniformly "
        "random actions, before those of the policy."),
    U32("actor.random_hold", SAME, actor.random_hold, 1, 1000000, 1, "vector steps",
        "Vector steps for which each of these random actions is repeated."),
    BOOL("actor.noise", SAME, actor.noise, 0,
         "Networks with noisy layers: actors explore by the layers' noise (Fortunato 2018), drawn "
         "for every vector step, in addition to epsilon. If false, actors use the means of the "
         "weights, as evaluations do."),
    ENUM("actor.device", SAME, actor.device, rm_actor_device_names, RM_ACTOR_CPU,
         "Where worlds are stepped. `cpu`: by actor processes. `cuda`: on the learner's GPU, which "
         "also acts and learns, so that only figures are copied; there are no actor processes. "
         "Only for ppo, in worlds that have a GPU form: goodhart and cartpole."),
    BOOL("actor.pin", ANY, actor.pin, 0, "Pins each actor process to a core."),
    ENUM("actor.sandbox", ANY, actor.sandbox, rm_sandbox_names, RM_SANDBOX_AUTO,
         "Confinement of processes that step worlds. `auto`: worlds of `world.library` and "
         "`world.prolog` can read "
         "files, but can write only files of the run and cannot open sockets or start processes, "
         "as far as the kernel supports it. `on`: the same for all worlds; if the kernel does not "
         "support it, the run fails. `off`: no confinement."),
    U64("actor.process_limit", ANY, actor.process_limit, 0, 4194304, 64, "processes",
        "Most processes and threads of each actor and of the evaluator, with a world of "
        "`world.library` and on hosts where they have control groups of their own; 0: no limit."),
    U64("actor.memory_limit", ANY, actor.memory_limit, 0, 1e15, 0, "bytes",
        "Most private memory of each actor and of the evaluator, including stacks of threads, "
        "without shared rings; in sequential mode of the one process; 0: no limit. In a control "
        "group of its own, an actor's memory of all kinds is limited to 64 MiB more. "
        "Each Python worker has the same limit."),
    U32("actor.python_workers", SAME, actor.python_workers, 1, 256, 1, "processes",
        "Python processes of each actor, and of the evaluator, over which its Python worlds are "
        "dealt."),
    BOOL("actor.network", ANY, actor.network, 0,
         "Whether confined Python worlds may open sockets."),
    F64("actor.step_deadline_s", ANY, actor.step_deadline_s, 0.1, 86400, 60, "s",
        "Longest time in which a Python worker may step its worlds or begin an episode; a "
        "worker that takes longer is replaced. Creating the worlds may take ten times as long."),
    U32("actor.recycle_mb", ANY, actor.recycle_mb, 0, 1 << 24, 0, "MiB",
        "A Python worker with more resident memory than this at the end of an episode is "
        "replaced: its other episodes end there and do not bootstrap. 0: never."),

    F64("epsilon.start", SAME, epsilon.start, 0, 1, 1.0, "",
        "Probability of a uniformly random action at the start."),
    HOT("epsilon.end", ANY, epsilon.end, RM_KEY_F64, 0, 1, 0.05, "", RM_HOT_EPSILON_END,
        "Least probability of a random action, at the end of the decay."),
    ENUM("epsilon.decay", SAME, epsilon.decay, rm_decay_names, RM_DECAY_LINEAR,
         "`linear`: from start to end over `epsilon.span` units. `exponential`: times "
         "`epsilon.factor` each unit, down to the end."),
    ENUM("epsilon.unit", SAME, epsilon.unit, rm_decay_unit_names, RM_DECAY_STEPS,
         "Unit of the decay: steps of an agent over all worlds, or episodes over all worlds."),
    ABOVE("epsilon.factor", SAME, epsilon.factor, 0, 1, 0.999, "per unit", RM_COLD,
          "Exponential decay: the factor per unit."),
    U64("epsilon.span", SAME, epsilon.span, 1, 1e15, 10000, "units",
        "Linear decay: units from start to end."),

    COMPOUND("policy.map", SAME, RM_KEY_MAP, policy.map, policy.list, "\"independent\"",
             "The policy of each agent. `\"independent\"`: one policy each. `\"shared\"`: one for "
             "all. A list such as `[0, 1, 1]`: agent i has policy list[i]; policies are numbered "
             "from 0 without gaps."),
    COMPOUND("policy.frozen", SAME, RM_KEY_FROZEN, policy.frozen_count, policy.frozen, "[]",
             "Opponents for self-play: `[{\"policy\": 1, \"of\": 0, \"every\": 1000, \"keep\": "
             "8}]` does not train policy 1; every 1000 updates of policy 0, policy 1 takes one of "
             "the last 8 snapshots of policy 0."),
    COMPOUND(
        "policy.from", ANY, RM_KEY_FROM, policy.from, policy.from, "\"\"",
        "Policy files (`policies/NAME.safetensors` of a run) whose weights a new run starts "
        "from, instead of drawn ones: one for all policies, or `{\"NAME\": FILE}` for those of "
        "these names. Names and shapes of all tensors must be the network's. Target networks "
        "are copies; optimizer, counters, the critics of sac, and PopArt's mean and "
        "deviation start from scratch. An opponent of `policy.frozen` starts from the file of its "
        "source policy, unless it has one of its own. A resumed run continues from its "
        "checkpoint and reads no file. Relative paths start at the experiment's file."),

    U64("ring.capacity", SAME, ring.capacity, 16, 1073741824, 50000, "transitions",
        "Transitions kept per policy, over all actors; rounded up to whole rows and powers of "
        "two."),

    U32("sample.batch", SAME, sample.batch, 1, 65536, 64, "transitions",
        "Transitions per update; sequences where a recurrent network learns from them. distill: "
        "pairs of a history and a region, each with as many "
        "samples as a region has steps."),
    U32("sample.n_step", SAME, sample.n_step, 1, 64, 1, "steps",
        "Rewards summed before bootstrapping; fewer at the end of an episode."),
    F64("sample.gamma", SAME, sample.gamma, 0, 1, 0.99, "per step", "Discount."),
    U32("sample.frame_stack", SAME, sample.frame_stack, 1, 64, 1, "frames",
        "Observations in one input of the network, oldest first, zeros before an episode's first; "
        "1: only the current one."),
    U64("sample.min_fill", SAME, sample.min_fill, 1, 1073741824, 1000, "transitions",
        "Transitions in the ring before the first update."),
    U32("sample.sequence", SAME, sample.sequence, 1, 4096, 80, "steps",
        SEQUENCES "trained steps of a sequence."),
    U32("sample.burn_in", SAME, sample.burn_in, 0, 4096, 40, "steps",
        SEQUENCES "steps before the trained ones that only warm up the recurrent state: from the "
                  "stored one, or with a recording, which has none, from zeros."),
    U32("sample.period", SAME, sample.period, 1, 4096, 40, "steps",
        SEQUENCES "steps between the starts of two sequences of a lane."),
    TEXT("sample.from", SAME, sample.from, RM_KEY_TEXT, 0, RM_PATH_TEXT_MAX - 1, "",
         "Folder of a recording (`record.directory`) to learn from, or a pattern such as "
         "`../runs/darkroom-sweep.*/latest/recording` for several, in the order of their names: "
         "all of their rows are the replay, and there are no actors. A step of the run is then an "
         "update: `run.steps`, `evaluation.interval` and all else in steps count updates. For dqn, "
         "qr-dqn, iqn, sac, clone and distill, "
         "of the same world, with the same observations and actions. Empty: none. A relative path "
         "starts at the experiment's file."),

    U32("sample.region", SAME, sample.region, 2, 65535, 80, "steps",
        "distill: steps of a region. Each history is divided into regions; the samples of a "
        "region begin with the whole previous region. Steps after the last whole region are "
        "left out."),
    U64("sample.first_steps", SAME, sample.first_steps, 0, 1e15, 0, "steps",
        "distill: how many steps of each lane's history are used, the first ones; 0: all."),
    COMPOUND("sample.held_out", SAME, RM_KEY_OPTIONS, sample.held_out, sample.held_out, "{}",
             "distill: keys with a list of values each, as in `sweep`: `{\"world.options.goal\": "
             "[[4, 2], [5, 6]]}`. Nothing is learned from a recording whose experiment has one of "
             "the values of every key; the loss over these recordings is measured instead."),
    U32("sample.held_out_lanes", SAME, sample.held_out_lanes, 0, 65536, 0, "lanes",
        "distill: lanes of each recording held out over which the loss is measured, the first "
        "ones; 0: all."),

    ENUM("priority.kind", SAME, priority.kind, rm_priority_names, RM_PRIORITY_UNIFORM,
         "How transitions are drawn from replay: `uniform`, or `proportional` to their priority "
         "(Schaul 2016)."),
    F64("priority.alpha", SAME, priority.alpha, 0, 1, 0.6, "",
        "Exponent of the priority: 0 is uniform."),
    ABOVE("priority.epsilon", SAME, priority.epsilon, 0, 1, 1e-6, "", RM_COLD,
          "Added to the absolute error, so that every transition may be drawn."),
    F64("priority.beta_start", SAME, priority.beta_start, 0, 1, 0.4, "",
        "Exponent of the importance weights at the first update."),
    F64("priority.beta_end", SAME, priority.beta_end, 0, 1, 1, "",
        "Exponent of the importance weights at the end."),
    U64("priority.beta_span", SAME, priority.beta_span, 0, 1e15, 0, "updates",
        "Updates from the first exponent to the last; 0: over the whole run."),
    F64("priority.max_share", SAME, priority.max_share, 0, 1, 0.9, "",
        "R2D2: a sequence's priority is this share of its largest error plus the rest of its mean "
        "error."),

    U32("rollout.steps", SAME, rollout.steps, 1, 65536, 128, "vector steps",
        "ppo, appo, vtrace: vector steps of a rollout, which has that many rows of every world."),
    U32("rollout.max_policy_lag", SAME, rollout.max_policy_lag, 0, 1, 0, "rollouts",
        "ppo: with 0 actors wait for the new weights after every rollout; with 1 they act one "
        "rollout ahead while the learner trains."),
    U64("rollout.staleness_max", SAME, rollout.staleness_max, 0, 1e12, 0, "updates",
        "appo, vtrace: a rollout whose weights are more updates old than this is dropped and "
        "counted; 0: no rollout is dropped."),
    U32("rollout.queue", SAME, rollout.queue, 2, 64, 2, "rollouts",
        "appo, vtrace: rollouts that an actor may be ahead of the learner before it waits."),

    HOT("limiter.updates_per_step", ANY, limiter.updates_per_step, RM_KEY_F64, 0, 1000, 0.25,
        "updates", RM_HOT_UPDATES_PER_STEP,
        "Optimizer steps per agent step of the policy. The side that is ahead sleeps. 0: free "
        "running, as many updates as the learner can make."),
    HOT("limiter.slack_updates", ANY, limiter.slack_updates, RM_KEY_F64, 0, 1e9, 8, "updates",
        RM_HOT_SLACK_UPDATES, "How far actors or learner may get ahead before they sleep."),
    ENUM("limiter.wake", ANY, limiter.wake, rm_wake_kind_names, RM_WAKE_EVENT,
         "`event`: an eventfd wakes a sleeping worker. `poll`: the worker checks every "
         "`limiter.poll_us`, as a baseline for comparison."),
    U32("limiter.poll_us", ANY, limiter.poll_us, 1, 1000000, 1000, "microseconds",
        "Time between two checks when polling."),

    ENUM("algorithm.name", SAME, algorithm.name, rm_algorithm_names, RM_ALGORITHM_DQN,
         "Learning from replay: `dqn` (Mnih 2015; double: Hasselt 2016), `qr-dqn` (Dabney 2018a), "
         "`iqn` (Dabney 2018b), `r2d2` (Kapturowski 2019), `sac` (real actions: Haarnoja 2018; "
         "discrete ones: Christodoulou 2019). "
         "From rollouts: `ppo` (Schulman 2017), `appo` (PPO's clipping over V-trace), `vtrace` "
         "(Espeholt 2018). From a recording alone (`sample.from`): `clone`, which does what was "
         "recorded; its "
         "network is that of ppo, which can start from its file (`policy.from`); `distill` "
         "(Laskin 2022), a network that begins with the layer `history` and learns from the "
         "histories of many learners to do what a learner does next "
         "([histories.md](histories.md))."),
    ENUM("algorithm.form", SAME, algorithm.form, rm_form_names, RM_FORM_PAPER,
         "`paper`: as published. `sorrel-seq`, `sorrel-mp`: IQN as in the treasurehunt programs of "
         "Sorrel, for comparison with them."),
    BOOL("algorithm.double_q", SAME, algorithm.double_q, 1,
         "The online network chooses the next action, and the target network computes its value "
         "(double Q-learning)."),
    U32("algorithm.quantiles", SAME, algorithm.quantiles, 1, 1024, 32, "quantiles",
        "QR-DQN: fixed quantiles per action. IQN: draws N for the online network per update."),
    U32("algorithm.target_quantiles", SAME, algorithm.target_quantiles, 1, 1024, 32, "quantiles",
        "IQN: draws N' for the target network per update."),
    ABOVE("algorithm.kappa", SAME, algorithm.kappa, 0, 1e6, 1, "", RM_COLD,
          "Error at which the Huber loss changes from quadratic to linear."),
    F64("algorithm.cql", SAME, algorithm.cql, 0, 1e6, 0, "",
        "dqn, qr-dqn, iqn: weight of the penalty of CQL(H), which lowers the values of actions "
        "that "
        "are not in the data, for learning from a recording: ln of the sum of exp Q(s, a) over "
        "legal actions, less Q(s, a) of the recorded one (Kumar 2020, eq. 4). 0: none."),
    ENUM(
        "algorithm.target.update", SAME, algorithm.target.update, rm_target_update_names,
        RM_TARGET_SOFT,
        "`soft`: the target network moves by `algorithm.target.tau` after every update. `hard`: it "
        "is copied every `algorithm.target.interval` updates."),
    ABOVE("algorithm.target.tau", ANY, algorithm.target.tau, 0, 1, 0.005, "per update",
          RM_HOT_TARGET_TAU, "Soft update: the fraction moved."),
    U64("algorithm.target.interval", SAME, algorithm.target.interval, 1, 1e12, 1000, "updates",
        "Hard update: updates between copies. The form `sorrel-seq` has both soft updates and "
        "copies at this interval, as the original does (every 200)."),
    F64("algorithm.gae_lambda", SAME, algorithm.gae_lambda, 0, 1, 0.95, "",
        "ppo: lambda of generalised advantage estimation (Schulman 2016). appo, vtrace: lambda of "
        "V-trace."),
    ABOVE("algorithm.clip", SAME, algorithm.clip, 0, 10, 0.2, "", RM_COLD,
          "ppo, appo: how far the probability ratio may go from 1 (Schulman 2017, eq. 7)."),
    F64("algorithm.value_clip", SAME, algorithm.value_clip, 0, 1e9, 0, "",
        "ppo, appo, vtrace: how far the value may go from that of the rollout, in units of the "
        "value "
        "head's output; 0: no clipping."),
    ENUM("algorithm.value_clip_maximum", SAME, algorithm.value_clip_maximum,
         rm_value_clip_maximum_names, RM_MAXIMUM_OF_SAMPLES,
         "ppo, appo, vtrace: the value loss is the larger of two errors, that of the clipped "
         "value and that of the unclipped value. `samples`: the larger one for each sample "
         "(Schulman's implementation). `means`: the larger one of the two means over a "
         "minibatch, as in the original of the Goodhart grid; on the CPU this computes each "
         "minibatch twice."),
    HOT("algorithm.entropy_coefficient", ANY, algorithm.entropy_coefficient, RM_KEY_F64, 0, 100, 0,
        "", RM_HOT_ENTROPY_COEFFICIENT, "ppo, appo, vtrace: weight of the policy's entropy."),
    F64("algorithm.value_coefficient", SAME, algorithm.value_coefficient, 0, 100, 0.5, "",
        "ppo, appo, vtrace: weight of the value loss, which has a factor 1/2 of its own."),
    U32("algorithm.epochs", SAME, algorithm.epochs, 1, 1000, 4, "passes",
        "ppo, appo: passes over a rollout."),
    U32("algorithm.minibatches", SAME, algorithm.minibatches, 1, 65536, 4, "parts",
        "ppo, appo, vtrace: number of parts of a rollout, with one optimizer step each. With "
        "recurrent networks a part has whole lanes, so there are at most as many parts as lanes."),
    ENUM("algorithm.normalize_advantages", SAME, algorithm.normalize_advantages, rm_normalise_names,
         RM_NORMALISE_MINIBATCH,
         "ppo, appo, vtrace: advantages are normalised to mean 0 and deviation 1 over each "
         "minibatch, over the whole rollout, or not."),
    F64("algorithm.target_kl", SAME, algorithm.target_kl, 0, 1e9, 0, "nats",
        "ppo, appo: the remaining passes over a rollout are skipped after a pass with a larger "
        "estimated divergence from the policy at the rollout's first pass (ppo: from the policy "
        "that acted); 0: never."),
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
          "PopArt: step size of the running moments; update k uses 1/k while that is larger."),
    ENUM("algorithm.popart_deviation", SAME, algorithm.popart_deviation, rm_popart_deviation_names,
         RM_POPART_MOMENTS,
         "PopArt: how the deviation is computed. `moments`: from the running first and second "
         "moments of the returns, as published. `averaged`: its square is the running mean of "
         "the batches' variances, as in the original of the Goodhart grid."),
    ABOVE("algorithm.temperature", SAME, algorithm.temperature, 0, 1e6, 1, "", RM_COLD,
          "sac: weight of the entropy; the initial weight if it is tuned."),
    BOOL("algorithm.tune_temperature", SAME, algorithm.tune_temperature, 1,
         "sac: the temperature follows the target entropy."),
    F64("algorithm.target_entropy_ratio", SAME, algorithm.target_entropy_ratio, 0, 1, 0.98, "",
        "sac with discrete actions: target entropy, as a fraction of that of the uniform policy."),
    F64("algorithm.target_entropy", SAME, algorithm.target_entropy, -100, 100, -1, "nats",
        "sac with real actions: target entropy for each number of an action, whose bounds are -1 "
        "and 1 there."),
    ENUM("algorithm.bound", SAME, algorithm.bound, rm_bound_names, RM_BOUND_AUTO,
         "What keeps real actions within their bounds, which are -1 and 1 for the policy. "
         "`clip`: the world gets the nearest action within the bounds, and the learner trains "
         "on the drawn action. `tanh`: draws go through tanh (Haarnoja 2018). `auto`: `tanh` "
         "for sac, which requires it, else `clip`."),
    F64("algorithm.type_weight", SAME, algorithm.type_weight, 0, 1e6, 0.1, "",
        "distill: weight of the loss of the type, which predicts what follows a step: another "
        "step, or the end of the region."),
    BOOL("algorithm.value_rescale", SAME, algorithm.value_rescale, 1,
         "r2d2: values are learned as h(x) = sgn(x)(sqrt(abs(x) + 1) - 1) + 0.001 x."),

    COMPOUND(
        "network.inputs", SAME, RM_KEY_INPUTS, network.input_count, network.input_layers, "{}",
        "For worlds with several named observations: the layers of each, by its name, for "
        "example `{\"board\": [{\"type\": \"conv2d\", \"units\": 16}], \"scalars\": []}`. Every "
        "observation needs a list; an empty one takes its numbers as they are. An input may also "
        "be "
        "a group, an object with `inputs`, `combine` and `layers` of its own. All lists "
        "together have at most 64 layers. With a separate trunk policy and value share them. "
        "Without this key `network.layers` read the numbers of all observations side by "
        "side."),
    ENUM("network.combine", SAME, network.combine, rm_combine_names, RM_COMBINE_CONCAT,
         "What `network.layers` read of the results of `network.inputs`, in the world's order: "
         "`concat`, all numbers side by side; `tokens`, all tokens one after another, for layers "
         "such as attention: an observation without tokens is one token, and all have the same "
         "width."),
    COMPOUND("network.layers", SAME, RM_KEY_LAYERS, network.layer_count, network.layers,
             "[{\"type\": \"linear\", \"units\": 128}, {\"type\": \"relu\"},"
             " {\"type\": \"linear\", \"units\": 128}, {\"type\": \"relu\"}]",
             "Layers between the observation and the head, in order, at most 64. The head is added "
             "automatically: a value or a logit per action; its input is all tokens side by side "
             "if there are tokens."),
    BOOL("network.head.dueling", SAME, network.dueling, 0,
         "Dueling head (Wang 2016): Q = V + A - mean A."),
    BOOL("network.head.noisy", SAME, network.noisy_head, 0, "The layers of the head are noisy."),
    ENUM("network.head.deviation", SAME, network.deviation, rm_deviation_names, RM_DEVIATION_AUTO,
         "Deviations of real actions, as logarithms within -20 and 2: `parameter`, one for each "
         "number, the same in all states; `state`, made by the head as means are; `auto`: `state` "
         "for sac, else `parameter`."),
    ABOVE("network.head.first_deviation", SAME, network.first_deviation, 0, 7, 1, "", RM_COLD,
          "Deviation at the start, where it is a `parameter`; bounds of actions are -1 and 1 "
          "there."),
    ENUM("network.noise", SAME, network.noise, rm_noise_kind_names, RM_NOISE_FACTORISED,
         "Of all noisy layers (Fortunato 2018): `factorised` or `independent` Gaussian noise."),
    F64("network.sigma0", SAME, network.sigma0, 0, 10, 0.5, "",
        "Initial sigma of noisy layers: as it is for independent noise; divided by sqrt(inputs of "
        "the layer) for factorised noise. `network.init` does not apply to their weights, which "
        "begin uniform within sqrt(3/inputs), or 1/sqrt(inputs) for factorised noise (Fortunato "
        "2018)."),
    ENUM("network.init", SAME, network.init, rm_init_names, RM_INIT_DEFAULT,
         "Initial weights: `default`, uniform within 1/sqrt(inputs), biases too; the others have "
         "biases 0: `orthogonal` (Saxe 2014), `xavier_uniform`, `xavier_normal` (Glorot 2010), "
         "`kaiming_uniform`, `kaiming_normal` (He 2015)."),
    ABOVE("network.gain", SAME, network.gain, 0, 100, 1.4142135623730951, "", RM_COLD,
          "Gain of initial weights of layers, except with `default`."),
    ABOVE("network.policy_gain", SAME, network.policy_gain, 0, 100, 0.01, "", RM_COLD,
          "Gain of initial weights of the policy's head."),
    ABOVE("network.value_gain", SAME, network.value_gain, 0, 100, 1, "", RM_COLD,
          "Gain of initial weights of the value's head."),
    ENUM("network.trunk", SAME, network.trunk, rm_trunk_names, RM_TRUNK_SEPARATE,
         "ppo, appo, vtrace: whether policy and value share the layers or have their own."),
    COMPOUND("network.value_layers", SAME, RM_KEY_LAYERS, network.value_layer_count,
             network.value_layers, "[]",
             "With a separate trunk: the value's layers; empty: the same as `network.layers`, with "
             "weights of their own."),
    BOOL("network.normalize_observations", SAME, network.normalize_observations, 0,
         "Inputs are normalised by their running mean and deviation, which are part of the policy "
         "and equal in actors and learner."),
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
     .doc = "Step size; the full rate of schedules."},
    F64("optimizer.beta1", SAME, optimizer.beta1, 0, 0.999999, 0.9, "",
        "Decay of the mean of gradients."),
    F64("optimizer.beta2", SAME, optimizer.beta2, 0, 0.99999999, 0.999, "",
        "Decay of the mean of squared gradients."),
    ABOVE("optimizer.epsilon", SAME, optimizer.epsilon, 0, 1, 1e-8, "", RM_COLD,
          "Added to the denominator."),
    HOT("optimizer.grad_clip", ANY, optimizer.grad_clip, RM_KEY_F64, 0, 1e9, 10, "",
        RM_HOT_GRAD_CLIP, "Largest norm of the whole gradient; 0: no clipping."),
    BOOL("optimizer.clip_apart", SAME, optimizer.clip_apart, 0,
         "ppo, appo, vtrace: two gradients are clipped to `optimizer.grad_clip` separately, "
         "each by its own norm: that of the state value's parameters (its head, and its trunk "
         "if it has its own) and that of all other parameters."),
    BOOL("optimizer.sparse", SAME, optimizer.sparse, 0,
         "adam, adamw: an update changes only those rows of an embedding's table, and their "
         "moments, whose gradient is not 0 (lazy Adam). A row of more than 1,024 floats is "
         "treated as several rows of 1,024. On the CPU the other rows cost nothing if an "
         "embedding with `columns` is the only one and the first layer."),
    F64("optimizer.momentum", SAME, optimizer.momentum, 0, 0.999999, 0, "",
        "rmsprop, muon: momentum. Muon's own figure is 0.95."),
    F64("optimizer.weight_decay", SAME, optimizer.weight_decay, 0, 1, 0, "",
        "adamw, muon: decoupled decay of weight matrices."),
    BOOL("optimizer.decay_all", SAME, optimizer.decay_all, 0,
         "adamw: biases, tables and the scales of layer_norm decay too, as all parameters do in "
         "PyTorch's AdamW."),
    ENUM("optimizer.schedule.kind", SAME, optimizer.schedule.kind, rm_schedule_names,
         RM_SCHEDULE_CONSTANT,
         "How the learning rate falls after the warm-up: not at all, linearly, or as half a "
         "cosine."),
    U64("optimizer.schedule.warmup", SAME, optimizer.schedule.warmup, 0, 1e12, 0, "updates",
        "Updates over which the rate rises linearly to the full one."),
    U64("optimizer.schedule.span", SAME, optimizer.schedule.span, 0, 1e15, 0, "updates",
        "Updates over which the rate falls; 0: over the run, by agent steps of `run.steps`."),
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
     .doc = "Instruction set of the kernels: `auto` takes the best that the processor has."},
    TEXT("learner.device", ANY, learner.device, RM_KEY_TEXT, 3, RM_TEXT_MAX - 1, "auto",
         "Where policies are trained: `cpu`, `cuda:N` (the N-th GPU, from 0), a GPU by its UUID "
         "(`GPU-...`, or its first characters), or `auto`: a GPU if there is one and an update is "
         "large enough, otherwise the CPU; the log says which and why. With several GPUs `auto` "
         "assigns GPUs to policies in turn."),
    U32("learner.devices", ANY, learner.devices, 1, 16, 1, "GPUs",
        "Number of GPUs on which one process trains each policy, from `cuda:N` on or those that "
        "`auto` finds: each learns from its part of every batch, and NCCL adds up gradients. An "
        "update equals that of one GPU except for rounding; with `actor.device` \"cuda\" each GPU "
        "steps its part of the worlds and learns from it."),
    ENUM("learner.compute", SAME, learner.compute, rm_compute_names, RM_COMPUTE_FP32,
         "How products are computed, in learning and in acting. Parameters, optimizer and sums are "
         "always float32. On the CPU `bf16` needs AVX512_BF16, and is fast with AMX; `fp32` "
         "replaces the values that the CPU does not support, and the log says so. Layers of up to "
         "16 inputs or outputs are `fp32` there."),
    ENUM("learner.feed", ANY, learner.feed, rm_feed_names, RM_FEED_AUTO,
         "How a GPU gets batches of replay. `staged`: the host draws and makes each batch and "
         "copies it to the GPU. `resident`: every row is copied once into a replay on the GPU, "
         "which draws and makes batches itself. `auto`: `resident` if the GPU has enough "
         "memory, else `staged`; the log has the choice. Results are the same, except with "
         "priorities: a `resident` draw uses the errors of all earlier updates, a `staged` draw "
         "gets errors up to three updates later."),
    ENUM("learner.processes", ANY, learner.processes, rm_learner_processes_names, RM_LEARNERS_EACH,
         "`each`: each policy's learner has its own process. `one`: one process has all "
         "learners, in turn in one thread; on a GPU each learner has its own streams, so small "
         "updates of several policies run side by side in one context. If that process dies, "
         "all learners are restarted."),
    U32("learner.device_faults", ANY, learner.device_faults, 1, 1000, 3, "faults",
        "Number of errors of one GPU that each ended a learner's process, after which the GPU is "
        "not used for the rest of the run: `auto` takes another GPU or the CPU; with a GPU given "
        "by name the run fails."),

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
         "ppo, appo, vtrace, sac, clone, distill: evaluations take the likeliest action, or draw "
         "actions."),

    TEXT("record.directory", SAME, record.directory, RM_KEY_TEXT, 0, RM_PATH_TEXT_MAX - 1, "",
         "Folder into which a separate process, the recorder, writes all rows of all actors, "
         "compressed; empty: nothing is recorded. A relative path starts at the run directory."),
    ENUM("record.every", SAME, record.every, rm_record_every_names, RM_RECORD_STEP,
         "What is recorded: every `step` (observation, mask, reward, flags, action), or of every "
         "`episode` its lane, first row, steps, return and end."),
    BOOL("record.wait", SAME, record.wait, 0,
         "If false, actors never wait for the recorder: rows that it cannot keep up with are not "
         "recorded, counted and reported. If true, they wait, and rows stay in their ring until "
         "they are on disk."),

    BOOL("report", ANY, report, 1,
         "At the end of a run in the foreground, writes `report.html` into the run directory, as "
         "`ringctl report` does: curves, where the time went, settings, what happened. Of a sweep "
         "there is one report, of all its runs."),

    COMPOUND("sweep", ANY, RM_KEY_OPTIONS, sweep, sweep, "{}",
             "Runs instead of one: keys with a list of values each, or a range, `{\"seed\": "
             "{\"from\": 1, \"to\": 20}, \"world.options.goal\": [[0, 0], [0, 1]]}`. "
             "`ringctl run` makes a run of every combination, as many at a time as there are "
             "cores, and prints a table at the end ([sweeps.md](sweeps.md)). If `seed` is not "
             "among them, run number k has the seed plus k."),

    F64("supervisor.heartbeat_s", ANY, supervisor.heartbeat_s, 0.1, 86400, 30, "seconds",
        "A busy worker without a heartbeat for longer is killed and restarted."),
    F64("supervisor.respawn_floor_s", ANY, supervisor.respawn_floor_s, 0.01, 3600, 0.25, "seconds",
        "Least time between two starts of a worker; doubled after every consecutive death."),
    F64("supervisor.backoff_max_s", ANY, supervisor.backoff_max_s, 0.01, 86400, 30, "seconds",
        "Longest delay before a worker is restarted."),
    U32("supervisor.deaths_max", ANY, supervisor.deaths_max, 1, 100000, 10, "deaths",
        "Deaths of one worker within `supervisor.deaths_window_s` before the run fails."),
    F64("supervisor.deaths_window_s", ANY, supervisor.deaths_window_s, 0.1, 604800, 120, "seconds",
        "Window in which deaths are counted."),
    F64("supervisor.stop_grace_s", ANY, supervisor.stop_grace_s, 0.1, 3600, 10, "seconds",
        "When the run is stopped: longest time for its last checkpoint, and after that for "
        "workers, from SIGTERM to SIGKILL."),

    TEXT("control.socket", ANY, control.socket, RM_KEY_TEXT, 0, 107, "",
         "Path of the control socket; empty: the default path."),

    HOT("metrics.interval_s", ANY, metrics.interval_s, RM_KEY_F64, 0.01, 86400, 1, "seconds",
        RM_HOT_METRICS_INTERVAL,
        "Time between rows of metrics. It doubles whenever the run has lasted 10000 times this "
        "time, so that the files of a long run stay small."),
    U64("metrics.interval_steps", ANY, metrics.interval_steps, 0, 1e15, 0, "steps",
        "Steps per agent between further rows, so that a run of less than a second has a curve; at "
        "most a hundred rows a second, and in long runs fewer, as with `metrics.interval_s`. 0: a "
        "200th of `run.steps`, or no rows by steps if the run has no end. Every evaluation adds a "
        "row too."),
    BOOL("metrics.csv", ANY, metrics.csv, 1, "Writes metrics as CSV into the run directory."),
    ENUM(
        "metrics.tensorboard", ANY, metrics.tensorboard, rm_tensorboard_tags_names,
        RM_TENSORBOARD_MAIN,
        "Content of the files for TensorBoard, in `tensorboard/` beside the run directories: none, "
        "the main numbers (returns, lengths of episodes, evaluations, losses, rates, policy lag), "
        "or every column of metrics.csv."),
    TEXT("metrics.exec", ANY, metrics.exec, RM_KEY_TEXT, 0, RM_PATH_TEXT_MAX - 1, "",
         "A command that gets each row of metrics on its standard input, as a line of JSON with "
         "the names of metrics.csv: a program on the PATH or its path, and its words, without a "
         "shell; empty: none. Rows that it does not take in time are dropped and counted "
         "(`reader_lost`). It can write files below `reader/` of the run directory alone, which "
         "`RINGMASTER_READER` names; `RINGMASTER_RUN` is the run directory. After the run it has "
         "`supervisor.stop_grace_s` to end ([trackers.md](trackers.md))."),

    HOT("checkpoint.interval_s", ANY, checkpoint.interval_s, RM_KEY_F64, 0, 1e7, 600, "seconds",
        RM_HOT_CHECKPOINT_INTERVAL,
        "Time between checkpoints; 0: only on request, and before the run is stopped."),
    BOOL("checkpoint.at_end", ANY, checkpoint.at_end, 1,
         "Makes a checkpoint when the budget is spent, before the final evaluation: the run is "
         "resumed from it when `run.steps` is raised."),
    U32("checkpoint.keep", ANY, checkpoint.keep, 1, 1000, 3, "checkpoints",
        "Number of newest checkpoints that are kept."),
    BOOL("checkpoint.keep_best", ANY, checkpoint.keep_best, 1,
         "Also keeps the checkpoint with the highest evaluation, and writes that evaluation's "
         "policies into `policies/best/`."),

    ENUM("debug.check_finite", ANY, debug.check_finite, rm_check_finite_names, RM_CHECK_FINITE_OFF,
         "Whether all results of an update are searched for non-finite numbers, to log the first "
         "one: never, every `debug.check_every` updates, or always. The loss and the norm of the "
         "gradient are always checked."),
    U32("debug.check_every", ANY, debug.check_every, 1, 1000000000, 1000, "updates",
        "Updates between two such checks with `sampled`."),
    U32("debug.finite_patience", ANY, debug.finite_patience, 1, 1000000, 10, "updates",
        "Consecutive updates with a non-finite loss or gradient before the learner rolls back to "
        "its last good weights; each is skipped and counted."),
    U32("debug.rollbacks_max", ANY, debug.rollbacks_max, 0, 1000, 3, "roll-backs",
        "Roll-backs before the learner fails."),
    ENUM("debug.lengthen", ANY, debug.lengthen, rm_lengthen_names, RM_STATION_UPDATE,
         "The station that `debug.lengthen_by` makes longer: stepping worlds, acting, sampling "
         "batches, the update, publishing weights, or the evaluator ([explain.md](explain.md))."),
    F64("debug.lengthen_by", ANY, debug.lengthen_by, 0, 100, 0, "",
        "Share by which work of that station takes longer: its process, for Python "
        "worlds their worker, keeps a core busy for so much more time. How much slower the run "
        "becomes shows how far the station limits it."),
};
const size_t rm_key_count = sizeof(rm_keys) / sizeof(rm_keys[0]);
