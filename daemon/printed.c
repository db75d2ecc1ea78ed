#include "daemon/printed.h"

#include "shm/atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 16384 /* of a process, in one turn of the loop */
#define LAST_READS                                                                                 \
    8 /* at the process's end: a pipe holds no more, unless a process keeps writing */

/* The level of a line; *text: its text after the mark. */
static enum rm_log_level level_of(const char *line, const char **text)
{
    *text = line;
    if (line[0] != '<' || line[1] < '0' || line[1] > '7' || line[2] != '>')
        return RM_LOG_INFO;
    const int level = line[1] - '0';
    *text = line + 3;
    return level < RM_LOG_ERROR ? RM_LOG_ERROR : level > RM_LOG_INFO ? RM_LOG_INFO : level;
}

static struct rm_log_fields fields_of(const struct rm_printed *p)
{
    const struct rm_session *session = p->printer->session;
    const struct rm_board_worker *slot = session->board.workers + p->worker;
    struct rm_log_fields fields = RM_LOG_NO_FIELDS;
    if (p->worker == RM_PRINTED_READER) {
        fields.worker = "metrics.exec";
        return fields;
    }
    fields.worker = slot->name;
    fields.step = (int64_t)rm_session_steps(session);
    if (RM_PEEK(&slot->role) == RM_ROLE_LEARNER)
        fields.agent = session->plan.policy[RM_PEEK(&slot->index)].name;
    return fields;
}

static void say_line(struct rm_printed *p)
{
    struct rm_printer *printer = p->printer;
    const struct rm_log_fields fields = fields_of(p);
    const char *text;
    p->line[p->used] = '\0';
    const enum rm_log_level level = level_of(p->line, &text);
    if (text[0])
        rm_log_paced(printer->log,
                     level == RM_LOG_ERROR ? &printer->pace[p->worker].errors
                                           : &printer->pace[p->worker].others,
                     level, RM_MESSAGE_PRINTED, &fields, fields.worker, text);
    p->used = 0;
}

static void add_bytes(struct rm_printed *p, const char *bytes, size_t n)
{
    while (n > 0) {
        const char *newline = memchr(bytes, '\n', n);
        const size_t all = newline ? (size_t)(newline - bytes) : n;
        const size_t room = sizeof p->line - 1 - p->used, part = all < room ? all : room;
        if (!p->in_rest) {
            memcpy(p->line + p->used, bytes, part);
            p->used += part;
        }
        if (!p->in_rest && (newline || part < all))
            say_line(p);
        p->in_rest = !newline && (p->in_rest || part < all);
        bytes += all + (newline != NULL);
        n -= all + (newline != NULL);
    }
}

/* Returns the bytes read; 0: there are none, and with *over there will be none. */
static size_t take_some(struct rm_printed *p, bool *over)
{
    static char bytes[READ_BYTES];
    const ssize_t n = read(p->fd, bytes, sizeof bytes);
    *over = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (n > 0)
        add_bytes(p, bytes, (size_t)n);
    return n > 0 ? (size_t)n : 0;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct rm_printed *p = poll->data;
    bool over = status < 0;
    (void)events;
    if (!over)
        (void)take_some(p, &over);
    if (over) /* no process has the other end, though the worker may still run */
        uv_poll_stop(poll);
}

int rm_printed_open(struct rm_printed *p, struct rm_printer *printer, uint32_t worker,
                    struct rm_error *error)
{
    int ends[2];
    p->fd = -1;
    p->printer = printer;
    p->worker = worker;
    p->used = 0;
    p->in_rest = false;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return rm_fail(error, -errno, "cannot create a pipe for the output: %s", strerror(errno));
    int rc = fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
    if (rc == 0)
        rc = uv_poll_init(printer->loop, &p->poll, ends[0]);
    if (rc < 0) {
        close(ends[0]);
        close(ends[1]);
        return rm_fail(error, rc, "cannot create a pipe for the output: %s", strerror(-rc));
    }
    p->fd = ends[0];
    p->poll.data = p;
    uv_poll_start(&p->poll, UV_READABLE, on_readable);
    return ends[1];
}

static void on_closed(uv_handle_t *handle)
{
    struct rm_printed *p = handle->data;
    close(p->fd);
    p->fd = -1;
    if (p->on_closed)
        p->on_closed(p);
}

void rm_printed_end(struct rm_printed *p)
{
    struct rm_printer *printer = p->printer;
    const struct rm_log_fields fields = fields_of(p);
    bool over = false;
    for (int i = 0; i < LAST_READS && !over && take_some(p, &over) > 0; i++)
        ;
    if (p->used > 0)
        say_line(p); /* the process died in the middle of a line */
    rm_log_pace_end(printer->log, &printer->pace[p->worker].errors, RM_MESSAGE_PRINTED, &fields,
                    fields.worker);
    rm_log_pace_end(printer->log, &printer->pace[p->worker].others, RM_MESSAGE_PRINTED, &fields,
                    fields.worker);
    uv_close((uv_handle_t *)&p->poll, on_closed);
}
