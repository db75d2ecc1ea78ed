/* sac: updates of soft actor-critic, of discrete actions (Christodoulou 2019) and of real ones
 * (Haarnoja 2018). Three networks: the policy, which alone is published, and two critics, each with
 * a target network. All gradients of an update are taken at the same parameters; then everything
 * moves at once.
 *
 * Critics of real actions take the action as an input and have one output. The gradient of the
 * policy's loss goes back through both critics to the drawn action. Such a pass overwrites the
 * critics' gradients, so the gradients of the critics' own loss are computed after it. */
#include "learner/algo/updates.h"

#include <math.h>

enum { ACTOR, CRITIC, CRITICS = 2 }; /* networks; the critics are CRITIC and CRITIC + 1 */

struct sac {
    struct rm_updates u;     /* first */
    uint32_t batch, actions; /* real actions: 1, the draw */
    struct rm_gaussian gaussian;

    /* The backend's memory. */
    float *p, *logp; /* (batch, actions) */
    float *d_out;    /* (batch, actions), or (batch, 2 reals) */
    float *y;        /* (batch) */
    /* Of real actions: */
    float *normal;      /* (batch of all replicas, reals) */
    float *drawn;       /* (batch, reals) before tanh */
    float *action;      /* (batch, reals) after it */
    float *taken;       /* (batch, reals) the batch's */
    float *d_action[2]; /* (batch, reals) by each critic */
    float *d_q;         /* (2, batch) */
    struct rm_temperature *temperature;
};

static int sac_open(struct rm_updates *u, const struct rm_trainer_spec *spec,
                    struct rm_error *error)
{
    struct sac *t = (struct sac *)u;
    t->batch = u->rows = spec->experiment->sample.batch / u->replicas;
    t->gaussian = (struct rm_gaussian){spec->shape.reals, 1};
    t->actions = t->gaussian.reals ? 1 : spec->shape.actions;
    u->observations = spec->experiment->sample.batch;
    const size_t f = sizeof(float), rows = t->batch, reals = rows * t->gaussian.reals * f;
    const struct {
        void *at;
        size_t bytes; /* 0: not there */
    } wants[] = {
        {&t->p, rows * t->actions * f},
        {&t->logp, rows * t->actions * f},
        {&t->d_out, rows * t->actions * f + 2 * reals},
        {&t->y, rows * f},
        {&t->normal, reals * u->replicas},
        {&t->drawn, reals},
        {&t->action, reals},
        {&t->taken, reals},
        {&t->d_action[0], reals},
        {&t->d_action[1], reals},
        {&t->d_q, reals ? 2 * rows * f : 0},
    };
    int rc = 0;
    for (size_t i = 0; i < sizeof wants / sizeof *wants && !rc; i++)
        rc = rm_updates_alloc(u, wants[i].at, wants[i].bytes, error);
    if (!rc)
        rc =
            rm_updates_alloc_kept(u, "temperature", &t->temperature, sizeof *t->temperature, error);
    return rc;
}

static void sac_reset(struct rm_updates *u)
{
    const struct rm_temperature first = {.log = log(u->experiment->algorithm.temperature)};
    u->backend->ops->upload(u->backend, (float *)(void *)((struct sac *)u)->temperature,
                            (const float *)(const void *)&first, sizeof first / sizeof(float));
}

static const struct rm_soft_ops *ops_of(const struct sac *t)
{
    return rm_soft_ops_of(t->u.backend);
}

/* The pass of a network that is trained, with dropout of its own. */
static const float *forward(struct sac *t, uint32_t net, const struct rm_update *update,
                            const float *action, struct rm_net_input *in)
{
    const struct rm_update_net *n = &t->u.nets[net];
    *in = (struct rm_net_input){
        .x = update->batch->obs,
        .action = action,
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

/* The action of a policy in some states, drawn; `pass` of two. */
static struct rm_soft_draw put_draw(struct sac *t, const struct rm_update *update, const float *out,
                                    uint64_t pass)
{
    struct rm_backend *b = t->u.backend;
    const size_t reals = t->gaussian.reals, own = t->batch * reals;
    const struct rm_soft_draw draw = {
        .gaussian = t->gaussian,
        .batch = t->batch,
        .out = out,
        .normal = t->normal + own * t->u.replica,
        .drawn = t->drawn,
        .action = t->action,
        .p = t->p,
        .logp = t->logp,
    };
    b->ops->normals(b, t->u.experiment->seed, RM_STREAM_REALS, t->u.policy,
                    rm_updates_key(&t->u, update, 2, pass), own * t->u.replicas, t->normal);
    ops_of(t)->draw(b, &draw);
    return draw;
}

static void put_targets(struct sac *t, const struct rm_update *update)
{
    const struct rm_batch *batch = update->batch;
    const struct rm_update_net *nets = t->u.nets;
    struct rm_net_input in = {
        .x = batch->next_obs, .batch = t->batch, .dropout_seed = t->u.experiment->seed};
    struct rm_soft_states next = states_of(t, batch->next_mask);
    const float *q[CRITICS];
    next.logits = rm_net_forward(nets[ACTOR].online, t->u.params, &in);
    if (t->gaussian.reals) {
        put_draw(t, update, next.logits, 0);
        next.logits = NULL;
        in.action = t->action;
    }
    for (uint32_t i = 0; i < CRITICS; i++)
        q[i] = rm_net_forward(nets[CRITIC + i].target, t->u.target + nets[CRITIC + i].at, &in);
    next.q1 = q[0];
    next.q2 = q[1];
    ops_of(t)->targets(t->u.backend, &next, batch->ret, batch->discount, t->y);
}

static const float *put_critic(struct sac *t, uint32_t critic, const struct rm_update *update)
{
    const struct rm_batch *batch = update->batch;
    const bool real = t->gaussian.reals > 0;
    struct rm_net_input in;
    const struct rm_soft_critic_loss loss = {
        .batch = t->batch,
        .actions = t->actions,
        .critic = critic,
        .after_policy = real,
        .q = forward(t, CRITIC + critic, update, t->taken, &in),
        .action = real ? NULL : batch->action,
        .y = t->y,
        .weight = batch->weight,
        .error = batch->error,
        .d_q = t->d_out,
        .figures = t->u.figures,
    };
    ops_of(t)->critic_loss(t->u.backend, &loss);
    rm_updates_backward(&t->u, CRITIC + critic, &in, t->d_out);
    return loss.q;
}

static struct rm_soft_policy_loss policy_loss_of(struct sac *t, const struct rm_update *update)
{
    const struct rm_experiment *e = t->u.experiment;
    return (struct rm_soft_policy_loss){
        .states = states_of(t, update->batch->mask),
        .weight = update->batch->weight,
        .target_ratio = e->algorithm.target_entropy_ratio,
        .target_entropy = e->algorithm.target_entropy * t->gaussian.reals,
        .d_logits = t->gaussian.reals ? t->d_q : t->d_out,
        .figures = t->u.figures,
    };
}

static void put_discrete(struct sac *t, const struct rm_update *update)
{
    struct rm_soft_policy_loss loss = policy_loss_of(t, update);
    struct rm_net_input in;
    loss.states.q1 = put_critic(t, 0, update);
    loss.states.q2 = put_critic(t, 1, update);
    loss.states.logits = forward(t, ACTOR, update, NULL, &in);
    ops_of(t)->policy_loss(t->u.backend, &loss);
    rm_updates_backward(&t->u, ACTOR, &in, t->d_out);
}

static void put_real(struct sac *t, const struct rm_update *update)
{
    struct rm_soft_policy_loss loss = policy_loss_of(t, update);
    struct rm_net_input in, of_critic[CRITICS];
    const float *q[CRITICS], *out = forward(t, ACTOR, update, NULL, &in);
    const struct rm_soft_draw_back back = {
        .draw = put_draw(t, update, out, 1),
        .d_action = {t->d_action[0], t->d_action[1]},
        .weight = update->batch->weight,
        .temperature = t->temperature,
        .figures = t->u.figures,
        .d_out = t->d_out,
    };
    for (uint32_t i = 0; i < CRITICS; i++)
        q[i] = forward(t, CRITIC + i, update, t->action, &of_critic[i]);
    loss.states.q1 = q[0];
    loss.states.q2 = q[1];
    ops_of(t)->policy_loss(t->u.backend, &loss);
    for (uint32_t i = 0; i < CRITICS; i++) {
        of_critic[i].d_action = t->d_action[i];
        of_critic[i].action_only = true;
        rm_updates_backward(&t->u, CRITIC + i, &of_critic[i], t->d_q + (size_t)i * t->batch);
    }
    ops_of(t)->draw_back(t->u.backend, &back);
    rm_updates_backward(&t->u, ACTOR, &in, t->d_out);
    ops_of(t)->bound(t->u.backend, update->batch->action, (size_t)t->batch * t->gaussian.reals,
                     t->taken);
    put_critic(t, 0, update);
    put_critic(t, 1, update);
}

static void sac_put_gradient(struct rm_updates *u, const struct rm_update *update)
{
    struct sac *t = (struct sac *)u;
    put_targets(t, update);
    rm_update_phase(update->clock, RM_PHASE_BACKWARD);
    if (t->gaussian.reals)
        put_real(t, update);
    else
        put_discrete(t, update);
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

/* Forward of the policy twice and of each critic and its target once; backward of the three. Real
 * actions: critics once more, and back to the action. */
static double sac_flops(const struct rm_updates *u)
{
    const uint32_t batch = ((const struct sac *)u)->batch;
    const struct rm_net *actor = u->nets[ACTOR].net, *critic = u->nets[CRITIC].net;
    const double forward = rm_net_forward_flops(critic, batch, 0);
    const double more = ((const struct sac *)u)->gaussian.reals ? 2 * forward : 0;
    return 2 * rm_net_forward_flops(actor, batch, 0) + rm_net_backward_flops(actor, batch, 0) +
           CRITICS * (2 * forward + rm_net_backward_flops(critic, batch, 0) + more);
}

const struct rm_update_ops rm_sac_updates = {
    .bytes = sizeof(struct sac),
    .critics = CRITICS,
    .open = sac_open,
    .put_gradient = sac_put_gradient,
    .put_step = sac_put_step,
    .reset = sac_reset,
    .flops = sac_flops,
};
