/* file: what everybody who writes files that must last does alike. Any thread. */
#ifndef RM_SHM_BASE_FILE_H
#define RM_SHM_BASE_FILE_H

#include "shm/base/error.h"

#include <stddef.h>

/* All of it, however much the system takes at a time. 0 or negative errno. */
int rm_file_write_all(int fd, const void *data, size_t bytes);

/* What was made, renamed or removed in this folder lasts from now on. */
int rm_file_sync_folder(const char *folder, struct rm_error *error);

/* The same for the folder that `path` is in. */
int rm_file_sync_above(const char *path, struct rm_error *error);

#endif
