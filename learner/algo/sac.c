/* sac: updates of discrete soft actor-critic (Christodoulou 2019). There are three networks: the
 * policy, the only one that is published, and two critics, each with a target network. All
 * gradients of an update are computed at the same parameters; then all parameters move. */
#include "learner/algo/temperature.h"
#include "learner/algo/updates.h"

enum { ACTOR, CRITIC, CRITICS = 2 }; /* networks; the critics are CRITIC and CRITIC + 1 */

struct sac {
    struct rm_updates u; /* first */
    uint32_t batch, actions;

    /* The backend's memory. */
    float *p, *logp, *d_out; /* (batch, actions) */
    float *y;                /* (batch) */
    struct rm_temperature *temperature;
};

static int sac_open(struct rm_updates *u, const struct rm_trainer_spec *spec,
                    struct rm_error *error)
{
    struct sac *t = (struct sac *)u;
    t->batch = u->rows = spec->experiment->sample.batch / u->replicas;
    t->actions = spec->shape.actions;
    u->observations = spec->experiment->sample.batch;
    const size_t outputs = (size_t)t->batch * t->actions * sizeof(float);
    int rc = rm_updates_alloc(u, &t->p, outputs, error);
    if (!rc)
        rc = rm_updates_alloc(u, &t->logp, outputs, error);
    if (!rc)
        rc = rm_updates_alloc(u, &t->d_out, outputs, error);
    if (!rc)
        rc = rm_updates_alloc(u, &t->y, t->batch * sizeof *t->y, error);
    if (!rc)
        rc =
            rm_updates_alloc_kept(u, "temperature", &t->temperature, sizeof *t->temperature, error);
    return rc;
}

static void sac_reset(struct rm_updates *u)
{
    const struct rm_temperature first = rm_temperature_of(u->experiment->algorithm.temperature);
    u->backend->ops->upload(u->backend, (float *)(void *)((struct sac *)u)->temperature,
                            (const float *)(const void *)&first, sizeof first / sizeof(float));
}

/* The pass of a network that is trained, with dropout of its own. */
static const float *forward(struct sac *t, uint32_t net, const struct rm_update *update,
                            struct rm_net_input *in)
{
    const struct rm_update_net *n = &t->u.nets[net];
    *in = (struct rm_net_input){
        .x = update->batch->obs,
        .batch = t->batch,
        .dropout_seed = t->u.experiment->seed,
        .dropout_update = rm_updates_key(&t->u, update, 1 + CRITICS, net),
        .rows_before = t->u.replica * t->batch,
    };
    return rm_net_forward(n->online, t->u.params + n->at, in);
}

static struct rm_soft_states states_of(const struct sac *t, const uint8_t *mask)
{
    return (struct rm_soft_states){
        .batch = t->batch,
        .actions = t->actions,
        .mask = mask,
        .temperature = t->temperature,
        .p = t->p,
        .logp = t->logp,
    };
}

static void put_targets(struct sac *t, const struct rm_update *update)
{
    const struct rm_batch *batch = update->batch;
    const struct rm_update_net *nets = t->u.nets;
    const struct rm_net_input in = {
        .x = batch->next_obs, .batch = t->batch, .dropout_seed = t->u.experiment->seed};
    struct rm_soft_states next = states_of(t, batch->next_mask);
    const float *q[CRITICS];
    next.logits = rm_net_forward(nets[ACTOR].online, t->u.params, &in);
    for (uint32_t i = 0; i < CRITICS; i++)
        q[i] = rm_net_forward(nets[CRITIC + i].target, t->u.target + nets[CRITIC + i].at, &in);
    next.q1 = q[0];
    next.q2 = q[1];
    rm_soft_ops_of(t->u.backend)->targets(t->u.backend, &next, batch->ret, batch->discount, t->y);
}

static const float *put_critic(struct sac *t, uint32_t critic, const struct rm_update *update)
{
    const struct rm_batch *batch = update->batch;
    struct rm_net_input in;
    const struct rm_soft_critic_loss loss = {
        .batch = t->batch,
        .actions = t->actions,
        .critic = critic,
        .q = forward(t, CRITIC + critic, update, &in),
        .action = batch->action,
        .y = t->y,
        .weight = batch->weight,
        .error = batch->error,
        .d_q = t->d_out,
        .figures = t->u.figures,
    };
    rm_soft_ops_of(t->u.backend)->critic_loss(t->u.backend, &loss);
    rm_updates_backward(&t->u, CRITIC + critic, &in, t->d_out);
    return loss.q;
}

static void sac_put_gradient(struct rm_updates *u, const struct rm_update *update)
{
    struct sac *t = (struct sac *)u;
    struct rm_net_input in;
    put_targets(t, update);
    rm_update_phase(update->clock, RM_PHASE_BACKWARD);
    struct rm_soft_policy_loss loss = {
        .states = states_of(t, update->batch->mask),
        .weight = update->batch->weight,
        .target_ratio = u->experiment->algorithm.target_entropy_ratio,
        .d_logits = t->d_out,
        .figures = u->figures,
    };
    loss.states.q1 = put_critic(t, 0, update);
    loss.states.q2 = put_critic(t, 1, update);
    loss.states.logits = forward(t, ACTOR, update, &in);
    rm_soft_ops_of(u->backend)->policy_loss(u->backend, &loss);
    rm_updates_backward(u, ACTOR, &in, t->d_out);
}

static void sac_put_step(struct rm_updates *u, const struct rm_update *update)
{
    const struct rm_experiment *e = u->experiment;
    const struct rm_soft_step step = {
        .beta1 = e->optimizer.beta1,
        .beta2 = e->optimizer.beta2,
        .epsilon = e->optimizer.epsilon,
        .knobs = update->knobs,
        .figures = u->figures,
        .temperature = ((struct sac *)u)->temperature,
    };
    if (e->algorithm.tune_temperature)
        rm_soft_ops_of(u->backend)->temperature(u->backend, &step);
}

/* Forward of the policy twice and of each critic and its target once; backward of the three. */
static double sac_flops(const struct rm_updates *u)
{
    const uint32_t batch = ((const struct sac *)u)->batch;
    const struct rm_net *actor = u->nets[ACTOR].net, *critic = u->nets[CRITIC].net;
    return 2 * rm_net_forward_flops(actor, batch, 0) + rm_net_backward_flops(actor, batch, 0) +
           CRITICS * (2 * rm_net_forward_flops(critic, batch, 0) +
                      rm_net_backward_flops(critic, batch, 0));
}

const struct rm_update_ops rm_sac_updates = {
    .bytes = sizeof(struct sac),
    .on_several_devices = true,
    .critics = CRITICS,
    .open = sac_open,
    .put_gradient = sac_put_gradient,
    .put_step = sac_put_step,
    .reset = sac_reset,
    .flops = sac_flops,
};
