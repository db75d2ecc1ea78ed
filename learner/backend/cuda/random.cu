/* Dropout (dropout.h); normals and uniforms: the draws of random.isa.c. Philox4x32-10 (Salmon et
 * al., 2011), one block of it for a thread. Of 64 consecutive numbers, thread l of sixteen computes
 * those at l, 16 + l, 32 + l and 48 + l. */
#include "learner/backend/cuda/map.h"
#include "learner/backend/cuda/math.h"
#include "learner/backend/cuda/ops.h"
#include "learner/backend/cuda/spans.h"

extern "C" {
#include "shm/base/draw.h"
}

namespace
{

#define LANES 16u
#define GROUP (4u * LANES)

struct coordinates {
    uint64_t key, c;
    uint32_t a;
    const uint64_t *before; /* NULL: c as it is */
    uint64_t times;
};

/* Two streams of one key never share numbers (splitmix64's finalizer; Steele et al., 2014). */
uint64_t key_of(uint64_t key, uint32_t stream)
{
    uint64_t z = key + 0x9E3779B97F4A7C15u * (stream + 1ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

struct coordinates coordinates_of(const struct rm_cuda *c, uint64_t key, uint32_t a,
                                  uint64_t counter)
{
    return {key, counter, a, c->before, c->times};
}

RM_INLINE void philox(const struct coordinates &at, uint32_t block, uint32_t w[4])
{
    const uint64_t c = at.c + (at.before ? at.times * *at.before : 0);
    const uint32_t counter[4] = {block, at.a, (uint32_t)c, (uint32_t)(c >> 32)};
    rm_draw_block(at.key, counter, w);
}

/* Box and Muller (1958); (0, 1]: 32 bits as they round, so tails reach 6.7 */
RM_INLINE void box_muller(uint32_t radius, uint32_t angle, float *x, float *y)
{
    const float u = ((float)(int32_t)(radius >> 1) + 0.5f) * 0x1p-31f;
    const float r = sqrtf(-2.0f * rm_log_of(u));
    float s, c;
    rm_sincos_of_turn(angle, &s, &c);
    *x = r * c;
    *y = r * s;
}

RM_INLINE float uniform_of(uint32_t word)
{
    return (float)(int32_t)(word >> 8) * 0x1p-24f;
}

/* Blocks of the draws, from block `first` on. */
struct drawing {
    struct coordinates at;
    bool normal;
    size_t n;
    float *out;
};

__global__ void draw(struct drawing d, size_t blocks)
{
    RM_EACH(i, blocks)
    {
        uint32_t w[4];
        float v[4];
        philox(d.at, (uint32_t)i, w);
        if (d.normal) {
            box_muller(w[0], w[1], &v[0], &v[1]);
            box_muller(w[2], w[3], &v[2], &v[3]);
        } else {
            for (int k = 0; k < 4; k++)
                v[k] = uniform_of(w[k]);
        }
        const size_t to = i / LANES * GROUP + i % LANES;
        for (unsigned k = 0; k < 4; k++)
            if (to + k * LANES < d.n)
                d.out[to + k * LANES] = v[k];
    }
}

void run_draw(struct rm_cuda *c, const struct drawing &d)
{
    const size_t blocks = (d.n + GROUP - 1) / GROUP * LANES;
    if (blocks)
        RM_RUN(c, draw, rm_cuda_blocks(c, blocks, 128), 128, d, blocks);
}

struct dropping {
    struct rm_dropout d;
    const uint64_t *before; /* as in struct coordinates */
    uint64_t times;
    size_t first;
    const float *x;
    float *y;

    typedef float in;
    __device__ float load(size_t i) const
    {
        return x[i];
    }
    __device__ void store(size_t i, float value) const
    {
        const uint64_t element = first + i;
        struct rm_dropout now = d;
        now.update += before ? times * *before : 0;
        y[i] = value * rm_dropout_kept(rm_dropout_part(&now, element >> 32), (uint32_t)element,
                                       now.below, now.scale);
    }
};

struct dropping_rows {
    struct dropping of; /* first: of the first sample */
    struct rm_spans s;
    uint32_t n;
    __device__ void at(size_t r, uint32_t i) const
    {
        const struct rm_span in = rm_span_of_row(s.spans, s.batch, r);
        const size_t from = in.sample * (size_t)s.places + (r - in.from);
        struct dropping row = of;
        row.first += from * n - r * n;
        row.store(r * n + i, in.sample < s.batch ? row.load(r * n + i) : 0.0f);
    }
};

} // namespace

void rm_cuda_normals(struct rm_backend *b, uint64_t key, uint32_t stream, uint32_t a, uint64_t c,
                     size_t n, float *out)
{
    struct rm_cuda *cuda = rm_cuda_of(b);
    run_draw(cuda, {coordinates_of(cuda, key_of(key, stream), a, c), true, n, out});
}

/* Another key than that of the normals with equal coordinates, as on the CPU. */
void rm_cuda_uniforms(struct rm_backend *b, uint64_t key, uint32_t stream, uint32_t a, uint64_t c,
                      size_t n, float *out)
{
    struct rm_cuda *cuda = rm_cuda_of(b);
    run_draw(cuda, {coordinates_of(cuda, ~key_of(key, stream), a, c), false, n, out});
}

void rm_cuda_dropout(struct rm_backend *b, const struct rm_dropout *d, size_t first, size_t n,
                     const float *x, float *y)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const struct dropping op = {*d, c->before, c->times, first, x, y};
    rm_map(c, "dropout", op, n);
}

void rm_cuda_span_dropout(struct rm_backend *b, const struct rm_dropout *d,
                          const struct rm_spans *s, uint32_t first, uint32_t n, const float *x,
                          float *y)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const size_t at = (size_t)first * s->places * n;
    const struct dropping_rows op = {{*d, c->before, c->times, at, x, y}, *s, n};
    rm_map(c, "span_dropout", op, (size_t)s->rows, n);
}
