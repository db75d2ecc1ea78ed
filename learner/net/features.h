/* features: converts a world's compact observations to the inputs of a network: floats, or int32
 * codes for an embedding. Actors and learners use the same functions, so their numbers are equal to
 * the bit.
 *
 * An entry of an agent's buffer has one or more observations, one after another. Each observation
 * becomes words of the network's input, in the same order. In `codes` bit i is set if observation i
 * becomes int32 codes; otherwise it becomes floats (rm_network_codes() of config/traits.h).
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

/* rm_features_observations(): number of an agent's observations, at least 1.
 * rm_features_observation(): observation i, which has no name if the agent has no list of
 * observations. */
uint32_t rm_features_observations(const struct rm_env_agent *agent);
struct rm_env_observation rm_features_observation(const struct rm_env_agent *agent, uint32_t i);

/* rm_observation_elements(): elements of one observation (the product of its shape).
 * rm_observation_item(): elements of one item of a counted observation. rm_dtype_bytes(): bytes of
 * an element; 0 for an unknown dtype. */
uint32_t rm_observation_elements(const struct rm_env_observation *observation);
uint32_t rm_observation_item(const struct rm_env_observation *observation);
size_t rm_dtype_bytes(uint32_t dtype);

/* The position of an observation in an entry and in a frame. */
struct rm_observation_place {
    size_t at; /* bytes from the entry to the elements; a count is in the 4 bytes before them */
    uint32_t words_at;     /* words of a frame before this observation */
    uint32_t words, count; /* words: elements, times channels for decoded CODE8; count: words of the
                              count, 1 or 0 */
    bool codes;
};
struct rm_observation_place rm_features_place(const struct rm_env_agent *agent, uint32_t codes,
                                              uint32_t i);

/* Number of elements that an observation has in an entry: for a counted observation the count, at
 * most all elements; otherwise all elements. */
uint32_t rm_observation_there(const struct rm_env_observation *observation,
                              const uint8_t *elements);

/* rm_features_bytes(): bytes of an entry in compact types. rm_features_count(): number of floats
 * that the entry becomes. Both are 0 for one observation of an unknown dtype. */
size_t rm_features_bytes(const struct rm_env_agent *agent);
uint32_t rm_features_count(const struct rm_env_agent *agent);

/* Words of one frame: floats, and for observations in `codes` one int32 for each element. */
uint32_t rm_features_words(const struct rm_env_agent *agent, uint32_t codes);

/* Does an entry have the same bytes as the words of its frame, so that it needs no decoding? */
bool rm_features_in_place(const struct rm_env_agent *agent, uint32_t codes);

/* Decodes one entry: obs (rm_features_bytes), aligned for its element types, to out
 * (rm_features_words). To floats: an integer becomes the float of the same value; code k of element
 * e becomes out[channel * elements + e] = codebook[k * channels + channel]; a code outside the
 * codebook counts as code 0. To codes: the number of each element, unchanged. */
void rm_features_take(const struct rm_env_agent *agent, uint32_t codes, const uint8_t *obs,
                      void *out);

/* Decodes a stack: frames[stack], oldest first, to out (stack * rm_features_words). A frame NULL is
 * zeros. */
void rm_features_take_stack(const struct rm_env_agent *agent, uint32_t codes,
                            const uint8_t *const *frames, uint32_t stack, void *out);

/* --- in histories (learner/net/history.h) ------------------------------------------------------
 */

/* Each possible observation has a number, its code: the elements, minus their lower bound, are its
 * digits, and the first element is the highest digit. rm_features_codes(): the number of codes, at
 * most 2^24; 0: there are more, or elements are not whole numbers within bounds.
 * rm_features_code(): the code of an observation that rm_features_take() has decoded to floats;
 * UINT32_MAX: an element is outside its bounds. */
uint32_t rm_features_codes(const struct rm_env_agent *agent);
uint32_t rm_features_code(const struct rm_env_agent *agent, const float *floats);

/* Writes a step with a discrete action as rm_features_step_count() floats: the observation, the
 * action (one-hot), the reward, the next observation. */
uint32_t rm_features_step_count(const struct rm_env_agent *agent);
void rm_features_step(const struct rm_env_agent *agent, const uint8_t *obs, uint32_t action,
                      float reward, const uint8_t *next_obs, float *out);

/* Writes an observation as a row with a query, which has room for rm_features_step_count()
 * features. With query_codes (rm_net_shape.history) the row has the observation's code; without, it
 * has its floats, in the place of a step's first observation. False: it has no code. */
bool rm_features_query(const struct rm_env_agent *agent, uint32_t query_codes, const uint8_t *obs,
                       float *row);

#endif
