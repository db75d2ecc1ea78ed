/* Many Philox blocks at once: sixteen counters side by side in vectors, compiled for each
 * instruction set. Integers only, so every instruction set gives the same bits. */
#include "shm/base/isa.h"
#include "shm/base/philox.h"

#define LANES 16u

static inline void block16(uint64_t key, const uint32_t counter[4], uint32_t first, uint32_t *out)
{
    uint32_t x0[LANES], x1[LANES], x2[LANES], x3[LANES];
    for (uint32_t i = 0; i < LANES; i++) {
        x0[i] = counter[0] + first + i;
        x1[i] = counter[1];
        x2[i] = counter[2];
        x3[i] = counter[3];
    }
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < RM_PHILOX_ROUNDS; round++) {
        for (uint32_t i = 0; i < LANES; i++) {
            uint64_t p0 = (uint64_t)RM_PHILOX_M0 * x0[i];
            uint64_t p1 = (uint64_t)RM_PHILOX_M1 * x2[i];
            uint32_t y0 = (uint32_t)(p1 >> 32) ^ x1[i] ^ k0;
            uint32_t y2 = (uint32_t)(p0 >> 32) ^ x3[i] ^ k1;
            x1[i] = (uint32_t)p1;
            x3[i] = (uint32_t)p0;
            x0[i] = y0;
            x2[i] = y2;
        }
        k0 += RM_PHILOX_W0;
        k1 += RM_PHILOX_W1;
    }
    for (uint32_t i = 0; i < LANES; i++) {
        out[4 * i] = x0[i];
        out[4 * i + 1] = x1[i];
        out[4 * i + 2] = x2[i];
        out[4 * i + 3] = x3[i];
    }
}

void RM_ISA_NAME(philox_blocks)(uint64_t key, const uint32_t counter[4], uint32_t *out, uint32_t n)
{
    uint32_t done = 0;
    for (; n - done >= LANES; done += LANES)
        block16(key, counter, done, out + 4 * (size_t)done);
    for (; done < n; done++) {
        uint32_t at[4] = {counter[0] + done, counter[1], counter[2], counter[3]};
        rm_philox(key, at, out + 4 * (size_t)done);
    }
}
