/* sequences: a rollout for a recurrent network. Lanes are trained on whole: all steps of some lanes
 * are a minibatch, from the state that each had when the rollout began - the policy's as the actor
 * kept it, the value's own as the pass over the rollout before left it - and from zeros after the
 * beginning of an episode.
 *
 * Belongs to one thread; nothing is allocated after create. */
#ifndef RM_LEARNER_ALGO_SEQUENCES_H
#define RM_LEARNER_ALGO_SEQUENCES_H

#include "learner/net/net.h"
#include "learner/rollout_rows.h"

#include <stdint.h>

struct rm_sequences {
    const struct rm_rollout *rollout;
    struct rm_backend *backend;
    uint32_t steps, lanes;
    uint32_t floats, own; /* of a lane's state, and the value's own, which are its last */
    float *first;         /* (lanes, floats) before the rollout */
    float *now;           /* (lanes, floats) of the pass over it */
    float *value;         /* (lanes, own) after the rollout before, of the value's own layers */
    /* Of a minibatch: */
    float *state;     /* (its lanes, floats) */
    uint32_t *row;    /* (steps, its lanes) rows of the rollout */
    uint8_t *restart; /* (steps, its lanes) */
    uint32_t *sample; /* those rows that are samples */
};

/* Lanes of a minibatch, ready for rm_net_learn() by index. */
struct rm_sequence_batch {
    struct rm_net_input input; /* x, index, batch, steps, state, restart */
    const uint32_t *sample;
    uint32_t samples;
};

int rm_sequences_create(struct rm_sequences *s, const struct rm_rollout *rollout,
                        struct rm_backend *backend, const struct rm_net *net,
                        struct rm_error *error);
void rm_sequences_destroy(struct rm_sequences *s);

/* A rollout was copied: takes its states. */
void rm_sequences_begin(struct rm_sequences *s);

/* Its pass, in order: the input of steps [step, step + steps) of all lanes, the successors' row
 * being step `steps` of the rollout. Each goes on from the one before. */
struct rm_net_input rm_sequences_pass(struct rm_sequences *s, uint32_t step, uint32_t steps);
/* The successors' row alone, from the states that actors kept of it (rm_rollout.after). */
struct rm_net_input rm_sequences_after(struct rm_sequences *s);
/* After the pass over that many steps of the rollout: keeps what the next rollout begins with, if
 * they are all, successors left out. */
void rm_sequences_passed(struct rm_sequences *s, uint32_t steps);

struct rm_sequence_batch rm_sequences_gather(struct rm_sequences *s, const uint32_t *lane,
                                             uint32_t lanes);

#endif
