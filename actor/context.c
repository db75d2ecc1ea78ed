#include "actor/context.h"

#include "actor/worlds/worlds.h"
#include "learner/net/features.h"
#include "learner/net/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOT_ACTING (RM_ENV_TERMINATED | RM_ENV_TRUNCATED | RM_ENV_DEAD)

/* --- making ---------------------------------------------------------------------------------- */

/* That histories are possible with such agents, the plan has checked. */
static int check(const struct rm_env_agent *agent, const struct rm_net_shape *shape,
                 struct rm_error *error)
{
    const uint32_t codes = rm_features_codes(agent), width = shape->dim[1];
    if ((shape->history.query_codes && codes != shape->history.query_codes) ||
        agent->actions != shape->actions ||
        width != rm_history_width(rm_features_step_count(agent)) ||
        shape->dim[0] != 3 * shape->history.queries + 2)
        return rm_fail(
            error, -EINVAL,
            "agent %s has %u different observations and %u actions, rows of %u numbers; "
            "the network takes %u, %u and %u",
            agent->name, codes, agent->actions, rm_history_width(rm_features_step_count(agent)),
            shape->history.query_codes ? shape->history.query_codes : codes, shape->actions, width);
    return 0;
}

/* A lane's input ends with the query: the latest observation. */
static float *query_of(const struct rm_context *c, uint32_t lane)
{
    return c->x + ((size_t)lane * (c->places + 1) + c->places) * c->width;
}

int rm_context_create(struct rm_context **out, const struct rm_env_agent *agent,
                      const struct rm_net_shape *shape, const struct rm_net *net, uint32_t lanes,
                      struct rm_error *error)
{
    *out = NULL;
    int rc = check(agent, shape, error);
    struct rm_context *c = rc == 0 ? calloc(1, sizeof *c) : NULL;
    if (!c)
        return rc < 0 ? rc : rm_fail(error, -ENOMEM, "no memory for a context");
    c->agent = agent;
    c->lanes = lanes;
    c->region = shape->history.queries;
    c->types = shape->history.types;
    c->query_codes = shape->history.query_codes;
    c->places = shape->dim[0] - shape->history.queries;
    c->width = shape->dim[1];
    const size_t floats = (size_t)lanes * (c->places + 1) * c->width;
    c->lane = calloc(lanes, sizeof *c->lane);
    c->rows = calloc(floats, sizeof *c->rows);
    c->x = calloc(floats, sizeof *c->x);
    c->obs = calloc(lanes, rm_env_obs_bytes(agent));
    if (!c->lane || !c->rows || !c->x || !c->obs)
        rc = rm_fail(error, -ENOMEM, "no memory for the context of %u lanes", lanes);
    else if (net)
        rc = rm_net_cache_create(&c->cache, net, lanes, error);
    if (rc < 0) {
        rm_context_destroy(c);
        return rc;
    }
    for (uint32_t lane = 0; lane < lanes; lane++)
        rm_history_put(query_of(c, lane), RM_HISTORY_QUERY, 0, NULL, 0);
    rm_context_forget(c);
    *out = c;
    return 0;
}

void rm_context_destroy(struct rm_context *c)
{
    if (!c)
        return;
    rm_net_cache_destroy(c->cache);
    free(c->lane);
    free(c->rows);
    free(c->x);
    free(c->obs);
    free(c);
}

/* --- a lane's rows --------------------------------------------------------------------------- */

static float *rows_of(const struct rm_context *c, uint32_t lane)
{
    return c->rows + (size_t)lane * (c->places + 1) * c->width;
}

static void put_mark(struct rm_context *c, uint32_t lane, enum rm_history_kind kind)
{
    struct rm_context_lane *l = &c->lane[lane];
    rm_history_put(rows_of(c, lane) + (size_t)l->rows++ * c->width, kind, 0, NULL,
                   c->width - RM_HISTORY_FEATURES);
}

static void forget(struct rm_context *c, uint32_t lane)
{
    c->lane[lane] = (struct rm_context_lane){.rows = 0};
    put_mark(c, lane, RM_HISTORY_BEGIN);
    if (c->cache)
        rm_net_cache_forget(c->cache, lane);
}

void rm_context_forget(struct rm_context *c)
{
    for (uint32_t lane = 0; lane < c->lanes; lane++)
        forget(c, lane);
}

/* The current region becomes the region before; what was before that is dropped, so all positions
 * change. */
static void close_region(struct rm_context *c, uint32_t lane)
{
    struct rm_context_lane *l = &c->lane[lane];
    float *rows = rows_of(c, lane);
    l->rows -= l->begin;
    memmove(rows, rows + (size_t)l->begin * c->width, (size_t)l->rows * c->width * sizeof *rows);
    put_mark(c, lane, RM_HISTORY_END);
    l->begin = l->rows;
    put_mark(c, lane, RM_HISTORY_BEGIN);
    if (c->cache)
        rm_net_cache_forget(c->cache, lane);
}

/* The transition from where the lane acted to `obs`. */
static void add_transition(struct rm_context *c, uint32_t lane, const uint8_t *obs, float reward)
{
    struct rm_context_lane *l = &c->lane[lane];
    float *row = rows_of(c, lane) + (size_t)l->rows++ * c->width;
    rm_history_put(row, RM_HISTORY_TRANSITION, 0, NULL, 0);
    rm_features_step(c->agent, c->obs + (size_t)lane * rm_env_obs_bytes(c->agent),
                     (uint32_t)l->action, reward, obs, row + RM_HISTORY_FEATURES);
    if (l->ends || l->rows - l->begin - 1 == c->region)
        close_region(c, lane);
    l->acted = l->ends = false;
}

/* --- steps ----------------------------------------------------------------------------------- */

int rm_context_see(struct rm_context *c, const struct rm_context_step *s, struct rm_error *error)
{
    const size_t bytes = rm_env_obs_bytes(c->agent);
    for (uint32_t i = 0; i < s->count; i++) {
        const uint32_t lane = s->first + i;
        const uint8_t *obs = s->obs + i * bytes;
        struct rm_context_lane *l = &c->lane[lane];
        if (s->flags[i] & (RM_ENV_FIRST | RM_ENV_VOID | RM_ENV_DEAD))
            l->acted = l->ends = false; /* what became of the action is not known */
        if (s->flags[i] & RM_ENV_DEAD)
            continue;
        if (!rm_features_query(c->agent, c->query_codes, obs, query_of(c, lane)))
            return rm_fail(error, -EBADMSG,
                           "lane %u of agent %s: an observation is outside of its bounds or no "
                           "whole number, so it cannot be a query",
                           lane, c->agent->name);
        if (l->acted)
            add_transition(c, lane, obs, s->reward[i]);
    }
    return 0;
}

/* The rows that the cache does not have, before the query. */
static void put_input(const struct rm_context *c, uint32_t lane, float *x)
{
    const struct rm_context_lane *l = &c->lane[lane];
    const uint32_t had = c->cache ? rm_net_cache_rows(c->cache, lane) : 0;
    const size_t given = (size_t)(l->rows - had) * c->width, all = (size_t)c->places * c->width;
    memcpy(x, rows_of(c, lane) + (size_t)had * c->width, given * sizeof *x);
    memset(x + given, 0, (all - given) * sizeof *x);
}

const float *rm_context_inputs(struct rm_context *c, const struct rm_context_step *s)
{
    const size_t floats = ((size_t)c->places + 1) * c->width;
    for (uint32_t i = 0; i < s->count; i++)
        put_input(c, s->first + i, c->x + (s->first + i) * floats);
    return c->x + s->first * floats;
}

struct rm_net_cache *rm_context_cache(const struct rm_context *c)
{
    return c->cache;
}

/* The likeliest type is the end of a region. */
static bool says_end(const float *types, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t t = 1; t < count; t++)
        best = types[t] > types[best] ? t : best;
    return best == RM_HISTORY_TYPE_END;
}

void rm_context_act(struct rm_context *c, const struct rm_context_step *s, const int32_t *action,
                    const float *types)
{
    const size_t bytes = rm_env_obs_bytes(c->agent);
    for (uint32_t i = 0; i < s->count; i++) {
        struct rm_context_lane *l = &c->lane[s->first + i];
        l->acted = !(s->flags[i] & NOT_ACTING);
        if (!l->acted)
            continue;
        l->action = action[i];
        l->ends = says_end(types + (size_t)i * c->types, c->types);
        memcpy(c->obs + (s->first + i) * bytes, s->obs + i * bytes, bytes);
    }
}
