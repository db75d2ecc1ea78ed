#include "daemon/socket_path.h"

#include "shm/board.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_DIRECTORY "/run/ringmaster"

static void add(struct rm_socket_directories *directories, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct rm_socket_directories *directories, const char *format, ...)
{
    char *slot = directories->path[directories->count];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(slot, RM_SOCKET_PATH_MAX, format, list);
    va_end(list);
    if (n < 0 || n >= RM_SOCKET_PATH_MAX)
        return;
    for (size_t i = 0; i < directories->count; i++)
        if (!strcmp(directories->path[i], slot))
            return;
    directories->count++;
}

/* A relative directory would name another place in every process that reads it. */
static const char *absolute(const char *variable)
{
    const char *value = getenv(variable);
    return value && value[0] == '/' ? value : NULL;
}

void rm_socket_directories(struct rm_socket_directories *directories)
{
    memset(directories, 0, sizeof *directories);
    const char *chosen = absolute("RINGMASTER_RUNTIME_DIR");
    if (chosen) {
        add(directories, "%s", chosen);
        return;
    }
    if (geteuid() == 0) {
        add(directories, SYSTEM_DIRECTORY);
        return;
    }
    const char *session = absolute("XDG_RUNTIME_DIR");
    if (session)
        add(directories, "%s/ringmaster", session);
    add(directories, "/tmp/ringmaster-%u", (unsigned)geteuid());
    add(directories, SYSTEM_DIRECTORY);
}

int rm_socket_path_in(char *path, const char *directory, const char *name, struct rm_error *error)
{
    if (!rm_name_valid(name))
        return rm_fail(error, -EINVAL,
                       "\"%s\" cannot be an experiment's name: use letters, digits, '.', '_' and "
                       "'-', at most %d, beginning with a letter or a digit",
                       name, RM_NAME_MAX - 1);
    int n = snprintf(path, RM_SOCKET_PATH_MAX, "%s/%s/" RM_SOCKET_FILE, directory, name);
    if (n < 0 || n >= RM_SOCKET_PATH_MAX)
        return rm_fail(error, -ENAMETOOLONG,
                       "the control socket %s/%s/" RM_SOCKET_FILE
                       " is longer than the %d bytes of a "
                       "socket address; use a shorter name or set control.socket",
                       directory, name, RM_SOCKET_PATH_MAX - 1);
    return 0;
}

int rm_socket_path(char *path, const char *name, struct rm_error *error)
{
    struct rm_socket_directories directories;
    rm_socket_directories(&directories);
    if (directories.count == 0)
        return rm_fail(error, -ENAMETOOLONG,
                       "RINGMASTER_RUNTIME_DIR is longer than a socket address allows (%d bytes)",
                       RM_SOCKET_PATH_MAX - 1);
    return rm_socket_path_in(path, directories.path[0], name, error);
}
