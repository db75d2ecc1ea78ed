/* Normals and uniforms in bulk: Philox4x32-10 (Salmon et al., 2011) in sixteen lanes, then Box and
 * Muller (1958). Group g of 64 numbers uses blocks 16 g .. 16 g + 15 of the stream, one a lane. */
#include "learner/backend/isa_math.h"
#include "learner/backend/isa_parts.h"
#include "learner/backend/isa_vector.h"

#include <math.h>

/* A word stands in the low half of a 64-bit lane, where the products want it; what is in the high
 * half does not matter until the end. */
#define PARTS (RM_LANES / (VEC_FLOATS / 2))

static inline void blocks(uint64_t key, uint32_t a, uint64_t c, uint32_t group,
                          uint32_t words[4][RM_LANES])
{
    const vec64 m0 = vec64_set(0xD2511F53u), m1 = vec64_set(0xCD9E8D57u);
    uint64_t first[RM_LANES];
    vec64 w[4][PARTS];
    for (uint32_t l = 0; l < RM_LANES; l++)
        first[l] = group * RM_LANES + l;
    for (uint32_t p = 0; p < PARTS; p++) {
        w[0][p] = vec64_load(first + p * (VEC_FLOATS / 2));
        w[1][p] = vec64_set(a);
        w[2][p] = vec64_set((uint32_t)c);
        w[3][p] = vec64_set(c >> 32);
    }
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        const vec64 v0 = vec64_set(k0), v1 = vec64_set(k1);
        for (uint32_t p = 0; p < PARTS; p++) {
            vec64 p0 = vec64_mul32(w[0][p], m0), p1 = vec64_mul32(w[2][p], m1);
            w[0][p] = vec64_xor(vec64_xor(vec64_high(p1), w[1][p]), v0);
            w[2][p] = vec64_xor(vec64_xor(vec64_high(p0), w[3][p]), v1);
            w[1][p] = p1;
            w[3][p] = p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t wide[RM_LANES];
        for (uint32_t p = 0; p < PARTS; p++)
            vec64_store(wide + p * (VEC_FLOATS / 2), w[i][p]);
        for (uint32_t l = 0; l < RM_LANES; l++)
            words[i][l] = (uint32_t)wide[l];
    }
}

static inline void box_muller(const uint32_t *radius, const uint32_t *angle, float *out)
{
    for (int l = 0; l < RM_LANES; l++) {
        /* (0, 1]: 32 bits as they round, so tails reach 6.7 */
        float u = ((float)(int32_t)(radius[l] >> 1) + 0.5f) * 0x1p-31f;
        float r = sqrtf(-2.0f * rm_log_of(u));
        float s, c;
        rm_sincos_of_turn(angle[l], &s, &c);
        out[l] = r * c;
        out[RM_LANES + l] = r * s;
    }
}

void RM_ISA_NAME(normals)(uint64_t key, uint32_t a, uint64_t c, uint32_t group, uint32_t groups,
                          float *out)
{
    for (uint32_t g = 0; g < groups; g++, out += RM_RANDOM_GROUP) {
        uint32_t words[4][RM_LANES];
        blocks(key, a, c, group + g, words);
        box_muller(words[0], words[1], out);
        box_muller(words[2], words[3], out + 2 * RM_LANES);
    }
}

void RM_ISA_NAME(uniforms)(uint64_t key, uint32_t a, uint64_t c, uint32_t group, uint32_t groups,
                           float *out)
{
    for (uint32_t g = 0; g < groups; g++, out += RM_RANDOM_GROUP) {
        uint32_t words[4][RM_LANES];
        blocks(key, a, c, group + g, words);
        for (int w = 0; w < 4; w++)
            for (int l = 0; l < RM_LANES; l++)
                out[w * RM_LANES + l] = (float)(int32_t)(words[w][l] >> 8) * 0x1p-24f;
    }
}
