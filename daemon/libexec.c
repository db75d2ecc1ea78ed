#include "daemon/libexec.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rm_libexec_find(char *path, size_t size, struct rm_error *error)
{
    const char *chosen = getenv("RINGMASTER_LIBEXEC");
    if (chosen && chosen[0]) {
        if (snprintf(path, size, "%s", chosen) >= (int)size)
            return rm_fail(error, -ENAMETOOLONG, "RINGMASTER_LIBEXEC is too long");
        return 0;
    }
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    if (n < 0)
        return rm_fail(error, -errno, "cannot read /proc/self/exe: %s", strerror(errno));
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    char beside[PATH_MAX + 32];
    snprintf(beside, sizeof beside, "%s/ringmaster-actor", path);
    if (access(beside, X_OK) < 0) {
        slash = strrchr(path, '/');
        size_t room = size - (slash ? (size_t)(slash - path) : 0);
        if (slash && snprintf(slash, room, "/libexec/ringmaster") >= (int)room)
            return rm_fail(error, -ENAMETOOLONG, "the path of this program is too long");
    }
    return 0;
}

void rm_program_beside(char *path, size_t size, const char *name)
{
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    const int length =
        snprintf(path, size, "%.*s%s", slash ? (int)(slash + 1 - self) : 0, self, name);
    if (length < 0 || (size_t)length >= size || access(path, X_OK) < 0)
        snprintf(path, size, "%s", name);
}
