#include "actor/stepping.h"

#include "actor/worlds/scan.h"
#include "config/forms.h"
#include "config/traits.h"
#include "learner/net/features.h"
#include "learner/net/reals.h"
#include "actor/worlds/described.h"
#include "shm/base/state.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENDED (RM_FLAG_LAST | RM_FLAG_DEAD)

/* If observations need no decoding and at least this many lie side by side, it is cheaper to
 * compute actions for all lanes and replace those of a few explorers. Else the lanes that need an
 * action are gathered. */
#define DIRECT_WORLDS            64u
#define DIRECT_EXPLORERS(worlds) ((worlds) / 8)

/* --- rows ------------------------------------------------------------------------------------ */

static void enter(struct rm_stepping *s, enum rm_phase phase)
{
    if (s->clock)
        rm_phase_enter(s->clock, phase);
}

/* Rows that a ring takes before its learner returns credit: rollout.queue whole rollouts, the rows
 * that stacks of frames need, and the row that completes the last one. A ring may have more, its
 * size being a power of two. An actor that waits for weights needs no other bound. */
static uint64_t credit_of(const struct rm_stepping *s, const struct rm_ring *ring)
{
    const struct rm_experiment *e = s->experiment;
    const uint64_t queue = (uint64_t)e->rollout.queue * e->rollout.steps + s->stack;

    if (rm_algorithm_traits(e->algorithm.name)->synchronous || queue > ring->spec.rows)
        return ring->spec.rows;
    return queue;
}

bool rm_stepping_has_credit(const struct rm_stepping *s)
{
    for (uint32_t i = 0; s->shared && i < s->plan->policies; i++) {
        const struct rm_stepping_policy *p = &s->policies[i];
        uint64_t next = rm_ring_committed(p->ring) + p->reserved;
        if (p->ring->spec.record_wait && next - rm_ring_recorded(p->ring) >= p->ring->spec.rows)
            return false;
        if (p->ring->spec.mode != RM_RING_ROLLOUT)
            continue;
        if (next - rm_ring_consumed(p->ring) >= credit_of(s, p->ring))
            return false;
    }
    return true;
}

/* Points the buffers of the agents of `phase` into rows, reserving those of policies that have
 * none yet. Credit was checked before the vector step began. */
static int open_rows(struct rm_stepping *s, uint32_t phase, struct rm_error *error)
{
    for (uint32_t a = 0; a < s->batch.spec->agents; a++) {
        if (s->batch.spec->agent[a].phase != phase)
            continue;
        struct rm_stepping_policy *p = &s->policies[s->plan->agent_policy[a]];
        if (!p->reserved) {
            if (!s->shared)
                p->row = rm_ring_row(p->ring, p->next++);
            else if (!rm_ring_reserve(p->ring, &p->row))
                return rm_fail(error, -ENOBUFS,
                               "the ring of policy %s has no room for a row that it granted: its "
                               "indices were damaged",
                               s->plan->policy[s->plan->agent_policy[a]].name);
            p->reserved = true;
        }
        size_t lane = (size_t)s->plan->agent_slot[a] * s->worlds;
        const struct rm_ring_spec *spec = &p->ring->spec;
        s->buffers[a] = (struct rm_env_buffers){
            .obs = p->row.obs + lane * spec->obs_bytes,
            .obs_stride = spec->obs_bytes,
            .mask = p->row.mask ? p->row.mask + lane * spec->mask_bytes : NULL,
            .mask_stride = spec->mask_bytes,
            .reward = p->row.reward + lane,
            .flags = p->row.flags + lane,
            .figures =
                s->figures ? s->figures + (size_t)a * s->worlds * s->batch.spec->figures : NULL,
        };
    }
    return 0;
}

static void close_rows(struct rm_stepping *s, uint32_t phase)
{
    for (uint32_t i = 0; i < s->plan->policies; i++) {
        struct rm_stepping_policy *p = &s->policies[i];
        if (p->last_phase != phase)
            continue;
        *p->row.policy_version = p->updates;
        if (s->shared)
            rm_ring_commit(p->ring);
        p->reserved = false;
    }
}

/* What arrived is complete in the rows of policies that act in phase 0 only. Of the row after a
 * rollout the learner takes the value, for which it needs the state too. */
static void offer_rows(struct rm_stepping *s)
{
    for (uint32_t i = 0; s->shared && i < s->plan->policies; i++) {
        struct rm_stepping_policy *p = &s->policies[i];
        if (p->ring->spec.mode != RM_RING_ROLLOUT || p->last_phase != 0)
            continue;
        if (p->row.state)
            memcpy(p->row.state, p->state,
                   (size_t)p->ring->spec.lanes * p->acting.state_floats * sizeof(float));
        rm_ring_offer(p->ring);
    }
}

/* First rows of all worlds: their episodes begin. */
static int reset_worlds(struct rm_stepping *s, struct rm_error *error)
{
    int rc = open_rows(s, 0, error);
    if (rc < 0)
        return rc;
    enter(s, RM_PHASE_ENVIRONMENT);
    rc = rm_watched_reset(&s->batch, s->buffers, error);
    enter(s, RM_PHASE_OTHER);
    if (rc < 0)
        return rc;
    offer_rows(s);
    return 0;
}

int rm_stepping_begin(struct rm_stepping *s, struct rm_error *error)
{
    for (uint32_t i = 0; i < s->plan->policies; i++)
        if (!s->shared)
            s->policies[i].reserved = false;
    for (uint32_t i = 0; i < s->plan->policies; i++)
        if (s->policies[i].context)
            rm_context_forget(s->policies[i].context);
    rm_arrivals_reset(&s->arrivals);
    const int rc = reset_worlds(s, error);
    s->started = rc == 0;
    return rc < 0 ? rm_fail_within(error, rc, "seed %" PRIu64, s->seed) : 0;
}

int rm_stepping_reopen(struct rm_stepping *s, struct rm_error *error)
{
    for (uint32_t i = 0; s->shared && i < s->plan->policies; i++)
        rm_ring_writer_resume(s->policies[i].ring, s->policies[i].reserved, &s->policies[i].row);
    return s->started ? open_rows(s, 0, error) : 0;
}

/* --- exploration ----------------------------------------------------------------------------- */

/* The rate depends on a world's own steps or episodes times the number of worlds: as if all went at
 * its pace. So it does not depend on who steps the other worlds. */
static void set_bounds(struct rm_stepping *s)
{
    if (s->epsilon.unit == RM_DECAY_STEPS) {
        s->rate = rm_epsilon_at(&s->epsilon, (s->steps_before + s->steps) * s->total_worlds);
        uint64_t bound = rm_epsilon_bound(s->rate);
        for (uint32_t w = 0; w < s->worlds; w++)
            s->bound[w] = bound;
        return;
    }
    for (uint32_t w = 0; w < s->worlds; w++) {
        uint64_t episodes = s->arrivals.episodes[w];
        if (s->bound_episodes[w] == episodes)
            continue;
        double rate = rm_epsilon_at(&s->epsilon, (s->episodes_before + episodes) * s->total_worlds);
        s->bound_episodes[w] = episodes;
        s->bound[w] = rm_epsilon_bound(rate);
        if (w == 0)
            s->rate = rate;
    }
}

static bool anybody_explores(const struct rm_stepping *s)
{
    uint64_t any = 0;

    for (uint32_t w = 0; w < s->worlds; w++)
        any |= s->bound[w];
    return any != 0;
}

/* --- acting ---------------------------------------------------------------------------------- */

/* The first lane of an agent's in the group, and its place among those of all agents. */
static size_t lane_of(const struct rm_stepping *s, uint32_t agent)
{
    return (size_t)s->plan->agent_slot[agent] * s->worlds + s->group.first;
}

static size_t own_of(const struct rm_stepping *s, uint32_t agent)
{
    return (size_t)agent * s->worlds + s->group.first;
}

static void answer_gathered(struct rm_stepping *s, struct rm_stepping_policy *p)
{
    if (p->gathered == 0)
        return;
    rm_acting_greedy(&p->acting, p->x, p->gathered, p->lane, s->steps, p->mask, p->answer);
    for (uint32_t i = 0; i < p->gathered; i++)
        *p->to[i] = p->answer[i];
    p->gathered = 0;
}

/* Frames of one lane, oldest first; NULL before the episode's first. `rows` are observation columns
 * of the rows `back` steps ago. */
static void stack_frames(const struct rm_stepping *s, const struct rm_stepping_policy *p,
                         const uint8_t *const *rows, size_t lane, uint32_t age, uint8_t flags,
                         float *x)
{
    const uint8_t *frames[RM_STEPPING_STACK_MAX];
    size_t at = lane * p->ring->spec.obs_bytes;

    for (uint32_t back = 0; back < s->stack; back++) {
        const uint8_t *frame = NULL;
        if (back == 0 || (!p->slots && back <= age)) {
            frame = rows[back] + at;
        } else if (p->slots) {
            const uint8_t *row = rm_slot_stacks_row(p->slots, p->ring, lane, back, flags);
            frame = row ? row + at : NULL;
        }
        frames[s->stack - 1 - back] = frame;
    }
    rm_features_take_stack(p->kind, p->codes, frames, s->stack, x);
}

static void gather_lane(struct rm_stepping *s, struct rm_stepping_policy *p,
                        const uint8_t *const *rows, uint32_t agent, uint32_t w)
{
    const struct rm_ring_spec *spec = &p->ring->spec;
    size_t lane = lane_of(s, agent) + w, own = own_of(s, agent) + w;
    float *x = p->x + (size_t)p->gathered * p->acting.inputs;

    if (s->stack == 1)
        rm_features_take(p->kind, p->codes, p->row.obs + lane * spec->obs_bytes, x);
    else
        stack_frames(s, p, rows, lane, s->arrivals.age[own], p->row.flags[lane], x);
    if (p->mask && p->row.mask)
        memcpy(p->mask + (size_t)p->gathered * spec->mask_bytes,
               p->row.mask + lane * spec->mask_bytes, spec->mask_bytes);
    p->lane[p->gathered] = s->lane_ids[own];
    p->to[p->gathered] = &p->row.action[lane];
    if (++p->gathered == p->acting.chunk)
        answer_gathered(s, p);
}

/* Explorers have their action in explored[], the others -1 there; NULL: none explores. */
static void act_gathering(struct rm_stepping *s, struct rm_stepping_policy *p, uint32_t agent,
                          const int32_t *explored)
{
    const uint8_t *rows[RM_STEPPING_STACK_MAX] = {p->row.obs};
    size_t lane = lane_of(s, agent);

    for (uint32_t back = 1; back < s->stack; back++)
        rows[back] = rm_ring_row(p->ring, p->row.index - back).obs;
    for (uint32_t w = 0; w < s->group.worlds; w++) {
        if (p->row.flags[lane + w] & ENDED)
            continue;
        if (explored && explored[w] >= 0)
            p->row.action[lane + w] = explored[w];
        else
            gather_lane(s, p, rows, agent, w);
    }
}

/* The row's observations are the input: answers for all lanes, explorers' are replaced. */
static void act_in_place(struct rm_stepping *s, struct rm_stepping_policy *p, uint32_t agent,
                         const int32_t *explored, uint32_t explorers)
{
    const struct rm_ring_spec *spec = &p->ring->spec;
    size_t lane = lane_of(s, agent);
    int32_t *action = p->row.action + lane;

    rm_acting_greedy(&p->acting, (const float *)(const void *)(p->row.obs + lane * spec->obs_bytes),
                     s->group.worlds, s->lane_ids + own_of(s, agent), s->steps,
                     p->row.mask ? p->row.mask + lane * spec->mask_bytes : NULL, action);
    for (uint32_t w = 0; explorers && w < s->group.worlds; w++)
        action[w] = explored[w] >= 0 ? explored[w] : action[w];
}

/* What an agent's worlds in the group show, for its context. */
static struct rm_context_step step_of(const struct rm_stepping *s, uint32_t agent)
{
    const struct rm_stepping_policy *p = &s->policies[s->plan->agent_policy[agent]];
    const size_t lane = lane_of(s, agent);

    return (struct rm_context_step){
        .first = (uint32_t)lane,
        .count = s->group.worlds,
        .obs = p->row.obs + lane * p->ring->spec.obs_bytes,
        .reward = p->row.reward + lane,
        .flags = p->row.flags + lane,
    };
}

/* The network's input of an agent's worlds in the group. */
static const void *input_of(struct rm_stepping *s, struct rm_stepping_policy *p, uint32_t agent)
{
    const size_t lane = lane_of(s, agent);
    const uint8_t *rows[RM_STEPPING_STACK_MAX] = {p->row.obs};

    if (p->context) {
        const struct rm_context_step step = step_of(s, agent);
        return rm_context_inputs(p->context, &step);
    }
    if (p->in_place)
        return p->row.obs + lane * p->ring->spec.obs_bytes;
    for (uint32_t back = 1; back < s->stack; back++)
        rows[back] = rm_ring_row(p->ring, p->row.index - back).obs;
    for (uint32_t w = 0; w < s->group.worlds; w++) {
        float *x = p->x + (size_t)w * p->acting.inputs;
        if (s->stack == 1)
            rm_features_take(p->kind, p->codes, p->row.obs + (lane + w) * p->ring->spec.obs_bytes,
                             x);
        else
            stack_frames(s, p, rows, lane + w, s->arrivals.age[own_of(s, agent) + w],
                         p->row.flags[lane + w], x);
    }
    return p->x;
}

/* All lanes of the agent in the group, with the recurrent states before and after this step: zeros
 * where an episode begins. */
static struct rm_acting_rows rows_of(struct rm_stepping *s, uint32_t agent)
{
    struct rm_stepping_policy *p = &s->policies[s->plan->agent_policy[agent]];
    const size_t lane = lane_of(s, agent);
    const size_t floats = p->acting.state_floats;
    struct rm_acting_rows rows = {
        .x = input_of(s, p, agent),
        .n = s->group.worlds,
        .lane = s->lane_ids + own_of(s, agent),
        .step = s->steps,
        .mask = p->row.mask ? p->row.mask + lane * p->ring->spec.mask_bytes : NULL,
        .action = p->row.action + lane * p->ring->spec.action_words,
        .logp = p->row.logp ? p->row.logp + lane : NULL,
        .value = p->row.value ? p->row.value + lane : NULL,
        .types = p->types,
        .cache = p->context ? rm_context_cache(p->context) : NULL,
        .cache_lane = (uint32_t)lane,
    };

    if (!floats)
        return rows;
    for (uint32_t w = 0; w < s->group.worlds; w++)
        if (p->row.flags[lane + w] & RM_FLAG_FIRST)
            memset(p->state + (lane + w) * floats, 0, floats * sizeof(float));
    rows.state = p->state + lane * floats;
    rows.next_state = p->state + lane * floats;
    if (p->row.state)
        memcpy(p->row.state + lane * floats, rows.state, s->group.worlds * floats * sizeof(float));
    return rows;
}

/* Whether real actions are still random. As rates are (set_bounds()), by what all worlds have
 * stepped at this one's pace. */
static bool explores_reals(const struct rm_stepping *s, uint32_t agent)
{
    const uint32_t policy = s->plan->agent_policy[agent];
    return s->shared && s->policies[policy].acting.gaussian.reals &&
           !s->plan->policy[policy].frozen &&
           (s->steps_before + s->steps) * s->total_worlds < s->experiment->actor.random_steps;
}

/* Answers of a policy that is a distribution, for all lanes of the agent in the group. Those of
 * last observations are 0 in the end, so that rows do not depend on how they were made. */
static void act_by_distribution(struct rm_stepping *s, uint32_t agent)
{
    struct rm_stepping_policy *p = &s->policies[s->plan->agent_policy[agent]];
    const size_t lane = lane_of(s, agent);
    const size_t words = p->acting.distribution.words;
    struct rm_acting_rows rows = rows_of(s, agent);

    if (s->greedy && !s->logp)
        rows.logp = NULL;
    if (s->greedy)
        rm_acting_likeliest(&p->acting, &rows);
    else
        rm_acting_draw(&p->acting, &rows);
    if (explores_reals(s, agent))
        for (uint32_t w = 0; w < s->group.worlds; w++)
            rm_reals_explore(&p->acting.gaussian, s->seed,
                             s->steps / s->experiment->actor.random_hold, rows.lane[w],
                             rows.action + w * words);
    for (uint32_t w = 0; words > 1 && w < s->group.worlds; w++)
        if (p->row.flags[lane + w] & ENDED)
            memset(rows.action + w * words, 0, words * sizeof *rows.action);
    if (words == 1)
        rm_scan_clear(rows.action, p->row.flags + lane, ENDED, s->group.worlds);
    if (rows.logp)
        rm_scan_clear((int32_t *)(void *)rows.logp, p->row.flags + lane, ENDED, s->group.worlds);
    if (p->context) {
        const struct rm_context_step step = step_of(s, agent);
        rm_context_act(p->context, &step, rows.action, p->types);
    }
    for (uint32_t w = 0; s->logp && rows.logp && w < s->group.worlds; w++)
        s->logp[own_of(s, agent) + w] += (double)rows.logp[w];
}

/* Every lane goes through a recurrent network, explorers too: they see what they see. */
static void act_with_states(struct rm_stepping *s, uint32_t agent, const int32_t *explored)
{
    struct rm_stepping_policy *p = &s->policies[s->plan->agent_policy[agent]];
    const struct rm_acting_rows rows = rows_of(s, agent);

    rm_acting_best(&p->acting, &rows);
    for (uint32_t w = 0; explored && w < s->group.worlds; w++)
        rows.action[w] = explored[w] >= 0 ? explored[w] : rows.action[w];
}

static void act(struct rm_stepping *s, uint32_t agent, bool exploring)
{
    struct rm_stepping_policy *p = &s->policies[s->plan->agent_policy[agent]];
    size_t lane = lane_of(s, agent);
    uint32_t explorers = 0;

    /* Opponents play as well as they can. */
    if (exploring && !s->plan->policy[s->plan->agent_policy[agent]].frozen)
        explorers = rm_acting_explore(
            s->seed, s->lane_ids[own_of(s, agent)], s->group.worlds, s->steps,
            s->bound + s->group.first, p->acting.actions,
            p->row.mask ? p->row.mask + lane * p->ring->spec.mask_bytes : NULL, s->explored);
    if (p->acting.state_floats)
        act_with_states(s, agent, explorers ? s->explored : NULL);
    else if (p->in_place && s->group.worlds >= DIRECT_WORLDS &&
             explorers <= DIRECT_EXPLORERS(s->group.worlds))
        act_in_place(s, p, agent, s->explored, explorers);
    else
        act_gathering(s, p, agent, explorers ? s->explored : NULL);
    /* Last observations get no answer: 0, so that rows do not depend on how they were made. */
    rm_scan_clear(p->row.action + lane, p->row.flags + lane, ENDED, s->group.worlds);
}

/* What the world is given: choices as they are, real numbers within its bounds. */
static void give_actions(struct rm_stepping *s, uint32_t agent)
{
    struct rm_stepping_policy *p = &s->policies[s->plan->agent_policy[agent]];
    const uint32_t words = p->ring->spec.action_words, reals = p->acting.gaussian.reals;
    const size_t at = (size_t)s->plan->agent_slot[agent] * s->worlds * words;

    s->actions[agent] = p->row.action + at;
    if (!reals)
        return;
    s->actions[agent] = p->given + at;
    const size_t from = lane_of(s, agent) * words;
    memcpy(p->given + from, p->row.action + from, s->group.worlds * words * sizeof *p->given);
    for (uint32_t w = 0; w < s->group.worlds; w++)
        for (uint32_t i = 0; i < reals; i++) {
            int32_t *word = p->given + from + (size_t)w * words + words - reals + i;
            const float low = p->low[i], high = p->high[i];
            const float share =
                0.5f + 0.5f * rm_gaussian_bounded(rm_float_of_word(*word), p->acting.gaussian.tanh);
            const float real = low + share * (high - low);
            *word = rm_word_of_float(real > high ? high : real);
        }
}

/* Takes what the agents of `phase` were given in the group and writes their answers into the rows.
 */
static int act_phase(struct rm_stepping *s, uint32_t phase, bool exploring, struct rm_error *error)
{
    for (uint32_t a = 0; a < s->batch.spec->agents; a++) {
        if (s->batch.spec->agent[a].phase != phase)
            continue;
        struct rm_stepping_policy *p = &s->policies[s->plan->agent_policy[a]];
        struct rm_arrival in = {.first = s->group.first,
                                .worlds = s->group.worlds,
                                .obs = s->buffers[a].obs,
                                .mask = s->buffers[a].mask,
                                .reward = s->buffers[a].reward,
                                .flags = s->buffers[a].flags,
                                .figures = s->buffers[a].figures};
        uint32_t counted;
        int rc = rm_arrivals_count(&s->arrivals, a, s->steps, &in, &counted, error);
        if (rc < 0)
            return rc;
        p->counted += counted;
        s->agent_counted[a] += counted;
        const struct rm_context_step step = step_of(s, a);
        if (p->context && (rc = rm_context_see(p->context, &step, error)) < 0)
            return rc;
        if (p->acting.draws)
            act_by_distribution(s, a);
        else
            act(s, a, exploring);
        if (p->slots)
            rm_slot_stacks_push(p->slots, p->ring, &p->row, lane_of(s, a), s->group.worlds);
    }
    for (uint32_t i = 0; i < s->plan->policies; i++)
        answer_gathered(s, &s->policies[i]);
    for (uint32_t a = 0; a < s->batch.spec->agents; a++)
        if (s->batch.spec->agent[a].phase == phase)
            give_actions(s, a);
    return 0;
}

/* What no group has a part of: rates of exploration, noise. */
static bool begin_step(struct rm_stepping *s)
{
    bool exploring = false;

    if (s->explore) {
        set_bounds(s);
        exploring = anybody_explores(s);
    }
    memset(s->agent_counted, 0, s->batch.spec->agents * sizeof *s->agent_counted);
    for (uint32_t i = 0; i < s->plan->policies; i++) {
        s->policies[i].counted = 0;
        rm_acting_draw_noise(&s->policies[i].acting, s->steps);
    }
    return exploring;
}

/* All worlds at once, phase by phase. */
static int step_all(struct rm_stepping *s, bool exploring, struct rm_error *error)
{
    s->group = (struct rm_world_group){.worlds = s->worlds};
    for (uint32_t phase = 0; phase < s->batch.spec->phases; phase++) {
        enter(s, RM_PHASE_INFERENCE);
        int rc = act_phase(s, phase, exploring, error);
        if (rc < 0)
            return rc;
        enter(s, RM_PHASE_RING);
        close_rows(s, phase);
        rc = open_rows(s, (phase + 1) % s->batch.spec->phases, error);
        if (rc < 0)
            return rc;
        enter(s, RM_PHASE_ENVIRONMENT);
        rc = rm_watched_step(&s->batch, phase, s->actions, s->buffers, error);
        if (rc < 0)
            return rc;
    }
    enter(s, RM_PHASE_OTHER);
    offer_rows(s);
    return 0;
}

/* Waits for what the worlds of the first group of `left` show, and returns that group's number. */
static int receive(struct rm_stepping *s, uint32_t left, struct rm_error *error)
{
    enter(s, RM_PHASE_ENVIRONMENT);
    return rm_watched_receive(&s->batch, left, s->buffers, error);
}

/* Does a learner wait for what the worlds show after the rows that are committed? */
static bool rows_are_awaited(const struct rm_stepping *s)
{
    for (uint32_t i = 0; i < s->plan->policies; i++) {
        const struct rm_ring *ring = s->policies[i].ring;
        if (ring->spec.mode == RM_RING_ROLLOUT &&
            (rm_ring_committed(ring) - ring->spec.first_index) % s->experiment->rollout.steps == 0)
            return true;
    }
    return false;
}

/* Group by group: others step while the agents of one act. What the worlds show next is awaited in
 * the next step, unless a learner waits for it. */
static int step_groups(struct rm_stepping *s, bool exploring, struct rm_error *error)
{
    const uint32_t all = (1u << s->batch.groups) - 1;
    int g, rc;

    for (uint32_t left = all; left; left &= ~(1u << g)) {
        if ((g = receive(s, left, error)) < 0)
            return g;
        s->group = s->batch.world.groups->group(s->batch.env, (uint32_t)g);
        enter(s, RM_PHASE_INFERENCE);
        if ((rc = act_phase(s, 0, exploring, error)) < 0)
            return rc;
        enter(s, RM_PHASE_ENVIRONMENT);
        if ((rc = rm_watched_ask(&s->batch, (uint32_t)g, s->actions, error)) < 0)
            return rc;
    }
    enter(s, RM_PHASE_RING);
    close_rows(s, 0);
    if ((rc = open_rows(s, 0, error)) < 0)
        return rc;
    if (rows_are_awaited(s)) {
        for (uint32_t left = all; left; left &= ~(1u << g))
            if ((g = receive(s, left, error)) < 0)
                return g;
        offer_rows(s);
    }
    enter(s, RM_PHASE_OTHER);
    return 0;
}

/* --- into other worlds ----------------------------------------------------------------------- */

void rm_stepping_change(struct rm_stepping *s, const struct rm_world_config *world, uint64_t seed)
{
    s->next = world;
    s->next_seed = seed;
}

/* What stands in the rows is the last that is seen of each episode. One that has just begun is left
 * out: a row cannot be the first and the last. */
static void cut_episodes(struct rm_stepping *s)
{
    for (uint32_t a = 0; a < s->batch.spec->agents; a++) {
        uint8_t *flags = s->buffers[a].flags;
        for (uint32_t w = 0; w < s->worlds; w++) {
            const bool first = flags[w] & RM_ENV_FIRST;
            if (flags[w] & ~RM_ENV_FIRST)
                continue;
            flags[w] = first ? RM_ENV_DEAD : RM_ENV_TRUNCATED;
            for (uint32_t f = 0; !first && f < s->batch.spec->figures; f++)
                s->buffers[a].figures[(size_t)w * s->batch.spec->figures + f] = NAN;
        }
    }
}

static int step_into_others(struct rm_stepping *s, struct rm_error *error)
{
    int rc = 0, g;

    for (uint32_t left = s->batch.groups > 1 ? (1u << s->batch.groups) - 1 : 0; left;
         left &= ~(1u << g))
        if ((g = receive(s, left, error)) < 0)
            return g;
    s->group = (struct rm_world_group){.worlds = s->worlds};
    cut_episodes(s);
    if ((rc = act_phase(s, 0, false, error)) < 0)
        return rc;
    close_rows(s, 0);
    enter(s, RM_PHASE_ENVIRONMENT);
    if ((rc = rm_watched_replace(&s->batch, s->next, s->next_seed, error)) < 0)
        return rc;
    s->arrivals.spec = s->batch.spec;
    for (uint32_t p = 0; p < s->plan->policies; p++)
        s->policies[p].kind = &s->batch.spec->agent[s->plan->policy[p].agent[0]];
    s->next = NULL;
    return reset_worlds(s, error);
}

int rm_stepping_step(struct rm_stepping *s, struct rm_error *error)
{
    const bool exploring = begin_step(s);
    const int rc = s->next               ? step_into_others(s, error)
                   : s->batch.groups > 1 ? step_groups(s, exploring, error)
                                         : step_all(s, exploring, error);

    if (rc < 0)
        return rm_fail_within(error, rc, "seed %" PRIu64, s->seed);
    s->steps++;
    return 0;
}

/* --- making: worlds, networks, buffers ----------------------------------------------------- */

/* Buffers of a policy that acts for all lanes at once, because it is a distribution or recurrent:
 * decoded observations, unless observations need no decoding, and recurrent states. */
static int create_whole(struct rm_stepping *s, struct rm_stepping_policy *p, uint32_t lanes,
                        struct rm_error *error)
{
    size_t state = (size_t)lanes * p->acting.state_floats;

    if (!p->in_place)
        p->x = s->backend->ops->alloc(s->backend, (size_t)s->worlds * p->acting.inputs);
    if (state)
        p->state = s->backend->ops->alloc(s->backend, state);
    if ((!p->in_place && !p->x) || (state && !p->state))
        return rm_fail(error, -ENOMEM, "no memory for the inputs of %u worlds", s->worlds);
    return 0;
}

/* Bounds of real numbers, and a place for actions within them. */
static int create_reals(struct rm_stepping *s, struct rm_stepping_policy *p, uint32_t lanes,
                        struct rm_error *error)
{
    const uint32_t reals = p->acting.gaussian.reals;

    if (!reals)
        return 0;
    p->given = calloc((size_t)lanes * p->ring->spec.action_words + 1, sizeof *p->given);
    p->low = calloc(reals, sizeof *p->low);
    p->high = calloc(reals, sizeof *p->high);
    if (!p->given || !p->low || !p->high)
        return rm_fail(error, -ENOMEM, "no memory for the actions of %u worlds", s->worlds);
    rm_env_real_bounds(p->kind, p->low, p->high);
    return 0;
}

/* Of a network over histories, which has one input for each world, so that p->x is not needed. */
static int create_context(struct rm_stepping *s, struct rm_stepping_policy *p,
                          const struct rm_policy_plan *plan, uint32_t lanes, struct rm_error *error)
{
    p->types = calloc((size_t)s->worlds * plan->shape.history.types, sizeof *p->types);
    if (!p->types)
        return rm_fail(error, -ENOMEM, "no memory for the types of %u worlds", s->worlds);
    return rm_context_create(&p->context, p->kind, &plan->shape, p->acting.net, lanes, error);
}

static int create_policy(struct rm_stepping *s, uint32_t index,
                         const struct rm_stepping_options *options, struct rm_error *error)
{
    struct rm_stepping_policy *p = &s->policies[index];
    const struct rm_policy_plan *plan = &s->plan->policy[index];
    uint32_t lanes = plan->agents * s->worlds;

    p->ring = options->rings[index];
    p->kind = &s->batch.spec->agent[plan->agent[0]];
    p->codes = rm_network_codes(&s->experiment->network, p->kind);
    p->next = p->ring->spec.first_index;
    p->first_phase = UINT32_MAX;
    for (uint32_t i = 0; i < plan->agents; i++) {
        uint32_t phase = s->batch.spec->agent[plan->agent[i]].phase;
        if (phase < p->first_phase)
            p->first_phase = phase;
        if (phase > p->last_phase)
            p->last_phase = phase;
    }
    if (p->ring->spec.lanes != lanes || p->ring->spec.obs_bytes != plan->obs_bytes ||
        p->ring->spec.rows <= s->stack)
        return rm_fail(
            error, -EPROTO,
            "policy %s: ring of %u rows of %u lanes of %u bytes; needs more than %u rows "
            "of %u lanes of %u bytes",
            plan->name, p->ring->spec.rows, p->ring->spec.lanes, p->ring->spec.obs_bytes, s->stack,
            lanes, plan->obs_bytes);
    int rc = rm_acting_create(&p->acting, s->experiment, plan, s->backend, options->quantiles,
                              s->seed, error);
    if (rc < 0)
        return rm_fail_within(error, rc, "policy %s", plan->name);
    if (s->explore && s->experiment->actor.noise && !plan->frozen &&
        (rc = rm_acting_make_noisy(&p->acting, index, error)) < 0)
        return rm_fail_within(error, rc, "policy %s", plan->name);
    p->in_place = s->stack == 1 && rm_features_in_place(p->kind, p->codes);
    if ((rc = create_reals(s, p, lanes, error)) < 0)
        return rc;
    if (plan->shape.history.queries)
        return create_context(s, p, plan, lanes, error);
    if (p->acting.draws || p->acting.state_floats)
        return create_whole(s, p, lanes, error);
    uint32_t chunk = p->acting.chunk;
    p->x = s->backend->ops->alloc(s->backend, (size_t)chunk * plan->inputs);
    p->mask = plan->mask_bytes ? calloc(chunk, plan->mask_bytes) : NULL;
    p->lane = calloc(chunk, sizeof *p->lane);
    p->answer = calloc(chunk, sizeof *p->answer);
    p->to = calloc(chunk, sizeof *p->to);
    if (!p->x || (plan->mask_bytes && !p->mask) || !p->lane || !p->answer || !p->to)
        return rm_fail(error, -ENOMEM, "policy %s: no memory for batches of %u", plan->name, chunk);
    const struct rm_form_traits *form = rm_form_traits(s->experiment->algorithm.form);
    if (options->shared && form->stacks_of_slots)
        return rm_slot_stacks_create(&p->slots, s->experiment->ring.capacity, form->jump, lanes,
                                     error);
    return 0;
}

static int create_buffers(struct rm_stepping *s, struct rm_error *error)
{
    size_t agents = s->batch.spec->agents;

    s->policies = calloc(s->plan->policies, sizeof *s->policies);
    s->buffers = calloc(agents, sizeof *s->buffers);
    s->figures = s->batch.spec->figures
                     ? calloc(agents * s->worlds * s->batch.spec->figures, sizeof *s->figures)
                     : NULL;
    s->actions = calloc(agents, sizeof *s->actions);
    s->agent_counted = calloc(agents, sizeof *s->agent_counted);
    s->lane_ids = calloc(agents * s->worlds, sizeof *s->lane_ids);
    s->explored = calloc(s->worlds, sizeof *s->explored);
    s->bound = calloc(s->worlds, sizeof *s->bound);
    s->bound_episodes = calloc(s->worlds, sizeof *s->bound_episodes);
    if (!s->policies || !s->buffers || !s->actions || !s->agent_counted || !s->lane_ids ||
        !s->explored || !s->bound || !s->bound_episodes || (s->batch.spec->figures && !s->figures))
        return rm_fail(error, -ENOMEM, "no memory for %u worlds of %zu agents", s->worlds, agents);
    for (size_t a = 0; a < agents; a++)
        for (uint32_t w = 0; w < s->worlds; w++)
            s->lane_ids[a * s->worlds + w] = (uint32_t)(a * s->total_worlds + s->first_world + w);
    for (uint32_t w = 0; w < s->worlds; w++)
        s->bound_episodes[w] = UINT64_MAX;
    return 0;
}

static int create(struct rm_stepping *s, const struct rm_stepping_options *o,
                  struct rm_error *error)
{
    const struct rm_experiment *e = s->experiment;
    int rc;

    if (s->stack > RM_STEPPING_STACK_MAX)
        return rm_fail(error, -EINVAL, "sample.frame_stack: %u; at most %u", s->stack,
                       RM_STEPPING_STACK_MAX);
    const struct rm_watch watch = {.seed = o->world_seed ? *o->world_seed : o->seed,
                                   .first_world = o->first_world,
                                   .worlds = o->worlds,
                                   .steps = &s->steps,
                                   .arrivals = &s->arrivals};
    if ((rc = rm_watched_open(&s->batch, o->world ? o->world : &e->world, &e->world, &watch,
                              s->shared, error)) < 0)
        return rc;
    if (s->batch.spec->agents != s->plan->agents || s->batch.spec->phases != s->plan->phases)
        return rm_fail(error, -EPROTO, "world %s: has %u agents and %u phases now, had %u and %u",
                       s->batch.spec->name, s->batch.spec->agents, s->batch.spec->phases,
                       s->plan->agents, s->plan->phases);
    if ((rc = rm_backend_cpu_create_for(&s->backend, 1, e->learner.isa, e->learner.compute,
                                        error)) < 0 ||
        (rc = rm_arrivals_create(&s->arrivals, s->batch.spec, o->first_world, o->worlds, o->sink,
                                 error)) < 0 ||
        (rc = create_buffers(s, error)) < 0)
        return rc;
    for (uint32_t p = 0; p < s->plan->policies; p++)
        if ((rc = create_policy(s, p, o, error)) < 0)
            return rc;
    return 0;
}

#define FLOPS_ROWS 1024 /* fewer are counted later: counting takes as long as a small row */

uint64_t rm_stepping_take_flops(struct rm_stepping *s)
{
    double flops = 0;
    for (uint32_t i = 0; i < s->plan->policies; i++) {
        struct rm_acting *acting = &s->policies[i].acting;
        if (acting->rows < FLOPS_ROWS)
            continue;
        if (!acting->types) /* with kept keys it is not known */
            flops += rm_net_workspace_row_flops(acting->workspace, acting->quantiles) *
                     (double)acting->rows;
        acting->rows = 0;
    }
    return (uint64_t)flops;
}

int rm_stepping_create(struct rm_stepping *stepping, const struct rm_experiment *experiment,
                       const struct rm_plan *plan, const struct rm_stepping_options *options,
                       struct rm_error *error)
{
    *stepping = (struct rm_stepping){
        .experiment = experiment,
        .plan = plan,
        .clock = options->clock,
        .seed = options->seed,
        .first_world = options->first_world,
        .total_worlds = options->total_worlds,
        .worlds = options->worlds,
        .stack = experiment->sample.frame_stack,
        .shared = options->shared,
        .explore = options->explore && !rm_algorithm_traits(experiment->algorithm.name)->policy,
        .greedy = options->greedy,
        .logp = options->logp,
        .epsilon = rm_epsilon_of(experiment),
        .steps_before = options->steps_before,
        .episodes_before = options->episodes_before,
    };
    int rc = create(stepping, options, error);
    if (rc < 0)
        rm_stepping_destroy(stepping);
    return rc;
}

static void destroy_policy(struct rm_stepping *s, struct rm_stepping_policy *p)
{
    rm_slot_stacks_destroy(p->slots);
    rm_context_destroy(p->context);
    free(p->types);
    float *device[] = {p->x, p->state};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i])
            s->backend->ops->release(s->backend, device[i]);
    free(p->given);
    free(p->low);
    free(p->high);
    free(p->mask);
    free(p->lane);
    free(p->answer);
    free(p->to);
    if (p->acting.net)
        rm_acting_destroy(&p->acting);
}

void rm_stepping_destroy(struct rm_stepping *s)
{
    for (uint32_t p = 0; s->policies && p < s->plan->policies; p++)
        destroy_policy(s, &s->policies[p]);
    free(s->policies);
    free(s->buffers);
    free(s->figures);
    free(s->actions);
    free(s->agent_counted);
    free(s->lane_ids);
    free(s->explored);
    free(s->bound);
    free(s->bound_episodes);
    if (s->backend)
        rm_backend_destroy(s->backend);
    rm_watched_close(&s->batch);
    rm_arrivals_destroy(&s->arrivals);
    *s = (struct rm_stepping){0};
}

int rm_stepping_own_rings(const struct rm_experiment *experiment, const struct rm_plan *plan,
                          uint32_t worlds, struct rm_ring ring[RM_BOARD_POLICIES],
                          struct rm_ring *rings[RM_BOARD_POLICIES], struct rm_error *error)
{
    uint32_t rows = 4;
    while (rows <= experiment->sample.frame_stack)
        rows *= 2;
    for (uint32_t p = 0; p < plan->policies; p++) {
        const struct rm_policy_plan *policy = &plan->policy[p];
        const struct rm_ring_spec spec = {
            .mode = RM_RING_REPLAY,
            .rows = rows,
            .lanes = policy->agents * worlds,
            .obs_bytes = policy->obs_bytes,
            .mask_bytes = policy->mask_bytes,
            .action_words = policy->action_words,
            .columns = policy->mask_bytes ? RM_COLUMN_MASK : 0,
            .policy = p,
        };
        const int rc = rm_ring_create(&ring[p], &spec, error);
        if (rc < 0)
            return rc;
        rings[p] = &ring[p];
    }
    return 0;
}

/* --- what goes into a checkpoint ----------------------------------------------------------- */

/* Those of last rows wait for the next step. Checkpoints of former versions have none. */
static void figures_state(struct rm_stepping *s, struct rm_state *state)
{
    const size_t count = (size_t)s->batch.spec->agents * s->worlds * s->batch.spec->figures;
    if (s->figures && (!rm_state_loading(state) || rm_state_has(state, "figures")))
        rm_state_bytes(state, "figures", s->figures, count * sizeof *s->figures);
    else if (s->figures)
        for (size_t i = 0; i < count; i++)
            s->figures[i] = NAN;
}

static void policy_state(struct rm_stepping_policy *p, struct rm_state *state)
{
    const size_t lanes = p->ring->spec.lanes;
    RM_STATE(state, "reserved", p->reserved);
    RM_STATE(state, "next", p->next);
    if (p->state)
        rm_state_floats(state, "state", p->state, lanes * p->acting.state_floats);
    if (p->slots)
        rm_slot_stacks_state(p->slots, state);
}

void rm_stepping_state(struct rm_stepping *s, struct rm_state *state)
{
    RM_STATE(state, "started", s->started);
    RM_STATE(state, "steps", s->steps);
    RM_STATE(state, "steps_before", s->steps_before);
    RM_STATE(state, "episodes_before", s->episodes_before);
    RM_STATE(state, "rate", s->rate);
    if (s->started)
        rm_watched_state(&s->batch, state);
    rm_state_enter(state, "arrivals");
    rm_arrivals_state(&s->arrivals, state);
    rm_state_leave(state);
    figures_state(s, state);
    for (uint32_t i = 0; i < s->plan->policies; i++) {
        char name[32];
        snprintf(name, sizeof name, "policy%u", i);
        rm_state_enter(state, name);
        policy_state(&s->policies[i], state);
        rm_state_leave(state);
    }
    struct rm_error error = {""};
    const int rc = rm_state_loading(state) ? rm_stepping_reopen(s, &error) : 0;
    if (rc < 0)
        rm_state_fail(state, rc, "%s", error.text);
}

bool rm_stepping_state_whole(const struct rm_state *state)
{
    return !rm_state_has(state, "world") || rm_state_bytes_of(state, "world") > 0;
}
