/* client: one connection to an experiment's control socket. Blocking, with a deadline per call.
 * Used by one thread. The protocol is described in docs/control.md. */
#ifndef RM_DAEMON_CTL_CLIENT_H
#define RM_DAEMON_CTL_CLIENT_H

#include "shm/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#define RM_CTL_CLIENT_PROTOCOL    1
#define RM_CTL_CLIENT_REQUEST_MAX 65536     /* bytes of a request's line, newline included */
#define RM_CTL_CLIENT_LINE_MAX    (1 << 20) /* most bytes of a received line */
#define RM_CTL_CLIENT_EVENTS_MAX  256       /* events kept while a reply is awaited */

struct rm_ctl_client {
    int fd;       /* -1 when closed */
    pid_t daemon; /* that listens there; 0 before the first connection, and if it cannot be seen */
    struct sockaddr_un address;
    uint64_t timeout_ns; /* of each call, with its connecting; 0 = no limit */
    uint64_t next_id;
    bool subscribed;  /* to events, which another connection would not get */
    size_t used;      /* bytes of `line` received and not yet taken */
    char *line;       /* [RM_CTL_CLIENT_LINE_MAX] */
    json_t *greeting; /* {"version", "protocol", "capabilities"} */
    json_t *events;   /* array: arrived while a reply was awaited */
    uint64_t dropped; /* events dropped here because `events` was full */
};

/* Connects and reads the greeting. Returns 0, or a negative errno with the client closed. -ENOENT,
 * -ECONNREFUSED, -EACCES and the like: cannot connect. -EPROTO: another protocol or another
 * version. -ETIMEDOUT. -ECONNRESET: the connection was closed before the end of the greeting. If
 * the daemon has no room for another client, tries again until the deadline. */
int rm_ctl_client_open(struct rm_ctl_client *client, const char *path, uint64_t timeout_ns,
                       struct rm_error *error);
void rm_ctl_client_close(struct rm_ctl_client *client);

/* Connects again, without a subscription. Errors as above, and -ECONNRESET if the experiment has
 * ended. After an error the client is closed, and the next call connects first. */
int rm_ctl_client_again(struct rm_ctl_client *client, struct rm_error *error);

/* Executes a command. `arguments` may be NULL; the call takes over the reference. *reply is the
 * value of "return", a new reference. If the daemon closed the connection of a client without a
 * subscription to make room for another (docs/control.md), connects again first. -EREMOTEIO: the
 * daemon refused the command, with "class: description" in `error`. Other errors are those of
 * rm_ctl_client_open(). */
int rm_ctl_client_call(struct rm_ctl_client *client, const char *command, json_t *arguments,
                       json_t **reply, struct rm_error *error);

/* Waits for the next event, at most timeout_ns (0: without limit). Returns 0 with *event, a new
 * reference; -ETIMEDOUT; -ECONNRESET if the experiment has ended; -EPROTO; -EREMOTEIO if the daemon
 * closed the connection to make room for another client. */
int rm_ctl_client_event(struct rm_ctl_client *client, uint64_t timeout_ns, json_t **event,
                        struct rm_error *error);

/* Maps an error of the functions above to an enum rm_ctl_exit value. */
int rm_ctl_client_exit_code(int rc);

#endif
