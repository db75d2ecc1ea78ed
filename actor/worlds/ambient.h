/* ambient: after every call into a world (actor/worlds/watch.h), restores state of the thread and
 * the process that the world's code may have changed and that Ringmaster relies on.
 *
 * Floating-point control, the x87 stack, the direction and alignment flags and the locale are
 * checked after every call, without a system call. The signal mask, the umask and the working
 * directory need system calls: they are checked after every call except step(), and after step() at
 * most once in a millisecond. A confined world cannot change the umask or the working directory.
 *
 * A process has one such state. Used by the thread that steps worlds. */
#ifndef RM_ACTOR_WORLDS_AMBIENT_H
#define RM_ACTOR_WORLDS_AMBIENT_H

#include <stdbool.h>

/* Records the current state, before a call other than step(). */
void rm_ambient_note(void);

/* Restores the recorded state. `step`: after step(), which is called too often for system calls. */
void rm_ambient_restore(bool step);

/* Stops checking the umask and the working directory: the process is confined and cannot change
 * them. */
void rm_ambient_confined(void);

#endif
