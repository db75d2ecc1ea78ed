#include "actor/stepping.h"

#include "learner/net/features.h"
#include "actor/scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ENDED     (RM_FLAG_LAST | RM_FLAG_DEAD)
#define STACK_MAX 64u

/* Above this share of lanes that explore, the others are gathered; below it is cheaper to answer
 * for everybody. Only where observations are the network's input as they stand. */
#define DIRECT_WORLDS            64u
#define DIRECT_EXPLORERS(worlds) ((worlds) / 8)

/* --- creation -------------------------------------------------------------------------------- */

static int create_slots(struct rm_stepping *s, struct rm_stepping_policy *p, uint32_t lanes,
                        struct rm_error *error)
{
    uint64_t capacity = s->experiment->ring.capacity;

    if (capacity > UINT32_MAX)
        return rm_fail(error, -EINVAL, "ring.capacity: %" PRIu64 " is too many for the compat form",
                       capacity);
    p->slots = calloc(lanes, sizeof *p->slots);
    if (!p->slots)
        return rm_fail(error, -ENOMEM, "no memory for %u replay views", lanes);
    for (uint32_t i = 0; i < lanes; i++) {
        int rc = rm_sorrel_slots_create(&p->slots[i], (uint32_t)capacity, RM_SORREL_JUMP, error);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int create_policy(struct rm_stepping *s, uint32_t index,
                         const struct rm_stepping_options *options, struct rm_error *error)
{
    struct rm_stepping_policy *p = &s->policies[index];
    const struct rm_policy_plan *plan = &s->plan->policy[index];
    uint32_t lanes = plan->agents * s->worlds;

    p->ring = options->rings[index];
    p->kind = &s->spec->agent[plan->agent[0]];
    p->next = p->ring->spec.first_index;
    p->first_phase = UINT32_MAX;
    for (uint32_t i = 0; i < plan->agents; i++) {
        uint32_t phase = s->spec->agent[plan->agent[i]].phase;
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
    uint32_t chunk = p->acting.chunk;
    p->x = s->backend->ops->alloc(s->backend, (size_t)chunk * plan->inputs);
    p->mask = plan->mask_bytes ? calloc(chunk, plan->mask_bytes) : NULL;
    p->lane = calloc(chunk, sizeof *p->lane);
    p->answer = calloc(chunk, sizeof *p->answer);
    p->to = calloc(chunk, sizeof *p->to);
    if (!p->x || (plan->mask_bytes && !p->mask) || !p->lane || !p->answer || !p->to)
        return rm_fail(error, -ENOMEM, "policy %s: no memory for batches of %u", plan->name, chunk);
    if (options->shared && s->experiment->algorithm.form == RM_FORM_SORREL_SEQ)
        return create_slots(s, p, lanes, error);
    return 0;
}

static int create_buffers(struct rm_stepping *s, struct rm_error *error)
{
    size_t agents = s->spec->agents;

    s->policies = calloc(s->plan->policies, sizeof *s->policies);
    s->buffers = calloc(agents, sizeof *s->buffers);
    s->actions = calloc(agents, sizeof *s->actions);
    s->lane_ids = calloc(agents * s->worlds, sizeof *s->lane_ids);
    s->explored = calloc(s->worlds, sizeof *s->explored);
    s->bound = calloc(s->worlds, sizeof *s->bound);
    s->bound_episodes = calloc(s->worlds, sizeof *s->bound_episodes);
    if (!s->policies || !s->buffers || !s->actions || !s->lane_ids || !s->explored || !s->bound ||
        !s->bound_episodes)
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

    if (s->stack > STACK_MAX)
        return rm_fail(error, -EINVAL, "sample.frame_stack: %u; at most %u", s->stack, STACK_MAX);
    if ((rc = rm_world_open(&s->world, e->world.name, e->world.library, error)) < 0 ||
        (rc = rm_world_create(&s->world, &e->world, o->seed, o->first_world, o->worlds, &s->env,
                              error)) < 0)
        return rc;
    s->spec = s->world.ops->describe(s->env);
    if (s->spec->agents != s->plan->agents || s->spec->phases != s->plan->phases)
        return rm_fail(error, -EPROTO, "world %s: has %u agents and %u phases now, had %u and %u",
                       s->spec->name, s->spec->agents, s->spec->phases, s->plan->agents,
                       s->plan->phases);
    if ((rc = rm_backend_cpu_create(&s->backend, 1, e->learner.isa, error)) < 0 ||
        (rc = rm_arrivals_create(&s->arrivals, s->spec, o->first_world, o->worlds, o->sink,
                                 error)) < 0 ||
        (rc = create_buffers(s, error)) < 0)
        return rc;
    for (uint32_t p = 0; p < s->plan->policies; p++)
        if ((rc = create_policy(s, p, o, error)) < 0)
            return rc;
    return 0;
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
        .explore = options->explore,
        .epsilon = rm_epsilon_of(experiment),
        .steps_before = options->steps_before,
        .episodes_before = options->episodes_before,
    };
    int rc = create(stepping, options, error);
    if (rc < 0)
        rm_stepping_destroy(stepping);
    return rc;
}

static void destroy_policy(struct rm_stepping *s, struct rm_stepping_policy *p, uint32_t lanes)
{
    for (uint32_t i = 0; p->slots && i < lanes; i++)
        rm_sorrel_slots_destroy(&p->slots[i]);
    free(p->slots);
    if (p->x)
        s->backend->ops->release(s->backend, p->x);
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
        destroy_policy(s, &s->policies[p], s->plan->policy[p].agents * s->worlds);
    free(s->policies);
    free(s->buffers);
    free(s->actions);
    free(s->lane_ids);
    free(s->explored);
    free(s->bound);
    free(s->bound_episodes);
    rm_arrivals_destroy(&s->arrivals);
    if (s->backend)
        rm_backend_destroy(s->backend);
    if (s->env)
        s->world.ops->close(s->env);
    if (s->world.ops)
        rm_world_close(&s->world);
    *s = (struct rm_stepping){0};
}

/* --- rows ------------------------------------------------------------------------------------ */

static void enter(struct rm_stepping *s, enum rm_phase phase)
{
    if (s->clock)
        rm_phase_enter(s->clock, phase);
}

bool rm_stepping_has_credit(const struct rm_stepping *s)
{
    for (uint32_t i = 0; s->shared && i < s->plan->policies; i++) {
        const struct rm_stepping_policy *p = &s->policies[i];
        if (p->ring->spec.mode != RM_RING_ROLLOUT)
            continue;
        uint64_t next = rm_ring_committed(p->ring) + p->reserved;
        if (next - rm_ring_consumed(p->ring) >= p->ring->spec.rows)
            return false;
    }
    return true;
}

/* Points the buffers of the agents of `phase` into rows, reserving those of policies that have
 * none in hand. Credit was checked before the vector step began. */
static int open_rows(struct rm_stepping *s, uint32_t phase, struct rm_error *error)
{
    for (uint32_t a = 0; a < s->spec->agents; a++) {
        if (s->spec->agent[a].phase != phase)
            continue;
        struct rm_stepping_policy *p = &s->policies[s->plan->agent_policy[a]];
        if (!p->reserved) {
            if (!s->shared)
                p->row = rm_ring_row(p->ring, p->next++);
            else if (!rm_ring_reserve(p->ring, &p->row))
                return rm_fail(error, -ENOBUFS, "the ring of policy %s took its credit back",
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

static int world_failed(const struct rm_stepping *s, int rc, const char *doing,
                        struct rm_error *error)
{
    const char *why = s->world.ops->last_error ? s->world.ops->last_error(s->env) : NULL;

    return rm_fail(error, rc < 0 && rc > -4096 ? rc : -EIO,
                   "seed %" PRIu64 ": worlds %" PRIu64 "..%" PRIu64
                   " (%s): %s failed at vector step %" PRIu64 ": %s",
                   s->seed, s->first_world, s->first_world + s->worlds - 1, s->spec->name, doing,
                   s->steps, why && *why ? why : strerror(rc < 0 && rc > -4096 ? -rc : EIO));
}

int rm_stepping_begin(struct rm_stepping *s, struct rm_error *error)
{
    for (uint32_t i = 0; i < s->plan->policies; i++)
        if (!s->shared)
            s->policies[i].reserved = false;
    rm_arrivals_reset(&s->arrivals);
    int rc = open_rows(s, 0, error);
    if (rc < 0)
        return rc;
    enter(s, RM_PHASE_ENVIRONMENT);
    rc = s->world.ops->reset(s->env, s->buffers);
    enter(s, RM_PHASE_OTHER);
    if (rc < 0)
        return world_failed(s, rc, "reset", error);
    s->started = true;
    return 0;
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
    const uint8_t *frames[STACK_MAX];
    size_t at = lane * p->ring->spec.obs_bytes;

    for (uint32_t back = 0; back < s->stack; back++) {
        const uint8_t *frame = NULL;
        if (back == 0 || (!p->slots && back <= age)) {
            frame = rows[back] + at;
        } else if (p->slots) {
            uint64_t index = rm_sorrel_slots_back(&p->slots[lane], back, flags);
            if (index != RM_SORREL_NEVER)
                frame = rm_ring_row(p->ring, index).obs + at;
        }
        frames[s->stack - 1 - back] = frame;
    }
    rm_features_stack(p->kind, frames, s->stack, x);
}

static void gather_lane(struct rm_stepping *s, struct rm_stepping_policy *p,
                        const uint8_t *const *rows, uint32_t agent, uint32_t w)
{
    const struct rm_ring_spec *spec = &p->ring->spec;
    size_t lane = (size_t)s->plan->agent_slot[agent] * s->worlds + w;
    size_t own = (size_t)agent * s->worlds + w;
    float *x = p->x + (size_t)p->gathered * p->acting.inputs;

    if (s->stack == 1)
        rm_features_decode(p->kind, p->row.obs + lane * spec->obs_bytes, x);
    else
        stack_frames(s, p, rows, lane, s->arrivals.age[own], p->row.flags[lane], x);
    if (p->mask)
        memcpy(p->mask + (size_t)p->gathered * spec->mask_bytes,
               p->row.mask + lane * spec->mask_bytes, spec->mask_bytes);
    p->lane[p->gathered] = s->lane_ids[own];
    p->to[p->gathered] = &p->row.action[lane];
    if (++p->gathered == p->acting.chunk)
        answer_gathered(s, p);
}

/* Explorers have their action in explored[], the others -1 there; NULL: nobody explores. */
static void act_gathering(struct rm_stepping *s, struct rm_stepping_policy *p, uint32_t agent,
                          const int32_t *explored)
{
    const uint8_t *rows[STACK_MAX];
    size_t lane = (size_t)s->plan->agent_slot[agent] * s->worlds;

    for (uint32_t back = 0; back < s->stack; back++)
        rows[back] = rm_ring_row(p->ring, p->row.index - back).obs;
    for (uint32_t w = 0; w < s->worlds; w++) {
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
    size_t lane = (size_t)s->plan->agent_slot[agent] * s->worlds;
    int32_t *action = p->row.action + lane;

    rm_acting_greedy(&p->acting, (const float *)(const void *)(p->row.obs + lane * spec->obs_bytes),
                     s->worlds, s->lane_ids + (size_t)agent * s->worlds, s->steps,
                     p->row.mask ? p->row.mask + lane * spec->mask_bytes : NULL, action);
    for (uint32_t w = 0; explorers && w < s->worlds; w++)
        action[w] = explored[w] >= 0 ? explored[w] : action[w];
}

static void act(struct rm_stepping *s, uint32_t agent, bool exploring)
{
    struct rm_stepping_policy *p = &s->policies[s->plan->agent_policy[agent]];
    size_t lane = (size_t)s->plan->agent_slot[agent] * s->worlds;
    uint32_t explorers = 0;

    if (exploring)
        explorers = rm_acting_explore(
            s->seed, s->lane_ids[(size_t)agent * s->worlds], s->worlds, s->steps, s->bound,
            p->acting.actions, p->row.mask ? p->row.mask + lane * p->ring->spec.mask_bytes : NULL,
            s->explored);
    if (s->stack == 1 && p->kind->dtype == RM_ENV_F32 && s->worlds >= DIRECT_WORLDS &&
        explorers <= DIRECT_EXPLORERS(s->worlds))
        act_in_place(s, p, agent, s->explored, explorers);
    else
        act_gathering(s, p, agent, explorers ? s->explored : NULL);
    /* Last observations get no answer: 0, so that rows do not depend on how they were made. */
    rm_scan_clear(p->row.action + lane, p->row.flags + lane, ENDED, s->worlds);
}

static void push_slots(struct rm_stepping *s, struct rm_stepping_policy *p, uint32_t agent)
{
    size_t lane = (size_t)s->plan->agent_slot[agent] * s->worlds;

    for (uint32_t w = 0; w < s->worlds; w++)
        rm_sorrel_slots_push(&p->slots[lane + w], p->row.index, p->row.flags[lane + w]);
}

/* Takes what the agents of `phase` were given and writes their answers into the rows. */
static int act_phase(struct rm_stepping *s, uint32_t phase, bool exploring, struct rm_error *error)
{
    for (uint32_t a = 0; a < s->spec->agents; a++) {
        if (s->spec->agent[a].phase != phase)
            continue;
        struct rm_stepping_policy *p = &s->policies[s->plan->agent_policy[a]];
        struct rm_arrival in = {.obs = s->buffers[a].obs,
                                .mask = s->buffers[a].mask,
                                .reward = s->buffers[a].reward,
                                .flags = s->buffers[a].flags};
        uint32_t counted;
        int rc = rm_arrivals_take(&s->arrivals, a, s->steps, &in, &counted, error);
        if (rc < 0)
            return rc;
        p->counted += counted;
        if (a == 0)
            s->agent0_counted = counted;
        s->actions[a] = p->row.action + (size_t)s->plan->agent_slot[a] * s->worlds;
        act(s, a, exploring);
        if (p->slots)
            push_slots(s, p, a);
    }
    for (uint32_t i = 0; i < s->plan->policies; i++)
        answer_gathered(s, &s->policies[i]);
    return 0;
}

int rm_stepping_step(struct rm_stepping *s, struct rm_error *error)
{
    bool exploring = false;

    if (s->explore) {
        set_bounds(s);
        exploring = anybody_explores(s);
    }
    for (uint32_t i = 0; i < s->plan->policies; i++)
        s->policies[i].counted = 0;
    for (uint32_t phase = 0; phase < s->spec->phases; phase++) {
        enter(s, RM_PHASE_INFERENCE);
        int rc = act_phase(s, phase, exploring, error);
        if (rc < 0)
            return rm_fail_within(error, rc, "seed %" PRIu64, s->seed);
        enter(s, RM_PHASE_RING);
        close_rows(s, phase);
        rc = open_rows(s, (phase + 1) % s->spec->phases, error);
        if (rc < 0)
            return rc;
        enter(s, RM_PHASE_ENVIRONMENT);
        rc = s->world.ops->step(s->env, phase, s->actions, s->buffers);
        if (rc < 0)
            return world_failed(s, rc, "step", error);
    }
    enter(s, RM_PHASE_OTHER);
    s->steps++;
    return 0;
}
