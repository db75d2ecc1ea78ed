#include "learner/recording.h"

#include "config/names.h"
#include "config/print.h"
#include "shm/base/file.h"
#include "shm/base/little_endian.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#define FORMAT      1
#define HEAD_BYTES  48u
#define INDEX_BYTES 32u
#define RAW_MAX     (1u << 30)
#define TABLE_MAX   4096u /* distinct entries of a column with a table */
#define TABLE_SLOTS (4 * TABLE_MAX)

static const char magic[8] = {'R', 'M', 'C', 'H', 'U', 'N', 'K', '1'};

enum kind { AS_IT_IS = 0, TABLE };

static const struct {
    const char *name;
    uint32_t bytes;
} types[] = {
    [RM_RECORDED_U8] = {"|u1", 1},  [RM_RECORDED_I8] = {"|i1", 1},  [RM_RECORDED_I16] = {"<i2", 2},
    [RM_RECORDED_I32] = {"<i4", 4}, [RM_RECORDED_U32] = {"<u4", 4}, [RM_RECORDED_U64] = {"<u8", 8},
    [RM_RECORDED_F32] = {"<f4", 4}, [RM_RECORDED_F64] = {"<f8", 8},
};
_Static_assert(sizeof types / sizeof types[0] == RM_RECORDED_TYPES, "a row for each type");

/* --- columns --------------------------------------------------------------------------------- */

const char *rm_recording_type_name(enum rm_recording_type type)
{
    return types[type].name;
}

void rm_recording_add_column(struct rm_recording_stream *stream, const char *name,
                             enum rm_recording_type type, bool per_lane, uint32_t dims,
                             const uint32_t *shape)
{
    struct rm_recording_column *column = &stream->column[stream->columns++];
    snprintf(column->name, sizeof column->name, "%s", name);
    column->type = type;
    column->per_lane = per_lane;
    column->dims = dims;
    column->bytes = types[type].bytes;
    for (uint32_t d = 0; d < dims; d++) {
        column->shape[d] = shape[d];
        column->bytes *= shape[d];
    }
}

static size_t count_of(const struct rm_recording_stream *stream,
                       const struct rm_recording_column *column, uint32_t entries)
{
    return (size_t)entries * (column->per_lane ? stream->lanes : 1);
}

/* Distinct entries of a column. */
struct table {
    uint32_t values;
    uint32_t slot[TABLE_SLOTS]; /* 1 + the number of a value; 0: empty */
    size_t first[TABLE_MAX];    /* where each value is first */
};

/* The number of the entry at `at`; UINT32_MAX: the table is full. */
static uint32_t number_of(struct table *table, const uint8_t *from, size_t at, size_t bytes)
{
    const uint8_t *entry = from + at * bytes;
    uint32_t s = (uint32_t)(XXH3_64bits(entry, bytes) % TABLE_SLOTS);
    for (; table->slot[s]; s = (s + 1) % TABLE_SLOTS) {
        const uint32_t value = table->slot[s] - 1;
        if (memcmp(from + table->first[value] * bytes, entry, bytes) == 0)
            return value;
    }
    if (table->values == TABLE_MAX)
        return UINT32_MAX;
    table->first[table->values] = at;
    table->slot[s] = ++table->values;
    return table->values - 1;
}

static uint32_t bits_for(uint32_t values)
{
    uint32_t bits = 0;
    while ((UINT64_C(1) << bits) < values)
        bits++;
    return bits;
}

/* Bytes of a column of `count` entries with a table; 0: none, or it is no smaller. */
static size_t put_table(struct table *table, uint8_t *to, const uint8_t *from, size_t count,
                        size_t bytes)
{
    memset(table, 0, sizeof *table);
    for (size_t i = 0; i < count; i++)
        if (number_of(table, from, i, bytes) == UINT32_MAX)
            return 0;
    const uint32_t bits = bits_for(table->values);
    const size_t coded = (count * bits + 7) / 8, whole = table->values * bytes + coded;
    if (whole >= count * bytes)
        return 0;
    for (uint32_t v = 0; v < table->values; v++)
        memcpy(to + v * bytes, from + table->first[v] * bytes, bytes);
    uint8_t *out = to + table->values * bytes;
    uint64_t held = 0;
    uint32_t held_bits = 0;
    for (size_t i = 0; bits && i < count; i++) {
        held |= (uint64_t)number_of(table, from, i, bytes) << held_bits;
        for (held_bits += bits; held_bits >= 8; held_bits -= 8, held >>= 8)
            *out++ = (uint8_t)held;
    }
    if (held_bits)
        *out = (uint8_t)held;
    return whole;
}

#define COLUMN_HEAD 16u

static size_t put_column(struct table *table, uint8_t *to, const void *from, size_t count,
                         size_t bytes)
{
    size_t n = put_table(table, to + COLUMN_HEAD, from, count, bytes);
    const bool coded = n > 0 || count == 0;
    if (!coded) {
        n = count * bytes;
        memcpy(to + COLUMN_HEAD, from, n);
    }
    rm_put32(to, coded ? TABLE : AS_IT_IS);
    rm_put32(to + 4, coded ? table->values : 0);
    rm_put32(to + 8, coded ? bits_for(table->values) : 0);
    rm_put32(to + 12, (uint32_t)n);
    return COLUMN_HEAD + n;
}

/* Reads a column at `from`, of which `left` bytes are there. Returns its bytes, 0 if it is wrong.
 */
static size_t get_column(void *to, const uint8_t *from, size_t left, size_t count, size_t bytes)
{
    if (left < COLUMN_HEAD)
        return 0;
    const uint32_t kind = rm_get32(from), values = rm_get32(from + 4), bits = rm_get32(from + 8);
    const size_t n = rm_get32(from + 12);
    const uint8_t *at = from + COLUMN_HEAD;
    if (n > left - COLUMN_HEAD)
        return 0;
    if (kind == AS_IT_IS) {
        if (n != count * bytes)
            return 0;
        memcpy(to, at, n);
        return COLUMN_HEAD + n;
    }
    if (kind != TABLE || values > TABLE_MAX || bits != bits_for(values) ||
        n != values * bytes + (count * bits + 7) / 8 || (values == 0) != (count == 0))
        return 0;
    const uint8_t *codes = at + values * bytes;
    uint64_t held = 0;
    uint32_t held_bits = 0;
    for (size_t i = 0; i < count; i++) {
        for (; held_bits < bits; held_bits += 8)
            held |= (uint64_t)*codes++ << held_bits;
        const uint32_t value = (uint32_t)(held & ((UINT64_C(1) << bits) - 1));
        held >>= bits;
        held_bits -= bits;
        if (value >= values)
            return 0;
        memcpy((uint8_t *)to + i * bytes, at + value * bytes, bytes);
    }
    return COLUMN_HEAD + n;
}

/* --- recording.json --------------------------------------------------------------------------- */

static json_t *stream_json(const struct rm_recording_stream *stream)
{
    json_t *columns = json_array();
    for (uint32_t c = 0; c < stream->columns; c++) {
        const struct rm_recording_column *column = &stream->column[c];
        json_t *shape = json_array();
        for (uint32_t d = 0; d < column->dims; d++)
            json_array_append_new(shape, json_integer(column->shape[d]));
        json_array_append_new(columns, json_pack("{s:s, s:s, s:b, s:o}", "name", column->name,
                                                 "type", types[column->type].name, "per_lane",
                                                 (int)column->per_lane, "shape", shape));
    }
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:I, s:i, s:i, s:o}", "name", stream->name,
                     "policy", stream->policy, "actor", (int)stream->actor, "agents",
                     (int)stream->agents, "worlds", (int)stream->worlds, "first_world",
                     (json_int_t)stream->first_world, "lanes", (int)stream->lanes, "actions",
                     (int)stream->actions, "columns", columns);
}

static bool read_column(struct rm_recording_stream *stream, const json_t *about)
{
    const char *name, *type;
    int per_lane;
    json_t *shape;
    uint32_t sizes[RM_RECORDING_DIMS] = {0}, t = 0;
    if (json_unpack((json_t *)about, "{s:s, s:s, s:b, s:o}", "name", &name, "type", &type,
                    "per_lane", &per_lane, "shape", &shape) < 0 ||
        json_array_size(shape) > RM_RECORDING_DIMS || stream->columns == RM_RECORDING_COLUMNS)
        return false;
    while (t < RM_RECORDED_TYPES && strcmp(types[t].name, type) != 0)
        t++;
    for (size_t d = 0; d < json_array_size(shape); d++) {
        const json_int_t size = json_integer_value(json_array_get(shape, d));
        if (size < 0 || size > UINT16_MAX * 16)
            return false;
        sizes[d] = (uint32_t)size;
    }
    if (t == RM_RECORDED_TYPES)
        return false;
    rm_recording_add_column(stream, name, (enum rm_recording_type)t, per_lane,
                            (uint32_t)json_array_size(shape), sizes);
    const size_t bytes = stream->column[stream->columns - 1].bytes;
    return bytes > 0 && bytes < RAW_MAX;
}

static bool read_stream(struct rm_recording_stream *stream, const json_t *about)
{
    const char *name, *policy;
    int actor, agents, worlds, lanes, actions;
    json_int_t first;
    json_t *columns;
    if (json_unpack((json_t *)about, "{s:s, s:s, s:i, s:i, s:i, s:I, s:i, s:i, s:o}", "name", &name,
                    "policy", &policy, "actor", &actor, "agents", &agents, "worlds", &worlds,
                    "first_world", &first, "lanes", &lanes, "actions", &actions, "columns",
                    &columns) < 0 ||
        actor < 0 || agents < 1 || worlds < 1 || lanes < 1 || actions < 0 || first < 0)
        return false;
    snprintf(stream->name, sizeof stream->name, "%s", name);
    snprintf(stream->policy, sizeof stream->policy, "%s", policy);
    stream->actor = (uint32_t)actor;
    stream->agents = (uint32_t)agents;
    stream->worlds = (uint32_t)worlds;
    stream->lanes = (uint32_t)lanes;
    stream->actions = (uint32_t)actions;
    stream->first_world = (uint64_t)first;
    for (size_t c = 0; c < json_array_size(columns); c++)
        if (!read_column(stream, json_array_get(columns, c)))
            return false;
    return stream->columns > 0;
}

static int place(char *path, size_t size, const char *folder, const char *file,
                 struct rm_error *error)
{
    return (size_t)snprintf(path, size, "%s/%s", folder, file) < size
               ? 0
               : rm_fail(error, -ENAMETOOLONG, "%s: the path is too long", folder);
}

static int read_about(struct rm_recording *r, struct rm_error *error)
{
    char path[RM_PATH_TEXT_MAX + 32], *text = NULL;
    size_t bytes = 0;
    json_error_t where;
    int format = 0, rc = place(path, sizeof path, r->folder, "recording.json", error);
    const char *run = "", *every = "", *world = "";
    json_t *streams = NULL;
    if (rc == 0)
        rc = rm_file_read(path, 1u << 24, &text, &bytes, error);
    if (rc < 0)
        return rc;
    r->about = json_loadb(text, bytes, 0, &where);
    free(text);
    if (!r->about)
        return rm_fail(error, -EBADMSG, "%s:%d: %s", path, where.line, where.text);
    if (json_unpack(r->about, "{s:i, s:s, s:s, s:o}", "recording", &format, "run", &run, "every",
                    &every, "streams", &streams) < 0 ||
        format != FORMAT || !json_is_array(streams) || json_array_size(streams) == 0)
        return rm_fail(error, -EBADMSG, "%s: not a recording of version %d", path, FORMAT);
    json_unpack(r->about, "{s:{s:{s:s}}}", "experiment", "world", "name", &world);
    snprintf(r->run, sizeof r->run, "%s", run);
    snprintf(r->world, sizeof r->world, "%s", world);
    r->every = strcmp(every, rm_record_every_names[RM_RECORD_EPISODE]) == 0 ? RM_RECORD_EPISODE
                                                                            : RM_RECORD_STEP;
    r->streams = (uint32_t)json_array_size(streams);
    r->stream = calloc(r->streams, sizeof *r->stream);
    if (!r->stream)
        return rm_fail(error, -ENOMEM, "%s: no memory", path);
    for (uint32_t s = 0; s < r->streams; s++)
        if (!read_stream(&r->stream[s], json_array_get(streams, s)))
            return rm_fail(error, -EBADMSG, "%s: stream %u is not described", path, s);
    return 0;
}

/* --- where chunks are ------------------------------------------------------------------------- */

static void put_index(uint8_t *to, const struct rm_recording_chunk *chunk)
{
    rm_put64(to, chunk->offset);
    rm_put64(to + 8, chunk->first);
    rm_put32(to + 16, chunk->stream);
    rm_put32(to + 20, chunk->rows);
    rm_put64(to + 24, chunk->hash);
}

static int add_chunk(struct rm_recording *r, const struct rm_recording_chunk *chunk,
                     struct rm_error *error)
{
    if ((r->chunks & (r->chunks - 1)) == 0) {
        const uint64_t room = r->chunks ? 2 * r->chunks : 1;
        struct rm_recording_chunk *more = realloc(r->chunk, room * sizeof *more);
        if (!more)
            return rm_fail(error, -ENOMEM, "%s: no memory for its index", r->folder);
        r->chunk = more;
    }
    r->chunk[r->chunks++] = *chunk;
    return 0;
}

/* Reads a chunk's head. 1; 0: there is none, or it is none. */
static int read_head(const struct rm_recording *r, uint64_t offset, struct rm_recording_chunk *out)
{
    uint8_t head[HEAD_BYTES];
    if (pread(r->fd, head, sizeof head, (off_t)offset) != (ssize_t)sizeof head ||
        memcmp(head, magic, sizeof magic) != 0)
        return 0;
    *out = (struct rm_recording_chunk){.offset = offset,
                                       .hash = rm_get64(head + 8),
                                       .stream = rm_get32(head + 16),
                                       .rows = rm_get32(head + 20),
                                       .first = rm_get64(head + 24),
                                       .entries = rm_get32(head + 32),
                                       .raw = rm_get32(head + 36),
                                       .stored = rm_get32(head + 40)};
    return out->stream < r->streams && out->raw <= RAW_MAX && out->stored <= out->raw;
}

/* The chunks that the index names, as far as they are within `size` bytes. */
static int read_index(struct rm_recording *r, uint64_t size, struct rm_error *error)
{
    char path[RM_PATH_TEXT_MAX + 32], *text = NULL;
    size_t bytes = 0;
    int rc = place(path, sizeof path, r->folder, "index", error);
    if (rc < 0)
        return rc;
    if (rm_file_read(path, SIZE_MAX / 2, &text, &bytes, error) < 0)
        return 0; /* it is written again */
    for (size_t at = 0; rc == 0 && at + INDEX_BYTES <= bytes; at += INDEX_BYTES) {
        const uint8_t *from = (const uint8_t *)text + at;
        const struct rm_recording_chunk chunk = {.offset = rm_get64(from),
                                                 .first = rm_get64(from + 8),
                                                 .stream = rm_get32(from + 16),
                                                 .rows = rm_get32(from + 20),
                                                 .hash = rm_get64(from + 24)};
        const uint64_t before = r->chunks ? r->chunk[r->chunks - 1].offset + HEAD_BYTES : 0;
        if (chunk.offset < before || chunk.offset + HEAD_BYTES > size || chunk.stream >= r->streams)
            break;
        rc = add_chunk(r, &chunk, error);
    }
    free(text);
    return rc;
}

/* Where the chunk that the index names last ends; 0: its head does not say. */
static uint64_t end_of_last(const struct rm_recording *r)
{
    struct rm_recording_chunk head;
    if (!r->chunks)
        return 0;
    const struct rm_recording_chunk *last = &r->chunk[r->chunks - 1];
    return read_head(r, last->offset, &head) && head.hash == last->hash
               ? last->offset + HEAD_BYTES + head.stored
               : 0;
}

static int find_chunks(struct rm_recording *r, struct rm_error *error)
{
    struct stat about;
    if (fstat(r->fd, &about) < 0)
        return rm_fail(error, -errno, "%s/chunks: %s", r->folder, strerror(errno));
    const uint64_t size = (uint64_t)about.st_size;
    int rc = read_index(r, size, error);
    uint64_t at = end_of_last(r);
    if (rc == 0 && r->chunks && (at == 0 || at > size)) {
        /* The last one is cut short or its head is damaged: the index knows how far it went only if
         * another follows, and none does. */
        r->bytes = r->chunk[r->chunks - 1].offset;
        r->tail = size - r->bytes;
        if (at > size)
            r->chunks--;
        else
            r->bytes = size, r->tail = 0; /* damaged, which reading it says */
        return 0;
    }
    while (rc == 0) {
        struct rm_recording_chunk chunk;
        if (!read_head(r, at, &chunk) || chunk.offset + HEAD_BYTES + chunk.stored > size)
            break;
        if ((rc = add_chunk(r, &chunk, error)) == 0)
            at += HEAD_BYTES + chunk.stored;
    }
    r->bytes = at;
    r->tail = size - at;
    return rc;
}

int rm_recording_open(struct rm_recording *r, const char *folder, struct rm_error *error)
{
    char path[RM_PATH_TEXT_MAX + 32];
    *r = (struct rm_recording){.fd = -1};
    if ((size_t)snprintf(r->folder, sizeof r->folder, "%s", folder) >= sizeof r->folder)
        return rm_fail(error, -ENAMETOOLONG, "%s: the path is too long", folder);
    int rc = read_about(r, error);
    if (rc == 0)
        rc = place(path, sizeof path, folder, "chunks", error);
    if (rc == 0 && (r->fd = rm_file_open(path, O_RDONLY, 0, error)) < 0)
        rc = r->fd;
    if (rc == 0)
        rc = find_chunks(r, error);
    if (rc < 0)
        rm_recording_close(r);
    return rc;
}

void rm_recording_close(struct rm_recording *r)
{
    if (r->fd >= 0)
        close(r->fd);
    json_decref(r->about);
    free(r->stream);
    free(r->chunk);
    *r = (struct rm_recording){.fd = -1};
}

const char *rm_recording_place(const struct rm_recording *r, uint64_t number, char *text,
                               size_t size)
{
    snprintf(text, size, "chunk %" PRIu64 " (byte %" PRIu64 " of %s/chunks)", number,
             r->chunk[number].offset, r->folder);
    return text;
}

static int damaged(const struct rm_recording *r, uint64_t number, const char *what,
                   struct rm_error *error)
{
    char text[RM_PATH_TEXT_MAX + 64];
    return rm_fail(error, -EBADMSG, "%s is damaged: %s",
                   rm_recording_place(r, number, text, sizeof text), what);
}

/* The raw bytes of a chunk, the caller's to free. */
static int read_raw(struct rm_recording *r, uint64_t number, uint8_t **out, struct rm_error *error)
{
    struct rm_recording_chunk *chunk = &r->chunk[number], head;
    if (!read_head(r, chunk->offset, &head) || head.stream != chunk->stream ||
        head.first != chunk->first || head.rows != chunk->rows || head.hash != chunk->hash)
        return damaged(r, number, "its head contradicts the index", error);
    chunk->entries = head.entries;
    chunk->raw = head.raw;
    chunk->stored = head.stored;
    uint8_t *block = malloc(HEAD_BYTES + (size_t)head.stored + 1), *raw = malloc(head.raw + 1);
    if (!block || !raw) {
        free(block);
        free(raw);
        return rm_fail(error, -ENOMEM, "no memory for chunk %" PRIu64, number);
    }
    int rc = 0;
    const ssize_t bytes = (ssize_t)(HEAD_BYTES + (size_t)head.stored);
    const ssize_t got = pread(r->fd, block, (size_t)bytes, (off_t)chunk->offset);
    if (got < 0)
        rc = rm_fail(error, -errno, "%s/chunks: %s", r->folder, strerror(errno));
    else if (got != bytes)
        rc = damaged(r, number, "it is cut short: the file ends before it", error);
    if (rc == 0 && XXH3_64bits_withSeed(block + 16, (size_t)bytes - 16, chunk->offset) != head.hash)
        rc = damaged(r, number, "its checksum does not match", error);
    if (rc == 0 && head.stored == head.raw)
        memcpy(raw, block + HEAD_BYTES, head.raw);
    else if (rc == 0 && LZ4_decompress_safe((const char *)block + HEAD_BYTES, (char *)raw,
                                            (int)head.stored, (int)head.raw) != (int)head.raw)
        rc = damaged(r, number, "it cannot be decompressed", error);
    free(block);
    if (rc < 0)
        free(raw);
    else
        *out = raw;
    return rc;
}

int rm_recording_read(struct rm_recording *r, uint64_t number, void *columns[RM_RECORDING_COLUMNS],
                      struct rm_error *error)
{
    const struct rm_recording_chunk *chunk = &r->chunk[number];
    const struct rm_recording_stream *stream = &r->stream[chunk->stream];
    uint8_t *raw = NULL;
    size_t at = 0;
    memset(columns, 0, RM_RECORDING_COLUMNS * sizeof *columns);
    int rc = read_raw(r, number, &raw, error);
    if (!raw)
        return rc;
    for (uint32_t c = 0; rc == 0 && c < stream->columns; c++) {
        const struct rm_recording_column *column = &stream->column[c];
        const size_t count = count_of(stream, column, chunk->entries);
        if (count > RAW_MAX || !(columns[c] = malloc(count * column->bytes + 1))) {
            rc = rm_fail(error, -ENOMEM, "no memory for chunk %" PRIu64, number);
            break;
        }
        const size_t n = get_column(columns[c], raw + at, chunk->raw - at, count, column->bytes);
        if (n == 0)
            rc = damaged(r, number, "a column contradicts its head", error);
        at += n;
    }
    if (rc == 0 && at != chunk->raw)
        rc = damaged(r, number, "it has more data than its columns", error);
    for (uint32_t c = 0; rc < 0 && c < stream->columns; c++) {
        free(columns[c]);
        columns[c] = NULL;
    }
    free(raw);
    return rc;
}

int64_t rm_recording_spans(const struct rm_recording *r, uint32_t stream,
                           struct rm_recording_span **spans, uint64_t *lost)
{
    struct rm_recording_span *list = calloc(r->chunks + 1, sizeof *list);
    uint64_t n = 0;
    *spans = list;
    *lost = 0;
    if (!list)
        return -ENOMEM;
    for (uint64_t c = 0; c < r->chunks; c++) {
        const struct rm_recording_chunk *chunk = &r->chunk[c];
        if (chunk->stream != stream)
            continue;
        while (n && list[n - 1].first >= chunk->first)
            n--;
        if (n && list[n - 1].first + list[n - 1].rows > chunk->first)
            list[n - 1].rows = (uint32_t)(chunk->first - list[n - 1].first);
        list[n++] =
            (struct rm_recording_span){.chunk = c, .first = chunk->first, .rows = chunk->rows};
    }
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t expected = i ? list[i - 1].first + list[i - 1].rows : 0;
        *lost += list[i].first - expected;
    }
    return (int64_t)n;
}

/* --- writing ---------------------------------------------------------------------------------- */

struct rm_recording_writer {
    char folder[RM_PATH_TEXT_MAX];
    const struct rm_recording_stream *stream;
    uint32_t streams;
    int chunks, index;
    uint64_t chunk_bytes, index_bytes; /* whole ones */
    uint64_t *end;                     /* (streams) */
    uint8_t *raw, *block;
    size_t room;
    struct table table;
};

static int write_about(const char *folder, const char *run, enum rm_record_every every,
                       const json_t *experiment, const struct rm_recording_stream *streams,
                       uint32_t count, struct rm_error *error)
{
    char path[RM_PATH_TEXT_MAX + 32], part[RM_PATH_TEXT_MAX + 32];
    json_t *list = json_array();
    for (uint32_t s = 0; s < count; s++)
        json_array_append_new(list, stream_json(&streams[s]));
    json_t *about =
        json_pack("{s:i, s:s, s:s, s:O, s:o}", "recording", FORMAT, "run", run, "every",
                  rm_record_every_names[every], "experiment", experiment, "streams", list);
    char *text = rm_json_text(about, true);
    json_decref(about);
    int rc = text ? 0 : rm_fail(error, -ENOMEM, "%s: no memory", folder);
    if (rc == 0)
        rc = place(part, sizeof part, folder, "recording.json.tmp", error);
    if (rc == 0)
        rc = place(path, sizeof path, folder, "recording.json", error);
    const int fd = rc < 0 ? rc : rm_file_open(part, O_WRONLY | O_CREAT | O_TRUNC, 0640, error);
    if (fd < 0) {
        free(text);
        return fd;
    }
    rc = rm_file_write_all(fd, text, strlen(text));
    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    close(fd);
    free(text);
    if (rc == 0)
        rc = rm_file_rename(part, path);
    return rc < 0 ? rm_fail(error, rc, "%s: %s", path, strerror(-rc)) : 0;
}

static bool same_streams(const struct rm_recording *r, const struct rm_recording_stream *streams,
                         uint32_t count)
{
    bool same = r->streams == count;
    for (uint32_t s = 0; same && s < count; s++) {
        json_t *there = stream_json(&r->stream[s]), *here = stream_json(&streams[s]);
        same = json_equal(there, here);
        json_decref(there);
        json_decref(here);
    }
    return same;
}

static int write_at(int fd, uint64_t offset, const void *data, size_t bytes)
{
    for (const uint8_t *at = data; bytes > 0;) {
        const ssize_t n = pwrite(fd, at, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENOSPC;
        at += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return 0;
}

/* Goes on behind the last whole chunk of what is there. */
static int take_over(struct rm_recording_writer *w, struct rm_recording *r, struct rm_error *error)
{
    for (uint64_t c = 0; c < r->chunks; c++)
        w->end[r->chunk[c].stream] = r->chunk[c].first + r->chunk[c].rows;
    w->chunk_bytes = r->bytes;
    w->index_bytes = r->chunks * INDEX_BYTES;
    if (ftruncate(w->chunks, (off_t)w->chunk_bytes) < 0 ||
        ftruncate(w->index, (off_t)w->index_bytes) < 0)
        return rm_fail(error, -errno, "%s: %s", w->folder, strerror(errno));
    int rc = 0;
    for (uint64_t c = 0; rc == 0 && c < r->chunks; c++) {
        uint8_t entry[INDEX_BYTES];
        put_index(entry, &r->chunk[c]);
        rc = write_at(w->index, c * INDEX_BYTES, entry, sizeof entry);
    }
    return rc < 0 ? rm_fail(error, rc, "%s/index: %s", w->folder, strerror(-rc)) : 0;
}

/* `fresh`: what is there belongs to no recording. */
static int open_files(struct rm_recording_writer *w, bool fresh, struct rm_error *error)
{
    const int flags = O_RDWR | O_CREAT | (fresh ? O_TRUNC : 0);
    char path[RM_PATH_TEXT_MAX + 32];
    int rc = place(path, sizeof path, w->folder, "chunks", error);
    if (rc == 0 && (w->chunks = rm_file_open(path, flags, 0640, error)) < 0)
        rc = w->chunks;
    if (rc == 0)
        rc = place(path, sizeof path, w->folder, "index", error);
    if (rc == 0 && (w->index = rm_file_open(path, flags, 0640, error)) < 0)
        rc = w->index;
    return rc;
}

static int continue_one(struct rm_recording_writer *w, const char *run, enum rm_record_every every,
                        struct rm_error *error)
{
    struct rm_recording r;
    int rc = rm_recording_open(&r, w->folder, error);
    if (rc < 0)
        return rc;
    if (strcmp(r.run, run) != 0)
        rc = rm_fail(error, -EINVAL,
                     "record.directory: %s has the recording of run %s, but this is run %s; use "
                     "another folder",
                     w->folder, r.run, run);
    else if (r.every != every || !same_streams(&r, w->stream, w->streams))
        rc = rm_fail(error, -EINVAL,
                     "record.directory: %s has a recording with other columns or lanes, which this "
                     "run cannot continue; use another folder",
                     w->folder);
    else
        rc = take_over(w, &r, error);
    rm_recording_close(&r);
    return rc;
}

int rm_recording_writer_open(struct rm_recording_writer **writer, const char *folder,
                             const char *run, enum rm_record_every every, const json_t *experiment,
                             const struct rm_recording_stream *streams, uint32_t count,
                             struct rm_error *error)
{
    char path[RM_PATH_TEXT_MAX + 32];
    struct rm_recording_writer *w = calloc(1, sizeof *w);
    *writer = NULL;
    if (!w || !(w->end = calloc(count, sizeof *w->end))) {
        free(w);
        return rm_fail(error, -ENOMEM, "%s: no memory to record", folder);
    }
    w->stream = streams;
    w->streams = count;
    w->chunks = w->index = -1;
    snprintf(w->folder, sizeof w->folder, "%s", folder);
    const int above = rm_file_folder(folder, true, NULL, error);
    int rc = above < 0 ? above : 0;
    if (above >= 0)
        close(above);
    if (rc == 0)
        rc = place(path, sizeof path, folder, "recording.json", error);
    const bool there = rc == 0 && access(path, F_OK) == 0;
    if (rc == 0)
        rc = open_files(w, !there, error);
    if (rc == 0)
        rc = there ? continue_one(w, run, every, error)
                   : write_about(folder, run, every, experiment, streams, count, error);
    if (rc < 0) {
        rm_recording_writer_close(w);
        return rc;
    }
    *writer = w;
    return 0;
}

uint64_t rm_recording_writer_end(const struct rm_recording_writer *w, uint32_t stream)
{
    return w->end[stream];
}

uint64_t rm_recording_writer_bytes(const struct rm_recording_writer *w)
{
    return w->chunk_bytes + w->index_bytes;
}

static int make_room(struct rm_recording_writer *w, size_t raw)
{
    if (raw <= w->room)
        return 0;
    const size_t block = HEAD_BYTES + (size_t)LZ4_compressBound((int)raw);
    free(w->raw);
    free(w->block);
    w->raw = malloc(raw);
    w->block = malloc(block);
    w->room = w->raw && w->block ? raw : 0;
    return w->room ? 0 : -ENOMEM;
}

int rm_recording_write(struct rm_recording_writer *w, uint32_t stream, uint64_t first,
                       uint32_t rows, uint32_t entries, const void *const *columns,
                       struct rm_error *error)
{
    const struct rm_recording_stream *s = &w->stream[stream];
    size_t room = 0, raw = 0;
    for (uint32_t c = 0; c < s->columns; c++)
        room += COLUMN_HEAD + count_of(s, &s->column[c], entries) * s->column[c].bytes;
    if (room > RAW_MAX)
        return rm_fail(error, -EFBIG, "%s: a chunk of %zu bytes", w->folder, room);
    if (make_room(w, room) < 0)
        return rm_fail(error, -ENOMEM, "%s: no memory for a chunk of %zu bytes", w->folder, room);
    for (uint32_t c = 0; c < s->columns; c++)
        raw += put_column(&w->table, w->raw + raw, columns[c], count_of(s, &s->column[c], entries),
                          s->column[c].bytes);
    uint8_t *stored = w->block + HEAD_BYTES;
    int n = LZ4_compress_default((const char *)w->raw, (char *)stored, (int)raw, (int)raw);
    if (n <= 0 || (size_t)n >= raw) {
        n = (int)raw;
        memcpy(stored, w->raw, raw);
    }
    memset(w->block, 0, HEAD_BYTES);
    memcpy(w->block, magic, sizeof magic);
    rm_put32(w->block + 16, stream);
    rm_put32(w->block + 20, rows);
    rm_put64(w->block + 24, first);
    rm_put32(w->block + 32, entries);
    rm_put32(w->block + 36, (uint32_t)raw);
    rm_put32(w->block + 40, (uint32_t)n);
    const size_t bytes = HEAD_BYTES + (size_t)n;
    const struct rm_recording_chunk chunk = {
        .offset = w->chunk_bytes,
        .first = first,
        .stream = stream,
        .rows = rows,
        .hash = XXH3_64bits_withSeed(w->block + 16, bytes - 16, w->chunk_bytes)};
    uint8_t entry[INDEX_BYTES];
    rm_put64(w->block + 8, chunk.hash);
    put_index(entry, &chunk);
    int rc = write_at(w->chunks, w->chunk_bytes, w->block, bytes);
    if (rc == 0)
        rc = write_at(w->index, w->index_bytes, entry, sizeof entry);
    if (rc < 0) {
        /* If this fails as well, the next writer removes what is behind the last whole chunk. */
        (void)!ftruncate(w->chunks, (off_t)w->chunk_bytes);
        (void)!ftruncate(w->index, (off_t)w->index_bytes);
        return rm_fail(error, rc, "%s: %s", w->folder, strerror(-rc));
    }
    w->chunk_bytes += bytes;
    w->index_bytes += sizeof entry;
    w->end[stream] = first + rows;
    return 0;
}

static int sync_and_close(int fd)
{
    const int rc = fd >= 0 && fsync(fd) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

int rm_recording_writer_close(struct rm_recording_writer *w)
{
    if (!w)
        return 0;
    const int chunks = sync_and_close(w->chunks), index = sync_and_close(w->index);
    free(w->end);
    free(w->raw);
    free(w->block);
    free(w);
    return chunks < 0 ? chunks : index;
}
