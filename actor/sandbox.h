/* sandbox: a process that steps somebody's worlds gives up what worlds do not need: new privileges,
 * every system call that is not on a list, files to write, memory beyond a limit. There is no way
 * back. A call that is not on the list ends the process with a report (actor/worlds/watch.h).
 *
 * Left are: memory, threads, time, reading files, what is open already, and files below one
 * directory. No call names another process, and no signal reaches one. */
#ifndef RM_ACTOR_SANDBOX_H
#define RM_ACTOR_SANDBOX_H

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

#endif
