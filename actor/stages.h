/* stages: an actor's part of the curriculum. Worlds have the options of the current stage. When the
 * mean of a figure over the latest episodes reaches its bound, the next stage begins.
 *
 * Actor 0 decides for all actors and writes the result to the board. It decides once for each unit,
 * a round or a synchronous rollout, so that results do not depend on timing. At the start of unit u
 * it chooses the stage of unit u + 1 + lag, from the episodes that ended up to unit u - 1 - lag;
 * lag is rollout.max_policy_lag. At that time all actors have finished the earlier unit, and no
 * actor has begun the later one. Without units (free mode, except for synchronous rollouts) actor 0
 * decides whenever episodes have ended.
 *
 * Sums of figures are whole numbers, in units of 2^-20, so they are the same for any division of
 * worlds among actors. A mean is over the latest units that have at least `over` episodes together;
 * without units it is over the latest episodes.
 *
 * Belongs to the actor's thread. */
#ifndef RM_ACTOR_STAGES_H
#define RM_ACTOR_STAGES_H

#include "actor/worlds/arrivals.h"
#include "actor/worlds/plan.h"
#include "shm/session/session.h"

struct rm_state;

enum rm_stage_end { RM_STAGE_UNTIL, RM_STAGE_BACK, RM_STAGE_ENDS };

/* Cumulative numbers of episodes and sums since the stage began, the oldest at `first`. */
struct rm_stage_window {
    uint64_t *episodes;
    int64_t *sums;
    uint32_t room, first, count;
};

struct rm_stages {
    struct rm_session *session;
    struct rm_board_worker *slot;
    uint32_t count; /* number of stages; 0: there is no curriculum, and every call does nothing */
    bool decides, units, cutting;
    uint64_t unit, lag, wanted;
    struct rm_plan_figure figure[RM_STAGES_MAX][RM_STAGE_ENDS];
    /* for actor 0 */
    uint64_t planned, since, decided; /* the latest decision, its first unit, the latest unit that
                                         was decided on */
    struct rm_stage_window window[RM_STAGE_ENDS];
};

/* A stage word on the board has the number of changes and the stage. */
static inline uint32_t rm_stage_of(uint64_t word)
{
    return (uint32_t)(word & 255);
}
static inline uint64_t rm_stage_changes(uint64_t word)
{
    return word >> 8;
}

/* `units`: decisions are made by units. */
int rm_stages_create(struct rm_stages *stages, struct rm_session *session, uint32_t actor,
                     bool units, struct rm_error *error);
void rm_stages_destroy(struct rm_stages *stages);

/* The world of the actor's current stage, and the world's seed, which is another one after every
 * change. */
int rm_stages_world(const struct rm_stages *stages, uint64_t seed, struct rm_world_config *world,
                    uint64_t *world_seed, struct rm_error *error);

/* Call at the start of a unit; further calls in the same unit do nothing. */
void rm_stages_begin_unit(struct rm_stages *stages, uint64_t unit);

/* Does the stage change before this step? rm_stages_differ() is for runs with units,
 * rm_stages_follow() for runs without. If it does, the caller cuts episodes and creates the worlds
 * of rm_stages_world(), between rm_stages_change() and rm_stages_changed(). */
bool rm_stages_differ(const struct rm_stages *stages);
bool rm_stages_follow(struct rm_stages *stages);
void rm_stages_change(struct rm_stages *stages);
void rm_stages_changed(struct rm_stages *stages);

/* Counts an agent's episode. */
void rm_stages_episode(struct rm_stages *stages, uint32_t agent, const struct rm_episode *episode);

void rm_stages_state(struct rm_stages *stages, struct rm_state *state);

#endif
