#include "daemon/presence.h"

#include "shm/base/clock.h"

#define LATE_NS (100 * RM_NS_PER_MS) /* a host with more to do than it can is as late as that */

void rm_presence_note(struct rm_presence *presence)
{
    const uint64_t now = rm_now_ns(), expected = presence->expected_ns;
    if (expected && now > expected && now - expected > LATE_NS)
        presence->away(presence->user, now - expected, now);
    if (expected && expected < now)
        presence->expected_ns = now;
}

static void before_waiting(uv_prepare_t *handle)
{
    struct rm_presence *presence = handle->data;
    rm_presence_note(presence);
    const int ms = uv_backend_timeout(handle->loop);
    presence->expected_ns = ms < 0 ? 0 : rm_now_ns() + (uint64_t)ms * RM_NS_PER_MS;
}

static void after_waiting(uv_check_t *handle)
{
    struct rm_presence *presence = handle->data;
    rm_presence_note(presence);
    presence->expected_ns = rm_now_ns(); /* whatever it is that it does now, it is there */
}

void rm_presence_open(struct rm_presence *presence, uv_loop_t *loop,
                      void (*away)(void *user, uint64_t away_ns, uint64_t now_ns), void *user)
{
    *presence = (struct rm_presence){.away = away, .user = user};
    uv_prepare_init(loop, &presence->before);
    uv_check_init(loop, &presence->after);
    presence->before.data = presence->after.data = presence;
    uv_prepare_start(&presence->before, before_waiting);
    uv_check_start(&presence->after, after_waiting);
    uv_unref((uv_handle_t *)&presence->before);
    uv_unref((uv_handle_t *)&presence->after);
}
