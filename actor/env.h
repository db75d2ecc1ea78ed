/* env.h: the environment ABI, version 3. A world is a table of functions over batches of worlds.
 * Built-in worlds have such a table. A user's shared object exports a function that returns one:
 *
 *     const struct rm_env_ops *rm_env_entry(void);
 *
 * This header is self-contained: a world needs no other part of Ringmaster to compile. Shared
 * objects that were compiled against version 2 still run. Set unused members to 0.
 *
 * One `struct rm_env` is a batch of `worlds` independent worlds. One thread steps all of them. The
 * caller owns every buffer and sets the strides. The world writes observations, rewards and flags
 * straight into the buffers, which are the row that replay stores.
 *
 * PHASES. In most worlds all agents act at once: there is one phase. In other worlds agents act in
 * turn within a step, and each agent sees the moves before its own: there are several phases, and
 * agent a acts in phase agent[a].phase. For each phase p of a step, the caller passes the actions
 * of the agents of phase p to step(). step() applies the actions and writes observations for the
 * agents of the next phase, (p + 1) % phases.
 *
 * EPISODES. reset() begins the first episode of every world and writes observations for phase 0,
 * with RM_ENV_FIRST. When an episode ends, every agent gets its last observation, with TERMINATED
 * or TRUNCATED, in its own phase. Ignore the actions that follow a last observation. In the agent's
 * next phase a new episode has begun, with FIRST (autoreset on the next step, the default of
 * Gymnasium 1.x). All agents in play get their last observation in the same step. An agent that
 * leaves earlier is DEAD until then.
 *
 * REWARD. `reward` is the sum of rewards since the agent's previous observation. 0 with FIRST.
 *
 * RANDOMNESS. A world draws random numbers from its seed alone. Results depend on the seed, the
 * world's id, the episode and the actions, but not on the batch. So any division of worlds among
 * actors gives the same transitions. World ids are first_world .. first_world + worlds - 1. */
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
    RM_ENV_VOID = 8, /* with TRUNCATED: this observation is not the true next one; do not bootstrap
                        from it */
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
    uint32_t phase;   /* the phase in which the agent acts, < phases */
    /* One observation, without a name. */
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
    uint32_t has_mask; /* 1: the world writes a mask of `actions` bytes: 0 illegal, else legal */
    uint32_t choices;  /* independent choices in one step; 0 and 1: one, of `actions` */
    uint32_t choice_actions[RM_ENV_MAX_CHOICES]; /* choices > 1: actions of each. The mask has the
                                                    choices' masks one after another. */
    /* Several observations, each with a name, at most RM_ENV_MAX_OBSERVATIONS. 0: the one above. */
    uint32_t observations;
    const struct rm_env_observation *observation; /* [observations] */
    /* Real numbers of an action, beside the choices or alone (`actions` 0). */
    uint32_t boxes;
    const struct rm_env_box *box; /* [boxes] */
};

/* One of several observations of an agent. Members have the same meaning as in struct rm_env_agent.
 * An entry of the buffer has the observations in order, each at the next multiple of 4 bytes. */
struct rm_env_observation {
    const char *name; /* "board" */
    uint32_t dtype, dims;
    uint32_t shape[RM_ENV_MAX_DIMS];
    double low, high;
    uint32_t codes, channels;
    const float *codebook;
    uint32_t counted; /* 1: the number of elements varies. shape[0] is the largest number. A
                         uint32_t at the multiple of 4 bytes has the current number, and the
                         elements follow it. Bytes after the last element are not read. */
};

/* Real numbers of an action. step() gets each number as the bits of a float in an int32, after the
 * choices. */
struct rm_env_box {
    const char *name;        /* "torque" */
    uint32_t values;         /* number of values, >= 1 */
    const float *low, *high; /* [values] finite bounds */
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
    double score_low, score_high;     /* range of an episode's score, for axes; NaN if unknown */
    double score_random;              /* mean score of a uniformly random policy, NaN if unknown */
    double score_solved;              /* mean score of a solved world, NaN if there is none */
    uint32_t figures;                 /* results of an episode beside return and length */
    const struct rm_env_figure *figure;     /* [figures], lives as long as the object */
    uint32_t picture_width, picture_height; /* of show_picture(), in pixels; 0: there is none */
};

/* A result of an agent's episode, beside length and return: a number ("food") or one of a list of
 * words ("cause_of_death"). Ringmaster shows the mean of a number over episodes, and the share of
 * each word. Names and words have letters, digits, '_' and '-'. */
struct rm_env_figure {
    const char *name;
    const char *doc;          /* one line; may be NULL */
    const char *const *words; /* ends with NULL, at most RM_ENV_MAX_WORDS; NULL: a number. The value
                                 of a word is its index in the list, from 0. */
};

/* The type of an option. */
enum rm_env_option_type {
    RM_ENV_NUMBER = 0, /* a number; true and false are 1 and 0 */
    RM_ENV_WHOLE,      /* a whole number; true and false are 1 and 0 */
    RM_ENV_WORD,       /* a text */
    RM_ENV_PATH        /* the path of a file or folder. The experiment file's folder completes a
                          relative path; the world gets the absolute path. */
};

/* An option of a world. The table of options ends with key NULL. */
struct rm_env_option_doc {
    const char *key;
    double fallback, low, high; /* numbers: default, and range of every value */
    const char *doc;            /* one line */
    uint32_t type;              /* enum rm_env_option_type */
    uint32_t most;              /* 0: one value. Else a list of at most `most` values. The default
                                   is the empty list; a single value is a list of one. */
    const char *const *words;   /* words: the allowed ones, ends with NULL; NULL: any */
    const char *fallback_text;  /* words and paths: default; NULL: no default, the option is absent
                                   unless it is set */
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
    double *figures; /* (worlds, figures), contiguous. Write all figures of a world with its last
                        row and at no other time; NaN: no value. NULL: not needed. */
};

struct rm_env; /* the world's own */

struct rm_env_ops {
    uint32_t abi_version; /* RM_ENV_ABI_VERSION */
    uint32_t struct_size; /* sizeof(struct rm_env_ops) */
    const char *name;
    const struct rm_env_option_doc *options; /* ends with key NULL; may be NULL */

    /* Returns NULL after an error, with a message in error[0..error_size). */
    struct rm_env *(*create)(const struct rm_env_config *config, char *error, size_t error_size);
    const struct rm_env_spec *(*describe)(const struct rm_env *env);

    /* Begins an episode in every world and writes for the agents of phase 0. `out` has an entry for
     * each agent; write only to those of the phase. Returns 0, or a negative number with
     * last_error() set. After -EPROTO, from reset() or step(), the run ends without a restart. */
    int (*reset)(struct rm_env *env, const struct rm_env_buffers *out);

    /* Applies the actions of the agents of `phase` and writes for the agents of the next phase.
     * actions[a] is (worlds, choices) for an agent a of `phase`, one int32 for each choice. Returns
     * as reset() does. */
    int (*step)(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                const struct rm_env_buffers *out);

    /* The whole state of the batch between steps, before the actions of phase 0. state_size() 0:
     * the world cannot save its state. */
    size_t (*state_size)(const struct rm_env *env);
    int (*save_state)(const struct rm_env *env, void *state);
    int (*load_state)(struct rm_env *env, const void *state);

    void (*close)(struct rm_env *env);
    const char *(*last_error)(const struct rm_env *env);

    /* Both may be NULL. They show one world (< worlds) to a person, between steps. show_text()
     * writes lines of UTF-8 that end with a line feed, as much as fits, and a NUL; it returns the
     * bytes of the whole text, without the NUL. show_picture() writes (picture_height,
     * picture_width, 3) bytes, red, green and blue, from the top left, and returns 0. Both return a
     * negative number with last_error() set after an error. */
    int (*show_text)(const struct rm_env *env, uint32_t world, char *text, size_t size);
    int (*show_picture)(const struct rm_env *env, uint32_t world, uint8_t *rgb);
};

typedef const struct rm_env_ops *(*rm_env_entry_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
