/* distill: updates of algorithm distillation (Laskin et al. 2022): a network over packed histories
 * (learner/net/history.h) learns what the recorded learner did next. Loss: the mean over the
 * queries of all pairs of class_loss.h. */
#include "learner/algo/updates.h"

#include <errno.h>

struct distill {
    struct rm_updates u; /* first */
    uint32_t queries, actions, types;
    double type_weight;
};

static int distill_open(struct rm_updates *u, const struct rm_trainer_spec *spec,
                        struct rm_error *error)
{
    struct distill *t = (struct distill *)u;
    const struct rm_history_shape *shape = &spec->shape.history;
    if (!shape->queries)
        return rm_fail(error, -EINVAL, "algorithm.name distill: the network is of no histories");
    u->rows = spec->experiment->sample.batch / u->replicas;
    u->observations = u->rows;
    t->queries = shape->queries;
    t->actions = spec->shape.actions;
    t->types = shape->types;
    t->type_weight = spec->experiment->algorithm.type_weight;
    return 0;
}

struct rows {
    const struct distill *trainer;
    const struct rm_batch *batch;
};

/* For rm_net_learn(): a row is a pair. d_out NULL: no gradient. */
static void put_loss(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                     double sums[RM_NET_SUMS])
{
    const struct rows *of = self;
    const struct distill *t = of->trainer;
    struct rm_backend *b = t->u.backend;
    const struct rm_class_loss loss = {
        .out = out,
        .d_out = d_out,
        .action = of->batch->action + (size_t)first * t->queries,
        .samples = rows,
        .queries = t->queries,
        .actions = t->actions,
        .types = t->types,
        .part = 1.0 / ((double)of->batch->size * t->queries),
        .type_weight = t->type_weight,
        .figures = t->u.figures,
    };
    rm_value_ops_of(b)->class_loss(b, &loss, sums);
}

static void distill_put_gradient(struct rm_updates *u, const struct rm_update *update)
{
    const struct distill *t = (const struct distill *)u;
    struct rows rows = {t, update->batch};
    const struct rm_net_loss loss = {put_loss, &rows};
    struct rm_net_input in = {.x = update->batch->obs, .batch = update->batch->size};
    rm_updates_draw_dropout(u, update, &in);
    rm_update_phase(update->clock, RM_PHASE_BACKWARD);
    rm_updates_learn(u, &in, &loss, (double)update->batch->size * t->queries);
}

static void distill_measure(struct rm_updates *u, const struct rm_batch *batch)
{
    const struct distill *t = (const struct distill *)u;
    struct rows rows = {t, batch};
    const struct rm_net_input in = {.x = batch->obs, .batch = batch->size};
    double sums[RM_NET_SUMS] = {0};
    put_loss(&rows, 0, batch->size, rm_net_infer(u->nets[0].online, u->params, &in), NULL, sums);
    rm_updates_set_sums(u, sums, (double)batch->size * t->queries);
}

const struct rm_update_ops rm_distill_updates = {
    .bytes = sizeof(struct distill),
    .untargeted = true,
    .open = distill_open,
    .put_gradient = distill_put_gradient,
    .measure = distill_measure,
};
