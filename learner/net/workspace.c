/* All buffers, allocated once. Results (without training) and gradients share memory: once the last
 * reader of a buffer is done, the next step that needs a buffer uses it. */
#include "learner/net/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OWNED_MAX                                                                                  \
    (RM_STEPS_MAX * (RM_KEPT_MAX + 7 * RM_NET_PRODUCTS_MAX + 3) + 2 * RM_TOKEN_SETS_MAX + 8)

bool rm_workspace_want(struct rm_net_workspace *w, bool needed, float **p, size_t floats)
{
    if (!needed)
        return true;
    if (w->owned_count == OWNED_MAX)
        return false;
    *p = w->backend->ops->alloc(w->backend, floats);
    if (!*p)
        return false;
    w->owned[w->owned_count++] = *p;
    w->floats += floats;
    return true;
}

static size_t rows_of(const struct rm_net_workspace *w, const struct rm_row_form *form)
{
    return (size_t)w->max_batch * form->tokens * (form->per_quantile ? w->max_quantiles : 1);
}

/* Whether rows go through the step in groups. They do not in training, which keeps all rows, nor
 * before the quantiles, nor in recurrent networks, whose rows depend on each other, nor on a
 * device, which has no cache to fit. */
static bool in_groups(const struct rm_net_workspace *w, uint32_t index)
{
    return !w->training && !rm_on_device(w) && index >= w->net->prefix &&
           rm_net_state_count(w->net) == 0;
}

size_t rm_workspace_rows_held(const struct rm_net_workspace *w, const struct rm_step *s,
                              const struct rm_row_form *form)
{
    if (!in_groups(w, (uint32_t)(s - w->net->steps)))
        return rows_of(w, form);
    uint32_t q = w->net->uses_quantiles ? w->max_quantiles : 1;
    size_t states = rm_net_group_states(w, q), most = w->max_batch;
    /* With fewer quantiles than the maximum, groups have more states and as many rows. */
    if (form->per_quantile) {
        size_t rows = (size_t)RM_GROUP_ROWS * w->backend->threads;
        rows = rows > w->max_quantiles ? rows : w->max_quantiles;
        return rows < rows_of(w, form) ? rows : rows_of(w, form);
    }
    if (w->net->uses_quantiles)
        states = rm_net_group_states(w, 1);
    states = states < most ? states : most;
    if (form->padded &&
        !w->net->uses_quantiles) { /* a group has so many rows, or those of one state */
        states = rm_net_group_states(w, 1);
        states = states > form->tokens ? states : form->tokens;
        return states < rows_of(w, form) ? states : rows_of(w, form);
    }
    return states * form->tokens;
}

/* --- shared buffers -------------------------------------------------------------------------- */

struct slots {
    uint32_t count;
    size_t floats[RM_STEPS_MAX];
    bool taken[RM_STEPS_MAX];
    float *memory[RM_STEPS_MAX];
    uint32_t of[RM_STEPS_MAX]; /* step to slot; UINT32_MAX: none */
};

static void take_slot(struct slots *slots, uint32_t step, size_t floats)
{
    uint32_t best = slots->count;
    for (uint32_t i = 0; i < slots->count; i++)
        if (!slots->taken[i] && (best == slots->count || slots->floats[i] > slots->floats[best]))
            best = i;
    if (best == slots->count)
        slots->floats[slots->count++] = 0;
    slots->taken[best] = true;
    slots->of[step] = best;
    if (floats > slots->floats[best])
        slots->floats[best] = floats;
}

static void clear_slots(struct slots *slots)
{
    memset(slots, 0, sizeof *slots);
    memset(slots->of, 0xff, sizeof slots->of);
}

/* Results, or their gradients. */
static bool make_slots(struct rm_net_workspace *w, struct slots *slots, bool gradients)
{
    for (uint32_t i = 0; i < slots->count; i++)
        if (!rm_workspace_want(w, true, &slots->memory[i], slots->floats[i]))
            return false;
    for (uint32_t i = 0; i < w->net->step_count; i++)
        if (slots->of[i] != UINT32_MAX)
            *(gradients ? &w->steps[i].dy : &w->steps[i].y) = slots->memory[slots->of[i]];
    return true;
}

/* The last reader of step `index`. Steps of later groups start over, so a result from before the
 * quantiles that they read stays for good. */
static uint32_t last_reader(const struct rm_net_workspace *w, uint32_t index)
{
    const struct rm_net *net = w->net;
    uint32_t last = index;
    for (uint32_t i = index + 1; i < net->step_count; i++)
        if (w->needed[i] && (net->steps[i].from == index || net->steps[i].other == index))
            last = index < net->prefix && i >= net->prefix ? net->step_count : i;
    return last;
}

static bool take_results(struct rm_net_workspace *w)
{
    const struct rm_net *net = w->net;
    struct slots slots;
    clear_slots(&slots);
    for (uint32_t i = 0; i < net->step_count; i++) {
        const struct rm_step *s = &net->steps[i];
        struct rm_step_buffers *b = &w->steps[i];
        if (!w->needed[i])
            continue;
        b->whole = w->training || i == w->result || !in_groups(w, i);
        if (w->training || i == w->result) {
            if (!rm_workspace_want(w, true, &b->y, rows_of(w, &s->out) * s->out.features))
                return false;
            continue;
        }
        take_slot(&slots, i, rm_workspace_rows_held(w, s, &s->out) * s->out.features);
        for (uint32_t j = 0; j < i; j++)
            if (slots.of[j] != UINT32_MAX && last_reader(w, j) == i)
                slots.taken[slots.of[j]] = false;
    }
    return make_slots(w, &slots, false);
}

/* In the backward pass, the last reader of a result takes the buffer of its gradient, and the step
 * that made the result returns it. */
static bool take_gradients(struct rm_net_workspace *w)
{
    const struct rm_net *net = w->net;
    struct slots slots;
    size_t scratch[2] = {0};
    clear_slots(&slots);
    for (uint32_t i = net->step_count; i-- > 0;) {
        const uint32_t sources[2] = {net->steps[i].from, net->steps[i].other};
        for (size_t k = 0; k < 2; k++) {
            uint32_t j = sources[k];
            if (j >= net->step_count || !net->steps[j].trains)
                continue;
            size_t floats = rows_of(w, &net->steps[j].out) * net->steps[j].out.features;
            if (slots.of[j] == UINT32_MAX)
                take_slot(&slots, j, floats);
            else if (floats > scratch[k])
                scratch[k] = floats;
        }
        if (slots.of[i] != UINT32_MAX)
            slots.taken[slots.of[i]] = false;
    }
    if (!make_slots(w, &slots, true))
        return false;
    const struct rm_row_form *out = &net->steps[w->result].out;
    return rm_workspace_want(w, scratch[0] > 0, &w->scratch[0], scratch[0]) &&
           rm_workspace_want(w, scratch[1] > 0, &w->scratch[1], scratch[1]) &&
           rm_workspace_want(w, true, &w->d_out, rows_of(w, out) * out->features);
}

/* --- buffers of one step --------------------------------------------------------------------- */

static bool take_step(struct rm_net_workspace *w, const struct rm_step *s,
                      struct rm_step_buffers *b)
{
    const struct rm_step_ops *ops = rm_step_ops[s->kind];
    const struct rm_row_form *form = s->kind == RM_STEP_COSINE ? &s->out : &s->in;
    for (uint32_t i = 0; i < s->product_count; i++)
        if (!rm_net_product_buffers(w, &s->product[i], rows_of(w, form), &b->product[i]))
            return false;
    bool pre = w->training && ops->pre && rm_activation_reads_input(s->act);
    return rm_workspace_want(w, pre, &b->pre, rows_of(w, &s->out) * s->out.features) &&
           (!ops->buffers || ops->buffers(w, s, b));
}

static void mark_needed(struct rm_net_workspace *w)
{
    const struct rm_net *net = w->net;
    w->needed[w->result] = true;
    for (uint32_t i = net->step_count; i-- > 0;) {
        const struct rm_step *s = &net->steps[i];
        if (w->needed[i] && s->from < net->step_count)
            w->needed[s->from] = true;
        if (w->needed[i] && s->other < net->step_count)
            w->needed[s->other] = true;
    }
}

/* Allocates words of 32 bits in the backend's memory, which allocates floats. */
static bool take_words(struct rm_net_workspace *w, uint32_t **p, size_t words)
{
    float *floats = NULL;
    const bool taken = rm_workspace_want(w, true, &floats, words);
    *p = (uint32_t *)(void *)floats;
    return taken;
}

static bool take_set(struct rm_net_workspace *w, uint32_t k)
{
    const size_t spans = (size_t)w->max_batch + 1,
                 slots = (size_t)w->max_batch * w->net->sets[k].tokens;
    if (rm_on_device(w))
        return take_words(w, &w->spans[k], spans) && take_words(w, &w->slots[k], slots);
    w->spans[k] = calloc(spans, sizeof *w->spans[k]);
    w->slots[k] = calloc(slots, sizeof *w->slots[k]);
    return w->spans[k] && w->slots[k];
}

/* Allocates buffers for padding. */
static bool take_spans(struct rm_net_workspace *w)
{
    for (uint32_t k = 0; k < w->net->set_count; k++)
        if (!take_set(w, k))
            return false;
    return true;
}

static bool take_all(struct rm_net_workspace *w)
{
    const struct rm_net *net = w->net;
    mark_needed(w);
    rm_compact_choose(w);
    for (uint32_t i = 0; i < net->step_count; i++)
        if (w->needed[i] && !take_step(w, &net->steps[i], &w->steps[i]))
            return false;
    if (!take_spans(w))
        return false;
    return take_results(w) && (!w->training || take_gradients(w)) &&
           rm_workspace_want(w, true, &w->gathered, (size_t)w->max_batch * net->shape.inputs);
}

/* Allocates a chunk's buffers, and prepares kernels for incomplete chunks. */
static bool take_chunk(struct rm_net_workspace *w)
{
    const struct rm_net *net = w->net;
    struct rm_backend *b = w->backend;
    w->chunk_index = calloc(RM_CHUNK_ROWS, sizeof *w->chunk_index);
    if (!w->chunk_index || !rm_workspace_want(w, true, &w->chunk_grads, net->param_count))
        return false;
    for (uint32_t i = 0; i < net->step_count; i++)
        for (uint32_t j = 0; j < net->steps[i].product_count; j++)
            for (uint32_t rows = RM_CHUNK_STEP; rows < RM_CHUNK_ROWS; rows += RM_CHUNK_STEP)
                if (b->ops->reserve(b, rows * net->steps[i].out.tokens, net->steps[i].product[j].in,
                                    net->steps[i].product[j].out, true))
                    return false;
    return true;
}

int rm_workspace_make(struct rm_net_workspace **out, const struct rm_net *net,
                      struct rm_backend *backend, uint32_t max_batch, uint32_t max_quantiles,
                      enum rm_net_use use, bool tiles, struct rm_error *error)
{
    *out = NULL;
    if (max_batch == 0 || (net->uses_quantiles && max_quantiles == 0) ||
        (uint64_t)max_batch * (max_quantiles ? max_quantiles : 1) > (1u << 30))
        return rm_fail(error, -EINVAL,
                       "network: buffers for %u rows of %u quantiles; each at least 1, together at "
                       "most 2^30",
                       max_batch, max_quantiles);
    if (use == RM_NET_VALUE && net->value_result == RM_FROM_NOTHING)
        return rm_fail(error, -EINVAL, "network: has no state value");
    struct rm_net_workspace *w = calloc(1, sizeof *w);
    if (!w)
        return rm_fail(error, -ENOMEM, "network: out of memory");
    w->net = net;
    w->backend = backend;
    w->max_batch = max_batch;
    w->max_quantiles = net->uses_quantiles ? max_quantiles : 1;
    w->use = use;
    w->later = RM_FROM_NOTHING;
    w->training = use == RM_NET_TRAIN || use == RM_NET_LEARN;
    w->in_chunks = use == RM_NET_LEARN && !rm_on_device(w) && max_batch > RM_CHUNK_ROWS &&
                   rm_net_fits_chunks(net);
    if (w->in_chunks)
        w->max_batch = RM_CHUNK_ROWS;
    w->result = use == RM_NET_ACT     ? net->act_result
                : use == RM_NET_VALUE ? net->value_result
                                      : net->result;
    w->owned = calloc(OWNED_MAX, sizeof *w->owned);
    if (!w->owned || !take_all(w) || (w->in_chunks && !take_chunk(w))) {
        size_t bytes = rm_net_workspace_bytes(w);
        rm_net_workspace_destroy(w);
        return rm_fail(error, -ENOMEM,
                       "network: no memory for buffers of %u rows, after %zu bytes of them",
                       max_batch, bytes);
    }
    int code = tiles ? rm_net_tiles_create(&w->tiles, w, error) : 0;
    if (code) {
        rm_net_workspace_destroy(w);
        return code;
    }
    *out = w;
    return 0;
}

int rm_net_workspace_create(struct rm_net_workspace **out, const struct rm_net *net,
                            struct rm_backend *backend, uint32_t max_batch, uint32_t max_quantiles,
                            enum rm_net_use use, struct rm_error *error)
{
    return rm_workspace_make(out, net, backend, max_batch, max_quantiles, use, true, error);
}

void rm_net_workspace_destroy(struct rm_net_workspace *w)
{
    if (!w)
        return;
    rm_net_tiles_destroy(w->tiles);
    for (size_t i = 0; i < w->owned_count; i++)
        w->backend->ops->release(w->backend, w->owned[i]);
    free(w->owned);
    for (uint32_t k = 0; k < w->net->set_count && !rm_on_device(w); k++) {
        free(w->spans[k]);
        free(w->slots[k]);
    }
    free(w->chunk_index);
    rm_touched_free(&w->touched);
    free(w);
}

size_t rm_net_workspace_bytes(const struct rm_net_workspace *w)
{
    return w->floats * sizeof(float);
}

bool rm_touched_make(struct rm_touched *t, const struct rm_step *s)
{
    t->units = s->out.features;
    t->total = s->layer.first_codes + s->layer.codes;
    t->rows = calloc(t->total + 1, sizeof *t->rows);
    t->has = calloc(t->total + 1, sizeof *t->has);
    if (!t->rows || !t->has)
        return false;
    t->has[t->total] = true;
    return true;
}

void rm_touched_free(struct rm_touched *t)
{
    free(t->rows);
    free(t->has);
}

void rm_touched_forget(struct rm_touched *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        t->has[t->rows[i]] = false;
    t->count = 0;
}

/* For one embedding of groups whose tables are side by side. */
int rm_net_track_touched(struct rm_net_workspace *w, struct rm_error *error)
{
    const struct rm_step *found = NULL;
    for (uint32_t i = 0; i < w->net->step_count; i++) {
        if (w->net->steps[i].kind != RM_STEP_EMBEDDING)
            continue;
        if (found)
            return 0;
        found = &w->net->steps[i];
    }
    if (!found || !found->layer.columns || rm_on_device(w))
        return 0;
    const uint32_t firsts = found->layer.first_codes;
    w->touched_at = firsts ? found->bias : found->weight;
    if (w->touched_at + (size_t)firsts * found->out.features != found->weight)
        return 0;
    if (!rm_touched_make(&w->touched, found))
        return rm_fail(error, -ENOMEM, "network: no memory for a list of %u rows",
                       w->touched.total);
    return 0;
}

const struct rm_touched *rm_net_touched(const struct rm_net_workspace *w, const float *grads,
                                        size_t *at)
{
    *at = w->touched_at;
    return w->touched.rows && w->touched_grads == grads ? &w->touched : NULL;
}

uint32_t rm_net_workspace_outputs(const struct rm_net_workspace *w)
{
    const struct rm_row_form *out = &w->net->steps[w->result].out;
    return out->features * out->tokens;
}

void rm_net_prepare(struct rm_net_workspace *w, const float *params)
{
    (void)params; /* packed at the first use: a noisy pass needs no packed means */
    if (w->tiles)
        rm_net_tiles_prepare(w->tiles);
    for (uint32_t i = 0; i < w->net->step_count; i++) {
        w->steps[i].fresh = false;
        for (uint32_t j = 0; j < RM_NET_PRODUCTS_MAX; j++)
            w->steps[i].product[j].fresh = w->steps[i].product[j].fresh_dx = false;
    }
}
