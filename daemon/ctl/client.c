#include "daemon/ctl/client.h"

#include "daemon/ctl/exit_code.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS (10 * RM_NS_PER_MS) /* between attempts, at first */

int rm_ctl_client_exit_code(int rc)
{
    switch (rc) {
    case 0:
        return RM_CTL_OK;
    case -EREMOTEIO:
        return RM_CTL_REFUSED;
    case -ETIMEDOUT:
        return RM_CTL_TIMED_OUT;
    case -EPROTO:
    case -ECONNRESET:
        return RM_CTL_PROTOCOL;
    case -EINVAL:
        return RM_CTL_USAGE;
    default:
        return RM_CTL_NO_EXPERIMENT;
    }
}

static uint64_t deadline_after(uint64_t timeout_ns)
{
    return timeout_ns ? rm_now_ns() + timeout_ns : 0;
}

/* Waits until the socket is ready; 0, -ETIMEDOUT or another negative errno. */
static int wait_ready(struct rm_ctl_client *client, short events, uint64_t deadline,
                      struct rm_error *error)
{
    for (;;) {
        int ms = -1;
        if (deadline) {
            uint64_t now = rm_now_ns();
            uint64_t left = deadline > now ? (deadline - now + RM_NS_PER_MS - 1) / RM_NS_PER_MS : 0;
            ms = left > INT_MAX ? INT_MAX : (int)left;
        }
        struct pollfd p = {.fd = client->fd, .events = events};
        int n = poll(&p, 1, ms);
        if (n > 0)
            return 0;
        if (n == 0)
            return rm_fail(error, -ETIMEDOUT, "the experiment does not answer");
        if (errno != EINTR)
            return rm_fail(error, -errno, "poll: %s", strerror(errno));
    }
}

static int lost(struct rm_ctl_client *client, struct rm_error *error)
{
    if (client->used)
        return rm_fail(error, -ECONNRESET, "the connection was closed in the middle of a line");
    return rm_fail(error, -ECONNRESET, "the experiment closed the connection");
}

static bool moves_cursor(unsigned character)
{
    return (character < 0x20 && character != '\t' && character != '\n') ||
           (character >= 0x7f && character < 0xa0);
}

/* What a terminal would obey becomes '?', in the JSON text itself: another user's program may have
 * written it. */
static void make_printable(char *line, size_t length)
{
    static const char question[4] = {'0', '0', '3', 'f'}; /* four digits of a code */
    unsigned code;
    for (size_t i = 0; i < length; i++) {
        const unsigned char now = (unsigned char)line[i];
        const unsigned char next = i + 1 < length ? (unsigned char)line[i + 1] : 0;
        if (now == '\\') {
            char digits[5] = "";
            if (next == 'u' && i + 5 < length)
                memcpy(digits, line + i + 2, 4);
            if (strspn(digits, "0123456789abcdefABCDEF") == 4 &&
                sscanf(digits, "%4x", &code) == 1 && moves_cursor(code))
                memcpy(line + i + 2, question, sizeof question);
            else if (next == 'b' || next == 'f' || next == 'r')
                line[i] = line[i + 1] = '?';
            i++;
        } else if (now == 0xc2 && next >= 0x80 && next < 0xa0) {
            line[i] = line[i + 1] = '?';
        } else if (now < 0x80 && now != '\r' && moves_cursor(now)) {
            line[i] = '?';
        }
    }
}

/* Takes the first whole line off the buffer, parsed. 1, 0 when there is none, -EPROTO. */
static int take_line(struct rm_ctl_client *client, json_t **message, struct rm_error *error)
{
    char *newline = memchr(client->line, '\n', client->used);
    if (!newline)
        return client->used < RM_CTL_CLIENT_LINE_MAX
                   ? 0
                   : rm_fail(error, -EPROTO, "a line is longer than %d bytes",
                             RM_CTL_CLIENT_LINE_MAX);
    size_t length = (size_t)(newline - client->line);
    json_error_t why;
    make_printable(client->line, length);
    *message = json_loadb(client->line, length, 0, &why);
    client->used -= length + 1;
    memmove(client->line, newline + 1, client->used);
    if (!*message)
        return rm_fail(error, -EPROTO, "the reply is not JSON: %s", why.text);
    if (json_is_object(*message))
        return 1;
    json_decref(*message);
    *message = NULL;
    return rm_fail(error, -EPROTO, "the reply is not a JSON object");
}

/* One message, from the buffer or the socket. */
static int receive(struct rm_ctl_client *client, uint64_t deadline, json_t **message,
                   struct rm_error *error)
{
    for (;;) {
        int rc = take_line(client, message, error);
        if (rc)
            return rc < 0 ? rc : 0;
        rc = wait_ready(client, POLLIN, deadline, error);
        if (rc)
            return rc;
        ssize_t n = recv(client->fd, client->line + client->used,
                         RM_CTL_CLIENT_LINE_MAX - client->used, MSG_DONTWAIT);
        if (n > 0)
            client->used += (size_t)n;
        else if (n == 0 || errno == ECONNRESET)
            return lost(client, error);
        else if (errno != EINTR && errno != EAGAIN)
            return rm_fail(error, -errno, "recv: %s", strerror(errno));
    }
}

static int send_all(struct rm_ctl_client *client, const char *text, size_t bytes, uint64_t deadline,
                    struct rm_error *error)
{
    while (bytes) {
        int rc = wait_ready(client, POLLOUT, deadline, error);
        if (rc)
            return rc;
        ssize_t n = send(client->fd, text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0) {
            text += n;
            bytes -= (size_t)n;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return lost(client, error);
        } else if (errno != EINTR && errno != EAGAIN) {
            return rm_fail(error, -errno, "send: %s", strerror(errno));
        }
    }
    return 0;
}

static const char *text_of(const json_t *object, const char *key, const char *fallback)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : fallback;
}

/* Does it say that it has too many clients, or something else that passes? */
static bool not_now(const json_t *message)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(message, "error"), "class"));
    return name && strcmp(name, "not-now") == 0;
}

static int greet(struct rm_ctl_client *client, uint64_t deadline, struct rm_error *error)
{
    json_t *message = NULL;
    int rc = receive(client, deadline, &message, error);
    if (rc)
        return rc;
    json_t *ringmaster = json_object_get(message, "ringmaster");
    json_t *protocol = json_object_get(ringmaster, "protocol");
    if (not_now(message))
        rc = rm_fail(error, -EAGAIN, "%s",
                     text_of(json_object_get(message, "error"), "desc", "it has too many clients"));
    else if (!json_is_integer(protocol))
        rc = rm_fail(error, -EPROTO, "not an experiment: no greeting of Ringmaster");
    else if (json_integer_value(protocol) != RM_CTL_CLIENT_PROTOCOL)
        rc = rm_fail(error, -EPROTO,
                     "the experiment speaks protocol %lld (version %s), but this ringctl speaks %d",
                     (long long)json_integer_value(protocol),
                     text_of(ringmaster, "version", "unknown"), RM_CTL_CLIENT_PROTOCOL);
    else
        client->greeting = json_incref(ringmaster);
    json_decref(message);
    return rc;
}

/* One attempt. -EAGAIN: it is there, and has no room for another client now. */
static int attempt(struct rm_ctl_client *client, uint64_t deadline, struct rm_error *error)
{
    struct ucred peer = {0};
    socklen_t bytes = sizeof peer;
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (client->fd < 0)
        return rm_fail(error, -errno, "socket: %s", strerror(errno));
    /* EAGAIN on a Unix socket: its backlog is full. */
    if (connect(client->fd, (const struct sockaddr *)&client->address, sizeof client->address) < 0)
        return errno == EAGAIN ? rm_fail(error, -EAGAIN, "it accepts no connections")
                               : rm_fail(error, -errno, "cannot connect: %s", strerror(errno));
    getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
    if (client->daemon && peer.pid != client->daemon)
        return rm_fail(error, -ECONNRESET, "the experiment has ended, another one listens there");
    client->daemon = peer.pid;
    return greet(client, deadline, error);
}

/* Before the next attempt: longer each time, and not the same for all who wait. False: it is over.
 */
static bool pause_until(uint64_t deadline, unsigned attempts)
{
    const uint64_t now = rm_now_ns(), step = (attempts < 8 ? attempts + 1 : 8) * PAUSE_NS;
    const uint64_t ns = step + (now / 1000 + (uint64_t)getpid() * 7919) % step;
    if (deadline && now + ns >= deadline)
        return false;
    const struct timespec pause = {(time_t)(ns / RM_NS_PER_S), (long)(ns % RM_NS_PER_S)};
    nanosleep(&pause, NULL);
    return true;
}

static void disconnect(struct rm_ctl_client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    client->used = 0;
    client->subscribed = false;
    json_decref(client->greeting);
    client->greeting = NULL;
}

/* Until it is connected, or cannot be: then the client is closed. */
static int connect_by(struct rm_ctl_client *client, uint64_t deadline, struct rm_error *error)
{
    int rc;
    unsigned attempts = 0;
    do {
        disconnect(client);
        rc = attempt(client, deadline, error);
    } while (rc == -EAGAIN && pause_until(deadline, attempts++));
    if (rc)
        disconnect(client);
    return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

static int connect_again(struct rm_ctl_client *client, uint64_t deadline, struct rm_error *error)
{
    const int rc = connect_by(client, deadline, error);
    return rc == -ENOENT || rc == -ECONNREFUSED
               ? rm_fail(error, -ECONNRESET, "the experiment has ended")
               : rc;
}

int rm_ctl_client_again(struct rm_ctl_client *client, struct rm_error *error)
{
    return connect_again(client, deadline_after(client->timeout_ns), error);
}

int rm_ctl_client_open(struct rm_ctl_client *client, const char *path, uint64_t timeout_ns,
                       struct rm_error *error)
{
    *client = (struct rm_ctl_client){
        .fd = -1, .address.sun_family = AF_UNIX, .timeout_ns = timeout_ns, .next_id = 1};
    if (strlen(path) >= sizeof client->address.sun_path)
        return rm_fail(error, -ENAMETOOLONG, "%s: longer than the %zu bytes of a socket address",
                       path, sizeof client->address.sun_path - 1);
    memcpy(client->address.sun_path, path, strlen(path) + 1);
    client->events = json_array();
    client->line = malloc(RM_CTL_CLIENT_LINE_MAX);
    int rc =
        client->line && client->events ? 0 : rm_fail(error, -ENOMEM, "no memory for a connection");
    if (rc == 0)
        rc = connect_by(client, deadline_after(timeout_ns), error);
    if (rc) {
        rm_ctl_client_close(client);
        return rm_fail_within(error, rc, "%s", path);
    }
    return 0;
}

void rm_ctl_client_close(struct rm_ctl_client *client)
{
    disconnect(client);
    json_decref(client->events);
    free(client->line);
    client->events = NULL;
    client->line = NULL;
}

static void keep_event(struct rm_ctl_client *client, json_t *event)
{
    if (json_array_size(client->events) < RM_CTL_CLIENT_EVENTS_MAX) {
        json_array_append_new(client->events, event);
    } else {
        client->dropped++;
        json_decref(event);
    }
}

static int take_reply(json_t *message, json_t **reply, struct rm_error *error)
{
    json_t *refused = json_object_get(message, "error");
    json_t *value = json_object_get(message, "return");
    if (refused)
        return rm_fail(error, -EREMOTEIO, "%s: %s", text_of(refused, "class", "error"),
                       text_of(refused, "desc", "no description"));
    if (!value)
        return rm_fail(error, -EPROTO, "the reply has neither \"return\" nor \"error\"");
    *reply = json_incref(value);
    return 0;
}

/* Sends request `id` and waits for its reply. -EAGAIN: the daemon closed the connection to make
 * room for another client, as it says in a line without an id. */
static int exchange(struct rm_ctl_client *client, const char *text, size_t bytes, json_int_t id,
                    uint64_t deadline, json_t **reply, struct rm_error *error)
{
    int rc = send_all(client, text, bytes, deadline, error);
    if (rc == -ECONNRESET) /* it may have said why */
        rc = 0;
    while (rc == 0) {
        json_t *message = NULL;
        rc = receive(client, deadline, &message, error);
        if (rc)
            break;
        json_t *got = json_object_get(message, "id");
        if (json_object_get(message, "event")) {
            keep_event(client, message);
            continue;
        }
        /* A reply to a call that timed out earlier may still arrive: it has an older id. */
        bool stale = json_is_integer(got) && json_integer_value(got) < id;
        const bool closing = !got && not_now(message);
        if (!stale)
            rc = take_reply(message, reply, error);
        json_decref(message);
        if (!stale)
            return closing ? -EAGAIN : rc;
    }
    return rc;
}

int rm_ctl_client_call(struct rm_ctl_client *client, const char *command, json_t *arguments,
                       json_t **reply, struct rm_error *error)
{
    *reply = NULL;
    json_int_t id = (json_int_t)client->next_id++;
    json_t *request = json_pack("{s:s, s:I}", "execute", command, "id", id);
    if (arguments)
        json_object_set_new(request, "arguments", arguments);
    char *text = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    if (!text)
        return rm_fail(error, -ENOMEM, "%s: cannot be written as JSON", command);
    size_t length = strlen(text);
    int rc = length + 1 > RM_CTL_CLIENT_REQUEST_MAX
                 ? rm_fail(error, -EINVAL, "%s: the request is longer than %d bytes", command,
                           RM_CTL_CLIENT_REQUEST_MAX)
                 : 0;
    text[length] = '\n'; /* in place of the NUL: what is sent is counted, not terminated */
    const uint64_t deadline = deadline_after(client->timeout_ns);
    if (rc == 0 && client->fd < 0)
        rc = connect_again(client, deadline, error);
    if (rc == 0)
        rc = exchange(client, text, length + 1, id, deadline, reply, error);
    if (rc == -EAGAIN && !client->subscribed) {
        rc = connect_again(client, deadline, error);
        if (rc == 0)
            rc = exchange(client, text, length + 1, id, deadline, reply, error);
        if (rc == -EAGAIN)
            disconnect(client);
    }
    client->subscribed |= rc == 0 && strcmp(command, "events") == 0;
    free(text);
    return rc == -EAGAIN ? -EREMOTEIO : rc;
}

int rm_ctl_client_event(struct rm_ctl_client *client, uint64_t timeout_ns, json_t **event,
                        struct rm_error *error)
{
    *event = NULL;
    if (json_array_size(client->events)) {
        *event = json_incref(json_array_get(client->events, 0));
        json_array_remove(client->events, 0);
        return 0;
    }
    if (client->fd < 0)
        return lost(client, error);
    uint64_t deadline = deadline_after(timeout_ns);
    for (;;) {
        json_t *message = NULL;
        int rc = receive(client, deadline, &message, error);
        if (rc)
            return rc;
        if (json_object_get(message, "event")) {
            *event = message;
            return 0;
        }
        /* Replies to earlier calls are passed over. */
        if (!json_object_get(message, "id") && not_now(message))
            rc = take_reply(message, event, error);
        json_decref(message);
        if (rc)
            return rc;
    }
}
