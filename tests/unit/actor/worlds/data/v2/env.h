/* env.h: the environment ABI, version 2. A world is a table of functions over batches of worlds.
 * The same table serves built-in worlds and a user's shared object, which exports
 *
 *     const struct rm_env_ops *rm_env_entry(void);
 *
 * This header is self-contained: a world needs nothing else of Ringmaster to compile.
 *
 * One `struct rm_env` object is a batch of `worlds` independent worlds, stepped together by one
 * thread. The caller owns every buffer and gives strides; the world writes observations, rewards
 * and flags straight into them (they are the replay row).
 *
 * PHASES. In most worlds all agents act at once: one phase. In others they act in order within a
 * step, each seeing what those before it did: then `phases` > 1 and agent a acts in phase
 * agents[a].phase. A step of the world is: for phase p = 0..phases-1: the agents of phase p have
 * been given their observation; their actions are passed to step(), which applies them and writes
 * observations for the agents of the NEXT phase ((p + 1) % phases).
 *
 * EPISODES. reset() begins the first episode of every world and writes observations for phase 0,
 * with RM_ENV_FIRST. When an episode ends, every agent is given its last observation once, with
 * TERMINATED or TRUNCATED, in its own phase; the actions passed for agents that got a last
 * observation are ignored. At the agent's next phase the world has begun a new episode and gives
 * FIRST (autoreset on the next step, as Gymnasium 1.x does by default). A world with several phases
 * gives all agents their last observation in the same step.
 *
 * REWARD. `reward` is what the agent received since its previous observation, on arriving at this
 * one. 0 with FIRST.
 *
 * RANDOMNESS. A world draws only from the seed it was given: results depend on (seed, world id,
 * episode) and the actions, never on the batch a world is in, so any split over actors gives the
 * same transitions. World ids are first_world .. first_world + worlds - 1. */
#ifndef RM_ACTOR_ENV_H
#define RM_ACTOR_ENV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RM_ENV_ABI_VERSION 2
#define RM_ENV_MAX_DIMS    4
#define RM_ENV_MAX_CHOICES 8

/* Equal to RM_FLAG_* of shm/ring.h, so that rows need no translation. */
enum rm_env_flag {
    RM_ENV_FIRST = 1,
    RM_ENV_TERMINATED = 2,
    RM_ENV_TRUNCATED = 4,
    RM_ENV_VOID = 8, /* with TRUNCATED: this observation is not the episode's true successor; do not
                        bootstrap from it */
    RM_ENV_DEAD = 16 /* the agent is not in play in this step */
};

enum rm_env_dtype {
    RM_ENV_U8 = 1, /* value = byte */
    RM_ENV_I8,
    RM_ENV_I16,
    RM_ENV_I32,
    RM_ENV_F32,
    RM_ENV_CODE8 /* each byte is a code below `codes`; see codebook */
};

/* What one agent sees and does. */
struct rm_env_agent {
    const char *name; /* "agent_0" */
    uint32_t phase;   /* in which phase it acts, < phases */
    uint32_t dtype;   /* enum rm_env_dtype */
    uint32_t dims;    /* 1 .. RM_ENV_MAX_DIMS */
    uint32_t shape[RM_ENV_MAX_DIMS];
    double low, high;      /* bounds of every element (of the decoded value for CODE8) */
    uint32_t codes;        /* CODE8: number of codes, else 0 */
    uint32_t channels;     /* CODE8: values per code, else 0 */
    const float *codebook; /* CODE8: (codes, channels): element e of code k becomes the `channels`
                              values codebook[k]; as network input, channel-major:
                              input[channel * elements + e] */
    uint32_t actions;      /* discrete actions 0 .. actions-1; with several choices, their sum */
    uint32_t has_mask;     /* 1: writes `actions` bytes a step: 0 = illegal, any other legal */
    uint32_t choices;      /* independent choices made in one step; 0 and 1: one, of `actions` */
    uint32_t choice_actions[RM_ENV_MAX_CHOICES]; /* choices > 1: actions of each; a mask is theirs
                                                    one after another */
};

struct rm_env_spec {
    uint32_t abi_version;             /* RM_ENV_ABI_VERSION */
    uint32_t struct_size;             /* sizeof(struct rm_env_spec) */
    const char *name;                 /* "cartpole" */
    const char *doc;                  /* one line */
    uint32_t agents;                  /* number of agents */
    uint32_t phases;                  /* >= 1 */
    const struct rm_env_agent *agent; /* [agents], lives as long as the object */
    uint32_t max_steps;               /* longest episode in steps, 0 = unbounded */
    double score_low, score_high;     /* what an episode's score can be, for axes; NaN if unknown */
    double score_random;              /* mean score of a uniformly random policy, NaN if unknown */
    double score_solved;              /* when it counts as solved, NaN if there is no such number */
};

/* An option of a world, as set under world.options in the configuration. */
struct rm_env_option {
    const char *key;
    double value; /* booleans are 0 and 1 */
};

struct rm_env_option_doc {
    const char *key;
    double fallback, low, high; /* default and allowed range */
    const char *doc;
};

struct rm_env_config {
    uint32_t struct_size;
    uint32_t worlds;      /* batch size */
    uint64_t seed;        /* of the run */
    uint64_t first_world; /* id of world 0 of this batch */
    const struct rm_env_option *options;
    uint32_t option_count;
};

/* Buffers of one agent: entry w belongs to world w. Element i of a buffer with stride s is at
 * (char *)base + w * s. */
struct rm_env_buffers {
    void *obs; /* the compact type; obs_stride bytes apart */
    ptrdiff_t obs_stride;
    uint8_t *mask; /* NULL unless has_mask; mask_stride apart */
    ptrdiff_t mask_stride;
    float *reward;  /* contiguous */
    uint8_t *flags; /* contiguous, RM_ENV_* */
};

struct rm_env; /* the world's own */

struct rm_env_ops {
    uint32_t abi_version; /* RM_ENV_ABI_VERSION */
    uint32_t struct_size; /* sizeof(struct rm_env_ops) */
    const char *name;
    const struct rm_env_option_doc *options; /* ends with key NULL; may be NULL */

    /* Errors: NULL with a message in error[0..error_size). */
    struct rm_env *(*create)(const struct rm_env_config *config, char *error, size_t error_size);
    const struct rm_env_spec *(*describe)(const struct rm_env *env);

    /* Begins an episode in every world; writes for the agents of phase 0. `out` has an entry per
     * agent; only those of the phase are used. 0, or negative with last_error() set. */
    int (*reset)(struct rm_env *env, const struct rm_env_buffers *out);

    /* Applies the actions of the agents of `phase` and writes for the agents of the next phase.
     * actions[a] points at one int32 per world and choice, (worlds, choices), for the agents of
     * `phase`. */
    int (*step)(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                const struct rm_env_buffers *out);

    /* Whole state of the batch, between steps (before phase 0's actions). size 0: not supported. */
    size_t (*state_size)(const struct rm_env *env);
    int (*save_state)(const struct rm_env *env, void *state);
    int (*load_state)(struct rm_env *env, const void *state);

    void (*close)(struct rm_env *env);
    const char *(*last_error)(const struct rm_env *env);
};

typedef const struct rm_env_ops *(*rm_env_entry_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
