#include "learner/algo/reward_scale.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TINY 1e-8

int rm_reward_scale_create(struct rm_reward_scale *scale, const struct rm_experiment *experiment,
                           uint32_t lanes, struct rm_error *error)
{
    const double clip = experiment->algorithm.reward_clip;
    *scale = (struct rm_reward_scale){
        .on = experiment->algorithm.normalize_rewards,
        .gamma = experiment->sample.gamma,
        .clip = clip > 0 ? (float)clip : INFINITY,
        .lanes = lanes,
    };
    scale->returns = calloc(lanes ? lanes : 1, sizeof *scale->returns);
    if (!scale->returns)
        return rm_fail(error, -ENOMEM, "no memory for the returns of %u lanes", lanes);
    return 0;
}

void rm_reward_scale_destroy(struct rm_reward_scale *scale)
{
    free(scale->returns);
    memset(scale, 0, sizeof *scale);
}

void rm_reward_scale_add(struct rm_reward_scale *scale, const float *rewards, const uint8_t *lanes)
{
    struct rm_moments step = {0};
    double sum = 0.0;
    if (!scale->on)
        return;
    for (uint32_t i = 0; i < scale->lanes; i++) {
        double *r = &scale->returns[i];
        if (lanes[i] == RM_REWARD_ABSENT) {
            *r = 0.0;
            continue;
        }
        *r = scale->gamma * *r + rewards[i];
        sum += *r;
        step.count += 1.0;
    }
    step.mean = step.count > 0 ? sum / step.count : 0.0;
    for (uint32_t i = 0; i < scale->lanes; i++) {
        const double apart = scale->returns[i] - step.mean;
        if (lanes[i] != RM_REWARD_ABSENT)
            step.m2 += apart * apart;
        if (lanes[i] == RM_REWARD_ENDS)
            scale->returns[i] = 0.0;
    }
    if (isfinite(step.m2)) {
        scale->moments = rm_moments_merge(scale->moments, step);
        return;
    }
    for (uint32_t i = 0; i < scale->lanes; i++)
        if (!isfinite(scale->returns[i]))
            scale->returns[i] = 0.0;
}

void rm_reward_scale_resume(struct rm_reward_scale *scale, double divisor, double count)
{
    if (divisor > 0)
        scale->moments = (struct rm_moments){count, 0.0, divisor * divisor * count};
}

double rm_reward_scale_divisor(const struct rm_reward_scale *scale)
{
    if (!scale->on || scale->moments.count < 1)
        return 1.0;
    return sqrt(rm_moments_variance(scale->moments) + TINY);
}

void rm_reward_scale_apply(const struct rm_reward_scale *scale, float *rewards, size_t n)
{
    const float factor = (float)(1.0 / rm_reward_scale_divisor(scale)), most = scale->clip;
    if (!scale->on)
        return;
    for (size_t i = 0; i < n; i++) {
        const float r = rewards[i] * factor;
        rewards[i] = r > most ? most : r < -most ? -most : r;
    }
}
