#include "daemon/ctl/snapshot.h"

#include "config/json_value.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum kind { NUMBER, TEXT };

/* A value by its path in the reply ("score.last"), and where it goes. */
struct field {
    const char *path;
    enum kind kind;
    size_t offset, bytes;
};

#define AT(type, member) offsetof(struct type, member), sizeof(((struct type *)0)->member)

static const struct field run_fields[] = {
    {"name", TEXT, AT(rm_snapshot, name)},
    {"state", TEXT, AT(rm_snapshot, state)},
    {"mode", TEXT, AT(rm_snapshot, mode)},
    {"run_directory", TEXT, AT(rm_snapshot, directory)},
    {"reason", TEXT, AT(rm_snapshot, error)},
    {"pid", NUMBER, AT(rm_snapshot, pid)},
    {"uptime_s", NUMBER, AT(rm_snapshot, uptime_s)},
    {"progress.steps", NUMBER, AT(rm_snapshot, steps)},
    {"progress.budget", NUMBER, AT(rm_snapshot, steps_budget)},
    {"progress.left_s", NUMBER, AT(rm_snapshot, left_s)},
    {"rates.steps_per_s", NUMBER, AT(rm_snapshot, steps_per_s)},
    {"rates.updates_per_s", NUMBER, AT(rm_snapshot, updates_per_s)},
    {"score.episodes", NUMBER, AT(rm_snapshot, episodes)},
    {"score.first", NUMBER, AT(rm_snapshot, score_first)},
    {"score.last", NUMBER, AT(rm_snapshot, score_last)},
    {"evaluation.count", NUMBER, AT(rm_snapshot, evaluations)},
    {"evaluation.mean", NUMBER, AT(rm_snapshot, eval_mean)},
    {"evaluation.stderr", NUMBER, AT(rm_snapshot, eval_stderr)},
    {"evaluation.episodes", NUMBER, AT(rm_snapshot, eval_episodes)},
    {"evaluation.random", NUMBER, AT(rm_snapshot, score_random)},
    {"curriculum.stage", NUMBER, AT(rm_snapshot, stage)},
    {"curriculum.stages", NUMBER, AT(rm_snapshot, stages)},
    {"curriculum.figure", TEXT, AT(rm_snapshot, stage_figure)},
    {"curriculum.bound", NUMBER, AT(rm_snapshot, stage_bound)},
    {"curriculum.mean", NUMBER, AT(rm_snapshot, stage_mean)},
    {"curriculum.episodes", NUMBER, AT(rm_snapshot, stage_episodes)},
    {NULL, NUMBER, 0, 0},
};

static const struct field agent_fields[] = {
    {"name", TEXT, AT(rm_snapshot_agent, name)},
    {"policy", TEXT, AT(rm_snapshot_agent, policy)},
    {"env_steps", NUMBER, AT(rm_snapshot_agent, env_steps)},
    {"reward.episodes", NUMBER, AT(rm_snapshot_agent, episodes)},
    {"reward.first", NUMBER, AT(rm_snapshot_agent, first)},
    {"reward.last", NUMBER, AT(rm_snapshot_agent, last)},
    {"evaluation.mean", NUMBER, AT(rm_snapshot_agent, eval_mean)},
    {"evaluation.stderr", NUMBER, AT(rm_snapshot_agent, eval_stderr)},
    {NULL, NUMBER, 0, 0},
};

static const struct field policy_fields[] = {
    {"name", TEXT, AT(rm_snapshot_policy, name)},
    {"env_steps", NUMBER, AT(rm_snapshot_policy, env_steps)},
    {"updates", NUMBER, AT(rm_snapshot_policy, updates)},
    {"updates_skipped", NUMBER, AT(rm_snapshot_policy, updates_skipped)},
    {"published", NUMBER, AT(rm_snapshot_policy, published)},
    {"replay_fill", NUMBER, AT(rm_snapshot_policy, replay_fill)},
    {"replay_ratio", NUMBER, AT(rm_snapshot_policy, replay_ratio)},
    {"lag_mean", NUMBER, AT(rm_snapshot_policy, lag_mean)},
    {"lag_max", NUMBER, AT(rm_snapshot_policy, lag_max)},
    {"loss", NUMBER, AT(rm_snapshot_policy, loss)},
    {"learning_rate", NUMBER, AT(rm_snapshot_policy, learning_rate)},
    {"epsilon", NUMBER, AT(rm_snapshot_policy, epsilon)},
    {"rollout.count", NUMBER, AT(rm_snapshot_policy, rollouts)},
    {"rollout.dropped", NUMBER, AT(rm_snapshot_policy, dropped)},
    {"rollout.policy_loss", NUMBER, AT(rm_snapshot_policy, policy_loss)},
    {"rollout.value_loss", NUMBER, AT(rm_snapshot_policy, value_loss)},
    {"rollout.entropy", NUMBER, AT(rm_snapshot_policy, entropy)},
    {"rollout.kl", NUMBER, AT(rm_snapshot_policy, kl)},
    {"rollout.clip_fraction", NUMBER, AT(rm_snapshot_policy, clipped)},
    {"rollout.explained_variance", NUMBER, AT(rm_snapshot_policy, explained)},
    {NULL, NUMBER, 0, 0},
};

static const struct field worker_fields[] = {
    {"name", TEXT, AT(rm_snapshot_worker, name)},
    {"role", TEXT, AT(rm_snapshot_worker, role)},
    {"state", TEXT, AT(rm_snapshot_worker, state)},
    {"supervisor", TEXT, AT(rm_snapshot_worker, supervised)},
    {"reason", TEXT, AT(rm_snapshot_worker, reason)},
    {"device", TEXT, AT(rm_snapshot_worker, device)},
    {"pid", NUMBER, AT(rm_snapshot_worker, pid)},
    {"generation", NUMBER, AT(rm_snapshot_worker, generation)},
    {"deaths", NUMBER, AT(rm_snapshot_worker, deaths)},
    {"rss_bytes", NUMBER, AT(rm_snapshot_worker, rss_bytes)},
    {"recording.rows", NUMBER, AT(rm_snapshot_worker, recorded)},
    {"recording.lost", NUMBER, AT(rm_snapshot_worker, lost)},
    {"recording.bytes", NUMBER, AT(rm_snapshot_worker, recorded_bytes)},
    {"booked_s", NUMBER, AT(rm_snapshot_worker, booked_s)},
    {NULL, NUMBER, 0, 0},
};

static void read_fields(void *into, const struct field *fields, const json_t *object)
{
    for (; fields->path; fields++) {
        const json_t *value = rm_json_at(object, fields->path);
        char *at = (char *)into + fields->offset;
        if (fields->kind == NUMBER)
            *(double *)(void *)at = rm_json_number(value);
        else
            snprintf(at, fields->bytes, "%s",
                     json_string_value(value) ? json_string_value(value) : "");
    }
}

static unsigned read_list(void *into, size_t stride, unsigned most, const struct field *fields,
                          const json_t *list)
{
    unsigned count = 0;
    for (; count < json_array_size(list) && count < most; count++)
        read_fields((char *)into + count * stride, fields, json_array_get(list, count));
    return count;
}

unsigned rm_snapshot_figures(struct rm_snapshot_figure *figure, unsigned most, const json_t *last,
                             const json_t *evaluated)
{
    const char *name, *word;
    json_t *value, *share;
    unsigned n = 0;
    json_object_foreach((json_t *)last, name, value)
    {
        const json_t *other = json_object_get(evaluated, name);
        if (!json_is_object(value)) {
            if (n < most) {
                figure[n] =
                    (struct rm_snapshot_figure){"", rm_json_number(value), rm_json_number(other)};
                snprintf(figure[n].name, sizeof figure[n].name, "%.47s", name);
                n++;
            }
            continue;
        }
        json_object_foreach(value, word, share)
        {
            if (n == most)
                break;
            figure[n] = (struct rm_snapshot_figure){"", rm_json_number(share),
                                                    rm_json_number(json_object_get(other, word))};
            snprintf(figure[n].name, sizeof figure[n].name, "%.47s: %.47s", name, word);
            n++;
        }
    }
    return n;
}

void rm_snapshot_read(struct rm_snapshot *s, const json_t *reply)
{
    memset(s, 0, sizeof *s);
    read_fields(s, run_fields, reply);
    s->agents = read_list(s->agent, sizeof s->agent[0], RM_BOARD_AGENTS, agent_fields,
                          json_object_get(reply, "agents"));
    for (unsigned a = 0; a < s->agents; a++) {
        const json_t *agent = json_array_get(json_object_get(reply, "agents"), a);
        s->agent[a].figures = rm_snapshot_figures(s->agent[a].figure, RM_SNAPSHOT_FIGURES,
                                                  json_object_get(agent, "figures"),
                                                  rm_json_at(agent, "evaluation.figures"));
    }
    s->policies = read_list(s->policy, sizeof s->policy[0], RM_BOARD_POLICIES, policy_fields,
                            json_object_get(reply, "policies"));
    const json_t *workers = json_object_get(reply, "workers");
    s->workers =
        read_list(s->worker, sizeof s->worker[0], RM_BOARD_WORKERS, worker_fields, workers);
    s->rss_bytes = NAN;
    for (unsigned w = 0; w < s->workers; w++) {
        struct rm_snapshot_worker *worker = &s->worker[w];
        const json_t *phases = json_object_get(json_array_get(workers, w), "phases");
        for (int p = 0; p < RM_PHASE_COUNT; p++)
            worker->phase[p] =
                rm_json_number(json_object_get(phases, rm_phase_name((enum rm_phase)p)));
        if (worker->pid > 0 && worker->rss_bytes > 0)
            s->rss_bytes = (isnan(s->rss_bytes) ? 0 : s->rss_bytes) + worker->rss_bytes;
    }
}

double rm_snapshot_progress(const struct rm_snapshot *s)
{
    if (!(s->steps_budget > 0) || isnan(s->steps))
        return NAN;
    return s->steps < s->steps_budget ? s->steps / s->steps_budget : 1;
}

void rm_snapshot_phases(const struct rm_snapshot_worker *now,
                        const struct rm_snapshot_worker *before, double *share)
{
    bool since = before && before->generation == now->generation && now->booked_s > 0 &&
                 before->booked_s >= 0 && before->booked_s <= now->booked_s;
    double total = 0;
    for (int p = 0; p < RM_PHASE_COUNT; p++) {
        double s = since ? now->phase[p] * now->booked_s - before->phase[p] * before->booked_s
                         : now->phase[p];
        share[p] = s > 0 ? s : 0; /* also for NAN: unknown */
        total += share[p];
    }
    for (int p = 0; p < RM_PHASE_COUNT && total > 0; p++)
        share[p] /= total;
}
