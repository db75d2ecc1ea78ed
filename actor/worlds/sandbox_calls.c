/* The system calls that worlds, and the process that steps them, may use. */
#include "actor/worlds/sandbox.h"
#include "actor/worlds/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
#define X32_BIT       0x40000000
#define PR_VMA        0x53564d41 /* names a range of memory */
#define CLONE_THREADS ((scmp_datum_t)CLONE_THREAD)

/* With any arguments: none of them names another process, or it is only read. */
static const char *const allowed[] = {
    /* Memory: malloc, stacks of threads, code that is loaded later. What is mapped is bounded by
     * actor.memory_limit, by what is open, and by how it was opened. */
    "brk", "mmap", "munmap", "mprotect", "madvise", "mincore", "msync", "munlock", "membarrier",
    "get_mempolicy", "memfd_create",
    /* Files and pipes: of its own, those that it opened (add_opening()), standard error. */
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "lseek",
    "close", "close_range", "dup", "dup2", "dup3", "pipe", "pipe2", "fsync", "fdatasync",
    "ftruncate", "fallocate", "fadvise64", "sync_file_range",
    /* What there is: by name, as far as permissions let it read. */
    "fstat", "newfstatat", "stat", "lstat", "statx", "fstatfs", "statfs", "access", "faccessat",
    "faccessat2", "readlink", "readlinkat", "getdents64", "getcwd",
    /* Waiting, for its own descriptors and words. */
    "poll", "ppoll", "select", "pselect6", "epoll_create1", "epoll_ctl", "epoll_wait",
    "epoll_pwait", "eventfd2", "futex", "futex_waitv", "pause", "nanosleep", "clock_nanosleep",
    "restart_syscall", "sched_yield",
    /* Time. Alarms are its own. */
    "clock_gettime", "clock_getres", "gettimeofday", "time", "times", "alarm", "setitimer",
    "getitimer", "getrusage",
    /* Threads of its own. Affinity and policy of any process may be read: the C library asks by a
     * thread's number. */
    "set_robust_list", "rseq", "set_tid_address", "arch_prctl", "gettid", "sched_getaffinity",
    "sched_getparam", "sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min",
    "getcpu", "exit", "exit_group",
    /* Its own signals: handlers, masks, their stack. */
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait",
    "rt_sigsuspend", "sigaltstack",
    /* Who and where. */
    "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrlimit", "sysinfo", "uname",
    "getrandom"};

/* Where learners work in the same process: folders and names of checkpoints. */
static const char *const making[] = {"mkdir",     "mkdirat", "rename",   "renameat",
                                     "renameat2", "unlink",  "unlinkat", "rmdir"};

/* Quietly refused: libraries try these, and do without. */
static const struct {
    const char *name;
    int error;
} refused[] = {{"clone3", ENOSYS}, /* its flags stand in memory, where no filter looks */
               {"openat2", ENOSYS},    {"ioctl", ENOTTY}, /* FIOSETOWN, FIOASYNC, TIOCSTI */
               {"mremap", ENOMEM}, /* it would grow a slot of the board over its neighbours */
               {"mlock", EPERM},       {"mbind", EPERM},
               {"setpriority", EPERM}, {"getpriority", EPERM}};

/* Programs of their own, with libraries of all kinds: what they are allowed besides. Files are as
 * Landlock has them. */
static const char *const of_programs[] = {"execve",
                                          "mremap",
                                          "mlock",
                                          "chdir",
                                          "fchdir",
                                          "umask",
                                          "getpgrp",
                                          "getpgid",
                                          "getsid",
                                          "getresuid",
                                          "getresgid",
                                          "getgroups",
                                          "wait4",
                                          "waitid",
                                          "truncate",
                                          "chmod",
                                          "fchmod",
                                          "fchmodat",
                                          "utimensat",
                                          "link",
                                          "linkat",
                                          "symlink",
                                          "symlinkat",
                                          "copy_file_range",
                                          "sendfile",
                                          "splice",
                                          "flock",
                                          "statx",
                                          "getxattr",
                                          "lgetxattr",
                                          "fgetxattr",
                                          "listxattr",
                                          "socketpair",
                                          "sendto",
                                          "recvfrom",
                                          "sendmsg",
                                          "recvmsg",
                                          "shutdown",
                                          "timerfd_create",
                                          "timerfd_settime",
                                          "timerfd_gettime",
                                          "timer_create",
                                          "timer_settime",
                                          "timer_delete",
                                          "signalfd4",
                                          "inotify_init1",
                                          "inotify_add_watch",
                                          "inotify_rm_watch",
                                          "getpriority",
                                          "clock_adjtime",
                                          "pkey_alloc",
                                          "pkey_free",
                                          "pkey_mprotect",
                                          "set_mempolicy",
                                          "mbind",
                                          "capget"};

/* With actor.network, beside socket() of these families. */
static const char *const of_networks[] = {"connect",    "bind",        "listen",      "accept",
                                          "accept4",    "getsockname", "getpeername", "setsockopt",
                                          "getsockopt", "sendmmsg",    "recvmmsg"};
/* Refused so that who tries does without. */
static const struct {
    const char *name;
    int error;
} unknown[] = {{"clone3", ENOSYS}, {"openat2", ENOSYS}, {"ioctl", ENOTTY}};
static const scmp_datum_t locks[] = {F_GETLK, F_SETLK, F_SETLKW};
static const scmp_datum_t families[] = {AF_INET, AF_INET6, AF_NETLINK};

/* Allowed with these arguments alone, compared below a mask. Several rows: one of them. */
#define WHOLE_WORD ((scmp_datum_t)UINT32_MAX)
#define ANY                                                                                        \
    {                                                                                              \
        0, 0, 0                                                                                    \
    }
#define SELF (~(scmp_datum_t)0) /* stands for the process's own number */
static const struct condition {
    const char *name;
    struct {
        unsigned argument;
        scmp_datum_t mask, value;
    } is[2];
} conditions[] = {
    /* Threads, no processes. */
    {"clone", {{0, CLONE_THREADS, CLONE_THREADS}, ANY}},
    /* abort() and raise(); a thread's cancellation. */
    {"tgkill", {{0, WHOLE_WORD, SELF}, ANY}},
    {"kill", {{0, WHOLE_WORD, SELF}, ANY}},
    /* getrlimit(): of itself, and sets none. */
    {"prlimit64", {{0, WHOLE_WORD, 0}, {2, ~(scmp_datum_t)0, 0}}},
    /* actor.pin, and libraries that pin the thread that calls. */
    {"sched_setaffinity", {{0, WHOLE_WORD, 0}, ANY}},
    /* Numbers and flags of descriptors; with O_ASYNC, F_SETOWN and F_SETSIG the kernel would send
     * signals to any process of the same user. */
    {"fcntl", {{1, WHOLE_WORD, F_DUPFD}, ANY}},
    {"fcntl", {{1, WHOLE_WORD, F_DUPFD_CLOEXEC}, ANY}},
    {"fcntl", {{1, WHOLE_WORD, F_GETFD}, ANY}},
    {"fcntl", {{1, WHOLE_WORD, F_SETFD}, ANY}},
    {"fcntl", {{1, WHOLE_WORD, F_GETFL}, ANY}},
    {"fcntl", {{1, WHOLE_WORD, F_SETFL}, {2, O_ASYNC | O_NONBLOCK, O_NONBLOCK}}},
    /* The evaluator's rings are its own: made, sealed and checked like shared ones. */
    {"fcntl", {{1, WHOLE_WORD, F_GET_SEALS}, ANY}},
    {"fcntl", {{1, WHOLE_WORD, F_ADD_SEALS}, {2, WHOLE_WORD, F_SEAL_SHRINK | F_SEAL_GROW}}},
    /* Names of threads and of memory, for those who look. */
    {"prctl", {{0, WHOLE_WORD, PR_SET_NAME}, ANY}},
    {"prctl", {{0, WHOLE_WORD, PR_GET_NAME}, ANY}},
    {"prctl", {{0, WHOLE_WORD, PR_VMA}, ANY}},
    /* It dies with the daemon: that can be set, and not be taken back. */
    {"prctl", {{0, WHOLE_WORD, PR_SET_PDEATHSIG}, {1, WHOLE_WORD, SIGKILL}}},
    {"prctl", {{0, WHOLE_WORD, PR_GET_PDEATHSIG}, ANY}},
    {"prctl", {{0, WHOLE_WORD, PR_SET_NO_NEW_PRIVS}, ANY}},
};

/* As `conditions` say otherwise, refused without a report: libraries pin all their threads. */
#define PINS_OTHERS "sched_setaffinity"
/* Likewise without O_NONBLOCK. That is shared by all who have the descriptor: the daemon, which
 * rings eventfds, would wait for ever at one that is full. */
#define BLOCKS "fcntl"

static char names[CALLS_MAX][NAME_BYTES];

static uint32_t native;

/* Numbers of another architecture mean other calls. x32's have a bit of their own. */
static const char *name_of(unsigned architecture, int number)
{
    if (architecture != native || number & X32_BIT)
        return "of another architecture";
    return number >= 0 && number < CALLS_MAX && names[number][0] ? names[number] : NULL;
}

static void read_names(void)
{
    native = seccomp_arch_native();
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

/* Calls that depend on what they are called with. */
static int add_conditions(scmp_filter_ctx filter, uint32_t self)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof conditions / sizeof *conditions; i++) {
        const struct condition *c = &conditions[i];
        struct scmp_arg_cmp match[2];
        unsigned n = 0;
        for (; n < 2 && c->is[n].mask; n++)
            match[n] =
                (struct scmp_arg_cmp){.arg = c->is[n].argument,
                                      .op = SCMP_CMP_MASKED_EQ,
                                      .datum_a = c->is[n].mask,
                                      .datum_b = c->is[n].value == SELF ? self : c->is[n].value};
        rc = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(c->name),
                                    n, match);
    }
    for (unsigned bit = 0; rc == 0 && bit < 32; bit++)
        rc = rule(filter, SCMP_ACT_ERRNO(EPERM), PINS_OTHERS, 0, (scmp_datum_t)1 << bit,
                  (scmp_datum_t)1 << bit);
    return rc ? rc
              : seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM),
                                 seccomp_syscall_resolve_name(BLOCKS), 2,
                                 SCMP_A1(SCMP_CMP_MASKED_EQ, WHOLE_WORD, F_SETFL),
                                 SCMP_A2(SCMP_CMP_MASKED_EQ, O_ASYNC | O_NONBLOCK, 0));
}

static int add_rules(scmp_filter_ctx filter, enum rm_sandbox_rights rights)
{
    int rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree, not a list */

    if (rc == 0) /* the library's default ends a thread, without a report */
        rc = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_TRAP);

    for (size_t i = 0; rc == 0 && i < sizeof allowed / sizeof *allowed; i++)
        rc = plain_rule(filter, SCMP_ACT_ALLOW, allowed[i]);
    for (size_t i = 0; rc == 0 && i < sizeof refused / sizeof *refused; i++)
        rc = plain_rule(filter, SCMP_ACT_ERRNO((uint32_t)refused[i].error), refused[i].name);
    if (rc == 0)
        rc = add_opening(filter, rights > RM_SANDBOX_READS);
    for (size_t i = 0; rc == 0 && rights == RM_SANDBOX_MAKES && i < sizeof making / sizeof *making;
         i++)
        rc = plain_rule(filter, SCMP_ACT_ALLOW, making[i]);
    return rc ? rc : add_conditions(filter, (uint32_t)getpid());
}

int rm_sandbox_calls(enum rm_sandbox_rights rights, struct rm_error *error)
{
    if (prctl(PR_GET_SECCOMP, 0UL, 0UL, 0UL, 0UL) < 0)
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

static int add_all(scmp_filter_ctx filter, const char *const *calls, size_t n)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = plain_rule(filter, SCMP_ACT_ALLOW, calls[i]);
    return rc;
}

static int add_program_rules(scmp_filter_ctx filter, bool network)
{
    int rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);

    if (rc == 0)
        rc = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EACCES));
    if (rc == 0)
        rc = add_all(filter, allowed, sizeof allowed / sizeof *allowed);
    if (rc == 0)
        rc = add_all(filter, of_programs, sizeof of_programs / sizeof *of_programs);
    if (rc == 0)
        rc = add_all(filter, making, sizeof making / sizeof *making);
    if (rc == 0)
        rc = add_opening(filter, true);
    for (size_t i = 0; rc == 0 && i < sizeof unknown / sizeof *unknown; i++)
        rc = plain_rule(filter, SCMP_ACT_ERRNO((uint32_t)unknown[i].error), unknown[i].name);
    for (size_t i = 0; rc == 0 && i < sizeof locks / sizeof *locks; i++)
        rc = rule(filter, SCMP_ACT_ALLOW, "fcntl", 1, WHOLE_WORD, locks[i]);
    if (rc == 0 && network)
        rc = add_all(filter, of_networks, sizeof of_networks / sizeof *of_networks);
    for (size_t i = 0; rc == 0 && network && i < sizeof families / sizeof *families; i++)
        rc = rule(filter, SCMP_ACT_ALLOW, "socket", 0, WHOLE_WORD, families[i]);
    return rc ? rc : add_conditions(filter, RM_SANDBOX_SELF);
}

/* The filter as the kernel takes it, out of the library by way of a file. */
static int read_filter(scmp_filter_ctx filter, struct rm_sandbox_program *program)
{
    struct stat st;
    const int fd = memfd_create("filter", MFD_CLOEXEC);
    int rc = fd < 0 ? -errno : seccomp_export_bpf(filter, fd);
    if (rc == 0 && fstat(fd, &st) < 0)
        rc = -errno;
    if (rc == 0 && !(program->filter = malloc((size_t)st.st_size)))
        rc = -ENOMEM;
    if (rc == 0 && pread(fd, program->filter, (size_t)st.st_size, 0) != st.st_size)
        rc = -EIO;
    if (rc == 0)
        program->length = (unsigned short)((size_t)st.st_size / sizeof *program->filter);
    if (fd >= 0)
        close(fd);
    return rc;
}

int rm_sandbox_program_calls(struct rm_sandbox_program *program, bool network,
                             struct rm_error *error)
{
    if (prctl(PR_GET_SECCOMP, 0UL, 0UL, 0UL, 0UL) < 0)
        return 0;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EACCES)); /* as Landlock refuses files */
    int rc = filter ? add_program_rules(filter, network) : -ENOMEM;
    if (rc == 0)
        rc = read_filter(filter, program);
    seccomp_release(filter);
    return rc < 0 ? rm_fail(error, rc, "sandbox: the list of system calls cannot be made: %s",
                            strerror(-rc))
                  : 1;
}

#else

int rm_sandbox_calls(enum rm_sandbox_rights rights, struct rm_error *error)
{
    (void)rights, (void)error;
    return 0;
}

int rm_sandbox_program_calls(struct rm_sandbox_program *program, bool network,
                             struct rm_error *error)
{
    (void)program, (void)network, (void)error;
    return 0;
}

#endif
