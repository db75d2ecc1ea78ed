/* sandbox: a process that steps foreign worlds gives up rights that worlds do not need: new
 * privileges, system calls that are not in a list, writing files, and memory beyond a limit. It
 * cannot get them back. A call that is not in the list ends the process with a report
 * (actor/worlds/watch.h).
 *
 * The process keeps memory, threads, time, reading files, open descriptors, and files below one
 * directory. No call names another process, and no signal reaches one. */
#ifndef RM_ACTOR_WORLDS_SANDBOX_H
#define RM_ACTOR_WORLDS_SANDBOX_H

#include "config/experiment.h"
#include "shm/base/error.h"

#include <stdbool.h>

/* Confines the process by the experiment: always by actor.memory_limit; by the rest for worlds of a
 * shared object unless actor.sandbox is "off", and for all worlds if it is "on". Call before any
 * code of the world runs. Files can be created and written only below `directory` (NULL: nowhere).
 * A message on standard error names what the kernel or this build cannot do; with "on" that is an
 * error, -EPROTO. */
int rm_sandbox_enter(const struct rm_experiment *experiment, const char *directory,
                     struct rm_error *error);

/* The parts of it. They return 1: done; 0: the kernel or this build cannot; negative errno: failed.
 */

/* Files, by Landlock: writing, creating and removing outside of `directory` (NULL: everywhere), and
 * starting programs, fail with -EACCES. Other processes cannot be traced or read through /proc, and
 * from version 6 not be reached by signals or abstract sockets. */
int rm_sandbox_files(const char *directory, struct rm_error *error);

/* For a program that is not a world, and what it starts: no new privileges, no capabilities but
 * those that open files, files written, created and removed below `directory` alone, no signals to
 * other processes (from version 6). Reading, starting programs and the network stay. */
int rm_sandbox_writing(const char *directory, struct rm_error *error);

/* Allowed calls on files, which rm_sandbox_files() restricts further. */
enum rm_sandbox_rights {
    RM_SANDBOX_READS, /* other calls fail with -EACCES */
    RM_SANDBOX_WRITES,
    RM_SANDBOX_MAKES /* also creates folders, renames and removes, for learners in the process */
};

/* System calls, by seccomp: a call that is not in the list raises SIGSYS. */
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
    int rules; /* of Landlock, -1: the kernel has none */
    struct sock_filter *filter;
    unsigned short length; /* of the filter, 0: seccomp is not available */
};

struct rm_sandbox_program_needs {
    const char *const *readable;   /* files, and folders with all they contain; ends with NULL */
    const char *const *executable; /* programs and their loaders; ends with NULL */
    const char *writable;          /* a folder; it is readable too */
    bool network;                  /* sockets of the internet */
};

/* Skips readable paths that do not exist. In the program, calls that are not allowed fail with
 * EACCES, since ordinary libraries try many calls that they do not need. Returns 0; *lacks is NULL,
 * or names what the kernel or this build cannot do. */
int rm_sandbox_program_prepare(struct rm_sandbox_program *program,
                               const struct rm_sandbox_program_needs *needs, const char **lacks,
                               struct rm_error *error);

/* Call in a child before it executes the program: makes only system calls. Sets errno. */
int rm_sandbox_program_enter(const struct rm_sandbox_program *program, struct rm_error *error);
void rm_sandbox_program_free(struct rm_sandbox_program *program);

/* The part of rm_sandbox_program_prepare() that makes the filter. 1, or 0 without seccomp. */
int rm_sandbox_program_calls(struct rm_sandbox_program *program, bool network,
                             struct rm_error *error);

#endif
