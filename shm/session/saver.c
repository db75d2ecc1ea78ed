#include "shm/session/saver.h"

#include "shm/atomic.h"
#include "shm/base/fault.h"
#include "shm/base/severity.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

/* Writes the result of checkpoint `number` to the board, unless a later one has failed meanwhile:
 * the board has the result of the latest. */
static void post_result(struct rm_saver *saver, uint64_t number, int rc)
{
    pthread_mutex_lock(&saver->lock);
    if (number >= saver->said) {
        saver->said = number;
        RM_POKE(&saver->slot->checkpoint_failed, (uint64_t)-rc);
        RM_RAISE(&saver->slot->checkpoint_written, number);
    }
    pthread_mutex_unlock(&saver->lock);
}

void rm_saver_give_up(struct rm_saver *saver, uint64_t number, int rc, const struct rm_error *error)
{
    if (rc != -ENOSPC && rc != -EDQUOT)
        fprintf(stderr, RM_SEVERITY_WARNING "checkpoint %llu: %s: %s\n", (unsigned long long)number,
                saver->slot->name, error->text);
    post_result(saver, number, rc);
}

bool rm_saver_is_free(struct rm_saver *saver, uint64_t number)
{
    struct rm_error error;
    pthread_mutex_lock(&saver->lock);
    const bool over = saver->over;
    pthread_mutex_unlock(&saver->lock);
    if (!saver->running || over)
        return true;
    const int rc = rm_fail(&error, -EBUSY, "checkpoint %llu is still being written to the disk",
                           (unsigned long long)saver->number);
    rm_saver_give_up(saver, number, rc, &error);
    return false;
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
        rm_saver_give_up(saver, saver->number, rc, &error);
    else
        post_result(saver, saver->number, 0);
    pthread_mutex_lock(&saver->lock);
    saver->over = true;
    pthread_mutex_unlock(&saver->lock);
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
    const int rc =
        rm_session_checkpoint_folder(session->directory, number, true, saver->folder, &error);
    if (rc) {
        rm_state_destroy(state);
        rm_saver_give_up(saver, number, rc, &error);
        return;
    }
    /* Block all signals here: they must wake the worker's own thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    saver->over = false;
    saver->running = pthread_create(&saver->thread, NULL, write_all, saver) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!saver->running)
        write_all(saver); /* without a thread the worker itself writes, and waits for the disk */
}

void rm_saver_end(struct rm_saver *saver)
{
    if (saver->running)
        pthread_join(saver->thread, NULL);
    saver->running = false;
}
