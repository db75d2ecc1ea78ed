#include "daemon/sweeper.h"

#include "daemon/place.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 50, TRY_US = 10000 };

int rm_sweeper_start(struct rm_sweeper *sweeper, uv_loop_t *loop, const char *socket)
{
    char program[] = "/proc/self/exe", name[] = "ringmasterd", option[] = "--sweep";
    char path[RM_SOCKET_PATH_MAX];
    size_t length = strlen(socket);

    if (length >= sizeof path)
        return -ENAMETOOLONG;
    memcpy(path, socket, length + 1);
    char *arguments[] = {name, option, path, NULL};
    int rc = uv_pipe_init(loop, &sweeper->pipe, 0);
    if (rc < 0)
        return rc;
    uv_stdio_container_t stdio[] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&sweeper->pipe},
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
    };
    /* Detached: what is typed at the daemon's terminal is not meant for it. */
    const uv_process_options_t options = {.file = program,
                                          .args = arguments,
                                          .flags = UV_PROCESS_DETACHED,
                                          .stdio_count = 3,
                                          .stdio = stdio};
    rc = uv_spawn(loop, &sweeper->process, &options);
    sweeper->running = rc == 0;
    if (rc == 0)
        uv_unref((uv_handle_t *)&sweeper->process); /* no reason to go on running */
    return rc;
}

void rm_sweeper_dismiss(struct rm_sweeper *sweeper)
{
    if (sweeper->running)
        uv_process_kill(&sweeper->process, SIGKILL);
    sweeper->running = false;
}

int rm_sweeper_main(const char *socket)
{
    struct rm_place place;
    struct rm_error error;
    struct stat st;
    char byte;

    prctl(PR_SET_NAME, "rm-sweeper");
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    ssize_t n;
    do
        n = read(STDIN_FILENO, &byte, 1);
    while (n > 0 || (n < 0 && errno == EINTR));
    /* The dying daemon may close its end of the pipe a moment before it lets go of the lock. */
    for (int tries = 0;; tries++) {
        if (lstat(socket, &st) < 0 || !S_ISSOCK(st.st_mode))
            return 0; /* swept already */
        if (rm_place_take(&place, socket, &error) >= 0)
            break;
        if (tries == TRIES)
            return 0; /* a successor has it */
        usleep(TRY_US);
    }
    place.bound = true;
    rm_place_leave(&place);
    return 0;
}
