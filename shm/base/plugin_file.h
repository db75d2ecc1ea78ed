/* plugin_file: where the shared objects are that programs open only where they are needed: that of
 * GPUs, that of Prolog. Any thread. */
#ifndef RM_SHM_BASE_PLUGIN_FILE_H
#define RM_SHM_BASE_PLUGIN_FILE_H

#include "shm/base/error.h"

#include <limits.h>

/* Puts the path of the plugin `file` into `path`: what the environment variable `variable` says, or
 * else the first that is there of: beside this program, ../lib/, ../lib/ringmaster/. -ENOENT: none
 * is there; the message ends with `otherwise`, why that may be. */
int rm_plugin_find(const char *file, const char *variable, const char *otherwise,
                   char path[PATH_MAX], struct rm_error *error);

#endif
