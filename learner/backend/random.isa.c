/* Normals and uniforms in bulk: Philox4x32-10 (Salmon et al., 2011) in sixteen lanes, then Box and
 * Muller (1958). Group g of 64 numbers uses blocks 16 g .. 16 g + 15 of the stream, one a lane. */
#include "learner/backend/isa_math.h"
#include "learner/backend/isa_parts.h"

#include <math.h>

static inline void multiply_wide(const uint32_t *a, uint32_t m, uint32_t *high, uint32_t *low)
{
    for (int l = 0; l < RM_LANES; l++) {
        uint64_t p = (uint64_t)a[l] * m;
        high[l] = (uint32_t)(p >> 32);
        low[l] = (uint32_t)p;
    }
}

static void blocks(uint64_t key, uint32_t a, uint64_t c, uint32_t group,
                   uint32_t words[4][RM_LANES])
{
    uint32_t *w0 = words[0], *w1 = words[1], *w2 = words[2], *w3 = words[3];
    for (uint32_t l = 0; l < RM_LANES; l++) {
        w0[l] = group * RM_LANES + l;
        w1[l] = a;
        w2[l] = (uint32_t)c;
        w3[l] = (uint32_t)(c >> 32);
    }
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint32_t h0[RM_LANES], l0[RM_LANES], h1[RM_LANES], l1[RM_LANES];
        multiply_wide(w0, 0xD2511F53u, h0, l0);
        multiply_wide(w2, 0xCD9E8D57u, h1, l1);
        for (int l = 0; l < RM_LANES; l++) {
            w0[l] = h1[l] ^ w1[l] ^ k0;
            w1[l] = l1[l];
            w2[l] = h0[l] ^ w3[l] ^ k1;
            w3[l] = l0[l];
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

static inline void box_muller(const uint32_t *radius, const uint32_t *angle, float *out)
{
    for (int l = 0; l < RM_LANES; l++) {
        /* (0, 1]: 32 bits as they round, so tails reach 6.7 */
        float u = ((float)(int32_t)(radius[l] >> 1) + 0.5f) * 0x1p-31f;
        float r = sqrtf(-2.0f * log_of(u));
        float s, c;
        sincos_of_turn(angle[l], &s, &c);
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
