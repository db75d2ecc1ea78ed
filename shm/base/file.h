/* file: helpers for writing files that must survive a crash. Any thread. */
#ifndef RM_SHM_BASE_FILE_H
#define RM_SHM_BASE_FILE_H

#include "shm/base/error.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Writes all bytes, with as many calls of write() as needed. 0 or negative errno. */
int rm_file_write_all(int fd, const void *data, size_t bytes);

/* Is the open file still at `path`? False if it was removed or replaced after it was opened: then a
 * lock on it excludes no other process. Does not follow a link at `path`. */
bool rm_file_is_at(int fd, const char *path);

/* Opens the folder at `path` (O_PATH), one name after another, so that the result stays the same if
 * a folder is moved meanwhile. Follows only links of this user or of root. `make`: creates missing
 * folders. `real`, if not NULL, gets the path without links. Returns the descriptor or a negative
 * errno. -EPERM: a link in the path belongs to another user. All functions below resolve paths in
 * this way. */
int rm_file_folder(const char *path, bool make, char real[PATH_MAX], struct rm_error *error);

/* Opens a regular file of this user, close-on-exec. Does not follow a symbolic link at `path`.
 * Returns the descriptor or a negative errno. -ELOOP: `path` is a symbolic link. -EPERM: the file,
 * or a link in the path, belongs to another user, or it is a hard link in a folder of one. -EINVAL:
 * it is not a regular file. A file that is refused is not truncated. */
int rm_file_open(const char *path, int flags, mode_t mode, struct rm_error *error);

/* Reads a whole file, opened as by rm_file_open(). The caller frees *text. Returns 0 or a negative
 * errno: the errors of rm_file_open(), -EFBIG for more than `most` bytes, -ENOMEM. */
int rm_file_read(const char *path, size_t most, char **text, size_t *bytes, struct rm_error *error);

/* Renames within one folder. 0 or negative errno. */
int rm_file_rename(const char *from, const char *to);

/* Removes a file, a link, or an empty folder. 0 or negative errno. */
int rm_file_remove(const char *path);

/* Removes a folder with all that is in it, or a file. What cannot be removed stays, and links are
 * not followed. */
void rm_file_remove_all(const char *path);

/* Creates one folder, unless there is one that belongs to this user. 0 or negative errno. */
int rm_file_make_folder(const char *path, struct rm_error *error);

/* Lists the names in a folder; the caller closes *names, which is NULL after an error. 0 or
 * negative errno. */
int rm_file_list(const char *path, DIR **names, struct rm_error *error);

/* Syncs a folder: files created, renamed or removed in it stay so after a power cut. */
int rm_file_sync_folder(const char *folder, struct rm_error *error);

/* Syncs the folder that contains `path`. */
int rm_file_sync_above(const char *path, struct rm_error *error);

/* Opens /dev/null for each of descriptors 0, 1 and 2 that is closed. Otherwise a file opened later
 * could get one of these numbers, and messages would be printed to it. Printing to a closed
 * standard output still fails; messages on a closed standard error are lost. */
void rm_file_hold_standard(void);

/* A note for messages about `path`: " (relative paths start at the working directory, /srv/rl)", or
 * "" for an absolute path. Writes `text` and returns it. */
const char *rm_file_start(const char *path, char *text, size_t size);

#endif
