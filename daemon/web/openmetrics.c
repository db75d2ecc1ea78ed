#include "daemon/web/openmetrics.h"

#include "config/json_value.h"
#include "shm/base/clock.h"
#include "shm/board.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

enum kind { COUNTER, GAUGE, INFO, STATES };

/* What a sample is of, and with which labels beside the experiment. */
enum block {
    EXPERIMENT,   /* `key`: a path in the reply to status */
    HOST,         /* `key`: a value of "host" in the reply to metrics */
    WRITER,       /* `key`: a value of each of "writers" in the reply to metrics */
    DISK,         /* `key`: "free" or "size" of the run directory's file system */
    AGENT,        /* `key`: a path in each of "agents" in the reply to status */
    POLICY,       /* `key`: a value of each policy in the reply to metrics */
    WORKER,       /* `key`: a value of each worker in the reply to metrics */
    WORKER_STATE, /* `key`: a member of each of "workers" in the reply to status */
    PHASES,       /* sums over the workers of a role, by phase */
    WAITS,        /* sums over the workers of a role, by reason */
    GPU,          /* `key`: a figure of each GPU */
    SPECIAL,      /* written by a function of its own */
    BLOCKS
};

static const char *const labels[] = {
    [EXPERIMENT] = "",
    [HOST] = "",
    [WRITER] = "writer",
    [DISK] = "",
    [AGENT] = "agent",
    [POLICY] = "policy",
    [WORKER] = "worker",
    [WORKER_STATE] = "worker",
    [PHASES] = "role, phase",
    [WAITS] = "role, reason",
    [GPU] = "gpu",
    [SPECIAL] = "",
};
_Static_assert(sizeof labels / sizeof labels[0] == BLOCKS, "labels for each block");

struct family;

/* Samples of one run. */
struct sink {
    FILE *out;
    enum rm_exposition form;
    const struct family *family;
    const struct rm_web_run *run; /* NULL for GPUs */
    const struct rm_gpus *gpus;
};

typedef void special_fn(const struct sink *sink);

struct family {
    const char *name; /* without "ringmaster_" and "_total" */
    enum kind kind;
    enum block block;
    const char *key;
    double scale; /* to base units; of a GPU: an enum rm_gpu_figure */
    const char *doc;
    special_fn *special;
};

#define NS 1e-9

static special_fn write_up, write_info, write_state, write_heartbeat, write_gpus, write_slowed;

/* Sorted by what a reader looks for: runs, learning, policies, processes, the host. */
static const struct family families[] = {
    {"experiment_up", GAUGE, SPECIAL, "", 1,
     "1 if the experiment answered; 0 if not, if its daemon died, or if the run failed", write_up},
    {"experiment", INFO, SPECIAL, "version, mode", 1, "version of its daemon, mode of the run",
     write_info},
    {"run_state", STATES, SPECIAL, "ringmaster_run_state", 1,
     "1 for the state that the run has, 0 for the others", write_state},
    {"run_steps", COUNTER, EXPERIMENT, "progress.steps", 1,
     "steps per agent, over all worlds; those before a restart included", NULL},
    {"run_budget_steps", GAUGE, EXPERIMENT, "progress.budget", 1,
     "steps per agent at which the run ends; 0: it has no end", NULL},
    {"run_duration_seconds", GAUGE, EXPERIMENT, "uptime_s", 1, "time that the run has taken", NULL},
    {"episodes", COUNTER, EXPERIMENT, "score.episodes", 1, "whole episodes while training", NULL},
    {"score", GAUGE, EXPERIMENT, "score.last", 1,
     "score of the latest episodes while training, up to 100, mean, summed over agents", NULL},
    {"evaluations", COUNTER, EXPERIMENT, "evaluation.count", 1, "evaluations finished", NULL},
    {"evaluation_score", GAUGE, EXPERIMENT, "evaluation.mean", 1,
     "score of the latest greedy evaluation, mean over its episodes", NULL},
    {"agent_reward", GAUGE, AGENT, "reward.last", 1,
     "reward of the agent's latest episodes while training, up to 100, mean", NULL},

    {"env_steps", COUNTER, POLICY, "env_steps", 1, "agent steps taken", NULL},
    {"updates", COUNTER, POLICY, "updates", 1, "optimizer steps", NULL},
    {"updates_skipped", COUNTER, POLICY, "updates_skipped", 1,
     "updates skipped because the loss or a gradient was not finite", NULL},
    {"rollbacks", COUNTER, POLICY, "rollbacks", 1,
     "rollbacks of the learner to its last good weights", NULL},
    {"transitions_inserted", COUNTER, POLICY, "inserted", 1,
     "transitions that the limiter counts as inserted", NULL},
    {"transitions_sampled", COUNTER, POLICY, "sampled", 1,
     "transitions that the limiter counts as sampled", NULL},
    {"transitions_torn", COUNTER, POLICY, "samples_torn", 1,
     "transitions drawn again because the writer overwrote them while they were copied", NULL},
    {"rows_lost", COUNTER, POLICY, "rows_lost", 1,
     "rows reserved by an actor that died before committing them", NULL},
    {"rollouts", COUNTER, POLICY, "rollouts", 1, "rollouts trained on", NULL},
    {"rollouts_dropped", COUNTER, POLICY, "rollouts_dropped", 1,
     "rollouts dropped because the weights they acted with were too old", NULL},
    {"weights_published", COUNTER, POLICY, "published", 1, "versions of the weights published",
     NULL},
    {"weights_withheld", COUNTER, POLICY, "publish_skipped", 1,
     "publications skipped because the weights had changed too little, or had exploded", NULL},
    {"policy_lag_updates", COUNTER, POLICY, "lag_sum", 1,
     "policy lag while acting, in updates, summed over vector steps", NULL},
    {"policy_lag_steps", COUNTER, POLICY, "lag_count", 1,
     "vector steps in ringmaster_policy_lag_updates_total", NULL},
    {"policy_lag_highest", GAUGE, POLICY, "lag_max", 1,
     "largest policy lag while acting, in updates", NULL},
    {"insert_blocked_seconds", COUNTER, POLICY, "insert_blocked_ns", NS,
     "time that actors slept because the limiter held them back", NULL},
    {"sample_blocked_seconds", COUNTER, POLICY, "sample_blocked_ns", NS,
     "time that the learner slept because the limiter held it back", NULL},
    {"replay_transitions", GAUGE, POLICY, "replay_rows", 1, "transitions held", NULL},
    {"replay_capacity_transitions", GAUGE, POLICY, "replay_capacity", 1,
     "most transitions that can be held", NULL},
    {"loss", GAUGE, POLICY, "loss", 1, "loss of the latest update", NULL},
    {"gradient_norm", GAUGE, POLICY, "grad_norm", 1,
     "global norm of the latest update's gradient, before clipping", NULL},
    {"learning_rate", GAUGE, POLICY, "learning_rate", 1, "learning rate in use", NULL},
    {"exploration_rate", GAUGE, POLICY, "epsilon", 1, "epsilon in use", NULL},
    {"policy_entropy", GAUGE, POLICY, "entropy", 1,
     "entropy of the policy in nats, of the latest rollout's updates or the latest update from "
     "replay",
     NULL},
    {"policy_divergence", GAUGE, POLICY, "kl", 1,
     "estimated divergence in nats from the policy that acted, of the latest rollout", NULL},

    {"phase_seconds", COUNTER, PHASES, "", NS, "time of all workers of a role in a phase", NULL},
    {"wait_seconds", COUNTER, WAITS, "", NS,
     "time of all workers of a role in phase waiting, by the reason", NULL},
    {"worker_cpu_seconds", COUNTER, WORKER, "cpu_ns", NS,
     "processor time of all threads of the worker's process", NULL},
    {"worker_world_cpu_seconds", COUNTER, WORKER, "world_cpu_ns", NS,
     "processor time of the Python processes that step the worker's worlds", NULL},
    {"worker_run_delay_seconds", COUNTER, WORKER, "run_delay_ns", NS,
     "time that the worker's main thread could run and had no core", NULL},
    {"worker_steps", COUNTER, WORKER, "steps", 1, "steps of agent 0 in all worlds of the process",
     NULL},
    {"worker_resident_memory_bytes", GAUGE, WORKER_STATE, "rss_bytes", 1,
     "resident memory of the worker's process", NULL},
    {"worker_deaths", COUNTER, WORKER_STATE, "deaths", 1, "times that the worker's process died",
     NULL},
    {"heartbeat_timestamp_seconds", GAUGE, SPECIAL, "worker", 1,
     "time of the worker's latest sign of life, since 1970; now while it sleeps", write_heartbeat},

    {"daemon_cpu_seconds", COUNTER, HOST, "daemon_cpu_s", 1, "processor time of ringmasterd", NULL},
    {"cores", GAUGE, HOST, "cores", 1, "cores that the run may use", NULL},
    {"writer_lost", COUNTER, WRITER, "lost", 1,
     "lines and rows dropped because the queue to the disk or the journal was full", NULL},
    {"writer_failed", COUNTER, WRITER, "failed", 1, "lines and rows that could not be written",
     NULL},
    {"run_directory_free_bytes", GAUGE, DISK, "free", 1,
     "free space of the file system that the run directory is on", NULL},
    {"run_directory_size_bytes", GAUGE, DISK, "size", 1, "size of that file system", NULL},

    {"gpu", INFO, GPU, "gpu, name", 0, "UUID and name of a GPU", write_gpus},
    {"gpu_utilization_ratio", GAUGE, GPU, "gpu", RM_GPU_UTILISATION,
     "share of the last moment in which a kernel ran", NULL},
    {"gpu_memory_used_bytes", GAUGE, GPU, "gpu", RM_GPU_MEMORY_USED, "memory in use", NULL},
    {"gpu_memory_size_bytes", GAUGE, GPU, "gpu", RM_GPU_MEMORY_SIZE, "memory that the GPU has",
     NULL},
    {"gpu_power_watts", GAUGE, GPU, "gpu", RM_GPU_POWER, "power that the board takes", NULL},
    {"gpu_slowed", GAUGE, GPU, "gpu, reason", 0,
     "1 while the clocks are lowered for this reason, else 0", write_slowed},
    {"gpu_xid_errors", COUNTER, GPU, "gpu", RM_GPU_XID_ERRORS,
     "errors that the driver reported (Xid) since ringmaster-web started", NULL},
    {"gpu_xid_latest", GAUGE, GPU, "gpu", RM_GPU_XID_LATEST, "number of the latest of them", NULL},
};
#define FAMILIES (sizeof families / sizeof families[0])

/* --- samples ---------------------------------------------------------------------------------- */

static void label_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            fputc('\\', out);
        if (*text == '\n')
            fputs("\\n", out);
        else
            fputc(*text, out);
    }
}

/* The first of a sample stands for itself, others follow a comma. */
static void label(FILE *out, const char *name, const char *value)
{
    fprintf(out, "%s=\"", name);
    label_text(out, value);
    fputc('"', out);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* "NAME_SUFFIX{experiment="...". The caller adds labels and a value. */
static void begin(const struct sink *s, const char *suffix)
{
    fprintf(s->out, "ringmaster_%s%s{", s->family->name, suffix);
    if (s->run)
        label(s->out, "experiment", s->run->name);
}

static void end(const struct sink *s, double value)
{
    if (fabs(value) < 1e15 && value == floor(value))
        fprintf(s->out, "} %.0f\n", value);
    else
        fprintf(s->out, "} %.15g\n", value);
}

static void comma(const struct sink *s)
{
    if (s->run)
        fputc(',', s->out);
}

/* A sample with up to two labels, NULL: none. */
static void sample(const struct sink *s, const char *name, const char *value, const char *name2,
                   const char *value2, double number)
{
    const bool counter = s->family->kind == COUNTER;
    if (!isfinite(number))
        return;
    for (int created = 0; created <= (counter && s->form == RM_OPENMETRICS ? 1 : 0); created++) {
        begin(s, created ? "_created" : counter ? "_total" : "");
        if (name) {
            comma(s);
            label(s->out, name, value);
        }
        if (name2) {
            fputc(',', s->out);
            label(s->out, name2, value2);
        }
        if (created)
            fprintf(s->out, "} %.3f\n", s->run ? s->run->created : s->gpus->opened);
        else
            end(s, number);
    }
}

/* A number by a path such as "score.last"; NAN: there is none. */
/* A sample of each element of an array. */
static void each(const struct sink *s, const json_t *array, const char *label_name,
                 const char *member)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *one = json_array_get(array, i);
        const double value =
            rm_json_number_at(member ? json_object_get(one, member) : one, s->family->key);
        sample(s, label_name, text_of(one, "name"), NULL, NULL, value * s->family->scale);
    }
}

static void write_writers(const struct sink *s)
{
    static const char *const names[] = {"files", "echoes"};
    const json_t *writers = json_object_get(s->run->metrics, "writers");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        sample(s, "writer", names[i], NULL, NULL,
               rm_json_number_at(json_object_get(writers, names[i]), s->family->key));
}

static void write_disk(const struct sink *s)
{
    struct statvfs is;
    const char *directory = rm_web_run_directory(s->run);
    if (directory && statvfs(directory, &is) == 0)
        sample(s, NULL, NULL, NULL, NULL,
               (double)(s->family->key[0] == 'f' ? is.f_bavail : is.f_blocks) *
                   (double)is.f_frsize);
}

/* Sums over the workers of each role that the run has: PREFIX_NAME_ns of all names. */
static void write_sums(const struct sink *s, const char *prefix, const char *second, int count,
                       const char *(*name)(int))
{
    const json_t *workers = json_object_get(s->run->metrics, "workers");
    for (int role = 0; role < RM_ROLE_COUNT; role++) {
        const char *role_name = rm_role_name((enum rm_role)role);
        for (int n = 0; n < count; n++) {
            char key[64];
            double sum = NAN;
            snprintf(key, sizeof key, "%s_%s_ns", prefix, name(n));
            for (size_t w = 0; w < json_array_size(workers); w++) {
                const json_t *worker = json_array_get(workers, w);
                if (strcmp(text_of(worker, "role"), role_name) != 0)
                    continue;
                const double ns = rm_json_number_at(json_object_get(worker, "values"), key);
                sum = isnan(sum) ? ns : sum + ns;
            }
            sample(s, "role", role_name, second, name(n), sum * s->family->scale);
        }
    }
}

static const char *phase_name(int phase)
{
    return rm_phase_name((enum rm_phase)phase);
}

static const char *wait_name(int wait)
{
    return rm_wait_name((enum rm_wait)wait);
}

static void write_up(const struct sink *s)
{
    sample(s, NULL, NULL, NULL, NULL, s->run->status != NULL);
}

static void write_info(const struct sink *s)
{
    if (!s->run->status)
        return;
    begin(s, "_info");
    fputc(',', s->out);
    label(s->out, "version", text_of(s->run->status, "version"));
    fputc(',', s->out);
    label(s->out, "mode", text_of(s->run->status, "mode"));
    end(s, 1);
}

static void write_state(const struct sink *s)
{
    const char *state = text_of(s->run->status, "state");
    for (int i = 0; s->run->status && i <= RM_RUN_STOPPED; i++) {
        const char *name = rm_run_state_name((enum rm_run_state)i);
        sample(s, "ringmaster_run_state", name, NULL, NULL, !strcmp(state, name));
    }
}

/* Workers note the monotonic time, which this host's processes share. One that sleeps need not. */
static void write_heartbeat(const struct sink *s)
{
    const json_t *workers = json_object_get(s->run->metrics, "workers"),
                 *states = json_object_get(s->run->status, "workers");
    const double offset = ((double)rm_clock_ns(CLOCK_REALTIME) - (double)rm_now_ns()) * NS;
    for (size_t w = 0; w < json_array_size(workers); w++) {
        const json_t *worker = json_array_get(workers, w);
        const bool sleeps = !strcmp(text_of(json_array_get(states, w), "state"), "waiting");
        const double ns =
            sleeps ? (double)rm_now_ns()
                   : rm_json_number_at(json_object_get(worker, "values"), "heartbeat_ns");
        if (ns > 0)
            sample(s, "worker", text_of(worker, "name"), NULL, NULL,
                   round((ns * NS + offset) * 1e3) / 1e3);
    }
}

static void write_gpus(const struct sink *s)
{
    for (size_t i = 0; i < s->gpus->count; i++) {
        begin(s, "_info");
        label(s->out, "gpu", s->gpus->gpu[i].uuid);
        fputc(',', s->out);
        label(s->out, "name", s->gpus->gpu[i].name);
        end(s, 1);
    }
}

static void write_slowed(const struct sink *s)
{
    for (size_t i = 0; i < s->gpus->count; i++)
        for (int r = 0; s->gpus->gpu[i].slowed_known && r < RM_GPU_REASONS; r++)
            sample(s, "gpu", s->gpus->gpu[i].uuid, "reason", rm_gpu_reason_name(r),
                   s->gpus->gpu[i].slowed >> r & 1);
}

static void write_figures(const struct sink *s)
{
    for (size_t i = 0; i < s->gpus->count; i++)
        sample(s, "gpu", s->gpus->gpu[i].uuid, NULL, NULL,
               s->gpus->gpu[i].figure[(int)s->family->scale]);
}

static void write_samples(const struct sink *s)
{
    const struct family *f = s->family;
    const struct rm_web_run *run = s->run;
    switch (f->block) {
    case EXPERIMENT:
        sample(s, NULL, NULL, NULL, NULL, rm_json_number_at(run->status, f->key) * f->scale);
        break;
    case HOST:
        sample(s, NULL, NULL, NULL, NULL,
               rm_json_number_at(json_object_get(run->metrics, "host"), f->key) * f->scale);
        break;
    case WRITER:
        write_writers(s);
        break;
    case DISK:
        write_disk(s);
        break;
    case AGENT:
        each(s, json_object_get(run->status, "agents"), "agent", NULL);
        break;
    case POLICY:
        each(s, json_object_get(run->metrics, "policies"), "policy", "values");
        break;
    case WORKER:
        each(s, json_object_get(run->metrics, "workers"), "worker", "values");
        break;
    case WORKER_STATE:
        each(s, json_object_get(run->status, "workers"), "worker", NULL);
        break;
    case PHASES:
        write_sums(s, "phase", "phase", RM_PHASE_COUNT, phase_name);
        break;
    case WAITS:
        write_sums(s, "wait", "reason", RM_WAIT_COUNT, wait_name);
        break;
    case GPU:
        if (f->special)
            f->special(s);
        else
            write_figures(s);
        break;
    case SPECIAL:
        f->special(s);
        break;
    case BLOCKS:
        break;
    }
}

/* --- families --------------------------------------------------------------------------------- */

const char *rm_exposition_type(enum rm_exposition form)
{
    return form == RM_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                  : "text/plain; version=0.0.4; charset=utf-8";
}

static const char *type_name(enum kind kind, enum rm_exposition form)
{
    static const char *const names[] = {"counter", "gauge", "info", "stateset"};
    return form == RM_PLAIN_TEXT && kind > GAUGE ? "gauge" : names[kind];
}

/* The suffix of samples' names, which the plain form has in its head lines, too. */
static const char *suffix(enum kind kind)
{
    return kind == COUNTER ? "_total" : kind == INFO ? "_info" : "";
}

/* "seconds" or "bytes" where the name ends with it; "": no unit. */
static const char *unit(const char *name)
{
    static const char *const units[] = {"seconds", "bytes"};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        const size_t length = strlen(units[i]), all = strlen(name);
        if (all > length && !strcmp(name + all - length, units[i]))
            return units[i];
    }
    return "";
}

static void write_head(const struct family *f, enum rm_exposition form, FILE *out)
{
    const char *after = form == RM_PLAIN_TEXT ? suffix(f->kind) : "";
    fprintf(out, "# TYPE ringmaster_%s%s %s\n", f->name, after, type_name(f->kind, form));
    if (form == RM_OPENMETRICS && unit(f->name)[0])
        fprintf(out, "# UNIT ringmaster_%s %s\n", f->name, unit(f->name));
    fprintf(out, "# HELP ringmaster_%s%s %s\n", f->name, after, f->doc);
}

void rm_openmetrics_write(const struct rm_web_runs *runs, const struct rm_gpus *gpus,
                          enum rm_exposition form, FILE *out)
{
    for (size_t f = 0; f < FAMILIES; f++) {
        write_head(&families[f], form, out);
        struct sink sink = {out, form, &families[f], NULL, gpus};
        if (families[f].block == GPU)
            write_samples(&sink);
        for (size_t i = 0; families[f].block != GPU && i < runs->count; i++) {
            sink.run = runs->run[i];
            write_samples(&sink);
        }
    }
    if (form == RM_OPENMETRICS)
        fputs("# EOF\n", out);
}

void rm_openmetrics_document(FILE *out)
{
    fputs("# Metrics of ringmaster-web\n\n"
          "`GET /metrics` of [`ringmaster-web`](web.md) has these metrics for every experiment of "
          "the host: in\n"
          "OpenMetrics for clients that accept it, such as Prometheus, otherwise in Prometheus's "
          "text form. All metrics\n"
          "except those of GPUs have the label `experiment`. In OpenMetrics a counter also has "
          "`_created`, the time at\n"
          "which its daemon began to count. An unknown number has no sample. `make generated` "
          "writes this page.\n\n"
          "| name | type | labels | what |\n|---|---|---|---|\n",
          out);
    for (size_t i = 0; i < FAMILIES; i++) {
        const struct family *f = &families[i];
        fprintf(out, "| `ringmaster_%s%s` | %s | %s | %s |\n", f->name, suffix(f->kind),
                type_name(f->kind, RM_OPENMETRICS), f->block >= GPU ? f->key : labels[f->block],
                f->doc);
    }
}
