#include "daemon/web/guard.h"

#include "shm/base/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const own_hosts[] = {"localhost", "127.0.0.1", "[::1]"};

/* Length of a Host header without its port; 0: it is none. */
static size_t without_port(const char *host)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
    const size_t length = end ? (size_t)(end + 1 - host) : strcspn(host, ":");
    if (host[length] == '\0')
        return length;
    if (host[length] != ':' || !host[length + 1] || strlen(host + length + 1) > 5)
        return 0;
    return host[length + 1 + strspn(host + length + 1, "0123456789")] ? 0 : length;
}

static bool names(const char *allowed, const char *host, size_t length)
{
    return strlen(allowed) == length && strncasecmp(allowed, host, length) == 0;
}

bool rm_web_guard_host(const struct rm_web_guard *guard, const char *host)
{
    const size_t length = host ? without_port(host) : 0;
    for (size_t i = 0; length && i < sizeof own_hosts / sizeof own_hosts[0]; i++)
        if (names(own_hosts[i], host, length))
            return true;
    for (size_t i = 0; length && i < guard->hosts; i++)
        if (names(guard->host[i], host, length))
            return true;
    return false;
}

bool rm_web_guard_origin(const char *origin, const char *host)
{
    if (!origin || !host)
        return false;
    const size_t scheme = !strncmp(origin, "http://", 7)    ? 7
                          : !strncmp(origin, "https://", 8) ? 8
                                                            : 0;
    return scheme && strcasecmp(origin + scheme, host) == 0;
}

bool rm_web_guard_equal(const char *one, const char *other)
{
    const size_t length = strlen(one);
    volatile unsigned char different = length != strlen(other);
    const char *beside = different ? one : other;
    for (size_t i = 0; i < length; i++)
        different |= (unsigned char)(one[i] ^ beside[i]);
    return !different;
}

bool rm_web_guard_bearer(const struct rm_web_guard *guard, const char *authorization)
{
    return authorization && !strncasecmp(authorization, "Bearer ", 7) && guard->token[0] &&
           rm_web_guard_equal(guard->token, authorization + 7);
}

bool rm_web_guard_session(const struct rm_web_guard *guard, const char *cookie)
{
    bool known = false;
    for (size_t i = 0; cookie && i < RM_WEB_GUARD_SESSIONS; i++)
        known |= guard->session[i][0] && rm_web_guard_equal(guard->session[i], cookie);
    return known;
}

int rm_web_guard_secret(char *secret, struct rm_error *error)
{
    unsigned char bytes[RM_WEB_GUARD_SECRET / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return rm_fail(error, -errno, "getrandom: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(secret + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

const char *rm_web_guard_begin(struct rm_web_guard *guard)
{
    char *session = guard->session[guard->next];
    if (rm_web_guard_secret(session, NULL)) {
        session[0] = '\0';
        return NULL;
    }
    guard->next = (guard->next + 1) % RM_WEB_GUARD_SESSIONS;
    return session;
}

static int make_token(struct rm_web_guard *guard, const char *path, struct rm_error *error)
{
    char secret[RM_WEB_GUARD_SECRET + 1];
    int rc = rm_web_guard_secret(secret, error);
    if (rc)
        return rc;
    memcpy(guard->token, secret, RM_WEB_GUARD_SECRET);
    secret[RM_WEB_GUARD_SECRET - 1] = '\n';
    const int fd = rm_file_open(path, O_WRONLY | O_CREAT | O_EXCL, 0600, error);
    if (fd < 0)
        return fd;
    rc = rm_file_write_all(fd, secret, RM_WEB_GUARD_SECRET);
    close(fd);
    return rc ? rm_fail(error, rc, "%s: %s", path, strerror(-rc)) : 0;
}

static int check_token(const char *token, size_t length, const char *path, struct rm_error *error)
{
    if (length < RM_WEB_GUARD_TOKEN_MIN || length > RM_WEB_GUARD_TOKEN_MAX)
        return rm_fail(error, -EINVAL, "%s: the token has %zu characters, must have %d to %d", path,
                       length, RM_WEB_GUARD_TOKEN_MIN, RM_WEB_GUARD_TOKEN_MAX);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)token[i]) && (!token[i] || !strchr("-._~", token[i])))
            return rm_fail(error, -EINVAL,
                           "%s: a token has only letters, digits, '-', '.', '_' and '~'", path);
    return 0;
}

int rm_web_guard_token_file(struct rm_web_guard *guard, const char *path, struct rm_error *error)
{
    struct stat is;
    if (lstat(path, &is) < 0 && errno == ENOENT)
        return make_token(guard, path, error);
    if (lstat(path, &is) == 0 && (is.st_mode & 077))
        return rm_fail(error, -EPERM, "%s: other users may read it; chmod 600 %s", path, path);
    char *text;
    size_t bytes;
    int rc = rm_file_read(path, 4096, &text, &bytes, error);
    if (rc)
        return rc;
    size_t length = 0; /* of the first line */
    while (length < bytes && text[length] != '\n' && text[length] != '\r')
        length++;
    rc = check_token(text, length, path, error);
    if (rc == 0) {
        memcpy(guard->token, text, length);
        guard->token[length] = '\0';
    }
    free(text);
    return rc;
}
