/* experiment: a resolved configuration, as every process reads it. Filled by config/loader from the
 * schema table (config/schema.c), which has keys, defaults, ranges and docs. Each field here is the
 * key of the same path. Plain data: copyable, no pointers. */
#ifndef RM_CONFIG_EXPERIMENT_H
#define RM_CONFIG_EXPERIMENT_H

#include "config/compute.h"

#include <stdbool.h>
#include <stdint.h>

#define RM_TEXT_MAX         64
#define RM_PATH_TEXT_MAX    1024
#define RM_OPTIONS_TEXT_MAX 16384 /* bytes of world.options as JSON, NUL included */
#define RM_LAYERS_MAX       64
#define RM_INPUTS_MAX       32 /* of a network, groups included */
#define RM_INPUT_NAME_MAX   48
#define RM_AGENT_MAP_MAX    64
#define RM_FROZEN_MAX       16

/* Learners: a process each, or one for all. */
enum rm_learner_processes { RM_LEARNERS_EACH = 0, RM_LEARNERS_ONE };

enum rm_mode { RM_MODE_FREE = 0, RM_MODE_LOCKSTEP, RM_MODE_SEQUENTIAL };
enum rm_map { RM_MAP_INDEPENDENT = 0, RM_MAP_SHARED, RM_MAP_LIST };
enum rm_decay { RM_DECAY_LINEAR = 0, RM_DECAY_EXPONENTIAL };
enum rm_decay_unit { RM_DECAY_STEPS = 0, RM_DECAY_EPISODES };
enum rm_tensorboard_tags { RM_TENSORBOARD_OFF = 0, RM_TENSORBOARD_MAIN, RM_TENSORBOARD_ALL };
enum rm_algorithm {
    RM_ALGORITHM_DQN = 0,
    RM_ALGORITHM_QR_DQN,
    RM_ALGORITHM_IQN,
    RM_ALGORITHM_R2D2,
    RM_ALGORITHM_SAC,
    RM_ALGORITHM_PPO,
    RM_ALGORITHM_APPO,
    RM_ALGORITHM_VTRACE,
    RM_ALGORITHM_CLONE,
    RM_ALGORITHM_DISTILL,
    RM_ALGORITHM_COUNT
};
enum rm_normalise { RM_NORMALISE_OFF = 0, RM_NORMALISE_MINIBATCH, RM_NORMALISE_BATCH };
enum rm_trunk { RM_TRUNK_SHARED = 0, RM_TRUNK_SEPARATE };
enum rm_value_head_kind { RM_VALUE_PLAIN = 0, RM_VALUE_POPART };
enum rm_value_clip_maximum { RM_MAXIMUM_OF_SAMPLES = 0, RM_MAXIMUM_OF_MEANS };
enum rm_popart_deviation { RM_POPART_MOMENTS = 0, RM_POPART_AVERAGED };
enum rm_priority_kind { RM_PRIORITY_UNIFORM = 0, RM_PRIORITY_PROPORTIONAL };
enum rm_optimizer_kind {
    RM_OPTIMIZER_ADAM = 0,
    RM_OPTIMIZER_ADAMW,
    RM_OPTIMIZER_RMSPROP,
    RM_OPTIMIZER_MUON,
    RM_OPTIMIZER_COUNT
};
enum rm_schedule_kind { RM_SCHEDULE_CONSTANT = 0, RM_SCHEDULE_LINEAR, RM_SCHEDULE_COSINE };
enum rm_check_finite { RM_CHECK_FINITE_OFF = 0, RM_CHECK_FINITE_SAMPLED, RM_CHECK_FINITE_ALWAYS };
enum rm_sandbox_mode { RM_SANDBOX_AUTO = 0, RM_SANDBOX_ON, RM_SANDBOX_OFF };
enum rm_actor_device { RM_ACTOR_CPU = 0, RM_ACTOR_CUDA };
enum rm_feed_kind {
    RM_FEED_AUTO = 0, /* resident where the device has the memory, else staged */
    RM_FEED_STAGED,   /* batches are made on the host and copied */
    RM_FEED_RESIDENT, /* rows of replay are copied once, batches are made on the device */
    RM_FEED_COUNT
};
enum rm_answer { RM_ANSWER_GREEDY = 0, RM_ANSWER_SAMPLE };
enum rm_record_every { RM_RECORD_STEP = 0, RM_RECORD_EPISODE };
enum rm_form { RM_FORM_PAPER = 0, RM_FORM_SORREL_SEQ, RM_FORM_SORREL_MP };
enum rm_target_update { RM_TARGET_SOFT = 0, RM_TARGET_HARD };
enum rm_wake_kind { RM_WAKE_EVENT = 0, RM_WAKE_POLL };

enum rm_layer_type {
    RM_LAYER_LINEAR = 0,
    RM_LAYER_NOISY_LINEAR,
    RM_LAYER_RELU,
    RM_LAYER_TANH,
    RM_LAYER_GELU,
    RM_LAYER_LAYER_NORM,
    RM_LAYER_COSINE_EMBEDDING, /* IQN: multiplies rows by the number of quantiles */
    RM_LAYER_SILU,
    RM_LAYER_ELU,
    RM_LAYER_LEAKY_RELU,
    RM_LAYER_SIGMOID,
    RM_LAYER_EMBEDDING, /* first only: integer observations, a row of `units` floats each */
    RM_LAYER_CONV2D,
    RM_LAYER_RESIDUAL, /* adds the input of the `span` layers before it */
    RM_LAYER_DROPOUT,
    RM_LAYER_GRU,
    RM_LAYER_LSTM,
    RM_LAYER_ATTENTION, /* over the `tokens` rows of an observation, or over time */
    RM_LAYER_POSITION,  /* adds a trained row for each token's place */
    RM_LAYER_MEAN_POOL, /* mean over tokens, padding left out */
    RM_LAYER_POINTER,   /* last only: a score per candidate token, see learner/net/net.h */
    RM_LAYER_ONE_HOT,
    RM_LAYER_MESSAGE_PASSING, /* over the edges of a graph's nodes, as the next two */
    RM_LAYER_GRAPH_ATTENTION,
    RM_LAYER_GRAPH_POOL,
    RM_LAYER_HISTORY, /* first only: packed histories, see learner/net/history.h */
    RM_LAYER_TYPE_COUNT
};

/* Real actions: how the policy's deviation is learned, and how actions are kept within bounds. */
enum rm_deviation { RM_DEVIATION_AUTO = 0, RM_DEVIATION_PARAMETER, RM_DEVIATION_STATE };
enum rm_bound { RM_BOUND_AUTO = 0, RM_BOUND_CLIP, RM_BOUND_TANH };

enum rm_noise_kind { RM_NOISE_FACTORISED = 0, RM_NOISE_INDEPENDENT };
enum rm_init {
    RM_INIT_DEFAULT = 0, /* uniform within 1 / sqrt(fan_in), biases too */
    RM_INIT_ORTHOGONAL,
    RM_INIT_XAVIER_UNIFORM,
    RM_INIT_XAVIER_NORMAL,
    RM_INIT_KAIMING_UNIFORM,
    RM_INIT_KAIMING_NORMAL,
    RM_INIT_COUNT
};

/* One layer of network.layers. rm_layer_rows (config/layers.c) has the fields of each type, with
 * ranges and defaults. */
struct rm_layer_config {
    enum rm_layer_type type;
    uint32_t units;   /* linear, noisy_linear: outputs; embedding: floats per token; conv2d: output
                         channels; gru, lstm: hidden units; attention: width of queries, keys and
                         values, 0 = as its input; pointer: width of the dot product; history:
                         floats per token */
    uint32_t cosines; /* cosine_embedding: 64 */
    uint32_t kernel;  /* conv2d: height and width */
    uint32_t stride;  /* conv2d */
    uint32_t padding; /* conv2d: zeros on every side */
    uint32_t codes;  /* embedding, position: number of rows of its table, 0 = as many as are needed;
                        one_hot: numbers that it writes; history: rows of the table of positions */
    uint32_t column; /* one_hot: the number that it reads */
    uint32_t columns;     /* embedding: numbers of a group, 0 = no groups */
    uint32_t first_codes; /* embedding: rows of a table for the first column, 0 = none of its own */
    bool difference;      /* embedding: the last column of a group is subtracted */
    double deviation;     /* embedding, position: of its initial rows, normal; 0 = 1 */
    uint32_t heads;       /* attention */
    uint32_t span;        /* residual: how many layers before it are bridged */
    bool causal;          /* attention: a token sees itself and those before it */
    bool tied;            /* history: queries by the layer of transitions */
    bool xavier; /* attention: initial queries, keys and values by Xavier's rule, biases 0 */
    double rate; /* dropout: probability of zero in training; attention: the same, of its weights */
};

/* How the results of inputs become the input of the layers behind them. */
enum rm_combine {
    RM_COMBINE_CONCAT = 0, /* their numbers side by side */
    RM_COMBINE_TOKENS,     /* their tokens one after another */
    RM_COMBINE_COUNT
};

/* The layers of one named observation, or of a group of inputs. A group stands before its inputs.
 */
struct rm_input_config {
    char name[RM_INPUT_NAME_MAX];
    uint32_t first, layer_count; /* range of input_layers */
    uint32_t group;              /* the group that it belongs to, counted from 1; 0: none */
    bool is_group;
    enum rm_combine combine; /* of a group */
};

struct rm_network_config {
    uint32_t layer_count;
    struct rm_layer_config layers[RM_LAYERS_MAX];
    bool dueling;                /* head: Q = V + A - mean A */
    bool noisy_head;             /* head layers are noisy linear */
    enum rm_deviation deviation; /* of real actions */
    double first_deviation;      /* its initial value, if it is a parameter */
    enum rm_noise_kind noise;    /* of all noisy layers */
    double sigma0;               /* initial sigma: absolute for independent noise; factorised:
                                    sigma0 / sqrt(fan_in) */
    enum rm_init init;
    double gain;                /* of the layers: orthogonal, xavier, kaiming */
    double policy_gain;         /* of the policy head, orthogonal only */
    double value_gain;          /* of the value head */
    enum rm_trunk trunk;        /* actor-critic: do policy and value share `layers`? */
    uint32_t value_layer_count; /* separate: the value's own layers; 0 = a second `layers` */
    struct rm_layer_config value_layers[RM_LAYERS_MAX];
    bool normalize_observations; /* running mean and deviation, part of the arena */
    double observation_clip;     /* bound of a normalised number */
    uint32_t input_count;        /* 0: `layers` read the observation */
    struct rm_input_config inputs[RM_INPUTS_MAX];
    struct rm_layer_config input_layers[RM_LAYERS_MAX]; /* the lists of all inputs, in order */
    enum rm_combine combine;
};

/* policy.frozen: an opponent that is not trained. */
struct rm_frozen_config {
    uint32_t policy; /* the frozen policy */
    uint32_t of;     /* the source policy, whose snapshots the frozen policy plays */
    uint64_t every;  /* updates of `of` between snapshots */
    uint32_t keep;   /* number of snapshots kept; with each new snapshot, one of them is drawn */
};

struct rm_world_config {
    char name[RM_TEXT_MAX];
    char library[RM_PATH_TEXT_MAX];     /* "" = built in, or in Python */
    char python[RM_PATH_TEXT_MAX];      /* "module:name"; "" = a world of C */
    char prolog[RM_PATH_TEXT_MAX];      /* path of a Prolog file; "" = another world */
    char interpreter[RM_PATH_TEXT_MAX]; /* of Python; "" = that of VIRTUAL_ENV, else python3 */
    char directory[RM_PATH_TEXT_MAX];   /* start of relative paths in options */
    char options[RM_OPTIONS_TEXT_MAX]; /* a JSON object, as the world's own (actor/worlds/options.h)
                                        */
    /* Not a key: the description of the world of `library`, from a probe in a separate process
     * (actor/worlds/described.h); NULL: not probed. Belongs to the code that set it. */
    char *description;
};

/* The key that names a world's source, and its value. */
struct rm_world_source {
    const char *key, *value;
};

static inline struct rm_world_source rm_world_source(const struct rm_world_config *w)
{
    return w->python[0]    ? (struct rm_world_source){"world.python", w->python}
           : w->prolog[0]  ? (struct rm_world_source){"world.prolog", w->prolog}
           : w->library[0] ? (struct rm_world_source){"world.library", w->library}
                           : (struct rm_world_source){"world.name", w->name};
}

#define RM_STAGES_MAX     32
#define RM_STAGE_NAME_MAX 128 /* of a figure, or of a figure and one of its words */

/* A stage of the curriculum ends when the mean of a figure reaches a bound. */
struct rm_stage_rule {
    uint32_t over; /* minimum number of episodes of the mean; 0: there is no rule */
    bool high;     /* the rule holds if the mean is at least (back: above) the bound; else if it is
                      at most (back: below) the bound */
    double bound;
    char figure[RM_STAGE_NAME_MAX]; /* "return", "length", a figure of the world, or FIGURE.WORD */
    char agent[RM_TEXT_MAX];        /* "": the first */
};

struct rm_stage_config {
    struct rm_stage_rule until, back; /* when the next, the previous stage begins */
};

struct rm_curriculum_config {
    uint32_t stages; /* 0: the world's options stay as they are */
    struct rm_stage_config stage[RM_STAGES_MAX];
    char json[RM_OPTIONS_TEXT_MAX]; /* the stages as configured; "": none */
};

struct rm_experiment {
    char name[RM_TEXT_MAX];
    uint64_t seed;
    enum rm_mode mode;
    bool report; /* at the end of a run in the foreground */

    struct {
        uint64_t steps;                   /* steps per agent over all worlds; 0 = until stopped, or
                                             rm_experiment_only_evaluates() */
        char directory[RM_PATH_TEXT_MAX]; /* parent of run directories */
        uint32_t round_steps;             /* lockstep, sequential: vector steps per round */
    } run;

    struct rm_world_config world;
    struct rm_curriculum_config curriculum;

    struct {
        uint32_t count;              /* actor processes */
        uint32_t worlds;             /* worlds of all actors, split as evenly as possible */
        uint32_t quantiles;          /* IQN: quantile draws per acting decision */
        uint64_t random_steps;       /* sac with real actions: first steps, with random actions */
        uint32_t random_hold;        /* vector steps for which a random action is repeated */
        bool noise;                  /* value-based: explore by the noise of noisy layers, too */
        enum rm_actor_device device; /* where worlds are stepped: by actors, or by the learner */
        bool pin;                    /* pin workers to cores */
        enum rm_sandbox_mode sandbox;
        uint64_t process_limit;  /* processes and threads of an actor's own group; 0: none */
        uint64_t memory_limit;   /* bytes of private memory of actors and evaluator; 0: none */
        uint32_t python_workers; /* processes that step an actor's Python worlds */
        bool network;            /* Python worlds may open sockets */
        double step_deadline_s;  /* of a step of a Python world */
        uint32_t recycle_mb;     /* resident memory of a Python worker, at most; 0: any */
    } actor;

    struct {
        double start, end;
        enum rm_decay decay;
        enum rm_decay_unit unit;
        double factor; /* exponential: per unit */
        uint64_t span; /* linear: units from start to end */
    } epsilon;

    struct {
        enum rm_map map;
        uint32_t list_count;
        uint32_t list[RM_AGENT_MAP_MAX]; /* agent -> policy */
        /* Frozen opponents: policies that are not trained but play snapshots of another one. */
        uint32_t frozen_count;
        struct rm_frozen_config frozen[RM_FROZEN_MAX];
        char from[RM_OPTIONS_TEXT_MAX]; /* files that policies start from, as JSON
                                           (config/policy_from.h); "": none */
    } policy;

    struct {
        uint64_t capacity; /* transitions per policy, all actors together */
    } ring;

    struct {
        uint32_t batch;
        uint32_t n_step;
        double gamma;
        uint32_t frame_stack;        /* 1 = none */
        uint64_t min_fill;           /* transitions before the first update */
        uint32_t sequence;           /* R2D2: steps trained on in a sequence */
        uint32_t burn_in;            /* R2D2: steps before them that only warm up the state */
        uint32_t period;             /* R2D2: steps between the starts of sequences */
        char from[RM_PATH_TEXT_MAX]; /* recordings instead of actors; "": none */
        /* distill */
        uint32_t region;                    /* steps */
        uint64_t first_steps;               /* of each lane, 0 = all */
        char held_out[RM_OPTIONS_TEXT_MAX]; /* lists of values by key, as JSON; "{}": none */
        uint32_t held_out_lanes;            /* of each recording, 0 = all */
    } sample;

    struct {
        enum rm_priority_kind kind;
        double alpha, epsilon;       /* p = (|delta| + epsilon)^alpha */
        double beta_start, beta_end; /* importance weights, linear over span updates */
        uint64_t beta_span;
        double max_share; /* R2D2: priority = share * max + (1 - share) * mean */
    } priority;

    struct {
        uint32_t steps;          /* vector steps of a rollout */
        uint32_t max_policy_lag; /* rollouts that actors may be ahead: 0 = they wait */
        uint64_t staleness_max;  /* appo, vtrace: updates; older rollouts are dropped */
        uint32_t queue;          /* appo, vtrace: rollouts an actor may be ahead */
    } rollout;

    struct {
        double
            updates_per_step; /* optimizer steps per agent step of the policy; 0 = free running */
        double
            slack_updates; /* how far learner and actors may deviate from the ratio, in updates */
        enum rm_wake_kind wake; /* learner and actors wake by event, or poll every poll_us */
        uint32_t poll_us;
    } limiter;

    struct {
        enum rm_algorithm name;
        enum rm_form form;
        bool double_q;
        uint32_t quantiles;        /* QR-DQN: atoms; IQN: N of the online net */
        uint32_t target_quantiles; /* IQN: N' */
        double kappa;              /* Huber threshold */
        double cql;                /* alpha of CQL(H)'s penalty, 0 = off */
        struct {
            enum rm_target_update update;
            double tau;        /* soft: per update */
            uint64_t interval; /* hard: in updates */
        } target;
        /* ppo, appo, vtrace */
        double gae_lambda;       /* also lambda of V-trace */
        double clip, value_clip; /* value_clip 0 = off */
        enum rm_value_clip_maximum value_clip_maximum;
        double entropy_coefficient, value_coefficient;
        uint32_t epochs, minibatches;
        enum rm_normalise normalize_advantages;
        double target_kl; /* 0 = off */
        double rho_max, c_max;
        bool normalize_rewards;
        double reward_clip; /* after normalising; 0 = off */
        enum rm_value_head_kind value_head;
        double popart_beta; /* least step of the running moments */
        enum rm_popart_deviation popart_deviation;
        /* sac */
        double temperature; /* alpha; initial when it is tuned */
        bool tune_temperature;
        double target_entropy_ratio; /* of ln(actions) */
        double target_entropy;       /* of real actions, per number */
        /* real actions */
        enum rm_bound bound;
        /* distill */
        double type_weight;
        /* r2d2 */
        bool value_rescale; /* h(x) = sgn(x)(sqrt(|x| + 1) - 1) + eps x */
    } algorithm;

    struct rm_network_config network;

    struct {
        enum rm_optimizer_kind name;
        double learning_rate, beta1, beta2, epsilon;
        double grad_clip;    /* global norm, 0 = off */
        bool clip_apart;     /* the value's own parameters by a norm of their own */
        bool sparse;         /* adam, adamw: rows of tables without a gradient stay */
        double momentum;     /* rmsprop, muon */
        double weight_decay; /* adamw, muon: decoupled */
        bool decay_all;      /* adamw: of all parameters, not of matrices alone */
        struct {
            enum rm_schedule_kind kind;
            uint64_t warmup; /* updates from 0 to the full rate */
            uint64_t span;   /* updates over which the rate falls; 0 = over the run's steps */
            double end;      /* fraction of the rate at the end */
        } schedule;
    } optimizer;

    struct {
        uint32_t interval; /* updates between publications */
        double min_change; /* skip when the relative change is smaller; 0 = always publish */
    } publish;

    struct {
        uint32_t threads;         /* per learner */
        char isa[RM_TEXT_MAX];    /* "auto", "x86-64-v2", "x86-64-v3", "x86-64-v4" */
        char device[RM_TEXT_MAX]; /* "auto", "cpu", "cuda:N", "GPU-..." */
        uint32_t devices;         /* GPUs that train an agent together */
        enum rm_compute compute;
        enum rm_feed_kind feed;
        enum rm_learner_processes processes;
        uint32_t device_faults; /* errors of a device before it is not used any more */
    } learner;

    struct {
        uint64_t interval;       /* agent steps between evaluations, 0 = only at the end */
        uint32_t episodes;       /* per evaluation */
        uint32_t final_episodes; /* at the end of the run, 0 = none */
        uint32_t worlds;         /* run side by side */
        uint32_t quantiles;      /* IQN: draws per decision */
        enum rm_answer answer;   /* policies with probabilities: the likeliest action or a draw */
        char options[RM_OPTIONS_TEXT_MAX]; /* instead of those of the same name in world.options */
    } evaluation;

    struct {
        char directory[RM_PATH_TEXT_MAX]; /* of the recording; "": none is made */
        enum rm_record_every every;
        bool wait; /* actors wait for the recorder */
    } record;

    char sweep[RM_OPTIONS_TEXT_MAX]; /* lists of values by key, as JSON; "" or "{}": one run */

    struct {
        double heartbeat_s;     /* a busy worker silent for longer is killed and respawned */
        double respawn_floor_s; /* least time between two starts of a worker */
        double backoff_max_s;
        uint32_t deaths_max; /* within deaths_window_s: then the run fails */
        double deaths_window_s;
        double stop_grace_s; /* from SIGTERM to SIGKILL */
    } supervisor;

    struct {
        char socket[RM_PATH_TEXT_MAX]; /* "" = the default place */
    } control;

    struct {
        double interval_s; /* 0 = none by time */
        uint32_t keep;
        bool keep_best;
        bool at_end;
    } checkpoint;

    struct {
        double interval_s;       /* between rows of metrics by time */
        uint64_t interval_steps; /* between rows by steps; 0 = see daemon/metrics.h */
        bool csv;
        enum rm_tensorboard_tags tensorboard;
        char exec[RM_PATH_TEXT_MAX]; /* a command that reads rows; "" = none */
    } metrics;

    struct {
        enum rm_check_finite check_finite; /* when all results of an update are checked, beside
                                            * loss and gradient norm */
        uint32_t check_every;              /* sampled: updates between checks */
        uint32_t finite_patience; /* non-finite updates in a row before the learner rolls back */
        uint32_t rollbacks_max;   /* roll-backs before it gives up */
        uint32_t lengthen;        /* enum rm_station (shm/station.h): its work takes longer, to
                                   * measure its effect */
        double lengthen_by;       /* share of its time; 0: none */
    } debug;
};

/* Does the experiment record its actors' rows? */
static inline bool rm_experiment_records(const struct rm_experiment *e)
{
    return e->record.directory[0];
}

/* Does it learn from a recording? Then there are no actors, and a step of the run is an update. */
static inline bool rm_experiment_is_offline(const struct rm_experiment *e)
{
    return e->sample.from[0];
}

/* Is the code of its worlds foreign: in a shared object, in Python or in Prolog? */
static inline bool rm_experiment_is_foreign(const struct rm_experiment *e)
{
    return e->world.library[0] || e->world.python[0] || e->world.prolog[0];
}

/* Do the processes that step its worlds run foreign code themselves? */
static inline bool rm_experiment_loads(const struct rm_experiment *e)
{
    return e->world.library[0] || e->world.prolog[0];
}

/* Does the run only evaluate the policies that it starts from? */
static inline bool rm_experiment_only_evaluates(const struct rm_experiment *e)
{
    return e->run.steps == 0 && e->policy.from[0];
}

/* Are processes that step the experiment's worlds confined? With `on` always, with `auto` for
 * worlds from a shared object or in Prolog. Processes of Python worlds are not: their workers are
 * (actor/worlds/bridges/python.h). */
static inline bool rm_experiment_confines(const struct rm_experiment *e)
{
    return !e->world.python[0] && (e->actor.sandbox == RM_SANDBOX_ON ||
                                   (e->actor.sandbox == RM_SANDBOX_AUTO && rm_experiment_loads(e)));
}

#endif
