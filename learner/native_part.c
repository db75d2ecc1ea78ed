#include "learner/native_part.h"

#include "actor/worlds/builtin/common.h"
#include "config/config.h"
#include "learner/algo/actor_critic.h"
#include "learner/net/features.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- making ---------------------------------------------------------------------------------- */

/* Zeroed device memory with the part's lifetime. */
static void *alloc_zeroed(struct rm_native_part *n, size_t bytes, struct rm_error *error)
{
    void *p = n->owned_count < sizeof n->owned / sizeof *n->owned
                  ? n->backend->ops->alloc_bytes(n->backend, (bytes + 3) / 4 * 4, error)
                  : NULL;
    if (p)
        n->owned[n->owned_count++] = p;
    return p;
}

static int open_world(struct rm_native_part *n, const struct rm_native_part_spec *spec,
                      struct rm_error *error)
{
    const struct rm_experiment *e = &spec->session->experiment;
    int rc = rm_world_open(&n->world, e->world.name, e->world.library, error);
    if (!rc)
        rc = rm_world_create(&n->world, &e->world, spec->seed, spec->first, spec->worlds, &n->env,
                             error);
    if (rc)
        return rc;
    n->state_bytes = n->world.ops->state_size(n->env);
    return 0;
}

static int make_rows(struct rm_native_part *n, const struct rm_native_part_spec *spec,
                     struct rm_error *error)
{
    const struct rm_experiment *e = &spec->session->experiment;
    const struct rm_policy_plan *plan = &spec->session->plan.policy[spec->policy];
    const size_t rows = (size_t)e->rollout.steps * spec->worlds, more = rows + spec->worlds;
    struct rm_rollout *r = &n->rows;
    *r = (struct rm_rollout){
        .session = spec->session,
        .backend = spec->backend,
        .agent = n->world.ops->describe(n->env)->agent,
        .plan = plan,
        .policy = spec->policy,
        .steps = e->rollout.steps,
        .lanes = spec->worlds,
        .inputs = plan->inputs,
        .words = plan->action_words,
        .stack = 1,
        .native = true,
        .successors = true,
        .gamma = (float)e->sample.gamma,
        .distribution = rm_categorical_of(&plan->shape),
        .samples = (uint32_t)rows, /* the maximum; the device has the actual number */
    };
    r->x = alloc_zeroed(n, more * r->inputs * sizeof *r->x, error);
    r->value = alloc_zeroed(n, rows * sizeof *r->value, error);
    r->action = alloc_zeroed(n, rows * r->words * sizeof *r->action, error);
    r->logp = alloc_zeroed(n, rows * sizeof *r->logp, error);
    r->reward = alloc_zeroed(n, more * sizeof *r->reward, error);
    r->flags = alloc_zeroed(n, more, error);
    r->discount = alloc_zeroed(n, rows * sizeof *r->discount, error);
    r->valid = alloc_zeroed(n, rows * sizeof *r->valid, error);
    r->sample = alloc_zeroed(n, rows * sizeof *r->sample, error);
    return r->x && r->value && r->action && r->logp && r->reward && r->flags && r->discount &&
                   r->valid && r->sample
               ? 0
               : -ENOMEM;
}

static int make_hand(struct rm_native_part *n, const struct rm_native_part_spec *spec,
                     struct rm_error *error)
{
    const struct rm_env_agent *agent = n->rows.agent;
    const struct rm_env_observation of = rm_features_observation(agent, 0);
    const struct rm_rollout *r = &n->rows;
    struct rm_device_worlds *on = &n->on;
    const bool coded = agent->dtype == RM_ENV_CODE8;
    const size_t book = coded ? (size_t)agent->codes * agent->channels * sizeof(float) : 0;
    *on = (struct rm_device_worlds){
        .seed = spec->seed,
        .first_world = spec->first,
        .worlds = r->lanes,
        .state = alloc_zeroed(n, n->state_bytes, error),
        .obs_bytes = (uint32_t)rm_features_bytes(agent),
        .elements = rm_observation_elements(&of),
        .channels = coded ? agent->channels : 0,
        .inputs = r->inputs,
        .x = alloc_zeroed(n, (size_t)r->lanes * r->inputs * sizeof *on->x, error),
        .reward = alloc_zeroed(n, r->lanes * sizeof *on->reward, error),
        .flags = alloc_zeroed(n, r->lanes, error),
        .score = alloc_zeroed(n, r->lanes * sizeof *on->score, error),
        .steps = r->steps,
        .gamma = r->gamma,
        .to_x = r->x,
        .to_reward = r->reward,
        .to_flags = r->flags,
        .to_action = r->action,
        .to_logp = r->logp,
        .to_value = r->value,
        .discount = r->discount,
        .valid = r->valid,
        .sample = r->sample,
        .ended = alloc_zeroed(n, (size_t)r->steps * r->lanes * sizeof *on->ended, error),
        .stage = alloc_zeroed(n, sizeof *on->stage, error),
    };
    on->obs = alloc_zeroed(n, (size_t)r->lanes * on->obs_bytes, error);
    float *codebook = coded ? alloc_zeroed(n, book, error) : NULL;
    n->results = n->backend->ops->alloc_host(n->backend, sizeof *n->results, error);
    if (!on->state || !on->x || !on->reward || !on->flags || !on->score || !on->ended ||
        !on->stage || !on->obs || (coded && !codebook) || !n->results)
        return -ENOMEM;
    if (coded)
        n->backend->ops->upload(n->backend, codebook, agent->codebook, book / sizeof(float));
    on->codebook = codebook;
    return 0;
}

int rm_native_part_create(struct rm_native_part *n, const struct rm_native_part_spec *spec,
                          struct rm_error *error)
{
    const struct rm_experiment *e = &spec->session->experiment;
    const struct rm_device_rules *native = rm_device_rules_of(e->world.name);
    *n = (struct rm_native_part){.backend = spec->backend, .session = spec->session};
    if (!native || rm_experiment_is_foreign(e) || !spec->backend->device)
        return rm_fail(error, -ENOTSUP,
                       "actor.device: world \"%s\" has no form for %s; use \"cpu\"", e->world.name,
                       spec->backend->description);
    int rc = open_world(n, spec, error);
    if (!rc)
        rc = make_rows(n, spec, error);
    if (!rc)
        rc = make_hand(n, spec, error);
    if (rc)
        return rc;
    n->on.kind = native->kind;
    native->rules(n->env, n->on.rules);
    n->orders = (struct rm_device_orders){
        .seed = e->seed,
        .policy = spec->policy,
        .device = spec->number,
        .epochs = e->algorithm.epochs,
        .parts = e->algorithm.minibatches,
        .shuffled = e->algorithm.epochs > 1 || e->algorithm.minibatches > 1,
    };
    return 0;
}

/* --- acting ---------------------------------------------------------------------------------- */

/* `first`: the weights have changed since the step before. */
static void put_step(struct rm_native_part *n, bool first)
{
    const struct rm_device_world_ops *worlds = n->backend->device->worlds;
    const struct rm_net_input in = {.x = n->on.x, .batch = n->on.worlds};
    if (first)
        rm_net_prepare(n->space, n->params);
    n->draw.out = rm_net_forward(n->space, n->params, &in);
    worlds->draw(n->backend, &n->on, &n->draw);
    worlds->step(n->backend, &n->on);
}

static void send_state(struct rm_native_part *n)
{
    n->backend->ops->upload(n->backend, n->on.state, (const float *)(const void *)n->host,
                            n->state_bytes / sizeof(float));
    n->backend->device->worlds->look(n->backend, &n->on);
}

/* Begins the first episode of all worlds, as actors do. */
static int begin_episodes(struct rm_native_part *n, struct rm_error *error)
{
    const uint32_t worlds = n->on.worlds;
    uint8_t *obs = calloc(worlds, n->on.obs_bytes);
    float *reward = calloc(worlds, sizeof *reward);
    uint8_t *flags = calloc(worlds + 3, 1);
    int rc = obs && reward && flags ? 0 : rm_fail(error, -ENOMEM, "no memory for %u rows", worlds);
    if (!rc) {
        const struct rm_env_buffers out = {
            .obs = obs, .obs_stride = n->on.obs_bytes, .reward = reward, .flags = flags};
        rc = n->world.ops->reset(n->env, &out);
        if (!rc)
            rc = n->world.ops->save_state(n->env, n->host);
        if (rc)
            rm_fail(error, rc, "%s", n->world.ops->last_error(n->env));
    }
    if (!rc) {
        send_state(n);
        n->backend->ops->upload(n->backend, n->on.reward, reward, worlds);
        n->backend->ops->upload(n->backend, (float *)(void *)n->on.flags,
                                (const float *)(const void *)flags, (worlds + 3) / 4);
    }
    free(obs);
    free(reward);
    free(flags);
    return rc;
}

static int capture_step(struct rm_native_part *n, bool first, struct rm_device_graph **graph,
                        struct rm_error *error)
{
    struct rm_backend *b = n->backend;
    const int rc = b->device->capture(b, error);
    if (rc)
        return rc;
    put_step(n, first);
    const int ended = b->device->captured(b, graph, error);
    return ended ? ended : b->device->instantiate(b, *graph, error);
}

/* Captures the graphs before the worlds begin, then clears what the capture wrote. */
static int capture(struct rm_native_part *n, struct rm_error *error)
{
    struct rm_backend *b = n->backend;
    put_step(n, true);
    b->device->worlds->end(b, &n->on, &n->orders);
    b->ops->clear(b, n->orders.passes, sizeof *n->orders.passes);
    b->ops->clear(b, n->on.stage, sizeof *n->on.stage);
    b->ops->clear(b, n->on.score, n->on.worlds * sizeof *n->on.score);
    b->ops->finish(b);
    if (b->ops->failed(b, error))
        return -EIO;
    const int rc = capture_step(n, true, &n->first, error);
    return rc ? rc : capture_step(n, false, &n->step, error);
}

int rm_native_part_join(struct rm_native_part *n, struct rm_actor_critic *learner,
                        struct rm_error *error)
{
    n->net = rm_actor_critic_net(learner);
    n->params = rm_actor_critic_params(learner);
    n->orders.order = rm_actor_critic_orders(learner);
    n->orders.passes = rm_actor_critic_passes(learner);
    n->draw.distribution = n->rows.distribution;
    n->draw.outputs = rm_net_outputs(n->net);
    int rc = rm_net_workspace_create(&n->space, n->net, n->backend, n->on.worlds, 0, RM_NET_INFER,
                                     error);
    if (!rc)
        rc = capture(n, error);
    return rc ? rc : begin_episodes(n, error);
}

void rm_native_part_destroy(struct rm_native_part *n)
{
    struct rm_backend *b = n->backend;
    if (!b)
        return;
    if (b->device) {
        b->device->graph_destroy(b, n->first);
        b->device->graph_destroy(b, n->step);
    }
    b->ops->release_host(b, n->results);
    for (uint32_t i = 0; i < n->owned_count; i++)
        b->ops->release(b, n->owned[i]);
    rm_net_workspace_destroy(n->space);
    if (n->env)
        n->world.ops->close(n->env);
    rm_world_close(&n->world);
    *n = (struct rm_native_part){0};
}

/* --- rollouts -------------------------------------------------------------------------------- */

void rm_native_part_begin(struct rm_native_part *n)
{
    n->backend->device->worlds->begin(n->backend, &n->on);
}

void rm_native_part_step(struct rm_native_part *n, uint32_t t)
{
    n->backend->device->launch(n->backend, t == 0 ? n->first : n->step);
}

void rm_native_part_end(struct rm_native_part *n)
{
    struct rm_backend *b = n->backend;
    b->device->worlds->end(b, &n->on, &n->orders);
    b->ops->copy_out(b, RM_QUEUE_COMPUTE, n->results, n->on.stage, sizeof *n->results);
}

/* --- state ----------------------------------------------------------------------------------- */

void rm_native_part_fetch(struct rm_native_part *n)
{
    n->backend->ops->download(n->backend, (float *)(void *)n->host, n->on.state,
                              n->state_bytes / sizeof(float));
}

int rm_native_part_send(struct rm_native_part *n, struct rm_error *error)
{
    const int rc = n->world.ops->load_state(n->env, n->host);
    if (rc)
        return rm_fail(error, rc, "%s", n->world.ops->last_error(n->env));
    send_state(n);
    return 0;
}
