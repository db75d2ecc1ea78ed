#include "daemon/inspect.h"

#include "daemon/child.h"
#include "shm/atomic.h"
#include "shm/base/file.h"
#include "shm/base/clock.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX 65536 /* so much of gdb's output is read */

struct rm_inspection {
    struct rm_child child;
    uv_timer_t limit;
    struct rm_inspector *inspector;
    struct rm_inspection *next;
    uint32_t worker;
    uint64_t generation;
    uv_work_t work; /* a thread opens the file, and reads it at the end */
    int open;       /* open handles and work in progress */
    int out, rc;    /* the file, or the error */
    unsigned frames;
    int signal, exec_errno; /* how gdb ended */
    char last[256];         /* last line of gdb's output */
    char path[PATH_MAX];
};

void rm_inspector_open(struct rm_inspector *inspector, const struct rm_inspector_spec *spec)
{
    const char *given = getenv("RINGMASTER_GDB"), *at = getenv("PATH");
    char *to = inspector->debugger;
    const size_t size = sizeof inspector->debugger;
    inspector->spec = *spec;
    snprintf(to, size, "%s", given ? given : "");
    for (; !given && at && !to[0]; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
        snprintf(to, size, "%.*s/gdb", (int)strcspn(at, ":"), at);
        if (access(to, X_OK) < 0)
            to[0] = '\0';
    }
    if (!to[0])
        rm_log(spec->log, RM_LOG_INFO,
               "gdb is not installed: a worker that crashes or hangs prints its stack itself");
}

/* --- one inspection -------------------------------------------------------------------------- */

static void unlink_from_list(struct rm_inspection *i)
{
    struct rm_inspection **at = &i->inspector->first;
    while (*at && *at != i)
        at = &(*at)->next;
    if (*at)
        *at = i->next;
}

static void count_closed(struct rm_inspection *i)
{
    if (--i->open > 0)
        return;
    unlink_from_list(i);
    free(i);
}

static void on_child_closed(struct rm_child *child)
{
    count_closed(child->user);
}

static void on_limit_closed(uv_handle_t *limit)
{
    count_closed(limit->data);
}

/* Number of frames in gdb's output, and its last line. Called by a thread; there may be several at
 * a time. */
static unsigned count_frames(const char *path, char *last, size_t size)
{
    static _Thread_local char text[TEXT_MAX + 1];
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

static void read_file(uv_work_t *work)
{
    struct rm_inspection *i = work->data;
    i->frames = count_frames(i->path, i->last, sizeof i->last);
}

static void file_read(uv_work_t *work, int status)
{
    struct rm_inspection *i = work->data;
    const char *name = i->inspector->spec.session->board.workers[i->worker].name;
    struct rm_log_fields fields = RM_LOG_NO_FIELDS;
    (void)status;
    fields.worker = name;
    if (i->frames > 0)
        rm_log_message(i->inspector->spec.log, RM_LOG_NOTICE, RM_MESSAGE_STACK, &fields,
                       "%s: stacks of all its threads by gdb, %u %s: %s", name, i->frames,
                       rm_plural(i->frames, "frame", "frames"), i->path);
    else
        rm_log_message(i->inspector->spec.log, RM_LOG_WARNING, RM_MESSAGE_STACK, &fields,
                       "%s: gdb gave no stack: %s", name,
                       i->exec_errno ? strerror(i->exec_errno)
                       : i->signal   ? "it took too long"
                                     : i->last);
    count_closed(i);
}

static void queue(struct rm_inspection *i, uv_work_cb work, uv_after_work_cb after)
{
    i->work.data = i;
    if (uv_queue_work(i->inspector->spec.loop, &i->work, work, after) < 0) {
        work(&i->work);
        after(&i->work, 0);
    }
}

/* Lets the worker end. */
static void let_go(const struct rm_inspection *i)
{
    struct rm_board_worker *slot = &i->inspector->spec.session->board.workers[i->worker];
    if (RM_PEEK(&slot->generation) == i->generation)
        RM_RAISE(&slot->inspect, RM_INSPECT_DONE);
}

static void on_exit_of(struct rm_child *child, int64_t status, int signal, int exec_errno)
{
    struct rm_inspection *i = child->user;
    (void)status;
    rm_stall_interrupted(i->inspector->spec.stall);
    let_go(i);
    i->signal = signal;
    i->exec_errno = exec_errno;
    uv_close((uv_handle_t *)&i->limit, on_limit_closed);
    i->open++;
    queue(i, read_file, file_read);
}

static void too_long(uv_timer_t *limit)
{
    kill(((struct rm_inspection *)limit->data)->child.pid, SIGKILL);
}

static int run_debugger(struct rm_inspection *i, uint32_t pid, struct rm_error *error)
{
    struct rm_inspector *inspector = i->inspector;
    char process[16];
    char *arguments[] = {inspector->debugger,
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
    int fds[] = {-1, i->out, i->out};
    return rm_child_start(&i->child, inspector->spec.loop, inspector->debugger, arguments, fds, 3,
                          error);
}

/* Called by a thread, because creating the folder and the file may wait for the disk. */
static void open_file(uv_work_t *work)
{
    struct rm_inspection *i = work->data;
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s/stacks", PATH_MAX - 128,
             i->inspector->spec.run_directory);
    i->out = rm_file_make_folder(folder, NULL);
    if (i->out == 0)
        i->out = rm_file_open(i->path, O_WRONLY | O_CREAT | O_APPEND, 0644, NULL);
    i->rc = i->out < 0 ? i->out : 0;
}

static void file_opened(uv_work_t *work, int status)
{
    struct rm_inspection *i = work->data;
    const struct rm_inspector_spec *spec = &i->inspector->spec;
    /* The daemon's own record of the process. */
    const struct rm_supervised_worker *w = &spec->supervisor->workers[i->worker];
    const uint32_t pid = w->generation == i->generation && w->pid > 0 ? (uint32_t)w->pid : 0;
    struct rm_error error = {""};
    int rc = i->rc;
    (void)status;
    if (rc < 0)
        rm_fail(&error, rc, "cannot open %s: %s", i->path, strerror(-rc));
    else if (pid && !i->inspector->ending) /* the process still exists */
        rc = run_debugger(i, pid, &error);
    else
        rc = 1;
    if (i->out >= 0)
        close(i->out);
    if (rc == 0) {
        i->limit.data = i;
        uv_timer_init(spec->loop, &i->limit);
        uv_timer_start(&i->limit, too_long, (RM_INSPECT_S - 1) * 1000, 0);
        i->open += 2;
    } else {
        i->child.pid = -1;
        let_go(i);
    }
    if (rc < 0)
        rm_log(spec->log, RM_LOG_WARNING, "%s", error.text);
    count_closed(i);
}

static int begin(struct rm_inspector *inspector, uint32_t worker, struct rm_error *error)
{
    struct rm_board_worker *slot = &inspector->spec.session->board.workers[worker];
    struct rm_inspection *i = calloc(1, sizeof *i);
    if (!i)
        return rm_fail(error, -ENOMEM, "no memory to look at %s", slot->name);
    i->inspector = inspector;
    i->worker = worker;
    i->generation = inspector->spec.supervisor->workers[worker].generation;
    i->child.user = i;
    i->child.on_exit = on_exit_of;
    i->child.on_closed = on_child_closed;
    i->child.pid = -1;
    i->out = -1;
    snprintf(i->path, sizeof i->path, "%.*s/stacks/%s-%llu.txt", PATH_MAX - 128,
             inspector->spec.run_directory, slot->name, (unsigned long long)i->generation);
    i->open = 1;
    i->next = inspector->first;
    inspector->first = i;
    queue(i, open_file, file_opened);
    return 0;
}

/* --- all inspections ------------------------------------------------------------------------- */

/* Whether to inspect, once for each process: the worker itself writes the word. */
static bool wanted(const struct rm_inspector *inspector, uint32_t worker)
{
    const struct rm_supervised_worker *w = &inspector->spec.supervisor->workers[worker];
    return w->pid > 0 && inspector->inspected[worker] != w->generation &&
           RM_SEE(&inspector->spec.session->board.workers[worker].inspect) == RM_INSPECT_WANTED;
}

bool rm_inspector_has(const struct rm_inspector *inspector, uint32_t worker)
{
    for (const struct rm_inspection *i = inspector->first; i; i = i->next)
        if (i->worker == worker &&
            i->generation == inspector->spec.supervisor->workers[worker].generation)
            return true;
    return wanted(inspector, worker);
}

void rm_inspector_look(struct rm_inspector *inspector)
{
    struct rm_error error = {""};
    for (uint32_t w = 0; w < inspector->spec.session->objects.workers; w++) {
        struct rm_board_worker *slot = &inspector->spec.session->board.workers[w];
        if (!wanted(inspector, w))
            continue;
        inspector->inspected[w] = inspector->spec.supervisor->workers[w].generation;
        RM_RAISE(&slot->inspect, RM_INSPECT_BEGUN);
        if (begin(inspector, w, &error) < 0) {
            RM_RAISE(&slot->inspect, RM_INSPECT_DONE);
            rm_log(inspector->spec.log, RM_LOG_WARNING, "%s", error.text);
        }
    }
}

void rm_inspector_end(struct rm_inspector *inspector)
{
    inspector->ending = true;
    for (struct rm_inspection *i = inspector->first; i; i = i->next)
        if (i->child.pid > 0)
            kill(i->child.pid, SIGKILL);
    while (inspector->first)
        uv_run(inspector->spec.loop, UV_RUN_ONCE);
}
