#include "learner/algo/value_head.h"

#include <math.h>

#define DEVIATION_LEAST 1e-4
#define DEVIATION_MOST  1e6

struct rm_value_head_ops {
    bool (*update)(struct rm_value_head *head, struct rm_moments returns, float *params);
};

static double within(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

static bool keep(struct rm_value_head *head, struct rm_moments returns, float *params)
{
    (void)head;
    (void)returns;
    (void)params;
    return false;
}

/* w <- w sigma / sigma', b <- (sigma b + mu - mu') / sigma' */
static void rescale(struct rm_value_head *head, const struct rm_value_head_state *next,
                    float *params)
{
    struct rm_backend *b = head->backend;
    const struct rm_value_head_state *now = &head->state;
    float *weight = params + head->output.weight, *bias = params + head->output.bias, value;
    b->ops->combine(b, (float)(now->deviation / next->deviation), weight, 0.0f, weight,
                    head->output.weights, weight);
    b->ops->download(b, &value, bias, 1);
    value = (float)((now->deviation * value + now->mean - next->mean) / next->deviation);
    b->ops->upload(b, bias, &value, 1);
}

static bool follow(struct rm_value_head *head, struct rm_value_head_state next, float *params)
{
    next.updates = head->state.updates + 1;
    rescale(head, &next, params);
    head->state = next;
    return true;
}

static double beta_of(const struct rm_value_head *head)
{
    const double k = (double)head->state.updates + 1.0;
    return 1.0 / k > head->beta_least ? 1.0 / k : head->beta_least;
}

static bool usable(struct rm_moments returns)
{
    return returns.count >= 1 && isfinite(returns.m2);
}

static bool by_moments(struct rm_value_head *head, struct rm_moments returns, float *params)
{
    struct rm_value_head_state next = head->state;
    const double beta = beta_of(head);
    if (!usable(returns))
        return false;
    next.mean += beta * (returns.mean - next.mean);
    next.second +=
        beta * (rm_moments_variance(returns) + returns.mean * returns.mean - next.second);
    const double variance = next.second - next.mean * next.mean;
    next.deviation =
        variance > 0 ? within(sqrt(variance), DEVIATION_LEAST, DEVIATION_MOST) : DEVIATION_LEAST;
    return follow(head, next, params);
}

static bool by_average(struct rm_value_head *head, struct rm_moments returns, float *params)
{
    struct rm_value_head_state next = head->state;
    const double beta = beta_of(head);
    if (!usable(returns))
        return false;
    const double s = within(sqrt(rm_moments_unbiased(returns)), DEVIATION_LEAST, DEVIATION_MOST);
    next.mean += beta * (returns.mean - next.mean);
    next.deviation = sqrt((1.0 - beta) * next.deviation * next.deviation + beta * s * s);
    next.second = next.deviation * next.deviation + next.mean * next.mean;
    return follow(head, next, params);
}

static const struct rm_value_head_ops plain = {keep};
static const struct rm_value_head_ops popart[] = {
    [RM_POPART_MOMENTS] = {by_moments},
    [RM_POPART_AVERAGED] = {by_average},
};

void rm_value_head_create(struct rm_value_head *head, const struct rm_experiment *experiment,
                          struct rm_backend *backend, struct rm_net_value_output output)
{
    *head = (struct rm_value_head){
        .state = {.mean = 0.0, .deviation = 1.0, .second = 1.0},
        .ops = experiment->algorithm.value_head == RM_VALUE_POPART
                   ? &popart[experiment->algorithm.popart_deviation]
                   : &plain,
        .backend = backend,
        .output = output,
        .beta_least = experiment->algorithm.popart_beta,
    };
}

bool rm_value_head_update(struct rm_value_head *head, struct rm_moments returns, float *params)
{
    return head->ops->update(head, returns, params);
}

struct rm_value_head_state rm_value_head_left(double mean, double deviation, uint64_t updates)
{
    return (struct rm_value_head_state){mean, deviation, deviation * deviation + mean * mean,
                                        updates};
}

void rm_value_head_resume(struct rm_value_head *head, struct rm_value_head_state state)
{
    if (state.deviation > 0 && head->ops != &plain)
        head->state = state;
}

void rm_values_of(const struct rm_value_head *head, const float *from, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = rm_value_of(head, from[i]);
}

void rm_value_targets(const struct rm_value_head *head, const float *from, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = rm_value_target(head, from[i]);
}
