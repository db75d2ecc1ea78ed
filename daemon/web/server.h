/* server: serves HTTP on the loopback address or on a Unix socket. A thread of libmicrohttpd serves
 * the connections and checks the head of each request; the caller's thread asks the experiments. */
#ifndef RM_DAEMON_WEB_SERVER_H
#define RM_DAEMON_WEB_SERVER_H

#include "daemon/web/guard.h"
#include "shm/base/error.h"

#define RM_SERVER_CONNECTIONS 64    /* most connections at a time; others wait */
#define RM_SERVER_TIME_S      10    /* time limit of a connection for one request, in seconds */
#define RM_SERVER_HEAD_BYTES  16384 /* memory of a connection: its request's head and the rest */
#define RM_SERVER_DYGRAPHS    "/usr/share/javascript/dygraphs" /* Debian's libjs-dygraphs */

struct rm_server_options {
    const char *socket;  /* a Unix socket, or NULL */
    const char *address; /* "127.0.0.1" or "::1" */
    int port;            /* 0: any */
    bool control;        /* commands are allowed */
    struct rm_web_guard guard;
};

/* Listens, prints the address on standard output, and serves until SIGINT or SIGTERM. Returns 0, or
 * a negative errno with a message. Writes new sessions to options->guard. */
int rm_server_run(struct rm_server_options *options, struct rm_error *error);

#endif
