/* Draws of batches on a device (device_draw.h): the random numbers of sampler.c and
 * sampler_priority.c, in the host's order. Compiled without fused multiply-adds, so that returns
 * and positions in the tree equal the host's to the bit. */
#include "learner/backend/cuda/draw.h"

/* A generator that begins at word `word` of the draw's stream. */
static __device__ struct rm_rng rng_at(const struct rm_device_sampler &d, uint64_t word)
{
    struct rm_rng rng;
    rm_draw_at(&rng, d.seed, RM_STREAM_SAMPLE, d.policy, d.knobs->before + 1);
    rng.counter[0] = (uint32_t)(word / 4);
    for (uint32_t i = 0; i < word % 4; i++)
        rm_draw_u32(&rng);
    return rng;
}

/* Number of words used. */
static __device__ uint64_t words_used(const struct rm_rng &rng)
{
    return 4 * (uint64_t)rng.counter[0] - (4 - rng.used);
}

/* --- items ----------------------------------------------------------------------------------- */

struct item {
    uint64_t distance;
    uint32_t source, lane;
    bool there;
    struct rm_transition_found found;
};

static __device__ void put_item(const struct rm_device_sampler &d, uint32_t i,
                                const struct item &it)
{
    const uint64_t row = rm_draw_spans(d)[it.source].end - it.distance;
    d.picks[i].row = row;
    d.picks[i].source = it.source;
    d.picks[i].lane = it.lane;
    d.picks[i].before = it.found.before;
    d.picks[i].steps = it.found.steps;
    d.action[i] = rm_view_action(&d.sources[it.source].view, row, it.lane);
    d.ret[i] = it.found.ret;
    d.discount[i] = it.found.discount;
}

/* --- the end of a draw ----------------------------------------------------------------------- */

/* Sums of integers do not depend on the order. */
static __device__ void count(uint64_t *at, uint64_t n)
{
    if (n)
        atomicAdd(reinterpret_cast<unsigned long long *>(at), (unsigned long long)n);
}

/* Called by one thread, after a barrier. */
static __device__ void end_draw(const struct rm_device_sampler &d, bool dry, uint64_t rejected)
{
    if (dry) {
        d.figures->stop = 1;
        d.drawn->dry++;
    } else {
        d.drawn->rejected += rejected;
        d.drawn->age_count += d.batch;
    }
    *d.drawn_copy = *d.drawn;
}

/* Whether there is nothing to draw from, or an earlier draw was dry. */
static __device__ bool dry_before(const struct rm_device_sampler &d)
{
    return d.turn->longest < 2 || d.figures->stop;
}

/* --- uniform draws --------------------------------------------------------------------------- */

/* Of the block, in shared memory. */
struct round {
    uint64_t word; /* of the stream: the first of this round's */
    uint32_t taken, since;
    uint32_t first, last; /* tries of this round that found a transition; `last`: those used */
    uint64_t ages, rejected;
    bool dry;
    uint32_t found[RM_WARP]; /* by warp */
    uint32_t words[RM_DRAW_THREADS];
};

static __device__ bool drawn_again(uint32_t word, uint32_t n)
{
    const uint32_t low = (uint32_t)((uint64_t)word * n);
    return low < n && low < (0u - n) % n;
}

/* The first word of this thread's try. Every try takes two words, except if a word is drawn again
 * (rm_draw_below()), which is rare and moves the later ones: then one thread reads the words of
 * all. */
static __device__ uint64_t word_of_try(const struct rm_device_sampler &d, struct round *r)
{
    const uint32_t longest = (uint32_t)d.turn->longest;
    const uint64_t word = r->word;
    struct rm_rng rng = rng_at(d, word + 2 * threadIdx.x);
    const bool a = drawn_again(rm_draw_u32(&rng), longest);
    const bool b = drawn_again(rm_draw_u32(&rng), d.lanes);
    if (!__syncthreads_or(a || b)) {
        if (threadIdx.x == 0)
            r->word = word + 2 * blockDim.x;
        return word + 2 * threadIdx.x;
    }
    if (threadIdx.x == 0) {
        rng = rng_at(d, word);
        for (uint32_t i = 0; i < blockDim.x; i++) {
            r->words[i] = (uint32_t)(words_used(rng) - word);
            rm_draw_below(&rng, longest);
            rm_draw_below(&rng, d.lanes);
        }
        r->word = words_used(rng);
    }
    __syncthreads();
    return word + r->words[threadIdx.x];
}

static __device__ struct item try_at(const struct rm_device_sampler &d, uint64_t word)
{
    struct rm_rng rng = rng_at(d, word);
    struct item it;
    it.distance = 1 + (uint64_t)rm_draw_below(&rng, (uint32_t)d.turn->longest);
    const struct rm_draw_lane at = rm_draw_lane_of(d, rm_draw_below(&rng, d.lanes));
    it.source = at.source;
    it.lane = at.lane;
    it.there = rm_draw_look(d, it.source, it.distance, it.lane, &it.found);
    return it;
}

/* Number of earlier threads whose try found a transition; *all: of the whole block. */
static __device__ uint32_t rank_of(bool there, struct round *r, uint32_t *all)
{
    const unsigned warp_lane = threadIdx.x % RM_WARP, warp = threadIdx.x / RM_WARP;
    const unsigned votes = __ballot_sync(0xffffffffu, there);
    if (warp_lane == 0)
        r->found[warp] = (uint32_t)__popc(votes);
    __syncthreads();
    uint32_t before = (uint32_t)__popc(votes & ((1u << warp_lane) - 1));
    *all = 0;
    for (unsigned w = 0; w < blockDim.x / RM_WARP; w++) {
        before += w < warp ? r->found[w] : 0;
        *all += r->found[w];
    }
    return before;
}

/* Called after a round by one thread. The draw is dry after `tries` rejections in a row, as on the
 * host. */
static __device__ void end_round(const struct rm_device_sampler &d, struct round *r, uint32_t all)
{
    const uint32_t left = d.batch - r->taken, taken = all < left ? all : left;
    const uint32_t tried = all < left ? blockDim.x : r->last + 1;
    r->dry = r->since + (taken ? r->first : tried) >= d.tries;
    r->since = taken ? tried - 1 - r->last : r->since + tried;
    r->rejected += tried - taken;
    r->taken += taken;
    r->first = UINT32_MAX;
    r->last = 0;
}

/* One block: rounds of tries, one for each thread, of which transitions are kept in their order,
 * until there are enough. */
static __global__ void __launch_bounds__(RM_DRAW_THREADS) draw_uniform(struct rm_device_sampler d)
{
    __shared__ struct round r;
    if (threadIdx.x == 0) {
        r.word = r.ages = r.rejected = 0;
        r.taken = r.since = r.last = 0;
        r.first = UINT32_MAX;
        r.dry = dry_before(d);
    }
    __syncthreads();
    while (!r.dry && r.taken < d.batch) {
        const struct item it = try_at(d, word_of_try(d, &r));
        uint32_t all;
        const uint32_t place = r.taken + rank_of(it.there, &r, &all);
        if (it.there && place < d.batch) {
            put_item(d, place, it);
            count(&r.ages, it.distance * d.lanes);
            atomicMin(&r.first, threadIdx.x);
            atomicMax(&r.last, threadIdx.x);
        }
        __syncthreads();
        if (threadIdx.x == 0)
            end_round(d, &r, all);
        __syncthreads();
    }
    if (threadIdx.x != 0)
        return;
    if (!r.dry)
        d.drawn->age_sum += r.ages;
    end_draw(d, r.dry, r.rejected);
}

/* --- draws by priority ----------------------------------------------------------------------- */

static __device__ uint64_t leaf_at(const struct rm_device_tree &t, double u)
{
    uint64_t leaf = 0;
    for (uint32_t l = t.levels; l-- > 0;)
        leaf = leaf * RM_PRIORITY_CHILDREN +
               rm_priority_child(t.level[l] + leaf * RM_PRIORITY_CHILDREN, &u);
    return leaf;
}

/* The item of a leaf: the newest row of its slot. */
static __device__ struct item item_of(const struct rm_device_sampler &d, uint64_t leaf)
{
    struct item it;
    const uint64_t slot = leaf / d.lanes, cap = d.capacity_rows;
    const struct rm_draw_lane at = rm_draw_lane_of(d, (uint32_t)(leaf % d.lanes));
    const uint64_t rows = rm_draw_spans(d)[at.source].end - d.sources[at.source].first_index;
    it.source = at.source;
    it.lane = at.lane;
    it.distance = 1 + ((rows - 1) % cap + cap - slot) % cap;
    it.there = rows && d.tree.level[0][leaf] > 0 &&
               rm_draw_look(d, it.source, it.distance, it.lane, &it.found);
    return it;
}

/* Of the block, in shared memory. */
struct drawn {
    double scratch[RM_WARP];
    uint64_t ages, rejected;
    bool dry;
};

/* Puts the leaf's item at position i of the batch. */
static __device__ bool put_leaf(const struct rm_device_sampler &d, struct drawn *s, uint32_t i,
                                uint64_t leaf)
{
    const struct item it = item_of(d, leaf);
    d.leaf[i] = leaf;
    if (!it.there)
        return false;
    put_item(d, i, it);
    count(&s->ages, it.distance * d.lanes);
    return true;
}

/* By one thread. Removes a leaf; if several draws found it, only the first removes it. */
static __device__ void remove_leaf(const struct rm_device_tree &t, struct drawn *s, uint64_t leaf)
{
    s->rejected += t.level[0][leaf] > 0;
    rm_tree_put(t, leaf, 0.0);
    for (uint32_t l = 0; l + 1 < t.levels; l++)
        leaf = rm_tree_climb(t, l, leaf);
}

static __device__ bool draw_again(const struct rm_device_sampler &d, struct drawn *s,
                                  struct rm_rng *rng, uint32_t i)
{
    for (uint32_t tries = 0; tries < d.tries; tries++) {
        const double total = rm_tree_total(d.tree);
        if (!(total > 0))
            return false;
        if (put_leaf(d, s, i, leaf_at(d.tree, rm_draw_double(rng) * total)))
            return true;
        remove_leaf(d.tree, s, d.leaf[i]);
    }
    return false;
}

/* Removes leaves without an item and draws again from the whole tree, one after another as the host
 * does; this is rare. */
static __device__ void replace_gone(const struct rm_device_sampler &d, struct drawn *s)
{
    struct rm_rng rng = rng_at(d, 2 * (uint64_t)d.batch);
    for (uint32_t i = 0; i < d.batch && !s->dry; i++) {
        if (d.picks[i].steps)
            continue;
        remove_leaf(d.tree, s, d.leaf[i]);
        s->dry = !draw_again(d, s, &rng, i);
    }
}

/* w = (smallest p / p)^beta, as weigh() of sampler_priority.c. */
static __device__ void weigh(const struct rm_device_sampler &d, struct drawn *s)
{
    double least = INFINITY;
    for (uint32_t i = threadIdx.x; i < d.batch; i += blockDim.x)
        least = fmin(least, d.tree.level[0][d.leaf[i]]);
    least = rm_block_join(least, s->scratch, [](double a, double b) { return fmin(a, b); });
    for (uint32_t i = threadIdx.x; i < d.batch; i += blockDim.x)
        d.weight[i] = (float)pow(least / d.tree.level[0][d.leaf[i]], d.turn->beta);
}

/* One block: draw k of B is uniform over the k-th part of the total. */
static __global__ void __launch_bounds__(RM_DRAW_THREADS)
    draw_by_priority(struct rm_device_sampler d)
{
    __shared__ struct drawn s;
    const double total = rm_tree_total(d.tree), part = total / d.batch;
    int gone = 0;
    if (threadIdx.x == 0) {
        s.ages = s.rejected = 0;
        s.dry = dry_before(d) || !(total > 0);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < d.batch && !s.dry; i += blockDim.x) {
        struct rm_rng rng = rng_at(d, 2 * (uint64_t)i);
        d.picks[i].steps = 0;
        gone |= !put_leaf(d, &s, i, leaf_at(d.tree, (i + rm_draw_double(&rng)) * part));
    }
    gone = __syncthreads_or(gone);
    if (gone && threadIdx.x == 0)
        replace_gone(d, &s);
    __syncthreads();
    if (!s.dry)
        weigh(d, &s);
    if (threadIdx.x != 0)
        return;
    if (!s.dry)
        d.drawn->age_sum += s.ages;
    end_draw(d, s.dry, s.rejected);
}

void rm_cuda_draw(struct rm_backend *b, const struct rm_device_sampler *d)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const unsigned threads = rm_draw_threads(d->batch);
    if (!d->tree.levels) {
        RM_RUN(c, draw_uniform, 1, threads, *d);
        return;
    }
    rm_cuda_enter(c, d);
    RM_RUN(c, draw_by_priority, 1, threads, *d);
}
