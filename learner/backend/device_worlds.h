/* device_worlds: worlds on a device, and a policy that acts in them there. Rollouts stay on the
 * device, where the learner trains on them; only counts and scores are copied to the host.
 *
 * A step is the network's forward pass over the current observations (made by the caller), then
 * draw(), then step(). The row of the rollout, and the step number that keys the draws, are in
 * device memory, so one captured step serves all steps.
 *
 * The rules of a world are those of actor/worlds/builtin, compiled for the device, and its state is
 * that of save_state() in actor/env.h: transitions equal the CPU's bit for bit. One agent, one
 * phase, one frame. Several devices share the run's worlds by their numbers (first_world): each
 * steps its own worlds, with the same draws as one device. */
#ifndef RM_LEARNER_BACKEND_DEVICE_WORLDS_H
#define RM_LEARNER_BACKEND_DEVICE_WORLDS_H

#include "learner/backend/device.h"
#include "learner/backend/policy_ops.h"
#include "learner/net/categorical.h"

#include <stddef.h>
#include <stdint.h>

enum rm_device_world_kind { RM_DEVICE_GOODHART = 0, RM_DEVICE_CARTPOLE, RM_DEVICE_WORLD_KINDS };

#define RM_DEVICE_RULES_BYTES 64u
#define RM_DEVICE_SCORES      1024u /* scores kept of a rollout's finished episodes */

/* The progress of acting, in device memory, and the results of a rollout after end(). */
struct rm_device_stage {
    uint64_t step;     /* vector steps made */
    uint64_t rollout;  /* rollouts made; part of the key of the current rollout's orders */
    uint32_t row;      /* current row of the rollout */
    uint32_t samples;  /* of the rollout */
    uint32_t answers;  /* actions of the rollout, without those in the last rows of episodes */
    uint32_t episodes; /* episodes that ended in the rollout */
    double scores[RM_DEVICE_SCORES]; /* scores of the latest such episodes, in the order of steps,
                                        then of worlds: the n-th at n % RM_DEVICE_SCORES */
};

/* All pointers are to device memory. */
struct rm_device_worlds {
    enum rm_device_world_kind kind;
    uint32_t worlds;
    unsigned char rules[RM_DEVICE_RULES_BYTES]; /* the world's own struct */
    uint64_t seed, first_world;
    void *state; /* (worlds) the world's own structs */

    /* The current observation: obs_bytes for each world are decoded to `inputs` floats. channels 0:
     * the bytes are floats; else x[channel * elements + e] = codebook[code][channel]. */
    uint32_t obs_bytes, elements, channels, inputs;
    const float *codebook; /* (codes, channels) or NULL */
    uint8_t *obs;          /* (worlds, obs_bytes) */
    float *x;              /* (worlds, inputs) */
    float *reward;         /* (worlds) */
    uint8_t *flags;        /* (worlds) */
    double *score;         /* (worlds) of the episode so far */

    /* The rollout, laid out as in rollout_rows.h. */
    uint32_t steps;
    float gamma;
    float *to_x, *to_reward; /* (steps + 1, worlds, ..) */
    uint8_t *to_flags;       /* (steps + 1, worlds) */
    int32_t *to_action;      /* (steps, worlds, choices) */
    float *to_logp, *to_value;
    float *discount, *valid;
    uint32_t *sample;
    double *ended; /* (steps, worlds) scores of the episodes that ended in this row, else NaN */
    struct rm_device_stage *stage;
};

struct rm_device_draw {
    struct rm_categorical distribution;
    const float *out; /* (worlds, outputs) of the forward pass: logits, then the value */
    uint32_t outputs, unused;
};

/* The order of samples in each pass over a rollout: a permutation by a Feistel network (Luby and
 * Rackoff 1988; for shuffles on GPUs: Mitchell et al. 2021). It depends only on seed, policy,
 * device, pass and the number of samples. */
struct rm_device_orders {
    uint64_t seed;
    uint32_t policy, epochs;
    uint32_t parts; /* maximum minibatches of a pass */
    uint32_t shuffled;
    uint32_t device, unused; /* number among the devices that share the worlds, from 0 */
    uint32_t *order;         /* (epochs, steps * worlds) */
    struct rm_rollout_passes *passes;
};

struct rm_device_world_ops {
    /* Computes the current observations from the worlds' states; rewards and flags stay. */
    void (*look)(struct rm_backend *b, const struct rm_device_worlds *worlds);
    /* Begins a rollout with the current row. */
    void (*begin)(struct rm_backend *b, const struct rm_device_worlds *worlds);
    void (*draw)(struct rm_backend *b, const struct rm_device_worlds *worlds,
                 const struct rm_device_draw *draw);
    void (*step)(struct rm_backend *b, const struct rm_device_worlds *worlds);
    /* Ends the rollout: samples, orders, results. */
    void (*end)(struct rm_backend *b, const struct rm_device_worlds *worlds,
                const struct rm_device_orders *orders);
};

#endif
