/* writer: writes to descriptors in a thread of its own, so that the event loop never waits for a
 * disk, an unread pipe or a busy journal. Data is copied into a queue of fixed size and written in
 * order; data that does not fit is dropped and counted. Nothing is allocated after
 * rm_writer_open(), and never by the thread.
 *
 * Only the event loop's thread puts data and counts: the queue has one writer and one reader, and
 * no lock that a forked process could find taken. If the process is killed, the queue's content is
 * lost: at most its capacity, and usually nothing, since the thread writes at once. */
#ifndef RM_DAEMON_WRITER_H
#define RM_DAEMON_WRITER_H

#include "shm/base/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

/* A way to write bytes to a descriptor. Returns 0 or negative errno. Called by the thread. */
typedef int (*rm_write_fn)(int fd, const void *data, size_t bytes);

/* Appends to a file that no other process writes: all bytes, or none. */
int rm_write_append(int fd, const void *data, size_t bytes);
/* The same, and syncs it to the disk. */
int rm_write_durably(int fd, const void *data, size_t bytes);
/* Writes to a pipe, a terminal or a file: all bytes, as fast as it takes them, even if the
 * descriptor does not block. */
int rm_write_through(int fd, const void *data, size_t bytes);

/* A write with a callback. The struct must stay in place until the loop has called `done`. */
struct rm_write {
    void (*done)(struct rm_write *write, int rc);
    void *user;
    /* Private to the writer: */
    struct rm_write *next;
    int rc;
    _Atomic uint32_t over;
};

struct rm_writer_counts {
    uint64_t queued_bytes; /* not written yet */
    uint64_t written;      /* pieces */
    uint64_t lost;         /* pieces for which there was no room */
    uint64_t failed;       /* pieces that could not be written */
    uint64_t longest_ns;   /* the longest time of a piece */
    int failure;           /* the latest failure's negative errno, 0 = none */
    int failure_fd;        /* and its descriptor */
};

/* If all members are zero, there is no thread, and the caller's thread writes. */
struct rm_writer {
    unsigned char *queue; /* NULL = no thread */
    size_t capacity;
    uint64_t lost, direct, direct_failed; /* counts of the loop's thread */
    int direct_failure, direct_fd;
    struct rm_write *first, *last; /* writes whose done() is to be called, in order */
    pthread_t thread;
    int wake_fd, empty_fd; /* eventfds: work was added; the queue is empty */
    uv_async_t ended;
    void (*on_failure)(void *user);
    void *user;
    /* Free-running positions: the loop writes at `tail`, the thread reads at `head`. */
    _Atomic uint64_t tail;
    _Atomic uint32_t stop, flush;
    _Atomic uint64_t head;
    _Atomic uint64_t written, failed, longest_ns;
    _Atomic int failure, failure_fd;
};

/* Starts the thread, with room for `capacity` bytes, of which 32 to 63 are used for each piece's
 * head and end. A piece of less than half the capacity always fits into an empty queue. The loop
 * calls `on_failure` after pieces that could not be written; it may be NULL. Errors: -ENOMEM,
 * -EAGAIN, -EMFILE; then *writer is all zeros. */
int rm_writer_open(struct rm_writer *writer, uv_loop_t *loop, size_t capacity,
                   void (*on_failure)(void *user), void *user, struct rm_error *error);

/* Adds bytes to the queue. Without a thread they are written at once.
 *
 * Returns RM_WRITER_QUEUED; 0: written, and `write->done` is not called; -ENOBUFS: no room,
 * counted; another negative errno: there is no thread, and they could not be written. */
#define RM_WRITER_QUEUED 1
int rm_writer_put(struct rm_writer *writer, rm_write_fn how, int fd, const void *data, size_t bytes,
                  struct rm_write *write);

/* Returns when everything added so far was written or has failed. Blocks: for the beginning and the
 * end of a run. Calls done() of the pieces that were written. */
void rm_writer_flush(struct rm_writer *writer);

/* The same, and ends the thread; afterwards *writer works without a thread, and keeps its counts.
 * The loop must still run once to close the handle, unless a walk over all handles closes it. */
void rm_writer_close(struct rm_writer *writer);

struct rm_writer_counts rm_writer_counts(const struct rm_writer *writer);

#endif
