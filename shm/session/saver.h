/* saver: writes a worker's part of a checkpoint in a separate thread, so that the worker continues
 * as soon as its state is copied. Belongs to one duty; one checkpoint at a time. */
#ifndef RM_SHM_SESSION_SAVER_H
#define RM_SHM_SESSION_SAVER_H

#include "shm/session/session.h"
#include "shm/base/state.h"

#include <pthread.h>
#include <stdbool.h>

struct rm_saver {
    struct rm_board_worker *slot; /* the slot on the board that gets the result */
    /* Called in the thread: writes into `folder`, which exists. */
    int (*write)(void *self, const struct rm_state *state, const char *folder,
                 struct rm_error *error);
    void *self;

    pthread_mutex_t lock; /* protects the next two fields; all zeros is PTHREAD_MUTEX_INITIALIZER */
    uint64_t said;        /* the latest checkpoint with a result on the board */
    bool over;            /* the thread has written its files and results */
    pthread_t thread;
    bool running; /* the thread must be joined */
    uint64_t number;
    struct rm_state *state;
    char folder[RM_SESSION_PATH_MAX];
};

/* May checkpoint `number` begin? If the one before, which others have given up, is still being
 * written, this one fails too, so that the worker does not wait for the disk. */
bool rm_saver_is_free(struct rm_saver *saver, uint64_t number);

/* Takes ownership of the state and begins to write it for checkpoint `number`. Writes the result,
 * success or failure, to the board. */
void rm_saver_begin(struct rm_saver *saver, const struct rm_session *session, uint64_t number,
                    struct rm_state *state);

/* Fails checkpoint `number` with the negative errno `rc`; `error` says why. Logs the failure,
 * except a full disk: the daemon reports a full disk once for all workers. */
void rm_saver_give_up(struct rm_saver *saver, uint64_t number, int rc,
                      const struct rm_error *error);

/* Waits until the current checkpoint is written. */
void rm_saver_end(struct rm_saver *saver);

#endif
