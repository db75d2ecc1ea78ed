#include "learner/net/tiles.h"

#include "learner/backend/pieces.h"
#include "learner/net/parts.h"
#include "shm/atomic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Networks with at most this many parameters, without a table (see below), use tiles: a copy of
 * their gradient for each slot costs little, and their weights leave room for a tile in a core's
 * own cache. */
#define PARAMS_MAX ((size_t)1 << 17)

/* The same where padding has no rows: a state has many rows, so a tile takes longer. Not if the
 * parameters are those of a table, most rows of which a tile does not select. */
#define TOKEN_PARAMS_MAX ((size_t)1 << 19)

/* And tables with at most this many: tiles have addresses for gradients of tables, without memory.
 */
#define TABLE_MAX ((size_t)1 << 23)

/* Rows of a tile: enough for full speed of the products, few enough that all threads get tiles and
 * that a tile fits the cache. */
#define TILE_ROWS     64u
#define TILE_ROWS_FEW 32u
#define TILE_STEP     16u
#define MANY_ROWS     256u

/* Recurrent networks use tiles of lanes through all steps: at most so many rows, and a number of
 * lanes that divides all lanes. A step's products are small, so larger networks gain too. */
#define SEQUENCE_ROWS       2048u
#define SEQUENCE_ROWS_USUAL 128u /* from this number on, powers of two are reserved at once */
#define SEQUENCE_LANES_MAX  256u
#define SEQUENCE_LANES_MIN  8u
#define SEQUENCE_PARAMS_MAX ((size_t)1 << 18)

/* Networks whose padding has no rows: the most tokens of a tile, padding included. A tile has 1 to
 * TILE_ROWS_FEW states. */
#define TILE_TOKENS 1024u

/* Packed histories use tiles of one sample, which has many rows, through all steps. */
#define HISTORY_PARAMS_MAX ((size_t)1 << 20)

/* Adding up moves each slot's gradient from one core to another; for a small network that takes as
 * long as some dozens of rows. So there are at least two slots, and more only for many rows. */
#define SLOTS_MAX 16u
#define SLOT_ROWS 256u

/* A thread's memory for taking a tile through the network, with packed weights, because reading
 * what another core has written is slow. A thread takes its previous one if that is free, else any
 * free one. */
struct bench {
    struct rm_backend *backend;
    uint64_t pass;                      /* the pass for which its weights are ready */
    struct rm_net_workspace *workspace; /* of a tile's rows */
    uint32_t *index;                    /* of an incomplete tile, or one of lanes */
    uint8_t *restart;                   /* of a tile of lanes */
    float *grads;                       /* of a tile after the first of its slot */
    _Atomic uint32_t busy;
    char pad[64];
};

struct rm_net_tiles {
    struct rm_net_workspace *parent;
    float *slot_grads; /* (SLOTS_MAX, stride) */
    size_t stride;     /* param_count, padded to a cache line */
    uint64_t pass;     /* number of the current pass */
    uint32_t reserved; /* rows of the last tile of lanes for which memory was reserved */
    uint32_t table;    /* the step of the table; RM_FROM_NOTHING: none */
    size_t first; /* the first parameter after the table's: tiles have gradients from there on */
    struct rm_token_part *tokens; /* of each tile, if there is a table */
    uint64_t prepared;            /* the first pass with the current parameters */
    struct {
        double sums[RM_NET_SUMS];
        bool odd;                  /* parent->watched: a number is not finite */
        struct rm_touched touched; /* rows of the table that the slot's tokens select */
    } slots[SLOTS_MAX];
    uint32_t bench_count;
    struct bench benches[];
};

/* One pass of all tiles. */
struct work {
    struct rm_net_tiles *tiles;
    const float *params;
    const struct rm_net_input *input;
    const struct rm_net_loss *loss;
    float *out;
    uint32_t rows, tile_count, slot_count; /* rows of a tile */
    uint32_t steps, lanes, wide; /* recurrent: steps, lanes of all and of a tile; else 0 */
    size_t states;               /* floats of a lane's states */
};

static bool recurrent(const struct rm_net *net)
{
    return rm_net_state_count(net) > 0;
}

static bool history(const struct rm_net *net)
{
    return net->shape.history.queries > 0;
}

/* Whether padding has no rows, so that the number of a state's rows varies. */
static bool varied(const struct rm_net *net)
{
    return net->set_count > 0 && !history(net);
}

/* The embedding of groups of numbers, if its tables are the first parameters of all. A tile's
 * tokens select few rows of them, so tiles leave their gradients to table_back(). */
static uint32_t table_of(const struct rm_net *net)
{
    for (uint32_t i = 0; i < net->step_count && varied(net); i++) {
        const struct rm_step *s = &net->steps[i];
        if (s->kind == RM_STEP_EMBEDDING && s->layer.columns && s->out.padded &&
            net->steps[s->from].kind == RM_STEP_TOKENS &&
            (s->layer.first_codes ? s->bias : s->weight) == 0)
            return i;
    }
    return RM_FROM_NOTHING;
}

/* The first parameter after the table's. */
static size_t after_table(const struct rm_net *net)
{
    const uint32_t table = table_of(net);
    if (table == RM_FROM_NOTHING)
        return 0;
    const struct rm_step *s = &net->steps[table];
    return s->weight + (size_t)s->layer.codes * s->out.features;
}

/* Whether there is a table whose gradients tiles do not leave out. */
static bool has_table(const struct rm_net *net)
{
    const uint32_t apart = table_of(net);
    for (uint32_t i = 0; i < net->step_count; i++)
        if (net->steps[i].kind == RM_STEP_EMBEDDING && i != apart)
            return true;
    return false;
}

static size_t params_max(const struct rm_net *net)
{
    if (recurrent(net))
        return SEQUENCE_PARAMS_MAX;
    return varied(net) && !has_table(net) ? TOKEN_PARAMS_MAX : PARAMS_MAX;
}

static bool suits(const struct rm_net *net)
{
    if (history(net))
        return !recurrent(net) && net->param_count <= HISTORY_PARAMS_MAX;
    if (net->uses_quantiles || (recurrent(net) && varied(net)) ||
        net->param_count - after_table(net) > params_max(net) || after_table(net) > TABLE_MAX)
        return false;
    for (uint32_t i = 0; i < net->step_count; i++) {
        const struct rm_step_ops *ops = rm_step_ops[net->steps[i].kind];
        if (!ops->by_row && !ops->by_lane && !ops->by_state)
            return false;
    }
    return true;
}

static uint32_t steps_of(const struct rm_net_input *input)
{
    return input->steps ? input->steps : 1;
}

/* Lanes of a tile; 0: these rows do not go in tiles. */
static uint32_t lanes_of_tile(const struct rm_net_input *input)
{
    const uint32_t steps = steps_of(input), lanes = input->batch / steps;
    for (uint32_t wide = SEQUENCE_LANES_MAX; wide >= SEQUENCE_LANES_MIN; wide /= 2)
        if (lanes % wide == 0 && lanes >= 2 * wide && wide * (uint64_t)steps <= SEQUENCE_ROWS)
            return wide;
    return 0;
}

/* States of a tile, if padding has no rows. */
static uint32_t states_of_tile(const struct rm_net *net)
{
    uint32_t tokens = 1, states = TILE_ROWS_FEW;
    for (uint32_t k = 0; k < net->set_count; k++)
        tokens = tokens < net->sets[k].tokens ? net->sets[k].tokens : tokens;
    while (states > 1 && states * tokens > TILE_TOKENS)
        states /= 2;
    return states;
}

/* Reserves memory for incomplete tiles; that for whole ones is there. */
static bool reserve_rests(struct rm_backend *b, const struct rm_net *net, bool training)
{
    for (uint32_t i = 0; i < net->step_count; i++)
        for (uint32_t j = 0; j < net->steps[i].product_count; j++)
            for (uint32_t rows = TILE_STEP; rows < TILE_ROWS; rows += TILE_STEP) {
                const struct rm_net_product *m = &net->steps[i].product[j];
                if (b->ops->reserve(b, rows, m->in, m->out, training))
                    return false;
            }
    return true;
}

/* Reserves memory for the gradients of tiles of lanes, which have steps times lanes rows. */
static bool reserve_sequence(struct rm_backend *b, const struct rm_net *net, uint32_t rows)
{
    for (uint32_t i = 0; i < net->step_count; i++)
        for (uint32_t j = 0; j < net->steps[i].product_count; j++) {
            const struct rm_net_product *m = &net->steps[i].product[j];
            if (b->ops->reserve(b, rows, m->in, m->out, true))
                return false;
        }
    return true;
}

bool rm_net_tiles_take(struct rm_net_tiles *t, const struct rm_net_input *input)
{
    if (!t || !recurrent(t->parent->net))
        return t;
    const uint32_t rows = lanes_of_tile(input) * steps_of(input);
    if (rows == 0 || !t->parent->training || rows == t->reserved)
        return rows > 0;
    for (uint32_t i = 0; i < t->bench_count; i++)
        if (!reserve_sequence(t->benches[i].backend, t->parent->net, rows))
            return false;
    t->reserved = rows;
    return true;
}

static int make_bench(struct bench *bench, const struct rm_net_workspace *parent,
                      struct rm_error *error)
{
    const struct rm_backend_ops *ops = parent->backend->ops;
    const struct rm_net *net = parent->net;
    const uint32_t whole = parent->max_batch < SEQUENCE_ROWS ? parent->max_batch : SEQUENCE_ROWS;
    const uint32_t rows = recurrent(net) ? whole
                          : history(net) ? 1
                          : varied(net)  ? states_of_tile(net)
                                         : TILE_ROWS;
    bench->index = calloc(rows, sizeof *bench->index);
    bench->restart = calloc(rows, 1);
    if (!bench->index || !bench->restart || ops->view(parent->backend, &bench->backend))
        return rm_fail(error, -ENOMEM, "network: no memory for a thread's part of it");
    int code = rm_workspace_make(&bench->workspace, net, bench->backend, rows, 1, parent->use,
                                 false, error);
    if (code)
        return code;
    bool ready = net->set_count || reserve_rests(bench->backend, net, parent->training);
    for (uint32_t n = rows; ready && parent->training && recurrent(net) && n >= SEQUENCE_ROWS_USUAL;
         n /= 2)
        ready = reserve_sequence(bench->backend, net, n);
    if (!ready)
        return rm_fail(error, -ENOMEM, "network: no memory for kernels");
    if (!parent->training)
        return 0;
    bench->workspace->later = table_of(net);
    bench->grads = ops->alloc(parent->backend, net->param_count);
    if (!bench->grads)
        return rm_fail(error, -ENOMEM, "network: no memory for a thread's gradients");
    return 0;
}

static uint32_t slots_of(uint32_t rows, uint32_t tiles)
{
    uint32_t slots = 2; /* a power of two, so that few threads get equal shares */
    while (slots < SLOTS_MAX && slots * SLOT_ROWS < rows)
        slots *= 2;
    return slots < tiles ? slots : tiles;
}

/* Memory for the tokens of tiles, and a list for each slot; false: there is none. */
static bool make_lists(struct rm_net_tiles *t)
{
    if (t->table == RM_FROM_NOTHING)
        return true;
    t->tokens = calloc(t->parent->max_batch, sizeof *t->tokens);
    const uint32_t states = t->parent->max_batch;
    const uint32_t slots =
        slots_of(states * SLOT_ROWS, rm_pieces(states, states_of_tile(t->parent->net)));
    bool made = t->tokens;
    for (uint32_t i = 0; made && i < slots; i++)
        made = rm_touched_make(&t->slots[i].touched, &t->parent->net->steps[t->table]);
    return made;
}

int rm_net_tiles_create(struct rm_net_tiles **out, struct rm_net_workspace *parent,
                        struct rm_error *error)
{
    const struct rm_net *net = parent->net;
    const struct rm_backend_ops *ops = parent->backend->ops;
    uint32_t threads = parent->backend->threads;
    bool useful = parent->training || (threads > 1 && parent->max_batch >= RM_TILES_WORTH);
    *out = NULL;
    if (!ops->view || !ops->run || !useful || !suits(net))
        return 0;
    struct rm_net_tiles *t = calloc(1, sizeof *t + threads * sizeof t->benches[0]);
    if (!t)
        return rm_fail(error, -ENOMEM, "network: out of memory");
    t->parent = parent;
    t->bench_count = threads;
    t->table = table_of(net);
    t->first = after_table(net);
    t->stride = (net->param_count + 15) / 16 * 16;
    int code = 0;
    for (uint32_t i = 0; i < threads && !code; i++)
        code = make_bench(&t->benches[i], parent, error);
    if (!code && parent->training) {
        t->slot_grads = ops->alloc(parent->backend, SLOTS_MAX * t->stride);
        if (!t->slot_grads || !make_lists(t))
            code = rm_fail(error, -ENOMEM, "network: no memory for gradients of tiles");
    }
    if (code) {
        rm_net_tiles_destroy(t);
        return code;
    }
    *out = t;
    return 0;
}

void rm_net_tiles_destroy(struct rm_net_tiles *t)
{
    if (!t)
        return;
    const struct rm_backend_ops *ops = t->parent->backend->ops;
    for (uint32_t i = 0; i < t->bench_count; i++) {
        struct bench *bench = &t->benches[i];
        rm_net_workspace_destroy(bench->workspace);
        free(bench->index);
        free(bench->restart);
        ops->release(t->parent->backend, bench->grads);
        if (bench->backend)
            bench->backend->ops->destroy(bench->backend);
    }
    for (uint32_t i = 0; i < SLOTS_MAX; i++)
        rm_touched_free(&t->slots[i].touched);
    ops->release(t->parent->backend, t->slot_grads);
    free(t->tokens);
    free(t);
}

/* --- a tile ---------------------------------------------------------------------------------- */

/* There are as many such structs as threads, so one is free. */
static struct bench *take_bench(struct rm_net_tiles *t)
{
    static _Thread_local uint32_t mine;
    for (uint32_t i = mine % t->bench_count;; i = (i + 1) % t->bench_count)
        if (RM_TOTAL_EXCHANGE(&t->benches[i].busy, 1) == 0) {
            mine = i;
            return &t->benches[i];
        }
}

static void return_bench(struct bench *bench)
{
    RM_TOTAL_STORE(&bench->busy, 0);
}

/* Prefetches lines that another core has written or read, all at once instead of one by one.
 * Prefetching more than that would be wasted. */
#define FETCH_MAX ((size_t)1 << 15)

static void fetch(const float *p, size_t n, bool write)
{
    for (size_t i = 0; i < n && n <= FETCH_MAX; i += 16)
        if (write)
            __builtin_prefetch(p + i, 1, 2);
        else
            __builtin_prefetch(p + i, 0, 2);
}

/* Prepares weights and noise, once per thread and pass. */
static void make_ready(struct bench *bench, const struct work *work)
{
    const struct rm_net_tiles *t = work->tiles;
    if (bench->pass == t->pass)
        return;
    fetch(work->params + t->first, t->parent->net->param_count - t->first, false);
    if (bench->pass < t->prepared)
        rm_net_prepare(bench->workspace, work->params);
    rm_net_ready(bench->workspace, work->params, work->input);
    bench->pass = t->pass;
}

void rm_net_tiles_prepare(struct rm_net_tiles *t)
{
    t->prepared = t->pass + 1;
}

/* The input of some lanes, with all steps. */
static struct rm_net_input lanes_of(const struct work *work, struct bench *bench, uint32_t tile)
{
    struct rm_net_input input = *work->input;
    const uint32_t first = tile * work->wide;
    const size_t floats = (size_t)first * work->states;
    for (uint32_t t = 0, n = 0; t < work->steps; t++)
        for (uint32_t i = 0; i < work->wide; i++, n++) {
            const uint32_t row = t * work->lanes + first + i;
            bench->index[n] = input.index ? input.index[row] : row;
            bench->restart[n] = input.restart ? input.restart[row] : 0;
        }
    input.batch = work->rows;
    input.index = bench->index;
    input.restart = input.restart ? bench->restart : NULL;
    input.state = input.state ? input.state + floats : NULL;
    input.next_state = input.next_state ? input.next_state + floats : NULL;
    return input;
}

/* The rows of a tile. An incomplete tile is filled up to a multiple of TILE_STEP with its last row,
 * whose gradients will be zero, because the backend has kernels for few numbers of rows; not if the
 * number of rows varies anyway. */
static struct rm_net_input rows_of(const struct work *work, struct bench *bench, uint32_t tile)
{
    if (work->wide)
        return lanes_of(work, bench, tile);
    struct rm_net_input input = *work->input;
    const uint32_t first = tile * work->rows, left = input.batch - first;
    const uint32_t rows = left < work->rows ? left : work->rows;
    input.rows_before += first;
    const uint32_t step = work->tiles->parent->net->set_count ? 1 : TILE_STEP;
    input.batch = (rows + step - 1) / step * step;
    if (rows < input.batch) {
        for (uint32_t i = 0; i < input.batch; i++) {
            const uint32_t row = first + (i < rows ? i : rows - 1);
            bench->index[i] = input.index ? input.index[row] : row;
        }
        input.index = bench->index;
    } else if (input.index) {
        input.index += first;
    } else {
        input.x = (const float *)input.x + (size_t)first * work->tiles->parent->net->shape.inputs;
    }
    return input;
}

static uint32_t rows_in(const struct work *work, uint32_t tile)
{
    const uint32_t left = work->input->batch - tile * work->rows;
    return left < work->rows ? left : work->rows;
}

/* The tile writes the codes and the gradients of its tokens into the parent's buffers, where
 * table_back() reads them. Each tile has room for all its tokens, padding included. */
static void lend_memory(const struct work *work, struct bench *bench, uint32_t tile)
{
    const struct rm_net_tiles *t = work->tiles;
    if (t->table == RM_FROM_NOTHING)
        return;
    const struct rm_step *s = &t->parent->net->steps[t->table];
    const size_t token = (size_t)tile * work->rows * s->out.tokens;
    struct rm_step_buffers *of = t->parent->steps, *to = bench->workspace->steps;
    to[s->from].y = of[s->from].y + token * s->in.features;
    to[t->table].dy = of[t->table].dy + token * s->out.features;
}

static void forward_tile(void *user, uint32_t tile)
{
    const struct work *work = user;
    struct rm_net_tiles *t = work->tiles;
    struct bench *bench = take_bench(t);
    const struct rm_net_input input = rows_of(work, bench, tile);
    uint32_t outputs = rm_net_workspace_outputs(t->parent);
    if (t->parent->training)
        lend_memory(work, bench, tile);
    make_ready(bench, work);
    const float *out = rm_net_forward_ready(bench->workspace, work->params, &input);
    if (work->wide)
        for (uint32_t s = 0; s < work->steps; s++)
            memcpy(work->out + (s * (size_t)work->lanes + tile * work->wide) * outputs,
                   out + (size_t)s * work->wide * outputs, work->wide * outputs * sizeof *out);
    else
        memcpy(work->out + (size_t)tile * work->rows * outputs, out,
               (size_t)rows_in(work, tile) * outputs * sizeof *out);
    return_bench(bench);
}

/* A tile's tokens, in the parent's buffers, listed while their numbers are in this core's cache. */
static struct rm_token_part tokens_of(const struct rm_net_tiles *t,
                                      const struct rm_net_workspace *w, uint32_t states,
                                      struct rm_touched *list)
{
    const struct rm_step *s = &t->parent->net->steps[t->table];
    struct rm_token_part part = {.codes = (const int32_t *)(const void *)w->steps[s->from].y,
                                 .dy = w->steps[t->table].dy,
                                 .rows = w->spans[s->out.padded - 1][states]};
    if (t->parent->touched.rows) {
        part.listed = list->rows + list->count;
        part.listed_count = list->count;
        rm_embedding_list(w->backend, s, &part, list);
        part.listed_count = list->count - part.listed_count;
    }
    return part;
}

static void learn_tile(const struct work *work, struct bench *bench, uint32_t tile, uint32_t slot,
                       float *grads)
{
    struct rm_net_tiles *t = work->tiles;
    double *const sums = t->slots[slot].sums;
    const struct rm_net_input input = rows_of(work, bench, tile);
    const uint32_t rows = rows_in(work, tile), outputs = t->parent->net->outputs;
    struct rm_net_workspace *w = bench->workspace;
    lend_memory(work, bench, tile);
    const float *out = rm_net_forward_ready(w, work->params, &input);
    if (t->parent->watched)
        t->slots[slot].odd = t->slots[slot].odd || !rm_net_results_finite(w, &input);
    for (uint32_t s = 0; s < work->steps; s++) {
        const size_t at = (size_t)s * work->wide * outputs;
        work->loss->rows(work->loss->self, s * work->lanes + tile * work->wide, work->wide,
                         out + at, w->d_out + at, sums);
    }
    if (!work->wide)
        work->loss->rows(work->loss->self, tile * work->rows, rows, out, w->d_out, sums);
    memset(w->d_out + (size_t)rows * outputs, 0,
           (size_t)(input.batch - rows) * outputs * sizeof *w->d_out);
    rm_net_backward(w, work->params, &input, w->d_out, grads);
    if (t->table != RM_FROM_NOTHING)
        t->tokens[tile] = tokens_of(t, w, rows, &t->slots[slot].touched);
}

static void learn_slot(void *user, uint32_t slot)
{
    const struct work *work = user;
    struct rm_net_tiles *t = work->tiles;
    struct bench *bench = take_bench(t);
    const size_t first = t->first, n = t->parent->net->param_count - first;
    float *grads = t->slot_grads + slot * t->stride;
    const uint32_t begin = (uint32_t)((uint64_t)slot * work->tile_count / work->slot_count);
    const uint32_t end = (uint32_t)((slot + 1ull) * work->tile_count / work->slot_count);
    memset(t->slots[slot].sums, 0, sizeof t->slots[slot].sums);
    t->slots[slot].odd = false;
    rm_touched_forget(&t->slots[slot].touched);
    make_ready(bench, work);
    fetch(grads + first, n, true);
    for (uint32_t tile = begin; tile < end; tile++) {
        learn_tile(work, bench, tile, slot, tile == begin ? grads : bench->grads);
        if (tile != begin)
            bench->backend->ops->add(bench->backend, grads + first, bench->grads + first, n,
                                     grads + first);
    }
    return_bench(bench);
}

/* --- all tiles ------------------------------------------------------------------------------- */

static void cut(struct work *work)
{
    const struct rm_net *net = work->tiles->parent->net;
    if (recurrent(net)) {
        work->steps = steps_of(work->input);
        work->lanes = work->input->batch / work->steps;
        work->wide = lanes_of_tile(work->input);
        work->states = rm_workspace_states(work->tiles->parent);
        work->rows = work->steps * work->wide;
        work->tile_count = work->lanes / work->wide;
        return;
    }
    const uint32_t rows = work->input->batch;
    if (history(net)) {
        work->rows = 1;
        work->tile_count = rows;
        return;
    }
    work->rows = varied(net) ? states_of_tile(net) : rows < MANY_ROWS ? TILE_ROWS_FEW : TILE_ROWS;
    work->tile_count = rm_pieces(rows, work->rows);
    if (varied(net) && rows) { /* of about one size, since the last one is waited for */
        work->rows = rm_pieces(rows, work->tile_count);
        work->tile_count = rm_pieces(rows, work->rows);
    }
}

/* The gradient of the table from all tokens, in their order: where the tiles have left them, or
 * with those of all tiles moved together. */
static void table_back(struct rm_net_tiles *t, const struct work *work, float *grads)
{
    struct rm_net_workspace *w = t->parent;
    const struct rm_step *s = &w->net->steps[t->table];
    const size_t numbers = s->in.features, units = s->out.features;
    const struct rm_pass p = {w,     w->backend, w->backend->ops,   work->params, work->input,
                              grads, 0,          work->input->batch};
    if (w->touched.rows) {
        rm_embedding_touched(&p, s, t->tokens, work->tile_count);
        return;
    }
    float *codes = w->steps[s->from].y, *dy = w->steps[t->table].dy;
    uint32_t *spans = w->spans[s->out.padded - 1];
    size_t at = 0;
    for (const struct rm_token_part *of = t->tokens; of < t->tokens + work->tile_count; of++) {
        memmove(codes + at * numbers, of->codes, of->rows * numbers * sizeof *codes);
        memmove(dy + at * units, of->dy, of->rows * units * sizeof *dy);
        at += of->rows;
    }
    spans[0] = 0;
    spans[work->input->batch] = (uint32_t)at;
    rm_step_ops[s->kind]->backward(&p, s, &(struct rm_rows){.x = codes, .dy = dy});
}

/* For the facts of the network (facts.c). */
static void count_tokens(struct rm_net_tiles *t)
{
    for (uint32_t i = 0; i < t->bench_count; i++)
        for (uint32_t k = 0; k < t->parent->net->set_count; k++) {
            struct rm_net_workspace *w = t->benches[i].workspace;
            t->parent->tokens[k] += w->tokens[k];
            t->parent->padding[k] += w->padding[k];
            w->tokens[k] = w->padding[k] = 0;
        }
}

void rm_net_tiles_learn(struct rm_net_tiles *t, const float *params,
                        const struct rm_net_input *input, const struct rm_net_loss *loss,
                        float *grads, double sums[RM_NET_SUMS])
{
    struct rm_backend *b = t->parent->backend;
    struct work work = {.tiles = t, .params = params, .input = input, .loss = loss};
    cut(&work);
    const uint32_t rows = t->parent->net->set_count ? SLOT_ROWS : 1; /* a state has many */
    work.slot_count = slots_of(input->batch * rows, work.tile_count);
    t->pass++;
    b->ops->run(b, learn_slot, &work, work.slot_count);
    b->ops->sum_parts(b, t->slot_grads + t->first, work.slot_count, t->stride,
                      t->parent->net->param_count - t->first, grads + t->first);
    if (t->table != RM_FROM_NOTHING)
        table_back(t, &work, grads);
    else
        t->parent->touched_grads = NULL; /* tiles wrote to all rows */
    count_tokens(t);
    for (uint32_t s = 0; s < work.slot_count; s++) {
        t->parent->odd = t->parent->odd || t->slots[s].odd;
        for (uint32_t i = 0; i < RM_NET_SUMS; i++)
            sums[i] += t->slots[s].sums[i];
    }
}

void rm_net_tiles_forward(struct rm_net_tiles *t, const float *params,
                          const struct rm_net_input *input, float *out)
{
    struct rm_backend *b = t->parent->backend;
    struct work work = {.tiles = t, .params = params, .input = input, .out = out};
    cut(&work);
    t->pass++;
    b->ops->run(b, forward_tile, &work, work.tile_count);
    count_tokens(t);
}
