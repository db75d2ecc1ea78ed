/* The sum tree of prioritised replay on a device: the numbers of learner/sampler_priority.c and
 * priority_tree.c, with a thread for each leaf and each node. Leaves are set first, then sums level
 * by level, so sums do not depend on the order of threads. */
#include "learner/backend/cuda/draw.h"

/* --- the whole tree -------------------------------------------------------------------------- */

static __global__ void add_up_level(struct rm_device_tree t, uint32_t l)
{
    const uint64_t parents = t.nodes[l] / RM_PRIORITY_CHILDREN;
    RM_EACH(i, t.nodes[l + 1])
    {
        t.level[l + 1][i] =
            i < parents ? rm_priority_sum(t.level[l] + i * RM_PRIORITY_CHILDREN) : 0.0;
    }
}

void rm_cuda_add_up(struct rm_backend *b, const struct rm_device_sampler *d)
{
    struct rm_cuda *c = rm_cuda_of(b);
    for (uint32_t l = 0; l + 1 < d->tree.levels; l++)
        RM_RUN(c, add_up_level, rm_cuda_blocks(c, d->tree.nodes[l + 1], 128), 128, d->tree, l);
}

/* --- rows come and go ------------------------------------------------------------------------ */

/* Rows of a source, counted from its first, whose leaves change: [from, to) are new, and those from
 * `low` on may have become complete by them. */
struct range {
    uint64_t low, from, to;
};

static __device__ struct range range_of(const struct rm_device_sampler &d, uint32_t source)
{
    const struct rm_row_span span = rm_draw_spans(d)[source];
    const uint64_t reach = d.rule.n_step, to = span.end - d.sources[source].first_index;
    uint64_t from = d.tree.entered[source], low = 0;
    if (from < to - span.held) /* the writer is a whole ring ahead */
        from = to - span.held;
    if (from >= to)
        return {to, to, to};
    if (from > reach)
        low = from - reach;
    if (to > d.capacity_rows && low < to - d.capacity_rows)
        low = to - d.capacity_rows;
    return {low, from, to};
}

/* Row `row` of a lane: a new row has no item until the rows after it have arrived. */
static __device__ void enter_row(const struct rm_device_sampler &d, const struct range &r,
                                 uint32_t source, uint64_t row, uint32_t lane)
{
    const uint64_t reach = d.rule.n_step;
    const uint64_t leaf =
        row % d.capacity_rows * d.lanes + rm_draw_global(d, d.sources[source], lane);
    struct rm_transition_found found;
    if (row + reach < r.to && reach < d.capacity_rows &&
        rm_draw_look(d, source, r.to - row, lane, &found))
        rm_tree_put(d.tree, leaf, *d.tree.largest);
    else if (row >= r.from)
        rm_tree_put(d.tree, leaf, 0.0);
}

/* Updates the sums over the leaves of slots [first, end), up to level l + 1. */
static __device__ void climb_slots(const struct rm_device_sampler &d, uint32_t l, uint64_t first,
                                   uint64_t end)
{
    const uint64_t low = first * d.lanes >> 3 * l, high = (end * d.lanes - 1) >> 3 * l;
    const uint64_t node = low / RM_PRIORITY_CHILDREN, last = high / RM_PRIORITY_CHILDREN;
    for (uint64_t i = node + threadIdx.x; i <= last; i += blockDim.x)
        rm_tree_climb(d.tree, l, i * RM_PRIORITY_CHILDREN);
}

static __device__ void climb_range(const struct rm_device_sampler &d, uint32_t l,
                                   const struct range &r)
{
    const uint64_t cap = d.capacity_rows, first = r.low % cap, n = r.to - r.low;
    if (!n)
        return;
    if (first + n <= cap) {
        climb_slots(d, l, first, first + n);
        return;
    }
    climb_slots(d, l, first, cap);
    climb_slots(d, l, 0, first + n - cap);
}

/* One block. */
static __global__ void __launch_bounds__(RM_DRAW_THREADS) enter_rows(struct rm_device_sampler d)
{
    if (d.turn->longest == 0)
        return;
    for (uint32_t s = 0; s < d.source_count; s++) {
        const struct range r = range_of(d, s);
        const uint32_t lanes = d.sources[s].lanes;
        for (uint64_t i = threadIdx.x; i < (r.to - r.low) * lanes; i += blockDim.x)
            enter_row(d, r, s, r.low + i / lanes, (uint32_t)(i % lanes));
    }
    __syncthreads();
    for (uint32_t l = 0; l + 1 < d.tree.levels; l++) {
        for (uint32_t s = 0; s < d.source_count; s++)
            climb_range(d, l, range_of(d, s));
        __syncthreads();
    }
    __threadfence_system(); /* leaves are visible before the number of entered rows */
    __syncthreads();
    for (uint32_t s = threadIdx.x; s < d.source_count; s += blockDim.x) {
        const uint64_t rows = rm_draw_spans(d)[s].end - d.sources[s].first_index;
        if (rows > d.tree.entered[s])
            d.tree.kept_entered[s] = d.tree.entered[s] = rows;
    }
}

void rm_cuda_enter(struct rm_cuda *c, const struct rm_device_sampler *d)
{
    RM_RUN(c, enter_rows, 1, RM_DRAW_THREADS, *d);
}

/* --- priorities of errors -------------------------------------------------------------------- */

/* p^alpha; with an error that is not finite, the item gets the priority of a new one. */
static __device__ double priority_of(const struct rm_device_tree &t, float error, double largest)
{
    const double p = pow(fabs((double)error) + t.epsilon, t.alpha);
    return isfinite(p) ? p : largest;
}

/* One block. If several positions have the same leaf, the last one counts. */
static __global__ void __launch_bounds__(RM_DRAW_THREADS)
    learn(struct rm_device_sampler d, const float *error)
{
    RM_SHARED(double, scratch);
    const struct rm_device_tree &t = d.tree;
    const double largest = *t.largest;
    double most = largest;
    if (d.figures->skip || d.figures->stop)
        return;
    for (uint32_t i = threadIdx.x; i < d.batch; i += blockDim.x)
        atomicMax(&t.last[d.leaf[i]], i + 1);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < d.batch; i += blockDim.x) {
        const double p = priority_of(t, error[i], largest);
        if (t.last[d.leaf[i]] == i + 1)
            rm_tree_put(t, d.leaf[i], p);
        most = fmax(most, p);
    }
    most = rm_block_join(most, scratch, [](double a, double b) { return fmax(a, b); });
    for (uint32_t i = threadIdx.x; i < d.batch; i += blockDim.x)
        t.last[d.leaf[i]] = 0;
    uint64_t apart = 1;
    for (uint32_t l = 0; l + 1 < t.levels; l++, apart *= RM_PRIORITY_CHILDREN) {
        for (uint32_t i = threadIdx.x; i < d.batch; i += blockDim.x)
            rm_tree_climb(t, l, d.leaf[i] / apart);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *t.kept_largest = *t.largest = most;
}

void rm_cuda_learned(struct rm_backend *b, const struct rm_device_sampler *d, const float *error)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN_SHARED(c, learn, 1, rm_draw_threads(d->batch), RM_WARP * sizeof(double), *d, error);
}
