#include "daemon/ctl/interrupt.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    interrupted = number;
}

void rm_interrupt_watch(void)
{
    const struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int rm_interrupted(void)
{
    return interrupted;
}

void rm_interrupt_sleep(double seconds)
{
    const struct timespec time = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    sigset_t both, before;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    /* Blocked outside of ppoll(): one that comes before it must not wait for its end. */
    sigprocmask(SIG_BLOCK, &both, &before);
    if (!interrupted)
        ppoll(NULL, 0, &time, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
}
