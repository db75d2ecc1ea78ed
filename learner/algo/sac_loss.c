/* The operations of soft actor-critic on the CPU: the rules of learner/backend/soft_ops.h, row by
 * row. */
#include "learner/algo/learning.h"
#include "learner/backend/soft_ops.h"

static void targets(struct rm_backend *b, const struct rm_soft_states *next, const float *ret,
                    const float *discount, float *y)
{
    (void)b;
    for (uint32_t row = 0; row < next->batch; row++)
        y[row] = rm_soft_target_row(next, row, ret[row], discount[row]);
}

static void critic_loss(struct rm_backend *b, const struct rm_soft_critic_loss *in)
{
    double loss = 0;
    (void)b;
    for (uint32_t row = 0; row < in->batch; row++)
        loss += rm_soft_critic_row(in, row);
    rm_soft_critic_end(in, loss);
}

static void policy_loss(struct rm_backend *b, const struct rm_soft_policy_loss *in)
{
    const double alpha = rm_temperature_alpha(in->states.temperature);
    struct rm_soft_sums sums = {0};
    (void)b;
    for (uint32_t row = 0; row < in->states.batch; row++)
        if (in->states.logits)
            rm_soft_policy_loss_row(in, alpha, row, &sums);
        else
            rm_soft_drawn_loss_row(in, alpha, row, &sums);
    rm_soft_policy_loss_end(in, alpha, &sums);
}

static void temperature(struct rm_backend *b, const struct rm_soft_step *step)
{
    (void)b;
    rm_temperature_step(step);
}

static void draw(struct rm_backend *b, const struct rm_soft_draw *d)
{
    (void)b;
    for (uint32_t row = 0; row < d->batch; row++)
        rm_soft_draw_row(d, row);
}

static void draw_back(struct rm_backend *b, const struct rm_soft_draw_back *k)
{
    (void)b;
    for (uint32_t row = 0; row < k->draw.batch; row++)
        rm_soft_draw_back_row(k, row);
}

static void bound(struct rm_backend *b, const int32_t *word, size_t n, float *action)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        action[i] = rm_gaussian_bounded(rm_float_of_word(word[i]), 1);
}

static const struct rm_soft_ops cpu_soft = {.targets = targets,
                                            .critic_loss = critic_loss,
                                            .policy_loss = policy_loss,
                                            .temperature = temperature,
                                            .draw = draw,
                                            .draw_back = draw_back,
                                            .bound = bound};

const struct rm_soft_ops *rm_soft_ops_of(const struct rm_backend *b)
{
    return b->device ? b->device->soft : &cpu_soft;
}
