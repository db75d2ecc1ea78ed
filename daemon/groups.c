#include "daemon/groups.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* What RLIMIT_DATA does not count has some room beside it. */
#define MORE_MIB UINT64_C(64)

static bool wanted(const struct rm_experiment *e)
{
    return rm_experiment_is_foreign(e) && e->mode != RM_MODE_SEQUENTIAL &&
           (e->actor.memory_limit || e->actor.process_limit);
}

void rm_groups_open(struct rm_groups *groups, const struct rm_experiment *e)
{
    struct rm_error why = {""};
    if (wanted(e) && rm_cgroup_open_own(&groups->cgroup, &why) < 0)
        snprintf(groups->none, sizeof groups->none, "%.*s", (int)sizeof groups->none - 1, why.text);
}

void rm_groups_log(const struct rm_groups *groups, const struct rm_experiment *e,
                   struct rm_log *log)
{
    if (groups->cgroup.path[0])
        rm_log(log, RM_LOG_INFO, "actors have control groups of their own below %s",
               groups->cgroup.path);
    else if (groups->none[0])
        rm_log(log, RM_LOG_NOTICE, "actors have no control group of their own, so %s: %s",
               e->actor.process_limit ? "actor.process_limit does not hold"
                                      : "actor.memory_limit bounds private memory alone",
               groups->none);
}

int rm_groups_make(const struct rm_groups *groups, const struct rm_experiment *e, const char *name,
                   struct rm_worker_group *group, struct rm_error *error)
{
    const uint64_t memory = e->actor.memory_limit;
    memset(group, 0, sizeof *group);
    if (!groups->cgroup.path[0])
        return 0;
    int rc = rm_cgroup_make(&groups->cgroup, name, memory ? memory + (MORE_MIB << 20) : 0,
                            e->actor.process_limit, group->procs, sizeof group->procs, error);
    if (rc < 0) {
        group->procs[0] = '\0';
        return rc;
    }
    snprintf(group->name, sizeof group->name, "%s", name);
    rm_cgroup_read_events(&groups->cgroup, name, &group->before);
    return 0;
}

void rm_groups_leave(const struct rm_groups *groups, const struct rm_experiment *e,
                     const struct rm_worker_group *group, int signal, char *words, size_t size)
{
    struct rm_cgroup_events now;
    const size_t n = strlen(words);
    const char *between = n > 0 ? "; " : "";
    if (!group->name[0])
        return;
    rm_cgroup_read_events(&groups->cgroup, group->name, &now);
    if (signal == SIGKILL && now.oom_kill > group->before.oom_kill && now.oom > group->before.oom &&
        e->actor.memory_limit)
        snprintf(words + n, size - n,
                 "%sout of memory: its control group may use %" PRIu64 " MiB "
                 "(actor.memory_limit and %" PRIu64 " MiB more)",
                 between, (e->actor.memory_limit >> 20) + MORE_MIB, MORE_MIB);
    else if (signal == SIGKILL && now.oom_kill > group->before.oom_kill)
        snprintf(words + n, size - n,
                 "%sout of memory: the whole service (MemoryMax= of its unit) or the host had no "
                 "more",
                 between);
    else if (now.refused > group->before.refused)
        snprintf(words + n, size - n,
                 "%sits control group allows at most %" PRIu64
                 " processes and threads (actor.process_limit)",
                 between, e->actor.process_limit);
    rm_cgroup_clear(&groups->cgroup, group->name);
}
