#include "daemon/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define TEXT_MAX 4096

/* A file of the group, NUL-terminated. */
static int read_file(const char *group, const char *file, char *text, struct rm_error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s/%s", PATH_MAX - 64, group, file);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, TEXT_MAX - 1);
    const int why = errno;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return rm_fail(error, -why, "%s: %s", path, strerror(why));
    text[n] = '\0';
    return 0;
}

static int write_file(const char *group, const char *file, const char *text, struct rm_error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s/%s", PATH_MAX - 64, group, file);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    const int why = errno;
    if (fd >= 0)
        close(fd);
    return written ? 0 : rm_fail(error, -why, "%s: %s", path, strerror(why));
}

static bool has_word(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += length)
        if ((at == text || at[-1] == ' ') && strchr(" \n", at[length]))
            return true;
    return false;
}

/* The path behind "0::", which is that of version 2. */
int rm_cgroup_find(char *path, const char *root, const char *membership, struct rm_error *error)
{
    const char *line = membership;
    while (line && strncmp(line, "0::/", 4) != 0)
        line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
    if (!line)
        return rm_fail(error, -ENOTSUP, "the host has no control groups of version 2");
    snprintf(path, PATH_MAX, "%.1000s%.*s", root, (int)strcspn(line + 3, "\n"), line + 3);
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    return 0;
}

static int check_controllers(const char *path, struct rm_error *error)
{
    char text[TEXT_MAX];
    int rc = read_file(path, "cgroup.controllers", text, error);
    if (rc < 0)
        return rm_fail_within(error, rc, "control groups of version 2 are not in use");
    if (!has_word(text, "memory") || !has_word(text, "pids"))
        return rm_fail(
            error, -ENOTSUP,
            "%s: the controllers memory and pids are missing (set Delegate= in the unit)", path);
    return 0;
}

/* A group with members cannot limit groups below it, and others may not be moved. */
static int check_alone(const char *path, struct rm_error *error)
{
    char text[TEXT_MAX];
    int rc = read_file(path, "cgroup.procs", text, error);
    if (rc < 0)
        return rc;
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (strtol(line, NULL, 10) != (long)getpid())
            return rm_fail(error, -EBUSY, "%s: other processes are in this group", path);
    return 0;
}

static int make_group(const char *path, struct rm_error *error)
{
    return mkdir(path, 0755) < 0 && errno != EEXIST
               ? rm_fail(error, -errno, "%s: cannot be made: %s", path, strerror(errno))
               : 0;
}

int rm_cgroup_open(struct rm_cgroup *cgroup, const char *root, const char *membership,
                   struct rm_error *error)
{
    char path[PATH_MAX], below[PATH_MAX];
    cgroup->path[0] = '\0';
    int rc = rm_cgroup_find(path, root, membership, error);
    if (rc == 0)
        rc = check_controllers(path, error);
    if (rc == 0)
        rc = check_alone(path, error);
    if (rc < 0)
        return rc;
    snprintf(below, sizeof below, "%.*s/supervisor", PATH_MAX - 64, path);
    rc = make_group(below, error);
    if (rc == 0)
        rc = write_file(below, "cgroup.procs", "0", error);
    if (rc == 0)
        rc = write_file(path, "cgroup.subtree_control", "+memory +pids", error);
    if (rc == 0)
        snprintf(cgroup->path, sizeof cgroup->path, "%s", path);
    return rc;
}

int rm_cgroup_open_own(struct rm_cgroup *cgroup, struct rm_error *error)
{
    char text[TEXT_MAX];
    struct statfs st;
    cgroup->path[0] = '\0';
    if (statfs(RM_CGROUP_ROOT, &st) < 0 || st.f_type != CGROUP2_SUPER_MAGIC)
        return rm_fail(error, -ENOTSUP, RM_CGROUP_ROOT " is not of version 2");
    int rc = read_file("/proc/self", "cgroup", text, error);
    return rc < 0 ? rc : rm_cgroup_open(cgroup, RM_CGROUP_ROOT, text, error);
}

static int limit(const char *path, const char *file, uint64_t value, struct rm_error *error)
{
    char text[32] = "max";
    if (value)
        snprintf(text, sizeof text, "%" PRIu64, value);
    return write_file(path, file, text, error);
}

static void path_of(const struct rm_cgroup *cgroup, const char *name, char *path)
{
    snprintf(path, PATH_MAX, "%.*s/%.48s", PATH_MAX - 64, cgroup->path, name);
}

int rm_cgroup_make(const struct rm_cgroup *cgroup, const char *name, uint64_t memory_bytes,
                   uint64_t processes, char *procs, size_t size, struct rm_error *error)
{
    char path[PATH_MAX];
    path_of(cgroup, name, path);
    int rc = make_group(path, error);
    if (rc == 0)
        rc = limit(path, "memory.max", memory_bytes, error);
    /* Kernels that do not account for swap have no such file, and older ones not the other. */
    if (rc == 0)
        write_file(path, "memory.swap.max", memory_bytes ? "0" : "max", NULL);
    if (rc == 0)
        write_file(path, "memory.oom.group", "1", NULL);
    if (rc == 0)
        rc = limit(path, "pids.max", processes, error);
    if (rc == 0 && snprintf(procs, size, "%s/cgroup.procs", path) >= (int)size)
        rc = rm_fail(error, -ENAMETOOLONG, "%s: too long", path);
    return rc;
}

/* The number behind `key` in lines of a key and a number. */
static uint64_t count_of(const char *text, const char *key)
{
    const size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ')
            return strtoull(line + length + 1, NULL, 10);
    }
    return 0;
}

void rm_cgroup_read_events(const struct rm_cgroup *cgroup, const char *name,
                           struct rm_cgroup_events *events)
{
    char path[PATH_MAX], text[TEXT_MAX] = "";
    memset(events, 0, sizeof *events);
    path_of(cgroup, name, path);
    if (read_file(path, "memory.events", text, NULL) == 0) {
        events->oom = count_of(text, "oom");
        events->oom_kill = count_of(text, "oom_kill");
    }
    if (read_file(path, "pids.events", text, NULL) == 0)
        events->refused = count_of(text, "max");
}

void rm_cgroup_clear(const struct rm_cgroup *cgroup, const char *name)
{
    char path[PATH_MAX];
    path_of(cgroup, name, path);
    write_file(path, "cgroup.kill", "1", NULL);
}
