/* Sums of a table's rows, named by codes, and the tables' gradients. Gradients need no atomics: a
 * warp has 32 columns of one row of a table, searches the codes for that row and adds up the
 * matching gradients in order. */
#include "learner/backend/cuda/map.h"
#include "learner/backend/cuda/math.h"
#include "learner/backend/cuda/ops.h"
#include "learner/backend/cuda/sums.h"

namespace
{

#define NOBODY    0xffffffffu
#define NEGATIVE  0x80000000u
#define WARPS     8u
#define TILE      1024u /* codes at a time */
#define MIN_CODES 4096u /* of a part */

/* The row of the table for code number `at`. */
struct one_table {
    struct rm_embedding e;
    const int32_t *codes;
    __device__ uint32_t target(size_t at) const
    {
        const int64_t row = (int64_t)codes[at] - e.lowest;
        return row < 0 || row >= e.codes ? 0 : (uint32_t)row;
    }
};

/* Rows of the first column's table, then of the other, with the sign of their term. */
struct two_tables {
    struct rm_relations e;
    const int32_t *codes;
    __device__ uint32_t target(size_t at) const
    {
        const int32_t code = codes[at];
        const uint32_t column = (uint32_t)(at % e.columns);
        const bool first = column == 0 && e.first_codes;
        if (code <= 0 || (uint32_t)code >= (first ? e.first_codes : e.codes))
            return NOBODY;
        const uint32_t row = (uint32_t)code + (first ? 0 : e.first_codes);
        return e.difference && column + 1 == e.columns ? row | NEGATIVE : row;
    }
};

struct embedding {
    struct one_table of;
    const float *table;
    float *y;
    __device__ void at(size_t r, uint32_t i) const
    {
        const size_t first = r * of.e.numbers;
        float sum = table[(size_t)of.target(first) * of.e.units + i];
        for (uint32_t j = 1; j < of.e.numbers; j++)
            sum += table[(size_t)of.target(first + j) * of.e.units + i];
        y[r * of.e.units + i] = sum;
    }
};

struct relating {
    struct two_tables of;
    const float *first, *table;
    float *y;
    __device__ void at(size_t r, uint32_t i) const
    {
        const uint32_t units = of.e.units, firsts = of.e.first_codes;
        float sum = 0.0f;
        for (uint32_t j = 0; j < of.e.numbers; j++) {
            const uint32_t t = of.target(r * of.e.numbers + j), row = t & ~NEGATIVE;
            if (t == NOBODY)
                continue;
            const float v = row < firsts ? first[(size_t)row * units + i]
                                         : table[(size_t)(row - firsts) * units + i];
            sum += t & NEGATIVE ? -v : v;
        }
        y[r * units + i] = sum;
    }
};

struct gradients {
    const float *dy;
    size_t count, per_part; /* of codes */
    uint32_t numbers, units, rows, firsts;
    float *first, *table;
    size_t stride; /* from one part to the next */
};

template <class Of>
__global__ void find_rows(Of of, struct gradients g)
{
    RM_SHARED(uint32_t, targets); /* (TILE) */
    const uint32_t wide = (g.units + 31) / 32, warp_lane = threadIdx.x % 32;
    const size_t mine = blockIdx.x * (size_t)WARPS + threadIdx.x / 32;
    const uint32_t row = (uint32_t)(mine / wide), unit = (uint32_t)(mine % wide) * 32 + warp_lane;
    const size_t begin = blockIdx.y * g.per_part;
    const size_t end = g.count - begin < g.per_part ? g.count : begin + g.per_part;
    float sum = 0.0f;
    for (size_t at = begin; at < end; at += TILE) {
        const uint32_t n = (uint32_t)(end - at < TILE ? end - at : TILE);
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < TILE; i += WARPS * 32)
            targets[i] = i < n ? of.target(at + i) : NOBODY;
        __syncthreads();
        for (uint32_t i = 0; i < n; i += 32) {
            const uint32_t t = targets[i + warp_lane];
            uint32_t found = __ballot_sync(0xffffffffu, t != NOBODY && (t & ~NEGATIVE) == row);
            while (found) {
                const uint32_t k = (uint32_t)__ffs((int)found) - 1;
                found &= found - 1;
                const float d =
                    unit < g.units ? g.dy[(at + i + k) / g.numbers * g.units + unit] : 0.0f;
                sum += targets[i + k] & NEGATIVE ? -d : d;
            }
        }
    }
    if (row >= g.rows || unit >= g.units)
        return;
    float *to = row < g.firsts ? g.first + (size_t)row * g.units
                               : g.table + (size_t)(row - g.firsts) * g.units;
    to[blockIdx.y * g.stride + unit] = sum;
}

/* Number of parts of the codes, so that small tables have enough warps: as many as there is room
 * for their sums. */
template <class Of>
void run_gradients(struct rm_cuda *c, const Of &of, struct gradients g)
{
    const size_t all = (size_t)g.rows * g.units, firsts = (size_t)g.firsts * g.units;
    size_t parts = all && all < RM_CUDA_PARTIALS ? RM_CUDA_PARTIALS / all : 1;
    const size_t most = (g.count + MIN_CODES - 1) / MIN_CODES;
    parts = parts < most ? parts : most;
    parts = parts < 1 ? 1 : parts < 64 ? parts : 64;
    float *first = g.first, *table = g.table;
    g.per_part = (g.count + parts - 1) / parts;
    parts = g.count ? (g.count + g.per_part - 1) / g.per_part : 1;
    if (parts > 1) {
        g.first = c->partials;
        g.table = c->partials + firsts;
        g.stride = all;
    }
    const size_t warps = (size_t)g.rows * ((g.units + 31) / 32);
    const dim3 grid((unsigned)((warps + WARPS - 1) / WARPS), (unsigned)parts);
    if (!all)
        return;
    RM_RUN_SHARED(c, find_rows<Of>, grid, WARPS * 32, TILE * sizeof(uint32_t), of, g);
    if (parts == 1)
        return;
    if (firsts)
        rm_cuda_sum_parts(&c->backend, g.first, (uint32_t)parts, all, firsts, first);
    rm_cuda_sum_parts(&c->backend, g.table, (uint32_t)parts, all, all - firsts, table);
}

} // namespace

void rm_cuda_embed(struct rm_backend *b, const struct rm_embedding *e, const int32_t *codes,
                   const float *table, float *y)
{
    rm_map(rm_cuda_of(b), "embed", embedding{{*e, codes}, table, y}, (size_t)e->rows, e->units);
}

void rm_cuda_embed_dw(struct rm_backend *b, const struct rm_embedding *e, const int32_t *codes,
                      const float *dy, float *dtable)
{
    struct gradients g = {};
    g.dy = dy;
    g.count = (size_t)e->rows * e->numbers;
    g.numbers = e->numbers;
    g.units = e->units;
    g.rows = e->codes;
    g.table = dtable;
    run_gradients(rm_cuda_of(b), one_table{*e, codes}, g);
}

void rm_cuda_relate(struct rm_backend *b, const struct rm_relations *e, const int32_t *codes,
                    const float *first, const float *table, uint32_t rows, float *y)
{
    rm_map(rm_cuda_of(b), "relate", relating{{*e, codes}, first, table, y}, (size_t)rows, e->units);
}

void rm_cuda_relate_dw(struct rm_backend *b, const struct rm_relations *e, const int32_t *codes,
                       const float *dy, uint32_t rows, float *d_first, float *d_table)
{
    struct gradients g = {};
    g.dy = dy;
    g.count = (size_t)rows * e->numbers;
    g.numbers = e->numbers;
    g.units = e->units;
    g.firsts = e->first_codes;
    g.rows = e->first_codes + e->codes;
    g.first = d_first;
    g.table = d_table;
    run_gradients(rm_cuda_of(b), two_tables{*e, codes}, g);
}
