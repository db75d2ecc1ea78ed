/* The list of system calls that worlds, and the process around them, can do with. */
#include "actor/sandbox.h"
#include "actor/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Sanitizers' own calls are not on it. */
#if defined RM_HAVE_SECCOMP && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define FILTERED 1
#endif
#endif

#ifdef FILTERED

#include <seccomp.h>

#define CALLS_MAX     512 /* numbers of system calls with a name */
#define WRITING       (O_CREAT | O_TRUNC)
#define NAME_BYTES    28
#define PR_VMA        0x53564d41 /* names a range of memory */
#define CLONE_THREADS ((scmp_datum_t)CLONE_THREAD)

/* With any arguments. */
static const char *const allowed[] = {
    /* memory */
    "brk", "mmap", "munmap", "mprotect", "mremap", "madvise", "mincore", "msync", "mlock",
    "munlock", "membarrier", "get_mempolicy", "memfd_create",
    /* what is open, and reading */
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "lseek",
    "close", "close_range", "fstat", "newfstatat", "stat", "lstat", "statx", "fstatfs", "statfs",
    "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getdents64", "getcwd", "fcntl",
    "dup", "dup2", "dup3", "pipe", "pipe2", "fsync", "fdatasync", "ftruncate", "fallocate",
    "fadvise64", "sync_file_range",
    /* waiting */
    "poll", "ppoll", "select", "pselect6", "epoll_create1", "epoll_ctl", "epoll_wait",
    "epoll_pwait", "eventfd2", "futex", "futex_waitv", "pause", "nanosleep", "clock_nanosleep",
    "restart_syscall", "sched_yield",
    /* time */
    "clock_gettime", "clock_getres", "gettimeofday", "time", "times", "alarm", "setitimer",
    "getitimer", "getrusage",
    /* threads and processors */
    "set_robust_list", "get_robust_list", "rseq", "set_tid_address", "arch_prctl", "gettid",
    "sched_getaffinity", "sched_setaffinity", "sched_getparam", "sched_getscheduler",
    "sched_get_priority_max", "sched_get_priority_min", "getcpu", "exit", "exit_group",
    /* signals */
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait",
    "rt_sigsuspend", "sigaltstack",
    /* who and where */
    "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getpriority", "getrlimit",
    "sysinfo", "uname", "getrandom"};

/* Where learners work in the same process. */
static const char *const making[] = {"mkdir",     "mkdirat", "rename",   "renameat",
                                     "renameat2", "unlink",  "unlinkat", "rmdir"};

/* Quietly refused: libraries try these, and do without. */
static const struct {
    const char *name;
    int error;
} refused[] = {{"clone3", ENOSYS},
               {"openat2", ENOSYS},
               {"ioctl", ENOTTY},
               {"mbind", EPERM},
               {"setpriority", EPERM}};

/* What may be asked of prctl(). */
static const int controls[] = {PR_SET_NAME,      PR_GET_NAME,         PR_SET_PDEATHSIG,
                               PR_GET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_VMA};

static char names[CALLS_MAX][NAME_BYTES];

static const char *name_of(int number)
{
    return number >= 0 && number < CALLS_MAX && names[number][0] ? names[number] : NULL;
}

static void read_names(void)
{
    for (int i = 0; i < CALLS_MAX; i++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);
        if (name)
            snprintf(names[i], NAME_BYTES, "%s", name);
        free(name);
    }
}

/* `argument` masked by `mask` is `value`; one call, one action. */
static int rule(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned argument,
                scmp_datum_t mask, scmp_datum_t value)
{
    const struct scmp_arg_cmp match = {
        .arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
    return seccomp_rule_add_array(filter, action, seccomp_syscall_resolve_name(name), 1, &match);
}

static int plain_rule(scmp_filter_ctx filter, uint32_t action, const char *name)
{
    int number = seccomp_syscall_resolve_name(name);
    return number < 0 ? 0 : seccomp_rule_add(filter, action, number, 0);
}

/* Opening: any way, or for reading. */
static int add_opening(scmp_filter_ctx filter, bool write)
{
    static const struct {
        const char *name;
        unsigned flags;
    } calls[] = {{"open", 1}, {"openat", 2}};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof calls / sizeof *calls; i++) {
        const char *name = calls[i].name;
        const unsigned flags = calls[i].flags;
        if (write) {
            rc = plain_rule(filter, SCMP_ACT_ALLOW, name);
            continue;
        }
        rc = rule(filter, SCMP_ACT_ALLOW, name, flags, O_ACCMODE | WRITING, O_RDONLY);
        for (scmp_datum_t mode = O_WRONLY; rc == 0 && mode <= O_ACCMODE; mode++)
            rc = rule(filter, SCMP_ACT_ERRNO(EACCES), name, flags, O_ACCMODE, mode);
        for (scmp_datum_t bit = 1; rc == 0 && bit <= WRITING; bit <<= 1)
            if (bit & WRITING)
                rc = rule(filter, SCMP_ACT_ERRNO(EACCES), name, flags, bit, bit);
    }
    return rc;
}

/* Calls that depend on what they are called with: threads but no processes, signals to itself,
 * limits read but not set. */
static int add_conditions(scmp_filter_ctx filter)
{
    const scmp_datum_t self = (scmp_datum_t)getpid(), all = ~(scmp_datum_t)0, word = UINT32_MAX;
    int rc = rule(filter, SCMP_ACT_ALLOW, "clone", 0, CLONE_THREADS, CLONE_THREADS);

    if (rc == 0)
        rc = rule(filter, SCMP_ACT_ALLOW, "tgkill", 0, word, self);
    if (rc == 0)
        rc = rule(filter, SCMP_ACT_ALLOW, "kill", 0, word, self);
    if (rc == 0)
        rc = rule(filter, SCMP_ACT_ALLOW, "prlimit64", 2, all, 0);
    for (size_t i = 0; rc == 0 && i < sizeof controls / sizeof *controls; i++)
        rc = rule(filter, SCMP_ACT_ALLOW, "prctl", 0, word, (scmp_datum_t)controls[i]);
    return rc;
}

static int add_rules(scmp_filter_ctx filter, enum rm_sandbox_rights rights)
{
    int rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree, not a list */

    for (size_t i = 0; rc == 0 && i < sizeof allowed / sizeof *allowed; i++)
        rc = plain_rule(filter, SCMP_ACT_ALLOW, allowed[i]);
    for (size_t i = 0; rc == 0 && i < sizeof refused / sizeof *refused; i++)
        rc = plain_rule(filter, SCMP_ACT_ERRNO((uint32_t)refused[i].error), refused[i].name);
    if (rc == 0)
        rc = add_opening(filter, rights > RM_SANDBOX_READS);
    for (size_t i = 0; rc == 0 && rights == RM_SANDBOX_MAKES && i < sizeof making / sizeof *making;
         i++)
        rc = plain_rule(filter, SCMP_ACT_ALLOW, making[i]);
    return rc ? rc : add_conditions(filter);
}

int rm_sandbox_calls(enum rm_sandbox_rights rights, struct rm_error *error)
{
    if (prctl(PR_GET_SECCOMP) < 0)
        return 0;
    read_names();
    rm_watch_name_calls(name_of);
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
    if (!filter)
        return rm_fail(error, -ENOMEM, "sandbox: no memory for the list of system calls");
    int rc = add_rules(filter, rights);
    if (rc == 0)
        rc = seccomp_load(filter);
    seccomp_release(filter);
    return rc < 0 ? rm_fail(error, rc, "sandbox: the list of system calls cannot be set: %s",
                            strerror(-rc))
                  : 1;
}

#else

int rm_sandbox_calls(enum rm_sandbox_rights rights, struct rm_error *error)
{
    (void)rights, (void)error;
    return 0;
}

#endif
