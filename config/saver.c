#include "config/saver.h"

#include "shm/atomic.h"
#include "shm/base/fault.h"

#include <signal.h>
#include <stdio.h>

void rm_saver_give_up(struct rm_saver *saver, uint64_t number, const struct rm_error *error)
{
    fprintf(stderr, "checkpoint %llu: %s: %s\n", (unsigned long long)number, saver->slot->name,
            error->text);
    RM_POKE(&saver->slot->checkpoint_failed, number);
    RM_RAISE(&saver->slot->checkpoint_written, number);
}

static void *write_all(void *argument)
{
    struct rm_saver *saver = argument;
    struct rm_error error = {""};
    RM_FAULT("checkpoint.worker.before");
    const int rc = saver->write(saver->self, saver->state, saver->folder, &error);
    RM_FAULT("checkpoint.worker.after");
    rm_state_destroy(saver->state);
    saver->state = NULL;
    if (rc)
        rm_saver_give_up(saver, saver->number, &error);
    else
        RM_RAISE(&saver->slot->checkpoint_written, saver->number);
    return NULL;
}

void rm_saver_begin(struct rm_saver *saver, const struct rm_session *session, uint64_t number,
                    struct rm_state *state)
{
    struct rm_error error = {""};
    sigset_t all, before;
    rm_saver_end(saver);
    saver->number = number;
    saver->state = state;
    if (rm_session_checkpoint_folder(session->directory, number, true, saver->folder, &error)) {
        rm_state_destroy(state);
        rm_saver_give_up(saver, number, &error);
        return;
    }
    /* Signals are for the worker's own thread, which sleeps where they must wake it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    saver->running = pthread_create(&saver->thread, NULL, write_all, saver) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!saver->running)
        write_all(saver); /* then the worker waits for the disk this once */
}

void rm_saver_end(struct rm_saver *saver)
{
    if (saver->running)
        pthread_join(saver->thread, NULL);
    saver->running = false;
}
