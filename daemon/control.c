#include "daemon/control.h"

#include "config/json_memory.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A client. */
struct rm_connection {
    uv_pipe_t pipe;
    struct rm_control *control;
    struct rm_connection *next;
    struct ucred peer;
    enum rm_access access;
    bool subscribed;
    uint64_t number;
    bool deferred; /* a request will be answered later; until then no other is read */
    json_t *deferred_id;
    bool discarding;    /* in the rest of too long a line */
    bool stalled;       /* not read, because it does not take its output */
    uint64_t queued_as; /* order in which its requests wait for a later turn; 0: they do not wait */
    bool ended;         /* has sent everything; closed once its output is sent */
    bool closing;
    uint64_t asked_ns;  /* time of its latest request, or of its connection */
    uint64_t lost;      /* events dropped since the last one sent */
    bool moved;         /* took output since the last rm_control_expire() */
    uint64_t moved_ns;  /* time of the last rm_control_expire() that found `moved`, or no output */
    size_t queued_then; /* output queued at the last rm_control_expire() */
    size_t used;        /* bytes of `in` */
    char in[RM_PROTOCOL_LINE_MAX];
};

struct rm_control {
    uv_pipe_t listener;
    const struct rm_control_ops *ops;
    void *user;
    struct rm_connection *clients;
    struct rm_control_counts counts;
    bool closing;
    /* A turn of the loop answers for RM_CONTROL_TURN_NS; the other requests wait in line. */
    uv_prepare_t turn;
    uv_idle_t later;
    uint64_t turn_ends_ns; /* 0: nothing was answered in this turn yet */
    uint64_t last_queued;
    uint64_t numbered; /* clients so far */
    uint32_t handles;  /* own handles that are not closed yet */
};

static void process(struct rm_connection *client);

/* --- a client -------------------------------------------------------------------------------- */

struct output {
    uv_write_t request;
    char *line;
};

enum rm_access rm_access_of(uid_t peer_uid, gid_t peer_gid, uid_t own_uid, gid_t own_gid)
{
    if (peer_uid == 0 || peer_uid == own_uid)
        return RM_ACCESS_ADMINISTER;
    return peer_gid == own_gid ? RM_ACCESS_OPERATE : RM_ACCESS_SEE;
}

enum rm_access rm_connection_access(const struct rm_connection *client)
{
    return client->access;
}

uid_t rm_connection_uid(const struct rm_connection *client)
{
    return client->peer.uid;
}

pid_t rm_connection_pid(const struct rm_connection *client)
{
    return client->peer.pid;
}

uint64_t rm_connection_number(const struct rm_connection *client)
{
    return client->number;
}

void rm_connection_defer(struct rm_connection *client)
{
    client->deferred = true;
}

void rm_connection_subscribe(struct rm_connection *client, bool on)
{
    client->subscribed = on;
}

/* Frees the server after its last client and handle. */
static void free_if_over(struct rm_control *control)
{
    if (control->closing && !control->clients && control->handles == 0)
        free(control);
}

static void on_client_closed(uv_handle_t *handle)
{
    struct rm_connection *client = handle->data;
    struct rm_control *control = client->control;
    for (struct rm_connection **at = &control->clients; *at; at = &(*at)->next)
        if (*at == client) {
            *at = client->next;
            break;
        }
    json_decref(client->deferred_id);
    free(client);
    free_if_over(control);
}

static void close_client(struct rm_connection *client)
{
    if (client->closing)
        return;
    client->closing = true;
    struct rm_control *control = client->control;
    control->counts.clients--;
    uv_close((uv_handle_t *)&client->pipe, on_client_closed);
    if (control->ops->watched && !control->closing && control->counts.clients == 0)
        control->ops->watched(control->user, false);
}

/* Bytes that the client has not taken yet. */
static size_t queued_bytes(const struct rm_connection *client)
{
    return uv_stream_get_write_queue_size((const uv_stream_t *)&client->pipe);
}

static void on_written(uv_write_t *request, int status)
{
    struct output *output = (struct output *)request;
    struct rm_connection *client = request->handle->data;
    free(output->line);
    free(output);
    if (client->closing)
        return;
    if (status < 0) {
        close_client(client);
        return;
    }
    client->moved = true; /* also if as much is queued again at once */
    if (client->stalled && queued_bytes(client) < RM_CONTROL_OUTPUT_HIGH / 2)
        process(client);
    if (client->ended && !client->closing && queued_bytes(client) == 0)
        close_client(client);
}

/* Sends `line` and frees it; closes the client if `line` is NULL (no memory). */
static void send_line(struct rm_connection *client, char *line, size_t bytes)
{
    struct output *output = line && !client->closing ? malloc(sizeof *output) : NULL;
    if (!output) {
        free(line);
        close_client(client);
        return;
    }
    output->line = line;
    uv_buf_t buffer = uv_buf_init(line, (unsigned)bytes);
    if (queued_bytes(client) == 0)
        client->moved = true;
    if (uv_write(&output->request, (uv_stream_t *)&client->pipe, &buffer, 1, on_written) < 0) {
        free(output->line);
        free(output);
        close_client(client);
    }
}

static void refuse(struct rm_connection *client, enum rm_refusal refusal, const char *text,
                   json_t *id)
{
    size_t bytes = 0;
    client->control->counts.refusals++;
    char *line = rm_refusal_line(refusal, text, id, &bytes);
    send_line(client, line, bytes);
}

/* The answer to a request. Takes `reply`. `mark`: the number of jansson's failures
 * (config/json_memory.h) before the reply was made. */
static void send_answer(struct rm_connection *client, enum rm_refusal refusal, json_t *reply,
                        json_t *id, uint64_t mark, const struct rm_error *why)
{
    struct rm_error error = *why;
    if (rm_json_failures() != mark) {
        refusal = RM_REFUSED_NOT_NOW;
        rm_fail(&error, -ENOMEM,
                "out of memory: the command may have been carried out, but there is no answer");
    }
    if (refusal != RM_REFUSED_NOT) {
        json_decref(reply);
        refuse(client, refusal, error.text, id);
    } else {
        size_t size = 0;
        char *text = rm_reply_line(reply, id, &size);
        send_line(client, text, size);
    }
}

/* --- requests -------------------------------------------------------------------------------- */

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
    client->asked_ns = rm_now_ns();
    enum rm_refusal refusal = rm_request_parse(&request, line, bytes, &error);
    if (refusal == RM_REFUSED_NOT)
        refusal = control->ops->execute(control->user, client, &request, &reply, &error);
    if (client->deferred)
        client->deferred_id = json_incref(request.id);
    else
        send_answer(client, refusal, reply, request.id, mark, &error);
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
    send_answer(client, refusal, reply, client->deferred_id, mark, error);
    json_decref(client->deferred_id);
    client->deferred_id = NULL;
    process(client); /* requests that it sent since; then reads again */
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
            refuse(client, RM_REFUSED_BAD_REQUEST,
                   "the input ends in the middle of a line; a request ends with a newline", NULL);
        if (client->closing)
            return;
        /* If the client closed only its sending side, it still gets its answers. */
        if (n != UV_EOF || queued_bytes(client) == 0) {
            close_client(client);
        } else {
            client->ended = true;
            uv_read_stop(stream);
        }
        return;
    }
    client->used += (size_t)n;
    process(client);
}

static void on_turn(uv_prepare_t *turn)
{
    struct rm_control *control = turn->data;
    control->turn_ends_ns = 0;
}

/* Whether there is time left in this turn. While others wait, a client that sends must wait too. */
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
        process(client);
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
static void process(struct rm_connection *client)
{
    size_t at = 0;
    bool full = false, later = false;
    while (!client->closing && at < client->used) {
        if (client->deferred || queued_bytes(client) >= RM_CONTROL_OUTPUT_HIGH) {
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
    full |= client->deferred; /* its end is not handled before it has its answer */
    if (later)
        wait_in_line(client);
    memmove(client->in, client->in + at, client->used - at);
    client->used -= at;
    if (client->discarding && !full) {
        client->used = 0;
    } else if (client->used == sizeof client->in && !full) {
        client->discarding = true;
        client->used = 0;
        refuse(client, RM_REFUSED_TOO_LONG, "a line is at most 65536 bytes", NULL);
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

/* --- connections ----------------------------------------------------------------------------- */

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

/* Who is closed to make room for this client: of those with fewer rights, or that have been silent
 * for long, one of the fewest rights, the longest silent. NULL: there is none. */
static struct rm_connection *least_of(const struct rm_control *control,
                                      const struct rm_connection *newcomer)
{
    struct rm_connection *least = NULL;
    for (struct rm_connection *c = control->clients; c; c = c->next) {
        const bool silent = !c->subscribed && !c->deferred &&
                            newcomer->asked_ns - c->asked_ns >= RM_CONTROL_PATIENCE_NS;
        if (c == newcomer || c->closing ||
            (silent ? c->access > newcomer->access : c->access >= newcomer->access))
            continue;
        if (!least || c->access < least->access ||
            (c->access == least->access && c->asked_ns < least->asked_ns))
            least = c;
    }
    return least;
}

/* Closes a client to make room, and says so if its socket takes the line at once: as the reply to a
 * request that is being carried out, so that the client does not repeat it. */
static void evict(struct rm_connection *client)
{
    size_t bytes = 0;
    char *line = rm_refusal_line(
        RM_REFUSED_NOT_NOW, "too many clients: this connection was closed to make room for another",
        client->deferred_id, &bytes);
    const uv_buf_t buffer = uv_buf_init(line, (unsigned)bytes);
    if (line)
        uv_try_write((uv_stream_t *)&client->pipe, &buffer, 1);
    free(line);
    close_client(client);
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
        close_client(client);
        return;
    }
    control->counts.accepted++;
    client->asked_ns = rm_now_ns();
    size_t bytes = 0;
    struct rm_connection *least =
        control->counts.clients > RM_CONTROL_CLIENTS_MAX ? least_of(control, client) : NULL;
    if (least)
        evict(least);
    if (control->counts.clients > RM_CONTROL_CLIENTS_MAX) {
        control->counts.refused++;
        char *line =
            rm_refusal_line(RM_REFUSED_NOT_NOW, "too many clients: try again later", NULL, &bytes);
        client->ended = true;
        send_line(client, line, bytes);
        return;
    }
    if (control->ops->watched && control->counts.clients == 1)
        control->ops->watched(control->user, true);
    char *line = rm_greeting_line(&bytes);
    send_line(client, line, bytes);
    if (!client->closing)
        uv_read_start((uv_stream_t *)&client->pipe, on_alloc, on_read);
}

/* --- the server ------------------------------------------------------------------------------ */

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
    free_if_over(control);
}

void rm_control_close(struct rm_control *control)
{
    if (!control || control->closing)
        return;
    control->closing = true;
    struct rm_connection *next;
    for (struct rm_connection *client = control->clients; client; client = next) {
        next = client->next;
        close_client(client);
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
        if (queued_bytes(client) >= RM_CONTROL_EVENTS_QUEUED) {
            client->lost++;
            control->counts.events_lost++;
            continue;
        }
        size_t bytes = 0;
        char *line = rm_event_line(name, time, data, client->lost, &bytes);
        client->lost = 0;
        send_line(client, line, bytes);
    }
}

void rm_control_away(struct rm_control *control, uint64_t away_ns)
{
    const uint64_t now_ns = rm_now_ns();
    for (struct rm_connection *client = control->clients; client; client = client->next) {
        client->moved_ns += away_ns;
        client->asked_ns = rm_moved_ns(client->asked_ns, away_ns, now_ns);
    }
}

void rm_control_expire(struct rm_control *control, uint64_t now_ns)
{
    struct rm_connection *next;
    for (struct rm_connection *client = control->clients; client; client = next) {
        next = client->next;
        const size_t out = queued_bytes(client);
        if (out == 0 || out < client->queued_then || client->moved) {
            client->moved_ns = now_ns;
            client->moved = false;
        } else if (!client->closing && now_ns > client->moved_ns &&
                   now_ns - client->moved_ns > RM_CONTROL_PATIENCE_NS) {
            control->counts.slow_closed++;
            close_client(client);
            continue;
        }
        client->queued_then = out;
    }
}
