/* context: the latest transitions of a policy's lanes, the input of networks over histories
 * (learner/net/history.h). The weights of such a network do not change while it acts: it improves
 * by its context alone.
 *
 * A lane has the transitions of the previous region and of the current one:
 *
 *   <c> previous region </c> <c> current region
 *
 * or, in its first region, <c> current region. A context continues across the ends of episodes: the
 * transition into an episode's last observation is part of it, and the next transition begins in
 * another state. A region ends when it has as many transitions as the regions of training, or after
 * an action for which the network predicted the type "end of a region". Then it becomes the
 * previous region, and a new one begins.
 *
 * For agents whose histories distill can learn from: one discrete action a step, no masks, and
 * observations that are queries (rm_features_query()). Belongs to one thread; nothing is allocated
 * after create. */
#ifndef RM_ACTOR_CONTEXT_H
#define RM_ACTOR_CONTEXT_H

#include "actor/env.h"
#include "config/net_shape.h"
#include "learner/net/cache.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct rm_context_lane {
    uint32_t rows;  /* of its context */
    uint32_t begin; /* index of the row <c> of the current region */
    int32_t action; /* the latest, if `acted` */
    bool acted;     /* the result of `action` is not known yet */
    bool ends;      /* the region ends with the transition of `action` */
};

struct rm_context {
    const struct rm_env_agent *agent;
    uint32_t lanes, region, types, query_codes;
    uint32_t places, width;       /* of the context; floats of a row */
    struct rm_context_lane *lane; /* (lanes) */
    float *rows;  /* (lanes, places + 1, width), with the transition that ends a region */
    uint8_t *obs; /* (lanes, obs_bytes): the observations in which the lanes acted */
    float *x;     /* (lanes, places + 1, width) */
    struct rm_net_cache *cache;
};

/* Lanes of agents like `agent`. `shape`: that of the packed histories in training; a region has as
 * many steps as the shape has queries. `net`: the same network for one query (rm_history_alone()),
 * whose keys and values are cached; NULL: the network gets the whole context for every action.
 * -EINVAL: the network is for other observations or actions. */
int rm_context_create(struct rm_context **context, const struct rm_env_agent *agent,
                      const struct rm_net_shape *shape, const struct rm_net *net, uint32_t lanes,
                      struct rm_error *error);
void rm_context_destroy(struct rm_context *context); /* NULL: nothing */

/* Empties all lanes. Call it also after a change of the network's parameters. */
void rm_context_forget(struct rm_context *context);

/* Rows of lanes [first, first + count) of a vector step; obs (count, obs_bytes), as in a ring. */
struct rm_context_step {
    uint32_t first, count;
    const uint8_t *obs;
    const float *reward;  /* (count) received on arriving */
    const uint8_t *flags; /* (count) RM_ENV_* */
};

/* Adds the transitions of the lanes' latest actions. -EBADMSG: an observation is not a query; the
 * message has its lane. */
int rm_context_see(struct rm_context *context, const struct rm_context_step *step,
                   struct rm_error *error);

/* The network's input for actions in these lanes: (count, inputs). Call it once for a step, then
 * make a forward pass, with rm_context_cache() and `first` as its first lane. */
const float *rm_context_inputs(struct rm_context *context, const struct rm_context_step *step);
struct rm_net_cache *rm_context_cache(const struct rm_context *context); /* NULL: none */

/* Records the actions, (count), and the network's outputs for types, (count, types). Lanes whose
 * episode ended, or whose agent is not in play, did not act. */
void rm_context_act(struct rm_context *context, const struct rm_context_step *step,
                    const int32_t *action, const float *types);

#endif
