/* server: HTTP on loopback or on a Unix socket. One thread serves connections (libmicrohttpd's) and
 * asks nothing but the head of a request; the caller's thread asks the experiments. */
#ifndef RM_DAEMON_WEB_SERVER_H
#define RM_DAEMON_WEB_SERVER_H

#include "daemon/web/guard.h"
#include "shm/base/error.h"

#define RM_SERVER_CONNECTIONS 64    /* at a time; others wait */
#define RM_SERVER_TIME_S      10    /* of a connection, for one request */
#define RM_SERVER_HEAD_BYTES  16384 /* of a request's head, and other memory */
#define RM_SERVER_DYGRAPHS    "/usr/share/javascript/dygraphs" /* Debian's libjs-dygraphs */

struct rm_server_options {
    const char *socket;  /* a Unix socket, or NULL */
    const char *address; /* "127.0.0.1" or "::1" */
    int port;            /* 0: any */
    bool control;        /* commands are allowed */
    struct rm_guard guard;
};

/* Listens, prints on standard output where, and serves until SIGINT or SIGTERM. 0 or a negative
 * errno with a message. Changes the guard: sessions begin. */
int rm_server_run(struct rm_server_options *options, struct rm_error *error);

#endif
