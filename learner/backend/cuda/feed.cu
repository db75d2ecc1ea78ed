/* Batches from replay rows (device_feed.h). */
#include "learner/backend/cuda/tables.h"

extern "C" {
#include "actor/env.h"
}

#define THREADS 128u

/* Element e of an observation; real numbers are no codes (int32_t): 0. */
template <class T>
static __device__ T element_of(uint32_t dtype, const uint8_t *obs, uint32_t e)
{
    switch (dtype) {
    case RM_ENV_I8:
        return reinterpret_cast<const int8_t *>(obs)[e];
    case RM_ENV_I16:
        return reinterpret_cast<const int16_t *>(obs)[e];
    case RM_ENV_I32:
        return (T) reinterpret_cast<const int32_t *>(obs)[e];
    case RM_ENV_F32:
        return std::is_same<T, float>::value ? (T) reinterpret_cast<const float *>(obs)[e] : (T)0;
    default:
        return obs[e];
    }
}

/* How many a counted observation has. */
static __device__ uint32_t count_of(const struct rm_device_observation &d, const uint8_t *elements)
{
    const uint32_t count = reinterpret_cast<const uint32_t *>(elements)[-1];
    return count < d.most ? count : d.most;
}

/* Word w of an observation in a frame. */
static __device__ uint32_t word_of(const struct rm_device_observation &d, const uint8_t *elements,
                                   uint32_t w)
{
    if (d.most && w % d.elements >= count_of(d, elements) * d.item)
        return 0;
    if (d.as_codes)
        return (uint32_t)element_of<int32_t>(d.dtype, elements, w);
    float x;
    if (d.channels) {
        const uint32_t code = elements[w % d.elements];
        x = d.codebook[(size_t)(code < d.codes ? code : 0) * d.channels + w / d.elements];
    } else {
        x = element_of<float>(d.dtype, elements, w);
    }
    return __float_as_uint(x);
}

/* Two blocks for each sample: one stacks the frames up to its first row, the other up to its last.
 */
static __global__ void gather_stacks(struct rm_device_gather g)
{
    const uint32_t sample = blockIdx.x >> 1, newest = blockIdx.x & 1;
    const struct rm_device_pick pick = g.picks[sample];
    const struct rm_device_source source = g.sources[pick.source];
    const uint32_t words = g.decode.words;
    uint32_t *out =
        static_cast<uint32_t *>(newest ? g.next_obs : g.obs) + (size_t)sample * g.stack * words;
    const size_t lane = (size_t)pick.lane * g.decode.obs_bytes;
    const int64_t first = (newest ? (int64_t)pick.steps : 0) - (int64_t)(g.stack - 1);
    uint32_t o = 0;
    for (uint32_t i = threadIdx.x; i < g.stack * words; i += blockDim.x) {
        while (o + 1 < g.decode.observations && i >= g.decode.observation[o + 1].words_at * g.stack)
            o++;
        const struct rm_device_observation &d = g.decode.observation[o];
        const uint32_t of = i - d.words_at * g.stack, counts = d.most ? g.stack : 0;
        const uint32_t word = of < counts ? 0 : (of - counts) % d.words;
        const int64_t offset = first + (of < counts ? of : (of - counts) / d.words);
        const uint64_t row = (pick.row + (uint64_t)offset) & source.row_mask;
        const uint8_t *elements = source.rows + row * source.stride + lane + d.at;
        if (offset < -(int64_t)pick.before) {
            out[i] = 0;
        } else if (of < counts) {
            const uint32_t count = count_of(d, elements);
            out[i] = d.as_codes ? count : __float_as_uint((float)count);
        } else {
            out[i] = word_of(d, elements, word);
        }
    }
    if (newest && g.next_mask)
        for (uint32_t a = threadIdx.x; a < g.decode.actions; a += blockDim.x)
            g.next_mask[(size_t)sample * g.decode.actions + a] =
                source.rows[((pick.row + pick.steps) & source.row_mask) * source.stride +
                            source.mask_at + (size_t)pick.lane * g.decode.actions + a];
}

static void gather(struct rm_backend *b, const struct rm_device_gather *g)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, gather_stacks, 2 * g->batch, THREADS, *g);
}

const struct rm_device_feed_ops rm_cuda_feed = {
    .gather = gather, .draw = rm_cuda_draw, .learned = rm_cuda_learned, .add_up = rm_cuda_add_up};
