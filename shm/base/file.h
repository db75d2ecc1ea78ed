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

/* Opens /dev/null in the place of descriptors 0, 1 and 2 that are closed, so that nothing else gets
 * their numbers and is written to instead. Printing to a standard output that was closed still
 * fails; what goes to standard error is lost. */
void rm_file_hold_standard(void);

#endif
