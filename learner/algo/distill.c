/* distill: updates of algorithm distillation (Laskin et al. 2022): a network over packed histories
 * (learner/net/history.h) learns what the recorded learner did next. Loss, means over the queries
 * of all pairs: cross-entropy of the action, and algorithm.type_weight times that of what follows
 * the step (enum rm_histories_type). On the CPU alone. */
#include "learner/algo/updates.h"

#include "learner/histories.h"

#include <errno.h>
#include <math.h>

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
    u->rows = spec->experiment->sample.batch;
    u->observations = u->rows;
    t->queries = shape->queries;
    t->actions = spec->shape.actions;
    t->types = shape->types;
    t->type_weight = spec->experiment->algorithm.type_weight;
    return 0;
}

/* Cross-entropy of n logits and class `target`. d_logits, if any: the gradient, times `scale`.
 * *entropy: that of the softmax. */
static double cross_entropy(const float *logits, uint32_t n, uint32_t target, double scale,
                            float *d_logits, double *entropy)
{
    double most = logits[0], sum = 0, mean = 0;
    for (uint32_t i = 1; i < n; i++)
        most = logits[i] > most ? logits[i] : most;
    for (uint32_t i = 0; i < n; i++) {
        const double e = exp(logits[i] - most);
        sum += e;
        mean += e * (logits[i] - most);
    }
    for (uint32_t i = 0; d_logits && i < n; i++)
        d_logits[i] = (float)(scale * (exp(logits[i] - most) / sum - (i == target)));
    *entropy = log(sum) - mean / sum;
    return log(sum) + most - logits[target];
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
    const uint32_t logits = t->actions + t->types;
    const double part = 1.0 / ((double)of->batch->size * t->queries);
    for (uint32_t i = 0; i < rows * t->queries; i++, out += logits) {
        const uint32_t query = i % t->queries;
        const uint32_t type = rm_histories_type(t->queries, query);
        const int32_t action = of->batch->action[(size_t)first * t->queries + i];
        double entropy, unused;
        const double actions =
            cross_entropy(out, t->actions, (uint32_t)action, part, d_out, &entropy);
        const double types = cross_entropy(out + t->actions, t->types, type, part * t->type_weight,
                                           d_out ? d_out + t->actions : NULL, &unused);
        sums[0] += part * (actions + t->type_weight * types);
        sums[1 + RM_SUM_OF_ENTROPY] += entropy;
        sums[1 + RM_SUM_OF_ACTIONS] += actions;
        sums[1 + RM_SUM_OF_TYPES] += types;
        d_out = d_out ? d_out + logits : NULL;
    }
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
