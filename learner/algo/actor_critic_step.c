/* Learning from a rollout: a minibatch, its loss and gradient, a step of the optimizer. */
#include "learner/algo/actor_critic_private.h"
#include "learner/backend/policy_loss.h"

#include <math.h>

static void sum_up(struct rm_actor_critic *ac, const double sums[RM_NET_SUMS], uint32_t n)
{
    ac->figures.policy_loss += sums[RM_SUM_POLICY];
    ac->figures.value_loss += sums[RM_SUM_VALUE];
    ac->figures.entropy += sums[RM_SUM_ENTROPY];
    ac->figures.clip_fraction += sums[RM_SUM_CLIPPED];
    ac->samples += n;
    ac->pass_kl += sums[RM_SUM_KL];
    ac->pass_samples += n;
}

/* After a pass: was it the last? */
static void end_pass(struct rm_actor_critic *ac)
{
    const double most = ac->experiment->algorithm.target_kl;
    ac->figures.kl = ac->pass_samples > 0 ? ac->pass_kl / ac->pass_samples : 0;
    ac->pass_kl = ac->pass_samples = 0;
    ac->part = 0;
    ac->figures.passes = ++ac->pass;
    ac->stopped = most > 0 && ac->figures.kl > most;
}

struct rm_actor_critic_update rm_host_actor_critic_step(struct rm_actor_critic *ac, uint64_t update,
                                                        double progress,
                                                        struct rm_phase_clock *clock)
{
    const struct rm_rollout *r = ac->rollout;
    rm_actor_critic_enter(clock, RM_PHASE_SAMPLING);
    if (ac->part == 0)
        rm_minibatches_shuffle(&ac->minibatches, ac->number * ac->epochs + ac->pass);
    const struct rm_minibatch m = rm_minibatches_part(&ac->minibatches, ac->part);
    struct rm_sequence_batch b = {
        .input = {.x = r->x, .index = m.row, .batch = m.rows}, .sample = m.row, .samples = m.rows};
    if (ac->order)
        b = rm_sequences_gather(&ac->sequences, m.row, m.rows);
    b.input.dropout_seed = ac->experiment->seed;
    b.input.dropout_update = update;
    const struct rm_moments_of_batch normalised =
        ac->experiment->algorithm.normalize_advantages == RM_NORMALISE_MINIBATCH
            ? rm_actor_critic_normal(ac, b.sample, b.samples)
            : ac->whole;
    struct rm_policy_loss loss = {
        .distribution = r->distribution,
        .outputs = rm_net_outputs(ac->net),
        .index = b.input.index,
        .action = r->action,
        .mask = r->mask,
        .logp = ac->off_policy ? ac->logp : r->logp,
        .advantage = ac->advantage,
        .target = ac->target,
        .value = ac->value,
        .valid = r->valid,
        .advantage_mean = normalised.mean,
        .advantage_scale = normalised.scale,
        .scale = 1.0f / (float)(b.samples ? b.samples : 1),
        .clip = ac->clip,
        .value_clip = (float)ac->experiment->algorithm.value_clip,
        .value_coefficient = (float)ac->experiment->algorithm.value_coefficient,
        .entropy_coefficient = (float)ac->settings.entropy_coefficient,
    };
    const struct rm_net_loss rows = {rm_policy_loss_rows, &loss};
    double sums[RM_NET_SUMS];
    rm_actor_critic_enter(clock, RM_PHASE_BACKWARD);
    rm_net_learn(ac->learn_space, ac->params, &b.input, &rows, ac->grads, sums);
    rm_actor_critic_enter(clock, RM_PHASE_OPTIMIZER);
    const double total = sums[RM_SUM_POLICY] +
                         ac->experiment->algorithm.value_coefficient * sums[RM_SUM_VALUE] -
                         ac->settings.entropy_coefficient * sums[RM_SUM_ENTROPY];
    const struct rm_optimizer_input step = {.params = ac->params,
                                            .grads = ac->grads,
                                            .loss = total / (b.samples ? b.samples : 1),
                                            .update = update,
                                            .progress = progress};
    const double norm = rm_optimizer_norm(ac->optimizer, ac->grads);
    if (rm_finite_due(&ac->finite, update, !isfinite(step.loss) || !isfinite(norm))) {
        rm_net_forward(ac->learn_space, ac->params, &b.input); /* learning keeps no rows */
        rm_finite_look(&ac->finite, update, ac->learn_space, ac->params, &b.input, ac->grads);
    }
    const struct rm_optimizer_result moved = rm_optimizer_apply(ac->optimizer, &step, norm);
    if (!moved.skipped) {
        rm_net_prepare(ac->learn_space, ac->params);
        sum_up(ac, sums, b.samples);
    }
    if (++ac->part == m.parts)
        end_pass(ac);
    return (struct rm_actor_critic_update){
        .loss = step.loss,
        .grad_norm = moved.grad_norm,
        .learning_rate = moved.learning_rate,
        .made = !moved.skipped,
        .skipped = moved.skipped,
        .skipped_last = moved.skipped,
        .samples = b.samples,
    };
}
