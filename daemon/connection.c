#include "daemon/connection.h"

#include "config/json_memory.h"

#include <errno.h>
#include <stdlib.h>

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

void rm_control_free_if_over(struct rm_control *control)
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
    rm_control_free_if_over(control);
}

void rm_connection_close(struct rm_connection *client)
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

size_t rm_connection_queued(const struct rm_connection *client)
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
        rm_connection_close(client);
        return;
    }
    client->moved = true; /* even if as much is queued again at once */
    if (client->stalled && rm_connection_queued(client) < RM_CONTROL_OUTPUT_HIGH / 2)
        rm_connection_process(client);
    if (client->ended && !client->closing && rm_connection_queued(client) == 0)
        rm_connection_close(client);
}

void rm_connection_send(struct rm_connection *client, char *line, size_t bytes)
{
    struct output *output = line && !client->closing ? malloc(sizeof *output) : NULL;
    if (!output) {
        free(line);
        rm_connection_close(client);
        return;
    }
    output->line = line;
    uv_buf_t buffer = uv_buf_init(line, (unsigned)bytes);
    if (rm_connection_queued(client) == 0)
        client->moved = true;
    if (uv_write(&output->request, (uv_stream_t *)&client->pipe, &buffer, 1, on_written) < 0) {
        free(output->line);
        free(output);
        rm_connection_close(client);
    }
}

void rm_connection_refuse(struct rm_connection *client, enum rm_refusal refusal, const char *text,
                          json_t *id)
{
    size_t bytes = 0;
    client->control->counts.refusals++;
    char *line = rm_refusal_line(refusal, text, id, &bytes);
    rm_connection_send(client, line, bytes);
}

void rm_connection_send_answer(struct rm_connection *client, enum rm_refusal refusal, json_t *reply,
                               json_t *id, uint64_t mark, const struct rm_error *why)
{
    struct rm_error error = *why;
    if (rm_json_failures() != mark) {
        refusal = RM_REFUSED_NOT_NOW;
        rm_fail(&error, -ENOMEM,
                "out of memory: what was asked for may have been done, but cannot be answered");
    }
    if (refusal != RM_REFUSED_NOT) {
        json_decref(reply);
        rm_connection_refuse(client, refusal, error.text, id);
    } else {
        size_t size = 0;
        char *text = rm_reply_line(reply, id, &size);
        rm_connection_send(client, text, size);
    }
}
