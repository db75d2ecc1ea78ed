/* r2d2: the trainer over stored sequences (Kapturowski 2019): double Q-learning with n-step returns
 * and rescaled values on a recurrent network. Online and target network each go through the burn-in
 * rows from the stored state, without gradients, then through the trace and its tail; the online
 * network's own values there choose the actions that the target network values. */
#include "learner/algo/followed.h"
#include "learner/algo/r2d2_loss.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum pass { PASS_TARGET, PASS_ONLINE, PASS_COUNT };

struct r2d2 {
    struct rm_followed f; /* first */
    uint32_t batch, inputs, actions;
    uint32_t burn_in, rows; /* rows: of the trace and its tail */

    /* The backend's memory. */
    float *obs;   /* (burn_in + rows, batch, inputs) */
    float *state; /* (batch, state_count): stored, then after burn-in */
    float *noise; /* (noise_count), NULL without noisy layers */
    float *d_q;   /* (rows, batch, actions) */

    /* Host memory. */
    float *host_q, *host_target; /* (rows, batch, actions) */
    float *host_d_q;             /* the same */
    float *host_obs;             /* (batch, inputs): rows that count, for the normaliser */
    float *y;                    /* (trace, batch) */
};

static struct r2d2 *of(struct rm_trainer *trainer)
{
    return (struct r2d2 *)trainer;
}

static const struct r2d2 *of_const(const struct rm_trainer *trainer)
{
    return (const struct r2d2 *)trainer;
}

static void enter(struct rm_phase_clock *clock, enum rm_phase phase)
{
    if (clock)
        rm_phase_enter(clock, phase);
}

/* --- making ---------------------------------------------------------------------------------- */

static int make_network(struct r2d2 *t, struct rm_error *error)
{
    const uint32_t most = (t->burn_in > t->rows ? t->burn_in : t->rows) * t->batch;
    int rc = rm_net_workspace_create(&t->f.online_space, t->f.net, t->f.backend, most, 0,
                                     RM_NET_TRAIN, error);
    if (!rc)
        rc = rm_net_workspace_create(&t->f.target_space, t->f.net, t->f.backend, most, 0,
                                     RM_NET_INFER, error);
    return rc ? rc : rm_followed_make(&t->f, t->inputs, error);
}

static int make_buffers(struct r2d2 *t, struct rm_error *error)
{
    struct rm_backend *b = t->f.backend;
    const size_t outputs = (size_t)t->rows * t->batch * t->actions;
    struct {
        float **at;
        size_t floats;
    } device[] = {
        {&t->obs, (size_t)(t->burn_in + t->rows) * t->batch * t->inputs},
        {&t->state, (size_t)t->batch * rm_net_state_count(t->f.net)},
        {&t->noise, rm_net_noise_count(t->f.net)},
        {&t->d_q, outputs},
    };
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i].floats && !(*device[i].at = b->ops->alloc(b, device[i].floats)))
            return rm_fail(error, -ENOMEM, "backend %s: no memory for %zu floats", b->name,
                           device[i].floats);
    t->host_q = calloc(outputs, sizeof *t->host_q);
    t->host_target = calloc(outputs, sizeof *t->host_target);
    t->host_d_q = calloc(outputs, sizeof *t->host_d_q);
    t->host_obs = calloc((size_t)t->batch * t->inputs, sizeof *t->host_obs);
    t->y = calloc((size_t)t->rows * t->batch, sizeof *t->y);
    if (!t->host_q || !t->host_target || !t->host_d_q || !t->host_obs || !t->y)
        return rm_fail(error, -ENOMEM, "no memory for %u sequences of %u rows", t->batch, t->rows);
    return 0;
}

static void r2d2_destroy(struct rm_trainer *trainer)
{
    struct r2d2 *t = of(trainer);
    float *device[] = {t->obs, t->state, t->noise, t->d_q};
    float *host[] = {t->host_q, t->host_target, t->host_d_q, t->host_obs, t->y};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i])
            t->f.backend->ops->release(t->f.backend, device[i]);
    rm_followed_close(&t->f);
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
    free(t);
}

/* --- settings and parameters ----------------------------------------------------------------- */

/* --- an update ------------------------------------------------------------------------------- */

/* One network over whole sequences, burn-in first. Leaves its values of trace and tail in `out`;
 * the input is that of the second part, valid for a backward pass until the next call. */
static struct rm_net_input unroll(struct r2d2 *t, enum pass pass, const struct rm_batch *batch,
                                  uint64_t number, float *out)
{
    struct rm_backend *b = t->f.backend;
    const bool target = pass == PASS_TARGET;
    struct rm_net_workspace *space = target ? t->f.target_space : t->f.online_space;
    const float *params = target ? t->f.target : t->f.params;
    const size_t states = (size_t)t->batch * rm_net_state_count(t->f.net);
    struct rm_net_input in = {
        .x = t->obs,
        .batch = t->burn_in * t->batch,
        .steps = t->burn_in,
        .state = t->state,
        .next_state = t->state,
        .restart = batch->restart,
    };
    if (t->noise) {
        b->ops->normals(b, t->f.experiment->seed, RM_STREAM_NOISE, t->f.policy,
                        number * PASS_COUNT + pass, rm_net_noise_count(t->f.net), t->noise);
        in.noise = t->noise;
    }
    if (!target) { /* what is trained drops; what it is compared with is whole */
        in.dropout_seed = t->f.experiment->seed;
        in.dropout_update = number;
    }
    if (states)
        b->ops->upload(b, t->state, batch->state, states);
    if (t->burn_in && states)
        rm_net_forward(space, params, &in);
    in.x = t->obs + (size_t)t->burn_in * t->batch * t->inputs;
    in.batch = t->rows * t->batch;
    in.steps = t->rows;
    in.next_state = NULL;
    in.restart = batch->restart + (size_t)t->burn_in * t->batch;
    const float *q = rm_net_forward(space, params, &in);
    b->ops->download(b, out, q, (size_t)in.batch * t->actions);
    return in;
}

static struct rm_trainer_result r2d2_gradient(struct rm_trainer *trainer,
                                              const struct rm_batch *batch, uint64_t number,
                                              struct rm_phase_clock *clock)
{
    struct r2d2 *t = of(trainer);
    struct rm_backend *b = t->f.backend;
    const struct rm_experiment *e = t->f.experiment;
    enter(clock, RM_PHASE_UPLOAD);
    b->ops->upload(b, t->obs, batch->obs, (size_t)(t->burn_in + t->rows) * t->batch * t->inputs);
    enter(clock, RM_PHASE_FORWARD);
    unroll(t, PASS_TARGET, batch, number, t->host_target);
    const struct rm_net_input in = unroll(t, PASS_ONLINE, batch, number, t->host_q);
    rm_r2d2_targets(batch, e->algorithm.double_q ? t->host_q : t->host_target, t->host_target,
                    e->algorithm.value_rescale, t->y);
    enter(clock, RM_PHASE_BACKWARD);
    const struct rm_r2d2_loss loss = {.q = t->host_q,
                                      .y = t->y,
                                      .kappa = (float)e->algorithm.kappa,
                                      .max_share = e->priority.max_share};
    const struct rm_r2d2_sums sums = rm_r2d2_loss(batch, &loss, t->host_d_q);
    b->ops->upload(b, t->d_q, t->host_d_q, (size_t)in.batch * t->actions);
    rm_net_backward(t->f.online_space, t->f.params, &in, t->d_q, t->f.grads);
    struct rm_trainer_result result = {
        .loss = sums.loss,
        .q_mean = e->algorithm.value_rescale ? rm_value_unscale(sums.q_mean) : sums.q_mean,
        .grad_norm = rm_optimizer_norm(t->f.optimizer, t->f.grads),
    };
    result.skipped = !isfinite(result.loss) || !isfinite(result.grad_norm);
    if (rm_finite_due(&t->f.finite, number, result.skipped))
        rm_finite_look(&t->f.finite, number, t->f.online_space, t->f.params, &in, t->f.grads);
    return result;
}

/* Rows of the trace at which a transition starts: padding was never seen. */
static void normalise(struct r2d2 *t, const struct rm_batch *batch)
{
    if (t->f.normaliser.mean_at == SIZE_MAX)
        return;
    for (uint32_t step = 0; step < batch->trace; step++) {
        size_t kept = 0;
        for (uint32_t i = 0; i < t->batch; i++) {
            const size_t at = (size_t)step * t->batch + i;
            const size_t from = at + (size_t)t->burn_in * t->batch;
            if (batch->valid[at])
                memcpy(t->host_obs + kept++ * t->inputs, batch->obs + from * t->inputs,
                       t->inputs * sizeof(float));
        }
        if (kept)
            rm_normaliser_add(&t->f.normaliser, t->host_obs, kept);
    }
    rm_normaliser_write(&t->f.normaliser, t->f.params);
}

static struct rm_trainer_result r2d2_update(struct rm_trainer *trainer,
                                            const struct rm_batch *batch, uint64_t number,
                                            struct rm_phase_clock *clock)
{
    struct r2d2 *t = of(trainer);
    struct rm_trainer_result result = r2d2_gradient(trainer, batch, number, clock);
    if (result.skipped)
        return result;
    enter(clock, RM_PHASE_OPTIMIZER);
    rm_followed_move(&t->f, &result, number);
    normalise(t, batch);
    rm_followed_follow(&t->f, number);
    return result;
}

/* Both networks over all rows, and a backward pass over trace and tail. */
static double r2d2_update_flops(const struct rm_trainer *trainer)
{
    const struct r2d2 *t = of_const(trainer);
    const double burn_in = rm_net_forward_flops(t->f.net, t->burn_in * t->batch, 0);
    const double rows = rm_net_forward_flops(t->f.net, t->rows * t->batch, 0);
    return 2 * burn_in + 2 * rows + rm_net_backward_flops(t->f.net, t->rows * t->batch, 0);
}

static int r2d2_create(struct rm_trainer **trainer, const struct rm_trainer_spec *spec,
                       struct rm_error *error)
{
    struct r2d2 *t = calloc(1, sizeof *t);
    if (!t)
        return rm_fail(error, -ENOMEM, "no memory for a trainer");
    const struct rm_experiment *e = spec->experiment;
    t->f.trainer.ops = &rm_r2d2_trainer;
    t->batch = e->sample.batch;
    t->burn_in = e->sample.burn_in;
    t->rows = e->sample.sequence + e->sample.n_step;
    t->inputs = spec->shape.inputs;
    t->actions = spec->shape.actions;
    int rc = rm_followed_open(&t->f, spec, (double)e->sample.batch * e->sample.sequence, error);
    if (!rc)
        rc = make_network(t, error);
    if (!rc)
        rc = make_buffers(t, error);
    if (rc) {
        r2d2_destroy(&t->f.trainer);
        return rc;
    }
    rm_followed_init(&t->f);
    *trainer = &t->f.trainer;
    return 0;
}

const struct rm_trainer_ops rm_r2d2_trainer = {
    .create = r2d2_create,
    .destroy = r2d2_destroy,
    .update = r2d2_update,
    .gradient = r2d2_gradient,
    RM_FOLLOWED_OPS,
    .update_flops = r2d2_update_flops,
};
