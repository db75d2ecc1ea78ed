/* recording: writes and reads the rows of a run on disk, in a folder of three files.
 * docs/histories.md shows how to make and read a recording.
 *
 *   recording.json  the experiment, and a description of each stream
 *   chunks          the rows, in consecutive chunks
 *   index           the position of each chunk
 *
 * A STREAM has the rows of one ring (shm/ring.h), which one actor wrote for one policy. With
 * `record.every` "step" an entry is a row. The columns obs, mask (if the world has masks), reward,
 * flags and action have a value or more for every lane; version and generation have one value for
 * every row. With "episode" an entry is an episode of a lane, in the order in which the episodes
 * ended: lane, row (the episode's first), steps, return, flags (of its last row) and version (the
 * last that acted).
 *
 * A CHUNK covers rows [first, first + rows) of a stream:
 *
 *   "RMCHUNK1"
 *   u64 XXH3 of the rest, seeded with the chunk's offset in the file
 *   u32 stream, u32 rows, u64 first
 *   u32 entries, u32 raw bytes, u32 stored bytes, u32 zero
 *   stored bytes: in LZ4's block format; uncompressed if there are as many as raw bytes
 *
 * Raw bytes are the columns in order. A column begins with u32 kind, u32 values, u32 bits, u32
 * length of the rest in bytes; then follow all entries of lane 0, then those of lane 1, and so on.
 * Kind 0: the entries are not encoded. Kind 1: a table of `values` distinct entries, then for each
 * entry its index in the table, in `bits` bits each, the lowest bit first.
 *
 * If the first row of a chunk is before the end of its stream, the chunk replaces the rows from its
 * first row on: a run that was resumed from a checkpoint has made these rows again. If the first
 * row is after the end, the rows between were lost.
 *
 * INDEX: for each chunk u64 offset, u64 first, u32 stream, u32 rows, u64 the chunk's hash. The
 * index repeats the chunks' heads, so that the other chunks are found if one head is damaged. If
 * the index is too short, the writer completes it from the chunks.
 *
 * All numbers are little-endian. Complete chunks survive the death of the writer at any time. The
 * next writer removes the bytes after the last complete chunk. */
#ifndef RM_LEARNER_RECORDING_H
#define RM_LEARNER_RECORDING_H

#include "config/experiment.h"
#include "shm/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RM_RECORDING_COLUMNS 7
#define RM_RECORDING_DIMS    4

/* The type of a column's values. */
enum rm_recording_type {
    RM_RECORDED_U8 = 0,
    RM_RECORDED_I8,
    RM_RECORDED_I16,
    RM_RECORDED_I32,
    RM_RECORDED_U32,
    RM_RECORDED_U64,
    RM_RECORDED_F32,
    RM_RECORDED_F64,
    RM_RECORDED_TYPES
};

struct rm_recording_column {
    char name[16];
    enum rm_recording_type type;
    bool per_lane; /* true: an entry has a value for every lane; false: one value */
    uint32_t dims; /* of one lane's value */
    uint32_t shape[RM_RECORDING_DIMS];
    size_t bytes; /* of one lane's value */
};

struct rm_recording_stream {
    char name[2 * RM_TEXT_MAX];
    char policy[RM_TEXT_MAX];
    uint32_t actor, agents, worlds, lanes; /* lanes: agents * worlds; 1 with "episode" */
    uint64_t first_world;
    uint32_t actions; /* number of discrete actions; 0: none */
    uint32_t columns;
    struct rm_recording_column column[RM_RECORDING_COLUMNS];
};

struct rm_recording_chunk {
    uint64_t offset, first, hash;
    uint32_t stream, rows;
    uint32_t entries, raw, stored; /* known once the chunk is read */
};

/* A column's name in NumPy: "<f4". */
const char *rm_recording_type_name(enum rm_recording_type type);

/* Fills in a column's name, type and shape, and with them its bytes. */
void rm_recording_add_column(struct rm_recording_stream *stream, const char *name,
                             enum rm_recording_type type, bool per_lane, uint32_t dims,
                             const uint32_t *shape);

/* --- writing ---------------------------------------------------------------------------------- */

struct rm_recording_writer;

/* Opens the recording in `folder`. If there is none, creates it and writes `experiment` and `run`
 * (a name) into it. An existing recording is continued if it is of this run and has these streams;
 * otherwise -EINVAL. The streams outlive the writer. */
int rm_recording_writer_open(struct rm_recording_writer **writer, const char *folder,
                             const char *run, enum rm_record_every every, const json_t *experiment,
                             const struct rm_recording_stream *streams, uint32_t count,
                             struct rm_error *error);

/* The index after the last recorded row of a stream; 0: no row is recorded. */
uint64_t rm_recording_writer_end(const struct rm_recording_writer *writer, uint32_t stream);

/* Appends a chunk. columns[c]: the entries of column c, lane after lane. After an error the
 * recording is unchanged. */
int rm_recording_write(struct rm_recording_writer *writer, uint32_t stream, uint64_t first,
                       uint32_t rows, uint32_t entries, const void *const *columns,
                       struct rm_error *error);

/* Bytes of chunks and index so far. */
uint64_t rm_recording_writer_bytes(const struct rm_recording_writer *writer);

/* Syncs and closes. Negative: chunks may be lost. */
int rm_recording_writer_close(struct rm_recording_writer *writer);

/* --- reading ---------------------------------------------------------------------------------- */

struct rm_recording {
    char folder[RM_PATH_TEXT_MAX];
    json_t *about; /* recording.json */
    char run[2 * RM_TEXT_MAX];
    char world[RM_PATH_TEXT_MAX];
    enum rm_record_every every;
    struct rm_recording_stream *stream;
    uint32_t streams;
    struct rm_recording_chunk *chunk;
    uint64_t chunks;
    uint64_t bytes; /* of the complete chunks */
    uint64_t tail;  /* bytes after the last complete chunk */
    int fd;
};

/* Opens a recording and reads its description and the positions of its chunks. */
int rm_recording_open(struct rm_recording *recording, const char *folder, struct rm_error *error);
void rm_recording_close(struct rm_recording *recording);

/* Writes the position of chunk `number` as text: "chunk 3 (byte 1024 of FOLDER/chunks)". Returns
 * `text`. */
const char *rm_recording_place(const struct rm_recording *recording, uint64_t number, char *text,
                               size_t size);

/* Reads and checks chunk `number` and sets its members entries, raw and stored. Allocates
 * columns[c], the entries of column c, lane after lane; the caller frees them. -EBADMSG: the chunk
 * is damaged; the message has its number and position. */
int rm_recording_read(struct rm_recording *recording, uint64_t number,
                      void *columns[RM_RECORDING_COLUMNS], struct rm_error *error);

/* A part of a stream's history: rows of one chunk that no later chunk replaces. */
struct rm_recording_span {
    uint64_t chunk, first;
    uint32_t skip, rows; /* leading rows of the chunk that do not count; number of rows that do */
};

/* The spans of a stream in the order of their rows. The caller frees *spans. Returns the number of
 * spans or a negative errno. *lost is the number of rows missing between them. */
int64_t rm_recording_spans(const struct rm_recording *recording, uint32_t stream,
                           struct rm_recording_span **spans, uint64_t *lost);

#endif
