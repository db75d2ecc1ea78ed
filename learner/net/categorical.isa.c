/* Draws from softmax, sixteen rows at a time (categorical.h). */
#include "learner/net/categorical_isa.h"
#include "learner/net/categorical_kernels.h"
#include "shm/base/rng.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* The rows [at, at + BLOCK_ROWS) of the choice at `offset`; rows beyond the last repeat it. */
static void open_block(struct block *b, const struct rm_categorical_rows *r, uint32_t at,
                       uint32_t offset, uint32_t actions)
{
    b->actions = actions;
    for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
        const size_t row = MIN(at + k, r->n - 1);
        b->logits[k] = r->logits + row * r->stride + offset;
        b->mask[k] = r->mask ? r->mask + row * r->shape->actions + offset : NULL;
    }
}

/* The first action with cumulative weight above u * sum; never an action without weight. */
static void pick(const struct block *b, const struct softmax *s, const uint32_t *word,
                 const uint32_t rows, int32_t action[BLOCK_ROWS])
{
    float threshold[BLOCK_ROWS], below[BLOCK_ROWS], room[BLOCK_ROWS];
    int32_t count[BLOCK_ROWS], most[BLOCK_ROWS];
    for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
        threshold[k] = rm_float_from_u32(word[MIN(k, rows - 1)]) * s->sum[k];
        below[k] = 0;
        count[k] = most[k] = 0;
    }
    for (uint32_t a = 0; a < b->actions; a++) {
        const float *weight = weight_of(b, s, a, room);
        for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
            below[k] += weight[k];
            count[k] += below[k] <= threshold[k];
            most[k] = weight[k] > 0 ? (int32_t)a : most[k];
        }
    }
    for (uint32_t k = 0; k < BLOCK_ROWS; k++)
        action[k] = MIN(count[k], most[k]);
}

/* Of actions drawn by `word`, or of `chosen` ones if there are no words. */
static void each_choice(const struct rm_categorical_rows *r, const uint32_t *word,
                        const int32_t *chosen, int32_t *drawn, float *logp)
{
    const uint32_t choices = r->shape->choices, words = r->shape->words;
    for (uint32_t at = 0; at < r->n; at += BLOCK_ROWS) {
        const uint32_t rows = MIN(BLOCK_ROWS, r->n - at);
        float total[BLOCK_ROWS] = {0};
        for (uint32_t c = 0, offset = 0; c < choices; offset += r->shape->choice_actions[c++]) {
            struct block b;
            struct softmax s;
            int32_t action[BLOCK_ROWS] = {0};
            float one[BLOCK_ROWS];
            open_block(&b, r, at, offset, r->shape->choice_actions[c]);
            softmax_of(&b, &s);
            if (word)
                pick(&b, &s, word + (size_t)c * r->n + at, rows, action);
            for (uint32_t k = 0; chosen && k < BLOCK_ROWS; k++)
                action[k] = chosen[(size_t)MIN(at + k, r->n - 1) * words + c];
            logp_of(&b, &s, action, one);
            for (uint32_t k = 0; k < BLOCK_ROWS; k++)
                total[k] += one[k];
            for (uint32_t k = 0; drawn && k < rows; k++)
                drawn[(size_t)(at + k) * words + c] = action[k];
        }
        for (uint32_t k = 0; logp && k < rows; k++)
            logp[at + k] = total[k];
    }
}

static void draw(const struct rm_categorical_rows *r, const uint32_t *word, int32_t *action,
                 float *logp)
{
    each_choice(r, word, NULL, action, logp);
}

static void logp_given(const struct rm_categorical_rows *r, const int32_t *action, float *logp)
{
    each_choice(r, NULL, action, NULL, logp);
}

const struct rm_categorical_kernels RM_ISA_NAME(categorical) = {draw, logp_given};
