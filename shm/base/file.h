/* file: what everybody who writes files that must last does alike. Any thread. */
#ifndef RM_SHM_BASE_FILE_H
#define RM_SHM_BASE_FILE_H

#include "shm/base/error.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* All of it, however much the system takes at a time. 0 or negative errno. */
int rm_file_write_all(int fd, const void *data, size_t bytes);

/* Holds the folder at `path` open (O_PATH): name by name, so that nobody who moves folders
 * meanwhile leads it elsewhere, and through no link but this user's own and root's. `make`: with
 * what is missing of it. `real`, if not NULL: its path without links. Descriptor, or negative errno
 * and words: -EPERM: a link on the way is another user's. All functions below go this way. */
int rm_file_folder(const char *path, bool make, char real[PATH_MAX], struct rm_error *error);

/* Opens a file of this user's own, close-on-exec: not through a symbolic link in its place, nothing
 * that is no regular file, and nobody else's. Descriptor, or negative errno and words: -ELOOP: it
 * is a link; -EPERM: it is another user's, or as for rm_file_folder(); -EINVAL: it is no file. */
int rm_file_open(const char *path, int flags, mode_t mode, struct rm_error *error);

/* Within one folder. 0 or negative errno. */
int rm_file_rename(const char *from, const char *to);

/* A file, a link, or an empty folder. 0 or negative errno. */
int rm_file_remove(const char *path);

/* Makes one folder, unless there is one of this user's own. 0, or negative errno and words. */
int rm_file_make_folder(const char *path, struct rm_error *error);

/* The names in a folder, for the caller to close; NULL after an error. 0, or negative errno and
 * words. */
int rm_file_list(const char *path, DIR **names, struct rm_error *error);

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
