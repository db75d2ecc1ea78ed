#include "daemon/run_lock.h"

#include "daemon/holder.h"
#include "shm/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define AWAIT_TURNS 400 /* 10 s */
#define AWAIT_US    25000
#define BOOT_FILE   "/proc/sys/kernel/random/boot_id"
#define TEXT_MAX    256

void rm_run_holder_self(struct rm_run_holder *self)
{
    *self = (struct rm_run_holder){.pid = (int)getpid(), .host = "?", .boot = "?"};
    if (gethostname(self->host, sizeof self->host - 1) < 0 || strpbrk(self->host, " \n"))
        snprintf(self->host, sizeof self->host, "?");
    FILE *file = fopen(BOOT_FILE, "re");
    if (file && fscanf(file, "%39s", self->boot) != 1)
        snprintf(self->boot, sizeof self->boot, "?");
    if (file)
        fclose(file);
}

enum rm_run_holding rm_run_holding_of(const char *text, const struct rm_run_holder *self,
                                      struct rm_run_holder *holder)
{
    *holder = (struct rm_run_holder){.pid = 0};
    if (sscanf(text, "process %d host %63s boot %39s", &holder->pid, holder->host, holder->boot) !=
            3 ||
        holder->pid <= 0)
        return RM_HELD_BY_NONE;
    if (strcmp(holder->boot, self->boot) == 0) /* also from another container of this host */
        return RM_HELD_HERE;
    return strcmp(holder->host, self->host) == 0 ? RM_HELD_BEFORE : RM_HELD_ON_OTHER_HOST;
}

static bool knows_no_locks(int why)
{
    return why == ENOLCK || why == EOPNOTSUPP || why == ENOSYS || why == EINVAL;
}

/* 0, or why not. */
static int lock_record(int fd)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &all) == 0)
        return 0;
    if (errno == EINVAL && fcntl(fd, F_SETLK, &all) == 0)
        return 0;
    return errno;
}

/* The holder that the file names. */
static enum rm_run_holding holder_in(int fd, struct rm_run_holder *self,
                                     struct rm_run_holder *holder)
{
    char text[TEXT_MAX] = "";
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    rm_run_holder_self(self);
    return rm_run_holding_of(text, self, holder);
}

/* Another process has it. Takes ownership of `fd`. */
static int refuse(int fd, const char *directory, struct rm_error *error)
{
    static const char advice[] =
        "stop it (ringctl stop), or start another run (--fresh, or --name)";
    struct rm_run_holder self, holder;
    const enum rm_run_holding where = holder_in(fd, &self, &holder);
    close(fd);
    if (where == RM_HELD_BY_NONE)
        return rm_fail(error, -EAGAIN, "%s: another daemon is locking or unlocking it", directory);
    /* Another container's process has another number here. */
    const bool seen = where == RM_HELD_HERE && strcmp(holder.host, self.host) == 0;
    if (seen && rm_holder_of(holder.pid) == RM_HOLDER_ENDS)
        return rm_fail(error, -EAGAIN, "%s: is held by process %d on %s, which is ending",
                       directory, holder.pid, holder.host);
    return rm_fail(error, -EEXIST, "already running: process %d on host %s uses %s; %s", holder.pid,
                   holder.host, directory, advice);
}

/* The lock was had, or this file system knows none (`blind`): may who left his name there be alive?
 * 0, or a refusal. */
static int judge(struct rm_run_lock *lock, bool blind, const char *directory,
                 struct rm_error *error)
{
    struct rm_run_holder self, holder;
    const enum rm_run_holding where = holder_in(lock->fd, &self, &holder);
    lock->left[0] = '\0';
    if (where == RM_HELD_BY_NONE)
        return 0;
    if (blind && ((where == RM_HELD_HERE && rm_holder_of(holder.pid) == RM_HOLDER_STAYS) ||
                  where == RM_HELD_ON_OTHER_HOST))
        return rm_fail(error, -EEXIST,
                       "%s: its lock file names process %d on host %s, and this file system has no "
                       "locks; if that process has ended, remove %s",
                       directory, holder.pid, holder.host, lock->path);
    snprintf(lock->left, sizeof lock->left, "process %d on host %s%s", holder.pid, holder.host,
             where == RM_HELD_BEFORE          ? ", before that host was rebooted"
             : where == RM_HELD_ON_OTHER_HOST ? ", whose lock is given back"
                                              : ", which was killed");
    return 0;
}

static int sign(const struct rm_run_lock *lock, struct rm_error *error)
{
    struct rm_run_holder self;
    char text[TEXT_MAX];
    rm_run_holder_self(&self);
    const int n =
        snprintf(text, sizeof text, "process %d host %s boot %s\n", self.pid, self.host, self.boot);
    return ftruncate(lock->fd, 0) == 0 && pwrite(lock->fd, text, (size_t)n, 0) == n
               ? 0
               : rm_fail(error, -errno, "cannot write %s: %s", lock->path, strerror(errno));
}

static void let_go(struct rm_run_lock *lock)
{
    close(lock->fd);
    lock->fd = -1;
}

int rm_run_lock_take(struct rm_run_lock *lock, const char *directory, struct rm_error *error)
{
    char path[sizeof lock->path];
    if (snprintf(path, sizeof path, "%s/" RM_RUN_LOCK_FILE, directory) >= (int)sizeof path)
        return rm_fail(error, -ENAMETOOLONG, "%.100s...: path too long", directory);
    if (lock->fd >= 0 && strcmp(lock->path, path) == 0)
        return 0;
    rm_run_lock_leave(lock);
    memcpy(lock->path, path, sizeof path);
    for (;;) {
        lock->fd = rm_file_open(path, O_RDWR | O_CREAT, 0644, error);
        if (lock->fd < 0) {
            const int rc = lock->fd;
            lock->fd = -1;
            return rc == -EEXIST || rc == -EAGAIN ? -EIO : rc;
        }
        const int why = lock_record(lock->fd);
        if (why && !knows_no_locks(why)) {
            const int fd = lock->fd;
            lock->fd = -1;
            return refuse(fd, directory, error);
        }
        /* Its last holder may have removed it between our open and our lock. */
        if (rm_file_is_at(lock->fd, lock->path)) {
            int rc = judge(lock, why != 0, directory, error);
            if (rc == 0)
                rc = sign(lock, error);
            if (rc < 0)
                let_go(lock);
            return rc;
        }
        let_go(lock);
    }
}

int rm_run_lock_await(struct rm_run_lock *lock, const char *directory, struct rm_error *error)
{
    int rc;
    for (unsigned turn = 0;
         (rc = rm_run_lock_take(lock, directory, error)) == -EAGAIN && turn < AWAIT_TURNS; turn++)
        usleep(AWAIT_US);
    return rc;
}

static bool names_this_process(const char *path)
{
    struct rm_run_holder self, holder;
    const int fd = rm_file_open(path, O_RDONLY, 0, NULL);
    const bool own = fd >= 0 && holder_in(fd, &self, &holder) == RM_HELD_HERE &&
                     holder.pid == self.pid && strcmp(holder.host, self.host) == 0;
    if (fd >= 0)
        close(fd);
    return own;
}

int rm_run_lock_keep(struct rm_run_lock *lock, struct rm_error *error)
{
    struct rm_run_lock again = {.fd = -1};
    char directory[sizeof lock->path];
    if (lock->fd < 0 || rm_file_is_at(lock->fd, lock->path))
        return 0;
    snprintf(directory, sizeof directory, "%.*s", (int)(strrchr(lock->path, '/') - lock->path),
             lock->path);
    const int rc = rm_run_lock_take(&again, directory, error);
    if (rc == 0) {
        let_go(lock);
        lock->fd = again.fd;
    }
    /* On file systems without locks or lasting numbers of files, its own looks like another's. */
    return rc == -EEXIST && names_this_process(lock->path) ? 0 : rc;
}

void rm_run_lock_leave(struct rm_run_lock *lock)
{
    if (lock->fd < 0)
        return;
    if (rm_file_is_at(lock->fd, lock->path)) /* or it is another daemon's, after ours was removed */
        (void)rm_file_remove(lock->path);
    let_go(lock);
}
