#include "daemon/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* --- in the child: nothing but system calls --------------------------------------------------- */

/* What may be sent to all processes of a run at once must not end one that has no handler yet. */
static bool is_the_daemons(int number)
{
    return number == SIGINT || number == SIGHUP || number == SIGUSR1;
}

static void default_signals(bool holds_stop)
{
    sigset_t blocked;
    for (int n = 1; n < 32; n++)
        if (n != SIGKILL && n != SIGSTOP)
            signal(n, is_the_daemons(n) ? SIG_IGN : SIG_DFL);
    sigemptyset(&blocked);
    if (holds_stop)
        sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* First all of them above the numbers that they are to have, so that none stands in the way of
 * another; then down to those. */
static int place_descriptors(int *fds, int count, int *failure_fd)
{
    *failure_fd = fcntl(*failure_fd, F_DUPFD_CLOEXEC, count);
    if (*failure_fd < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        if (fds[i] < 0)
            fds[i] = open("/dev/null", i == 0 ? O_RDONLY : O_RDWR);
        fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, count);
        if (fds[i] < 0)
            return -1;
    }
    for (int i = 0; i < count; i++)
        if (dup2(fds[i], i) < 0)
            return -1;
    return 0;
}

static int enter(const char *group)
{
    const int fd = group ? open(group, O_WRONLY | O_CLOEXEC) : -1;
    return !group || (fd >= 0 && write(fd, "0", 1) == 1) ? 0 : -1;
}

static _Noreturn void become(const struct rm_child *child, const char *program, char **arguments,
                             int *fds, int count, int failure_fd)
{
    default_signals(child->holds_stop);
    if (enter(child->group) == 0 && place_descriptors(fds, count, &failure_fd) == 0) {
        /* What other code in the process opened without close-on-exec. */
        syscall(SYS_close_range, (unsigned)count, ~0u, 1u << 2 /* close on exec */);
        execve(program, arguments, environ);
    }
    const int why = errno;
    if (write(failure_fd, &why, sizeof why) < 0)
        _exit(126);
    _exit(127);
}

/* --- in the parent --------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct rm_child *child = handle->data;
    close(child->process_fd);
    close(child->failure_fd);
    if (child->on_closed)
        child->on_closed(child);
}

static void on_ended(uv_poll_t *handle, int status, int events)
{
    struct rm_child *child = handle->data;
    int code = 0, why = 0;
    (void)status;
    (void)events;
    if (waitpid(child->pid, &code, WNOHANG) == 0)
        return;
    if (read(child->failure_fd, &why, sizeof why) != sizeof why)
        why = 0;
    uv_close((uv_handle_t *)handle, on_closed);
    child->on_exit(child, WIFEXITED(code) ? WEXITSTATUS(code) : 0,
                   WIFSIGNALED(code) ? WTERMSIG(code) : 0, why);
}

static pid_t make_process(const struct rm_child *child, const char *program, char **arguments,
                          int *fds, int count, int failure_fd)
{
    sigset_t all, before;
    sigfillset(&all);
    /* A signal must not find the parent's handlers in the child. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = fork();
    if (pid == 0)
        become(child, program, arguments, fds, count, failure_fd);
    const int why = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return pid;
}

static int give_up(struct rm_child *child, const int *failure, int code)
{
    if (child->pid > 0) {
        kill(child->pid, SIGKILL);
        waitpid(child->pid, NULL, 0);
    }
    for (int i = 0; i < 2; i++)
        if (failure[i] >= 0)
            close(failure[i]);
    if (child->process_fd >= 0)
        close(child->process_fd);
    return code;
}

int rm_child_start(struct rm_child *child, uv_loop_t *loop, const char *program, char **arguments,
                   int *fds, int count, struct rm_error *error)
{
    int failure[2] = {-1, -1};
    child->pid = -1;
    child->process_fd = -1;
    if (access(program, X_OK) < 0)
        return rm_fail(error, -errno, "%s: %s", program, strerror(errno));
    if (pipe2(failure, O_CLOEXEC | O_NONBLOCK) < 0)
        return rm_fail(error, -errno, "%s: no pipe: %s", program, strerror(errno));
    child->pid = make_process(child, program, arguments, fds, count, failure[1]);
    if (child->pid < 0)
        return give_up(child, failure,
                       rm_fail(error, -errno, "%s: no process: %s", program, strerror(errno)));
    child->process_fd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    if (child->process_fd < 0)
        return give_up(child, failure,
                       rm_fail(error, -errno, "%s: pidfd_open: %s", program, strerror(errno)));
    int rc = uv_poll_init(loop, &child->ended, child->process_fd);
    if (rc < 0)
        return give_up(child, failure, rm_fail(error, rc, "%s: %s", program, uv_strerror(rc)));
    child->ended.data = child;
    close(failure[1]);
    child->failure_fd = failure[0];
    uv_poll_start(&child->ended, UV_READABLE, on_ended);
    return 0;
}
