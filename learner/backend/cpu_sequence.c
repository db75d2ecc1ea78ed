/* Recurrent cells, attention and tokens, cut into fixed groups of lanes, heads or samples. */
#include "learner/backend/cpu.h"
#include "learner/backend/pieces.h"

#include <math.h>
#include <string.h>

#define LANES_PER_TILE   8u
#define SAMPLES_PER_TILE 16u

/* --- cells ----------------------------------------------------------------------------------- */

struct lanes {
    const struct rm_cells *cells;
    void (*run)(const struct rm_cells *cells, uint32_t from, uint32_t to);
};

static void lanes_tile(void *work, uint32_t index)
{
    const struct lanes *w = work;
    const struct rm_piece s = rm_piece(w->cells->lanes, LANES_PER_TILE, index);
    w->run(w->cells, s.from, s.from + s.n);
}

#define CELLS(name)                                                                                \
    void rm_cpu_##name(struct rm_backend *b, const struct rm_cells *cells)                         \
    {                                                                                              \
        struct rm_cpu *cpu = rm_cpu_of(b);                                                         \
        struct lanes w = {cells, cpu->kernels->name};                                              \
        /* four of tanh's polynomials an element */                                                \
        rm_cpu_run(cpu, lanes_tile, &w, rm_pieces(cells->lanes, LANES_PER_TILE),                   \
                   8.0 * cells->lanes * cells->n);                                                 \
    }
CELLS(gru)
CELLS(gru_dx)
CELLS(lstm)
CELLS(lstm_dx)
#undef CELLS

void rm_cpu_restart(struct rm_backend *b, const float *x, size_t x_stride, const uint8_t *restart,
                    uint32_t rows, uint32_t n, float *y, size_t y_stride)
{
    (void)b; /* a state is small beside the products that made it */
    for (uint32_t r = 0; r < rows; r++) {
        float *to = y + r * y_stride;
        if (!x || (restart && restart[r]))
            memset(to, 0, n * sizeof *to);
        else if (to != x + r * x_stride)
            memcpy(to, x + r * x_stride, n * sizeof *to);
    }
}

/* --- attention ------------------------------------------------------------------------------- */

struct heads {
    const struct rm_kernels *k;
    const struct rm_attention *a;
    const float *qkv, *made, *d_o;
    float *o, *stats, *d_qkv;
};

/* A tile is a head of a sample. */
static struct rm_attention_head head_of(const struct heads *w, uint32_t index)
{
    const struct rm_attention *a = w->a;
    uint32_t sample = index / a->heads, head = index % a->heads, width = a->units / a->heads;
    uint32_t from = a->spans[sample] - a->spans[0], to = a->spans[sample + 1] - a->spans[0];
    size_t at = (size_t)from * 3 * a->units + (size_t)head * width;
    size_t o_at = (size_t)from * a->units + (size_t)head * width;
    const uint32_t kept = a->kept.rows ? a->kept.rows[sample] : 0;
    const uint32_t context =
        a->queries_alone ? rm_attention_context(kept + to - from, a->queries) : kept;
    const size_t kept_at = sample * a->kept.stride + (size_t)head * width * RM_ATTENTION_KEYS;
    struct rm_attention_head h = {
        .q = w->qkv + at,
        .k = w->qkv + at + a->units,
        .v = w->qkv + at + 2 * (size_t)a->units,
        .rows = kept + to - from,
        .stride = 3 * a->units,
        .width = width,
        .scale = 1.0f / sqrtf((float)width),
        .causal = a->causal,
        .queries = a->queries,
        .first = context > kept ? context : kept, /* a sample without rows has no query */
        .kept = kept,
        .kept_keys = a->kept.rows ? a->kept.keys + kept_at : NULL,
        .kept_values = a->kept.rows ? a->kept.values + kept_at : NULL,
        .sample = sample + a->before,
        .head = head,
        .dropout = &a->dropout,
        .o_stride = a->units,
        .log_sum = w->stats + ((size_t)from * a->heads + head) * 2,
        .log_stride = 2 * a->heads,
    };
    if (!w->d_qkv) {
        h.o = w->o + o_at;
    } else {
        h.made = w->made + o_at;
        h.d_o = w->d_o + o_at;
        h.d_q = w->d_qkv + at;
        h.d_k = w->d_qkv + at + a->units;
        h.d_v = w->d_qkv + at + 2 * (size_t)a->units;
    }
    return h;
}

static void attention_tile(void *work, uint32_t index)
{
    const struct heads *w = work;
    const struct rm_attention_head h = head_of(w, index);
    if (w->d_qkv)
        w->k->attention_dx(&h);
    else
        w->k->attention(&h);
}

static void run_heads(struct rm_backend *b, struct heads *w)
{
    const struct rm_attention *a = w->a;
    struct rm_cpu *cpu = rm_cpu_of(b);
    double pairs = 0.0;
    for (uint32_t i = 0; i < a->batch; i++) {
        double rows = a->spans[i + 1] - a->spans[i];
        pairs += rows * (rows + (a->kept.rows ? a->kept.rows[i] : 0));
    }
    w->k = cpu->kernels;
    rm_cpu_run(cpu, attention_tile, w, a->batch * a->heads, pairs * a->units / 8.0);
}

void rm_cpu_attention(struct rm_backend *b, const struct rm_attention *a, const float *qkv,
                      float *o, float *stats)
{
    struct heads w = {.a = a, .qkv = qkv, .o = o, .stats = stats};
    run_heads(b, &w);
}

void rm_cpu_attention_dx(struct rm_backend *b, const struct rm_attention *a, const float *qkv,
                         const float *o, float *stats, const float *d_o, float *d_qkv)
{
    struct heads w = {.a = a, .qkv = qkv, .d_o = d_o, .made = o, .stats = stats, .d_qkv = d_qkv};
    run_heads(b, &w);
}

/* --- tokens ---------------------------------------------------------------------------------- */

struct spans {
    const struct rm_kernels *k;
    const struct rm_pointer *p;
    const uint32_t *spans;
    const float *x, *dy;
    float *y, *dx;
    uint32_t batch, n;
    bool mean;
};

static void run_spans(struct rm_backend *b, struct spans *w, rm_pool_fn fn)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    w->k = cpu->kernels;
    rm_cpu_run(cpu, fn, w, rm_pieces(w->batch, SAMPLES_PER_TILE),
               (double)(w->spans[w->batch] - w->spans[0]) * w->n);
}

/* Rows of sample i, from the first of the batch. */
static struct rm_piece rows_of(const uint32_t *spans, uint32_t i)
{
    return (struct rm_piece){spans[i] - spans[0], spans[i + 1] - spans[i]};
}

static void one_tile(void *work, uint32_t index)
{
    const struct spans *w = work;
    const struct rm_piece s = rm_piece(w->batch, SAMPLES_PER_TILE, index);
    for (uint32_t i = s.from; i < s.from + s.n; i++) {
        const struct rm_piece r = rows_of(w->spans, i);
        const size_t rows = (size_t)r.from * w->n, one = (size_t)i * w->n;
        if (w->mean && w->dx) {
            w->k->span_mean_dx(w->dy + one, r.n, w->n, w->dx + rows);
        } else if (w->mean) {
            w->k->span_mean(w->x + rows, r.n, w->n, w->y + one);
        } else if (w->dx) {
            memset(w->dx + rows, 0, (size_t)r.n * w->n * sizeof *w->dx);
            memcpy(w->dx + rows, w->dy + one, w->n * sizeof *w->dx);
        } else {
            memcpy(w->y + one, w->x + rows, w->n * sizeof *w->y);
        }
    }
}

void rm_cpu_span_one(struct rm_backend *b, const struct rm_spans *s, const float *x, uint32_t n,
                     bool mean, float *y)
{
    struct spans w = {.spans = s->spans, .x = x, .y = y, .batch = s->batch, .n = n, .mean = mean};
    run_spans(b, &w, one_tile);
}

void rm_cpu_span_one_dx(struct rm_backend *b, const struct rm_spans *s, const float *dy, uint32_t n,
                        bool mean, float *dx)
{
    struct spans w = {
        .spans = s->spans, .dy = dy, .dx = dx, .batch = s->batch, .n = n, .mean = mean};
    run_spans(b, &w, one_tile);
}

/* Copies of rows: one thread reaches the speed of memory, and the products before them take
 * longer. */
void rm_cpu_spread(struct rm_backend *b, const struct rm_spans *s, const float *x, uint32_t n,
                   float *y)
{
    (void)b;
    memset(y, 0, (size_t)s->batch * s->places * n * sizeof *y);
    for (uint32_t i = 0; i < s->batch; i++) {
        const struct rm_piece r = rows_of(s->spans, i);
        for (uint32_t k = r.from; k < r.from + r.n; k++)
            memcpy(y + ((size_t)i * s->places + s->slots[k]) * n, x + (size_t)k * n, n * sizeof *y);
    }
}

void rm_cpu_spread_dx(struct rm_backend *b, const struct rm_spans *s, const float *dy, uint32_t n,
                      float *dx)
{
    (void)b;
    for (uint32_t i = 0; i < s->batch; i++) {
        const struct rm_piece r = rows_of(s->spans, i);
        for (uint32_t k = r.from; k < r.from + r.n; k++)
            memcpy(dx + (size_t)k * n, dy + ((size_t)i * s->places + s->slots[k]) * n,
                   n * sizeof *dx);
    }
}

/* The last rows of a sample, and the number that it lacks. */
struct last {
    size_t from, rows, missing;
};

static struct last last_of(const uint32_t *spans, uint32_t i, uint32_t last)
{
    const struct rm_piece all = rows_of(spans, i);
    const uint32_t rows = rm_least(all.n, last);
    return (struct last){all.from + all.n - rows, rows, last - rows};
}

void rm_cpu_span_last(struct rm_backend *b, const struct rm_spans *s, uint32_t last, const float *x,
                      uint32_t n, float *y)
{
    (void)b;
    for (uint32_t i = 0; i < s->batch; i++, y += (size_t)last * n) {
        const struct last of = last_of(s->spans, i, last);
        memset(y, 0, of.missing * n * sizeof *y);
        memcpy(y + of.missing * n, x + of.from * n, of.rows * n * sizeof *y);
    }
}

void rm_cpu_span_last_dx(struct rm_backend *b, const struct rm_spans *s, uint32_t last,
                         const float *dy, uint32_t n, float *dx)
{
    (void)b;
    for (uint32_t i = 0; i < s->batch; i++, dy += (size_t)last * n) {
        const struct last of = last_of(s->spans, i, last);
        const size_t first = rows_of(s->spans, i).from;
        memset(dx + first * n, 0, (of.from - first) * n * sizeof *dx);
        memcpy(dx + of.from * n, dy + of.missing * n, of.rows * n * sizeof *dx);
    }
}

void rm_cpu_span_dropout(struct rm_backend *b, const struct rm_dropout *d, const struct rm_spans *s,
                         uint32_t first, uint32_t n, const float *x, float *y)
{
    for (uint32_t i = 0; i < s->batch; i++) {
        const struct rm_piece r = rows_of(s->spans, i);
        const size_t at = (size_t)r.from * n;
        rm_cpu_dropout(b, d, ((size_t)first + i) * s->places * n, (size_t)r.n * n, x + at, y + at);
    }
}

struct relations {
    const struct rm_kernels *k;
    const struct rm_relations *e;
    const int32_t *codes;
    const float *first, *table;
    float *y;
    uint32_t rows;
};

static void relate_tile(void *work, uint32_t index)
{
    const struct relations *w = work;
    const struct rm_piece s = rm_piece(w->rows, SAMPLES_PER_TILE, index);
    w->k->relate(w->e, w->codes + (size_t)s.from * w->e->numbers, w->first, w->table, s.n,
                 w->y + (size_t)s.from * w->e->units);
}

void rm_cpu_relate(struct rm_backend *b, const struct rm_relations *e, const int32_t *codes,
                   const float *first, const float *table, uint32_t rows, float *y)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct relations w = {.k = cpu->kernels,
                          .e = e,
                          .codes = codes,
                          .first = first,
                          .table = table,
                          .y = y,
                          .rows = rows};
    rm_cpu_run(cpu, relate_tile, &w, rm_pieces(rows, SAMPLES_PER_TILE),
               (double)rows * e->numbers * e->units / 2.0);
}

/* A tile has some columns of both tables, so that every sum has one order. */
#define UNITS_PER_TILE 32u

struct relations_dw {
    const struct rm_kernels *k;
    const struct rm_relations *e;
    const struct rm_token_part *parts;
    uint32_t count;
    struct rm_touched *touched; /* NULL: not asked for */
    float *d_first, *d_table;
};

/* Numbers that have no row stand for row `total`, which the list has already. No processor can
 * predict the numbers, so no branch depends on them, but for the groups that are only zeros: most
 * tokens end with some. */
void rm_cpu_list_touched(struct rm_backend *b, const struct rm_relations *e,
                         const struct rm_token_part *part, struct rm_touched *t)
{
    (void)b;
    const uint32_t columns = e->columns, firsts = e->first_codes, codes = e->codes, none = t->total;
    const int32_t *end = part->codes + (size_t)part->rows * e->numbers;
    uint32_t *const rows = t->rows;
    bool *const has = t->has;
    uint32_t count = t->count;
    for (const int32_t *group = part->codes; group < end; group += columns) {
        int32_t any = 0;
        for (uint32_t k = 0; k < columns; k++)
            any |= group[k];
        for (uint32_t k = 0; k < columns && any; k++) {
            const bool first = k == 0 && firsts;
            const uint32_t code = (uint32_t)group[k];
            const uint32_t row =
                code - 1 < (first ? firsts : codes) - 1 ? (first ? 0 : firsts) + code : none;
            rows[count] = row;
            count += !has[row];
            has[row] = true;
        }
    }
    t->count = count;
}

static void list_all(const struct relations_dw *w)
{
    struct rm_touched *t = w->touched;
    for (const struct rm_token_part *part = w->parts; part < w->parts + w->count; part++) {
        if (!part->listed)
            rm_cpu_list_touched(NULL, w->e, part, t);
        for (uint32_t i = 0; part->listed && i < part->listed_count; i++) {
            t->rows[t->count] = part->listed[i];
            t->count += !t->has[part->listed[i]];
            t->has[part->listed[i]] = true;
        }
    }
}

static void relate_dw_tile(void *work, uint32_t index)
{
    const struct relations_dw *w = work;
    const struct rm_relations *e = w->e;
    if (w->touched && index-- == 0) {
        list_all(w);
        return;
    }
    const struct rm_piece s = rm_piece(e->units, UNITS_PER_TILE, index);
    for (const struct rm_token_part *part = w->parts; part < w->parts + w->count; part++)
        w->k->relate_dw(e, part->codes, part->dy, part->rows, s.from, s.from + s.n, w->d_first,
                        w->d_table);
}

static void run_relations_dw(struct rm_cpu *cpu, struct relations_dw *w)
{
    double rows = 0.0;
    for (uint32_t i = 0; i < w->count; i++)
        rows += w->parts[i].rows;
    w->k = cpu->kernels;
    rm_cpu_run(cpu, relate_dw_tile, w,
               (w->touched ? 1 : 0) + rm_pieces(w->e->units, UNITS_PER_TILE),
               rows * w->e->numbers * w->e->units);
}

void rm_cpu_relate_dw(struct rm_backend *b, const struct rm_relations *e, const int32_t *codes,
                      const float *dy, uint32_t rows, float *d_first, float *d_table)
{
    const struct rm_token_part all = {.codes = codes, .dy = dy, .rows = rows};
    if (e->first_codes)
        rm_cpu_fill(b, 0.0f, (size_t)e->first_codes * e->units, d_first);
    rm_cpu_fill(b, 0.0f, (size_t)e->codes * e->units, d_table);
    run_relations_dw(
        rm_cpu_of(b),
        &(struct relations_dw){
            .e = e, .parts = &all, .count = 1, .d_first = d_first, .d_table = d_table});
}

void rm_cpu_relate_touched(struct rm_backend *b, const struct rm_relations *e,
                           const struct rm_token_part *parts, uint32_t count,
                           struct rm_touched *touched, float *d_tables)
{
    rm_cpu_clear_touched(rm_cpu_of(b), touched, d_tables);
    run_relations_dw(rm_cpu_of(b), &(struct relations_dw){
                                       .e = e,
                                       .parts = parts,
                                       .count = count,
                                       .touched = touched,
                                       .d_first = d_tables,
                                       .d_table = d_tables + (size_t)e->first_codes * e->units});
}

/* Scores, or their gradients, converted between their positions and the order of rows, a few at a
 * time. */
#define SCORES 64u

static void pointer_tile(void *work, uint32_t index)
{
    const struct spans *w = work;
    const struct rm_pointer *p = w->p;
    const struct rm_piece s = rm_piece(p->batch, SAMPLES_PER_TILE, index);
    for (uint32_t i = s.from; i < s.from + s.n; i++) {
        const struct rm_piece r = rows_of(p->spans, i);
        const float *first = w->x + (size_t)r.from * p->units;
        const uint32_t *slots = p->slots + r.from;
        float *y = w->y + (size_t)i * p->outputs, some[SCORES];
        memset(y, 0, p->outputs * sizeof *y);
        for (uint32_t at = 1; at < r.n; at += SCORES) {
            uint32_t n = r.n - at < SCORES ? r.n - at : SCORES;
            w->k->span_dots(first, first + (size_t)at * p->units, n, p->units, p->scale, some);
            for (uint32_t j = 0; j < n; j++)
                y[slots[at + j] - 1] = some[j];
        }
    }
}

void rm_cpu_pointer(struct rm_backend *b, const struct rm_pointer *p, const float *x, float *y)
{
    struct spans w = {.p = p, .spans = p->spans, .x = x, .y = y, .batch = p->batch, .n = p->units};
    run_spans(b, &w, pointer_tile);
}

static void pointer_dx_tile(void *work, uint32_t index)
{
    const struct spans *w = work;
    const struct rm_pointer *p = w->p;
    const struct rm_piece s = rm_piece(p->batch, SAMPLES_PER_TILE, index);
    for (uint32_t i = s.from; i < s.from + s.n; i++) {
        const struct rm_piece r = rows_of(p->spans, i);
        const float *first = w->x + (size_t)r.from * p->units;
        const uint32_t *slots = p->slots + r.from;
        const float *dy = w->dy + (size_t)i * p->outputs;
        float *dx = w->dx + (size_t)r.from * p->units, some[SCORES];
        memset(dx, 0, p->units * sizeof *dx);
        for (uint32_t at = 1; at < r.n; at += SCORES) {
            uint32_t n = r.n - at < SCORES ? r.n - at : SCORES;
            for (uint32_t j = 0; j < n; j++)
                some[j] = p->scale * dy[slots[at + j] - 1];
            w->k->span_dots_dx(some, first, first + (size_t)at * p->units, n, p->units, dx,
                               dx + (size_t)at * p->units);
        }
    }
}

void rm_cpu_pointer_dx(struct rm_backend *b, const struct rm_pointer *p, const float *x,
                       const float *dy, float *dx)
{
    struct spans w = {
        .p = p, .spans = p->spans, .x = x, .dy = dy, .dx = dx, .batch = p->batch, .n = p->units};
    run_spans(b, &w, pointer_dx_tile);
}
