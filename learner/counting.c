#include "learner/counting.h"

#include "config/config.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"

void rm_count_waiting(struct rm_board_policy *counters, uint64_t *since_ns, bool waits)
{
    if (waits) {
        if (!*since_ns)
            *since_ns = rm_now_ns();
    } else if (*since_ns) {
        RM_ADD_OWN(&counters->sample_blocked_ns, rm_now_ns() - *since_ns);
        *since_ns = 0;
    }
}

int rm_count_update(struct rm_board_policy *counters, struct rm_guard *guard, uint64_t *updates,
                    const struct rm_counted_update *u, struct rm_error *error)
{
    const uint64_t made = *updates + !u->skipped;
    const int verdict = rm_guard_judge(guard, !u->skipped, u->loss, u->grad_norm, made, error);
    if (verdict != RM_GUARD_GOOD)
        return verdict;
    RM_POKE(&counters->updates, *updates = made);
    RM_POKE(&counters->loss, u->loss);
    RM_POKE(&counters->grad_norm, u->grad_norm);
    RM_POKE(&counters->learning_rate, u->learning_rate);
    return RM_GUARD_GOOD;
}

int rm_count_updates(struct rm_board_policy *counters, struct rm_guard *guard, uint64_t *updates,
                     const struct rm_counted_updates *all, struct rm_error *error)
{
    struct rm_counted_update one = {
        .loss = all->loss, .grad_norm = all->grad_norm, .learning_rate = all->learning_rate};
    int verdict = RM_GUARD_GOOD;
    if (all->made) {
        *updates += all->made - 1;
        RM_ADD_OWN(&counters->updates_skipped, all->skipped - all->skipped_last);
        verdict = rm_count_update(counters, guard, updates, &one, error);
    }
    one.skipped = true;
    for (uint32_t i = 0; i < all->skipped_last && verdict >= 0 && verdict != RM_GUARD_BACK; i++)
        verdict = rm_count_update(counters, guard, updates, &one, error);
    return verdict;
}

int rm_count_late(struct rm_board_policy *counters, struct rm_guard *guard, uint64_t *updates,
                  const struct rm_counted_update *mean, struct rm_guard_report *report,
                  struct rm_error *error)
{
    report->updates = *updates + report->made;
    if (report->made) {
        RM_POKE(&counters->updates, *updates = report->updates);
        RM_POKE(&counters->loss, mean->loss);
        RM_POKE(&counters->grad_norm, mean->grad_norm);
        RM_POKE(&counters->learning_rate, mean->learning_rate);
    }
    return rm_guard_judge_late(guard, report, error);
}

void rm_count_rollout(struct rm_board_policy *counters, const struct rm_actor_critic_figures *f)
{
    RM_POKE(&counters->policy_loss, f->policy_loss);
    RM_POKE(&counters->value_loss, f->value_loss);
    RM_POKE(&counters->entropy, f->entropy);
    RM_POKE(&counters->kl, f->kl);
    RM_POKE(&counters->clip_fraction, f->clip_fraction);
    RM_POKE(&counters->explained_variance, f->explained_variance);
    RM_POKE(&counters->value_mean, f->value_mean);
    RM_POKE(&counters->value_deviation, f->value_deviation);
    RM_POKE(&counters->reward_scale, f->reward_scale);
    RM_ADD_OWN(&counters->rollouts, 1);
}

void rm_take_settings(struct rm_actor_critic *learner, struct rm_board_policy *counters,
                      const struct rm_board_run *run)
{
    const struct rm_trainer_settings settings = {
        .learning_rate = RM_PEEK(&run->settings[RM_HOT_LEARNING_RATE]),
        .grad_clip = RM_PEEK(&run->settings[RM_HOT_GRAD_CLIP]),
        .entropy_coefficient = RM_PEEK(&run->settings[RM_HOT_ENTROPY_COEFFICIENT]),
    };
    rm_actor_critic_set(learner, &settings);
    RM_POKE(&counters->learning_rate, settings.learning_rate); /* until the next update */
}

void rm_take_over(struct rm_actor_critic *learner, const struct rm_board_policy *counters,
                  const float *params, uint64_t rows)
{
    const struct rm_actor_critic_figures left = {
        .value_mean = RM_PEEK(&counters->value_mean),
        .value_deviation = RM_PEEK(&counters->value_deviation),
        .reward_scale = RM_PEEK(&counters->reward_scale),
    };
    rm_actor_critic_load(learner, params);
    rm_actor_critic_resume(learner, &left, params, rows, RM_PEEK(&counters->rollouts));
}

double rm_share_of_run(uint64_t had, uint64_t all)
{
    if (!all)
        return 0;
    return had < all ? (double)had / (double)all : 1;
}
