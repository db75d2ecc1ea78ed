#include "learner/algo/dqn_private.h"

#include <errno.h>

static int make_network(struct rm_dqn *t, struct rm_error *error)
{
    if (rm_net_uses_quantiles(t->f.net) != t->algo->drawn_fractions)
        return rm_fail(error, -EINVAL,
                       t->algo->drawn_fractions
                           ? "network.layers: algorithm.name %s needs a cosine_embedding layer"
                           : "network.layers: algorithm.name %s takes no cosine_embedding layer",
                       t->algo->name);
    const bool drawn = t->algo->drawn_fractions;
    int rc = rm_net_workspace_create(&t->f.online_space, t->f.net, t->f.backend, t->batch,
                                     drawn ? rm_dqn_most_quantiles(t) : 0, RM_NET_TRAIN, error);
    if (!rc)
        rc = rm_net_workspace_create(&t->f.target_space, t->f.net, t->f.backend, t->batch,
                                     drawn ? t->target_quantiles : 0, RM_NET_INFER, error);
    return rc ? rc : rm_followed_make(&t->f, t->inputs, error);
}

int rm_dqn_open(struct rm_dqn *t, const struct rm_trainer_spec *spec, struct rm_error *error)
{
    const struct rm_experiment *e = spec->experiment;
    t->algo = rm_algo_of(e->algorithm.name);
    t->batch = e->sample.batch / (spec->replicas ? spec->replicas : 1);
    t->inputs = spec->shape.inputs;
    t->actions = spec->shape.actions;
    t->quantiles = rm_algo_quantiles(e);
    t->target_quantiles = rm_algo_target_quantiles(e);
    const int rc = rm_followed_open(&t->f, spec, (double)e->sample.batch, error);
    return rc ? rc : make_network(t, error);
}

double rm_dqn_update_flops(const struct rm_trainer *trainer)
{
    const struct rm_dqn *t = (const struct rm_dqn *)trainer;
    const uint32_t tau = t->algo->drawn_fractions ? t->quantiles : 0;
    const uint32_t target_tau = t->algo->drawn_fractions ? t->target_quantiles : 0;
    const double online = rm_net_forward_flops(t->f.net, t->batch, tau) +
                          rm_net_backward_flops(t->f.net, t->batch, tau);
    const double next = rm_net_forward_flops(t->f.net, t->batch, target_tau);
    return (t->f.experiment->algorithm.double_q ? 2 : 1) * next + online;
}
