/* env.h: the environment ABI, version 3. A world is a table of functions over batches of worlds.
 * The same table serves built-in worlds and a user's shared object, which exports
 *
 *     const struct rm_env_ops *rm_env_entry(void);
 *
 * This header is self-contained: a world needs nothing else of Ringmaster to compile. Shared
 * objects that were compiled against version 2 of it go on working. Members that a world has no use
 * for are 0.
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
 * FIRST (autoreset on the next step, as Gymnasium 1.x does by default). All agents in play are
 * given their last observation in the same step; one that leaves before is DEAD until then.
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

#define RM_ENV_ABI_VERSION      3
#define RM_ENV_MAX_DIMS         4
#define RM_ENV_MAX_CHOICES      8
#define RM_ENV_MAX_OBSERVATIONS 32
#define RM_ENV_MAX_FIGURES      16
#define RM_ENV_MAX_WORDS        16

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
    /* What it sees: one observation. */
    uint32_t dtype; /* enum rm_env_dtype */
    uint32_t dims;  /* 1 .. RM_ENV_MAX_DIMS */
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
    /* What it sees: several observations, each by a name. 0: the one above. */
    uint32_t observations;
    const struct rm_env_observation *observation; /* [observations], RM_ENV_MAX_OBSERVATIONS */
    /* Real numbers that it chooses in every step, beside the choices or alone (`actions` 0). */
    uint32_t boxes;
    const struct rm_env_box *box; /* [boxes] */
};

/* One of an agent's several observations. Members mean what they mean in struct rm_env_agent. In an
 * entry of the buffer they stand in their order, each at the next multiple of 4 bytes. */
struct rm_env_observation {
    const char *name; /* "board" */
    uint32_t dtype, dims;
    uint32_t shape[RM_ENV_MAX_DIMS];
    double low, high;
    uint32_t codes, channels;
    const float *codebook;
    uint32_t counted; /* 1: shape[0] is the most that there can be, and a uint32_t before the
                         elements says how many there are: what lies behind them is not looked at.
                         It stands at the multiple of 4 bytes, the elements right behind it */
};

/* Real numbers of an action. In the actions that step() is given each is a float in the bits of an
 * int32, after the choices. */
struct rm_env_box {
    const char *name;        /* "torque" */
    uint32_t values;         /* how many, >= 1 */
    const float *low, *high; /* [values] */
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
    uint32_t figures;                 /* what episodes end with, beside return and length */
    const struct rm_env_figure *figure;     /* [figures], lives as long as the object */
    uint32_t picture_width, picture_height; /* of show_picture(), in pixels; 0: there is none */
};

/* What an agent's part of an episode came to, beside its length and its return: a number ("food")
 * or one of a list of words ("cause_of_death"). Shown as means over episodes, words as the share of
 * each. Names and words are letters, digits, '_' and '-'. */
struct rm_env_figure {
    const char *name;
    const char *doc;          /* one line; may be NULL */
    const char *const *words; /* ends with NULL, at most RM_ENV_MAX_WORDS; NULL: a number. The value
                                 of a word is its place in the list, from 0. */
};

/* What an option is. */
enum rm_env_option_type {
    RM_ENV_NUMBER = 0, /* a number; true and false are 1 and 0 */
    RM_ENV_WHOLE,      /* a whole number, the same */
    RM_ENV_WORD,       /* a text */
    RM_ENV_PATH /* a text: path of a file or folder. A relative one begins at the folder of the
                   experiment file; the world is given the whole path. */
};

/* An option that a world takes. The table of them ends with key NULL. */
struct rm_env_option_doc {
    const char *key;
    double fallback, low, high; /* numbers: default, and range of every value */
    const char *doc;            /* one line */
    uint32_t type;              /* enum rm_env_option_type */
    uint32_t most; /* 0: one value. Else a list of at most so many; it may be empty, as it
                      is by default, and one value stands for a list of one. */
    const char *const *words;  /* words: those that are allowed, ends with NULL; NULL: any */
    const char *fallback_text; /* words and paths: default; NULL: none, the world is given no such
                                  option */
};

/* An option as set under world.options in the configuration, checked against the table. */
struct rm_env_option {
    const char *key;
    double value;             /* of a number */
    const char *text;         /* of a word or path, else NULL */
    uint32_t count;           /* values of a list, else 1 */
    const double *values;     /* [count]: of a list of numbers, else NULL */
    const char *const *texts; /* [count]: of a list of words or paths, else NULL */
};

struct rm_env_config {
    uint32_t struct_size;
    uint32_t worlds;      /* batch size */
    uint64_t seed;        /* of the run */
    uint64_t first_world; /* id of world 0 of this batch */
    const struct rm_env_option *options;
    uint32_t option_count;
    const struct rm_env_ops *ops; /* the table whose create() this is for */
};

/* Buffers of one agent: entry w belongs to world w. Element i of a buffer with stride s is at
 * (char *)base + w * s. */
struct rm_env_buffers {
    void *obs; /* the compact type; obs_stride bytes apart */
    ptrdiff_t obs_stride;
    uint8_t *mask; /* NULL unless has_mask; mask_stride apart */
    ptrdiff_t mask_stride;
    float *reward;   /* contiguous */
    uint8_t *flags;  /* contiguous, RM_ENV_* */
    double *figures; /* (worlds, figures), contiguous: all of a world's figures are written with its
                        last row, and then alone; NaN: it has none. NULL: not needed. */
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
     * agent; only those of the phase are used. 0, or negative with last_error() set. After -EPROTO,
     * here and from step(), the run ends: a restart would not help. */
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

    /* May be NULL: a world (< worlds) of the batch as it stands, for people, between steps (before
     * phase 0's actions). As text: lines of UTF-8 that end with a line feed, as much as fits and a
     * NUL; returns how many bytes it takes whole, without the NUL. As a picture: (picture_height,
     * picture_width, 3) bytes, red, green and blue, from the top left; 0. Negative with
     * last_error() set. */
    int (*show_text)(const struct rm_env *env, uint32_t world, char *text, size_t size);
    int (*show_picture)(const struct rm_env *env, uint32_t world, uint8_t *rgb);
};

typedef const struct rm_env_ops *(*rm_env_entry_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
