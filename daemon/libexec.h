/* libexec: where the programs are. */
#ifndef RM_DAEMON_LIBEXEC_H
#define RM_DAEMON_LIBEXEC_H

#include "shm/base/error.h"

#include <stddef.h>

/* RINGMASTER_LIBEXEC if set; else beside this program in a build, in libexec where it is installed.
 */
int rm_libexec_find(char *path, size_t size, struct rm_error *error);

/* A program that people type, ringctl or ringmasterd, for execvp(): its path beside this one, or
 * its name where a distribution has put it into another folder. */
void rm_program_beside(char *path, size_t size, const char *name);

#endif
