/* writer: writes to descriptors in a thread of its own, so that the event loop never waits for a
 * disk, an unread pipe or a journal that is busy. What is handed over is copied into a queue of
 * fixed size and written in that order; what does not fit is left out and counted. Nothing is
 * allocated after rm_writer_open(), by the thread never.
 *
 * Handed over and counted by the event loop's thread only: the queue has one writer and one reader,
 * and no lock that a process made meanwhile could find taken. Of a process that is killed what
 * stands in the queue is lost: its capacity at most, as a rule nothing, since the thread
 * writes as soon as there is something. */
#ifndef RM_DAEMON_WRITER_H
#define RM_DAEMON_WRITER_H

#include "shm/base/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

/* How bytes go to a descriptor. 0 or negative errno. Called by the thread. */
typedef int (*rm_write_fn)(int fd, const void *data, size_t bytes);

/* Appends to a file that no other process writes: all of it, or nothing. */
int rm_write_append(int fd, const void *data, size_t bytes);
/* The same, and it is on the disk when this returns. */
int rm_write_durably(int fd, const void *data, size_t bytes);
/* To a pipe or a terminal, or a file: all of it, as it takes it, even if it does not block. */
int rm_write_through(int fd, const void *data, size_t bytes);

/* One whose end its owner wants to know. Stays where it is until `done` was called, in the loop. */
struct rm_write {
    void (*done)(struct rm_write *write, int rc);
    void *user;
    /* the writer's: */
    struct rm_write *next;
    int rc;
    _Atomic uint32_t over;
};

struct rm_writer_counts {
    uint64_t queued_bytes; /* not written yet */
    uint64_t written;      /* pieces */
    uint64_t lost;         /* pieces for which there was no room */
    uint64_t failed;       /* pieces that could not be written */
    uint64_t longest_ns;   /* that one took */
    int failure;           /* the latest failure's negative errno, 0 = none */
    int failure_fd;        /* and what it was to go to */
};

/* All zeros: has no thread, and writes at once. */
struct rm_writer {
    unsigned char *queue; /* NULL = no thread */
    size_t capacity;
    uint64_t lost, direct, direct_failed; /* the loop's own counts */
    int direct_failure, direct_fd;
    struct rm_write *first, *last; /* writes whose done() is to be called, in order */
    pthread_t thread;
    int wake_fd, empty_fd; /* eventfds: something to do, and nothing left */
    uv_async_t ended;
    void (*on_failure)(void *user);
    void *user;
    /* Free-running positions: the loop puts at `tail`, the thread takes at `head`. */
    _Atomic uint64_t tail;
    _Atomic uint32_t stop, flush;
    _Atomic uint64_t head;
    _Atomic uint64_t written, failed, longest_ns;
    _Atomic int failure, failure_fd;
};

/* Starts the thread, with room for `capacity` bytes, 32 to 63 of them for each piece's head and
 * end; one of less than half of it always finds room where nothing is queued. `on_failure`, in
 * the loop, after pieces that could not be written; may be NULL. Errors: -ENOMEM, -EAGAIN, -EMFILE;
 * then *writer is all zeros. */
int rm_writer_open(struct rm_writer *writer, uv_loop_t *loop, size_t capacity,
                   void (*on_failure)(void *user), void *user, struct rm_error *error);

/* Hands bytes over. Without a thread they are written here and now.
 *
 * Returns RM_WRITER_QUEUED; 0: written, `write->done` is not called; -ENOBUFS: no room, counted;
 * another negative errno: there is no thread, and they could not be written. */
#define RM_WRITER_QUEUED 1
int rm_writer_put(struct rm_writer *writer, rm_write_fn how, int fd, const void *data, size_t bytes,
                  struct rm_write *write);

/* Returns when everything handed over so far was written or could not be. Blocks: for the beginning
 * and the end of a run. Calls done() of the pieces that were written. */
void rm_writer_flush(struct rm_writer *writer);

/* The same, and ends the thread; from then on *writer is as without one, its counts kept. The loop
 * must still run once to close the handle, unless it is closed by a walk over all of them. */
void rm_writer_close(struct rm_writer *writer);

struct rm_writer_counts rm_writer_counts(const struct rm_writer *writer);

#endif
