/* features: from a world's compact observations to the inputs of a network: floats, or int32 codes
 * where an embedding takes them. Shared by actors and learners, so that both see the same numbers
 * to the bit.
 *
 * An agent sees one observation or several, which stand one after another in an entry of its
 * buffer. Each has words of the network's input, in their order. `codes` has a bit for every
 * observation: bit i says that observation i becomes int32 codes; 0: all become floats
 * (rm_network_codes() of config/traits.h).
 *
 * A stacked input has, for each observation, `stack` frames, oldest first, newest last; frames
 * before the first one of an episode are zeros. Of a counted observation the counts of all frames
 * come first, in the type of the words behind them, and elements behind a count are zeros.
 *
 * Pure functions, callable from any thread. */
#ifndef RM_LEARNER_NET_FEATURES_H
#define RM_LEARNER_NET_FEATURES_H

#include "actor/env.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many observations an agent has, at least 1; one of them, without a name where the agent has
 * no list. */
uint32_t rm_features_observations(const struct rm_env_agent *agent);
struct rm_env_observation rm_features_observation(const struct rm_env_agent *agent, uint32_t i);

/* Elements of one observation (the product of its shape) and, of a counted one, elements of each
 * that is counted. Bytes of an element; 0 for an unknown dtype. */
uint32_t rm_observation_elements(const struct rm_env_observation *observation);
uint32_t rm_observation_item(const struct rm_env_observation *observation);
size_t rm_dtype_bytes(uint32_t dtype);

/* Where an observation of an entry stands. */
struct rm_observation_place {
    size_t at;             /* bytes from the entry to its elements; a count is 4 bytes before */
    uint32_t words_at;     /* words of a frame before it */
    uint32_t words, count; /* its words of a frame: elements, times channels for CODE8 where it is
                              decoded; and the count, 1 or 0 */
    bool codes;
};
struct rm_observation_place rm_features_place(const struct rm_env_agent *agent, uint32_t codes,
                                              uint32_t i);

/* The elements that an entry has of one of its observations: all, or as many as are counted, at
 * most all. */
uint32_t rm_observation_there(const struct rm_env_observation *observation,
                              const uint8_t *elements);

/* Bytes of an entry in compact types; the floats it becomes. 0 for one observation of an unknown
 * dtype. */
size_t rm_features_bytes(const struct rm_env_agent *agent);
uint32_t rm_features_count(const struct rm_env_agent *agent);

/* Words of one frame: rm_features_count() floats, or int32 codes of elements where `codes` says. */
uint32_t rm_features_words(const struct rm_env_agent *agent, uint32_t codes);

/* Whether an entry is the words of its frame as it stands: nothing is to be decoded. */
bool rm_features_in_place(const struct rm_env_agent *agent, uint32_t codes);

/* obs (rm_features_bytes), aligned for its element types, to out (rm_features_words). Floats:
 * integers become floats of the same value; code k of element e becomes out[channel * elements + e]
 * = codebook[k * channels + channel]; a code outside the codebook counts as code 0. Codes: every
 * element's number as it is, for CODE8 the code itself. */
void rm_features_take(const struct rm_env_agent *agent, uint32_t codes, const uint8_t *obs,
                      void *out);

/* frames[stack] oldest first, NULL = a frame of zeros, to out (stack * rm_features_words). */
void rm_features_take_stack(const struct rm_env_agent *agent, uint32_t codes,
                            const uint8_t *const *frames, uint32_t stack, void *out);

#endif
