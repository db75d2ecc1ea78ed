#include "daemon/reader.h"

#include "actor/worlds/sandbox.h"
#include "shm/base/clock.h"
#include "shm/base/file.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORDS_MAX 64

/* A row on its way. */
struct sent {
    uv_write_t write;
    struct rm_reader *reader;
    char *line;
};

/* --- its words -------------------------------------------------------------------------------- */

/* Divides text at blanks, in place, with NULL at the end. Returns how many. */
static size_t words_of(char *text, char **word, size_t most)
{
    size_t n = 0;
    char *left = text;
    for (char *w; n + 1 < most && (w = strtok_r(left, " \t", &left));)
        word[n++] = w;
    word[n] = NULL;
    return n;
}

/* Is this a program that execvp() would find? */
static bool is_program(const char *name)
{
    const char *folders = getenv("PATH");
    char path[PATH_MAX];
    if (strchr(name, '/'))
        return access(name, X_OK) == 0;
    for (const char *from = folders ? folders : "/usr/bin:/bin"; *from;) {
        const size_t n = strcspn(from, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)n, from, name);
        if (n && access(path, X_OK) == 0)
            return true;
        from += n + (from[n] == ':');
    }
    return false;
}

int rm_reader_check(const struct rm_experiment *e, struct rm_error *error)
{
    char text[sizeof e->metrics.exec], *word[WORDS_MAX];
    snprintf(text, sizeof text, "%s", e->metrics.exec);
    if (!e->metrics.exec[0] || (words_of(text, word, WORDS_MAX) && is_program(word[0])))
        return 0;
    return rm_fail(error, -ENOENT,
                   "metrics.exec: there is no program \"%s\": the first word must be a program on "
                   "the PATH, or the path of one",
                   word[0] ? word[0] : "");
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Logs what was lost since, at most once in RM_LOG_WINDOW_NS. */
static void log_lost(struct rm_reader *r, bool now)
{
    const uint64_t at = rm_now_ns(), lost = r->lost - r->logged_lost;
    if (!lost || (!now && r->logged_ns && at - r->logged_ns < RM_LOG_WINDOW_NS))
        return;
    r->logged_lost = r->lost;
    r->logged_ns = at;
    rm_log(r->log, RM_LOG_WARNING, "metrics.exec: %llu %s dropped: %s %s; training continues",
           (unsigned long long)lost, rm_plural(lost, "row was", "rows were"), r->program,
           r->running ? "reads too slowly" : "has ended");
}

static void count_lost(struct rm_reader *r)
{
    r->lost++;
    log_lost(r, false);
}

static void on_sent(uv_write_t *write, int status)
{
    struct sent *sent = write->data;
    if (status < 0)
        count_lost(sent->reader);
    free(sent->line);
    free(sent);
}

void rm_reader_row(struct rm_reader *r, json_t *row)
{
    struct sent *sent = NULL;
    char *text = NULL;
    if (!r->started) {
        json_decref(row);
        return;
    }
    if (r->open && uv_stream_get_write_queue_size((uv_stream_t *)&r->pipe) < RM_READER_QUEUE)
        text = json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(row);
    if (text && (sent = malloc(sizeof *sent)) && asprintf(&sent->line, "%s\n", text) < 0) {
        free(sent);
        sent = NULL;
    }
    free(text);
    if (!sent) {
        count_lost(r);
        return;
    }
    sent->reader = r;
    sent->write.data = sent;
    const uv_buf_t line = {.base = sent->line, .len = strlen(sent->line)};
    r->sent++;
    const int rc = uv_write(&sent->write, (uv_stream_t *)&r->pipe, &line, 1, on_sent);
    if (rc < 0)
        on_sent(&sent->write, rc);
}

/* --- its life --------------------------------------------------------------------------------- */

static void on_pipe_closed(uv_handle_t *handle)
{
    struct rm_reader *r = handle->data;
    r->handles--;
}

static void close_pipe(struct rm_reader *r)
{
    if (r->open)
        uv_close((uv_handle_t *)&r->pipe, on_pipe_closed);
    r->open = false;
}

static void on_child_closed(struct rm_child *child)
{
    struct rm_reader *r = child->user;
    r->handles--;
}

static void on_printed_closed(struct rm_printed *printed)
{
    struct rm_reader *r = printed->user;
    r->handles--;
}

static void on_exit_of(struct rm_child *child, int64_t status, int number, int exec_errno)
{
    struct rm_reader *r = child->user;
    const bool late = !r->open;
    r->running = false;
    kill(-child->pid, SIGKILL); /* what it has started */
    rm_printed_end(&r->printed);
    close_pipe(r);
    if (exec_errno)
        rm_log(r->log, RM_LOG_WARNING, "metrics.exec: %s cannot be executed: %s", r->program,
               strerror(exec_errno));
    else if (number)
        rm_log(r->log, RM_LOG_WARNING, "metrics.exec: %s was killed by signal %d", r->program,
               number);
    else if (status || !late)
        rm_log(r->log, RM_LOG_WARNING, "metrics.exec: %s ended with exit code %lld%s", r->program,
               (long long)status, late ? "" : "; it gets no more rows");
}

static int open_input(struct rm_reader *r, uv_loop_t *loop, int *theirs)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    int rc = uv_pipe_init(loop, &r->pipe, 0);
    if (rc == 0 && (rc = uv_pipe_open(&r->pipe, ends[1])) < 0)
        uv_close((uv_handle_t *)&r->pipe, NULL);
    if (rc < 0) {
        close(ends[0]);
        close(ends[1]);
        return rc;
    }
    r->pipe.data = r;
    r->open = true;
    r->handles++;
    *theirs = ends[0];
    return 0;
}

int rm_reader_start(struct rm_reader *r, const struct rm_experiment *e, const char *run_directory,
                    struct rm_printer *printer, struct rm_error *error)
{
    char self[] = "/proc/self/exe", option[] = "--reader", folder[PATH_MAX], parent[16];
    char text[sizeof e->metrics.exec], *line[WORDS_MAX + 6];
    int input = -1;
    if (!e->metrics.exec[0])
        return 0;
    snprintf(folder, sizeof folder, "%s/reader", run_directory);
    snprintf(parent, sizeof parent, "%d", (int)getpid());
    snprintf(text, sizeof text, "%s", e->metrics.exec);
    line[0] = self;
    line[1] = option;
    line[2] = folder;
    line[3] = parent;
    line[4] = (char *)run_directory;
    words_of(text, line + 5, WORDS_MAX);
    r->log = printer->log;
    snprintf(r->program, sizeof r->program, "%s", line[5]);
    const int above = rm_file_folder(run_directory, false, NULL, error);
    if (above < 0)
        return rm_fail_within(error, above, "metrics.exec");
    const int made = mkdirat(above, "reader", 0750) < 0 && errno != EEXIST ? -errno : 0;
    close(above);
    if (made < 0)
        return rm_fail(error, made, "metrics.exec: %s: %s", folder, strerror(-made));
    int rc = open_input(r, printer->loop, &input);
    if (rc < 0)
        return rm_fail(error, rc, "metrics.exec: no pipe: %s", strerror(-rc));
    r->child.user = r->printed.user = r;
    r->child.on_exit = on_exit_of;
    r->child.on_closed = on_child_closed;
    r->printed.on_closed = on_printed_closed;
    const int out = rm_printed_open(&r->printed, printer, RM_PRINTED_READER, error);
    int fds[] = {input, out, out};
    rc = out < 0 ? out : rm_child_start(&r->child, printer->loop, self, line, fds, 3, error);
    close(input);
    if (out >= 0) {
        close(out);
        r->handles++;
    }
    r->started = r->running = rc == 0;
    r->handles += rc == 0;
    if (rc < 0) {
        close_pipe(r);
        if (out >= 0)
            rm_printed_end(&r->printed);
    }
    return rc;
}

static void on_over(uv_timer_t *timer)
{
    struct rm_reader *r = timer->data;
    rm_log(r->log, RM_LOG_WARNING, "metrics.exec: %s did not end after its input; it is killed",
           r->program);
    kill(-r->child.pid, SIGKILL);
    kill(r->child.pid, SIGKILL);
}

static void on_shut(uv_shutdown_t *shutdown, int status)
{
    (void)status;
    close_pipe(shutdown->data);
}

void rm_reader_end(struct rm_reader *r, uv_loop_t *loop, uint64_t grace_ns)
{
    uv_shutdown_t shutdown = {.data = r};
    uv_timer_t timer = {.data = r};
    if (!r->started)
        return;
    if (r->running) {
        uv_timer_init(loop, &timer);
        timer.data = r;
        uv_timer_start(&timer, on_over, grace_ns / RM_NS_PER_MS + 1, 0);
        /* After the rows that are on their way. */
        if (r->open && uv_shutdown(&shutdown, (uv_stream_t *)&r->pipe, on_shut) < 0)
            close_pipe(r);
        while (r->running)
            uv_run(loop, UV_RUN_ONCE);
        uv_close((uv_handle_t *)&timer, NULL);
    }
    while (r->handles)
        uv_run(loop, UV_RUN_ONCE);
    uv_run(loop, UV_RUN_NOWAIT); /* the timer is on this stack */
    log_lost(r, true);
    r->started = false;
}

/* --- the process ------------------------------------------------------------------------------ */

int rm_reader_main(char **arguments)
{
    const char *folder = arguments[0];
    struct rm_error error = {""};
    if (!folder || !arguments[1] || !arguments[2] || !arguments[3])
        return 2;
    setpgid(0, 0); /* so that all of it can be killed */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != atoi(arguments[1]))
        return 1;
    setenv("RINGMASTER_RUN", arguments[2], 1);
    setenv("RINGMASTER_READER", folder, 1);
    setenv("TMPDIR", folder, 1);
    const int rc = rm_sandbox_writing(folder, &error);
    if (rc < 0) {
        fprintf(stderr, "<4>%s\n", error.text);
        return 1;
    }
    if (rc == 0)
        fputs("<5>the kernel has no Landlock: files can be written as far as their permissions "
              "allow\n",
              stderr);
    execvp(arguments[3], arguments + 3);
    fprintf(stderr, "<4>%s cannot be executed: %s\n", arguments[3], strerror(errno));
    return 127;
}
