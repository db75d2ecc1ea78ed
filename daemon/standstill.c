#include "daemon/standstill.h"

#include "shm/atomic.h"

#include <errno.h>
#include <stdio.h>

#define PATIENCE 3 /* multiple of the time for which a worker may be silent */
#define DAMAGED  3 /* consecutive checks, because one may come between two writes of a worker */

/* Names the workers that may have damaged the board: all that run a foreign world. */
static bool damaged(const struct rm_session *session, const char *how, char *why, size_t size)
{
    const uint32_t actors = session->objects.actors;
    char who[64] = "actor-0";
    if (session->experiment.mode == RM_MODE_SEQUENTIAL)
        snprintf(who, sizeof who, "solo");
    else if (actors > 1)
        snprintf(who, sizeof who, "one of actor-0 to actor-%u", actors - 1);
    snprintf(why, size, "the board was damaged by %s: %s", who, how);
    return true;
}

/* A round's state follows from its words alone. */
static bool rounds_damaged(struct rm_standstill *s, const struct rm_session *session, char *why,
                           size_t size)
{
    const struct rm_round *round = session->board.round;
    char how[128];
    uint32_t who;
    if (session->experiment.mode == RM_MODE_FREE || rm_round_check(round, &who) != -EPROTO) {
        s->damaged = 0;
        return false;
    }
    if (++s->damaged < DAMAGED)
        return false;
    snprintf(how, sizeof how, "round %llu, but participant %u has marked round %llu as finished",
             (unsigned long long)RM_PEEK(&round->current), who,
             (unsigned long long)RM_PEEK(&round->arrived[who]));
    return damaged(session, how, why, size);
}

/* Whether the process is in a turn: busy, and not asleep since the last check. */
static bool in_a_turn(struct rm_standstill *s, const struct rm_session *session, uint32_t process)
{
    uint64_t sleeps = 0, heartbeat_ns;
    for (uint32_t i = 0; i < session->objects.workers; i++)
        if (rm_session_process(session, i) == process)
            sleeps += RM_PEEK(&session->board.workers[i].sleeps);
    const bool slept = sleeps != s->sleeps[process];
    s->sleeps[process] = sleeps;
    return !slept && rm_session_process_state(session, process, &heartbeat_ns) == RM_WORKER_BUSY;
}

/* Whether all workers run, and wait for work. */
static bool all_wait(struct rm_standstill *s, const struct rm_session *session,
                     const struct rm_supervisor *supervisor)
{
    bool wait = !RM_PEEK(&session->board.run->pause);
    for (uint32_t i = 0; i < session->objects.workers; i++) {
        const struct rm_supervised_worker *worker = &supervisor->workers[i];
        if (rm_session_has_process(session, i) &&
            (in_a_turn(s, session, i) || worker->state != RM_SUPERVISED_UP || worker->hung))
            wait = false;
    }
    return wait;
}

/* In lockstep a round is a turn of each worker. A worker whose arrival is removed arrives again,
 * and that counts as a turn of its own. */
static uint64_t turns_made(const struct rm_session *session)
{
    uint64_t turns = 0;
    if (session->experiment.mode == RM_MODE_LOCKSTEP)
        return RM_PEEK(&session->board.round->current);
    for (uint32_t i = 0; i < session->objects.workers; i++)
        turns += RM_PEEK(&session->board.workers[i].turns);
    return turns;
}

bool rm_standstill_look(struct rm_standstill *s, const struct rm_session *session,
                        const struct rm_supervisor *supervisor, bool training, uint64_t now_ns,
                        char *why, size_t size)
{
    if (!rm_experiment_loads(&session->experiment))
        return false;
    if (rounds_damaged(s, session, why, size))
        return true;
    const uint64_t turns = turns_made(session);
    const bool wait = all_wait(s, session, supervisor) && training;
    if (!wait || turns != s->turns || s->since_ns == 0) {
        s->turns = turns;
        s->since_ns = wait ? now_ns : 0;
        return false;
    }
    return now_ns - s->since_ns > PATIENCE * supervisor->limits.heartbeat_ns &&
           damaged(session, "all workers wait, and none makes a turn", why, size);
}
