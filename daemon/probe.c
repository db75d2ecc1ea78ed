#include "daemon/probe.h"

#include "config/session.h"
#include "daemon/libexec.h"
#include "shm/duty.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPORT_MS 4000 /* longer than a report may take (actor/watch.c) */

extern char **environ;

/* The configuration as a worker gets it; what it writes goes to `said`. Its pid, or negative. */
static pid_t start(const char *program, int config, int said, struct rm_error *error)
{
    pid_t pid = -1;
    char *arguments[] = {(char *)program, (char *)"--probe", NULL};
    posix_spawn_file_actions_t files;

    int rc = posix_spawn_file_actions_init(&files);
    if (rc == 0) {
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&files, said, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&files, said, STDERR_FILENO);
        posix_spawn_file_actions_adddup2(&files, config, RM_FD_CONFIG);
        rc = posix_spawn(&pid, program, &files, NULL, arguments, environ);
        posix_spawn_file_actions_destroy(&files);
    }
    if (rc)
        return rm_fail(error, -rc, "the world cannot be tried: %s: %s", program, strerror(rc));
    return pid;
}

/* Has it ended within so many milliseconds? */
static bool ended(int process, int milliseconds)
{
    struct pollfd one = {.fd = process, .events = POLLIN};
    int n;

    do
        n = poll(&one, 1, milliseconds);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

/* Waits; a silent one is asked where it is, and killed. *hung: it was silent. */
static int wait_for(pid_t pid, double patience_s, bool *hung)
{
    int status = 0, process = (int)syscall(SYS_pidfd_open, pid, 0);

    *hung = process >= 0 && !ended(process, (int)(patience_s * 1000));
    if (*hung) {
        kill(pid, RM_DUTY_REPORT);
        if (!ended(process, REPORT_MS))
            kill(pid, SIGKILL);
    }
    if (process >= 0)
        close(process);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* The first line of its report, without the program's name. */
static void read_report(int said, char *text, size_t size)
{
    static const char program[] = "ringmaster-actor: ";
    char all[2048];
    ssize_t n = pread(said, all, sizeof all - 1, 0);

    all[n > 0 ? n : 0] = '\0';
    const char *line = strstr(all, program);
    line = line ? line + strlen(program) : all;
    snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
}

static int judge(const struct rm_experiment *e, int status, bool hung, int said,
                 struct rm_error *error)
{
    char report[1024], how[96];

    if (WIFEXITED(status) && WEXITSTATUS(status) == RM_EXIT_PROBED)
        return 0;
    read_report(said, report, sizeof report);
    if (hung)
        snprintf(how, sizeof how, "it did not return");
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, "it ended the process with exit code %d", WEXITSTATUS(status));
    return rm_fail(error, -EPROTO, "world.library: \"%s\": tried in a process of its own: %s%s%s",
                   e->world.library, how, report[0] ? ": " : "", report);
}

int rm_probe_world(const struct rm_experiment *experiment, double patience_s,
                   struct rm_error *error)
{
    char folder[PATH_MAX], program[PATH_MAX + 20];
    bool hung = false;

    if (!experiment->world.library[0])
        return 0;
    int rc = rm_libexec_find(folder, sizeof folder, error);
    if (rc < 0)
        return rc;
    snprintf(program, sizeof program, "%s/ringmaster-actor", folder);
    struct rm_session *session = calloc(1, sizeof *session); /* for its text alone */
    int said = memfd_create("probe", MFD_CLOEXEC);
    if (!session || said < 0) {
        rc = rm_fail(error, -ENOMEM, "the world cannot be tried: no memory");
    } else {
        session->experiment = *experiment;
        rc = rm_session_config_text(session, error);
        if (rc == 0) {
            const pid_t pid = start(program, session->config.fd, said, error);
            if (pid < 0) {
                rc = pid;
            } else {
                const int status = wait_for(pid, patience_s, &hung);
                rc = judge(experiment, status, hung, said, error);
            }
            rm_region_close(&session->config);
        }
    }
    if (said >= 0)
        close(said);
    free(session);
    return rc;
}
