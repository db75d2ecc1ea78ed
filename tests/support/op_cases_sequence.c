/* Operations of recurrent layers, attention, tokens and tables. */
#include "tests/support/op_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- cells ----------------------------------------------------------------------------------- */

struct cell {
    uint32_t lanes, n;
    size_t floats;
};

static struct cell cell(struct op_run *r)
{
    struct cell c = {.n = op_size(r, 130)};
    c.lanes = op_size(r, (uint32_t)(r->most / (5 * c.n)) + 1);
    c.floats = (size_t)c.lanes * c.n;
    return c;
}

static void gru(struct op_run *r)
{
    const struct cell c = cell(r);
    const struct rm_cells cells = {.lanes = c.lanes,
                                   .n = c.n,
                                   .gx = op_in(r, 3 * c.floats, 1.0f),
                                   .gh = op_in(r, 3 * c.floats, 1.0f),
                                   .state = op_in(r, c.floats, 1.0f),
                                   .gates = op_out(r, 4 * c.floats, 1.0),
                                   .y = op_out(r, c.floats, 1.0)};
    r->b->ops->gru(r->b, &cells);
}

static void gru_dx(struct op_run *r)
{
    const struct cell c = cell(r);
    const struct rm_cells cells = {.lanes = c.lanes,
                                   .n = c.n,
                                   .gates = op_in(r, 4 * c.floats, 0.5f),
                                   .state = op_in(r, c.floats, 1.0f),
                                   .dy = op_in(r, c.floats, 1.0f),
                                   .dgx = op_out(r, 3 * c.floats, 1.0),
                                   .dgh = op_out(r, 3 * c.floats, 1.0),
                                   .d_state = op_out(r, c.floats, 1.0)};
    r->b->ops->gru_dx(r->b, &cells);
}

static void lstm(struct op_run *r)
{
    const struct cell c = cell(r);
    const struct rm_cells cells = {.lanes = c.lanes,
                                   .n = c.n,
                                   .gx = op_in(r, 4 * c.floats, 1.0f),
                                   .gh = op_in(r, 4 * c.floats, 1.0f),
                                   .state = op_in(r, c.floats, 1.0f),
                                   .gates = op_out(r, 5 * c.floats, 1.0),
                                   .next_c = op_out(r, c.floats, 1.0),
                                   .y = op_out(r, c.floats, 1.0)};
    r->b->ops->lstm(r->b, &cells);
}

static void lstm_dx(struct op_run *r)
{
    const struct cell c = cell(r);
    const struct rm_cells cells = {.lanes = c.lanes,
                                   .n = c.n,
                                   .gates = op_in(r, 5 * c.floats, 0.5f),
                                   .state = op_in(r, c.floats, 1.0f),
                                   .dy = op_in(r, c.floats, 1.0f),
                                   .d_state = op_inout(r, c.floats, 1.0f),
                                   .dgx = op_out(r, 4 * c.floats, 1.0)};
    r->b->ops->lstm_dx(r->b, &cells);
}

static void restart(struct op_run *r)
{
    const struct cell c = cell(r);
    const size_t stride = c.n + op_below(r, 9), words = (c.lanes + 3) / 4;
    uint8_t *which = calloc(words, 4);
    for (uint32_t i = 0; which && i < c.lanes; i++)
        which[i] = (uint8_t)op_below(r, 2);
    const float *x = op_in(r, c.lanes * stride, 1.0f);
    float *y = op_inout(r, c.lanes * stride, 1.0f);
    const uint8_t *flags = which ? op_words(r, which, words) : NULL;
    const uint32_t how = op_below(r, 4);
    r->b->ops->restart(r->b,
                       how == 3   ? NULL
                       : how == 2 ? y
                                  : x,
                       stride, how ? flags : NULL, c.lanes, c.n, y, stride);
    free(which);
}

/* --- samples of tokens ----------------------------------------------------------------------- */

struct samples {
    uint32_t batch, places, rows; /* rows: room for them */
    const uint32_t *spans, *slots;
};

/* Samples of `least` to `places` tokens; their places rise, the first is 0 where there is one. */
static struct samples samples(struct op_run *r, uint32_t n, uint32_t least)
{
    struct samples s = {.places = least + op_size(r, 40)};
    const size_t most = r->most / n / s.places;
    s.batch = op_size(r, most < 1 ? 1 : most < 70 ? (uint32_t)most : 70);
    s.rows = s.batch * s.places;
    uint32_t *spans = calloc(s.batch + 1, sizeof *spans), *slots = calloc(s.rows, sizeof *slots);
    if (!spans || !slots) {
        r->failed = true;
        free(spans);
        free(slots);
        return s;
    }
    for (uint32_t i = 0; i < s.batch; i++) {
        uint32_t row = spans[i];
        const uint32_t share = 1 + op_below(r, 4);
        for (uint32_t t = 0; t < s.places; t++)
            if ((t == 0 && least) || op_below(r, share) == 0)
                slots[row++] = t;
        spans[i + 1] = least || op_below(r, 8) ? row : spans[i];
    }
    s.spans = op_words(r, spans, s.batch + 1);
    s.slots = op_words(r, slots, s.rows);
    free(spans);
    free(slots);
    return s;
}

struct heads {
    struct rm_attention a;
    size_t rows;
};

/* Dropout of half of the runs, and queries of half of the causal ones. */
static void draw_history(struct op_run *r, struct rm_attention *a)
{
    const uint32_t more = op_below(r, 4);
    if (a->causal && more & 1)
        a->queries = 1 + op_below(r, 60);
    if (more & 2)
        a->dropout = rm_dropout_of(7, RM_STREAM_DROPOUT, 2, 9, 0.25);
    a->before = more;
}

static struct heads heads(struct op_run *r)
{
    static const uint32_t widths[] = {1, 3, 8, 16, 31, 32, 33, 64, 65, 128, 200, 256};
    const uint32_t width = widths[op_below(r, sizeof widths / sizeof *widths)];
    const uint32_t count = 1 + op_below(r, width > 64 ? 2 : 4);
    const struct samples s = samples(r, count * width * 3, op_below(r, 2));
    struct heads h = {.a = {.spans = s.spans,
                            .batch = s.batch,
                            .heads = count,
                            .units = count * width,
                            .causal = op_below(r, 2),
                            .rows = s.rows},
                      .rows = s.rows};
    draw_history(r, &h.a);
    return h;
}

static void attention(struct op_run *r)
{
    const struct heads h = heads(r);
    const float *qkv = op_in(r, h.rows * 3 * h.a.units, 1.5f);
    float *o = op_out(r, h.rows * h.a.units, 1.0), *stats = op_in(r, h.rows * 2 * h.a.heads, 1.0f);
    if (!r->failed)
        r->b->ops->attention(r->b, &h.a, qkv, o, stats);
}

static void attention_dx(struct op_run *r)
{
    const struct heads h = heads(r);
    const float *qkv = op_in(r, h.rows * 3 * h.a.units, 1.0f);
    const float *d_o = op_in(r, h.rows * h.a.units, 1.0f);
    float *o = op_out(r, h.rows * h.a.units, 1.0), *stats = op_in(r, h.rows * 2 * h.a.heads, 1.0f);
    float *d_qkv = op_out(r, h.rows * 3 * h.a.units, 1.0);
    if (r->failed)
        return;
    r->b->ops->attention(r->b, &h.a, qkv, o, stats);
    r->b->ops->attention_dx(r->b, &h.a, qkv, o, stats, d_o, d_qkv);
}

/* The scale of small whole numbers, which are tiny as floats: none may differ. */
#define WORDS 1e-300

/* A piece of a set, of tokens that are padding by their numbers or by counts, or of one that is
 * always there. */
static void draw_piece(struct op_run *r, struct rm_token_set *set)
{
    struct rm_token_piece *piece = &set->piece[set->pieces++];
    const uint32_t kind = op_below(r, 4), frames = 1 + op_below(r, 3);
    piece->tokens = kind == 0 ? 1 : frames * (1 + op_below(r, 40));
    piece->numbers = kind == 0 ? 0 : 1 + op_below(r, 7);
    piece->codes = op_below(r, 2);
    piece->counts = kind == 1 ? frames : 0;
    piece->counts_at = set->width;
    piece->item = piece->numbers * (1 + op_below(r, 2));
    piece->at = set->width + piece->counts;
    set->width = piece->at + piece->tokens * piece->numbers + op_below(r, 3);
    set->tokens += piece->tokens;
}

/* Fills a token; whether it is there. */
static bool draw_token(struct op_run *r, const struct rm_token_piece *piece, float *row, uint32_t t)
{
    float *token = row + piece->at + t * piece->numbers;
    const uint32_t kind = op_below(r, 4),
                   of_frame = piece->counts ? piece->tokens / piece->counts : 1;
    if (piece->numbers == 0)
        return true;
    if (kind == 0)
        token[op_below(r, piece->numbers)] = 1.0f;
    if (kind == 1 && !piece->codes)
        token[op_below(r, piece->numbers)] = -0.0f; /* is padding too */
    if (!piece->counts)
        return kind == 0;
    float *word = row + piece->counts_at + t / of_frame;
    const uint32_t most = of_frame * piece->numbers / piece->item;
    int32_t count = (int32_t)op_below(r, most + 1);
    if (t % of_frame > 0) { /* as it is already */
        memcpy(&count, word, sizeof count);
        count = piece->codes ? count : (int32_t)*word;
    } else if (piece->codes) {
        memcpy(word, &count, sizeof count);
    } else {
        *word = (float)count;
    }
    return t % of_frame * piece->numbers < (uint32_t)count * piece->item;
}

static void find_spans(struct op_run *r)
{
    struct rm_token_set set = {.keeps_first = op_below(r, 2)};
    const uint32_t batch = op_size(r, 40);
    for (uint32_t pieces = 1 + op_below(r, 3); pieces > 0; pieces--)
        draw_piece(r, &set);
    const size_t n = (size_t)batch * set.width, rows = (size_t)batch * set.tokens;
    float *x = calloc(n + 1, sizeof *x), *spans = op_out(r, batch + 1, WORDS);
    float *slots = op_out(r, rows, WORDS);
    uint32_t *found = calloc(batch + 1 + rows, sizeof *found);
    uint32_t row = 0;
    if (!x || !found || r->failed) {
        r->failed = true;
        free(x);
        free(found);
        return;
    }
    for (uint32_t i = 0; i < batch; i++) {
        found[i] = row;
        for (uint32_t p = 0, slot = 0; p < set.pieces; p++)
            for (uint32_t t = 0; t < set.piece[p].tokens; t++, slot++)
                if (draw_token(r, &set.piece[p], x + (size_t)i * set.width, t) ||
                    (set.keeps_first && slot == 0))
                    found[batch + 1 + row++] = slot;
    }
    found[batch] = row;
    const void *there = op_words(r, x, n);
    r->b->ops->fill(r->b, 0.0f, rows, slots);
    if (r->b->ops->find_spans) {
        r->b->ops->find_spans(r->b, there, batch, &set, (uint32_t *)(void *)spans,
                              (uint32_t *)(void *)slots);
    } else {
        memcpy(spans, found, (batch + 1) * sizeof *found);
        memcpy(slots, found + batch + 1, row * sizeof *found);
    }
    free(x);
    free(found);
}

static struct rm_spans spans_of(const struct samples *s)
{
    return (struct rm_spans){.spans = s->spans,
                             .slots = s->slots,
                             .batch = s->batch,
                             .places = s->places,
                             .rows = s->rows};
}

static void span_one(struct op_run *r)
{
    const uint32_t n = op_size(r, 130), first = op_below(r, 2);
    const struct samples s = samples(r, n, first);
    const struct rm_spans of = spans_of(&s);
    const float *x = op_in(r, (size_t)s.rows * n, 1.0f);
    r->b->ops->span_one(r->b, &of, x, n, !first, op_out(r, (size_t)s.batch * n, 1.0));
}

static void span_one_dx(struct op_run *r)
{
    const uint32_t n = op_size(r, 130), first = op_below(r, 2);
    const struct samples s = samples(r, n, first);
    const struct rm_spans of = spans_of(&s);
    const float *dy = op_in(r, (size_t)s.batch * n, 1.0f);
    r->b->ops->span_one_dx(r->b, &of, dy, n, !first, op_out(r, (size_t)s.rows * n, 1.0));
}

/* Samples with fewer rows and with more. */
static void span_last(struct op_run *r)
{
    const uint32_t n = op_size(r, 130), last = op_size(r, 40);
    const struct samples s = samples(r, n, 0);
    const struct rm_spans of = spans_of(&s);
    const float *x = op_in(r, (size_t)s.rows * n, 1.0f);
    r->b->ops->span_last(r->b, &of, last, x, n, op_out(r, (size_t)s.batch * last * n, 1.0));
}

static void span_last_dx(struct op_run *r)
{
    const uint32_t n = op_size(r, 130), last = op_size(r, 40);
    const struct samples s = samples(r, n, 0);
    const struct rm_spans of = spans_of(&s);
    const float *dy = op_in(r, (size_t)s.batch * last * n, 1.0f);
    r->b->ops->span_last_dx(r->b, &of, last, dy, n, op_out(r, (size_t)s.rows * n, 1.0));
}

static void span_dropout(struct op_run *r)
{
    const uint32_t n = op_size(r, 130), first = op_below(r, 1000);
    const struct samples s = samples(r, n, 0);
    const struct rm_spans of = spans_of(&s);
    const struct rm_dropout d = rm_dropout_of(7, RM_STREAM_DROPOUT, 2, 9, 0.1 * op_below(r, 9));
    const float *x = op_in(r, (size_t)s.rows * n, 1.0f);
    r->b->ops->span_dropout(r->b, &d, &of, first, n, x, op_out(r, (size_t)s.rows * n, 1.0));
}

/* Of samples with fewer rows than queries, too, and of codes that are in no table. */
static void history_codes(struct op_run *r)
{
    const uint32_t width = 2 + op_below(r, 9);
    const struct samples s = samples(r, width, 0);
    const struct rm_history_codes h = {.spans = s.spans,
                                       .batch = s.batch,
                                       .rows = s.rows,
                                       .width = width,
                                       .queries = 1 + op_below(r, 20),
                                       .query_codes = op_below(r, 10),
                                       .positions = 1 + op_below(r, 40)};
    float *x = calloc((size_t)s.rows * width + 1, sizeof *x);
    float *codes = op_out(r, (size_t)s.rows * RM_HISTORY_CODES, WORDS);
    for (uint32_t i = 0; x && i < s.rows; i++) {
        x[i * width] = (float)op_below(r, RM_HISTORY_KINDS + 1);
        x[i * width + 1] = (float)op_below(r, 12) - 1.0f;
    }
    const float *there = op_words(r, x, (size_t)s.rows * width);
    r->failed = r->failed || !x;
    if (!r->failed && r->b->ops->history_codes)
        r->b->ops->history_codes(r->b, &h, there, (int32_t *)(void *)codes);
    for (uint32_t i = 0; !r->failed && !r->b->ops->history_codes && i < s.rows; i++) {
        uint32_t sample = 0;
        while (sample < s.batch && s.spans[sample + 1] <= i)
            sample++;
        const uint32_t from = sample < s.batch ? s.spans[sample] : 0;
        const uint32_t rows = sample < s.batch ? s.spans[sample + 1] - from : 0;
        rm_history_row_codes(&h, x + (size_t)i * width, i - from, rows,
                             (int32_t *)(void *)codes + (size_t)i * RM_HISTORY_CODES);
    }
    free(x);
}

static void spread(struct op_run *r)
{
    const uint32_t n = op_size(r, 130);
    const struct samples s = samples(r, n, 0);
    const struct rm_spans of = spans_of(&s);
    const float *x = op_in(r, (size_t)s.rows * n, 1.0f);
    r->b->ops->spread(r->b, &of, x, n, op_out(r, (size_t)s.rows * n, 1.0));
}

static void spread_dx(struct op_run *r)
{
    const uint32_t n = op_size(r, 130);
    const struct samples s = samples(r, n, 0);
    const struct rm_spans of = spans_of(&s);
    const float *dy = op_in(r, (size_t)s.rows * n, 1.0f);
    r->b->ops->spread_dx(r->b, &of, dy, n, op_out(r, (size_t)s.rows * n, 1.0));
}

static struct rm_pointer pointing(struct op_run *r)
{
    const uint32_t units = op_size(r, 130);
    const struct samples s = samples(r, units, 1);
    return (struct rm_pointer){.spans = s.spans,
                               .slots = s.slots,
                               .batch = s.batch,
                               .units = units,
                               .outputs = s.places - 1,
                               .scale = 1.0f / sqrtf((float)units),
                               .rows = s.rows};
}

static void pointer(struct op_run *r)
{
    const struct rm_pointer p = pointing(r);
    const float *x = op_in(r, (size_t)p.rows * p.units, 1.0f);
    r->b->ops->pointer(r->b, &p, x, op_out(r, (size_t)p.batch * p.outputs, 1.0));
}

static void pointer_dx(struct op_run *r)
{
    const struct rm_pointer p = pointing(r);
    const float *x = op_in(r, (size_t)p.rows * p.units, 1.0f);
    const float *dy = op_in(r, (size_t)p.batch * p.outputs, 1.0f);
    r->b->ops->pointer_dx(r->b, &p, x, dy, op_out(r, (size_t)p.rows * p.units, 1.0));
}

/* --- graphs ---------------------------------------------------------------------------------- */

static void one_hot(struct op_run *r)
{
    const uint32_t n = op_size(r, 40), codes = op_size(r, 40), column = op_below(r, n);
    const uint32_t rows = op_size(r, (uint32_t)(r->most / (n + codes)) + 1);
    float *host = calloc((size_t)rows * n, sizeof *host);
    for (size_t i = 0; host && i < (size_t)rows * n; i++)
        host[i] = (float)op_below(r, codes + 2) - (op_below(r, 9) ? 0.0f : 0.5f);
    const float *x = host ? op_words(r, host, (size_t)rows * n) : NULL;
    float *y = op_out(r, (size_t)rows * (n - 1 + codes), 1.0);
    r->failed = r->failed || !x;
    free(host);
    if (!r->failed)
        r->b->ops->one_hot(r->b, x, rows, n, column, codes, y);
}

/* Edges between the rows of samples; some lead nowhere, some begin where none are, and a sample in
 * eight has numbers that mean nothing. */
static struct rm_graph graph(struct op_run *r, uint32_t n)
{
    const struct samples s = samples(r, n, 0);
    struct rm_graph g = {.spans = s.spans, .batch = s.batch, .rows = s.rows};
    g.edges_at = op_below(r, 5);
    g.edges_most =
        op_below(r, 9) ? s.places + 1 + op_below(r, 4 * s.places) : op_below(r, s.places);
    g.own_at = g.edges_at + g.edges_most;
    g.width = g.own_at + 1;
    const size_t words = (size_t)g.batch * g.width;
    float *host = calloc(words, sizeof *host);
    for (size_t i = 0; host && i < words; i++) {
        const bool wild = op_below(r, 8) == 0 && i / g.width % 8 == 0;
        host[i] = wild ? (op_below(r, 2) ? NAN : -1e30f) : (float)op_below(r, 2 * s.places);
    }
    g.x = host ? op_words(r, host, words) : NULL;
    r->failed = r->failed || !g.x;
    free(host);
    return g;
}

static void graph_mean(struct op_run *r)
{
    const uint32_t n = op_size(r, 70);
    const struct rm_graph g = graph(r, n);
    const float *x = op_in(r, (size_t)g.rows * n, 1.0f);
    float *y = op_out(r, (size_t)g.rows * 2 * n, 1.0);
    if (!r->failed)
        r->b->ops->graph_mean(r->b, &g, x, n, y);
}

static void graph_mean_dx(struct op_run *r)
{
    const uint32_t n = op_size(r, 70);
    const struct rm_graph g = graph(r, n);
    const float *dy = op_in(r, (size_t)g.rows * 2 * n, 1.0f);
    float *dx = op_out(r, (size_t)g.rows * n, 4.0);
    if (!r->failed)
        r->b->ops->graph_mean_dx(r->b, &g, dy, n, dx);
}

static void graph_own(struct op_run *r)
{
    const uint32_t n = op_size(r, 70);
    const struct rm_graph g = graph(r, n);
    const float *x = op_in(r, (size_t)g.rows * n, 1.0f);
    float *y = op_out(r, (size_t)g.batch * n, 1.0);
    if (!r->failed)
        r->b->ops->graph_own(r->b, &g, x, n, y);
}

static void graph_own_dx(struct op_run *r)
{
    const uint32_t n = op_size(r, 70);
    const struct rm_graph g = graph(r, n);
    const float *dy = op_in(r, (size_t)g.batch * n, 1.0f);
    float *dx = op_out(r, (size_t)g.rows * n, 1.0);
    if (!r->failed)
        r->b->ops->graph_own_dx(r->b, &g, dy, n, dx);
}

/* The forward pass is of both cases. */
static void over_edges(struct op_run *r, bool back)
{
    const uint32_t heads = 1 + op_below(r, 4), units = heads * op_size(r, 24);
    const struct rm_graph g = graph(r, 3 * units);
    const size_t rows = g.rows;
    const struct rm_graph_attention a = {
        .graph = g, .score = op_in(r, 2 * units, 0.5f), .heads = heads, .units = units};
    const float *qkv = op_in(r, rows * 3 * units, 1.0f);
    float *stats = op_in(r, rows * heads * RM_GRAPH_STATS, 1.0f), *o = op_out(r, rows * units, 1.0);
    const float *d_o = back ? op_in(r, rows * units, 1.0f) : NULL;
    float *d_source = back ? op_in(r, rows * heads, 1.0f) : NULL;
    float *d_qkv = back ? op_out(r, rows * 3 * units, 4.0) : NULL;
    float *d_score = back ? op_out(r, (size_t)g.batch * 2 * units, 16.0) : NULL;
    if (r->failed)
        return;
    r->b->ops->graph_attention(r->b, &a, qkv, stats, o);
    if (back)
        r->b->ops->graph_attention_dx(r->b, &a, qkv, o, stats, d_o, d_source, d_qkv, d_score);
}

static void graph_attention(struct op_run *r)
{
    over_edges(r, false);
}

static void graph_attention_dx(struct op_run *r)
{
    over_edges(r, true);
}

/* --- tables ---------------------------------------------------------------------------------- */

/* n codes from `low` to `high`, those too, in the backend's memory. */
static const int32_t *codes(struct op_run *r, size_t n, int32_t low, int32_t high)
{
    int32_t *host = calloc(n ? n : 1, sizeof *host);
    for (size_t i = 0; host && i < n; i++)
        host[i] = low + (int32_t)op_below(r, (uint32_t)(high - low) + 1);
    const int32_t *there = host ? op_words(r, host, n) : NULL;
    r->failed = r->failed || !there;
    free(host);
    return there;
}

static struct rm_embedding embedding(struct op_run *r)
{
    struct rm_embedding e = {.numbers = 1 + op_below(r, 5),
                             .codes = op_size(r, 60),
                             .units = op_size(r, 70),
                             .lowest = (int32_t)op_below(r, 9) - 4};
    if (op_below(r, 3) == 0) /* many codes of few numbers */
        e.units = 1 + op_below(r, 3);
    e.rows = op_size(r, (uint32_t)(r->most / (e.units > 2 ? e.units : 2)) + 1);
    return e;
}

static const int32_t *codes_of(struct op_run *r, const struct rm_embedding *e)
{
    return codes(r, (size_t)e->rows * e->numbers, e->lowest - 1, e->lowest + (int32_t)e->codes);
}

static void embed(struct op_run *r)
{
    const struct rm_embedding e = embedding(r);
    const int32_t *named = codes_of(r, &e);
    const float *table = op_in(r, (size_t)e.codes * e.units, 1.0f);
    float *y = op_out(r, (size_t)e.rows * e.units, 1.0);
    if (!r->failed)
        r->b->ops->embed(r->b, &e, named, table, y);
}

static void embed_dw(struct op_run *r)
{
    const struct rm_embedding e = embedding(r);
    const int32_t *named = codes_of(r, &e);
    const float *dy = op_in(r, (size_t)e.rows * e.units, 1.0f);
    float *dtable = op_out(r, (size_t)e.codes * e.units, sqrt((double)e.rows));
    if (!r->failed)
        r->b->ops->embed_dw(r->b, &e, named, dy, dtable);
}

struct relations {
    struct rm_relations e;
    uint32_t rows;
    const int32_t *codes;
};

static struct relations relations(struct op_run *r)
{
    struct relations s = {.e = {.columns = 1 + op_below(r, 3),
                                .codes = op_size(r, 60),
                                .first_codes = op_below(r, 2) ? op_size(r, 9) : 0,
                                .units = op_size(r, 70),
                                .difference = op_below(r, 2)}};
    s.e.numbers = s.e.columns * (1 + op_below(r, 4));
    if (op_below(r, 3) == 0)
        s.e.units = 1 + op_below(r, 3);
    s.rows = op_size(r, (uint32_t)(r->most / (s.e.units > 2 ? s.e.units : 2)) + 1);
    s.codes = codes(r, (size_t)s.rows * s.e.numbers, -1, (int32_t)s.e.codes + 1);
    return s;
}

static void relate(struct op_run *r)
{
    const struct relations s = relations(r);
    const float *first = op_in(r, (size_t)s.e.first_codes * s.e.units, 1.0f);
    const float *table = op_in(r, (size_t)s.e.codes * s.e.units, 1.0f);
    float *y = op_out(r, (size_t)s.rows * s.e.units, 1.0);
    if (!r->failed)
        r->b->ops->relate(r->b, &s.e, s.codes, first, table, s.rows, y);
}

static void relate_dw(struct op_run *r)
{
    const struct relations s = relations(r);
    const double sums = sqrt((double)s.rows);
    const float *dy = op_in(r, (size_t)s.rows * s.e.units, 1.0f);
    float *first = op_out(r, (size_t)s.e.first_codes * s.e.units, sums);
    float *table = op_out(r, (size_t)s.e.codes * s.e.units, sums);
    if (!r->failed)
        r->b->ops->relate_dw(r->b, &s.e, s.codes, dy, s.rows, first, table);
}

/* clang-format off */
const struct op_case op_sequence_cases[] = {
    {"gru", false, gru},
    {"gru_dx", false, gru_dx},
    {"lstm", false, lstm},
    {"lstm_dx", false, lstm_dx},
    {"restart", false, restart},
    {"attention", false, attention},
    {"attention_dx", false, attention_dx},
    {"find_spans", false, find_spans},
    {"span_one", false, span_one},
    {"span_one_dx", false, span_one_dx},
    {"span_last", false, span_last},
    {"span_last_dx", false, span_last_dx},
    {"span_dropout", false, span_dropout},
    {"history_codes", false, history_codes},
    {"spread", false, spread},
    {"spread_dx", false, spread_dx},
    {"pointer", false, pointer},
    {"pointer_dx", false, pointer_dx},
    {"one_hot", false, one_hot},
    {"graph_mean", false, graph_mean},
    {"graph_mean_dx", false, graph_mean_dx},
    {"graph_own", false, graph_own},
    {"graph_own_dx", false, graph_own_dx},
    {"graph_attention", false, graph_attention},
    {"graph_attention_dx", false, graph_attention_dx},
    {"embed", false, embed},
    {"embed_dw", false, embed_dw},
    {"relate", false, relate},
    {"relate_dw", false, relate_dw},
};
/* clang-format on */
const size_t op_sequence_case_count = sizeof op_sequence_cases / sizeof *op_sequence_cases;
