#include "shm/base/plugin_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The directory of the executable, with its slash; "" if it is not known. */
static void own_directory(char out[PATH_MAX])
{
    const ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(out, '/');
    *(slash ? slash + 1 : out) = '\0';
}

int rm_plugin_find(const char *file, const char *variable, const char *otherwise,
                   char path[PATH_MAX], struct rm_error *error)
{
    static const char *const places[] = {"", "../lib/", "../lib/ringmaster/"};
    const char *given = getenv(variable);
    char own[PATH_MAX];
    if (given && *given) {
        if (access(given, R_OK) || strlen(given) >= PATH_MAX)
            return rm_fail(error, -ENOENT, "%s: %s: %s", variable, given, strerror(errno));
        memcpy(path, given, strlen(given) + 1);
        return 0;
    }
    own_directory(own);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const int n = snprintf(path, PATH_MAX, "%s%s%s", own, places[i], file);
        if (n < PATH_MAX && access(path, R_OK) == 0)
            return 0;
    }
    int above = (int)strlen(own); /* bytes of the folder above: "/usr/" of "/usr/bin/" */
    while (above > 1 && own[--above - 1] != '/')
        ;
    return rm_fail(error, -ENOENT, "no %s in %s or %.*slib/ringmaster/: %s", file, own, above, own,
                   otherwise);
}
