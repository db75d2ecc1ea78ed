#include "shm/wake.h"

#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/fault.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* `sleeping` is a ticket: odd from prepare to wake-up, even otherwise, and never the same odd
 * number twice in a row. A waker writes the eventfd first and only then marks the ticket as
 * signalled, so one that dies in between leaves the sleeper either woken or still marked as
 * sleeping. */

static _Atomic bool closed; /* in this process, which shares its descriptors with a world */

static void note_closed(int fd)
{
    if (fd >= 0 && errno == EBADF)
        RM_POKE(&closed, true);
}

bool rm_wake_closed(void)
{
    return RM_PEEK(&closed);
}

int rm_wake_create_fd(struct rm_error *error)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return rm_fail(error, -errno, "wake: eventfd: %s%s", strerror(errno),
                       errno == EMFILE ? " (raise ulimit -n)" : "");
    return fd;
}

static void awake(struct rm_wake *wake)
{
    uint32_t ticket = RM_PEEK(&wake->word->sleeping);
    RM_POKE(&wake->word->sleeping, (ticket | 1) + 1);
}

void rm_wake_prepare(struct rm_wake *wake)
{
    RM_FAULT("wake.prepare.before");
    uint32_t ticket = RM_PEEK(&wake->word->sleeping);
    rm_atomic_sleep(&wake->word->sleeping, (ticket | 1) + 2);
    RM_FAULT("wake.prepare.after");
}

void rm_wake_cancel(struct rm_wake *wake)
{
    awake(wake);
}

void rm_wake_drain(int fd)
{
    uint64_t count;
    /* An empty eventfd is not an error: the sleep was cancelled or timed out. */
    ssize_t n;
    do
        n = read(fd, &count, sizeof count);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        note_closed(fd);
}

int rm_wake_wait(struct rm_wake *wake, uint64_t timeout_ns)
{
    struct pollfd poll_fd = {.fd = wake->fd, .events = POLLIN};
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / RM_NS_PER_S),
                               .tv_nsec = (long)(timeout_ns % RM_NS_PER_S)};
    RM_FAULT("wake.wait.before");
    int ready = ppoll(&poll_fd, 1, timeout_ns ? &timeout : NULL, NULL);
    int failed = errno;
    RM_FAULT("wake.wait.woken");

    /* Mark the sleeper awake before draining: then a signal between the two causes at most one
     * spurious wake-up. In the other order it would be lost. */
    awake(wake);
    if (ready < 0)
        return -failed;
    if (ready > 0)
        rm_wake_drain(wake->fd);
    return ready > 0;
}

void rm_wake_ring(int fd)
{
    const uint64_t one = 1;
    /* EAGAIN means 2^64 - 2 unread signals: the sleeper is woken anyway. */
    ssize_t n;
    do
        n = write(fd, &one, sizeof one);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        note_closed(fd);
}

static void ring_bell(struct rm_wake *wake)
{
    RM_ADD(&wake->word->signals, 1);
    rm_wake_ring(wake->fd);
}

bool rm_wake_signal(struct rm_wake *wake)
{
    RM_FAULT("wake.signal.before");
    uint32_t ticket = rm_atomic_sleeper(&wake->word->sleeping);
    if (!(ticket & 1))
        return false;
    RM_FAULT("wake.signal.seen");
    ring_bell(wake);
    RM_FAULT("wake.signal.written");
    rm_atomic_sleeper_signalled(&wake->word->sleeping, ticket);
    return true;
}

void rm_wake_force(struct rm_wake *wake)
{
    int kept = errno;
    ring_bell(wake);
    errno = kept;
}

bool rm_wake_answered(const struct rm_wake_word *word)
{
    uint32_t ticket = RM_PEEK(&word->sleeping);
    return ticket != 0 && !(ticket & 1);
}
