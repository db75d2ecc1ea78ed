#include "daemon/tensorboard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5 };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2 };

#define HEAD_BYTES 12 /* length and its CRC */

uint32_t rm_crc32c(const void *data, size_t bytes)
{
    const uint8_t *at = data;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++) /* reflected polynomial of CRC-32C */
            crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1)));
    }
    return ~crc;
}

uint32_t rm_crc32c_masked(const void *data, size_t bytes)
{
    uint32_t crc = rm_crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static uint8_t *grow(struct rm_tensorboard *b, size_t bytes)
{
    if (b->failure)
        return NULL;
    if (b->used + bytes > b->room) {
        size_t room = (b->used + bytes) * 2;
        uint8_t *wider = realloc(b->bytes, room);
        if (!wider) {
            b->failure = -ENOMEM;
            return NULL;
        }
        b->bytes = wider;
        b->room = room;
    }
    b->used += bytes;
    return b->bytes + b->used - bytes;
}

static void put_bytes(struct rm_tensorboard *b, const void *data, size_t bytes)
{
    uint8_t *to = grow(b, bytes);
    if (to)
        memcpy(to, data, bytes);
}

static void put_varint(struct rm_tensorboard *b, uint64_t value)
{
    do {
        uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put_bytes(b, &byte, 1);
        value >>= 7;
    } while (value);
}

static void put_tag(struct rm_tensorboard *b, unsigned field, unsigned wire)
{
    put_varint(b, (uint64_t)field << 3 | wire);
}

static size_t varint_bytes(uint64_t value)
{
    size_t n = 1;
    while (value >>= 7)
        n++;
    return n;
}

void rm_tensorboard_begin(struct rm_tensorboard *b, double wall_time, uint64_t step)
{
    b->used = 0;
    b->failure = 0;
    grow(b, HEAD_BYTES);
    put_tag(b, EVENT_WALL_TIME, WIRE_FIXED64);
    put_bytes(b, &wall_time, sizeof wall_time);
    put_tag(b, EVENT_STEP, WIRE_VARINT);
    put_varint(b, step);
    b->summary_at = b->used;
}

void rm_tensorboard_scalar(struct rm_tensorboard *b, const char *tag, float value)
{
    size_t name = strlen(tag);
    size_t value_bytes = 1 + varint_bytes(name) + name + 1 + sizeof value;
    put_tag(b, SUMMARY_VALUE, WIRE_BYTES);
    put_varint(b, value_bytes);
    put_tag(b, VALUE_TAG, WIRE_BYTES);
    put_varint(b, name);
    put_bytes(b, tag, name);
    put_tag(b, VALUE_SIMPLE, WIRE_FIXED32);
    put_bytes(b, &value, sizeof value);
}

/* Puts tag and length before the summary, whose length is known only now. */
static void close_summary(struct rm_tensorboard *b)
{
    size_t bytes = b->used - b->summary_at;
    if (b->failure || bytes == 0)
        return;
    size_t head = 1 + varint_bytes(bytes), end = b->used;
    if (!grow(b, head))
        return;
    memmove(b->bytes + b->summary_at + head, b->bytes + b->summary_at, bytes);
    b->used = b->summary_at;
    put_tag(b, EVENT_SUMMARY, WIRE_BYTES);
    put_varint(b, bytes);
    b->used = end + head;
}

int rm_tensorboard_end(struct rm_tensorboard *b)
{
    close_summary(b);
    uint32_t crc = b->failure ? 0 : rm_crc32c_masked(b->bytes + HEAD_BYTES, b->used - HEAD_BYTES);
    put_bytes(b, &crc, sizeof crc);
    if (b->failure)
        return b->failure;
    uint64_t length = b->used - HEAD_BYTES - sizeof crc;
    memcpy(b->bytes, &length, sizeof length);
    crc = rm_crc32c_masked(&length, sizeof length);
    memcpy(b->bytes + sizeof length, &crc, sizeof crc);
    if (b->fd < 0)
        return 0;
    /* Whole records only: readers check each. */
    if (!b->files)
        return rm_write_append(b->fd, b->bytes, b->used);
    const int rc = rm_writer_put(b->files, rm_write_append, b->fd, b->bytes, b->used, NULL);
    return rc < 0 ? rc : 0;
}

static void put_version(struct rm_tensorboard *b, double wall_time)
{
    static const char version[] = "brain.Event:2";
    b->used = 0;
    b->failure = 0;
    grow(b, HEAD_BYTES);
    put_tag(b, EVENT_WALL_TIME, WIRE_FIXED64);
    put_bytes(b, &wall_time, sizeof wall_time);
    put_tag(b, EVENT_FILE_VERSION, WIRE_BYTES);
    put_varint(b, sizeof version - 1);
    put_bytes(b, version, sizeof version - 1);
    b->summary_at = b->used;
}

int rm_tensorboard_open(struct rm_tensorboard *b, const struct rm_run_directory *directory,
                        struct rm_error *error)
{
    char host[128] = "localhost", file[192];
    gethostname(host, sizeof host - 1);
    time_t now = time(NULL);
    snprintf(file, sizeof file, "events.out.tfevents.%lld.%.60s", (long long)now, host);
    memset(b, 0, sizeof *b);
    b->fd = rm_run_directory_open(directory, file, error);
    if (b->fd < 0)
        return b->fd;
    put_version(b, (double)now);
    int rc = rm_tensorboard_end(b);
    if (rc < 0) {
        rm_tensorboard_close(b);
        return rm_fail(error, rc, "cannot write %s: %s", file, strerror(-rc));
    }
    return 0;
}

void rm_tensorboard_close(struct rm_tensorboard *b)
{
    if (b->fd >= 0)
        close(b->fd);
    free(b->bytes);
    memset(b, 0, sizeof *b);
    b->fd = -1;
}
