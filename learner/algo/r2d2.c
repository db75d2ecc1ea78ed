/* r2d2: updates from stored sequences (Kapturowski 2019): double Q-learning with n-step returns and
 * rescaled values on a recurrent network. The online and the target network each run over the
 * burn-in rows from the stored state, without gradients, then over the trace and its tail. There
 * the online network chooses the actions that the target network values. */
#include "learner/algo/updates.h"

/* The passes of an update, which key noise. */
enum pass { PASS_TARGET, PASS_ONLINE, PASS_COUNT };

struct r2d2 {
    struct rm_updates u; /* first */
    uint32_t batch;
    uint32_t burn_in, rows; /* rows: of the trace and its tail */

    /* The backend's memory. */
    float *state;     /* (batch, state_count) after burn-in */
    float *d_q;       /* (rows, batch, actions) */
    float *y;         /* (trace, batch) */
    double *partials; /* (3 * batch) */
};

static int r2d2_open(struct rm_updates *u, const struct rm_trainer_spec *spec,
                     struct rm_error *error)
{
    struct r2d2 *t = (struct r2d2 *)u;
    const struct rm_experiment *e = spec->experiment;
    t->batch = e->sample.batch;
    t->burn_in = e->sample.burn_in;
    t->rows = e->sample.sequence + e->sample.n_step;
    u->rows = (t->burn_in > t->rows ? t->burn_in : t->rows) * t->batch;
    u->observations = (double)e->sample.batch * e->sample.sequence;
    const size_t state = (size_t)t->batch * rm_net_state_count(u->nets[0].net);
    const size_t outputs = (size_t)t->rows * t->batch * spec->shape.actions;
    int rc = rm_updates_alloc(u, &t->state, state * sizeof *t->state, error);
    if (!rc)
        rc = rm_updates_alloc(u, &t->d_q, outputs * sizeof *t->d_q, error);
    if (!rc)
        rc = rm_updates_alloc(u, &t->y, (size_t)t->rows * t->batch * sizeof *t->y, error);
    if (!rc)
        rc = rm_updates_alloc(u, &t->partials, 3 * (size_t)t->batch * sizeof *t->partials, error);
    return rc;
}

/* One network over whole sequences, burn-in first. Returns its values of trace and tail; *in is the
 * input of that second part, valid for a backward pass until the next call. */
static const float *unroll(struct r2d2 *t, enum pass pass, const struct rm_update *update,
                           struct rm_net_input *in)
{
    const bool target = pass == PASS_TARGET;
    struct rm_net_workspace *space = target ? t->u.nets[0].target : t->u.nets[0].online;
    const float *params = target ? t->u.target : t->u.params;
    *in = (struct rm_net_input){.x = NULL};
    rm_updates_draw_noise(&t->u, update, PASS_COUNT, pass, in);
    if (!target) /* only the trained pass uses dropout */
        rm_updates_draw_dropout(&t->u, update, in);
    rm_updates_burn_in(space, params, update->batch, t->rows, t->state, in);
    return rm_net_forward(space, params, in);
}

static void r2d2_put_gradient(struct rm_updates *u, const struct rm_update *update)
{
    struct r2d2 *t = (struct r2d2 *)u;
    const struct rm_experiment *e = u->experiment;
    const struct rm_sequence_ops *ops = rm_sequence_ops_of(u->backend);
    struct rm_net_input in;
    const float *value = unroll(t, PASS_TARGET, update, &in);
    const float *q = unroll(t, PASS_ONLINE, update, &in);
    const struct rm_sequence_targets targets = {
        .batch = *update->batch,
        .choose = e->algorithm.double_q ? q : value,
        .value = value,
        .rescale = e->algorithm.value_rescale,
        .y = t->y,
    };
    ops->targets(u->backend, &targets);
    rm_update_phase(update->clock, RM_PHASE_BACKWARD);
    const struct rm_sequence_loss loss = {
        .batch = *update->batch,
        .q = q,
        .y = t->y,
        .kappa = (float)e->algorithm.kappa,
        .rescale = e->algorithm.value_rescale,
        .max_share = e->priority.max_share,
        .d_q = t->d_q,
        .partials = t->partials,
        .figures = u->figures,
    };
    ops->loss(u->backend, &loss);
    rm_updates_backward(u, 0, &in, t->d_q);
}

/* Both networks over all rows, and a backward pass over trace and tail. */
static double r2d2_flops(const struct rm_updates *u)
{
    const struct r2d2 *t = (const struct r2d2 *)u;
    const double burn_in = rm_net_forward_flops(u->nets[0].net, t->burn_in * t->batch, 0);
    const double rows = rm_net_forward_flops(u->nets[0].net, t->rows * t->batch, 0);
    return 2 * burn_in + 2 * rows + rm_net_backward_flops(u->nets[0].net, t->rows * t->batch, 0);
}

const struct rm_update_ops rm_r2d2_updates = {
    .bytes = sizeof(struct r2d2),
    .open = r2d2_open,
    .put_gradient = r2d2_put_gradient,
    .flops = r2d2_flops,
};
