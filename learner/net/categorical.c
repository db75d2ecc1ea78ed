#include "learner/net/categorical.h"

#include "shm/base/isa.h"
#include "learner/net/categorical_kernels.h"
#include "shm/base/rng.h"

static const struct rm_categorical_kernels *kernels(void)
{
    static const struct rm_categorical_kernels *const of[] = {
        [RM_LEVEL_V2] = &rm_isa_v2_categorical,
        [RM_LEVEL_V3] = &rm_isa_v3_categorical,
        [RM_LEVEL_V4] = &rm_isa_v4_categorical,
    };
    return of[rm_isa_level()];
}

struct rm_categorical rm_categorical_of(const struct rm_net_shape *shape)
{
    struct rm_categorical c = {.actions = shape->actions, .choices = shape->actions > 0};
    c.choice_actions[0] = shape->actions;
    if (shape->choices > 1) {
        c.choices = shape->choices;
        for (uint32_t i = 0; i < c.choices; i++)
            c.choice_actions[i] = shape->choice_actions[i];
    }
    c.words = c.choices + shape->reals;
    return c;
}

void rm_categorical_words(const struct rm_categorical *c, uint64_t seed, uint64_t step,
                          const uint32_t *lane, uint32_t n, uint32_t *word)
{
    for (uint32_t choice = 0; choice < c->choices; choice++, word += n) {
        for (uint32_t i = 0, run; i < n; i += run) {
            /* Takes neighbouring lanes together: a Philox block has the words of four lanes. */
            for (run = 1; i + run < n && lane[i + run] == lane[i] + run; run++)
                ;
            struct rm_rng rng = rm_rng_at(seed, RM_STREAM_ACT, choice, step);
            rng.counter[0] = lane[i] / 4;
            for (uint32_t skip = lane[i] % 4; skip > 0; skip--)
                rm_rng_u32(&rng);
            rm_rng_fill_u32(&rng, word + i, run);
        }
    }
}

void rm_categorical_draw(const struct rm_categorical *c, const float *logits, size_t stride,
                         const uint8_t *mask, uint32_t n, const uint32_t *word, int32_t *action,
                         float *logp)
{
    const struct rm_categorical_rows rows = {c, logits, stride, mask, n};
    kernels()->draw(&rows, word, action, logp);
}

void rm_categorical_logp(const struct rm_categorical *c, const float *logits, size_t stride,
                         const uint8_t *mask, uint32_t n, const int32_t *action, float *logp)
{
    const struct rm_categorical_rows rows = {c, logits, stride, mask, n};
    kernels()->logp(&rows, action, logp);
}

void rm_categorical_greedy(const struct rm_categorical *c, const float *logits, size_t stride,
                           const uint8_t *mask, uint32_t n, int32_t *action)
{
    for (uint32_t i = 0; i < n; i++) {
        const float *l = logits + i * stride;
        const uint8_t *legal = mask ? mask + (size_t)i * c->actions : NULL;
        for (uint32_t choice = 0; choice < c->choices; choice++) {
            const uint32_t actions = c->choice_actions[choice];
            int32_t best = -1;
            for (uint32_t a = 0; a < actions; a++)
                if ((!legal || legal[a]) && (best < 0 || l[a] > l[best]))
                    best = (int32_t)a;
            action[(size_t)i * c->words + choice] = best < 0 ? 0 : best;
            l += actions;
            legal = legal ? legal + actions : NULL;
        }
    }
}
