/* The loss of policy_loss.h and its gradient, sixteen rows at a time. */
#include "learner/backend/policy_loss_kernels.h"
#include "learner/net/categorical_isa.h"

#include <math.h>

/* A block's samples, beside the network's output. */
struct samples {
    const struct rm_policy_loss *loss;
    uint32_t rows;               /* of the block */
    uint32_t row[BLOCK_ROWS];    /* their rows in the rollout */
    float advantage[BLOCK_ROWS]; /* normalised */
    float valid[BLOCK_ROWS];     /* 0 beyond the last row, too */
    float logp[BLOCK_ROWS];      /* ln pi(a) */
    float entropy[BLOCK_ROWS];   /* over all choices */
    float d_logp[BLOCK_ROWS];    /* of the loss */
    double (*sums)[BLOCK_ROWS];  /* (RM_SUM_COUNT) */
};

static void add(struct samples *s, enum rm_policy_sum sum, const float what[BLOCK_ROWS])
{
    double *restrict to = s->sums[sum];
    for (uint32_t k = 0; k < BLOCK_ROWS; k++)
        to[k] += (double)(what[k] * s->valid[k]);
}

static void find(struct samples *s, uint32_t at, uint32_t rows)
{
    const struct rm_policy_loss *p = s->loss;
    s->rows = rows < BLOCK_ROWS ? rows : BLOCK_ROWS;
    for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
        const uint32_t i = at + (k < s->rows ? k : s->rows - 1);
        s->row[k] = p->index ? p->index[i] : i;
    }
    for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
        s->advantage[k] = (p->advantage[s->row[k]] - p->advantage_mean) * p->advantage_scale;
        s->valid[k] = k < s->rows ? p->valid[s->row[k]] : 0;
        s->logp[k] = s->entropy[k] = 0;
    }
}

static void open_choice(const struct samples *s, const float *out, uint32_t choice, uint32_t offset,
                        struct block *b, int32_t action[BLOCK_ROWS])
{
    const struct rm_policy_loss *p = s->loss;
    b->actions = p->distribution.choice_actions[choice];
    for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
        const size_t row = s->row[k], i = k < s->rows ? k : s->rows - 1;
        b->logits[k] = out + i * p->outputs + offset;
        b->mask[k] = p->mask ? p->mask + row * p->distribution.actions + offset : NULL;
        action[k] = p->action[row * p->distribution.words + choice];
    }
}

/* First pass over the choices: ln pi(a) and entropy. With p = w / sum of weights w and ln p = l -
 * max - ln sum, the entropy -sum p ln p is ln sum - sum w (l - max) / sum. */
static void weigh(struct samples *s, struct block *b, const int32_t action[BLOCK_ROWS],
                  struct softmax *soft, float entropy[BLOCK_ROWS])
{
    float one[BLOCK_ROWS], mean[BLOCK_ROWS] = {0}, room[2][BLOCK_ROWS];
    softmax_of(b, soft);
    logp_of(b, soft, action, one);
    for (uint32_t a = 0; a < b->actions; a++) {
        const float *l = logit_of(b, a, room[0]), *weight = weight_of(b, soft, a, room[1]);
        for (uint32_t k = 0; k < BLOCK_ROWS; k++)
            mean[k] += weight[k] * (l[k] - soft->max[k]);
    }
    for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
        entropy[k] = soft->log_sum[k] - mean[k] / soft->sum[k];
        s->entropy[k] += entropy[k];
        s->logp[k] += one[k];
    }
}

/* The bounded ratio's part of the loss, and its derivative by ln pi(a). */
static void bounded_ratio(const float log_ratio[BLOCK_ROWS], const float advantage[BLOCK_ROWS],
                          float clip, float *restrict policy, float *restrict d, float *restrict kl,
                          float *restrict clipped)
{
    const float low = 1 - clip, high = 1 + clip;
    for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
        const float ratio = exp_of(log_ratio[k] < 80 ? log_ratio[k] : 80);
        const float above = ratio < low ? low : ratio;
        const float bounded = above > high ? high : above;
        const float free = ratio * advantage[k], held = bounded * advantage[k];
        kl[k] = (ratio - 1) - log_ratio[k];
        clipped[k] = bounded != ratio ? 1.0f : 0.0f;
        policy[k] = free < held ? -free : -held;
        d[k] = free <= held ? -free : 0;
    }
}

/* The policy's part of the loss, and its derivative by ln pi(a). */
static void surrogate(struct samples *s)
{
    const struct rm_policy_loss *p = s->loss;
    const bool plain = p->clip <= 0;
    const float scale = p->scale;
    float policy[BLOCK_ROWS], kl[BLOCK_ROWS], clipped[BLOCK_ROWS], log_ratio[BLOCK_ROWS];
    for (uint32_t k = 0; k < BLOCK_ROWS; k++)
        log_ratio[k] = s->logp[k] - p->logp[s->row[k]];
    bounded_ratio(log_ratio, s->advantage, p->clip, policy, s->d_logp, kl, clipped);
    for (uint32_t k = 0; plain && k < BLOCK_ROWS; k++) {
        policy[k] = -s->advantage[k] * s->logp[k];
        s->d_logp[k] = -s->advantage[k];
        clipped[k] = 0;
    }
    for (uint32_t k = 0; k < BLOCK_ROWS; k++)
        s->d_logp[k] *= scale * s->valid[k];
    add(s, RM_SUM_POLICY, policy);
    add(s, RM_SUM_KL, kl);
    add(s, RM_SUM_CLIPPED, clipped);
    add(s, RM_SUM_ENTROPY, s->entropy);
}

/* The value's part, and its derivative by the value. */
static void value_part(struct samples *s, const float *out, float *d_out)
{
    const struct rm_policy_loss *p = s->loss;
    const uint32_t at = p->outputs - 1;
    const float factor = p->scale * p->value_coefficient;
    float v[BLOCK_ROWS], target[BLOCK_ROWS], old[BLOCK_ROWS], loss[BLOCK_ROWS], d[BLOCK_ROWS];
    for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
        v[k] = out[(size_t)(k < s->rows ? k : s->rows - 1) * p->outputs + at];
        target[k] = p->target[s->row[k]];
        old[k] = p->value[s->row[k]];
    }
    for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
        const struct rm_value_errors e =
            rm_value_errors(v[k], target[k], old[k], p->value_clip, p->value_error);
        loss[k] = e.loss;
        d[k] = e.slope;
    }
    add(s, RM_SUM_VALUE, loss);
    for (uint32_t k = 0; k < s->rows; k++)
        d_out[(size_t)k * p->outputs + at] = d[k] * factor * s->valid[k];
}

/* Second pass over a choice: d ln pi(a) / d logit_j = [j = a] - p_j, dH / d logit_j =
 * -p_j (ln p_j + H). */
static void logits_part(const struct samples *s, const struct block *b, const struct softmax *soft,
                        const float entropy[BLOCK_ROWS], const int32_t action[BLOCK_ROWS],
                        uint32_t offset, float *d_out)
{
    const struct rm_policy_loss *p = s->loss;
    const float factor = p->scale * p->entropy_coefficient;
    float d[BLOCK_ROWS], room[2][BLOCK_ROWS], bonus[BLOCK_ROWS], inverse[BLOCK_ROWS];
    for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
        bonus[k] = factor * s->valid[k];
        inverse[k] = 1 / soft->sum[k];
    }
    for (uint32_t a = 0; a < b->actions; a++) {
        const float *l = logit_of(b, a, room[0]), *weight = weight_of(b, soft, a, room[1]);
        for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
            const float prob = weight[k] * inverse[k];
            const float ln = l[k] - soft->max[k] - soft->log_sum[k];
            const float chosen = action[k] == (int32_t)a ? 1.0f : 0.0f;
            d[k] = s->d_logp[k] * (chosen - prob) + bonus[k] * prob * (ln + entropy[k]);
        }
        for (uint32_t k = 0; k < s->rows; k++)
            d_out[(size_t)k * p->outputs + offset + a] = d[k];
    }
}

/* A row's real numbers: the start of their outputs and words. */
static const int32_t *reals_of(const struct samples *s, uint32_t k)
{
    const struct rm_categorical *c = &s->loss->distribution;
    return s->loss->action + (size_t)s->row[k] * c->words + c->choices;
}

static void weigh_reals(struct samples *s, const float *out)
{
    const struct rm_policy_loss *p = s->loss;
    for (uint32_t k = 0; p->gaussian.reals && k < s->rows; k++) {
        const float *means = out + (size_t)k * p->outputs + p->distribution.actions;
        s->logp[k] += rm_gaussian_logp(&p->gaussian, means, reals_of(s, k));
        s->entropy[k] += rm_gaussian_entropy(&p->gaussian, means);
    }
}

static void reals_part(const struct samples *s, const float *out, float *d_out)
{
    const struct rm_policy_loss *p = s->loss;
    const float bonus = -p->scale * p->entropy_coefficient;
    for (uint32_t k = 0; p->gaussian.reals && k < s->rows; k++) {
        const size_t at = (size_t)k * p->outputs + p->distribution.actions;
        rm_gaussian_back(&p->gaussian, out + at, reals_of(s, k), s->d_logp[k], bonus * s->valid[k],
                         d_out + at);
    }
}

static void one_block(struct samples *s, const float *out, float *d_out)
{
    const struct rm_categorical *c = &s->loss->distribution;
    struct block b[RM_CHOICES_MAX];
    struct softmax soft[RM_CHOICES_MAX];
    float entropy[RM_CHOICES_MAX][BLOCK_ROWS];
    int32_t action[RM_CHOICES_MAX][BLOCK_ROWS];
    for (uint32_t i = 0, offset = 0; i < c->choices; offset += c->choice_actions[i++]) {
        open_choice(s, out, i, offset, &b[i], action[i]);
        weigh(s, &b[i], action[i], &soft[i], entropy[i]);
    }
    weigh_reals(s, out);
    surrogate(s);
    value_part(s, out, d_out);
    reals_part(s, out, d_out);
    for (uint32_t i = 0, offset = 0; i < c->choices; offset += c->choice_actions[i++])
        logits_part(s, &b[i], &soft[i], entropy[i], action[i], offset, d_out);
}

void RM_ISA_NAME(policy_loss)(const struct rm_policy_loss *loss, uint32_t first, uint32_t rows,
                              const float *out, float *d_out, double sums[RM_NET_SUMS])
{
    double partial[RM_SUM_COUNT][BLOCK_ROWS] = {0};
    for (uint32_t at = 0; at < rows; at += BLOCK_ROWS) {
        struct samples s = {.loss = loss, .sums = partial};
        find(&s, first + at, rows - at);
        one_block(&s, out + (size_t)at * loss->outputs, d_out + (size_t)at * loss->outputs);
    }
    for (uint32_t sum = 0; sum < RM_SUM_COUNT; sum++)
        for (uint32_t k = 0; k < BLOCK_ROWS; k++)
            sums[sum] += partial[sum][k];
}
