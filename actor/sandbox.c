#include "actor/sandbox.h"
#include "shm/base/said.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Rights over files by the version of Landlock that knows them. What is not among them stays as
 * file permissions have it: reading. */
#define FS_WRITING                                                                                 \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                               \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG)
#define FS_VERSION_1                                                                               \
    (FS_WRITING | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |                      \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
     LANDLOCK_ACCESS_FS_MAKE_SYM)
#define FS_REFER    (UINT64_C(1) << 13) /* version 2 */
#define FS_TRUNCATE (UINT64_C(1) << 14) /* version 3 */

static int allow_below(int rules, const char *path, uint64_t rights, struct rm_error *error)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return rm_fail(error, -errno, "sandbox: %s: %s", path, strerror(errno));
    const struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = fd};
    long rc = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    int why = errno;
    close(fd);
    return rc < 0 ? rm_fail(error, -why, "sandbox: landlock_add_rule: %s", strerror(why)) : 0;
}

int rm_sandbox_files(const char *directory, struct rm_error *error)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return 0;
    const uint64_t truncate = version >= 3 ? FS_TRUNCATE : 0;
    const struct landlock_ruleset_attr handled = {
        .handled_access_fs = FS_VERSION_1 | (version >= 2 ? FS_REFER : 0) | truncate};
    /* The structure has grown since; this much of it every version knows. */
    long rules = syscall(SYS_landlock_create_ruleset, &handled, sizeof(uint64_t), 0);
    if (rules < 0)
        return rm_fail(error, -errno, "sandbox: landlock_create_ruleset: %s", strerror(errno));
    int rc = directory ? allow_below((int)rules, directory, FS_WRITING | truncate, error) : 0;
    if (rc == 0)
        rc = allow_below((int)rules, "/dev/null", LANDLOCK_ACCESS_FS_WRITE_FILE | truncate, error);
    if (rc == 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                    syscall(SYS_landlock_restrict_self, (int)rules, 0) < 0))
        rc = rm_fail(error, -errno, "sandbox: landlock_restrict_self: %s", strerror(errno));
    close((int)rules);
    return rc < 0 ? rc : 1;
}

int rm_sandbox_memory(uint64_t bytes, struct rm_error *error)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    if (bytes == 0)
        return 1;
    if (setrlimit(RLIMIT_DATA, &limit) < 0)
        return rm_fail(error, -errno, "actor.memory_limit: %s", strerror(errno));
    return 1;
}

/* What could not be had. */
static int without(const struct rm_experiment *e, const char *what, struct rm_error *error)
{
    if (e->actor.sandbox == RM_SANDBOX_ON)
        return rm_fail(error, -EPROTO, "actor.sandbox: \"on\", but %s", what);
    fprintf(stderr, RM_SAID_NOTICE "sandbox: goes without: %s\n", what);
    return 0;
}

int rm_sandbox_enter(const struct rm_experiment *e, const char *directory, struct rm_error *error)
{
    int rc = rm_sandbox_memory(e->actor.memory_limit, error);
    if (rc < 0 || e->actor.sandbox == RM_SANDBOX_OFF ||
        (e->actor.sandbox == RM_SANDBOX_AUTO && !e->world.library[0]))
        return rc < 0 ? rc : 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return rm_fail(error, -errno, "sandbox: PR_SET_NO_NEW_PRIVS: %s", strerror(errno));
    int confined = rm_sandbox_files(directory, error);
    if (confined == 0 && directory)
        confined = without(e,
                           "the kernel has no Landlock: files can be written as far as their "
                           "permissions allow",
                           error);
    if (confined < 0)
        return confined;
    rc = rm_sandbox_calls(e->mode == RM_MODE_SEQUENTIAL ? RM_SANDBOX_MAKES
                          : confined > 0 || directory   ? RM_SANDBOX_WRITES
                                                        : RM_SANDBOX_READS,
                          error);
    return rc == 0
               ? without(e, "system calls are not filtered (no libseccomp, or a sanitizer)", error)
           : rc < 0 ? rc
                    : 0;
}
