#include "daemon/standstill.h"

#include "daemon/daemon.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <stdio.h>

#define PATIENCE 3 /* multiple of the time for which a worker may be silent */
#define DAMAGED  3 /* consecutive checks, because one may come between two writes of a worker */

/* The workers that may have damaged the board: all that run a foreign world. */
static void suspects(const struct rm_daemon *daemon, char *text, size_t size)
{
    const uint32_t actors = daemon->session.objects.actors;
    if (daemon->session.experiment.mode == RM_MODE_SEQUENTIAL)
        snprintf(text, size, "solo");
    else if (actors == 1)
        snprintf(text, size, "actor-0");
    else
        snprintf(text, size, "one of actor-0 to actor-%u", actors - 1);
}

static void name_damage(const struct rm_daemon *daemon, const char *how, char *why, size_t size)
{
    char who[64];
    suspects(daemon, who, sizeof who);
    snprintf(why, size, "the board was damaged by %s: %s", who, how);
}

/* A round's state follows from its words alone. */
static bool rounds_damaged(struct rm_standstill *s, const struct rm_daemon *daemon, char *why,
                           size_t size)
{
    const struct rm_round *round = daemon->session.board.round;
    char how[128];
    uint32_t who;
    if (daemon->session.experiment.mode == RM_MODE_FREE || rm_round_check(round, &who) != -EPROTO) {
        s->damaged = 0;
        return false;
    }
    if (++s->damaged < DAMAGED)
        return false;
    snprintf(how, sizeof how, "round %llu, and participant %u is said to have finished round %llu",
             (unsigned long long)RM_PEEK(&round->current), who,
             (unsigned long long)RM_PEEK(&round->arrived[who]));
    name_damage(daemon, how, why, size);
    return true;
}

/* Whether every worker runs, and none is paused, held or stopped. */
static bool all_could_work(const struct rm_daemon *daemon)
{
    if (daemon->life != RM_LIFE_TRAINING || RM_PEEK(&daemon->session.board.run->pause) ||
        daemon->checkpoint.stage != RM_CHECKPOINT_IDLE)
        return false;
    for (uint32_t i = 0; i < daemon->session.objects.workers; i++)
        if (rm_session_has_process(&daemon->session, i) &&
            daemon->supervisor.workers[i].state != RM_SUPERVISED_UP)
            return false;
    return true;
}

static uint64_t turns_of_all(const struct rm_daemon *daemon)
{
    uint64_t turns = 0;
    for (uint32_t i = 0; i < daemon->session.objects.workers; i++)
        turns += RM_PEEK(&daemon->session.board.workers[i].turns);
    return turns;
}

bool rm_standstill_look(struct rm_standstill *s, const struct rm_daemon *daemon, uint64_t now_ns,
                        char *why, size_t size)
{
    const uint64_t turns = turns_of_all(daemon), patience = daemon->supervisor.limits.heartbeat_ns;
    if (!daemon->session.experiment.world.library[0] || daemon->life >= RM_LIFE_STOPPING)
        return false;
    if (rounds_damaged(s, daemon, why, size))
        return true;
    if (!all_could_work(daemon) || turns != s->turns || s->since_ns == 0) {
        s->turns = turns;
        s->since_ns = all_could_work(daemon) ? now_ns : 0;
        return false;
    }
    if (now_ns - s->since_ns <= PATIENCE * patience)
        return false;
    name_damage(daemon, "no worker works, but all run", why, size);
    return true;
}
