#include "daemon/connection.h"

#include "config/json_memory.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct rm_control_counts rm_control_counts(const struct rm_control *control)
{
    return control->counts;
}

static void answer(struct rm_connection *client, const char *line, size_t bytes)
{
    struct rm_control *control = client->control;
    struct rm_error error = {.text = ""};
    struct rm_request request;
    json_t *reply = NULL;
    const uint64_t mark = rm_json_failures();
    control->counts.requests++;
    enum rm_refusal refusal = rm_request_parse(&request, line, bytes, &error);
    if (refusal == RM_REFUSED_NOT)
        refusal = control->ops->execute(control->user, client, &request, &reply, &error);
    if (client->deferred)
        client->deferred_id = json_incref(request.id);
    else
        rm_connection_send_answer(client, refusal, reply, request.id, mark, &error);
    rm_request_free(&request);
}

void rm_control_answer(struct rm_control *control, uint64_t number, enum rm_refusal refusal,
                       json_t *reply, const struct rm_error *error)
{
    struct rm_connection *client = control->clients;
    while (client && client->number != number)
        client = client->next;
    if (!client || client->closing || !client->deferred) {
        json_decref(reply);
        return;
    }
    const uint64_t mark = rm_json_failures() - (refusal == RM_REFUSED_NOT && !reply);
    client->deferred = false;
    rm_connection_send_answer(client, refusal, reply, client->deferred_id, mark, error);
    json_decref(client->deferred_id);
    client->deferred_id = NULL;
    rm_connection_process(client); /* what it asked since, and it is read from again */
}

static bool blank(const char *line, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct rm_connection *client = handle->data;
    (void)suggested;
    *buffer = uv_buf_init(client->in + client->used, (unsigned)(sizeof client->in - client->used));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct rm_connection *client = stream->data;
    (void)buffer;
    if (client->closing || n == 0)
        return;
    if (n < 0) {
        if (n == UV_EOF && client->used > 0 && !client->discarding)
            rm_connection_refuse(
                client, RM_REFUSED_BAD_REQUEST,
                "the input ends in the middle of a line; a request ends with a newline", NULL);
        if (client->closing)
            return;
        /* What it asked before is still answered when it only closed its sending side. */
        if (n != UV_EOF || rm_connection_queued(client) == 0) {
            rm_connection_close(client);
        } else {
            client->ended = true;
            uv_read_stop(stream);
        }
        return;
    }
    client->used += (size_t)n;
    rm_connection_process(client);
}

static void on_turn(uv_prepare_t *turn)
{
    struct rm_control *control = turn->data;
    control->turn_ends_ns = 0;
}

/* Is there time left in this turn? A client that sends while others wait must wait as well. */
static bool my_turn(struct rm_connection *client)
{
    struct rm_control *control = client->control;
    if (!client->queued_as && uv_is_active((uv_handle_t *)&control->later))
        return false;
    const uint64_t now = rm_now_ns();
    if (control->turn_ends_ns == 0)
        control->turn_ends_ns = now + RM_CONTROL_TURN_NS;
    return now < control->turn_ends_ns;
}

static struct rm_connection *longest_waiting(const struct rm_control *control)
{
    struct rm_connection *first = NULL;
    for (struct rm_connection *client = control->clients; client; client = client->next)
        if (client->queued_as && !client->closing &&
            (!first || client->queued_as < first->queued_as))
            first = client;
    return first;
}

/* Once a turn while a client waits. */
static void on_later(uv_idle_t *later)
{
    struct rm_control *control = later->data;
    struct rm_connection *client;
    while ((client = longest_waiting(control)) != NULL) {
        if (!my_turn(client))
            return;
        rm_connection_process(client);
    }
    uv_idle_stop(later);
}

static void wait_in_line(struct rm_connection *client)
{
    struct rm_control *control = client->control;
    client->queued_as = ++control->last_queued;
    uv_idle_start(&control->later, on_later);
}

/* Answers the complete lines in the buffer for as long as the client takes the answers and the turn
 * lasts. */
void rm_connection_process(struct rm_connection *client)
{
    size_t at = 0;
    bool full = false, later = false;
    while (!client->closing && at < client->used) {
        if (client->deferred || rm_connection_queued(client) >= RM_CONTROL_OUTPUT_HIGH) {
            full = true;
            break;
        }
        char *line = client->in + at;
        char *end = memchr(line, '\n', client->used - at);
        if (!end)
            break;
        if (!my_turn(client)) {
            full = later = true;
            break;
        }
        size_t bytes = (size_t)(end - line);
        if (client->discarding)
            client->discarding = false; /* the rest of the long line */
        else if (!blank(line, bytes))
            answer(client, line, bytes);
        at += bytes + 1;
    }
    client->queued_as = 0;
    if (client->closing)
        return;
    full |= client->deferred; /* nor is its end looked at before it has its answer */
    if (later)
        wait_in_line(client);
    memmove(client->in, client->in + at, client->used - at);
    client->used -= at;
    if (client->discarding && !full) {
        client->used = 0;
    } else if (client->used == sizeof client->in && !full) {
        client->discarding = true;
        client->used = 0;
        rm_connection_refuse(client, RM_REFUSED_TOO_LONG, "a line is at most 65536 bytes", NULL);
        if (client->closing)
            return;
    }
    if (full && !client->stalled) {
        client->stalled = true;
        uv_read_stop((uv_stream_t *)&client->pipe);
    } else if (!full && client->stalled) {
        client->stalled = false;
        uv_read_start((uv_stream_t *)&client->pipe, on_alloc, on_read);
    }
}

static bool among(gid_t group, const gid_t *groups, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *groups; i++)
        if (groups[i] == group)
            return true;
    return false;
}

/* Is the group a supplementary group of the peer? */
static bool peer_is_in(int fd, gid_t group)
{
    gid_t few[64];
    socklen_t size = sizeof few;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, few, &size) == 0)
        return among(group, few, size);
    gid_t *all = errno == ERANGE ? malloc(size) : NULL;
    const bool in = all && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, all, &size) == 0 &&
                    among(group, all, size);
    free(all);
    return in;
}

static int identify(struct rm_connection *client)
{
    uv_os_fd_t fd;
    socklen_t size = sizeof client->peer;
    const gid_t own = getegid();
    int rc = uv_fileno((uv_handle_t *)&client->pipe, &fd);
    if (rc < 0)
        return rc;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &client->peer, &size) < 0)
        return -errno;
    client->access = rm_access_of(client->peer.uid, peer_is_in(fd, own) ? own : client->peer.gid,
                                  geteuid(), own);
    return 0;
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct rm_control *control = listener->data;
    if (status < 0 || control->closing)
        return;
    struct rm_connection *client = malloc(sizeof *client);
    if (!client)
        return; /* stays in the backlog until there is memory or it gives up */
    memset(client, 0, offsetof(struct rm_connection, in));
    client->control = control;
    client->number = ++control->numbered;
    uv_pipe_init(listener->loop, &client->pipe, 0);
    client->pipe.data = client;
    client->next = control->clients;
    control->clients = client;
    control->counts.clients++;
    if (uv_accept(listener, (uv_stream_t *)&client->pipe) < 0 || identify(client) < 0) {
        rm_connection_close(client);
        return;
    }
    control->counts.accepted++;
    size_t bytes = 0;
    if (control->counts.clients > RM_CONTROL_CLIENTS_MAX) {
        control->counts.refused++;
        char *line =
            rm_refusal_line(RM_REFUSED_NOT_NOW, "too many clients: try again later", NULL, &bytes);
        client->ended = true;
        rm_connection_send(client, line, bytes);
        return;
    }
    if (control->ops->watched && control->counts.clients == 1)
        control->ops->watched(control->user, true);
    char *line = rm_greeting_line(&bytes);
    rm_connection_send(client, line, bytes);
    if (!client->closing)
        uv_read_start((uv_stream_t *)&client->pipe, on_alloc, on_read);
}

int rm_control_open(struct rm_control **out, uv_loop_t *loop, int listen_fd,
                    const struct rm_control_ops *ops, void *user, struct rm_error *error)
{
    struct rm_control *control = calloc(1, sizeof *control);
    if (!control) {
        close(listen_fd);
        return rm_fail(error, -ENOMEM, "control: out of memory");
    }
    control->ops = ops;
    control->user = user;
    uv_pipe_init(loop, &control->listener, 0);
    uv_prepare_init(loop, &control->turn);
    uv_idle_init(loop, &control->later);
    control->listener.data = control->turn.data = control->later.data = control;
    control->handles = 3;
    uv_prepare_start(&control->turn, on_turn);
    uv_unref((uv_handle_t *)&control->turn);
    int rc = uv_pipe_open(&control->listener, listen_fd);
    if (rc < 0)
        close(listen_fd);
    else
        rc = uv_listen((uv_stream_t *)&control->listener, RM_CONTROL_BACKLOG, on_connection);
    if (rc < 0) {
        rm_control_close(control);
        return rm_fail(error, rc, "control: cannot listen: %s", uv_strerror(rc));
    }
    *out = control;
    return 0;
}

static void on_own_closed(uv_handle_t *handle)
{
    struct rm_control *control = handle->data;
    control->handles--;
    rm_control_free_if_over(control);
}

void rm_control_close(struct rm_control *control)
{
    if (!control || control->closing)
        return;
    control->closing = true;
    struct rm_connection *next;
    for (struct rm_connection *client = control->clients; client; client = next) {
        next = client->next;
        rm_connection_close(client);
    }
    uv_close((uv_handle_t *)&control->listener, on_own_closed);
    uv_close((uv_handle_t *)&control->turn, on_own_closed);
    uv_close((uv_handle_t *)&control->later, on_own_closed);
}

void rm_control_event(struct rm_control *control, const char *name, json_t *data)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double time = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    struct rm_connection *next;
    for (struct rm_connection *client = control->clients; client; client = next) {
        next = client->next;
        if (!client->subscribed || client->closing)
            continue;
        if (rm_connection_queued(client) >= RM_CONTROL_EVENTS_QUEUED) {
            client->lost++;
            control->counts.events_lost++;
            continue;
        }
        size_t bytes = 0;
        char *line = rm_event_line(name, time, data, client->lost, &bytes);
        client->lost = 0;
        rm_connection_send(client, line, bytes);
    }
}

void rm_control_away(struct rm_control *control, uint64_t away_ns)
{
    for (struct rm_connection *client = control->clients; client; client = client->next)
        client->moved_ns += away_ns;
}

void rm_control_expire(struct rm_control *control, uint64_t now_ns)
{
    struct rm_connection *next;
    for (struct rm_connection *client = control->clients; client; client = next) {
        next = client->next;
        const size_t out = rm_connection_queued(client);
        if (out == 0 || out < client->queued_then || client->moved) {
            client->moved_ns = now_ns;
            client->moved = false;
        } else if (!client->closing && now_ns > client->moved_ns &&
                   now_ns - client->moved_ns > RM_CONTROL_PATIENCE_NS) {
            control->counts.slow_closed++;
            rm_connection_close(client);
            continue;
        }
        client->queued_then = out;
    }
}
