/* experiment: a resolved configuration, as every process reads it. Filled by config/loader from the
 * schema table (config/schema.c), which is where keys, defaults, ranges and docs stand; each field
 * here is the key of the same path. Plain data: copyable, no pointers. */
#ifndef RM_CONFIG_EXPERIMENT_H
#define RM_CONFIG_EXPERIMENT_H

#include <stdbool.h>
#include <stdint.h>

#define RM_TEXT_MAX          64
#define RM_PATH_TEXT_MAX     1024
#define RM_WORLD_OPTIONS_MAX 16
#define RM_LAYERS_MAX        32
#define RM_AGENT_MAP_MAX     64

enum rm_mode { RM_MODE_FREE = 0, RM_MODE_LOCKSTEP, RM_MODE_SEQUENTIAL };
enum rm_map { RM_MAP_INDEPENDENT = 0, RM_MAP_SHARED, RM_MAP_LIST };
enum rm_decay { RM_DECAY_LINEAR = 0, RM_DECAY_EXPONENTIAL };
enum rm_decay_unit { RM_DECAY_STEPS = 0, RM_DECAY_EPISODES };
enum rm_algorithm { RM_ALGORITHM_DQN = 0, RM_ALGORITHM_QR_DQN, RM_ALGORITHM_IQN };
enum rm_form { RM_FORM_PAPER = 0, RM_FORM_SORREL_SEQ, RM_FORM_SORREL_MP };
enum rm_target_update { RM_TARGET_SOFT = 0, RM_TARGET_HARD };
enum rm_ring_kind { RM_RING_KIND_REPLAY = 0, RM_RING_KIND_ROLLOUT };
enum rm_wake_kind { RM_WAKE_EVENT = 0, RM_WAKE_POLL };

enum rm_layer_type {
    RM_LAYER_LINEAR = 0,
    RM_LAYER_NOISY_LINEAR,
    RM_LAYER_RELU,
    RM_LAYER_TANH,
    RM_LAYER_GELU,
    RM_LAYER_LAYER_NORM,
    RM_LAYER_COSINE_EMBEDDING, /* IQN: multiplies rows by the number of quantiles */
    RM_LAYER_TYPE_COUNT
};

enum rm_noise_kind { RM_NOISE_FACTORISED = 0, RM_NOISE_INDEPENDENT };
enum rm_init { RM_INIT_DEFAULT = 0, RM_INIT_ORTHOGONAL };

struct rm_layer_config {
    enum rm_layer_type type;
    uint32_t units;   /* linear, noisy_linear: outputs */
    uint32_t cosines; /* cosine_embedding: 64 */
};

struct rm_network_config {
    uint32_t layer_count;
    struct rm_layer_config layers[RM_LAYERS_MAX];
    bool dueling;             /* head: Q = V + A - mean A */
    bool noisy_head;          /* head layers are noisy linear */
    enum rm_noise_kind noise; /* of all noisy layers */
    double sigma0;            /* initial sigma: absolute for independent noise; factorised:
                                 sigma0 / sqrt(fan_in) */
    enum rm_init init;
};

struct rm_world_option_value {
    char key[RM_TEXT_MAX];
    double value;
};

struct rm_world_config {
    char name[RM_TEXT_MAX];
    char library[RM_PATH_TEXT_MAX]; /* "" = built in */
    uint32_t option_count;
    struct rm_world_option_value options[RM_WORLD_OPTIONS_MAX];
};

struct rm_experiment {
    char name[RM_TEXT_MAX];
    uint64_t seed;
    enum rm_mode mode;

    struct {
        uint64_t steps;                   /* steps per agent over all worlds; 0 = until stopped */
        char directory[RM_PATH_TEXT_MAX]; /* parent of run directories */
        uint32_t round_steps;             /* lockstep, sequential: vector steps per round */
    } run;

    struct rm_world_config world;

    struct {
        uint32_t count;     /* actor processes */
        uint32_t worlds;    /* worlds in all, split over the actors as evenly as can be */
        uint32_t quantiles; /* IQN: quantile draws per acting decision */
        bool pin;           /* pin workers to cores */
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
    } policy;

    struct {
        enum rm_ring_kind mode;
        uint64_t capacity; /* transitions per policy, all actors together */
    } ring;

    struct {
        uint32_t batch;
        uint32_t n_step;
        double gamma;
        uint32_t frame_stack; /* 1 = none */
        uint64_t min_fill;    /* transitions before the first update */
    } sample;

    struct {
        double
            updates_per_step;   /* optimizer steps per agent step of the policy; 0 = free running */
        double slack_updates;   /* how far the two sides may drift apart, in updates */
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
        struct {
            enum rm_target_update update;
            double tau;        /* soft: per update */
            uint64_t interval; /* hard: in updates */
        } target;
    } algorithm;

    struct rm_network_config network;

    struct {
        double learning_rate, beta1, beta2, epsilon;
        double grad_clip; /* global norm, 0 = off */
    } optimizer;

    struct {
        uint32_t interval; /* updates between publications */
        double min_change; /* skip when the relative change is smaller; 0 = always publish */
    } publish;

    struct {
        uint32_t threads;      /* per learner */
        char isa[RM_TEXT_MAX]; /* "auto", "x86-64-v2", "x86-64-v3", "x86-64-v4" */
    } learner;

    struct {
        uint64_t interval;       /* agent steps between evaluations, 0 = only at the end */
        uint32_t episodes;       /* per evaluation */
        uint32_t final_episodes; /* at the end of the run, 0 = none */
        uint32_t worlds;         /* run side by side */
        uint32_t quantiles;      /* IQN: draws per decision */
    } evaluation;

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
        double interval_s; /* between rows of metrics */
        bool csv, tensorboard;
    } metrics;

    struct {
        uint32_t finite_patience; /* non-finite updates in a row before the learner gives up */
        uint32_t hang_step;       /* test worlds only */
    } debug;
};

#endif
