/* archive: named byte streams in one file, compressed and checked block by block. Checkpoints store
 * replay and worlds in archives.
 *
 *   file    "RMARCH01", then blocks, the last of which is an end block
 *   block   u64 XXH3 of all that follows in the block, seeded with the block's number
 *           u32 kind: 1 a stream begins (data: its name), 2 data, 3 the stream ends, 4 the end
 *           u32 raw bytes, u32 stored bytes: equal when the data is stored as it is
 *           stored bytes: LZ4 block format
 *
 * All numbers are little-endian. If any bit of the file changes, or if the file is cut short,
 * reading fails with -EBADMSG at that block. Streams are read in the order in which they were
 * written.
 *
 * A writer or reader belongs to one thread. */
#ifndef RM_SHM_BASE_ARCHIVE_H
#define RM_SHM_BASE_ARCHIVE_H

#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RM_ARCHIVE_BLOCK    262144u /* most raw bytes of a block */
#define RM_ARCHIVE_NAME_MAX 128     /* bytes of a stream's name, NUL included */

struct rm_archive_writer;
struct rm_archive_reader;

/* Creates `path`, or truncates it. Every call returns 0 or negative errno. After an error the
 * writer writes nothing more, and close returns the first error. */
int rm_archive_create(struct rm_archive_writer **writer, const char *path, struct rm_error *error);
int rm_archive_begin(struct rm_archive_writer *writer, const char *name);
int rm_archive_put(struct rm_archive_writer *writer, const void *data, size_t bytes);
int rm_archive_end(struct rm_archive_writer *writer);

/* Writes the end block, syncs and closes. *bytes: the size of the file. Frees the writer in any
 * case. After an error the caller removes the incomplete file. */
int rm_archive_close(struct rm_archive_writer *writer, uint64_t *bytes, struct rm_error *error);

/* Errors: -ENOENT and the like of open(); -EBADMSG: not an archive. */
int rm_archive_open(struct rm_archive_reader **reader, const char *path, struct rm_error *error);

/* Begins the next stream: 1 with its name, 0 at the end, or negative errno. Skips and checks the
 * rest of the stream before. */
int rm_archive_next(struct rm_archive_reader *reader, char name[RM_ARCHIVE_NAME_MAX],
                    struct rm_error *error);

/* Reads exactly `bytes` of the stream; -ENODATA when fewer are left. */
int rm_archive_get(struct rm_archive_reader *reader, void *data, size_t bytes,
                   struct rm_error *error);

void rm_archive_reader_close(struct rm_archive_reader *reader);

#endif
