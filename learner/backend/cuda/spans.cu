/* Tokens without padding: finding them, their means, the first token of each sample, tokens side by
 * side again, and scores against the first. */
#include "learner/backend/cuda/spans.h"

#include "learner/backend/cuda/map.h"
#include "learner/backend/cuda/ops.h"

namespace
{

/* --- finding --------------------------------------------------------------------------------- */

#define WARPS 8u
#define SCAN  1024u

struct tokens {
    const uint32_t *x;
    size_t batch; /* 64 bits: the struct has no padding, which would be passed unset */
    struct rm_token_set set;
    /* Token t of a piece of this row. */
    static __device__ bool there(const struct rm_token_piece &piece, const uint32_t *row,
                                 uint32_t t)
    {
        const uint32_t *from = row + piece.at + (size_t)t * piece.numbers;
        /* -0 is padding too, NaN is not. */
        const uint32_t mask = piece.codes ? 0xffffffffu : 0x7fffffffu;
        if (piece.counts) {
            const uint32_t of_frame = piece.tokens / piece.counts;
            const uint32_t word = row[piece.counts_at + t / of_frame];
            const uint32_t count = piece.codes ? word : (uint32_t)__uint_as_float(word);
            return t % of_frame * piece.numbers < count * piece.item;
        }
        for (uint32_t i = 0; i < piece.numbers; i++)
            if (from[i] & mask)
                return true;
        return piece.numbers == 0;
    }
    __device__ bool kept(uint32_t sample, uint32_t token) const
    {
        const uint32_t *row = x + (size_t)sample * set.width;
        uint32_t p = 0, t = token;
        if (token >= set.tokens)
            return false;
        if (token == 0 && set.keeps_first)
            return true;
        while (t >= set.piece[p].tokens)
            t -= set.piece[p++].tokens;
        return there(set.piece[p], row, t);
    }
};

/* A warp for a sample. counts: number of kept tokens. */
__global__ void count_tokens(struct tokens t, uint32_t *counts)
{
    const uint32_t sample = blockIdx.x * WARPS + threadIdx.x / 32, warp_lane = threadIdx.x % 32;
    uint32_t count = 0;
    if (sample >= t.batch)
        return;
    for (uint32_t at = 0; at < t.set.tokens; at += 32)
        count += (uint32_t)__popc(__ballot_sync(0xffffffffu, t.kept(sample, at + warp_lane)));
    if (warp_lane == 0)
        counts[sample] = count;
}

/* One block: changes counts(batch) at spans + 1 to inclusive prefix sums. */
__global__ void sum_counts(uint32_t *spans, uint32_t batch)
{
    RM_SHARED(uint32_t, shared); /* (2, SCAN) */
    const uint32_t each = (batch + SCAN - 1) / SCAN, thread = threadIdx.x;
    const uint32_t from = min(thread * each, batch), to = min(from + each, batch);
    uint32_t sum = 0, which = 0;
    for (uint32_t i = from; i < to; i++)
        sum += spans[1 + i];
    shared[thread] = sum;
    __syncthreads();
    for (uint32_t apart = 1; apart < SCAN; apart *= 2) {
        const uint32_t *now = shared + which * SCAN;
        which ^= 1;
        shared[which * SCAN + thread] = now[thread] + (thread >= apart ? now[thread - apart] : 0);
        __syncthreads();
    }
    uint32_t before = shared[which * SCAN + thread] - sum;
    for (uint32_t i = from; i < to; i++)
        spans[1 + i] = before += spans[1 + i];
    if (thread == 0)
        spans[0] = 0;
}

__global__ void write_slots(struct tokens t, const uint32_t *spans, uint32_t *slots)
{
    const uint32_t sample = blockIdx.x * WARPS + threadIdx.x / 32, warp_lane = threadIdx.x % 32;
    if (sample >= t.batch)
        return;
    uint32_t *to = slots + spans[sample];
    for (uint32_t at = 0; at < t.set.tokens; at += 32) {
        const bool kept = t.kept(sample, at + warp_lane);
        const uint32_t all = __ballot_sync(0xffffffffu, kept);
        if (kept)
            to[__popc(all & ((1u << warp_lane) - 1u))] = at + warp_lane;
        to += __popc(all);
    }
}

/* --- rows of samples ------------------------------------------------------------------------- */

/* The mean of a sample's rows, or the first. */
struct taking_one {
    struct rm_spans s;
    const float *x;
    uint32_t n;
    bool mean;
    float *y;
    __device__ void at(size_t sample, uint32_t i) const
    {
        const struct rm_span of = rm_span_of_sample(s.spans, (uint32_t)sample);
        const float *from = x + (size_t)of.from * n + i;
        const uint32_t rows = mean ? of.rows : min(of.rows, 1u);
        const float share = 1.0f / (float)rows;
        float sum = 0.0f;
        for (uint32_t r = 0; r < rows; r++)
            sum += from[(size_t)r * n];
        y[sample * n + i] = rows ? sum * share : 0.0f;
    }
};

struct taking_one_back {
    struct rm_spans s;
    const float *dy;
    uint32_t n;
    bool mean;
    float *dx;
    __device__ void at(size_t r, uint32_t i) const
    {
        const struct rm_span of = rm_span_of_row(s.spans, s.batch, r);
        const float share = mean ? 1.0f / (float)of.rows : 1.0f;
        dx[r * n + i] = of.sample < s.batch && (mean || of.from == r)
                            ? share * dy[(size_t)of.sample * n + i]
                            : 0.0f;
    }
};

/* The last rows of a sample; zeros in place of those that it lacks. */
struct taking_last {
    struct rm_spans s;
    const float *x;
    uint32_t last, n;
    float *y;
    __device__ void at(size_t place, uint32_t i) const
    {
        const struct rm_span of = rm_span_of_sample(s.spans, (uint32_t)(place / last));
        const uint32_t before_end = last - (uint32_t)(place % last);
        y[place * n + i] =
            before_end <= of.rows ? x[((size_t)of.from + of.rows - before_end) * n + i] : 0.0f;
    }
};

struct taking_last_back {
    struct rm_spans s;
    const float *dy;
    uint32_t last, n;
    float *dx;
    __device__ void at(size_t r, uint32_t i) const
    {
        const struct rm_span of = rm_span_of_row(s.spans, s.batch, r);
        const size_t before_end = (size_t)of.from + of.rows - r; /* at least 1 in a sample */
        dx[r * n + i] = of.sample < s.batch && before_end <= last
                            ? dy[((size_t)of.sample * last + last - before_end) * n + i]
                            : 0.0f;
    }
};

/* A thread for a row. */
struct finding_codes {
    struct rm_history_codes h;
    const float *x;
    int32_t *codes;
    __device__ void at(size_t r, uint32_t) const
    {
        const struct rm_span of = rm_span_of_row(h.spans, h.batch, r);
        rm_history_row_codes(&h, x + r * h.width, (uint32_t)(r - of.from), of.rows,
                             codes + r * RM_HISTORY_CODES);
    }
};

/* Copies rows to their places in y, which was cleared; or from there. */
struct spreading {
    struct rm_spans s;
    const float *x;
    uint32_t n;
    bool back;
    float *y;
    __device__ void at(size_t r, uint32_t i) const
    {
        const struct rm_span of = rm_span_of_row(s.spans, s.batch, r);
        const bool there = of.sample < s.batch;
        const size_t row = r * n + i;
        const size_t place = there ? ((size_t)of.sample * s.places + s.slots[r]) * n + i : 0;
        if (back)
            y[row] = there ? x[place] : 0.0f;
        else if (there)
            y[place] = x[row];
    }
};

/* --- pointer --------------------------------------------------------------------------------- */

/* A warp for a row; y was cleared. */
__global__ void score_rows(struct rm_pointer p, uint32_t rows, const float *x, float *y)
{
    const uint32_t warp_lane = threadIdx.x % 32;
    for (size_t r = blockIdx.x * (size_t)WARPS + threadIdx.x / 32; r < rows;
         r += (size_t)gridDim.x * WARPS) {
        const struct rm_span s = rm_span_of_row(p.spans, p.batch, r);
        if (s.sample == p.batch || s.from == r)
            continue;
        const float *first = x + (size_t)s.from * p.units, *row = x + r * p.units;
        float sum = 0.0f;
        for (uint32_t i = warp_lane; i < p.units; i += 32)
            sum = fmaf(first[i], row[i], sum);
        sum = rm_warp_sum(sum);
        if (warp_lane == 0)
            y[(size_t)s.sample * p.outputs + p.slots[r] - 1] = p.scale * sum;
    }
}

struct scoring_back {
    struct rm_pointer p;
    const float *x, *dy;
    float *dx;
    __device__ void at(size_t r, uint32_t i) const
    {
        const struct rm_span s = rm_span_of_row(p.spans, p.batch, r);
        float d = 0.0f;
        if (s.sample < p.batch && s.from != r) {
            d = p.scale * dy[(size_t)s.sample * p.outputs + p.slots[r] - 1] *
                x[(size_t)s.from * p.units + i];
        } else if (s.sample < p.batch) {
            const float *of = dy + (size_t)s.sample * p.outputs;
            for (uint32_t k = 1; k < s.rows; k++)
                d = fmaf(p.scale * of[p.slots[r + k] - 1], x[(r + k) * p.units + i], d);
        }
        dx[r * p.units + i] = d;
    }
};

} // namespace

void rm_cuda_find_spans(struct rm_backend *b, const void *x, uint32_t batch,
                        const struct rm_token_set *set, uint32_t *spans, uint32_t *slots)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const struct tokens t = {static_cast<const uint32_t *>(x), batch, *set};
    const unsigned blocks = (batch + WARPS - 1) / WARPS;
    if (!batch)
        return;
    RM_RUN(c, count_tokens, blocks, WARPS * 32, t, spans + 1);
    RM_RUN_SHARED(c, sum_counts, 1, SCAN, 2 * SCAN * sizeof(uint32_t), spans, batch);
    RM_RUN(c, write_slots, blocks, WARPS * 32, t, spans, slots);
}

void rm_cuda_span_one(struct rm_backend *b, const struct rm_spans *s, const float *x, uint32_t n,
                      bool mean, float *y)
{
    rm_map(rm_cuda_of(b), "span_one", taking_one{*s, x, n, mean, y}, (size_t)s->batch, n);
}

void rm_cuda_span_one_dx(struct rm_backend *b, const struct rm_spans *s, const float *dy,
                         uint32_t n, bool mean, float *dx)
{
    rm_map(rm_cuda_of(b), "span_one_dx", taking_one_back{*s, dy, n, mean, dx}, (size_t)s->rows, n);
}

void rm_cuda_span_last(struct rm_backend *b, const struct rm_spans *s, uint32_t last,
                       const float *x, uint32_t n, float *y)
{
    rm_map(rm_cuda_of(b), "span_last", taking_last{*s, x, last, n, y}, (size_t)s->batch * last, n);
}

void rm_cuda_span_last_dx(struct rm_backend *b, const struct rm_spans *s, uint32_t last,
                          const float *dy, uint32_t n, float *dx)
{
    rm_map(rm_cuda_of(b), "span_last_dx", taking_last_back{*s, dy, last, n, dx}, (size_t)s->rows,
           n);
}

void rm_cuda_history_codes(struct rm_backend *b, const struct rm_history_codes *h, const float *x,
                           int32_t *codes)
{
    rm_map(rm_cuda_of(b), "history_codes", finding_codes{*h, x, codes}, (size_t)h->rows, 1);
}

/* Launched for as many rows as there are places; rows that do not exist do nothing. */
void rm_cuda_spread(struct rm_backend *b, const struct rm_spans *s, const float *x, uint32_t n,
                    float *y)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const size_t rows = (size_t)s->batch * s->places;
    if (rm_cuda_ready(c) && rows && n)
        RM_CUDA(c, cudaMemsetAsync(y, 0, rows * n * sizeof *y, rm_cuda_stream(c)));
    rm_map(c, "spread", spreading{*s, x, n, false, y}, rows, n);
}

void rm_cuda_spread_dx(struct rm_backend *b, const struct rm_spans *s, const float *dy, uint32_t n,
                       float *dx)
{
    rm_map(rm_cuda_of(b), "spread_dx", spreading{*s, dy, n, true, dx}, (size_t)s->rows, n);
}

void rm_cuda_pointer(struct rm_backend *b, const struct rm_pointer *p, const float *x, float *y)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const size_t bytes = (size_t)p->batch * p->outputs * sizeof *y;
    if (!p->batch || !p->rows)
        return;
    if (rm_cuda_ready(c))
        RM_CUDA(c, cudaMemsetAsync(y, 0, bytes, rm_cuda_stream(c)));
    RM_RUN(c, score_rows, rm_cuda_blocks(c, p->rows, WARPS), WARPS * 32, *p, p->rows, x, y);
}

void rm_cuda_pointer_dx(struct rm_backend *b, const struct rm_pointer *p, const float *x,
                        const float *dy, float *dx)
{
    rm_map(rm_cuda_of(b), "pointer_dx", scoring_back{*p, x, dy, dx}, (size_t)p->rows, p->units);
}
