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

/* Elements of one observation (the product of its shape), its bytes in the compact type, and the
 * floats it becomes: elements, times channels for CODE8. 0 for an unknown dtype. */
uint32_t rm_features_elements(const struct rm_env_agent *agent);
size_t rm_features_bytes(const struct rm_env_agent *agent);
uint32_t rm_features_count(const struct rm_env_agent *agent);

/* obs (rm_features_bytes), aligned for its element type, to out (rm_features_count). Integers
 * become floats of the same value; code k of element e becomes out[channel * elements + e] =
 * codebook[k * channels + channel]. A code outside the codebook counts as code 0. */
void rm_features_decode(const struct rm_env_agent *agent, const uint8_t *obs, float *out);

/* frames[stack] oldest first, NULL = a frame of zeros, to out (stack * rm_features_count). */
void rm_features_stack(const struct rm_env_agent *agent, const uint8_t *const *frames,
                       uint32_t stack, float *out);

/* For acting: drops the oldest frame of stacked (stack * rm_features_count) and appends `obs`.
 * `first`: obs begins an episode, so all frames before it become zeros. */
void rm_features_push(const struct rm_env_agent *agent, const uint8_t *obs, bool first,
                      uint32_t stack, float *stacked);

/* --- floats or codes ------------------------------------------------------------------------- */

/* The same with `codes` false. With it, words are int32: every element's number as it is, for CODE8
 * the code itself, and a frame of zeros is zeros. Words per frame; a frame; a stack of them. */
uint32_t rm_features_words(const struct rm_env_agent *agent, bool codes);
void rm_features_take(const struct rm_env_agent *agent, bool codes, const uint8_t *obs, void *out);
void rm_features_take_stack(const struct rm_env_agent *agent, bool codes,
                            const uint8_t *const *frames, uint32_t stack, void *out);

#endif
