/* guard: decides from the head of a request whether ringmaster-web answers it: by host, origin,
 * token or session. Used by the thread that serves HTTP. The caller owns the struct. */
#ifndef RM_DAEMON_WEB_GUARD_H
#define RM_DAEMON_WEB_GUARD_H

#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define RM_WEB_GUARD_TOKEN_MIN 32 /* bytes of a token */
#define RM_WEB_GUARD_TOKEN_MAX 256
#define RM_WEB_GUARD_SECRET    65 /* bytes of a random secret in hexadecimal, NUL included */
#define RM_WEB_GUARD_SESSIONS  16 /* most sessions at a time; a new session replaces the oldest */
#define RM_WEB_GUARD_HOSTS     16 /* most options --host */

struct rm_web_guard {
    const char *host[RM_WEB_GUARD_HOSTS]; /* names allowed besides those of the loopback address */
    size_t hosts;
    bool open; /* a Unix socket: its file mode decides who may connect, and there is no token */
    char token[RM_WEB_GUARD_TOKEN_MAX + 1];
    char session[RM_WEB_GUARD_SESSIONS][RM_WEB_GUARD_SECRET]; /* "": none */
    size_t next;
};

/* Is the Host header's value (NULL: none) on the list, with or without a port? */
bool rm_web_guard_host(const struct rm_web_guard *guard, const char *host);

/* Does the Origin header name the same host and port as the Host header, with http or https? */
bool rm_web_guard_origin(const char *origin, const char *host);

/* Compares two texts. The time does not depend on the position of the first different byte. */
bool rm_web_guard_equal(const char *one, const char *other);

/* Does the Authorization header (NULL: none) have the value "Bearer TOKEN" with the right token? */
bool rm_web_guard_bearer(const struct rm_web_guard *guard, const char *authorization);

/* Is this the cookie value (NULL: none) of a session? */
bool rm_web_guard_session(const struct rm_web_guard *guard, const char *cookie);

/* Begins a session. Returns the value of its cookie; NULL if the kernel has no randomness. */
const char *rm_web_guard_begin(struct rm_web_guard *guard);

/* Fills secret[RM_WEB_GUARD_SECRET]; negative errno if the kernel has no randomness. */
int rm_web_guard_secret(char *secret, struct rm_error *error);

/* Reads the token from a file. If the file does not exist, creates it with a new token. -EPERM:
 * other users can read the file. -EINVAL: the token is too short or too long, or has characters
 * other than letters, digits, '-', '.', '_', '~'. */
int rm_web_guard_token_file(struct rm_web_guard *guard, const char *path, struct rm_error *error);

#endif
