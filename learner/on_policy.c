#include "learner/on_policy.h"

#include "learner/counting.h"
#include "shm/atomic.h"
#include "shm/base/state.h"

static const struct rm_on_policy *of_const(const struct rm_method *method)
{
    return (const struct rm_on_policy *)method;
}

/* --- making ---------------------------------------------------------------------------------- */

void rm_on_policy_begin(struct rm_on_policy *p, const struct rm_method_spec *spec,
                        const struct rm_method_ops *ops)
{
    p->method.ops = ops;
    p->session = spec->session;
    p->policy = spec->policy;
    p->who = rm_worker_learner(&spec->session->objects, spec->policy);
    p->experiment = &spec->session->experiment;
    p->plan = &spec->session->plan.policy[spec->policy];
    p->counters = &spec->session->board.policies[spec->policy];
    p->publisher = spec->publisher;
    p->clock = spec->clock;
    p->method.updates = spec->updates;
    p->attempts = spec->updates + spec->attempts;
    p->rows = spec->rows;
}

int rm_on_policy_learner(struct rm_on_policy *p, struct rm_trainer_spec *learner,
                         struct rm_error *error)
{
    learner->experiment = p->experiment;
    learner->policy = p->policy;
    learner->shape = p->plan->shape;
    learner->name = p->plan->name;
    const int rc = rm_actor_critic_create(&p->learner, learner, error);
    if (rc)
        return rc;
    p->method.net = rm_actor_critic_net(p->learner);
    p->method.params = rm_actor_critic_params(p->learner);
    p->method.flops = rm_actor_critic_update_flops(p->learner);
    p->method.trainer = rm_actor_critic_trainer(p->learner);
    p->method.space = rm_trainer_workspace(p->method.trainer);
    return 0;
}

int rm_on_policy_guard(struct rm_on_policy *p, struct rm_backend *backend, struct rm_error *error)
{
    int rc = rm_guard_create(&p->guard, p->experiment, backend, p->counters, p->plan->name, error);
    if (rc)
        return rc;
    rm_actor_critic_guarded(p->learner, p->guard);
    rc = rm_guard_ready(p->guard, error);
    if (p->late)
        rm_publisher_go_late(p->publisher, rm_actor_critic_made(p->learner), p->method.updates);
    return rc;
}

void rm_on_policy_end(struct rm_on_policy *p)
{
    rm_guard_destroy(p->guard);
    rm_actor_critic_destroy(p->learner);
}

/* --- a rollout ------------------------------------------------------------------------------- */

int rm_on_policy_count(struct rm_on_policy *p, const struct rm_actor_critic_update *update,
                       struct rm_error *error)
{
    RM_ADD_OWN(&p->counters->samples, update->samples);
    p->attempts += update->made + update->skipped;
    const struct rm_counted_updates counted = {.made = update->made,
                                               .skipped = update->skipped,
                                               .skipped_last = update->skipped_last,
                                               .loss = update->loss,
                                               .grad_norm = update->grad_norm,
                                               .learning_rate = update->learning_rate};
    const int verdict =
        rm_count_updates(p->counters, p->guard, &p->method.updates, &counted, error);
    if (verdict == RM_GUARD_BACK)
        rm_actor_critic_restored(p->learner);
    return verdict < 0 ? verdict : 0;
}

void rm_on_policy_publish(struct rm_on_policy *p, uint64_t round)
{
    rm_actor_critic_end(p->learner, p->clock);
    const struct rm_actor_critic_figures f = rm_actor_critic_figures(p->learner);
    rm_count_rollout(p->counters, &f);
    if (f.passes)
        p->method.flops = rm_actor_critic_update_flops(p->learner);
    rm_phase_enter(p->clock, RM_PHASE_PUBLISH);
    if (p->late)
        rm_publisher_send(p->publisher, p->method.params, p->method.updates);
    else
        rm_publisher_publish(p->publisher, p->method.params, p->method.updates, round);
    p->in_hand = false;
    p->number++;
}

void rm_on_policy_finish(struct rm_on_policy *p)
{
    rm_publisher_end(p->publisher);
    if (p->late && p->publisher->stamped != p->method.updates)
        rm_publisher_publish(p->publisher, p->method.params, p->method.updates, 0);
}

/* --- the rest -------------------------------------------------------------------------------- */

void rm_on_policy_state_counts(struct rm_on_policy *p, struct rm_state *s)
{
    RM_STATE(s, "number", p->number);
    RM_STATE(s, "env_steps", p->env_steps);
    RM_STATE(s, "updates", p->method.updates);
    RM_STATE(s, "attempts", p->attempts);
}

void rm_on_policy_state_learner(struct rm_on_policy *p, struct rm_state *s)
{
    rm_actor_critic_state(p->learner, s);
    rm_guard_state(p->guard, s);
}

void rm_on_policy_settings(struct rm_method *method, const struct rm_board_run *run)
{
    const struct rm_on_policy *p = of_const(method);
    rm_take_settings(p->learner, p->counters, run);
}

bool rm_on_policy_settled(const struct rm_method *method)
{
    return !of_const(method)->in_hand;
}
