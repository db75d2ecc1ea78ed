/* What signals do: SIGINT and SIGTERM stop the run in good order, and the second one kills. Under
 * Slurm SIGTERM pauses it. SIGUSR1 requests a checkpoint, SIGHUP a reload. */
#include "daemon/daemon.h"
#include "daemon/running.h"

#include "shm/base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define INTERRUPTS_APART_NS (300 * RM_NS_PER_MS)

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
#define SIGNALS (sizeof numbers / sizeof numbers[0])
_Static_assert(SIGNALS == sizeof((struct rm_signals *)0)->handle / sizeof(uv_signal_t),
               "a handle for each signal");

void rm_daemon_hold_signals(bool hold)
{
    sigset_t answered;
    sigemptyset(&answered);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaddset(&answered, numbers[i]);
    pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &answered, NULL);
}

static void interrupt(struct rm_daemon *daemon, int number)
{
    struct rm_signals *s = &daemon->signals;
    /* One request may arrive twice: for the process and for its group. */
    const uint64_t now = rm_now_ns();
    if (s->interrupted_ns && now - s->interrupted_ns < INTERRUPTS_APART_NS)
        return;
    s->interrupted_ns = now;
    s->interrupts++;
    /* A job that ends by itself would not be requeued, so it waits to be killed. */
    const bool preempted = number == SIGTERM && getenv("SLURM_JOB_ID");
    if (preempted && !s->preempted) {
        s->interrupts = 0;
        s->preempted = number;
        rm_checkpointer_end(&daemon->checkpoint, RM_AFTER_PAUSE, "");
    } else if (s->interrupts == 1) {
        rm_daemon_stop_after_checkpoint(daemon, number == SIGINT ? "interrupted" : "terminated");
    } else {
        rm_log(&daemon->log, RM_LOG_WARNING, "interrupted again: killing all workers");
        rm_daemon_stop(daemon, "interrupted again");
        rm_supervisor_kill_all(&daemon->supervisor);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct rm_daemon *daemon = handle->data;
    rm_stall_interrupted(&daemon->stall);
    if (number == SIGHUP)
        rm_settings_reload(&daemon->settings);
    else if (number == SIGUSR1) /* a scheduler's signal that the end may be near */
        rm_checkpointer_insist(&daemon->checkpoint);
    else
        interrupt(daemon, number);
}

int rm_daemon_take_signals(struct rm_daemon *daemon, struct rm_error *error)
{
    for (size_t i = 0; i < SIGNALS; i++) {
        uv_signal_t *handle = &daemon->signals.handle[i];
        int rc = uv_signal_init(&daemon->loop, handle);
        handle->data = daemon;
        if (rc == 0)
            rc = uv_signal_start(handle, on_signal, numbers[i]);
        if (rc < 0)
            return rm_fail(error, rc, "cannot take signals: %s", uv_strerror(rc));
    }
    return 0;
}

int rm_daemon_interrupted(const struct rm_daemon *daemon, struct rm_error *error)
{
    const struct rm_signals *s = &daemon->signals;
    if (s->preempted && !daemon->finished)
        return rm_fail(error, 128 + s->preempted, "ended by signal %d after a checkpoint",
                       s->preempted);
    if (s->interrupts > 1)
        return rm_fail(error, RM_DAEMON_KILLED, "interrupted twice: workers were killed");
    return RM_DAEMON_OK;
}
