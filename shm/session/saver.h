/* saver: writes a worker's part of a checkpoint in a thread of its own, so that the worker goes on
 * as soon as its state is copied. Belongs to one duty; one checkpoint at a time. */
#ifndef RM_SHM_SESSION_SAVER_H
#define RM_SHM_SESSION_SAVER_H

#include "shm/session/session.h"
#include "shm/base/state.h"

#include <pthread.h>
#include <stdbool.h>

struct rm_saver {
    struct rm_board_worker *slot; /* where it says what came of it */
    /* Called in the thread: writes into `folder`, which is there. */
    int (*write)(void *self, const struct rm_state *state, const char *folder,
                 struct rm_error *error);
    void *self;

    pthread_mutex_t lock; /* of the two below; all zeros is PTHREAD_MUTEX_INITIALIZER */
    uint64_t said;        /* the latest checkpoint of which something stands on the board */
    bool over;            /* the thread has written and said all */
    pthread_t thread;
    bool running; /* to be joined */
    uint64_t number;
    struct rm_state *state;
    char folder[RM_SESSION_PATH_MAX];
};

/* May checkpoint `number` be begun? Where the one before it, given up by others, is still on its
 * way to the disk, this one is given up too: nobody waits for a disk. */
bool rm_saver_is_free(struct rm_saver *saver, uint64_t number);

/* Takes the state over and begins to write it for checkpoint `number` of the run, once the one
 * before is written. Says on the board when it is written, and when it cannot be. */
void rm_saver_begin(struct rm_saver *saver, const struct rm_session *session, uint64_t number,
                    struct rm_state *state);

/* There is nothing to write: `error` says why. */
void rm_saver_give_up(struct rm_saver *saver, uint64_t number, const struct rm_error *error);

/* Waits until what was begun is written. */
void rm_saver_end(struct rm_saver *saver);

#endif
