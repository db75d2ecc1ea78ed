#include "learner/algo/value_head.h"

#include <math.h>

/* w <- w sigma / sigma', b <- (sigma b + mu - mu') / sigma' */
static void rescale(struct rm_backend *b, const struct rm_value_head_step *step,
                    const struct rm_value_head_state *next)
{
    const struct rm_value_head_state *now = step->state;
    b->ops->combine(b, (float)(now->deviation / next->deviation), step->weight, 0.0f, step->weight,
                    step->weights, step->weight);
    *step->bias =
        (float)((now->deviation * *step->bias + now->mean - next->mean) / next->deviation);
}

bool rm_value_head_follow(struct rm_backend *b, const struct rm_value_head_step *step,
                          struct rm_moments returns)
{
    if (step->follow == RM_FOLLOW_NOTHING || returns.count < 1 || !isfinite(returns.m2))
        return false;
    const struct rm_value_head_state next =
        rm_value_head_next(step, *step->state, returns.mean, returns.m2, returns.count);
    rescale(b, step, &next);
    *step->state = next;
    return true;
}

struct rm_value_head_step rm_value_head_step(const struct rm_value_head *head,
                                             struct rm_value_head_state *state, float *params)
{
    return (struct rm_value_head_step){
        .follow = head->follow,
        .weights = head->output.weights,
        .beta_least = head->beta_least,
        .weight = params + head->output.weight,
        .bias = params + head->output.bias,
        .state = state,
    };
}

void rm_value_head_create(struct rm_value_head *head, const struct rm_experiment *experiment,
                          struct rm_net_value_output output)
{
    static const enum rm_value_follow follow[] = {
        [RM_POPART_MOMENTS] = RM_FOLLOW_MOMENTS,
        [RM_POPART_AVERAGED] = RM_FOLLOW_AVERAGED,
    };
    *head = (struct rm_value_head){
        .state = {.mean = 0.0, .deviation = 1.0, .second = 1.0},
        .follow = experiment->algorithm.value_head == RM_VALUE_POPART
                      ? follow[experiment->algorithm.popart_deviation]
                      : RM_FOLLOW_NOTHING,
        .output = output,
        .beta_least = experiment->algorithm.popart_beta,
    };
}

struct rm_value_head_state rm_value_head_left(double mean, double deviation, uint64_t updates)
{
    return (struct rm_value_head_state){mean, deviation, deviation * deviation + mean * mean,
                                        updates};
}

void rm_value_head_resume(struct rm_value_head *head, struct rm_value_head_state state)
{
    if (state.deviation > 0 && head->follow != RM_FOLLOW_NOTHING)
        head->state = state;
}
