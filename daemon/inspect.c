#include "daemon/inspect.h"

#include "daemon/child.h"
#include "daemon/daemon.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX 65536 /* of what it wrote, as much is looked at */

struct rm_inspection {
    struct rm_child child;
    uv_timer_t limit;
    struct rm_daemon *daemon;
    struct rm_inspection *next;
    uint32_t worker;
    uint64_t generation;
    bool child_closed, limit_closed;
    char path[PATH_MAX];
};

void rm_daemon_find_debugger(struct rm_daemon *daemon)
{
    const char *told = getenv("RINGMASTER_GDB"), *at = getenv("PATH");
    char *to = daemon->debugger;
    const size_t size = sizeof daemon->debugger;
    snprintf(to, size, "%s", told ? told : "");
    for (; !told && at && !to[0]; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        snprintf(to, size, "%.*s/gdb", (int)strcspn(at, ":"), at);
        if (access(to, X_OK) < 0)
            to[0] = '\0';
    }
    if (!to[0])
        rm_log(&daemon->log, RM_LOG_INFO,
               "there is no gdb: workers that crash or hang give their stack themselves");
}

/* --- one of them ----------------------------------------------------------------------------- */

static void unlink_from_list(struct rm_inspection *i)
{
    struct rm_inspection **at = &i->daemon->inspections;
    while (*at && *at != i)
        at = &(*at)->next;
    if (*at)
        *at = i->next;
}

static void free_if_closed(struct rm_inspection *i)
{
    if (!i->child_closed || !i->limit_closed)
        return;
    unlink_from_list(i);
    free(i);
}

static void on_child_closed(struct rm_child *child)
{
    struct rm_inspection *i = child->user;
    i->child_closed = true;
    free_if_closed(i);
}

static void on_limit_closed(uv_handle_t *limit)
{
    struct rm_inspection *i = limit->data;
    i->limit_closed = true;
    free_if_closed(i);
}

/* How many frames there are in what it wrote; its last line otherwise. */
static unsigned count_frames(const char *path, char *last, size_t size)
{
    static char text[TEXT_MAX + 1];
    unsigned frames = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, text, TEXT_MAX);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    last[0] = '\0';
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        frames += line[0] == '#';
        snprintf(last, size, "%.200s", line);
    }
    return frames;
}

static void on_exit_of(struct rm_child *child, int64_t status, int signal, int exec_errno)
{
    struct rm_inspection *i = child->user;
    struct rm_daemon *daemon = i->daemon;
    struct rm_board_worker *slot = &daemon->session.board.workers[i->worker];
    struct rm_log_fields fields = RM_LOG_NO_FIELDS;
    char last[256];
    (void)status;
    rm_stall_interrupted(&daemon->stall);
    /* It goes on to its end. */
    if (RM_PEEK(&slot->generation) == i->generation)
        RM_RAISE(&slot->inspect, RM_INSPECT_DONE);
    fields.worker = slot->name;
    const unsigned frames = count_frames(i->path, last, sizeof last);
    if (frames > 0)
        rm_log_message(&daemon->log, RM_LOG_NOTICE, RM_MESSAGE_STACK, &fields,
                       "%s: stacks of all its threads by gdb, %u frames: %s", slot->name, frames,
                       i->path);
    else
        rm_log_message(&daemon->log, RM_LOG_WARNING, RM_MESSAGE_STACK, &fields,
                       "%s: gdb gave no stack: %s", slot->name,
                       exec_errno ? strerror(exec_errno)
                       : signal   ? "it took too long"
                                  : last);
    uv_close((uv_handle_t *)&i->limit, on_limit_closed);
}

static void too_long(uv_timer_t *limit)
{
    kill(((struct rm_inspection *)limit->data)->child.pid, SIGKILL);
}

static int run_debugger(struct rm_inspection *i, uint32_t pid, struct rm_error *error)
{
    struct rm_daemon *daemon = i->daemon;
    char process[16];
    char *arguments[] = {daemon->debugger,
                         (char *)"--batch",
                         (char *)"--nx",
                         (char *)"-iex",
                         (char *)"set debuginfod enabled off",
                         (char *)"-iex",
                         (char *)"set auto-load off",
                         (char *)"-p",
                         process,
                         (char *)"-ex",
                         (char *)"thread apply all backtrace 64",
                         NULL};
    snprintf(process, sizeof process, "%u", pid);
    const int out = open(i->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (out < 0)
        return rm_fail(error, -errno, "cannot open %s: %s", i->path, strerror(errno));
    int fds[] = {-1, out, out};
    const int rc =
        rm_child_start(&i->child, &daemon->loop, daemon->debugger, arguments, fds, 3, error);
    close(out);
    return rc;
}

static int begin(struct rm_daemon *daemon, uint32_t worker, struct rm_error *error)
{
    struct rm_board_worker *slot = &daemon->session.board.workers[worker];
    struct rm_inspection *i = calloc(1, sizeof *i);
    if (!i)
        return rm_fail(error, -ENOMEM, "no memory to look at %s", slot->name);
    i->daemon = daemon;
    i->worker = worker;
    i->generation = RM_PEEK(&slot->generation);
    i->child.user = i;
    i->child.on_exit = on_exit_of;
    i->child.on_closed = on_child_closed;
    snprintf(i->path, sizeof i->path, "%.*s/stacks", PATH_MAX - 128, daemon->directory.path);
    int rc = mkdir(i->path, 0755) < 0 && errno != EEXIST
                 ? rm_fail(error, -errno, "cannot make %s: %s", i->path, strerror(errno))
                 : 0;
    snprintf(i->path, sizeof i->path, "%.*s/stacks/%s-%llu.txt", PATH_MAX - 128,
             daemon->directory.path, slot->name, (unsigned long long)i->generation);
    if (rc == 0)
        rc = run_debugger(i, RM_PEEK(&slot->pid), error);
    if (rc < 0) {
        free(i);
        return rc;
    }
    i->limit.data = i;
    uv_timer_init(&daemon->loop, &i->limit);
    uv_timer_start(&i->limit, too_long, (RM_INSPECT_S - 1) * 1000, 0);
    i->next = daemon->inspections;
    daemon->inspections = i;
    return 0;
}

/* --- all of them ----------------------------------------------------------------------------- */

void rm_daemon_inspect(struct rm_daemon *daemon)
{
    struct rm_error error = {""};
    for (uint32_t w = 0; w < daemon->session.objects.workers; w++) {
        struct rm_board_worker *slot = &daemon->session.board.workers[w];
        if (RM_SEE(&slot->inspect) != RM_INSPECT_WANTED || RM_PEEK(&slot->pid) == 0)
            continue;
        const bool begun = begin(daemon, w, &error) == 0;
        RM_RAISE(&slot->inspect, begun ? RM_INSPECT_BEGUN : RM_INSPECT_DONE);
        if (!begun)
            rm_log(&daemon->log, RM_LOG_WARNING, "%s", error.text);
    }
}

void rm_daemon_end_inspections(struct rm_daemon *daemon)
{
    for (struct rm_inspection *i = daemon->inspections; i; i = i->next)
        kill(i->child.pid, SIGKILL);
    while (daemon->inspections)
        uv_run(&daemon->loop, UV_RUN_ONCE);
}
