#include "daemon/ctl/evidence.h"

#include "config/json_value.h"
#include "config/traits.h"
#include "daemon/ctl/bottleneck.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BYTES_OF_ADAM                                                                              \
    28.0          /* a parameter: reads its gradient, reads and writes it and two moments */
#define BOUND 0.5 /* share of the most from which on it is what limits */

struct reading {
    const struct rm_run_window *w;
    const struct rm_experiment *e;
    const struct rm_run_duty *duty;
    uint32_t duties;
};

static double phase_s(const struct reading *r, const char *worker, enum rm_phase phase)
{
    for (uint32_t i = 0; i < r->duties; i++)
        if (!strcmp(r->duty[i].name, worker))
            return r->duty[i].phase[phase];
    return 0;
}

/* The share of a worker's time in phases that the work takes on cores of its own. In sequential
 * mode, that of all duties: one process has them. */
static double service(const struct reading *r, const char *worker, double threads)
{
    double busy = 0, cpu = 0, no_core = 0;
    for (uint32_t i = 0; i < r->duties; i++) {
        const struct rm_run_duty *d = &r->duty[i];
        if (r->e->mode != RM_MODE_SEQUENTIAL && strcmp(d->name, worker) != 0)
            continue;
        busy += rm_run_duty_busy_s(d);
        cpu += d->cpu;
        no_core += d->no_core;
    }
    return busy > 0 ? rm_service_s(busy, cpu, no_core, threads) / busy : 1;
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

/* On the board, 0 is a figure that was not measured. */
static double known(double figure)
{
    return figure == 0 ? NAN : figure;
}

/* A policy's column at the window's end. */
static double at_end(const struct rm_run_window *w, const char *policy, const char *metric)
{
    return rm_run_window_value_of(w, w->last, "policy", policy, metric);
}

/* The passes of updates. With rollouts, forward is the valuing of a rollout, once. */
static double passes_s(const struct reading *r, const char *learner)
{
    const bool rollout = rm_algorithm_traits(r->e->algorithm.name)->rollout;
    return phase_s(r, learner, RM_PHASE_BACKWARD) +
           (rollout ? 0 : phase_s(r, learner, RM_PHASE_FORWARD));
}

static void read_updates(struct rm_evidence *v, const struct reading *r)
{
    const struct rm_run_window *w = r->w;
    const struct rm_experiment *e = r->e;
    char policy[RM_NAME_MAX], learner[RM_NAME_MAX + 16];
    double flops = 0, bytes = 0, passes = 0, optimizer = 0, fixed = 0, all = 0;
    for (size_t i = 0; i < w->columns; i++) {
        if (!rm_run_window_name(w, i, "policy", "updates", policy))
            continue;
        const double updates = rm_run_window_grown_of(w, "policy", policy, "updates");
        const double fp32 = at_end(w, policy, "core_flops"),
                     bf16 = at_end(w, policy, "core_flops_bf16"),
                     copy = at_end(w, policy, "copy_bytes");
        const double core = e->learner.compute == RM_COMPUTE_BF16 && bf16 > 0 ? bf16 : fp32;
        snprintf(learner, sizeof learner, "learner-%s", policy);
        const double wall_s = passes_s(r, learner);
        if (wall_s > 0) {
            all += wall_s;
            fixed += known(at_end(w, policy, "update_fixed")) * wall_s;
        }
        if (!(core > 0)) /* a frozen policy, or a device */
            continue;
        v->core_flops = fmax(core, isnan(v->core_flops) ? 0 : v->core_flops);
        v->bf16_speed = bf16 / fp32;
        flops += at_end(w, policy, "update_flops") * updates;
        const double own = service(r, learner, e->learner.threads);
        passes += own * wall_s;
        if (!(copy > 0) || e->optimizer.name > RM_OPTIMIZER_ADAMW)
            continue;
        v->copy_bytes = fmax(copy, isnan(v->copy_bytes) ? 0 : v->copy_bytes);
        bytes += BYTES_OF_ADAM * at_end(w, policy, "parameters") * updates;
        optimizer += own * phase_s(r, learner, RM_PHASE_OPTIMIZER);
    }
    v->update_fixed = share(fixed, all);
    v->update_flops = share(flops, passes);
    v->update_share = v->update_flops / (v->core_flops * e->learner.threads);
    v->optimizer_bytes = share(bytes, optimizer);
    v->memory_bound =
        optimizer > BOUND * (optimizer + passes) && v->optimizer_bytes > BOUND * 2 * v->copy_bytes;
}

static void read_acting(struct rm_evidence *v, const struct reading *r)
{
    const struct rm_run_window *w = r->w;
    char actor[RM_NAME_MAX];
    double flops = 0, seconds = 0;
    for (size_t i = 0; i < w->columns; i++) {
        if (!rm_run_window_name(w, i, "worker", "acting_flops", actor))
            continue;
        const double own = rm_run_window_grown_of(w, "worker", actor, "acting_flops");
        flops += own;
        seconds += own > 0 ? service(r, actor, 1) * phase_s(r, actor, RM_PHASE_INFERENCE) : 0;
    }
    v->acting_flops = share(flops, seconds);
    v->acting_share = v->acting_flops / v->core_flops;
}

/* What the steps up to this row allow, in updates or rollouts. An actor counts its lag once a
 * vector step. */
static double due_at(const struct rm_run_window *w, size_t row, const char *policy,
                     const struct rm_experiment *e)
{
    const double inserted = rm_run_window_value_of(w, row, "policy", policy, "inserted");
    const double sampled = rm_run_window_value_of(w, row, "policy", policy, "sampled");
    if (rm_algorithm_traits(e->algorithm.name)->rollout) {
        const double steps = rm_run_window_value_of(w, row, "policy", policy, "lag_count");
        return steps > 0 ? steps / ((double)e->rollout.steps * rm_actor_processes(e)) -
                               rm_run_window_value_of(w, row, "policy", policy, "rollouts") -
                               rm_run_window_value_of(w, row, "policy", policy, "rollouts_dropped")
                         : NAN;
    }
    const double ratio = rm_run_window_value_of(w, row, "policy", policy, "samples_per_insert");
    return ratio > 0 ? (inserted * ratio - sampled) / e->sample.batch : NAN;
}

static void read_due(struct rm_evidence *v, const struct rm_run_window *w,
                     const struct rm_experiment *e)
{
    char policy[RM_NAME_MAX];
    size_t i = 0;
    double sum = 0;
    while (i < w->columns && !rm_run_window_name(w, i, "policy", "inserted", policy))
        i++;
    if (i == w->columns)
        return;
    for (size_t row = w->first + 1; row <= w->last; row++)
        sum += (due_at(w, row - 1, policy, e) + due_at(w, row, policy, e)) / 2 *
               (rm_run_window_value(w, row, "time_s") - rm_run_window_value(w, row - 1, "time_s"));
    v->due = sum / w->seconds;
    v->due_min = at_end(w, policy, "limiter_min") / e->sample.batch;
    v->due_max = at_end(w, policy, "limiter_max") / e->sample.batch;
}

void rm_evidence_read(struct rm_evidence *v, const struct rm_run_window *w,
                      const struct rm_experiment *e, const struct rm_run_duty *duty,
                      uint32_t duties)
{
    const struct reading r = {w, e, duty, duties};
    *v = (struct rm_evidence){.core_flops = NAN, .bf16_speed = NAN, .copy_bytes = NAN, .due = NAN};
    read_updates(v, &r);
    read_acting(v, &r);
    read_due(v, w, e);
}

static double giga(double number)
{
    return number / 1e9;
}

void rm_evidence_text(const struct rm_evidence *v, const struct rm_experiment *e, char *text,
                      size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    if (v->core_flops > 0 && v->update_flops > 0)
        used +=
            (size_t)snprintf(text + used, size - used,
                             "products: a core can do %.3g GFLOP/s; updates reach %.3g (%.0f %% "
                             "of %u core%s)",
                             giga(v->core_flops), giga(v->update_flops), 100 * v->update_share,
                             e->learner.threads, e->learner.threads > 1 ? "s" : "");
    if (used && used < size && v->acting_flops > 0)
        used += (size_t)snprintf(text + used, size - used, ", acting %.3g (%.0f %%)",
                                 giga(v->acting_flops), 100 * v->acting_share);
    if (used && used < size)
        used += (size_t)snprintf(text + used, size - used, "\n");
    if (v->copy_bytes > 0 && used < size)
        used += (size_t)snprintf(text + used, size - used,
                                 "memory: a core copies %.3g GB/s, which is twice that read and "
                                 "written; the optimizer reads and writes %.3g\n",
                                 giga(v->copy_bytes), giga(v->optimizer_bytes));
    if (isnan(v->due) || used >= size)
        return;
    if (rm_algorithm_traits(e->algorithm.name)->rollout)
        snprintf(text + used, size - used,
                 "queue: %.2f rollouts, with the one that is being filled\n", v->due);
    else
        snprintf(text + used, size - used,
                 "queue: %.3g updates are due; the limiter keeps that between %.3g, where learners "
                 "wait, and %.3g, where actors wait\n",
                 v->due, v->due_min, v->due_max);
}

json_t *rm_evidence_json(const struct rm_evidence *v)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:o}", "core_flops",
                     rm_json_finite(v->core_flops), "update_flops", rm_json_finite(v->update_flops),
                     "update_share", rm_json_finite(v->update_share), "acting_flops",
                     rm_json_finite(v->acting_flops), "acting_share",
                     rm_json_finite(v->acting_share), "update_fixed",
                     rm_json_finite(v->update_fixed), "copy_bytes", rm_json_finite(v->copy_bytes),
                     "optimizer_bytes", rm_json_finite(v->optimizer_bytes), "memory_bound",
                     v->memory_bound, "due", rm_json_finite(v->due));
}
