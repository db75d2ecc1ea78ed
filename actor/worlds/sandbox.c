#include "actor/worlds/sandbox.h"

#include "actor/worlds/ambient.h"
#include "shm/base/file.h"
#include "shm/base/severity.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
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
#define FS_REFER     (UINT64_C(1) << 13) /* version 2 */
#define FS_TRUNCATE  (UINT64_C(1) << 14) /* version 3 */
#define FS_IOCTL_DEV (UINT64_C(1) << 15) /* version 5 */
#define NET_TCP      UINT64_C(3)         /* version 4: bind() and connect() */
#define FS_OF_FILES                                                                                \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE |   \
     FS_TRUNCATE)
#define FS_READING (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define SCOPES     UINT64_C(3) /* version 6: abstract sockets and signals of others */

/* What is ruled on, as the newest version here knows it; the system's header may be older. */
struct ruleset {
    uint64_t files, net, scoped;
};

/* Takes ownership of `fd`. */
static int allow_in(int rules, int fd, uint64_t rights, struct rm_error *error)
{
    const struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = fd};
    long rc = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    int why = errno;
    close(fd);
    return rc < 0 ? rm_fail(error, -why, "sandbox: landlock_add_rule: %s", strerror(why)) : 0;
}

static int allow_below(int rules, const char *path, uint64_t rights, struct rm_error *error)
{
    const int fd = open(path, O_PATH | O_CLOEXEC);
    return fd < 0 ? rm_fail(error, -errno, "sandbox: %s: %s", path, strerror(errno))
                  : allow_in(rules, fd, rights, error);
}

/* A folder of the run. A link of another user on the way to it may lead to what is not to be
 * written. */
static int allow_folder(int rules, const char *path, uint64_t rights, struct rm_error *error)
{
    const int fd = rm_file_folder(path, false, NULL, error);
    return fd < 0 ? rm_fail_within(error, fd, "sandbox") : allow_in(rules, fd, rights, error);
}

static long landlock_version(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

/* Rights over files that came after version 1. */
static uint64_t newer_rights(long version)
{
    return (version >= 2 ? FS_REFER : 0) | (version >= 3 ? FS_TRUNCATE : 0) |
           (version >= 5 ? FS_IOCTL_DEV : 0);
}

/* Rules by which nothing of these is allowed, as far as this version of Landlock knows them. A
 * descriptor. */
static long create_rules(long version, const struct ruleset *handled, struct rm_error *error)
{
    /* As much of it as this version knows: the kernel refuses more. */
    const size_t known = version >= 6   ? sizeof *handled
                         : version >= 4 ? offsetof(struct ruleset, scoped)
                                        : offsetof(struct ruleset, net);
    const long rules = syscall(SYS_landlock_create_ruleset, handled, known, 0);
    return rules < 0
               ? rm_fail(error, -errno, "sandbox: landlock_create_ruleset: %s", strerror(errno))
               : rules;
}

/* Enters the rules and closes them, whatever `rc` is so far. Returns 1 or negative errno. */
static int enter_rules(int rules, int rc, struct rm_error *error)
{
    if (rc == 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                    syscall(SYS_landlock_restrict_self, rules, 0) < 0))
        rc = rm_fail(error, -errno, "sandbox: landlock_restrict_self: %s", strerror(errno));
    close(rules);
    return rc < 0 ? rc : 1;
}

int rm_sandbox_files(const char *directory, struct rm_error *error)
{
    const long version = landlock_version();
    if (version < 1)
        return 0;
    const uint64_t truncate = version >= 3 ? FS_TRUNCATE : 0;
    const struct ruleset handled = {FS_VERSION_1 | newer_rights(version), NET_TCP, SCOPES};
    const long rules = create_rules(version, &handled, error);
    if (rules < 0)
        return (int)rules;
    int rc = directory ? allow_folder((int)rules, directory, FS_WRITING | truncate, error) : 0;
    if (rc == 0)
        rc = allow_below((int)rules, "/dev/null", LANDLOCK_ACCESS_FS_WRITE_FILE | truncate, error);
    return enter_rules((int)rules, rc, error);
}

/* A root daemon's worlds are not root's: of its capabilities they keep what opens its files. Who
 * has no more than that makes no call: the unit's filter refuses capset(). */
static int drop_capabilities(struct rm_error *error)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &head, now) < 0)
        return rm_fail(error, -errno, "sandbox: capget: %s", strerror(errno));
    const uint32_t kept = UINT32_C(1) << CAP_DAC_OVERRIDE | UINT32_C(1) << CAP_DAC_READ_SEARCH;
    uint32_t dropped = 0;
    for (size_t i = 0; i < sizeof now / sizeof *now; i++) {
        dropped |= (now[i].permitted & ~(i == 0 ? kept : 0)) | now[i].inheritable;
        now[i].permitted &= i == 0 ? kept : 0;
        now[i].effective &= now[i].permitted;
        now[i].inheritable = 0;
    }
    return dropped && syscall(SYS_capset, &head, now) < 0
               ? rm_fail(error, -errno, "sandbox: capset: %s", strerror(errno))
               : 0;
}

int rm_sandbox_writing(const char *directory, struct rm_error *error)
{
    const long version = landlock_version();
    int rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
                 ? rm_fail(error, -errno, "sandbox: PR_SET_NO_NEW_PRIVS: %s", strerror(errno))
                 : drop_capabilities(error);
    if (rc < 0 || version < 1)
        return rc;
    const uint64_t newer = newer_rights(version) & ~FS_IOCTL_DEV;
    const struct ruleset handled = {
        .files = (FS_VERSION_1 & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE) | newer, .scoped = SCOPES};
    const long rules = create_rules(version, &handled, error);
    if (rules < 0)
        return (int)rules;
    rc = allow_folder((int)rules, directory, handled.files, error);
    if (rc == 0)
        rc = allow_below((int)rules, "/dev/null",
                         LANDLOCK_ACCESS_FS_WRITE_FILE | (newer & FS_TRUNCATE), error);
    return enter_rules((int)rules, rc, error);
}

int rm_sandbox_reading(const char *folder, const char *devices, struct rm_error *error)
{
    const long version = landlock_version();
    glob_t found;
    int rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
                 ? rm_fail(error, -errno, "sandbox: PR_SET_NO_NEW_PRIVS: %s", strerror(errno))
                 : drop_capabilities(error);
    if (rc < 0 || version < 1)
        return rc;
    const uint64_t newer = newer_rights(version);
    const struct ruleset handled = {FS_VERSION_1 | newer, NET_TCP, SCOPES};
    const long rules = create_rules(version, &handled, error);
    if (rules < 0)
        return (int)rules;
    if (folder)
        rc = allow_below((int)rules, folder, LANDLOCK_ACCESS_FS_REMOVE_FILE, error);
    if (glob(devices, 0, NULL, &found) == 0) {
        for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++)
            rc = allow_below((int)rules, found.gl_pathv[i],
                             LANDLOCK_ACCESS_FS_WRITE_FILE | (newer & FS_IOCTL_DEV), error);
        globfree(&found);
    }
    return enter_rules((int)rules, rc, error);
}

/* --- programs that are started confined ------------------------------------------------------ */

/* Rules of a path that may be a file: rights over folders are refused for those. */
static int allow_path(int rules, const char *path, uint64_t rights, struct rm_error *error)
{
    const int rc = allow_below(rules, path, rights, error);
    return rc == -EINVAL ? allow_below(rules, path, rights & FS_OF_FILES, error) : rc;
}

static int add_needs(int rules, const struct rm_sandbox_program_needs *needs, long version,
                     struct rm_error *error)
{
    const uint64_t truncate = version >= 3 ? FS_TRUNCATE : 0;
    const uint64_t written =
        LANDLOCK_ACCESS_FS_WRITE_FILE | truncate | LANDLOCK_ACCESS_FS_READ_FILE;
    int rc = 0;

    for (size_t i = 0; rc == 0 && needs->readable[i]; i++) {
        rc = allow_path(rules, needs->readable[i], FS_READING, error);
        if (rc == -ENOENT || rc == -EACCES || rc == -ENOTDIR)
            rc = 0;
    }
    for (size_t i = 0; rc == 0 && needs->executable[i]; i++)
        rc = allow_path(rules, needs->executable[i],
                        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE, error);
    if (rc == 0)
        rc = allow_path(rules, needs->writable, FS_READING | FS_WRITING | truncate, error);
    return rc ? rc : allow_path(rules, "/dev/null", written, error);
}

int rm_sandbox_program_prepare(struct rm_sandbox_program *program,
                               const struct rm_sandbox_program_needs *needs, const char **lacks,
                               struct rm_error *error)
{
    const long version = landlock_version();
    const struct ruleset handled = {FS_VERSION_1 | FS_READING | newer_rights(version),
                                    needs->network ? 0 : NET_TCP, SCOPES};

    *program = (struct rm_sandbox_program){.rules = -1};
    *lacks = NULL;
    if (version < 1)
        *lacks = "the kernel has no Landlock: Python worlds read and write files as far as their "
                 "permissions allow";
    else if ((program->rules = (int)create_rules(version, &handled, error)) < 0)
        return program->rules;
    int rc = program->rules >= 0 ? add_needs(program->rules, needs, version, error) : 0;
    if (rc == 0)
        rc = rm_sandbox_program_calls(program, needs->network, error);
    if (rc == 0)
        *lacks = "system calls are not filtered (no libseccomp, or a sanitizer)";
    if (rc < 0)
        rm_sandbox_program_free(program);
    return rc < 0 ? rc : 0;
}

int rm_sandbox_program_enter(const struct rm_sandbox_program *program, struct rm_error *error)
{
    const struct sock_fprog filter = {.len = program->length, .filter = program->filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || drop_capabilities(error) < 0)
        return -errno;
    if (program->rules >= 0 && syscall(SYS_landlock_restrict_self, program->rules, 0) < 0)
        return -errno;
    for (unsigned short i = 0; i < program->length; i++)
        if (program->filter[i].k == RM_SANDBOX_SELF)
            program->filter[i].k = (uint32_t)getpid();
    if (program->length && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
        return -errno;
    return 0;
}

void rm_sandbox_program_free(struct rm_sandbox_program *program)
{
    if (program->rules >= 0)
        close(program->rules);
    free(program->filter);
    *program = (struct rm_sandbox_program){.rules = -1};
}

/* --- this process ---------------------------------------------------------------------------- */

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
    fprintf(stderr, RM_SEVERITY_NOTICE "sandbox: incomplete: %s\n", what);
    return 0;
}

int rm_sandbox_enter(const struct rm_experiment *e, const char *directory, struct rm_error *error)
{
    int rc = rm_sandbox_memory(e->actor.memory_limit, error);
    if (rc < 0 || !rm_experiment_confines(e))
        return rc < 0 ? rc : 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return rm_fail(error, -errno, "sandbox: PR_SET_NO_NEW_PRIVS: %s", strerror(errno));
    if ((rc = drop_capabilities(error)) < 0)
        return rc;
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
    if (rc == 1)
        rm_ambient_confined();
    return rc == 0
               ? without(e, "system calls are not filtered (no libseccomp, or a sanitizer)", error)
           : rc < 0 ? rc
                    : 0;
}
