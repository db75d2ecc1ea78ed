#include "shm/round.h"

#include "shm/atomic.h"
#include "shm/base/fault.h"

#include <errno.h>

#define LEFT UINT64_MAX /* arrived in every later round */

void rm_round_init(struct rm_round *round, uint32_t participants)
{
    RM_POKE(&round->participants, participants);
    for (uint32_t i = 0; i < RM_ROUND_MAX; i++)
        RM_POKE(&round->arrived[i], 0);
    RM_POKE(&round->current, 1);
}

uint64_t rm_round_current(const struct rm_round *round)
{
    return rm_atomic_round_current(&round->current);
}

/* When all have left, the round does not advance any more. */
static bool advance_if_all(struct rm_round *round, uint64_t current)
{
    uint32_t participants = RM_PEEK(&round->participants), left = 0;
    for (uint32_t i = 0; i < participants; i++) {
        const uint64_t arrived = rm_atomic_round_arrived(&round->arrived[i]);
        if (arrived < current)
            return false;
        left += arrived == LEFT;
    }
    if (left == participants)
        return false;
    RM_FAULT("round.advance.before");
    return rm_atomic_round_advance(&round->current, current);
}

bool rm_round_arrive(struct rm_round *round, uint32_t who)
{
    uint64_t current = rm_atomic_round_current(&round->current);
    if (RM_PEEK(&round->arrived[who]) == LEFT)
        return false;
    RM_FAULT("round.arrive.before");
    rm_atomic_round_arrive(&round->arrived[who], current);
    RM_FAULT("round.arrive.stored");
    return advance_if_all(round, current);
}

bool rm_round_leave(struct rm_round *round, uint32_t who)
{
    uint64_t current = rm_atomic_round_current(&round->current);
    rm_atomic_round_arrive(&round->arrived[who], LEFT);
    return advance_if_all(round, current);
}

bool rm_round_left(const struct rm_round *round, uint32_t who)
{
    return rm_atomic_round_arrived(&round->arrived[who]) == LEFT;
}

void rm_round_come_back(struct rm_round *round, uint32_t who, bool arrived)
{
    const uint64_t current = rm_atomic_round_current(&round->current);
    if (RM_PEEK(&round->arrived[who]) == LEFT)
        RM_POKE(&round->arrived[who], arrived ? current : current - 1);
}

int rm_round_check(const struct rm_round *round, uint32_t *who)
{
    const uint64_t current = rm_atomic_round_current(&round->current);
    const uint32_t participants = RM_PEEK(&round->participants);
    for (*who = 0; *who < participants && *who < RM_ROUND_MAX; ++*who) {
        const uint64_t arrived = rm_atomic_round_arrived(&round->arrived[*who]);
        if (arrived == LEFT || (arrived <= current && current - arrived <= 1))
            continue;
        return rm_atomic_round_current(&round->current) == current ? -EPROTO : -EAGAIN;
    }
    return 0;
}

bool rm_round_settle(struct rm_round *round)
{
    return advance_if_all(round, rm_atomic_round_current(&round->current));
}
