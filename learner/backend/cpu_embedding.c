/* Embeddings: sums of a table's rows, and the gradient of the table. */
#include "learner/backend/cpu.h"
#include "learner/backend/pieces.h"

#include <string.h>

#define ROWS_PER_TILE  64u
#define UNITS_PER_TILE 16u

struct embedding_work {
    const struct rm_embedding *e;
    const int32_t *codes;
    const float *from;
    float *to;
};

/* A code outside the table counts as the first. */
static size_t row_of(const struct rm_embedding *e, int32_t code)
{
    int64_t row = (int64_t)code - e->lowest;
    return row < 0 || row >= e->codes ? 0 : (size_t)row;
}

static void embed_tile(void *work, uint32_t tile)
{
    const struct embedding_work *w = work;
    const struct rm_embedding *e = w->e;
    const struct rm_piece s = rm_piece(e->rows, ROWS_PER_TILE, tile);
    for (uint32_t r = s.from; r < s.from + s.n; r++) {
        const int32_t *codes = w->codes + (size_t)r * e->numbers;
        float *y = w->to + (size_t)r * e->units;
        memcpy(y, w->from + row_of(e, codes[0]) * e->units, e->units * sizeof *y);
        for (uint32_t j = 1; j < e->numbers; j++) {
            const float *row = w->from + row_of(e, codes[j]) * e->units;
            for (uint32_t i = 0; i < e->units; i++)
                y[i] += row[i];
        }
    }
}

void rm_cpu_embed(struct rm_backend *b, const struct rm_embedding *e, const int32_t *codes,
                  const float *table, float *y)
{
    struct embedding_work w = {e, codes, table, y};
    rm_cpu_run(rm_cpu_of(b), embed_tile, &w, rm_pieces(e->rows, ROWS_PER_TILE),
               (double)e->rows * e->numbers * e->units);
}

/* Some columns of all rows, in the rows' order, so that every sum has one order. */
static void scatter_tile(void *work, uint32_t tile)
{
    const struct embedding_work *w = work;
    const struct rm_embedding *e = w->e;
    const size_t units = e->units;
    size_t from = (size_t)tile * UNITS_PER_TILE;
    size_t n = units - from < UNITS_PER_TILE ? units - from : UNITS_PER_TILE;
    for (size_t k = 0; k < e->codes; k++)
        memset(w->to + k * units + from, 0, n * sizeof *w->to);
    for (size_t r = 0; r < e->rows; r++) {
        const float *dy = w->from + r * units + from;
        for (size_t j = 0; j < e->numbers; j++) {
            float *row = w->to + row_of(e, w->codes[r * e->numbers + j]) * units + from;
            for (size_t i = 0; i < n; i++)
                row[i] += dy[i];
        }
    }
}

void rm_cpu_embed_dw(struct rm_backend *b, const struct rm_embedding *e, const int32_t *codes,
                     const float *dy, float *dtable)
{
    struct embedding_work w = {e, codes, dy, dtable};
    rm_cpu_run(rm_cpu_of(b), scatter_tile, &w, rm_pieces(e->units, UNITS_PER_TILE),
               ((double)e->rows * e->numbers + e->codes) * e->units);
}
