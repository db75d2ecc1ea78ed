#include "tests/support/program.h"

#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void rm_program_path(char *path, unsigned size, const char *name)
{
    const char *build = getenv("BUILD");
    snprintf(path, size, "%s/bin/%s", build ? build : "build", name);
}

/* Reads both streams until both have ended, so that neither can fill up and block the program. */
static void collect(int out_fd, int err_fd, struct rm_program *program)
{
    struct pollfd p[2] = {{.fd = out_fd, .events = POLLIN}, {.fd = err_fd, .events = POLLIN}};
    char *text[2] = {program->out, program->err};
    size_t used[2] = {0, 0}, size[2] = {sizeof program->out, sizeof program->err};
    while (p[0].fd >= 0 || p[1].fd >= 0) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < 2; i++) {
            char rest[4096];
            bool room = used[i] + 1 < size[i];
            if (p[i].fd < 0 || !p[i].revents)
                continue;
            ssize_t n = room ? read(p[i].fd, text[i] + used[i], size[i] - 1 - used[i])
                             : read(p[i].fd, rest, sizeof rest);
            if (n <= 0)
                p[i].fd = -1;
            else if (room)
                used[i] += (size_t)n;
        }
    }
    program->out[used[0]] = program->err[used[1]] = '\0';
}

int rm_program_run(struct rm_program *program, const char *const *argv)
{
    char path[1024];
    int out[2], err[2], status;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    rm_program_path(path, sizeof path, argv[0]);
    if (pipe2(out, O_CLOEXEC))
        return -1;
    if (pipe2(err, O_CLOEXEC)) {
        close(out[0]);
        close(out[1]);
        return -1;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    int rc = posix_spawn(&pid, path, &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    close(err[1]);
    if (rc == 0) {
        collect(out[0], err[0], program);
        waitpid(pid, &status, 0);
        program->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else {
        fprintf(stderr, "%s: %s\n", path, strerror(rc));
    }
    close(out[0]);
    close(err[0]);
    return rc ? -1 : 0;
}

int rm_program_ctl(struct rm_program *program, const char *const *words)
{
    const char *argv[12] = {"ringctl"};
    for (int i = 0; words[i]; i++) {
        assert_true(i + 2 < 12);
        argv[i + 1] = words[i];
    }
    assert_int_equal(rm_program_run(program, argv), 0);
    if (program->code != 0)
        assert_true(strlen(program->err) > 0);
    return program->code;
}

void rm_program_says(const struct rm_program *program, const char *text)
{
    if (!strstr(program->out, text) && !strstr(program->err, text))
        fail_msg("\"%s\" is not in:\n%s%s", text, program->out, program->err);
}
