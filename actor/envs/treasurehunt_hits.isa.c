/* The draws of one spawn: 16 Philox4x32-10 blocks side by side (rm_philox, shm/base/rng.h, in
 * lockstep, so that the compiler can put blocks into lanes). */
#include "actor/envs/isa.h"

#include <stdint.h>
#include <string.h>

uint64_t RM_ISA_NAME(rm_treasurehunt_hits)(uint64_t key, const uint32_t counter[4],
                                           uint32_t threshold);

enum { BLOCKS = 16, ROUNDS = 10 };

uint64_t RM_ISA_NAME(rm_treasurehunt_hits)(uint64_t key, const uint32_t counter[4],
                                           uint32_t threshold)
{
    uint32_t word[4][BLOCKS];
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (uint32_t j = 0; j < BLOCKS; j++) {
        word[0][j] = counter[0] + j;
        word[1][j] = counter[1];
        word[2][j] = counter[2];
        word[3][j] = counter[3];
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int j = 0; j < BLOCKS; j++) {
            uint64_t p = (uint64_t)0xD2511F53u * word[0][j];
            uint64_t q = (uint64_t)0xCD9E8D57u * word[2][j];
            word[0][j] = (uint32_t)(q >> 32) ^ word[1][j] ^ k0;
            word[1][j] = (uint32_t)q;
            word[2][j] = (uint32_t)(p >> 32) ^ word[3][j] ^ k1;
            word[3][j] = (uint32_t)p;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }

    uint8_t hit[4 * BLOCKS];
    for (int v = 0; v < 4; v++)
        for (int j = 0; j < BLOCKS; j++)
            hit[v * BLOCKS + j] = (word[v][j] >> 8) < threshold;

    uint64_t hits = 0;
    for (int i = 0; i < 8; i++) { /* eight bytes of 0 or 1 become the bits of one byte */
        uint64_t bytes;
        memcpy(&bytes, hit + 8 * i, 8);
        hits |= (bytes * 0x0102040810204080u >> 56) << (8 * i);
    }
    return hits;
}
