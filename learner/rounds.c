#include "learner/rounds.h"

#include "shm/atomic.h"
#include "shm/base/state.h"

void rm_rounds_start(struct rm_rounds *r, struct rm_session *session, uint32_t policy, bool on)
{
    *r = (struct rm_rounds){
        .session = session, .who = rm_worker_learner(&session->objects, policy), .on = on};
}

enum rm_rounds_turn rm_rounds_next(struct rm_rounds *r)
{
    const struct rm_round *board = r->session->board.round;
    const uint64_t current = rm_round_current(board);
    if (rm_round_left(board, r->who))
        return RM_ROUNDS_OVER;
    if (r->current == 0 && RM_PEEK(&board->arrived[r->who]) >= current)
        return RM_ROUNDS_WAIT; /* a predecessor arrived in this round before it died */
    if (current != r->current) {
        r->current = current;
        r->arrived = false;
        r->last = rm_session_budget_spent(r->session, current);
    }
    return r->arrived ? RM_ROUNDS_WAIT : RM_ROUNDS_WORK;
}

void rm_rounds_arrive(struct rm_rounds *r, bool leave)
{
    struct rm_round *board = r->session->board.round;
    if (!r->on)
        return;
    r->arrived = true;
    if (leave ? rm_round_leave(board, r->who) : rm_round_arrive(board, r->who))
        rm_session_wake_all(r->session);
}

void rm_rounds_state(struct rm_rounds *r, struct rm_state *s)
{
    RM_STATE(s, "round", r->current);
    RM_STATE(s, "arrived", r->arrived);
    RM_STATE(s, "last_round", r->last);
}
