#include "learner/algo/trainer.h"

#include "config/traits.h"
#include "learner/algo/parallel.h"
#include "learner/algo/updates.h"
#include "shm/base/state.h"

#include <assert.h>
#include <errno.h>

/* By algorithm; NULL: the algorithm learns from rollouts (actor_critic.h). */
static const struct rm_update_ops *const updates[] = {
    [RM_ALGORITHM_DQN] = &rm_dqn_updates,     [RM_ALGORITHM_QR_DQN] = &rm_dqn_updates,
    [RM_ALGORITHM_IQN] = &rm_dqn_updates,     [RM_ALGORITHM_R2D2] = &rm_r2d2_updates,
    [RM_ALGORITHM_SAC] = &rm_sac_updates,     [RM_ALGORITHM_VTRACE] = NULL,
    [RM_ALGORITHM_CLONE] = &rm_clone_updates, [RM_ALGORITHM_DISTILL] = &rm_distill_updates,
};
static_assert(sizeof updates == RM_ALGORITHM_COUNT * sizeof(void *), "a row per algorithm");

int rm_trainer_create(struct rm_trainer **trainer, const struct rm_trainer_spec *spec,
                      struct rm_error *error)
{
    const struct rm_update_ops *ops = updates[spec->experiment->algorithm.name];
    const bool several = rm_parallel_devices(spec->backend) > 1;
    *trainer = NULL;
    if (!ops || (several && !rm_algorithm_traits(spec->experiment->algorithm.name)->devices))
        return rm_fail(error, -ENOTSUP, "algorithm.name: no trainer learns it from replay%s",
                       several ? " on several devices" : "");
    return several                 ? rm_parallel_create(trainer, ops, spec, error)
           : spec->backend->staged ? rm_updates_staged_create(trainer, ops, spec, error)
                                   : rm_updates_at_once_create(trainer, ops, spec, error);
}

void rm_trainer_destroy(struct rm_trainer *trainer)
{
    if (trainer)
        trainer->ops->destroy(trainer);
}

struct rm_trainer_result rm_trainer_update(struct rm_trainer *trainer, const struct rm_batch *batch,
                                           uint64_t number, struct rm_phase_clock *clock)
{
    return trainer->ops->update(trainer, batch, number, clock);
}

struct rm_trainer_result rm_trainer_gradient(struct rm_trainer *trainer,
                                             const struct rm_batch *batch, uint64_t number,
                                             struct rm_phase_clock *clock)
{
    return trainer->ops->gradient(trainer, batch, number, clock);
}

struct rm_trainer_result rm_trainer_measure(struct rm_trainer *trainer,
                                            const struct rm_batch *batch)
{
    return trainer->ops->measure(trainer, batch);
}

bool rm_trainer_is_late(const struct rm_trainer *trainer)
{
    return trainer->ops->report;
}

struct rm_batch *rm_trainer_batch(struct rm_trainer *trainer)
{
    return trainer->ops->batch(trainer);
}

struct rm_batch *rm_trainer_learned(struct rm_trainer *trainer)
{
    return trainer->ops->learned(trainer);
}

bool rm_trainer_report(struct rm_trainer *trainer, bool wait, struct rm_trainer_report *report)
{
    return trainer->ops->report(trainer, wait, report);
}

const uint64_t *rm_trainer_made(const struct rm_trainer *trainer)
{
    return &trainer->all[0]->figures->made;
}

void rm_trainer_set(struct rm_trainer *trainer, const struct rm_trainer_settings *settings)
{
    for (uint32_t i = 0; i < trainer->count; i++)
        rm_updates_set(trainer->all[i], settings);
}

void rm_trainer_progress(struct rm_trainer *trainer, double progress)
{
    for (uint32_t i = 0; i < trainer->count; i++)
        trainer->all[i]->progress = progress;
}

void rm_trainer_load(struct rm_trainer *trainer, const float *params)
{
    for (uint32_t i = 0; i < trainer->count; i++)
        rm_updates_load(trainer->all[i], params);
}

void rm_trainer_guarded(struct rm_trainer *trainer, struct rm_guard *guard)
{
    rm_updates_guarded(trainer->all[0], guard);
}

void rm_trainer_restored(struct rm_trainer *trainer)
{
    rm_updates_restored(trainer->all[0]);
    rm_parallel_make_equal(trainer->all, trainer->count, rm_updates_state);
}

void rm_trainer_state(struct rm_trainer *trainer, struct rm_state *state)
{
    rm_updates_state(trainer->all[0], state);
    if (rm_state_loading(state))
        rm_trainer_restored(trainer);
}

const float *rm_trainer_params(const struct rm_trainer *trainer)
{
    return trainer->all[0]->params;
}

const struct rm_net *rm_trainer_net(const struct rm_trainer *trainer)
{
    return trainer->all[0]->nets[0].net;
}

const struct rm_net_workspace *rm_trainer_workspace(const struct rm_trainer *trainer)
{
    return trainer->all[0]->nets[0].online;
}

double rm_trainer_fixed(struct rm_trainer *trainer)
{
    struct rm_updates *u = trainer->all[0];
    return u->backend->staged ? NAN : rm_updates_fixed(u);
}

double rm_trainer_update_flops(const struct rm_trainer *trainer)
{
    const struct rm_updates *u = trainer->all[0];
    const double flops = u->ops->flops ? u->ops->flops(u)
                                       : rm_net_forward_flops(u->nets[0].net, u->rows, 0) +
                                             rm_net_backward_flops(u->nets[0].net, u->rows, 0);
    return trainer->count * flops;
}
