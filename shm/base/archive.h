/* archive: named byte streams in one file, compressed and checked block by block. What checkpoints
 * keep of replay and worlds.
 *
 *   file    "RMARCH01", then blocks, the last of which is an end block
 *   block   u64 XXH3 of all that follows in the block, seeded with the block's number
 *           u32 kind: 1 a stream begins (data: its name), 2 data, 3 the stream ends, 4 the end
 *           u32 raw bytes, u32 stored bytes: equal when the data is stored as it is
 *           stored bytes: LZ4 block format
 *
 * All numbers little-endian. Whatever bit of such a file changes, reading says -EBADMSG at the
 * block it is in; a file cut short says so too. Streams come back in the order in which they were
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

/* Makes `path` anew. Every call returns 0 or negative errno; after an error the writer only counts
 * it, and close returns the first one. */
int rm_archive_create(struct rm_archive_writer **writer, const char *path, struct rm_error *error);
int rm_archive_begin(struct rm_archive_writer *writer, const char *name);
int rm_archive_put(struct rm_archive_writer *writer, const void *data, size_t bytes);
int rm_archive_end(struct rm_archive_writer *writer);

/* Writes the end, syncs and closes. *bytes: of the file. Frees the writer in any case; a file that
 * could not be written whole is left for the caller to remove. */
int rm_archive_close(struct rm_archive_writer *writer, uint64_t *bytes, struct rm_error *error);

/* Errors: -ENOENT and the like of open(); -EBADMSG: not an archive. */
int rm_archive_open(struct rm_archive_reader **reader, const char *path, struct rm_error *error);

/* The next stream: 1 with its name, 0 at the end, negative errno. What is left of the one before is
 * skipped, and checked. */
int rm_archive_next(struct rm_archive_reader *reader, char name[RM_ARCHIVE_NAME_MAX],
                    struct rm_error *error);

/* Exactly `bytes` of the stream; -ENODATA when it has fewer left. */
int rm_archive_get(struct rm_archive_reader *reader, void *data, size_t bytes,
                   struct rm_error *error);

void rm_archive_reader_close(struct rm_archive_reader *reader);

#endif
