/* libexec: finds the programs. */
#ifndef RM_DAEMON_LIBEXEC_H
#define RM_DAEMON_LIBEXEC_H

#include "shm/base/error.h"

#include <stddef.h>

/* Writes the folder of the worker programs: RINGMASTER_LIBEXEC if it is set; otherwise this
 * program's folder in a build, and libexec if installed.
 */
int rm_libexec_find(char *path, size_t size, struct rm_error *error);

/* Writes the path of ringctl or ringmasterd, for execvp(): beside this program, or only the name if
 * a distribution has put it into another folder. */
void rm_program_beside(char *path, size_t size, const char *name);

#endif
