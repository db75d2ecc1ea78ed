/* sandbox: a process that steps foreign worlds gives up rights that worlds do not need: new
 * privileges, every system call that is not on a list, files to write, memory beyond a limit. There
 * is no way back. A call that is not on the list ends the process with a report
 * (actor/worlds/watch.h).
 *
 * Left are: memory, threads, time, reading files, what is open already, and files below one
 * directory. No call names another process, and no signal reaches one. */
#ifndef RM_ACTOR_WORLDS_SANDBOX_H
#define RM_ACTOR_WORLDS_SANDBOX_H

#include "config/experiment.h"
#include "shm/base/error.h"

#include <stdbool.h>

/* What the experiment asks for: actor.memory_limit, and unless actor.sandbox is "off" the rest, for
 * worlds of a shared object (all worlds: "on"). Before any code of the world is run. Files can be
 * made and written below `directory` (NULL: nowhere). What the kernel or this build cannot do is
 * said on standard error; with "on" it is an error: -EPROTO. */
int rm_sandbox_enter(const struct rm_experiment *experiment, const char *directory,
                     struct rm_error *error);

/* Its parts. 1: done; 0: the kernel or this build cannot; negative errno: failed. */

/* Files: written, made and removed only below `directory` (NULL: nowhere), programs not started at
 * all; else -EACCES to who tries. Other processes: not traced, nor looked into through /proc; not
 * signalled, nor reached by abstract sockets, from version 6. By Landlock. */
int rm_sandbox_files(const char *directory, struct rm_error *error);

/* What may be done with files, as far as rm_sandbox_files() left it. */
enum rm_sandbox_rights {
    RM_SANDBOX_READS, /* else -EACCES */
    RM_SANDBOX_WRITES,
    RM_SANDBOX_MAKES /* and makes folders, renames, removes: learners beside the worlds do */
};

/* System calls: SIGSYS for what is not on the list. By seccomp. */
int rm_sandbox_calls(enum rm_sandbox_rights rights, struct rm_error *error);

/* Most bytes of private memory that can be written: data, heap, stacks of threads; not what is
 * shared. 0: no limit. */
int rm_sandbox_memory(uint64_t bytes, struct rm_error *error);

/* --- programs that are started confined --------------------------------------------------------
 */

struct sock_filter;

/* Stands in a filter for the number of the process that enters it. */
#define RM_SANDBOX_SELF UINT32_C(0x7fedcba9)

/* What a program is confined to, prepared by the process that starts it. */
struct rm_sandbox_program {
    int rules; /* of Landlock, -1: the kernel has none */
    struct sock_filter *filter;
    unsigned short length; /* of the filter, 0: none can be had */
};

struct rm_sandbox_program_needs {
    const char *const *readable;   /* files and folders with all that is below; end with NULL */
    const char *const *executable; /* programs and their loaders; end with NULL */
    const char *writable;          /* a folder, which may be read as well */
    bool network;                  /* sockets of the internet */
};

/* Readable paths that are not there are passed over. Calls that are not allowed fail with EACCES:
 * ordinary libraries try many, and do without. 0, with *lacks NULL or what the kernel or this build
 * cannot do. */
int rm_sandbox_program_prepare(struct rm_sandbox_program *program,
                               const struct rm_sandbox_program_needs *needs, const char **lacks,
                               struct rm_error *error);

/* In a child, before it becomes the program: makes system calls and nothing else. errno is set. */
int rm_sandbox_program_enter(const struct rm_sandbox_program *program, struct rm_error *error);
void rm_sandbox_program_free(struct rm_sandbox_program *program);

/* Of rm_sandbox_program_prepare(): the filter alone. 1, or 0 where there can be none. */
int rm_sandbox_program_calls(struct rm_sandbox_program *program, bool network,
                             struct rm_error *error);

#endif
