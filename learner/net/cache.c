#include "learner/net/cache.h"

#include "learner/backend/kernels.h"
#include "learner/net/history.h"
#include "learner/net/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rm_net_cache {
    struct rm_net_workspace *w;
    uint32_t lanes, most;                 /* context rows of a lane */
    uint32_t piece;                       /* rows of a pass */
    uint32_t *rows, *sum;                 /* (lanes): rows that a lane has; and would have */
    size_t at[RM_STEPS_MAX], lane_floats; /* of an attention's keys and values in those of a lane */
    float *memory;
    uint32_t *before;
    uint8_t *query; /* (piece), of struct rm_cached_rows */
};

/* Rows with room for a query, in whole blocks. */
static size_t room(const struct rm_net_cache *c)
{
    return ((size_t)c->most + RM_ATTENTION_KEYS) / RM_ATTENTION_KEYS * RM_ATTENTION_KEYS;
}

struct rm_cached_head rm_net_cache_head(const struct rm_cached_rows *rows, uint32_t step,
                                        uint32_t row, uint32_t head, uint32_t width)
{
    const struct rm_net_cache *c = rows->cache;
    const size_t floats = room(c) * width;
    float *k = c->memory + rows->lane[row] * c->lane_floats + c->at[step] + 2 * floats * head;
    return (struct rm_cached_head){k, k + floats};
}

static bool takes(const struct rm_step *s)
{
    return rm_step_ops[s->kind]->by_row || s->kind == RM_STEP_TOKENS ||
           s->kind == RM_STEP_HISTORY || s->kind == RM_STEP_QUERIES || s->kind == RM_STEP_DROPOUT ||
           s->kind == RM_STEP_ATTENTION;
}

static int check(const struct rm_net *net, uint32_t lanes, uint32_t rows, struct rm_error *error)
{
    if (net->shape.history.queries != 1)
        return rm_fail(error, -EINVAL, "cache: the network has %u queries a sample; it needs 1",
                       net->shape.history.queries);
    if (lanes == 0 || rows == 0)
        return rm_fail(error, -EINVAL, "cache: %u lanes of %u rows; at least 1 of 1", lanes, rows);
    for (uint32_t i = 0; i < net->step_count; i++)
        if (!takes(&net->steps[i]))
            return rm_fail(error, -ENOTSUP, "cache: a layer %s needs all rows at once",
                           rm_step_ops[net->steps[i].kind]->name);
    return 0;
}

static bool take_memory(struct rm_net_cache *c)
{
    const struct rm_net *net = c->w->net;
    for (uint32_t i = 0; i < net->step_count; i++)
        if (net->steps[i].kind == RM_STEP_ATTENTION) {
            c->at[i] = c->lane_floats;
            c->lane_floats += 2 * room(c) * net->steps[i].product[1].in; /* units */
        }
    c->rows = calloc(c->lanes, sizeof *c->rows);
    c->sum = calloc(c->lanes, sizeof *c->sum);
    c->before = calloc(c->piece, sizeof *c->before);
    c->query = calloc(c->piece, sizeof *c->query);
    return c->rows && c->sum && c->before && c->query &&
           rm_workspace_want(c->w, c->lane_floats > 0, &c->memory, c->lanes * c->lane_floats);
}

int rm_net_cache_create(struct rm_net_cache **out, const struct rm_net *net,
                        struct rm_backend *backend, uint32_t lanes, uint32_t rows,
                        struct rm_error *error)
{
    *out = NULL;
    int code = check(net, lanes, rows, error);
    if (code)
        return code;
    struct rm_net_cache *c = calloc(1, sizeof *c);
    if (!c)
        return rm_fail(error, -ENOMEM, "cache: out of memory");
    c->lanes = lanes;
    c->most = rows;
    const uint32_t places = net->shape.dim[0];
    code = rm_workspace_make(&c->w, net, backend, places, 1, RM_NET_ACT, false, error);
    if (!code) {
        c->piece = rm_net_group_states(c->w, 1);
        c->piece = c->piece < places ? c->piece : places;
        if (!take_memory(c))
            code = rm_fail(error, -ENOMEM, "cache: no memory for %u lanes of %u rows", lanes, rows);
    }
    if (code) {
        rm_net_cache_destroy(c);
        return code;
    }
    *out = c;
    return 0;
}

void rm_net_cache_destroy(struct rm_net_cache *c)
{
    if (!c)
        return;
    if (c->w)
        rm_net_workspace_destroy(c->w);
    free(c->rows);
    free(c->sum);
    free(c->before);
    free(c->query);
    free(c);
}

void rm_net_cache_prepare(struct rm_net_cache *c, const float *params)
{
    rm_net_prepare(c->w, params);
    memset(c->rows, 0, c->lanes * sizeof *c->rows);
}

void rm_net_cache_clear(struct rm_net_cache *c, uint32_t lane)
{
    c->rows[lane] = 0;
}

uint32_t rm_net_cache_rows(const struct rm_net_cache *c, uint32_t lane)
{
    return c->rows[lane];
}

static bool asks(const float *row)
{
    return row[0] == (float)RM_HISTORY_QUERY;
}

static bool fits(struct rm_net_cache *c, const uint32_t *lane, const float *rows, uint32_t count)
{
    memcpy(c->sum, c->rows, c->lanes * sizeof *c->sum);
    for (uint32_t i = 0; i < count; i++)
        if (!asks(rows + (size_t)i * c->w->net->shape.dim[1]) && ++c->sum[lane[i]] > c->most)
            return false;
    return true;
}

/* Some rows through all steps; returns the number of queries. */
static uint32_t pass(struct rm_net_cache *c, const float *params, const uint32_t *lane,
                     const float *rows, uint32_t count, float *out)
{
    struct rm_net_workspace *w = c->w;
    const struct rm_net *net = w->net;
    const struct rm_net_input input = {.x = rows, .batch = 1};
    struct rm_pass p = {w, w->backend, w->backend->ops, params, &input, NULL, 0, 1};
    struct rm_cached_rows cached = {c, count, lane, c->before, c->query};
    uint32_t queries = 0, picks = 0;
    for (uint32_t i = 0; i < count; i++) {
        c->query[i] = asks(rows + (size_t)i * net->shape.dim[1]);
        c->before[i] = c->rows[lane[i]];
        c->rows[lane[i]] += !c->query[i];
        queries += c->query[i];
    }
    w->x = rows;
    w->cached = &cached;
    w->spans[0][0] = 0;
    for (uint32_t i = 1; i <= queries || i == 1; i++)
        w->spans[0][i] = count;
    while (net->steps[picks].kind != RM_STEP_QUERIES)
        picks++;
    rm_net_run_steps(&p, 0, picks);
    p.states = queries;
    if (queries) {
        rm_net_run_steps(&p, picks, net->step_count);
        memcpy(out, w->steps[w->result].y, queries * net->act_outputs * sizeof *out);
    }
    w->cached = NULL;
    return queries;
}

int rm_net_cache_run(struct rm_net_cache *c, const float *params, const uint32_t *lane,
                     const float *rows, uint32_t count, float *out)
{
    const struct rm_net_input input = {.x = rows, .batch = 1};
    uint32_t queries = 0;
    if (!fits(c, lane, rows, count))
        return -ENOSPC;
    rm_net_ready(c->w, params, &input);
    for (uint32_t at = 0; at < count; at += c->piece) {
        const uint32_t n = count - at < c->piece ? count - at : c->piece;
        queries += pass(c, params, lane + at, rows + (size_t)at * c->w->net->shape.dim[1], n,
                        out + (size_t)queries * c->w->net->act_outputs);
    }
    return (int)queries;
}
