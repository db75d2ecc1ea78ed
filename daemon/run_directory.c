#include "daemon/run_directory.h"

#include "config/print.h"
#include "shm/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SAME_SECOND_MAX 100

/* PARENT/NAME/latest -> leaf, replaced in one step. A file system without links does without. */
static void link_latest(int above, const char *leaf)
{
    char fresh[32];
    snprintf(fresh, sizeof fresh, ".latest-%d", (int)getpid());
    if (symlinkat(leaf, above, fresh) == 0 && renameat(above, fresh, above, "latest") < 0)
        unlinkat(above, fresh, 0);
}

/* 1: there is no `latest`. */
static int check_latest(const char *above, struct rm_error *error)
{
    char link[PATH_MAX + 16];
    struct stat about;
    snprintf(link, sizeof link, "%s/latest", above);
    if (lstat(link, &about) < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? 1 /* making one says what is in its way */
                   : rm_fail(error, -errno, "%s: %s", link, strerror(errno));
    if (!S_ISLNK(about.st_mode))
        return rm_fail(error, -EISDIR,
                       "%s must be a link to a run, but is %s (of a copy?); make it a link: mv "
                       "latest NAME && ln -s NAME latest",
                       link, S_ISDIR(about.st_mode) ? "a directory itself" : "a file");
    if (about.st_uid != geteuid() && about.st_uid != 0)
        return rm_fail(error, -EPERM, "%s is a link of user %u, but this process runs as user %u",
                       link, (unsigned)about.st_uid, (unsigned)geteuid());
    return 0;
}

int rm_run_directory_latest(struct rm_run_directory *directory, const char *parent,
                            const char *name, struct rm_error *error)
{
    char above[RM_PATH_TEXT_MAX + 96], link[sizeof above + 16], real[PATH_MAX];
    struct stat about;
    if (snprintf(above, sizeof above, "%s/%s", parent, name) >= (int)sizeof above)
        return rm_fail(error, -ENAMETOOLONG, "run.directory: %.100s... is too long", parent);
    snprintf(link, sizeof link, "%s/latest", above);
    int rc = check_latest(above, error);
    if (rc)
        return rc;
    const int folder = rm_file_folder(link, false, real, error);
    if (folder == -ENOENT) {
        rm_fail(error, -ENOENT, "%s is a link to a missing file", link);
        return 1;
    }
    if (folder < 0)
        return rm_fail_within(error, folder, "run.directory: %s", link);
    if (strlen(real) >= sizeof directory->path)
        rc = rm_fail(error, -ENAMETOOLONG, "%.100s...: path too long", real);
    else if (fstat(folder, &about) < 0 || faccessat(folder, ".", R_OK | W_OK | X_OK, 0) < 0)
        rc = rm_fail(error, -errno, "%s: %s", real, strerror(errno));
    else if (about.st_uid != geteuid())
        rc = rm_fail(error, -EPERM, "%s: belongs to user %u, but this process runs as user %u",
                     real, (unsigned)about.st_uid, (unsigned)geteuid());
    close(folder);
    if (rc == 0)
        memcpy(directory->path, real, strlen(real) + 1);
    return rc;
}

/* Makes the run's folder in `above`, whose path is `real`. */
static int make_run(struct rm_run_directory *directory, int above, const char *real,
                    struct rm_run_lock *lock, struct rm_error *error)
{
    time_t now = time(NULL);
    struct tm local;
    char stamp[32], leaf[48];
    localtime_r(&now, &local);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
    for (int i = 1; i < SAME_SECOND_MAX; i++) {
        if (i == 1)
            snprintf(leaf, sizeof leaf, "%s", stamp);
        else
            snprintf(leaf, sizeof leaf, "%s-%d", stamp, i);
        snprintf(directory->path, sizeof directory->path, "%.*s/%s",
                 (int)sizeof directory->path - 50, real, leaf);
        if (mkdirat(above, leaf, 0755) == 0) {
            /* Before others can find it. */
            const int rc = rm_run_lock_take(lock, directory->path, error);
            if (rc < 0)
                return rc;
            (void)rm_file_sync_folder(real, NULL); /* or power fails, and the link leads nowhere */
            link_latest(above, leaf);
            /* A checkpoint lasts only if all folders above it do. */
            (void)rm_file_sync_folder(real, NULL);
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    return rm_fail(error, -errno, "run.directory: cannot make %s: %s", directory->path,
                   strerror(errno));
}

int rm_run_directory_create(struct rm_run_directory *directory, const char *parent,
                            const char *name, struct rm_run_lock *lock, struct rm_error *error)
{
    char path[RM_PATH_TEXT_MAX + 96], real[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", parent, name) >= (int)sizeof path)
        return rm_fail(error, -ENAMETOOLONG, "run.directory: %.100s... is too long", parent);
    const int above = rm_file_folder(path, true, real, error);
    if (above < 0)
        return rm_fail_within(error, above, "run.directory");
    int rc = check_latest(real, error);
    if (rc >= 0 && strlen(real) > sizeof directory->path - 50)
        rc = rm_fail(error, -ENAMETOOLONG, "run.directory: %.100s... is too long", real);
    if (rc >= 0)
        rc = make_run(directory, above, real, lock, error);
    close(above);
    return rc;
}

int rm_run_directory_beside(struct rm_run_directory *beside,
                            const struct rm_run_directory *directory, const char *folder,
                            struct rm_error *error)
{
    const char *leaf = strrchr(directory->path, '/') + 1;
    const int above = (int)(leaf - directory->path);
    if (snprintf(beside->path, sizeof beside->path, "%.*s%s/%s", above, directory->path, folder,
                 leaf) >= (int)sizeof beside->path)
        return rm_fail(error, -ENAMETOOLONG, "run.directory: %.100s... is too long",
                       directory->path);
    const int made = rm_file_folder(beside->path, true, NULL, error);
    if (made < 0)
        return rm_fail_within(error, made, "run.directory");
    close(made);
    return 0;
}

int rm_run_directory_open(const struct rm_run_directory *directory, const char *file,
                          struct rm_error *error)
{
    char path[sizeof directory->path + 64];
    snprintf(path, sizeof path, "%s/%s", directory->path, file);
    const int fd = rm_file_open(path, O_RDWR | O_CREAT | O_APPEND, 0644, error);
    return fd < 0 ? rm_fail_within(error, fd, "cannot open") : fd;
}

int rm_run_directory_json(const struct rm_run_directory *directory, const char *file,
                          const json_t *value, struct rm_error *error)
{
    char path[sizeof directory->path + 64], fresh[sizeof directory->path + 80];
    snprintf(path, sizeof path, "%s/%s", directory->path, file);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    char *text = rm_json_text(value, true);
    if (!text)
        return rm_fail(error, -ENOMEM, "%s: out of memory", path);
    const int fd = rm_file_open(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0644, error);
    if (fd < 0) {
        free(text);
        return rm_fail_within(error, fd, "cannot write");
    }
    int rc = rm_file_write_all(fd, text, strlen(text));
    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    close(fd);
    if (rc == 0)
        rc = rm_file_rename(fresh, path);
    free(text);
    if (rc < 0) {
        (void)rm_file_remove(fresh);
        return rm_fail(error, rc, "cannot write %s: %s", path, strerror(-rc));
    }
    (void)rm_file_sync_folder(directory->path, NULL);
    return 0;
}
