/* What is left on the disk of checkpoints that were given up is removed. */
#include "daemon/checkpoint.h"

#include "daemon/daemon.h"

static struct rm_checkpointer *of(struct rm_daemon *daemon)
{
    return &daemon->checkpoint;
}

static void remove_rest(uv_work_t *work)
{
    struct rm_checkpointer *c = &((struct rm_daemon *)work->data)->checkpoint;
    for (uint64_t n = c->removing_first; n <= c->removing_last; n++)
        rm_checkpoint_abandon(c->run_directory, n); /* those that were made have nothing left */
}

static void rest_removed(uv_work_t *work, int status);

/* Removing files can wait for the disk, so a thread does it. */
static void remove_abandoned(struct rm_daemon *daemon)
{
    struct rm_checkpointer *c = of(daemon);
    if (c->removing_first || !c->remove_first)
        return;
    c->removing_first = c->remove_first;
    c->removing_last = c->remove_last;
    c->remove_first = 0;
    c->removal.data = daemon;
    if (uv_queue_work(&daemon->loop, &c->removal, remove_rest, rest_removed) < 0) {
        remove_rest(&c->removal);
        c->removing_first = 0;
    }
}

static void rest_removed(uv_work_t *work, int status)
{
    struct rm_daemon *daemon = work->data;
    (void)status;
    of(daemon)->removing_first = 0;
    remove_abandoned(daemon);
}

void rm_daemon_abandon_checkpoint(struct rm_daemon *daemon)
{
    struct rm_checkpointer *c = of(daemon);
    if (!c->remove_first)
        c->remove_first = c->number;
    c->remove_last = c->number;
    remove_abandoned(daemon);
}
