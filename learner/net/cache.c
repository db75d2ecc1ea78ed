#include "learner/net/cache.h"

#include "learner/backend/pieces.h"
#include "learner/net/parts.h"

#include <errno.h>
#include <stdlib.h>

#define LINE_BYTES 64u

static float *floats(size_t n)
{
    const size_t bytes = (n * sizeof(float) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    return aligned_alloc(LINE_BYTES, bytes);
}

/* Memory for the attentions. */
static bool take(struct rm_net_cache *c)
{
    for (uint32_t i = 0; i < c->net->step_count; i++) {
        const struct rm_step *s = &c->net->steps[i];
        if (s->kind != RM_STEP_ATTENTION)
            continue;
        const size_t n = (size_t)c->lanes * c->rows * (s->product[0].out / 3);
        c->keys[i] = floats(n);
        c->values[i] = floats(n);
        if (!c->keys[i] || !c->values[i])
            return false;
    }
    c->count = calloc(c->lanes, sizeof *c->count);
    return c->count;
}

int rm_net_cache_create(struct rm_net_cache **out, const struct rm_net *net, uint32_t lanes,
                        struct rm_error *error)
{
    *out = NULL;
    if (net->shape.history.queries != 1)
        return rm_fail(error, -EINVAL, "network: a cache is for histories of one query, not of %u",
                       net->shape.history.queries);
    struct rm_net_cache *c = calloc(1, sizeof *c);
    if (!c)
        return rm_fail(error, -ENOMEM, "network: no memory for a cache");
    c->net = net;
    c->lanes = lanes;
    c->rows = rm_pieces(net->shape.dim[0], RM_ATTENTION_KEYS) * RM_ATTENTION_KEYS;
    if (!take(c)) {
        rm_net_cache_destroy(c);
        return rm_fail(error, -ENOMEM, "network: no memory for a cache of %u lanes of %u rows",
                       lanes, net->shape.dim[0]);
    }
    *out = c;
    return 0;
}

void rm_net_cache_destroy(struct rm_net_cache *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->net->step_count; i++) {
        free(c->keys[i]);
        free(c->values[i]);
    }
    free(c->count);
    free(c);
}

void rm_net_cache_forget(struct rm_net_cache *c, uint32_t lane)
{
    c->count[lane] = 0;
}

uint32_t rm_net_cache_rows(const struct rm_net_cache *c, uint32_t lane)
{
    return c->count[lane];
}

/* --- in a pass ------------------------------------------------------------------------------- */

uint32_t rm_cache_had(const struct rm_pass *p, uint32_t i)
{
    const struct rm_net_cache *c = p->input->cache;
    return c ? c->count[p->input->cache_lane + p->first + i] : 0;
}

void rm_cache_keep(struct rm_net_workspace *w, const struct rm_net_input *input)
{
    struct rm_net_cache *c = input->cache;
    const uint32_t *spans = w->spans[0];
    for (uint32_t i = 0; i < input->batch; i++) {
        const uint32_t rows = spans[i + 1] - spans[i];
        c->count[input->cache_lane + i] += rows ? rows - 1 : 0;
    }
}
