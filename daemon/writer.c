#include "daemon/writer.h"

#include "shm/atomic.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The header of a piece. A piece does not wrap around the queue's end: a header with `how` NULL
 * fills the rest there. */
struct piece {
    rm_write_fn how;
    struct rm_write *write;
    uint32_t bytes; /* after the header */
    int32_t fd;
};

#define UNIT        32 /* pieces begin at multiples of it, so a filling header always fits */
#define ROUND_UP(n) (((n) + UNIT - 1) / UNIT * UNIT)
_Static_assert(sizeof(struct piece) <= UNIT, "a piece's head is one unit");

/* --- ways to write bytes --------------------------------------------------------------------- */

int rm_write_through(int fd, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        const ssize_t n = write(fd, at, bytes);
        if (n >= 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (errno == EAGAIN) { /* another process with the same file set O_NONBLOCK */
            struct pollfd ready = {.fd = fd, .events = POLLOUT};
            (void)poll(&ready, 1, -1);
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

int rm_write_append(int fd, const void *data, size_t bytes)
{
    const off_t before = lseek(fd, 0, SEEK_END);
    int rc = 0;
    for (const char *at = data; bytes > 0 && rc == 0;) {
        const ssize_t n = write(fd, at, bytes);
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            rc = n == 0 ? -ENOSPC : -errno;
        }
    }
    /* The descriptor is no file that can be truncated, or a part stays: returns the first error. */
    const int cut = rc < 0 && before >= 0 ? ftruncate(fd, before) : 0;
    (void)cut;
    return rc;
}

int rm_write_durably(int fd, const void *data, size_t bytes)
{
    const int rc = rm_write_append(fd, data, bytes);
    return rc == 0 && fsync(fd) < 0 ? -errno : rc;
}

/* --- the thread ------------------------------------------------------------------------------ */

static void ring(int fd)
{
    static const uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void await(int fd)
{
    uint64_t rung;
    while (read(fd, &rung, sizeof rung) < 0 && errno == EINTR)
        ;
}

static void write_piece(struct rm_writer *w, const struct piece *piece)
{
    const uint64_t begun = rm_now_ns();
    const int rc = piece->how(piece->fd, piece + 1, piece->bytes);
    rm_atomic_max(&w->longest_ns, rm_now_ns() - begun);
    if (rc == 0) {
        RM_ADD_OWN(&w->written, 1);
    } else {
        RM_POKE(&w->failure, rc);
        RM_POKE(&w->failure_fd, piece->fd);
        RM_ADD_OWN(&w->failed, 1);
    }
    if (piece->write) {
        piece->write->rc = rc;
        RM_RAISE(&piece->write->over, 1);
    }
    if (piece->write || rc)
        uv_async_send(&w->ended);
}

static void *work(void *self)
{
    struct rm_writer *w = self;
    uint64_t head = 0;
    for (;;) {
        if (head != RM_SEE(&w->tail)) {
            const struct piece *piece = (void *)(w->queue + head % w->capacity);
            if (piece->how)
                write_piece(w, piece);
            head += UNIT + ROUND_UP(piece->bytes);
            RM_RAISE(&w->head, head); /* frees its space */
            continue;
        }
        /* Requested after the last piece was put, so a reader that sees the request sees the
         * piece. */
        const bool stop = RM_SEE(&w->stop), flush = RM_SEE(&w->flush);
        if (head != RM_SEE(&w->tail))
            continue;
        if (flush) {
            RM_POKE(&w->flush, 0);
            ring(w->empty_fd);
        }
        if (stop)
            return NULL;
        await(w->wake_fd);
    }
}

/* --- the loop -------------------------------------------------------------------------------- */

/* Calls done() of finished writes, in order; a write that a callback adds comes after all of
 * these. */
static void call_done(struct rm_writer *w)
{
    while (w->first && RM_SEE(&w->first->over)) {
        struct rm_write *write = w->first;
        w->first = write->next;
        if (!w->first)
            w->last = NULL;
        write->done(write, write->rc);
    }
}

static void on_ended(uv_async_t *ended)
{
    struct rm_writer *w = ended->data;
    call_done(w);
    if (w->on_failure && RM_PEEK(&w->failed))
        w->on_failure(w->user);
}

/* The position for `bytes` of data, and in *tail that of the next piece; NULL: no room. */
static struct piece *make_room(struct rm_writer *w, size_t bytes, uint64_t *tail)
{
    const uint64_t size = UNIT + ROUND_UP((uint64_t)bytes);
    const uint64_t used = *tail - RM_SEE(&w->head);
    const size_t at = (size_t)(*tail % w->capacity), to_end = w->capacity - at;
    const size_t fill = size > to_end ? to_end : 0;
    if (bytes > w->capacity || size + fill > w->capacity - used)
        return NULL;
    if (fill) {
        struct piece *rest = (void *)(w->queue + at);
        *rest = (struct piece){.bytes = (uint32_t)(fill - UNIT)};
    }
    *tail += fill + size;
    return (void *)(w->queue + (fill ? 0 : at));
}

static int write_now(struct rm_writer *w, rm_write_fn how, int fd, const void *data, size_t bytes)
{
    const int rc = how(fd, data, bytes);
    w->direct++;
    if (rc < 0) {
        w->direct_failed++;
        w->direct_failure = rc;
        w->direct_fd = fd;
    }
    return rc;
}

int rm_writer_put(struct rm_writer *w, rm_write_fn how, int fd, const void *data, size_t bytes,
                  struct rm_write *write)
{
    if (!w->queue)
        return write_now(w, how, fd, data, bytes);
    uint64_t tail = RM_PEEK(&w->tail);
    struct piece *piece = make_room(w, bytes, &tail);
    if (!piece) {
        w->lost++;
        return -ENOBUFS;
    }
    *piece = (struct piece){.how = how, .write = write, .bytes = (uint32_t)bytes, .fd = fd};
    memcpy(piece + 1, data, bytes);
    if (write) {
        write->next = NULL;
        RM_POKE(&write->over, 0);
        *(w->last ? &w->last->next : &w->first) = write;
        w->last = write;
    }
    RM_RAISE(&w->tail, tail);
    ring(w->wake_fd);
    return RM_WRITER_QUEUED;
}

/* --- beginning and end ----------------------------------------------------------------------- */

/* Starts the thread with all signals blocked. */
static int start_thread(struct rm_writer *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(&w->thread, NULL, work, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

static int give_up(struct rm_writer *w, int rc, struct rm_error *error)
{
    free(w->queue);
    for (int i = 0; i < 2; i++) {
        const int fd = i ? w->empty_fd : w->wake_fd;
        if (fd >= 0)
            close(fd);
    }
    if (w->ended.data) /* its memory stays until the loop has closed it */
        uv_close((uv_handle_t *)&w->ended, NULL);
    w->queue = NULL;
    return rm_fail(error, rc, "cannot create the thread that writes files: %s", strerror(-rc));
}

int rm_writer_open(struct rm_writer *w, uv_loop_t *loop, size_t capacity,
                   void (*on_failure)(void *user), void *user, struct rm_error *error)
{
    memset(w, 0, sizeof *w);
    w->on_failure = on_failure;
    w->user = user;
    w->capacity = ROUND_UP(capacity);
    w->wake_fd = eventfd(0, EFD_CLOEXEC);
    w->empty_fd = eventfd(0, EFD_CLOEXEC);
    if (w->wake_fd < 0 || w->empty_fd < 0)
        return give_up(w, -errno, error);
    w->queue = aligned_alloc(UNIT, w->capacity);
    if (!w->queue)
        return give_up(w, -ENOMEM, error);
    memset(w->queue, 0, w->capacity); /* touches all pages, so that missing memory is found now */
    int rc = uv_async_init(loop, &w->ended, on_ended);
    if (rc < 0)
        return give_up(w, rc, error);
    w->ended.data = w;
    uv_unref((uv_handle_t *)&w->ended);
    rc = start_thread(w);
    return rc < 0 ? give_up(w, rc, error) : 0;
}

void rm_writer_flush(struct rm_writer *w)
{
    if (!w->queue)
        return;
    RM_RAISE(&w->flush, 1);
    ring(w->wake_fd);
    await(w->empty_fd);
    call_done(w);
}

void rm_writer_close(struct rm_writer *w)
{
    if (!w->queue)
        return;
    do
        rm_writer_flush(w);
    while (w->first); /* a callback may have added more */
    RM_RAISE(&w->stop, 1);
    ring(w->wake_fd);
    pthread_join(w->thread, NULL);
    uv_close((uv_handle_t *)&w->ended, NULL);
    close(w->wake_fd);
    close(w->empty_fd);
    free(w->queue);
    w->queue = NULL;
}

struct rm_writer_counts rm_writer_counts(const struct rm_writer *w)
{
    const bool direct = w->direct_failure != 0;
    return (struct rm_writer_counts){
        .queued_bytes = w->queue ? RM_PEEK(&w->tail) - RM_PEEK(&w->head) : 0,
        .written = RM_PEEK(&w->written) + w->direct - w->direct_failed,
        .lost = w->lost,
        .failed = RM_PEEK(&w->failed) + w->direct_failed,
        .longest_ns = RM_PEEK(&w->longest_ns),
        .failure = direct ? w->direct_failure : RM_PEEK(&w->failure),
        .failure_fd = direct ? w->direct_fd : RM_PEEK(&w->failure_fd),
    };
}
