/* Making and unmaking of a stepping: worlds, networks, buffers. */
#include "actor/stepping.h"

#include "actor/worlds/described.h"
#include "config/traits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

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

/* What a policy needs that answers for all lanes at once, being a distribution or recurrent: a
 * place for decoded observations, unless they are the network's input as they stand, and its
 * states. */
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

static int create_policy(struct rm_stepping *s, uint32_t index,
                         const struct rm_stepping_options *options, struct rm_error *error)
{
    struct rm_stepping_policy *p = &s->policies[index];
    const struct rm_policy_plan *plan = &s->plan->policy[index];
    uint32_t lanes = plan->agents * s->worlds;

    p->ring = options->rings[index];
    p->kind = &s->spec->agent[plan->agent[0]];
    p->codes = rm_network_takes_codes(&s->experiment->network);
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
    if (s->explore && s->experiment->actor.noise && !plan->frozen &&
        (rc = rm_acting_make_noisy(&p->acting, index, error)) < 0)
        return rm_fail_within(error, rc, "policy %s", plan->name);
    p->in_place = s->stack == 1 && p->kind->dtype == (p->codes ? (uint32_t)RM_ENV_I32 : RM_ENV_F32);
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
    if (options->shared && s->experiment->algorithm.form == RM_FORM_SORREL_SEQ)
        return create_slots(s, p, lanes, error);
    return 0;
}

static int create_buffers(struct rm_stepping *s, struct rm_error *error)
{
    size_t agents = s->spec->agents;

    s->policies = calloc(s->plan->policies, sizeof *s->policies);
    s->buffers = calloc(agents, sizeof *s->buffers);
    s->figures =
        s->spec->figures ? calloc(agents * s->worlds * s->spec->figures, sizeof *s->figures) : NULL;
    s->actions = calloc(agents, sizeof *s->actions);
    s->agent_counted = calloc(agents, sizeof *s->agent_counted);
    s->lane_ids = calloc(agents * s->worlds, sizeof *s->lane_ids);
    s->explored = calloc(s->worlds, sizeof *s->explored);
    s->bound = calloc(s->worlds, sizeof *s->bound);
    s->bound_episodes = calloc(s->worlds, sizeof *s->bound_episodes);
    if (!s->policies || !s->buffers || !s->actions || !s->agent_counted || !s->lane_ids ||
        !s->explored || !s->bound || !s->bound_episodes || (s->spec->figures && !s->figures))
        return rm_fail(error, -ENOMEM, "no memory for %u worlds of %zu agents", s->worlds, agents);
    for (size_t a = 0; a < agents; a++)
        for (uint32_t w = 0; w < s->worlds; w++)
            s->lane_ids[a * s->worlds + w] = (uint32_t)(a * s->total_worlds + s->first_world + w);
    for (uint32_t w = 0; w < s->worlds; w++)
        s->bound_episodes[w] = UINT64_MAX;
    return 0;
}

/* Learners know the world from its description alone: it must be what was described. */
static int check_description(const struct rm_stepping *s, struct rm_error *error)
{
    struct rm_described *described;
    if (!s->experiment->world.description)
        return 0;
    int rc = rm_described_read(&described, s->experiment->world.description, error);
    if (rc < 0)
        return rc;
    if (!rm_described_alike(rm_described_spec(described), s->spec))
        rc = rm_fail(error, -EPROTO,
                     "world %s: it does not match its description any more: %s has changed; "
                     "restart the experiment",
                     s->spec->name,
                     s->experiment->world.python[0] ? s->experiment->world.python
                                                    : s->experiment->world.library);
    rm_described_free(described);
    return rc;
}

static int create(struct rm_stepping *s, const struct rm_stepping_options *o,
                  struct rm_error *error)
{
    const struct rm_experiment *e = s->experiment;
    int rc;

    if (s->stack > RM_STEPPING_STACK_MAX)
        return rm_fail(error, -EINVAL, "sample.frame_stack: %u; at most %u", s->stack,
                       RM_STEPPING_STACK_MAX);
    const struct rm_world_config *world = o->world ? o->world : &e->world;
    if ((rc = rm_world_open_configured(&s->world, world, error)) < 0 ||
        (rc = rm_world_create(&s->world, world, o->seed, o->first_world, o->worlds, &s->env,
                              error)) < 0)
        return rc;
    s->spec = s->world.ops->describe(s->env);
    s->watch = (struct rm_watch){.world = s->spec->name,
                                 .seed = o->seed,
                                 .first_world = o->first_world,
                                 .worlds = o->worlds,
                                 .steps = &s->steps,
                                 .arrivals = &s->arrivals};
    if ((rc = check_description(s, error)) < 0)
        return rc;
    if (s->spec->agents != s->plan->agents || s->spec->phases != s->plan->phases)
        return rm_fail(error, -EPROTO, "world %s: has %u agents and %u phases now, had %u and %u",
                       s->spec->name, s->spec->agents, s->spec->phases, s->plan->agents,
                       s->plan->phases);
    if ((rc = rm_backend_cpu_create_for(&s->backend, 1, e->learner.isa, e->learner.compute,
                                        error)) < 0 ||
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
        .explore = options->explore && !rm_algorithm_traits(experiment->algorithm.name)->policy,
        .greedy = options->greedy,
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
    float *device[] = {p->x, p->state};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i])
            s->backend->ops->release(s->backend, device[i]);
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
    free(s->figures);
    free(s->actions);
    free(s->agent_counted);
    free(s->lane_ids);
    free(s->explored);
    free(s->bound);
    free(s->bound_episodes);
    rm_arrivals_destroy(&s->arrivals);
    if (s->backend)
        rm_backend_destroy(s->backend);
    if (s->env) {
        s->watch.steps = NULL; /* the arrivals are gone */
        rm_watch_enter(&s->watch, RM_WATCH_CLOSE);
        s->world.ops->close(s->env);
        rm_watch_leave();
    }
    if (s->world.ops)
        rm_world_close(&s->world);
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
