/* stages: an actor's part of the curriculum. Worlds have the options of a stage; when a figure's
 * mean over the latest episodes is good enough, the next stage begins.
 *
 * One actor, number 0, decides for all of them and writes the result to the board. So that results
 * do not depend on timing, it decides in units, rounds or synchronous rollouts: at the start of
 * unit u, from the episodes that ended up to unit u - 1 - lag, what stage unit u + 1 + lag has, lag
 * being rollout.max_policy_lag. All actors have finished the former unit, and none has begun the
 * latter. Without units (free mode, except for synchronous rollouts) it decides when episodes have
 * ended.
 *
 * Sums of figures are whole numbers, in units of 2^-20, so that they do not depend on how worlds
 * are divided among actors. A mean is over the latest units that have at least `over` episodes
 * together, or over the latest episodes without units.
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
    uint32_t count; /* of stages; 0: there is no curriculum, and every call does nothing */
    bool decides, units, cutting;
    uint64_t unit, lag, wanted;
    struct rm_plan_figure figure[RM_STAGES_MAX][RM_STAGE_ENDS];
    /* of the one that decides */
    uint64_t planned, since, decided; /* the latest decision, its first unit, the latest unit that
                                         was decided on */
    struct rm_stage_window window[RM_STAGE_ENDS];
};

/* Words on the board: number of changes and stage. */
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

/* The world of the stage that the actor is in, and its seed, which differs after every change. */
int rm_stages_world(const struct rm_stages *stages, uint64_t seed, struct rm_world_config *world,
                    uint64_t *world_seed, struct rm_error *error);

/* At the start of a unit, any number of times. */
void rm_stages_begin_unit(struct rm_stages *stages, uint64_t unit);

/* Before a step, with units and without: does the stage change? Then the caller cuts episodes and
 * makes the worlds of rm_stages_world(), between rm_stages_change() and rm_stages_changed(). */
bool rm_stages_differ(const struct rm_stages *stages);
bool rm_stages_follow(struct rm_stages *stages);
void rm_stages_change(struct rm_stages *stages);
void rm_stages_changed(struct rm_stages *stages);

/* Counts an agent's episode. */
void rm_stages_episode(struct rm_stages *stages, uint32_t agent, const struct rm_episode *episode);

void rm_stages_state(struct rm_stages *stages, struct rm_state *state);

#endif
