/* file: what everybody who writes files that must last does alike. Any thread. */
#ifndef RM_SHM_BASE_FILE_H
#define RM_SHM_BASE_FILE_H

#include "shm/base/error.h"

#include <stddef.h>
#include <sys/types.h>

/* All of it, however much the system takes at a time. 0 or negative errno. */
int rm_file_write_all(int fd, const void *data, size_t bytes);

/* Opens a file of this user's own, close-on-exec: not through a symbolic link in its place, nothing
 * that is no regular file, and nobody else's. Descriptor, or negative errno and words: -ELOOP: it
 * is a link; -EPERM: it is another user's; -EINVAL: it is no file. */
int rm_file_open(const char *path, int flags, mode_t mode, struct rm_error *error);

/* What was made, renamed or removed in this folder lasts from now on. */
int rm_file_sync_folder(const char *folder, struct rm_error *error);

/* The same for the folder that `path` is in. */
int rm_file_sync_above(const char *path, struct rm_error *error);

/* Opens /dev/null in the place of descriptors 0, 1 and 2 that are closed, so that nothing else gets
 * their numbers and is written to instead. Printing to a standard output that was closed still
 * fails; what goes to standard error is lost. */
void rm_file_hold_standard(void);

/* For a message about a path that was given: " (relative paths start at the working directory,
 * /srv/rl)", or "" for an absolute one. Writes `text` and returns it. */
const char *rm_file_start(const char *path, char *text, size_t size);

#endif
