/* features: from a world's compact observation to the inputs of a network: floats, or int32 codes
 * where it begins with an embedding. Shared by actors
 * and learners, so that both see the same numbers to the bit.
 *
 * One frame has rm_features_count() floats. A stacked input is `stack` frames, oldest first, newest
 * last; frames before the first one of an episode are zeros.
 *
 * Pure functions, callable from any thread. */
#ifndef RM_LEARNER_NET_FEATURES_H
#define RM_LEARNER_NET_FEATURES_H

#include "actor/env.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Elements of one observation (the product of its shape), its bytes in the compact type, and its
 * floats after decoding: elements, times channels for CODE8. 0 for an unknown dtype. */
uint32_t rm_features_elements(const struct rm_env_agent *agent);
size_t rm_features_bytes(const struct rm_env_agent *agent);
uint32_t rm_features_count(const struct rm_env_agent *agent);

/* Words of one frame: rm_features_count() floats, or with `codes` an int32 for every element. */
uint32_t rm_features_words(const struct rm_env_agent *agent, bool codes);

/* obs (rm_features_bytes), aligned for its element type, to out (rm_features_words). Floats:
 * integers become floats of the same value; code k of element e becomes out[channel * elements + e]
 * = codebook[k * channels + channel]; a code outside the codebook counts as code 0. Codes: every
 * element's number as it is, for CODE8 the code itself. */
void rm_features_take(const struct rm_env_agent *agent, bool codes, const uint8_t *obs, void *out);

/* frames[stack] oldest first, NULL = a frame of zeros, to out (stack * rm_features_words). */
void rm_features_take_stack(const struct rm_env_agent *agent, bool codes,
                            const uint8_t *const *frames, uint32_t stack, void *out);

#endif
