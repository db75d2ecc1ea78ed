/* classic: a batch of a classic control problem (cartpole, acrobot, mountaincar, pendulum): one
 * agent, up to four state variables, float observations. States are a struct of arrays, so a kernel
 * steps many worlds in vector registers. Episodes end and begin afterwards, world by world.
 *
 * Physics is in double precision, as in the environments' definitions; observations are rounded to
 * float. Arrays are padded to whole groups of 16 worlds, and the padding is stepped too, so that
 * every world takes the same code path at any place of a batch. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_CLASSIC_H
#define RM_ACTOR_WORLDS_BUILTIN_CLASSIC_H

#include "actor/env.h"
#include "actor/worlds/builtin/classic_state.h"
#include "shm/base/isa.h"
#include "shm/base/float_word.h"
#include "shm/base/rng.h"

enum { RM_CLASSIC_FRAME = 6, RM_CLASSIC_GROUP = 16 };

/* The arrays of a batch; each has `padded` entries. */
struct rm_classic_arrays {
    uint32_t padded; /* multiple of RM_CLASSIC_GROUP */
    double *state[RM_CLASSIC_STATES];
    float *frame[RM_CLASSIC_FRAME]; /* observation, element by element */
    float *reward;
    float *terminated; /* 0 or 1 */
    int32_t *action;   /* of a box: rm_float_of_word() */
};

/* One step of every world: state and action in; state, frame, reward and terminated out. */
typedef void (*rm_classic_kernel)(const struct rm_classic_arrays *arrays);

/* A problem. */
struct rm_classic_problem {
    const char *name, *doc;
    const struct rm_env_option_doc *options; /* "max_steps" must be among them */
    rm_classic_kernel kernel[RM_LEVEL_COUNT];
    uint32_t actions;             /* 0: a box */
    const struct rm_env_box *box; /* of one number */
    double low, high;             /* of an observation */
    uint32_t elements;            /* of an observation; a frame may have more */
    uint32_t positions; /* of the elements, observed alone if option "velocities" is 0; 0: no
                         * such option */
    uint8_t position[RM_CLASSIC_FRAME];
    /* First state of an episode, and the observation of a state. */
    void (*begin)(struct rm_rng *rng, double state[RM_CLASSIC_STATES]);
    void (*observe)(const double state[RM_CLASSIC_STATES], float frame[RM_CLASSIC_FRAME]);
    double score_per_step;             /* bound of the reward of a step that does not end */
    double score_end;                  /* of arriving, beside that */
    double score_random, score_solved; /* with the default options */
};

/* For the tables of the problems. */
struct rm_env *rm_classic_create(const struct rm_classic_problem *problem,
                                 const struct rm_env_config *config, char *error,
                                 size_t error_size);
const struct rm_env_spec *rm_classic_describe(const struct rm_env *env);
int rm_classic_reset(struct rm_env *env, const struct rm_env_buffers *out);
int rm_classic_step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                    const struct rm_env_buffers *out);
size_t rm_classic_state_size(const struct rm_env *env);
int rm_classic_save_state(const struct rm_env *env, void *state);
int rm_classic_load_state(struct rm_env *env, const void *state);
void rm_classic_close(struct rm_env *env);
const char *rm_classic_last_error(const struct rm_env *env);

/* The table rm_WORLD_ops of a file's `problem`. */
#define RM_CLASSIC_WORLD(world)                                                                    \
    static struct rm_env *create(const struct rm_env_config *config, char *error,                  \
                                 size_t error_size)                                                \
    {                                                                                              \
        return rm_classic_create(&problem, config, error, error_size);                             \
    }                                                                                              \
    extern const struct rm_env_ops rm_##world##_ops;                                               \
    const struct rm_env_ops rm_##world##_ops = {                                                   \
        .abi_version = RM_ENV_ABI_VERSION,                                                         \
        .struct_size = sizeof(struct rm_env_ops),                                                  \
        .name = #world,                                                                            \
        .options = options,                                                                        \
        .create = create,                                                                          \
        .describe = rm_classic_describe,                                                           \
        .reset = rm_classic_reset,                                                                 \
        .step = rm_classic_step,                                                                   \
        .state_size = rm_classic_state_size,                                                       \
        .save_state = rm_classic_save_state,                                                       \
        .load_state = rm_classic_load_state,                                                       \
        .close = rm_classic_close,                                                                 \
        .last_error = rm_classic_last_error,                                                       \
    }

/* classic_rows.isa.c. rm_classic_flags: counts the step of every world and writes its flags (and
 * pads); returns whether any world ended. rm_classic_rows: writes `elements` floats per world,
 * taken from the arrays `frame`, `stride` bytes apart. */
typedef int (*rm_classic_flags_fn)(uint32_t padded, uint32_t max_steps, const float *terminated,
                                   uint32_t *step, uint8_t *flags);
typedef void (*rm_classic_rows_fn)(uint32_t worlds, uint32_t elements, float *const *frame,
                                   void *out, ptrdiff_t stride);
extern const rm_classic_flags_fn rm_classic_flags[RM_LEVEL_COUNT];
extern const rm_classic_rows_fn rm_classic_rows[RM_LEVEL_COUNT];

/* Declares the three copies of a kernel. */
#define RM_CLASSIC_KERNELS(name)                                                                   \
    void rm_isa_v2_##name(const struct rm_classic_arrays *arrays);                                 \
    void rm_isa_v3_##name(const struct rm_classic_arrays *arrays);                                 \
    void rm_isa_v4_##name(const struct rm_classic_arrays *arrays)

#endif
