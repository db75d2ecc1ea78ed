/* features: converts a world's compact observations to the inputs of a network: floats, or int32
 * codes for an embedding. Actors and learners use the same functions, so both have the same numbers
 * to the bit.
 *
 * An entry of an agent's buffer has one observation or several, one after another. Each becomes
 * words of the network's input, in the same order. `codes` has a bit for every observation: with
 * bit i observation i becomes int32 codes, without it floats (rm_network_codes() of
 * config/traits.h).
 *
 * A stacked input has `stack` frames of each observation, the oldest first; frames before the first
 * one of an episode are zeros. For a counted observation the counts of all frames come first, in
 * the type of the words after them, and elements beyond the count are zeros.
 *
 * Pure functions, callable from any thread. */
#ifndef RM_LEARNER_NET_FEATURES_H
#define RM_LEARNER_NET_FEATURES_H

#include "actor/env.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Number of an agent's observations, at least 1; observation i, without a name if the agent has no
 * list. */
uint32_t rm_features_observations(const struct rm_env_agent *agent);
struct rm_env_observation rm_features_observation(const struct rm_env_agent *agent, uint32_t i);

/* Elements of one observation (the product of its shape). Elements of one item of a counted
 * observation. Bytes of an element; 0 for an unknown dtype. */
uint32_t rm_observation_elements(const struct rm_env_observation *observation);
uint32_t rm_observation_item(const struct rm_env_observation *observation);
size_t rm_dtype_bytes(uint32_t dtype);

/* The position of an observation in an entry and in a frame. */
struct rm_observation_place {
    size_t at;             /* bytes from the entry to its elements; a count is 4 bytes before */
    uint32_t words_at;     /* words of a frame before it */
    uint32_t words, count; /* words of a frame: elements, times channels for decoded CODE8; words of
                              the count, 1 or 0 */
    bool codes;
};
struct rm_observation_place rm_features_place(const struct rm_env_agent *agent, uint32_t codes,
                                              uint32_t i);

/* Number of elements of an observation in an entry: all, or for a counted one as many as the count
 * says, at most all. */
uint32_t rm_observation_there(const struct rm_env_observation *observation,
                              const uint8_t *elements);

/* Bytes of an entry in compact types; number of floats that it becomes. 0 for one observation of an
 * unknown dtype. */
size_t rm_features_bytes(const struct rm_env_agent *agent);
uint32_t rm_features_count(const struct rm_env_agent *agent);

/* Words of one frame: floats, and for observations in `codes` one int32 for each element. */
uint32_t rm_features_words(const struct rm_env_agent *agent, uint32_t codes);

/* Is an entry equal to the words of its frame, so that it needs no decoding? */
bool rm_features_in_place(const struct rm_env_agent *agent, uint32_t codes);

/* obs (rm_features_bytes), aligned for its element types, to out (rm_features_words). Floats:
 * integers become floats of the same value; code k of element e becomes out[channel * elements + e]
 * = codebook[k * channels + channel]; a code outside the codebook counts as code 0. Codes: the
 * number of each element, unchanged. */
void rm_features_take(const struct rm_env_agent *agent, uint32_t codes, const uint8_t *obs,
                      void *out);

/* frames[stack] oldest first, NULL = a frame of zeros, to out (stack * rm_features_words). */
void rm_features_take_stack(const struct rm_env_agent *agent, uint32_t codes,
                            const uint8_t *const *frames, uint32_t stack, void *out);

#endif
