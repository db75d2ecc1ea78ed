/* policies: writes the current policies as files into policies/newest/ of the run directory, for
 * `ringctl watch` and other clients. A thread of the loop reads the weights from shared memory and
 * writes the files, one request at a time. Only the event loop's thread may call these functions.
 */
#ifndef RM_DAEMON_POLICIES_H
#define RM_DAEMON_POLICIES_H

#include "daemon/protocol.h"
#include "daemon/run_directory.h"
#include "shm/session/session.h"

#include <stdint.h>
#include <uv.h>

struct rm_policies {
    /* Set once, before the first request. */
    uv_loop_t *loop;
    const struct rm_session *session;
    const struct rm_run_directory *directory;
    /* Answers a client; takes `reply`, which is NULL after an error. */
    void (*answer)(void *user, uint64_t client, enum rm_refusal refusal, json_t *reply,
                   const struct rm_error *error);
    void *user;

    struct rm_policies_job *job; /* the request in progress, or NULL */
};

/* Begins to write the files; `client` is answered later. -EAGAIN: they are being written for
 * another client; -ENOMEM; or an error of libuv. */
int rm_policies_write(struct rm_policies *policies, uint64_t client, struct rm_error *error);

#endif
