/* Which cells become gems, as bits. */
#include "actor/worlds/builtin/treasurehunt.h"

#include <math.h>
#include <string.h>

uint32_t rm_treasurehunt_threshold(double spawn)
{
    return (uint32_t)ceil(spawn * 0x1p24);
}

uint64_t rm_treasurehunt_hits(const uint32_t words[64], uint32_t threshold)
{
    uint8_t hit[64];
    for (int d = 0; d < 64; d++)
        hit[d] = (words[d] >> 8) < threshold;
    uint64_t hits = 0;
    for (int i = 0; i < 8; i++) { /* eight bytes of 0 or 1 become the bits of one byte */
        uint64_t bytes;
        memcpy(&bytes, hit + 8 * i, 8);
        hits |= (bytes * 0x0102040810204080u >> 56) << (8 * i);
    }
    return hits;
}

uint64_t rm_treasurehunt_spawn(uint64_t empty, uint64_t hits)
{
    uint32_t draws = (uint32_t)__builtin_popcountll(empty);
    if (draws < 64)
        hits &= ((uint64_t)1 << draws) - 1;
    uint64_t gems = 0;
    for (; hits; hits &= hits - 1)
        gems |= (uint64_t)1 << rm_treasurehunt_nth_bit(empty, (uint32_t)__builtin_ctzll(hits));
    return gems;
}
