/* The CPU's actor-critic learner: its workspaces and buffers, and its table. A rollout is valued in
 * actor_critic_rollout.c and learned from in actor_critic_step.c. */
#include "learner/algo/actor_critic_private.h"
#include "shm/base/state.h"

#include <errno.h>
#include <stdlib.h>

static int make_spaces(struct rm_actor_critic *ac, struct rm_error *error)
{
    const struct rm_rollout *r = ac->rollout;
    const size_t rows = (size_t)(r->steps + 1) * r->lanes;
    uint32_t forward = rows < FORWARD_ROWS ? (uint32_t)rows : FORWARD_ROWS;
    int rc = 0;
    if (ac->order) {
        forward = rm_actor_critic_pass_rows(ac) * r->lanes;
        rc = rm_sequences_create(&ac->sequences, r, ac->backend, ac->net, error);
    }
    if (!rc)
        rc = rm_net_workspace_create(&ac->value_space, ac->net, ac->backend, forward, 0,
                                     ac->off_policy ? RM_NET_INFER : RM_NET_VALUE, error);
    if (!rc)
        rc = rm_net_workspace_create(&ac->learn_space, ac->net, ac->backend,
                                     rm_minibatches_most(&ac->minibatches) *
                                         (ac->order ? r->steps : 1),
                                     0, RM_NET_LEARN, error);
    return rc;
}

static int make(struct rm_actor_critic *ac, struct rm_error *error)
{
    const struct rm_rollout *r = ac->rollout;
    const size_t rows = (size_t)r->steps * r->lanes;
    const int rc = make_spaces(ac, error);
    if (rc)
        return rc;
    ac->value = calloc(rows + r->lanes, sizeof *ac->value);
    ac->reward = calloc(rows + r->lanes, sizeof *ac->reward);
    ac->advantage = calloc(rows, sizeof *ac->advantage);
    ac->target = calloc(rows, sizeof *ac->target);
    if (ac->off_policy) {
        ac->logp = calloc(rows, sizeof *ac->logp);
        ac->ratio = calloc(rows, sizeof *ac->ratio);
    }
    if (!ac->value || !ac->reward || !ac->advantage || !ac->target ||
        (ac->off_policy && (!ac->logp || !ac->ratio)))
        return rm_fail(error, -ENOMEM, "no memory for %zu rows", rows);
    rm_net_prepare(ac->learn_space, ac->params);
    return 0;
}

static void unmake(struct rm_actor_critic *ac)
{
    if (ac->value_space)
        rm_net_workspace_destroy(ac->value_space);
    if (ac->learn_space)
        rm_net_workspace_destroy(ac->learn_space);
    rm_sequences_destroy(&ac->sequences);
    free(ac->value);
    free(ac->reward);
    free(ac->advantage);
    free(ac->target);
    free(ac->logp);
    free(ac->ratio);
}

static void renewed(struct rm_actor_critic *ac)
{
    rm_net_prepare(ac->learn_space, ac->params);
}

static void value_state(struct rm_actor_critic *ac, struct rm_state *s)
{
    if (ac->sequences.own)
        rm_state_floats(s, "value_state", ac->sequences.value,
                        (size_t)ac->sequences.lanes * ac->sequences.own);
}

const struct rm_actor_critic_ops rm_host_actor_critic = {
    .bytes = sizeof(struct rm_actor_critic),
    .make = make,
    .unmake = unmake,
    .renewed = renewed,
    .normalised = renewed,
    .begin = rm_host_actor_critic_begin,
    .pass_by = rm_host_actor_critic_pass_by,
    .step = rm_host_actor_critic_step,
    .value_state = value_state,
};
