#include "learner/algo/guard.h"

#include "learner/backend/device.h"
#include "shm/atomic.h"
#include "shm/base/state.h"
#include "shm/base/severity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is in the backend's memory is copied within it. */
struct part {
    void *data;
    size_t bytes;
    bool hosts; /* in host memory; else in the backend's */
    size_t at;  /* offset in that part of a copy */
};

struct copy {
    uint8_t *host, *backend;
};

struct rm_guard {
    const struct rm_experiment *experiment;
    struct rm_backend *backend;
    struct rm_board_policy *counters;
    const char *name;
    struct part parts[RM_GUARD_PARTS];
    uint32_t part_count;
    bool too_many;
    size_t host_bytes, backend_bytes; /* of a copy */
    struct copy good, candidate;
    uint64_t good_updates, candidate_updates;
    bool has_good, has_candidate;
    uint64_t candidate_launched; /* updates begun before the copy, if results are late */
    uint32_t until_copy;         /* finite updates */
    uint32_t in_a_row, rollbacks;
};

int rm_guard_create(struct rm_guard **guard, const struct rm_experiment *experiment,
                    struct rm_backend *backend, struct rm_board_policy *counters, const char *name,
                    struct rm_error *error)
{
    struct rm_guard *g = calloc(1, sizeof *g);
    if (!g)
        return rm_fail(error, -ENOMEM, "no memory for a guard");
    g->experiment = experiment;
    g->backend = backend;
    g->counters = counters;
    g->name = name;
    *guard = g;
    return 0;
}

static void free_copy(struct rm_guard *g, struct copy *copy)
{
    free(copy->host);
    g->backend->ops->release(g->backend, copy->backend);
}

void rm_guard_destroy(struct rm_guard *g)
{
    if (!g)
        return;
    free_copy(g, &g->good);
    free_copy(g, &g->candidate);
    free(g);
}

/* --- declared memory ------------------------------------------------------------------------- */

static void declare(struct rm_guard *g, void *data, size_t bytes, bool hosts)
{
    size_t *all = hosts ? &g->host_bytes : &g->backend_bytes;
    if (g->part_count == RM_GUARD_PARTS) {
        g->too_many = true;
        return;
    }
    g->parts[g->part_count++] =
        (struct part){.data = data, .bytes = bytes, .hosts = hosts, .at = *all};
    *all += (bytes + 63) / 64 * 64;
}

void rm_guard_floats(struct rm_guard *g, float *arena, size_t floats)
{
    declare(g, arena, floats * sizeof *arena, false);
}

void rm_guard_bytes(struct rm_guard *g, void *data, size_t bytes)
{
    declare(g, data, bytes, true);
}

void rm_guard_optimizer(struct rm_guard *g, struct rm_optimizer *optimizer)
{
    struct rm_optimizer_arena arenas[RM_OPTIMIZER_ARENAS];
    const size_t n = rm_optimizer_arenas(optimizer, arenas);
    struct rm_update_figures *figures = rm_optimizer_figures(optimizer);
    for (size_t i = 0; i < n; i++)
        rm_guard_floats(g, arenas[i].data, arenas[i].count);
    declare(g, &figures->steps, sizeof figures->steps, false);
}

/* Copies all parts to `copy`, or back from there. */
static void copy_parts(struct rm_guard *g, const struct copy *copy, bool back)
{
    for (const struct part *p = g->parts; p < g->parts + g->part_count; p++) {
        void *kept = (p->hosts ? copy->host : copy->backend) + p->at;
        void *to = back ? p->data : kept, *from = back ? kept : p->data;
        if (p->hosts)
            memcpy(to, from, p->bytes);
        else
            g->backend->ops->copy(g->backend, to, from, p->bytes);
    }
}

static void take_candidate(struct rm_guard *g, uint64_t updates)
{
    copy_parts(g, &g->candidate, false);
    g->candidate_updates = updates;
    g->has_candidate = true;
    g->until_copy = RM_GUARD_INTERVAL;
}

/* The update after the copy was finite. */
static void accept_candidate(struct rm_guard *g)
{
    const struct copy old = g->good;
    g->good = g->candidate;
    g->candidate = old;
    g->good_updates = g->candidate_updates;
    g->has_good = true;
    g->has_candidate = false;
}

static int alloc_copy(struct rm_guard *g, struct copy *copy, struct rm_error *error)
{
    struct rm_backend *b = g->backend;
    copy->host = malloc(g->host_bytes ? g->host_bytes : 1);
    if (!copy->host)
        return rm_fail(error, -ENOMEM, "no memory for copies of %zu bytes", g->host_bytes);
    copy->backend = b->ops->alloc_bytes(b, g->backend_bytes, error);
    return copy->backend ? 0 : -ENOMEM;
}

int rm_guard_ready(struct rm_guard *g, struct rm_error *error)
{
    if (g->too_many)
        return rm_fail(error, -E2BIG, "a guard has at most %d parts", RM_GUARD_PARTS);
    int rc = alloc_copy(g, &g->good, error);
    if (!rc)
        rc = alloc_copy(g, &g->candidate, error);
    if (!rc)
        rm_guard_renew(g);
    return rc;
}

void rm_guard_renew(struct rm_guard *g)
{
    g->has_good = false;
    g->in_a_row = 0;
    take_candidate(g, 0);
}

void rm_guard_state(struct rm_guard *g, struct rm_state *s)
{
    if (rm_state_loading(s))
        rm_guard_renew(g);
    RM_STATE(s, "guard.in_a_row", g->in_a_row);
    RM_STATE(s, "guard.rollbacks", g->rollbacks);
}

/* --- judging --------------------------------------------------------------------------------- */

/* `more` finite updates, which make `updates`, while `launched` updates were begun. */
static int judge_good(struct rm_guard *g, uint64_t more, uint64_t updates, uint64_t launched)
{
    g->in_a_row = 0;
    if (g->has_candidate)
        accept_candidate(g);
    g->until_copy -= more < g->until_copy ? (uint32_t)more : g->until_copy;
    if (g->until_copy == 0) {
        take_candidate(g, updates);
        g->candidate_launched = launched;
    }
    return RM_GUARD_GOOD;
}

/* Without a good copy, goes back to the first values: then no update was ever finite. */
static int roll_back(struct rm_guard *g, double loss, double grad_norm)
{
    if (!g->has_good)
        accept_candidate(g);
    copy_parts(g, &g->good, true);
    g->has_candidate = false;
    g->until_copy = RM_GUARD_INTERVAL;
    g->in_a_row = 0;
    g->rollbacks++;
    if (g->counters)
        RM_ADD_OWN(&g->counters->rollbacks, 1);
    fprintf(stderr,
            RM_SEVERITY_WARNING
            "learner of %s: %u updates in a row were not finite (loss %g, gradient norm %g): back "
            "to the weights and moments of update %" PRIu64 "\n",
            g->name, g->experiment->debug.finite_patience, loss, grad_norm, g->good_updates);
    return RM_GUARD_BACK;
}

/* After skipped updates were counted. */
static int judge_skipped(struct rm_guard *g, double loss, double grad_norm, uint64_t updates,
                         struct rm_error *error)
{
    if (g->in_a_row < g->experiment->debug.finite_patience)
        return RM_GUARD_SKIPPED;
    if (g->rollbacks < g->experiment->debug.rollbacks_max)
        return roll_back(g, loss, grad_norm);
    return rm_fail(error, -EDOM,
                   "policy %s: %u updates in a row were not finite (loss %g, gradient norm %g), "
                   "after %" PRIu64 " good ones and %u roll-backs to the last good weights; lower "
                   "optimizer.learning_rate, or look for the first such number with "
                   "debug.check_finite",
                   g->name, g->in_a_row, loss, grad_norm, updates, g->rollbacks);
}

static void count_skipped(struct rm_guard *g, uint64_t skipped)
{
    if (g->counters && skipped)
        RM_ADD_OWN(&g->counters->updates_skipped, skipped);
}

int rm_guard_judge(struct rm_guard *g, bool finite, double loss, double grad_norm, uint64_t updates,
                   struct rm_error *error)
{
    if (finite)
        return judge_good(g, 1, updates, 0);
    count_skipped(g, 1);
    g->in_a_row++;
    return judge_skipped(g, loss, grad_norm, updates, error);
}

int rm_guard_judge_late(struct rm_guard *g, const struct rm_guard_report *report,
                        struct rm_error *error)
{
    count_skipped(g, report->skipped);
    if (report->skipped_in_row == 0) {
        /* These updates do not prove a copy that was made after the last of them. */
        if (report->through <= g->candidate_launched && g->has_candidate)
            return RM_GUARD_GOOD;
        return judge_good(g, report->made, report->updates, report->launched);
    }
    g->in_a_row = (uint32_t)report->skipped_in_row;
    return judge_skipped(g, report->loss, report->grad_norm, report->updates, error);
}
