#include "shm/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int rm_file_write_all(int fd, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        const ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

void rm_file_hold_standard(void)
{
    static const int ways[] = {O_RDONLY, O_RDONLY, O_RDWR};
    /* Descriptors are given out from below, so each of these gets the number that is looked for. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", ways[fd]) < 0)
            return;
}

int rm_file_sync_folder(const char *folder, struct rm_error *error)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return rc ? rm_fail(error, rc, "%s: %s", folder, strerror(-rc)) : 0;
}

int rm_file_sync_above(const char *path, struct rm_error *error)
{
    char copy[PATH_MAX];
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return rm_fail(error, -ENAMETOOLONG, "%.100s...: path too long", path);
    return rm_file_sync_folder(dirname(copy), error);
}
