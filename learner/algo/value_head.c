#include "learner/algo/value_head.h"

#include <math.h>

#define DEVIATION_LEAST 1e-4
#define DEVIATION_MOST  1e6

static double within(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

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

static void by_moments(struct rm_value_head_state *next, double beta, struct rm_moments returns)
{
    next->mean += beta * (returns.mean - next->mean);
    next->second +=
        beta * (rm_moments_variance(returns) + returns.mean * returns.mean - next->second);
    const double variance = next->second - next->mean * next->mean;
    next->deviation =
        variance > 0 ? within(sqrt(variance), DEVIATION_LEAST, DEVIATION_MOST) : DEVIATION_LEAST;
}

static void by_average(struct rm_value_head_state *next, double beta, struct rm_moments returns)
{
    const double s = within(sqrt(rm_moments_unbiased(returns)), DEVIATION_LEAST, DEVIATION_MOST);
    next->mean += beta * (returns.mean - next->mean);
    next->deviation = sqrt((1.0 - beta) * next->deviation * next->deviation + beta * s * s);
    next->second = next->deviation * next->deviation + next->mean * next->mean;
}

bool rm_value_head_follow(struct rm_backend *b, const struct rm_value_head_step *step,
                          struct rm_moments returns)
{
    struct rm_value_head_state next = *step->state;
    const double k = (double)next.updates + 1.0;
    const double beta = 1.0 / k > step->beta_least ? 1.0 / k : step->beta_least;
    if (step->follow == RM_FOLLOW_NOTHING || returns.count < 1 || !isfinite(returns.m2))
        return false;
    if (step->follow == RM_FOLLOW_MOMENTS)
        by_moments(&next, beta, returns);
    else
        by_average(&next, beta, returns);
    next.updates++;
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
