#include "daemon/stall.h"

#include "shm/base/clock.h"

#include <time.h>

static uint64_t worked_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * RM_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Called as the last thing before waiting. */
static void on_turn(uv_prepare_t *handle)
{
    struct rm_stall *stall = handle->data;
    const uint64_t now = rm_now_ns(), idle = uv_metrics_idle_time(handle->loop);
    const uint64_t passed = now - stall->seen_ns, waited = idle - stall->idle_ns;
    if (stall->turns++ > 0 && passed > waited && passed - waited > stall->max_ns)
        stall->max_ns = passed - waited;
    const uint64_t worked = worked_ns();
    if (stall->turns > 1 && worked - stall->worked_ns > stall->max_worked_ns)
        stall->max_worked_ns = worked - stall->worked_ns;
    stall->worked_ns = worked;
    stall->seen_ns = now;
    stall->idle_ns = idle;
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
