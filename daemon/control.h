/* control: the server side of the control socket. Reads lines, passes requests to execute(), writes
 * replies and events; does not know the commands. On libuv's loop; one thread.
 *
 * The cost of clients is bounded: at most RM_CONTROL_CLIENTS_MAX clients, with 64 KiB of input
 * each. One more client takes the place of a client with fewer rights, or of one with no more
 * rights that has asked nothing for RM_CONTROL_PATIENCE_NS, awaits no reply and has no
 * subscription. The replaced client gets a line that says so. If there is none, the new client is
 * refused. If a client does not read its replies, its requests are not read either, and it is
 * closed after RM_CONTROL_PATIENCE_NS without progress; events beyond RM_CONTROL_EVENTS_QUEUED
 * bytes are dropped and counted. After RM_CONTROL_TURN_NS of answers the loop continues with its
 * other work; the remaining requests wait in line, the longest waiting first. */
#ifndef RM_DAEMON_CONTROL_H
#define RM_DAEMON_CONTROL_H

#include "daemon/protocol.h"
#include "shm/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#define RM_CONTROL_CLIENTS_MAX   256
#define RM_CONTROL_BACKLOG       1024       /* connections that wait to be accepted */
#define RM_CONTROL_OUTPUT_HIGH   262144     /* queued bytes from which a client is not read */
#define RM_CONTROL_EVENTS_QUEUED 131072     /* queued bytes from which its events are dropped */
#define RM_CONTROL_TURN_NS       2000000ull /* time for answers in one turn */
#define RM_CONTROL_PATIENCE_NS   10000000000ull

struct rm_connection;
struct rm_control;

struct rm_control_counts {
    uint32_t clients;
    uint64_t accepted;
    uint64_t refused; /* too many clients */
    uint64_t requests;
    uint64_t refusals;    /* requests answered with an error */
    uint64_t slow_closed; /* clients closed because they did not read */
    uint64_t events_lost;
};

struct rm_control_ops {
    /* Makes the reply to a parsed request; *reply is a new reference. After
     * rm_connection_defer() nothing is sent yet. */
    enum rm_refusal (*execute)(void *user, struct rm_connection *client,
                               const struct rm_request *request, json_t **reply,
                               struct rm_error *error);
    /* The first client connected, or the last one left: timers may start or stop. May be NULL. */
    void (*watched)(void *user, bool watched);
};

/* Serves on a listening descriptor, and owns it from now on, also on failure. */
int rm_control_open(struct rm_control **control, uv_loop_t *loop, int listen_fd,
                    const struct rm_control_ops *ops, void *user, struct rm_error *error);

/* Sends the queued output that the sockets take at once, and closes everything. The loop must run
 * once more, which frees `*control`, before it is closed itself. */
void rm_control_close(struct rm_control *control);

/* Sends an event to every subscriber. `data` is borrowed. */
void rm_control_event(struct rm_control *control, const char *name, json_t *data);

/* Closes clients that have taken none of their output for more than RM_CONTROL_PATIENCE_NS between
 * two calls of this. `now_ns` is the only clock that patience goes by. Call about once a second
 * while rm_control_counts().clients > 0. */
void rm_control_expire(struct rm_control *control, uint64_t now_ns);

/* After the daemon did not run for so long: gives clients that do not read as much more time. */
void rm_control_away(struct rm_control *control, uint64_t away_ns);

struct rm_control_counts rm_control_counts(const struct rm_control *control);

/* For a command that continues after its return: rm_control_answer() sends its reply, and until
 * then no other request of this client is read. */
void rm_connection_defer(struct rm_connection *client);
uint64_t rm_connection_number(const struct rm_connection *client); /* from 1; unique */

/* Sends the reply to a deferred request, if the client is still there. Takes `reply`; `error` says
 * why the request was refused. */
void rm_control_answer(struct rm_control *control, uint64_t client, enum rm_refusal refusal,
                       json_t *reply, const struct rm_error *error);

/* The client's identity, for access checks and the journal. */
enum rm_access rm_connection_access(const struct rm_connection *client);
uid_t rm_connection_uid(const struct rm_connection *client);
pid_t rm_connection_pid(const struct rm_connection *client);
void rm_connection_subscribe(struct rm_connection *client, bool on);

/* Level of a peer by its credentials: root and the daemon's own user administer, members of the
 * daemon's group operate, others see. */
enum rm_access rm_access_of(uid_t peer_uid, gid_t peer_gid, uid_t own_uid, gid_t own_gid);

#endif
