/* sandbox: confines a process that steps foreign worlds. The process gives up, for good, the rights
 * that worlds do not need: new privileges, system calls that are not in a list, writing files, and
 * memory beyond a limit. A call that is not in the list ends the process with a report
 * (actor/worlds/watch.h).
 *
 * The process keeps memory, threads, time, reading files, open descriptors, and files below one
 * directory. No call names another process, and no signal reaches one. */
#ifndef RM_ACTOR_WORLDS_SANDBOX_H
#define RM_ACTOR_WORLDS_SANDBOX_H

#include "config/experiment.h"
#include "shm/base/error.h"

#include <stdbool.h>

/* Confines the process. actor.memory_limit always applies. The other limits apply to worlds of a
 * shared object unless actor.sandbox is "off", and to all worlds if it is "on". Call before any
 * code of the world runs. Files can be created and written only below `directory` (NULL: nowhere).
 * If the kernel or this build lacks a feature, a message on standard error names the feature; with
 * actor.sandbox "on" that is an error, -EPROTO. */
int rm_sandbox_enter(const struct rm_experiment *experiment, const char *directory,
                     struct rm_error *error);

/* The parts of rm_sandbox_enter(). Each returns 1 after success, 0 if the kernel or this build
 * lacks the feature, or a negative errno. */

/* Restricts files, by Landlock. Writing, creating and removing files outside of `directory` (NULL:
 * anywhere) and starting programs fail with EACCES. The process cannot trace other processes or
 * read them through /proc. From version 6 of Landlock it cannot reach them by signals or abstract
 * sockets either. */
int rm_sandbox_files(const char *directory, struct rm_error *error);

/* Confines a program that is not a world, and the programs that it starts: no new privileges; no
 * capabilities except those for opening files; writing, creating and removing files only below
 * `directory`; from version 6 of Landlock no signals to other processes. Reading files, starting
 * programs and the network stay allowed. */
int rm_sandbox_writing(const char *directory, struct rm_error *error);

/* Confines a program that only reads, before it has threads: no new privileges; no capabilities
 * except those for opening files; no writing and creating of files, except `devices`, a pattern; no
 * removing of them, except in `folder` (NULL: nowhere); no starting of programs; from version 4 of
 * Landlock no new TCP connections and ports; from version 6 no signals to other processes. */
int rm_sandbox_reading(const char *folder, const char *devices, struct rm_error *error);

/* The system calls on files that stay allowed. rm_sandbox_files() restricts them further. */
enum rm_sandbox_rights {
    RM_SANDBOX_READS, /* other calls fail with -EACCES */
    RM_SANDBOX_WRITES,
    RM_SANDBOX_MAKES /* also creates folders, renames and removes, for learners in the process */
};

/* Restricts system calls, by seccomp: a call that is not in the list raises SIGSYS. */
int rm_sandbox_calls(enum rm_sandbox_rights rights, struct rm_error *error);

/* Limits writable private memory: data, heap, stacks of threads. Shared memory does not count. 0:
 * no limit. */
int rm_sandbox_memory(uint64_t bytes, struct rm_error *error);

/* --- programs that are started confined ------------------------------------------------------- */

struct sock_filter;

/* In a filter, a placeholder for the number of the process that enters it. */
#define RM_SANDBOX_SELF UINT32_C(0x7fedcba9)

/* The confinement of a program, prepared by the process that starts the program. */
struct rm_sandbox_program {
    int rules; /* rules of Landlock; -1: the kernel has no Landlock */
    struct sock_filter *filter;
    unsigned short length; /* length of the filter; 0: seccomp is not available */
};

struct rm_sandbox_program_needs {
    const char *const *readable;   /* files, and folders with all they contain; ends with NULL */
    const char *const *executable; /* programs and their loaders; ends with NULL */
    const char *writable;          /* a folder; it is readable too */
    bool network;                  /* sockets of the internet */
};

/* Prepares the confinement. Skips readable paths that do not exist. In the program, calls that are
 * not allowed fail with EACCES instead of SIGSYS, because ordinary libraries try many calls that
 * they do not need. Returns 0 or a negative errno. *lacks names the features that the kernel or
 * this build lacks; NULL: none. */
int rm_sandbox_program_prepare(struct rm_sandbox_program *program,
                               const struct rm_sandbox_program_needs *needs, const char **lacks,
                               struct rm_error *error);

/* Call in a child before it executes the program: makes only system calls. Sets errno. */
int rm_sandbox_program_enter(const struct rm_sandbox_program *program, struct rm_error *error);
void rm_sandbox_program_free(struct rm_sandbox_program *program);

/* Makes the filter, as a part of rm_sandbox_program_prepare(). Returns 1, or 0 without seccomp. */
int rm_sandbox_program_calls(struct rm_sandbox_program *program, bool network,
                             struct rm_error *error);

#endif
