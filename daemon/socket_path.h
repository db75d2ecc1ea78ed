/* socket_path: where control sockets are. Used by the daemon, which makes one, and by ringctl,
 * which looks for them. Pure functions of the environment and the effective user; callable from any
 * thread that does not change the environment meanwhile.
 *
 *   $RINGMASTER_RUNTIME_DIR/NAME/control.sock     when set: containers, tests
 *   /run/ringmaster/NAME/control.sock             root and services
 *   $XDG_RUNTIME_DIR/ringmaster/NAME/control.sock other users with a session
 *   /tmp/ringmaster-UID/NAME/control.sock         other users without one */
#ifndef RM_DAEMON_SOCKET_PATH_H
#define RM_DAEMON_SOCKET_PATH_H

#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define RM_SOCKET_PATH_MAX        108 /* bytes of sun_path, NUL included */
#define RM_SOCKET_DIRECTORIES_MAX 3
#define RM_SOCKET_FILE            "control.sock"

struct rm_socket_directories {
    size_t count;
    char path[RM_SOCKET_DIRECTORIES_MAX][RM_SOCKET_PATH_MAX];
};

/* The directories that may hold NAME/control.sock: the one of this user first, then those of others
 * that it may be allowed to reach. Places too long for a socket are left out. */
void rm_socket_directories(struct rm_socket_directories *directories);

/* The default socket of a new experiment `name` of this user, into path[RM_SOCKET_PATH_MAX].
 * -EINVAL: not a name; -ENAMETOOLONG: does not fit a socket address. */
int rm_socket_path(char *path, const char *name, struct rm_error *error);

/* directory/name/control.sock, checked as above. */
int rm_socket_path_in(char *path, const char *directory, const char *name, struct rm_error *error);

#endif
