#include "shm/base/archive.h"

#include "shm/base/file.h"
#include "shm/base/little_endian.h"

#include <errno.h>
#include <fcntl.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

static const char magic[8] = {'R', 'M', 'A', 'R', 'C', 'H', '0', '1'};

enum block_kind { BLOCK_BEGIN = 1, BLOCK_DATA, BLOCK_STREAM_END, BLOCK_END };

#define HEAD_BYTES 20u

struct head {
    uint64_t hash;
    uint32_t kind, raw, stored;
};

/* --- writing --------------------------------------------------------------------------------- */

struct rm_archive_writer {
    int fd;
    int failed; /* first error, negative errno */
    char path[4096];
    uint64_t blocks, bytes;
    uint32_t held; /* bytes in raw[] */
    uint8_t raw[RM_ARCHIVE_BLOCK];
    uint8_t block[HEAD_BYTES + LZ4_COMPRESSBOUND(RM_ARCHIVE_BLOCK)];
};

static int write_all(struct rm_archive_writer *w, const uint8_t *data, size_t bytes)
{
    if (!w->failed)
        w->failed = rm_file_write_all(w->fd, data, bytes);
    if (!w->failed)
        w->bytes += bytes;
    return w->failed;
}

static int write_block(struct rm_archive_writer *w, enum block_kind kind, const uint8_t *data,
                       uint32_t raw)
{
    uint8_t *stored = w->block + HEAD_BYTES;
    int n = 0;
    if (w->failed)
        return w->failed;
    if (raw)
        n = LZ4_compress_default((const char *)data, (char *)stored, (int)raw, (int)raw);
    if (n <= 0 || (uint32_t)n >= raw) {
        n = (int)raw;
        memcpy(stored, data, raw);
    }
    rm_put32(w->block + 8, (uint32_t)kind);
    rm_put32(w->block + 12, raw);
    rm_put32(w->block + 16, (uint32_t)n);
    const uint64_t hash =
        XXH3_64bits_withSeed(w->block + 8, HEAD_BYTES - 8 + (size_t)n, w->blocks++);
    rm_put64(w->block, hash);
    return write_all(w, w->block, HEAD_BYTES + (size_t)n);
}

int rm_archive_create(struct rm_archive_writer **writer, const char *path, struct rm_error *error)
{
    struct rm_archive_writer *w = calloc(1, sizeof *w);
    *writer = NULL;
    if (!w)
        return rm_fail(error, -ENOMEM, "%s: no memory to write it", path);
    snprintf(w->path, sizeof w->path, "%s", path);
    w->fd = rm_file_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640, error);
    if (w->fd < 0) {
        int rc = w->fd;
        free(w);
        return rc;
    }
    write_all(w, (const uint8_t *)magic, sizeof magic);
    *writer = w;
    return 0;
}

int rm_archive_begin(struct rm_archive_writer *w, const char *name)
{
    size_t bytes = strlen(name) + 1;
    if (bytes > RM_ARCHIVE_NAME_MAX && !w->failed)
        w->failed = -ENAMETOOLONG;
    return write_block(w, BLOCK_BEGIN, (const uint8_t *)name, (uint32_t)bytes);
}

static int flush(struct rm_archive_writer *w)
{
    if (w->held)
        write_block(w, BLOCK_DATA, w->raw, w->held);
    w->held = 0;
    return w->failed;
}

int rm_archive_put(struct rm_archive_writer *w, const void *data, size_t bytes)
{
    const uint8_t *from = data;
    while (bytes > 0 && !w->failed) {
        size_t room = RM_ARCHIVE_BLOCK - w->held, n = bytes < room ? bytes : room;
        memcpy(w->raw + w->held, from, n);
        w->held += (uint32_t)n;
        from += n;
        bytes -= n;
        if (w->held == RM_ARCHIVE_BLOCK)
            flush(w);
    }
    return w->failed;
}

int rm_archive_end(struct rm_archive_writer *w)
{
    flush(w);
    return write_block(w, BLOCK_STREAM_END, w->raw, 0);
}

int rm_archive_close(struct rm_archive_writer *w, uint64_t *bytes, struct rm_error *error)
{
    write_block(w, BLOCK_END, w->raw, 0);
    if (fsync(w->fd) < 0 && !w->failed)
        w->failed = -errno;
    if (close(w->fd) < 0 && !w->failed)
        w->failed = -errno;
    int rc = w->failed;
    if (rc)
        rm_fail(error, rc, "%s: %s", w->path, strerror(-rc));
    *bytes = w->bytes;
    free(w);
    return rc;
}

/* --- reading --------------------------------------------------------------------------------- */

struct rm_archive_reader {
    FILE *file;
    char path[4096];
    uint64_t blocks;
    bool in_stream;
    uint32_t held, used; /* bytes in raw[], and how many of them were read */
    uint8_t raw[RM_ARCHIVE_BLOCK];
    uint8_t block[HEAD_BYTES + RM_ARCHIVE_BLOCK];
};

static int broken(const struct rm_archive_reader *r, const char *what, struct rm_error *error)
{
    return rm_fail(error, -EBADMSG, "%s: block %llu: %s", r->path, (unsigned long long)r->blocks,
                   what);
}

/* Reads and checks a block; its data is in raw[]. Returns its kind or negative errno. */
static int read_block(struct rm_archive_reader *r, struct rm_error *error)
{
    uint8_t *head = r->block, *stored = r->block + HEAD_BYTES;
    if (fread(head, 1, HEAD_BYTES, r->file) != HEAD_BYTES)
        return broken(r, ferror(r->file) ? "cannot be read" : "is missing: the file ends before it",
                      error);
    const struct head h = {rm_get64(head), rm_get32(head + 8), rm_get32(head + 12),
                           rm_get32(head + 16)};
    if (h.raw > RM_ARCHIVE_BLOCK || h.stored > h.raw)
        return broken(r, "its lengths are impossible", error);
    if (fread(stored, 1, h.stored, r->file) != h.stored)
        return broken(r, "is cut short", error);
    if (XXH3_64bits_withSeed(head + 8, HEAD_BYTES - 8 + (size_t)h.stored, r->blocks) != h.hash)
        return broken(r, "its checksum does not match", error);
    if (h.stored == h.raw)
        memcpy(r->raw, stored, h.raw);
    else if (LZ4_decompress_safe((const char *)stored, (char *)r->raw, (int)h.stored, (int)h.raw) !=
             (int)h.raw)
        return broken(r, "cannot be decompressed", error);
    if (h.kind < BLOCK_BEGIN || h.kind > BLOCK_END)
        return broken(r, "is of an unknown kind", error);
    r->blocks++;
    r->held = h.raw;
    r->used = 0;
    return (int)h.kind;
}

int rm_archive_open(struct rm_archive_reader **reader, const char *path, struct rm_error *error)
{
    struct rm_archive_reader *r = calloc(1, sizeof *r);
    char start[sizeof magic];
    *reader = NULL;
    if (!r)
        return rm_fail(error, -ENOMEM, "%s: no memory to read it", path);
    snprintf(r->path, sizeof r->path, "%s", path);
    const int fd = rm_file_open(path, O_RDONLY, 0, error);
    r->file = fd < 0 ? NULL : fdopen(fd, "rb");
    if (!r->file) {
        int rc = fd < 0 ? fd : rm_fail(error, -errno, "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        free(r);
        return rc;
    }
    if (fread(start, 1, sizeof start, r->file) != sizeof start ||
        memcmp(start, magic, sizeof magic) != 0) {
        rm_archive_reader_close(r);
        return rm_fail(error, -EBADMSG, "%s: not an archive of this version", path);
    }
    *reader = r;
    return 0;
}

int rm_archive_next(struct rm_archive_reader *r, char name[RM_ARCHIVE_NAME_MAX],
                    struct rm_error *error)
{
    int kind = 0;
    while (r->in_stream) {
        kind = read_block(r, error);
        if (kind < 0)
            return kind;
        if (kind == BLOCK_STREAM_END)
            r->in_stream = false;
        else if (kind != BLOCK_DATA)
            return broken(r, "does not continue the stream before it", error);
    }
    kind = read_block(r, error);
    if (kind < 0)
        return kind;
    if (kind == BLOCK_END)
        return fgetc(r->file) == EOF ? 0 : broken(r, "stands after the end of the archive", error);
    if (kind != BLOCK_BEGIN || r->held == 0 || r->held > RM_ARCHIVE_NAME_MAX ||
        memchr(r->raw, 0, r->held) != r->raw + r->held - 1)
        return broken(r, "is not the beginning of a stream", error);
    memcpy(name, r->raw, r->held);
    r->in_stream = true;
    r->held = r->used = 0;
    return 1;
}

int rm_archive_get(struct rm_archive_reader *r, void *data, size_t bytes, struct rm_error *error)
{
    uint8_t *to = data;
    while (bytes > 0) {
        if (r->used == r->held) {
            int kind = r->in_stream ? read_block(r, error) : BLOCK_STREAM_END;
            if (kind < 0)
                return kind;
            if (kind != BLOCK_DATA) {
                r->in_stream = false;
                r->held = r->used = 0;
                return rm_fail(error, -ENODATA, "%s: a stream ends %zu bytes early", r->path,
                               bytes);
            }
            continue;
        }
        size_t n = r->held - r->used < bytes ? r->held - r->used : bytes;
        memcpy(to, r->raw + r->used, n);
        r->used += (uint32_t)n;
        to += n;
        bytes -= n;
    }
    return 0;
}

void rm_archive_reader_close(struct rm_archive_reader *r)
{
    if (!r)
        return;
    fclose(r->file);
    free(r);
}
