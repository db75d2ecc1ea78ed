/* arrivals: checks and counts the output of a batch of worlds before the actor acts on it. Tracks
 * the episodes of each agent and each world: scores, lengths, and valid flags. Invalid output is an
 * error that names world, agent, episode and step.
 *
 * The common case, in which no episode begins or ends, takes one pass over the columns.
 * Belongs to one thread; nothing is allocated after creation. */
#ifndef RM_ACTOR_WORLDS_ARRIVALS_H
#define RM_ACTOR_WORLDS_ARRIVALS_H

#include "actor/env.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An agent's part of a finished episode. */
struct rm_episode {
    double score;
    uint32_t steps;        /* steps of this agent: rows after the first */
    const double *figures; /* [spec->figures]; NAN: no value. NULL: the world has no figures */
};

/* Functions that receive finished episodes. A world's episode ends when its last agent's part
 * ends. */
struct rm_episode_sink {
    void *self;
    void (*agent)(void *self, uint32_t agent, uint32_t world, const struct rm_episode *episode);
    /* `score`: sum over the world's agents; `steps`: vector steps from the first row of the episode
     * to the last */
    void (*world)(void *self, uint32_t world, double score, uint64_t steps);
};

struct rm_arrivals {
    const struct rm_env_spec *spec;
    struct rm_episode_sink sink;
    uint64_t first_world; /* id of world 0, for messages */
    uint32_t worlds;
    uint8_t *playing;   /* (agents, worlds) 1 between the first and the last row of an episode */
    double *score;      /* (agents, worlds) of the episode so far */
    uint32_t *age;      /* (agents, worlds) rows since the first one of the episode */
    uint32_t *live;     /* (worlds) agents in play */
    double *total;      /* (worlds) scores of the agents whose part of the episode is over */
    uint64_t *episodes; /* (worlds) finished */
    uint64_t *began;    /* (worlds) step at which the episode began */
    uint64_t finished;  /* episodes of all worlds */
};

/* One agent's columns of a row; entry w belongs to world w. Entries of worlds [first, first +
 * worlds) have arrived. */
struct rm_arrival {
    uint32_t first, worlds;
    const uint8_t *obs;    /* (worlds, obs_bytes), contiguous */
    const uint8_t *mask;   /* (worlds, actions) or NULL */
    const float *reward;   /* (worlds) */
    const uint8_t *flags;  /* (worlds) RM_ENV_* */
    const double *figures; /* (worlds, figures); NULL: none */
};

int rm_arrivals_create(struct rm_arrivals *arrivals, const struct rm_env_spec *spec,
                       uint64_t first_world, uint32_t worlds, struct rm_episode_sink sink,
                       struct rm_error *error);
void rm_arrivals_destroy(struct rm_arrivals *arrivals);

/* Forgets the episodes in progress; call before a reset of all worlds. */
void rm_arrivals_reset(struct rm_arrivals *arrivals);

/* Checks and counts the output for `agent` at vector step `step`. *counted is the number of lanes
 * whose action counts: their row is not a last one, and the agent is in play. -EBADMSG: a number is
 * not finite, a code is outside the codebook, flags contradict each other, or a mask allows no
 * action in a row that needs one. */
int rm_arrivals_count(struct rm_arrivals *arrivals, uint32_t agent, uint64_t step,
                      const struct rm_arrival *in, uint32_t *counted, struct rm_error *error);

/* The episodes in progress, for checkpoints. */
struct rm_state;
void rm_arrivals_state(struct rm_arrivals *arrivals, struct rm_state *state);

/* "world 12 (cartpole), agent_0, episode 3, step 17", for other messages. */
void rm_arrivals_place(const struct rm_arrivals *arrivals, uint32_t agent, uint32_t world,
                       uint64_t step, char *text, size_t size);

#endif
