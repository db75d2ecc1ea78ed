/* The norm and the decision to skip, Adam, AdamW and RMSProp over one arena, and the parts of Muon
 * beside its products (device_optimizer.h). The arithmetic is the CPU's, fused multiply-adds
 * included, so that a step from the same gradient differs only by the rounding of the norm. */
#include "learner/backend/cuda/tables.h"

#include "learner/backend/cuda/block.h"
#include "learner/backend/cuda/ops.h"

#define THREADS 256u
#define TINY    1e-7 /* muon.c */

/* --- norm ------------------------------------------------------------------------------------ */

/* A block per chunk. */
static __global__ void norm_chunks(struct rm_device_step s)
{
    RM_SHARED(double, scratch);
    for (uint32_t i = blockIdx.x; i < s.chunk_count; i += gridDim.x) {
        const struct rm_device_chunk chunk = s.chunks[i];
        double sum = 0.0;
        if (chunk.flags & RM_DEVICE_TRAINED)
            for (uint32_t j = threadIdx.x; j < chunk.n; j += blockDim.x) {
                const double g = s.grads[chunk.at + j];
                sum += g * g;
            }
        sum = rm_block_sum(sum, scratch);
        if (threadIdx.x == 0)
            s.partials[i] = sum;
    }
}

static __device__ double partials_sum(const double *partials, uint32_t n, double *scratch)
{
    double sum = 0.0;
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        sum += partials[i];
    return rm_block_sum(sum, scratch);
}

/* The sum of squares of a group's chunks. */
static __device__ double chunks_sum(const struct rm_device_step &s, uint32_t group, double *scratch)
{
    double sum = 0.0;
    for (uint32_t i = threadIdx.x; i < s.chunk_count; i += blockDim.x)
        sum += s.chunks[i].group == group ? s.partials[i] : 0.0;
    return rm_block_sum(sum, scratch);
}

/* Norms of a gradient, divided by the losses' scale. */
struct norms {
    double all, group[RM_DEVICE_GROUPS];
};

static __device__ double clipping(double clip, double norm)
{
    return clip > 0.0 && norm > clip ? clip / norm : 1.0;
}

/* Counts an update that is made, and computes the numbers of its step. */
static __device__ void count_made(const struct rm_device_rule &rule,
                                  const struct rm_update_knobs *knobs, struct rm_update_figures *f,
                                  const struct norms &norms)
{
    const double rate = (double)(float)knobs->learning_rate, clip = (double)knobs->grad_clip;
    rm_figures_add(f);
    f->steps++;
    for (uint32_t i = 0; i < rule.groups; i++)
        f->scale[i] = (float)(clipping(clip, norms.group[i]) / rm_figures_scale(f));
    const double t = (double)f->steps;
    f->adam_step = (float)(rate / (1.0 - pow((double)rule.beta1, t)));
    f->adam_root = (float)(1.0 / sqrt(1.0 - pow((double)rule.beta2, t)));
    f->adam_decay = (float)rate * rule.weight_decay;
}

/* fp16: sets the scale of the next loss. True: the scale made the gradient infinite. */
static __device__ bool rescale(struct rm_update_figures *f, bool finite)
{
    if (f->loss_scale <= 0.0f)
        return false;
    f->loss_scale_good = finite ? f->loss_scale_good + 1 : 0;
    if (finite && f->loss_scale_good < RM_DEVICE_SCALE_PATIENCE)
        return false;
    const bool may = finite ? f->loss_scale < RM_DEVICE_SCALE_MOST : f->loss_scale > 1.0f;
    f->loss_scale_good = 0;
    if (may)
        f->loss_scale *= finite ? 2.0f : 0.5f;
    return !finite && may && isfinite(f->last_loss);
}

static __device__ void judge(const struct rm_device_rule &rule, const struct rm_update_knobs *knobs,
                             struct rm_update_figures *f, const struct norms &norms)
{
    if (knobs->afresh)
        rm_figures_clear(f);
    f->skip = 1;
    if (f->stop)
        return;
    f->last_grad_norm = norms.all;
    if (isfinite(f->last_loss) && isfinite(norms.all)) {
        f->skip = 0;
        count_made(rule, knobs, f, norms);
        rescale(f, true);
    } else {
        f->skipped++;
        if (!rescale(f, false))
            f->skipped_in_row++;
    }
}

/* One block. */
static __global__ void norm_judge(struct rm_device_rule rule, struct rm_device_step s)
{
    RM_SHARED(double, scratch);
    struct rm_update_figures *f = s.figures;
    const double by = rm_figures_scale(f);
    struct norms norms = {};
    for (uint32_t i = 0; i < rule.groups; i++) {
        const double squares = chunks_sum(s, i, scratch);
        norms.group[i] = sqrt(squares) / by;
        norms.all += squares;
    }
    if (threadIdx.x != 0)
        return;
    norms.all = sqrt(norms.all) / by;
    judge(rule, s.knobs, f, norms);
    if (s.copy)
        *s.copy = *f;
}

static void norm(struct rm_backend *b, const struct rm_device_rule *rule,
                 const struct rm_device_step *step)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN_SHARED(c, norm_chunks, rm_cuda_blocks(c, step->chunk_count, 1), THREADS,
                  RM_BLOCK_SUM_BYTES, *step);
    RM_RUN_SHARED(c, norm_judge, 1, THREADS, RM_BLOCK_SUM_BYTES, *rule, *step);
}

/* --- step ------------------------------------------------------------------------------------ */

/* As in the CPU's adam(): moments too small to matter are 0. */
static __device__ float flushed(float x)
{
    return fabsf(x) < 1e-35f ? 0.0f : x;
}

static __device__ float move_adam(const struct rm_device_rule &rule, const struct rm_device_step &s,
                                  const struct rm_update_figures &f,
                                  const struct rm_device_chunk &chunk, size_t i)
{
    const float g = s.grads[i] * f.scale[chunk.group], p = s.params[i];
    const bool decayed = (chunk.flags & RM_DEVICE_DECAYED) != 0;
    const float rest1 = 1.0f - rule.beta1, rest2 = 1.0f - rule.beta2;
    const float m = flushed(fmaf(rest1, g, rule.beta1 * s.m[i]));
    const float v = flushed(fmaf(rest2 * g, g, rule.beta2 * s.v[i]));
    s.m[i] = m;
    s.v[i] = v;
    const float kept = decayed ? fmaf(-f.adam_decay, p, p) : p;
    return fmaf(-f.adam_step, m / fmaf(sqrtf(v), f.adam_root, rule.epsilon), kept);
}

static __device__ float move_rmsprop(const struct rm_device_rule &rule,
                                     const struct rm_device_step &s,
                                     const struct rm_update_figures &f, float rate,
                                     const struct rm_device_chunk &chunk, size_t i)
{
    const float g = s.grads[i] * f.scale[chunk.group];
    const float v = fmaf((1.0f - rule.beta2) * g, g, rule.beta2 * s.v[i]);
    float d = g / (sqrtf(v) + rule.epsilon);
    s.v[i] = v;
    if (s.m)
        s.m[i] = d = fmaf(rule.momentum, s.m[i], d);
    return fmaf(-rate, d, s.params[i]);
}

static __device__ void move_target(const struct rm_device_step &s, float tau, float p, size_t i)
{
    if (tau == 1.0f)
        s.target[i] = p;
    else if (tau != 0.0f)
        s.target[i] = fmaf(tau, p - s.target[i], s.target[i]);
}

static __global__ void step_chunks(struct rm_device_rule rule, struct rm_device_step s)
{
    const struct rm_update_figures f = *s.figures;
    const float rate = (float)s.knobs->learning_rate, tau = s.knobs->target_tau;
    if (f.skip)
        return;
    for (uint32_t k = blockIdx.x; k < s.chunk_count; k += gridDim.x) {
        const struct rm_device_chunk chunk = s.chunks[k];
        const bool still = (chunk.flags & RM_DEVICE_LAZY) && s.partials[k] == 0.0;
        const bool moved =
            !still && (chunk.flags & (RM_DEVICE_TRAINED | RM_DEVICE_APART)) == RM_DEVICE_TRAINED;
        if (!moved && (!s.target || tau == 0.0f))
            continue;
        for (uint32_t j = threadIdx.x; j < chunk.n; j += blockDim.x) {
            const size_t i = chunk.at + j;
            float p = s.params[i];
            if (moved) {
                p = rule.kind == RM_DEVICE_RMSPROP ? move_rmsprop(rule, s, f, rate, chunk, i)
                                                   : move_adam(rule, s, f, chunk, i);
                s.params[i] = p;
            }
            if (s.target)
                move_target(s, tau, p, i);
        }
    }
}

static void step(struct rm_backend *b, const struct rm_device_rule *rule,
                 const struct rm_device_step *step)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, step_chunks, rm_cuda_blocks(c, step->chunk_count, 1), THREADS, *rule, *step);
}

/* --- muon ------------------------------------------------------------------------------------ */

static __device__ size_t size_of(const struct rm_device_matrix &matrix)
{
    return (size_t)matrix.rows * matrix.columns;
}

/* m <- mu m + (1 - mu) g, x = mu m + (1 - mu) g, and partial sums of squares of x. */
static __global__ void muon_momentum(struct rm_device_rule rule, struct rm_device_step s,
                                     struct rm_device_matrix matrix)
{
    RM_SHARED(double, scratch);
    const float mu = rule.momentum, fresh = (1.0f - mu) * s.figures->scale[matrix.group];
    const bool skip = s.figures->skip;
    const size_t n = skip ? 0 : size_of(matrix);
    double sum = 0.0;
    RM_EACH(i, n)
    {
        const float g = s.grads[matrix.at + i];
        const float m = fmaf(fresh, g, mu * s.m[matrix.at + i]);
        const float x = fmaf(fresh, g, mu * m);
        s.m[matrix.at + i] = m;
        matrix.x[i] = x;
        sum += (double)x * (double)x;
    }
    sum = rm_block_sum(sum, scratch);
    if (threadIdx.x == 0)
        matrix.partials[blockIdx.x] = sum;
}

/* One block: sets the last of the partials to their sum. */
static __global__ void muon_total(double *partials, uint32_t n)
{
    RM_SHARED(double, scratch);
    const double sum = partials_sum(partials, n, scratch);
    if (threadIdx.x == 0)
        partials[RM_DEVICE_PARTIALS] = sum;
}

static __global__ void muon_divide(struct rm_device_step s, struct rm_device_matrix matrix)
{
    const float by = (float)(1.0 / (sqrt(matrix.partials[RM_DEVICE_PARTIALS]) + TINY));
    const size_t n = s.figures->skip ? 0 : size_of(matrix);
    RM_EACH(i, n)
    {
        matrix.x[i] *= by;
    }
}

static __global__ void muon_move(struct rm_device_rule rule, struct rm_device_step s,
                                 struct rm_device_matrix matrix)
{
    const double rate = (double)(float)s.knobs->learning_rate;
    const float decay = (float)(-rate * (double)rule.weight_decay);
    const float reach = (float)(-rate * (double)matrix.reach);
    const size_t n = s.figures->skip ? 0 : size_of(matrix);
    RM_EACH(i, n)
    {
        const float w = s.params[matrix.at + i];
        const float kept = rule.weight_decay > 0.0f ? fmaf(decay, w, w) : w;
        s.params[matrix.at + i] = fmaf(reach, matrix.x[i], kept);
    }
}

/* A function of n alone, so that the order of their sum is fixed. */
static unsigned parts_of(size_t n)
{
    const size_t blocks = (n + THREADS - 1) / THREADS;
    return (unsigned)(blocks < 1 ? 1 : blocks < RM_DEVICE_PARTIALS ? blocks : RM_DEVICE_PARTIALS);
}

static void muon_begin(struct rm_backend *b, const struct rm_device_rule *rule,
                       const struct rm_device_step *step, const struct rm_device_matrix *matrix)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const size_t n = (size_t)matrix->rows * matrix->columns;
    const unsigned parts = parts_of(n);
    RM_RUN_SHARED(c, muon_momentum, parts, THREADS, RM_BLOCK_SUM_BYTES, *rule, *step, *matrix);
    RM_RUN_SHARED(c, muon_total, 1, THREADS, RM_BLOCK_SUM_BYTES, matrix->partials, parts);
    RM_RUN(c, muon_divide, rm_cuda_blocks(c, n, THREADS), THREADS, *step, *matrix);
}

static void muon_end(struct rm_backend *b, const struct rm_device_rule *rule,
                     const struct rm_device_step *step, const struct rm_device_matrix *matrix)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const size_t n = (size_t)matrix->rows * matrix->columns;
    RM_RUN(c, muon_move, rm_cuda_blocks(c, n, THREADS), THREADS, *rule, *step, *matrix);
}

/* --- change ---------------------------------------------------------------------------------- */

static __global__ void change_parts(const float *x, const float *y, size_t n, double *partials)
{
    RM_SHARED(double, scratch);
    double apart = 0.0, size = 0.0;
    RM_EACH(i, n)
    {
        const double d = (double)x[i] - (double)y[i];
        apart += d * d;
        size += (double)y[i] * (double)y[i];
    }
    apart = rm_block_sum(apart, scratch);
    size = rm_block_sum(size, scratch);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = apart;
        partials[RM_DEVICE_PARTIALS + blockIdx.x] = size;
    }
}

static __global__ void change_total(const double *partials, uint32_t parts, double *out)
{
    RM_SHARED(double, scratch);
    const double apart = partials_sum(partials, parts, scratch);
    const double size = partials_sum(partials + RM_DEVICE_PARTIALS, parts, scratch);
    if (threadIdx.x == 0) {
        out[0] = apart;
        out[1] = size;
    }
}

void rm_cuda_change(struct rm_backend *b, const float *x, const float *y, size_t n, double out[2])
{
    struct rm_cuda *c = rm_cuda_of(b);
    const unsigned parts = parts_of(n);
    RM_RUN_SHARED(c, change_parts, parts, THREADS, RM_BLOCK_SUM_BYTES, x, y, n, c->sums);
    RM_RUN_SHARED(c, change_total, 1, THREADS, RM_BLOCK_SUM_BYTES, c->sums, parts, out);
}

const struct rm_device_optimizer_ops rm_cuda_optimizer = {
    .norm = norm, .step = step, .muon_begin = muon_begin, .muon_end = muon_end};
