/* philox: the constants of Philox4x32-10 (Salmon et al., 2011, table 2 and section 3.3) and its
 * vector forms, for rng.c and draw.h only; other code uses rng.h. */
#ifndef RM_SHM_BASE_PHILOX_H
#define RM_SHM_BASE_PHILOX_H

#include "shm/base/rng.h"

#include <stddef.h>

#define RM_PHILOX_ROUNDS 10
#define RM_PHILOX_M0     0xD2511F53u /* multipliers */
#define RM_PHILOX_M1     0xCD9E8D57u
#define RM_PHILOX_W0     0x9E3779B9u /* key increments: golden ratio, sqrt(3) - 1 */
#define RM_PHILOX_W1     0xBB67AE85u

typedef void rm_philox_blocks_fn(uint64_t key, const uint32_t counter[4], uint32_t *out,
                                 uint32_t n);
rm_philox_blocks_fn rm_isa_v2_philox_blocks, rm_isa_v3_philox_blocks, rm_isa_v4_philox_blocks;

#endif
