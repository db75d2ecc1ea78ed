#include "daemon/stall.h"

#include "shm/base/clock.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

static uint64_t worked_ns(void)
{
    return rm_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t voluntary_switches(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nvcsw : 0;
}

static void raise_to(uint64_t *most, uint64_t value)
{
    if (value > *most)
        *most = value;
}

void rm_stall_count(struct rm_stall *stall, const struct rm_stall_turn *turn)
{
    const uint64_t clock =
        turn->passed_ns > turn->waited_ns ? turn->passed_ns - turn->waited_ns : 0;
    const bool slept = turn->switches > (turn->waited_ns ? 1 : 0);
    stall->turns++;
    stall->slept += slept;
    raise_to(&stall->max_clock_ns, clock);
    raise_to(&stall->max_worked_ns, turn->worked_ns);
    raise_to(&stall->max_ns, slept && clock > turn->worked_ns ? clock : turn->worked_ns);
}

/* Called as the last thing before waiting. */
static void on_turn(uv_prepare_t *handle)
{
    struct rm_stall *stall = handle->data;
    const uint64_t now = rm_now_ns(), idle = uv_metrics_idle_time(handle->loop);
    const uint64_t worked = worked_ns(), switches = voluntary_switches();
    struct rm_stall_turn turn = {.passed_ns = now - stall->seen_ns,
                                 .waited_ns = idle - stall->idle_ns,
                                 .worked_ns = worked - stall->worked_ns,
                                 .switches = switches - stall->switches};
    if (stall->interrupted && turn.passed_ns > turn.worked_ns) {
        turn.waited_ns = turn.passed_ns - turn.worked_ns;
        turn.switches -= turn.switches > 0; /* the wait was begun twice */
    }
    stall->interrupted = false;
    if (stall->seen_ns)
        rm_stall_count(stall, &turn);
    stall->seen_ns = now;
    stall->idle_ns = idle;
    stall->worked_ns = worked;
    stall->switches = switches;
}

void rm_stall_watch(struct rm_stall *stall, uv_loop_t *loop)
{
    *stall = (struct rm_stall){.turns = 0};
    uv_loop_configure(loop, UV_METRICS_IDLE_TIME);
    uv_prepare_init(loop, &stall->turn);
    stall->turn.data = stall;
    uv_prepare_start(&stall->turn, on_turn);
    uv_unref((uv_handle_t *)&stall->turn);
}
