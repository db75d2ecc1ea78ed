/* guard: who may ask ringmaster-web, by the head of a request: hosts, origins, the token, sessions.
 * Used by the thread that serves HTTP; the caller owns everything. */
#ifndef RM_DAEMON_WEB_GUARD_H
#define RM_DAEMON_WEB_GUARD_H

#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define RM_GUARD_TOKEN_MIN 32 /* bytes of a token */
#define RM_GUARD_TOKEN_MAX 256
#define RM_GUARD_SECRET    65 /* bytes of a random secret in hexadecimal, NUL included */
#define RM_GUARD_SESSIONS  16 /* browsers at a time; the oldest has to log in again */
#define RM_GUARD_HOSTS     16 /* names of --host */

struct rm_guard {
    const char *host[RM_GUARD_HOSTS]; /* allowed beside loopback's own names */
    size_t hosts;
    bool open; /* a Unix socket: its mode is the guard, and there is no token */
    char token[RM_GUARD_TOKEN_MAX + 1];
    char session[RM_GUARD_SESSIONS][RM_GUARD_SECRET]; /* "": none */
    size_t next;
};

/* Is the Host header's value (NULL: none) on the list, with or without a port? */
bool rm_guard_host(const struct rm_guard *guard, const char *host);

/* Does the Origin header name the same place as the Host header, by http or https? */
bool rm_guard_origin(const char *origin, const char *host);

/* Are these texts equal? Takes as long for the first different byte as for the last. */
bool rm_guard_equal(const char *one, const char *other);

/* "Bearer TOKEN" of an Authorization header (NULL: none). */
bool rm_guard_bearer(const struct rm_guard *guard, const char *authorization);

/* The value of a session's cookie (NULL: none). */
bool rm_guard_session(const struct rm_guard *guard, const char *cookie);

/* Begins a session; returns the value of its cookie, or NULL: there is no randomness. */
const char *rm_guard_begin(struct rm_guard *guard);

/* Fills secret[RM_GUARD_SECRET]; negative errno if the kernel has no randomness. */
int rm_guard_secret(char *secret, struct rm_error *error);

/* Reads the token of a file, or makes the file, with a new token, if there is none. -EPERM: other
 * users could read it; -EINVAL: it is too short, too long, or has other characters than letters,
 * digits, '-', '.', '_', '~'. */
int rm_guard_token_file(struct rm_guard *guard, const char *path, struct rm_error *error);

#endif
