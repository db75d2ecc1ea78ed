/* categorical: the distribution over actions that a policy's logits define: one softmax for each
 * choice of a step (most worlds have one choice). Choices are independent given the observation, so
 * their log-probabilities and entropies add up.
 *
 * The logit of an illegal action becomes a large negative number before the softmax (Huang and
 * Ontanon 2020), so the action has probability 0 and no gradient. If no action is legal, all
 * actions are equally likely; no caller uses such a row.
 *
 * Pure functions, callable from any thread. A row's result does not depend on the rows around it,
 * and actor and learner get the same bits from the same logits. */
#ifndef RM_LEARNER_NET_CATEGORICAL_H
#define RM_LEARNER_NET_CATEGORICAL_H

#include "config/net_shape.h"

#include <stddef.h>
#include <stdint.h>

/* How the logits of a row are divided into choices. */
struct rm_categorical {
    uint32_t actions; /* logits of a row: the sum over its choices */
    uint32_t choices; /* 0: real numbers alone */
    uint32_t choice_actions[RM_CHOICES_MAX];
    uint32_t words; /* words of an action: the choices, then real numbers */
};

struct rm_categorical rm_categorical_of(const struct rm_net_shape *shape);

/* Writes the random words for draws of `n` rows at `step`, (choices, n). Word c of lane l is word l
 * of the stream (seed, RM_STREAM_ACT, c, step), so it depends only on seed, lane, step and
 * choice. */
void rm_categorical_words(const struct rm_categorical *c, uint64_t seed, uint64_t step,
                          const uint32_t *lane, uint32_t n, uint32_t *word);

/* Draws for n rows.
 *   logits  row i at logits + i * stride, `actions` floats
 *   mask    (n, actions), 0 = illegal; NULL: all are legal
 *   word    (choices, n) uniform
 *   action  (n, words), of which the choices are written
 *   logp    (n) of all choices together; may be NULL */
void rm_categorical_draw(const struct rm_categorical *c, const float *logits, size_t stride,
                         const uint8_t *mask, uint32_t n, const uint32_t *word, int32_t *action,
                         float *logp);

/* Writes the most probable legal action of every choice; of equally probable ones the first. */
void rm_categorical_greedy(const struct rm_categorical *c, const float *logits, size_t stride,
                           const uint8_t *mask, uint32_t n, int32_t *action);

/* Writes the log-probabilities (n) of given actions (n, words), of all choices together. */
void rm_categorical_logp(const struct rm_categorical *c, const float *logits, size_t stride,
                         const uint8_t *mask, uint32_t n, const int32_t *action, float *logp);

#endif
