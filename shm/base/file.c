#include "shm/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* --- on the way to a file -------------------------------------------------------------------- */

#define LINKS_MAX 40 /* of one path, as the kernel has it */

/* Walks a path from folder to folder and holds each open, so that renaming or replacing a folder
 * meanwhile does not change the result. */
struct walk {
    int at;              /* the current folder */
    char real[PATH_MAX]; /* its path, without links; "" = the root */
    char rest[PATH_MAX]; /* still to go */
    unsigned links;
};

static int failed_at(const struct walk *w, const char *name, int why, struct rm_error *error)
{
    return rm_fail(error, -why, "%s/%s: %s", w->real, name, strerror(why));
}

static int begin(struct walk *w, struct rm_error *error)
{
    const bool root = w->rest[0] == '/';
    if (w->at >= 0)
        close(w->at);
    w->at = open(root ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (w->at < 0 || (!root && !getcwd(w->real, sizeof w->real)))
        return rm_fail(error, -errno, "%s: %s", root ? "/" : "working directory", strerror(errno));
    if (root || strcmp(w->real, "/") == 0)
        w->real[0] = '\0';
    return 0;
}

/* Removes the next name from `rest`. False: there is none. */
static bool next(struct walk *w, char name[NAME_MAX + 1], int *rc, struct rm_error *error)
{
    const char *from = w->rest + strspn(w->rest, "/");
    const size_t n = strcspn(from, "/");
    if (n > NAME_MAX) {
        *rc = rm_fail(error, -ENAMETOOLONG, "%.100s...: path too long", from);
        return false;
    }
    memcpy(name, from, n);
    name[n] = '\0';
    memmove(w->rest, from + n, strlen(from + n) + 1);
    return n > 0;
}

/* Follows a link. */
static int follow(struct walk *w, int link, const char *name, const struct stat *about,
                  struct rm_error *error)
{
    char target[PATH_MAX], rest[PATH_MAX];
    if (about->st_uid != geteuid() && about->st_uid != 0)
        return rm_fail(error, -EPERM,
                       "%s/%s is a link of user %u, but this process runs as user %u", w->real,
                       name, (unsigned)about->st_uid, (unsigned)geteuid());
    if (++w->links > LINKS_MAX)
        return failed_at(w, name, ELOOP, error);
    const ssize_t n = readlinkat(link, "", target, sizeof target - 1);
    if (n < 0)
        return failed_at(w, name, errno, error);
    target[n] = '\0';
    if (snprintf(rest, sizeof rest, "%s%s", target, w->rest) >= (int)sizeof rest)
        return failed_at(w, name, ENAMETOOLONG, error);
    memcpy(w->rest, rest, sizeof rest);
    return rest[0] == '/' ? begin(w, error) : 0;
}

/* Enters this folder. Takes ownership of `fd`. */
static int enter(struct walk *w, int fd, const char *name, struct rm_error *error)
{
    const size_t length = strlen(w->real);
    if (strcmp(name, "..") == 0) {
        char *last = strrchr(w->real, '/');
        if (last)
            *last = '\0';
    } else if (snprintf(w->real + length, sizeof w->real - length, "/%s", name) >=
               (int)(sizeof w->real - length)) {
        close(fd);
        w->real[length] = '\0';
        return failed_at(w, name, ENAMETOOLONG, error);
    }
    close(w->at);
    w->at = fd;
    return 0;
}

static int sync_at(int folder)
{
    const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

static int make_at(const struct walk *w, const char *name, struct rm_error *error)
{
    if (mkdirat(w->at, name, 0755) < 0)
        return errno == EEXIST ? 0
                               : rm_fail(error, -errno, "cannot make %s/%s: %s", w->real, name,
                                         strerror(errno));
    (void)sync_at(w->at);
    return 0;
}

static int step(struct walk *w, const char *name, bool make, struct rm_error *error)
{
    struct stat about = {0};
    int fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && make) {
        const int rc = make_at(w, name, error);
        if (rc < 0)
            return rc;
        fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd < 0)
        return failed_at(w, name, errno, error);
    if (fstat(fd, &about) == 0 && S_ISDIR(about.st_mode))
        return enter(w, fd, name, error);
    const int rc = S_ISLNK(about.st_mode) ? follow(w, fd, name, &about, error)
                                          : failed_at(w, name, ENOTDIR, error);
    close(fd);
    return rc;
}

int rm_file_folder(const char *path, bool make, char real[PATH_MAX], struct rm_error *error)
{
    struct walk w = {.at = -1};
    char name[NAME_MAX + 1];
    if (snprintf(w.rest, sizeof w.rest, "%s", path) >= (int)sizeof w.rest)
        return rm_fail(error, -ENAMETOOLONG, "%.100s...: path too long", path);
    int rc = begin(&w, error);
    while (rc == 0 && next(&w, name, &rc, error))
        if (strcmp(name, ".") != 0)
            rc = step(&w, name, make, error);
    if (rc < 0 && w.at >= 0)
        close(w.at);
    if (rc == 0 && real)
        snprintf(real, PATH_MAX, "%s", w.real[0] ? w.real : "/");
    return rc < 0 ? rc : w.at;
}

/* The folder that `path` is in; *name: its name there. */
static int folder_of(const char *path, const char **name, struct rm_error *error)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    const size_t n = (size_t)(*name - path);
    if (n >= sizeof folder)
        return rm_fail(error, -ENAMETOOLONG, "%.100s...: path too long", path);
    memcpy(folder, path, n);
    folder[n] = '\0';
    return rm_file_folder(folder, false, NULL, error);
}

/* --- files ----------------------------------------------------------------------------------- */

int rm_file_open(const char *path, int flags, mode_t mode, struct rm_error *error)
{
    struct stat about, above;
    const char *name;
    const int folder = folder_of(path, &name, error);
    if (folder < 0)
        return folder;
    const bool others =
        fstat(folder, &above) == 0 && above.st_uid != geteuid() && above.st_uid != 0;
    /* O_NONBLOCK: do not wait for the writer of a pipe. It has no effect on regular files.
     * O_TRUNC: only after the checks. */
    const int fd =
        openat(folder, name, (flags & ~O_TRUNC) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
    const int why = errno;
    close(folder);
    if (fd < 0)
        return rm_fail(error, -why, "%s: %s", path,
                       why == ELOOP ? "is a symbolic link" : strerror(why));
    int rc = fstat(fd, &about) < 0 ? rm_fail(error, -errno, "%s: %s", path, strerror(errno)) : 0;
    if (rc == 0 && !S_ISREG(about.st_mode))
        rc = rm_fail(error, -EINVAL, "%s: is not a regular file", path);
    if (rc == 0 && about.st_uid != geteuid())
        rc = rm_fail(error, -EPERM, "%s: belongs to user %u, but this process runs as user %u",
                     path, (unsigned)about.st_uid, (unsigned)geteuid());
    if (rc == 0 && others && about.st_nlink > 1) /* of any file of this user's */
        rc = rm_fail(error, -EPERM, "%s: is a hard link in a folder of user %u", path,
                     (unsigned)above.st_uid);
    if (rc == 0 && (flags & O_TRUNC) && about.st_size > 0 && ftruncate(fd, 0) < 0)
        rc = rm_fail(error, -errno, "%s: %s", path, strerror(errno));
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

bool rm_file_is_at(int fd, const char *path)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

/* Up to `room` bytes; fewer where the file ends earlier. Bytes, or a negative errno. */
static ssize_t read_up_to(int fd, char *to, size_t room)
{
    size_t have = 0;
    while (have < room) {
        const ssize_t n = read(fd, to + have, room - have);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return -errno;
        have += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)have;
}

int rm_file_read(const char *path, size_t most, char **text, size_t *bytes, struct rm_error *error)
{
    struct stat about;
    const int fd = rm_file_open(path, O_RDONLY, 0, error);
    if (fd < 0)
        return fd;
    *text = NULL;
    ssize_t got = fstat(fd, &about) < 0 ? -errno : (size_t)about.st_size > most ? -EFBIG : 0;
    if (got == 0 && !(*text = malloc((size_t)about.st_size + 1)))
        got = -ENOMEM;
    if (got == 0)
        got = read_up_to(fd, *text, (size_t)about.st_size);
    close(fd);
    *bytes = got < 0 ? 0 : (size_t)got;
    if (got >= 0)
        return 0;
    free(*text);
    *text = NULL;
    return rm_fail(error, (int)got, "%s: %s", path, strerror((int)-got));
}

int rm_file_rename(const char *from, const char *to)
{
    const char *name;
    const int folder = folder_of(from, &name, NULL);
    if (folder < 0)
        return folder;
    const int rc = renameat(folder, name, folder, strrchr(to, '/') + 1) < 0 ? -errno : 0;
    close(folder);
    return rc;
}

int rm_file_remove(const char *path)
{
    struct stat about;
    const char *name;
    const int folder = folder_of(path, &name, NULL);
    if (folder < 0)
        return folder;
    int rc = fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    if (rc == 0 && unlinkat(folder, name, S_ISDIR(about.st_mode) ? AT_REMOVEDIR : 0) < 0)
        rc = -errno;
    close(folder);
    return rc;
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *place)
{
    (void)about, (void)type, (void)place;
    (void)remove(path);
    return 0;
}

void rm_file_remove_all(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int rm_file_make_folder(const char *path, struct rm_error *error)
{
    struct stat about;
    const char *name;
    const int folder = folder_of(path, &name, error);
    if (folder < 0)
        return folder;
    int rc = mkdirat(folder, name, 0755) < 0 ? -errno : 0;
    if (rc < 0 && rc != -EEXIST)
        rm_fail(error, rc, "cannot make %s: %s", path, strerror(-rc));
    else if (rc < 0)
        rc = fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(about.st_mode) &&
                     about.st_uid == geteuid()
                 ? 0
                 : rm_fail(error, rc, "%s: is not a directory of user %u, who runs this process",
                           path, (unsigned)geteuid());
    close(folder);
    return rc;
}

int rm_file_list(const char *path, DIR **names, struct rm_error *error)
{
    const int folder = rm_file_folder(path, false, NULL, error);
    *names = NULL;
    if (folder < 0)
        return folder;
    const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *names = fd < 0 ? NULL : fdopendir(fd);
    const int rc = *names ? 0 : rm_fail(error, -errno, "%s: %s", path, strerror(errno));
    if (rc < 0 && fd >= 0)
        close(fd);
    close(folder);
    return rc;
}

int rm_file_sync_folder(const char *folder, struct rm_error *error)
{
    const int at = rm_file_folder(folder, false, NULL, error);
    if (at < 0)
        return at;
    const int rc = sync_at(at);
    close(at);
    return rc ? rm_fail(error, rc, "%s: %s", folder, strerror(-rc)) : 0;
}

int rm_file_sync_above(const char *path, struct rm_error *error)
{
    char copy[PATH_MAX];
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return rm_fail(error, -ENAMETOOLONG, "%.100s...: path too long", path);
    return rm_file_sync_folder(dirname(copy), error);
}

void rm_file_hold_standard(void)
{
    static const int ways[] = {O_RDONLY, O_RDONLY, O_RDWR};
    /* open() returns the lowest free number, so each call fills the gap that the loop found. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", ways[fd]) < 0)
            return;
}

const char *rm_file_start(const char *path, char *text, size_t size)
{
    char here[PATH_MAX];
    text[0] = '\0';
    if (path[0] != '/' && getcwd(here, sizeof here))
        snprintf(text, size, " (relative paths start at the working directory, %s)", here);
    return text;
}
