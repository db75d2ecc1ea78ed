/* plugin_file: finds the shared objects that programs open only when needed: the plugins for GPUs
 * and for Prolog, and the loop of Python workers. Any thread. */
#ifndef RM_SHM_BASE_PLUGIN_FILE_H
#define RM_SHM_BASE_PLUGIN_FILE_H

#include "shm/base/error.h"

#include <limits.h>

/* Writes the path of the plugin `file` to `path`. If the environment variable `variable` is set,
 * its value is the path; else the first existing file of the program's folder, ../lib/ and
 * ../lib/ringmaster/. -ENOENT: no such file; the message ends with `otherwise`, a likely reason. */
int rm_plugin_find(const char *file, const char *variable, const char *otherwise,
                   char path[PATH_MAX], struct rm_error *error);

#endif
