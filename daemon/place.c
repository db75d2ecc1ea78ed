#include "daemon/place.h"

#include "daemon/control.h"
#include "daemon/holder.h"
#include "shm/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Creates one directory. In a sticky, world-writable parent another user may have created it
 * first. */
static int make_directory(const char *path, bool shared_parent, struct rm_error *error)
{
    if (mkdir(path, shared_parent ? 0700 : 0755) == 0)
        return 0;
    if (errno != EEXIST)
        return rm_fail(error, -errno, "cannot make the directory %s: %s", path, strerror(errno));
    struct stat st;
    if (lstat(path, &st) < 0)
        return rm_fail(error, -errno, "cannot read the attributes of %s: %s", path,
                       strerror(errno));
    if (shared_parent && (!S_ISDIR(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0)))
        return rm_fail(error, -EPERM,
                       "%s is not a directory of user %u or root: remove it, or have the control "
                       "socket in another directory (control.socket, RINGMASTER_RUNTIME_DIR)",
                       path, (unsigned)geteuid());
    return 0;
}

/* All directories above the socket, of which none is reached by a link of another user. */
static int make_parents(const char *socket_path, struct rm_error *error)
{
    char path[RM_SOCKET_PATH_MAX];
    struct rm_error why;
    const char *last = strrchr(socket_path, '/');
    snprintf(path, sizeof path, "%.*s", last ? (int)(last - socket_path) + 1 : 0, socket_path);
    const int above = rm_file_folder(path, false, NULL, &why);
    if (above == -EPERM)
        return rm_fail(error, above, "control.socket: %s", why.text);
    if (above >= 0)
        close(above);
    snprintf(path, sizeof path, "%s", socket_path);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool in_tmp = strncmp(path, "/tmp/", 5) == 0 && !strchr(path + 5, '/');
        int rc = make_directory(path, in_tmp, error);
        *slash = '/';
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Who holds the lock has written its number into it, or is about to. */
static int refuse(int fd, const char *socket_path, struct rm_error *error)
{
    char text[24] = "";
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    close(fd);
    const int pid = (int)strtol(text, NULL, 10);
    static const char advice[] = "try again in a moment, or give this one another name (--name)";
    if (pid <= 0)
        return rm_fail(error, -EAGAIN, "another process is locking or unlocking %s: %s",
                       socket_path, advice);
    switch (rm_holder_of(pid)) {
    case RM_HOLDER_ENDS:
        return rm_fail(error, -EAGAIN, "%s is still held by process %d, which is ending: %s",
                       socket_path, pid, advice);
    case RM_HOLDER_SWEEPS:
        return rm_fail(error, -EAGAIN,
                       "%s is held by process %d, which removes what a killed daemon left: %s",
                       socket_path, pid, advice);
    case RM_HOLDER_STAYS:
        break;
    }
    return rm_fail(error, -EEXIST,
                   "already running: process %d holds %s; stop it (ringctl stop), or give this one "
                   "another name (--name)",
                   pid, socket_path);
}

/* The lock's descriptor. */
static int lock(struct rm_place *place, struct rm_error *error)
{
    for (;;) {
        int fd = open(place->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0)
            return rm_fail(error, -errno, "cannot open the lock %s: %s", place->lock,
                           strerror(errno));
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
            return refuse(fd, place->socket, error);
        /* Its last holder may have removed it between our open and our lock. */
        if (rm_file_is_at(fd, place->lock))
            return fd;
        close(fd);
    }
}

int rm_place_take(struct rm_place *place, const char *socket, struct rm_error *error)
{
    place->lock_fd = place->listen_fd = -1;
    place->bound = false;
    if (strlen(socket) >= sizeof place->socket)
        return rm_fail(error, -ENAMETOOLONG,
                       "control.socket: %s is longer than the %zu bytes of a socket address",
                       socket, sizeof place->socket - 1);
    snprintf(place->socket, sizeof place->socket, "%s", socket);
    snprintf(place->lock, sizeof place->lock, "%s.lock", socket);
    int rc = make_parents(place->socket, error);
    if (rc == 0)
        rc = lock(place, error);
    if (rc < 0) /* the former owner may have removed a directory meanwhile */
        return rc == -ENOENT ? -EAGAIN : rc;
    place->lock_fd = rc;
    char pid[24];
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(place->lock_fd, 0) < 0 || pwrite(place->lock_fd, pid, (size_t)n, 0) != n) {
        rc = rm_fail(error, -errno, "cannot write the lock %s: %s", place->lock, strerror(errno));
        rm_place_leave(place);
        return rc;
    }
    return 0;
}

int rm_place_await(struct rm_place *place, const char *socket,
                   const struct rm_place_patience *patience, struct rm_error *error)
{
    int rc;
    for (unsigned turn = 0; (rc = rm_place_take(place, socket, error)) == -EAGAIN; turn++) {
        if (turn == patience->turns)
            break;
        patience->pause(patience->user);
    }
    return rc;
}

int rm_place_listen(struct rm_place *place, struct rm_error *error)
{
    struct stat st;
    if (lstat(place->socket, &st) == 0) {
        if (!S_ISSOCK(st.st_mode))
            return rm_fail(error, -EEXIST, "%s exists and is not a socket", place->socket);
        unlink(place->socket); /* left by a daemon that was killed: we hold its lock */
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return rm_fail(error, -errno, "cannot make a socket: %s", strerror(errno));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, place->socket, strlen(place->socket) + 1);
    mode_t before = umask(0117);
    int rc = bind(fd, (struct sockaddr *)&address, sizeof address);
    int reason = errno;
    umask(before);
    if (rc == 0 && listen(fd, RM_CONTROL_BACKLOG) < 0) {
        rc = -1;
        reason = errno;
        unlink(place->socket);
    }
    if (rc < 0) {
        close(fd);
        return rm_fail(error, -reason, "cannot listen on %s: %s", place->socket, strerror(reason));
    }
    place->listen_fd = fd;
    place->bound = true;
    return 0;
}

void rm_place_leave(struct rm_place *place)
{
    if (place->listen_fd >= 0)
        close(place->listen_fd);
    place->listen_fd = -1;
    if (place->lock_fd < 0)
        return;
    if (place->bound)
        unlink(place->socket);
    place->bound = false;
    unlink(place->lock);
    close(place->lock_fd);
    place->lock_fd = -1;
    char directory[RM_SOCKET_PATH_MAX];
    snprintf(directory, sizeof directory, "%s", place->socket);
    char *slash = strrchr(directory, '/');
    if (slash && slash != directory) {
        *slash = '\0';
        rmdir(directory); /* stays when anything else is in it */
    }
}
