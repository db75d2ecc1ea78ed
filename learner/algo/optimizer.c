#include "learner/algo/optimizer_private.h"

#include "learner/algo/schedule.h"
#include "learner/algo/target.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The names of the state value's own tensors begin with this. */
#define VALUE_PREFIX "value_"

/* A step of one range. */
struct move {
    double learning_rate;
    float scale;
    float *params;
    const float *grads;
};

/* --- kinds ----------------------------------------------------------------------------------- */

static struct rm_adam adam_of(const struct rm_optimizer *o, const struct rm_optimizer_range *r,
                              const struct move *move)
{
    return (struct rm_adam){
        .learning_rate = (float)move->learning_rate,
        .beta1 = (float)o->experiment->optimizer.beta1,
        .beta2 = (float)o->experiment->optimizer.beta2,
        .epsilon = (float)o->experiment->optimizer.epsilon,
        .step = o->figures->steps,
        .weight_decay = r->decayed ? (float)o->experiment->optimizer.weight_decay : 0.0f,
    };
}

static void move_adam(struct rm_optimizer *o, const struct rm_optimizer_range *r,
                      const struct move *move)
{
    const struct rm_adam adam = adam_of(o, r, move);
    o->backend->ops->adam(o->backend, &adam, move->scale, move->grads + r->at, r->n,
                          move->params + r->at, o->m + r->at, o->v + r->at);
}

static void move_rmsprop(struct rm_optimizer *o, const struct rm_optimizer_range *r,
                         const struct move *move)
{
    const struct rm_rmsprop rmsprop = {
        .learning_rate = (float)move->learning_rate,
        .alpha = (float)o->experiment->optimizer.beta2,
        .epsilon = (float)o->experiment->optimizer.epsilon,
        .momentum = (float)o->experiment->optimizer.momentum,
    };
    o->backend->ops->rmsprop(o->backend, &rmsprop, move->scale, move->grads + r->at, r->n,
                             move->params + r->at, o->m ? o->m + r->at : NULL, o->v + r->at);
}

static void move_muon(struct rm_optimizer *o, const struct rm_optimizer_range *r,
                      const struct move *move)
{
    if (!r->rows) {
        move_adam(o, r, move);
        return;
    }
    const struct rm_muon_step step = {
        .learning_rate = (float)move->learning_rate,
        .momentum = (float)o->experiment->optimizer.momentum,
        .weight_decay = (float)o->experiment->optimizer.weight_decay,
        .scale = move->scale,
    };
    rm_muon_apply(&o->muon, &step, r->rows, r->columns, move->grads + r->at, move->params + r->at,
                  o->m + r->at);
}

static const struct rm_optimizer_method {
    void (*move)(struct rm_optimizer *o, const struct rm_optimizer_range *r,
                 const struct move *move);
    bool decays;            /* matrices */
    bool takes_matrices;    /* one at a time */
    bool lazy;              /* can leave pieces of tables as they are */
    bool momentum_optional; /* no first moment where optimizer.momentum is 0 */
} kinds[] = {
    [RM_OPTIMIZER_ADAM] = {.move = move_adam, .lazy = true},
    [RM_OPTIMIZER_ADAMW] = {.move = move_adam, .decays = true, .lazy = true},
    [RM_OPTIMIZER_RMSPROP] = {.move = move_rmsprop, .momentum_optional = true},
    [RM_OPTIMIZER_MUON] = {.move = move_muon, .takes_matrices = true},
};
_Static_assert(sizeof kinds / sizeof *kinds == RM_OPTIMIZER_COUNT, "a row per optimizer");

/* --- making ---------------------------------------------------------------------------------- */

/* Alignment of a network's parameters in a joint arena. */
#define ALIGNED 64u

size_t rm_optimizer_room(const struct rm_net *net)
{
    return (rm_net_param_count(net) + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* The longest piece of at most RM_DEVICE_CHUNK floats that rows are made of. */
static uint32_t piece_of(uint32_t row)
{
    uint32_t parts = (row + RM_DEVICE_CHUNK - 1) / RM_DEVICE_CHUNK;
    while (row % parts)
        parts++;
    return row / parts;
}

static struct rm_optimizer_range range_of(const struct rm_optimizer *o,
                                          const struct rm_net_tensor *t, size_t at, uint32_t group)
{
    const bool matrix = t->flags & RM_TENSOR_MATRIX;
    struct rm_optimizer_range r = {.at = at + t->offset, .n = t->shape[0], .group = group};
    for (uint32_t d = 1; d < t->dims; d++)
        r.n *= t->shape[d];
    if (o->experiment->optimizer.clip_apart &&
        strncmp(t->name, VALUE_PREFIX, sizeof VALUE_PREFIX - 1) == 0)
        r.group = 1;
    const bool all = o->experiment->optimizer.decay_all && !o->kind->takes_matrices;
    r.decayed = (matrix || all) && o->kind->decays && o->experiment->optimizer.weight_decay > 0;
    if (matrix && o->kind->takes_matrices) {
        r.rows = t->shape[0];
        r.columns = (uint32_t)(r.n / t->shape[0]);
    }
    if (o->experiment->optimizer.sparse && o->kind->lazy && t->flags & RM_TENSOR_TABLE)
        r.piece = piece_of((uint32_t)(r.n / t->shape[0]));
    return r;
}

static int by_place(const void *a, const void *b)
{
    const struct rm_optimizer_range *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void join_neighbours(struct rm_optimizer *o)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < o->range_count; i++) {
        const struct rm_optimizer_range r = o->ranges[i];
        struct rm_optimizer_range *last = kept ? &o->ranges[kept - 1] : NULL;
        if (last && !last->rows && !r.rows && !last->piece && !r.piece &&
            last->decayed == r.decayed && last->group == r.group && last->at + last->n == r.at)
            last->n += r.n;
        else
            o->ranges[kept++] = r;
    }
    o->range_count = kept;
}

static int find_ranges(struct rm_optimizer *o, const struct rm_net *const *nets, uint32_t net_count,
                       struct rm_error *error)
{
    const struct rm_net_tensor *tensors;
    size_t most = 1;
    for (uint32_t net = 0; net < net_count; net++)
        most += rm_net_tensors(nets[net], &tensors);
    o->ranges = calloc(most, sizeof *o->ranges);
    if (!o->ranges)
        return rm_fail(error, -ENOMEM, "optimizer: no memory for %zu tensors", most);
    for (uint32_t net = 0; net < net_count; net++) {
        const size_t count = rm_net_tensors(nets[net], &tensors);
        for (size_t i = 0; i < count; i++)
            if (tensors[i].flags & RM_TENSOR_TRAINED)
                o->ranges[o->range_count++] = range_of(o, &tensors[i], o->count, net);
        o->count += net_count > 1 ? rm_optimizer_room(nets[net]) : rm_net_param_count(nets[net]);
    }
    qsort(o->ranges, o->range_count, sizeof *o->ranges, by_place);
    join_neighbours(o);
    size_t pieces = 0;
    for (uint32_t i = 0; i < o->range_count; i++)
        if (o->ranges[i].piece) {
            o->ranges[i].first_piece = (uint32_t)pieces;
            pieces += o->ranges[i].n / o->ranges[i].piece;
        }
    o->touched = pieces ? calloc(pieces, sizeof *o->touched) : NULL;
    if (pieces && !o->touched)
        return rm_fail(error, -ENOMEM, "optimizer: no memory for %zu rows", pieces);
    return 0;
}

static int make_muon(struct rm_optimizer *o, struct rm_error *error)
{
    uint32_t *rows = calloc(o->range_count + 1, sizeof *rows);
    uint32_t *columns = calloc(o->range_count + 1, sizeof *columns);
    uint32_t matrices = 0;
    int rc = -ENOMEM;
    for (uint32_t i = 0; rows && columns && i < o->range_count; i++)
        if (o->ranges[i].rows) {
            rows[matrices] = o->ranges[i].rows;
            columns[matrices++] = o->ranges[i].columns;
        }
    if (rows && columns)
        rc = rm_muon_create(&o->muon, o->backend, rows, columns, matrices, error);
    else
        rm_fail(error, rc, "optimizer: no memory for %u matrices", o->range_count);
    free(rows);
    free(columns);
    return rc;
}

int rm_optimizer_create(struct rm_optimizer **optimizer, struct rm_backend *backend,
                        const struct rm_experiment *experiment, const struct rm_net *net,
                        struct rm_error *error)
{
    return rm_optimizer_create_joint(optimizer, backend, experiment, &net, 1, error);
}

int rm_optimizer_create_joint(struct rm_optimizer **optimizer, struct rm_backend *backend,
                              const struct rm_experiment *experiment,
                              const struct rm_net *const *nets, uint32_t count,
                              struct rm_error *error)
{
    struct rm_optimizer *o = calloc(1, sizeof *o);
    if (!o)
        return rm_fail(error, -ENOMEM, "no memory for an optimizer");
    o->experiment = experiment;
    o->kind = &kinds[experiment->optimizer.name];
    o->backend = backend;
    o->by_group = experiment->optimizer.clip_apart || count > 1;
    rm_optimizer_set(o, experiment->optimizer.learning_rate, experiment->optimizer.grad_clip);
    int rc = find_ranges(o, nets, count, error);
    if (!rc && o->kind->takes_matrices)
        rc = make_muon(o, error);
    const bool first = !o->kind->momentum_optional || experiment->optimizer.momentum > 0;
    if (!rc && ((first && !(o->m = backend->ops->alloc(backend, o->count))) ||
                !(o->v = backend->ops->alloc(backend, o->count))))
        rc = rm_fail(error, -ENOMEM, "backend %s: no memory for the moments of %zu parameters",
                     backend->name, o->count);
    if (!rc && !(o->figures = (void *)backend->ops->alloc(backend, sizeof *o->figures / 4)))
        rc = rm_fail(error, -ENOMEM, "backend %s: no memory for an optimizer", backend->name);
    if (!rc)
        rc = rm_optimizer_device_create(o, error);
    if (rc) {
        rm_optimizer_destroy(o);
        return rc;
    }
    *optimizer = o;
    return 0;
}

void rm_optimizer_destroy(struct rm_optimizer *o)
{
    if (!o)
        return;
    o->backend->ops->release(o->backend, o->m);
    o->backend->ops->release(o->backend, o->v);
    o->backend->ops->release(o->backend, (float *)(void *)o->figures);
    if (o->muon.backend)
        rm_muon_destroy(&o->muon);
    rm_optimizer_device_destroy(o);
    free(o->touched);
    free(o->ranges);
    free(o);
}

/* --- a step ---------------------------------------------------------------------------------- */

void rm_optimizer_follow(struct rm_optimizer *o, const struct rm_net_workspace *workspace)
{
    o->followed = workspace;
}

void rm_optimizer_set(struct rm_optimizer *o, double learning_rate, double grad_clip)
{
    o->learning_rate = learning_rate;
    o->grad_clip = grad_clip;
}

double rm_optimizer_rate(const struct rm_optimizer *o, uint64_t update, double progress)
{
    return o->learning_rate * rm_schedule_factor(o->experiment, update, progress);
}

/* Whether the range is of the tables whose touched rows are listed. The first such range stands for
 * all of them. */
static bool is_listed(const struct rm_optimizer *o, const struct rm_optimizer_range *r)
{
    const struct rm_touched *t = o->listed;
    return t && r->piece == t->units && r->at >= o->listed_at &&
           r->at + r->n <= o->listed_at + (size_t)t->total * t->units;
}

/* The sum of squares of a range's gradient; finds which of its pieces are touched. */
static double squares_of(struct rm_optimizer *o, const struct rm_optimizer_range *r,
                         const float *grads)
{
    double all = 0.0;
    if (is_listed(o, r))
        return r->at > o->listed_at
                   ? 0.0
                   : o->backend->ops->touched_squares(o->backend, o->listed, grads + r->at);
    if (!r->piece)
        return o->backend->ops->sum_squares(o->backend, grads + r->at, r->n);
    bool *touched = o->touched + r->first_piece;
    for (size_t at = 0; at < r->n; at += r->piece) {
        const double squares =
            o->backend->ops->sum_squares(o->backend, grads + r->at + at, r->piece);
        *touched++ = squares != 0.0;
        all += squares;
    }
    return all;
}

double rm_optimizer_norm(struct rm_optimizer *o, const float *grads)
{
    double all = 0.0;
    memset(o->squares, 0, sizeof o->squares);
    o->listed = o->followed ? rm_net_touched(o->followed, grads, &o->listed_at) : NULL;
    for (uint32_t i = 0; i < o->range_count; i++)
        o->squares[o->ranges[i].group] += squares_of(o, &o->ranges[i], grads);
    for (uint32_t group = 0; group < RM_OPTIMIZER_GROUPS; group++)
        all += o->squares[group];
    return sqrt(all);
}

/* The factor of a gradient of this norm. */
static double clipping(const struct rm_optimizer *o, double norm)
{
    return o->grad_clip > 0 && norm > o->grad_clip ? o->grad_clip / norm : 1.0;
}

/* Moves the pieces of a range that are touched, neighbours at once. */
static void move_touched(struct rm_optimizer *o, const struct rm_optimizer_range *r,
                         const struct move *move)
{
    if (is_listed(o, r)) {
        const struct rm_adam adam = adam_of(o, r, move);
        if (r->at == o->listed_at)
            o->backend->ops->touched_adam(o->backend, &adam, move->scale, o->listed,
                                          move->grads + r->at, move->params + r->at, o->m + r->at,
                                          o->v + r->at);
        return;
    }
    const bool *touched = o->touched + r->first_piece;
    const size_t pieces = r->n / r->piece;
    for (size_t i = 0; i < pieces; i++) {
        struct rm_optimizer_range run = {.at = r->at + i * r->piece, .decayed = r->decayed};
        for (; i < pieces && touched[i]; i++)
            run.n += r->piece;
        if (run.n)
            o->kind->move(o, &run, move);
    }
}

/* Moves all ranges; call after rm_optimizer_norm(). */
static void move_all(struct rm_optimizer *o, struct move move)
{
    struct rm_update_figures *f = o->figures;
    for (uint32_t group = 0; group < RM_OPTIMIZER_GROUPS; group++)
        f->scale[group] =
            (float)clipping(o, o->by_group ? sqrt(o->squares[group]) : f->last_grad_norm);
    f->steps++;
    for (uint32_t i = 0; i < o->range_count; i++) {
        move.scale = f->scale[o->ranges[i].group];
        if (o->ranges[i].piece)
            move_touched(o, &o->ranges[i], &move);
        else
            o->kind->move(o, &o->ranges[i], &move);
    }
}

static void put_at_once(struct rm_optimizer *o, const struct rm_optimizer_put *put)
{
    struct rm_update_figures *f = o->figures;
    const struct move move = {
        .learning_rate = put->knobs->learning_rate, .params = put->params, .grads = put->grads};
    if (put->knobs->afresh)
        rm_figures_clear(f);
    f->last_grad_norm = rm_optimizer_norm(o, put->grads);
    f->skip = !isfinite(f->last_loss) || !isfinite(f->last_grad_norm);
    if (f->skip) {
        f->skipped++;
        f->skipped_in_row++;
        return;
    }
    rm_figures_add(f);
    move_all(o, move);
    if (put->target)
        rm_target_move(o->backend, put->knobs->target_tau, put->params, o->count, put->target);
}

void rm_optimizer_put(struct rm_optimizer *o, const struct rm_optimizer_put *put)
{
    if (o->put)
        o->put(o, put);
    else
        put_at_once(o, put);
}

struct rm_update_figures *rm_optimizer_figures(const struct rm_optimizer *o)
{
    return o->figures;
}

void rm_optimizer_knobs(const struct rm_optimizer *o, uint64_t update, double progress,
                        struct rm_update_knobs *knobs)
{
    knobs->learning_rate = rm_optimizer_rate(o, update, progress);
    knobs->grad_clip = (float)o->grad_clip;
}

/* --- state ----------------------------------------------------------------------------------- */

size_t rm_optimizer_arenas(const struct rm_optimizer *o,
                           struct rm_optimizer_arena arenas[RM_OPTIMIZER_ARENAS])
{
    size_t n = 0;
    if (o->m)
        arenas[n++] = (struct rm_optimizer_arena){"first_moment", o->m, o->count};
    if (o->v)
        arenas[n++] = (struct rm_optimizer_arena){"second_moment", o->v, o->count};
    return n;
}

uint64_t rm_optimizer_steps(const struct rm_optimizer *o)
{
    uint64_t steps;
    o->backend->ops->download(o->backend, (float *)(void *)&steps,
                              (const float *)(const void *)&o->figures->steps,
                              sizeof steps / sizeof(float));
    return steps;
}

void rm_optimizer_resume(struct rm_optimizer *o, uint64_t steps)
{
    o->backend->ops->upload(o->backend, (float *)(void *)&o->figures->steps,
                            (const float *)(const void *)&steps, sizeof steps / sizeof(float));
}

void rm_optimizer_reset(struct rm_optimizer *o)
{
    struct rm_optimizer_arena arenas[RM_OPTIMIZER_ARENAS];
    const size_t n = rm_optimizer_arenas(o, arenas);
    for (size_t i = 0; i < n; i++)
        o->backend->ops->fill(o->backend, 0.0f, arenas[i].count, arenas[i].data);
    rm_optimizer_resume(o, 0);
}
