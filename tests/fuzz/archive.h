/* archive: any bytes as an archive whose lengths and checksums are right, so that what lies behind
 * them is reached. A block of the bytes: its kind, raw length and stored length of two bytes each,
 * data. */
#ifndef RM_TESTS_FUZZ_ARCHIVE_H
#define RM_TESTS_FUZZ_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <xxhash.h>

#define FUZZ_ARCHIVE_HEAD 20u

static inline size_t archive_bytes_max(size_t size)
{
    return 8 + size + (size / 5 + 1) * FUZZ_ARCHIVE_HEAD;
}

/* `out` has archive_bytes_max(size) bytes. Returns how long it is. */
static inline size_t archive_of(const uint8_t *data, size_t size, uint8_t *out)
{
    size_t at = 8;
    memcpy(out, "RMARCH01", 8);
    for (uint64_t block = 0; size >= 5; block++) {
        const uint32_t kind = data[0], raw = data[1] | (uint32_t)data[2] << 8 | (kind >> 4) << 16;
        uint32_t stored = data[3] | (uint32_t)data[4] << 8;
        data += 5;
        size -= 5;
        if (stored > size)
            stored = (uint32_t)size;
        const uint32_t head[3] = {kind & 7, raw, stored};
        memcpy(out + at + 8, head, sizeof head);
        memcpy(out + at + FUZZ_ARCHIVE_HEAD, data, stored);
        const uint64_t hash =
            XXH3_64bits_withSeed(out + at + 8, FUZZ_ARCHIVE_HEAD - 8 + stored, block);
        memcpy(out + at, &hash, sizeof hash);
        at += FUZZ_ARCHIVE_HEAD + stored;
        data += stored;
        size -= stored;
    }
    return at;
}

#endif
