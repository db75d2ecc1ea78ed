/* libexec: where the worker programs are. */
#ifndef RM_DAEMON_LIBEXEC_H
#define RM_DAEMON_LIBEXEC_H

#include "shm/base/error.h"

#include <stddef.h>

/* RINGMASTER_LIBEXEC if set; else beside this program in a build, in libexec where it is installed.
 */
int rm_libexec_find(char *path, size_t size, struct rm_error *error);

#endif
