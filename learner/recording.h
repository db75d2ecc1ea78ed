/* recording: the rows of a run on disk, in a folder of three files. docs/histories.md shows how one
 * is made and read.
 *
 *   recording.json  what it is: the experiment, and one description for each stream
 *   chunks          the rows, in chunks, one after the other
 *   index           where each chunk is
 *
 * A STREAM is what one actor wrote for one policy: the rows of one ring (shm/ring.h). With
 * `record.every` "step" an entry is a row, and a stream has the columns obs, mask (if the world has
 * masks), reward, flags and action, a value or more for every lane, and version and generation, one
 * for every row. With "episode" an entry is an episode of a lane, in the order in which they ended:
 * lane, row (its first), steps, return, flags (of its last row) and version (that acted last).
 *
 * A CHUNK covers rows [first, first + rows) of a stream:
 *
 *   "RMCHUNK1"
 *   u64 XXH3 of the rest, seeded with the chunk's offset in the file
 *   u32 stream, u32 rows, u64 first
 *   u32 entries, u32 raw bytes, u32 stored bytes, u32 zero
 *   stored bytes: LZ4 block format; as they are if they are as many as the raw ones
 *
 * Raw bytes are the columns in their order. A column has all entries of lane 0, then those of lane
 * 1, and so on, and before them: u32 kind, u32 values, u32 bits, u32 bytes of what follows. Kind 0:
 * the entries as they are. Kind 1: a table of `values` distinct entries, then the number of each
 * entry in the table, in `bits` bits each, the lowest first.
 *
 * A chunk whose first row is before the end of its stream replaces the rows from there on: a run
 * that was resumed from a checkpoint makes them again. If its first row is after the end, the rows
 * between were lost.
 *
 * INDEX: for each chunk u64 offset, u64 first, u32 stream, u32 rows, u64 the chunk's hash. It
 * repeats the chunks' heads, so that a damaged head hides no other chunk. It is written again from
 * the chunks where it is shorter.
 *
 * All numbers are little-endian. Whole chunks survive the death of the writer at any time. The next
 * writer removes what is behind the last whole one. */
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

/* Of a column's values. */
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
    bool per_lane; /* a value for every lane of an entry; else one */
    uint32_t dims; /* of one lane's value */
    uint32_t shape[RM_RECORDING_DIMS];
    size_t bytes; /* of one lane's value */
};

struct rm_recording_stream {
    char name[2 * RM_TEXT_MAX];
    char policy[RM_TEXT_MAX];
    uint32_t actor, agents, worlds, lanes; /* lanes: agents * worlds; 1 with "episode" */
    uint64_t first_world;
    uint32_t actions; /* discrete ones, 0: none */
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

/* Opens the recording in `folder`, which is created if there is none; `experiment` and `run` (a
 * name) go into it. One that is there is continued if it is of this run and has these streams.
 * -EINVAL: it is not. The streams outlive the writer. */
int rm_recording_writer_open(struct rm_recording_writer **writer, const char *folder,
                             const char *run, enum rm_record_every every, const json_t *experiment,
                             const struct rm_recording_stream *streams, uint32_t count,
                             struct rm_error *error);

/* The row after the last one recorded of a stream; 0: none is. */
uint64_t rm_recording_writer_end(const struct rm_recording_writer *writer, uint32_t stream);

/* Appends a chunk. columns[c]: the entries of column c, lane after lane. An error leaves the
 * recording as it was before. */
int rm_recording_write(struct rm_recording_writer *writer, uint32_t stream, uint64_t first,
                       uint32_t rows, uint32_t entries, const void *const *columns,
                       struct rm_error *error);

/* Bytes of chunks and index so far. */
uint64_t rm_recording_writer_bytes(const struct rm_recording_writer *writer);

/* Syncs and closes. */
void rm_recording_writer_close(struct rm_recording_writer *writer);

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
    uint64_t bytes; /* of the whole chunks */
    uint64_t tail;  /* bytes behind the last whole chunk */
    int fd;
};

/* Reads what the recording is and where its chunks are. */
int rm_recording_open(struct rm_recording *recording, const char *folder, struct rm_error *error);
void rm_recording_close(struct rm_recording *recording);

/* Where chunk `number` is: "chunk 3 (byte 1024 of FOLDER/chunks)". */
const char *rm_recording_place(const struct rm_recording *recording, uint64_t number, char *text,
                               size_t size);

/* Reads and checks chunk `number`, whose entries it fills in. Allocates columns[c]: the entries of
 * column c, lane after lane; the caller frees them. -EBADMSG with the chunk's number and position
 * for one that is damaged. */
int rm_recording_read(struct rm_recording *recording, uint64_t number,
                      void *columns[RM_RECORDING_COLUMNS], struct rm_error *error);

/* A part of a stream's history: rows of one chunk that no later chunk replaces. */
struct rm_recording_span {
    uint64_t chunk, first;
    uint32_t skip, rows; /* the chunk's first rows that do not count, and how many do */
};

/* The spans of a stream in the order of their rows. *spans is the caller's to free. Returns their
 * number or a negative errno; *lost: rows between them. */
int64_t rm_recording_spans(const struct rm_recording *recording, uint32_t stream,
                           struct rm_recording_span **spans, uint64_t *lost);

#endif
