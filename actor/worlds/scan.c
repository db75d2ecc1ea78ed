#include "actor/worlds/scan.h"

#include "shm/base/float_word.h"

#include <string.h>

/* Unaligned vectors, may alias anything. */
typedef uint32_t words __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint8_t bytes __attribute__((vector_size(16), aligned(1), may_alias));

#define EXPONENT UINT32_C(0x7f800000) /* all ones: infinity or NaN (IEEE 754, 3.4) */

static int any(const void *vector)
{
    uint64_t half[2];
    memcpy(half, vector, sizeof half);
    return (half[0] | half[1]) != 0;
}

static int nonfinite(float x)
{
    return ((uint32_t)rm_word_of_float(x) & EXPONENT) == EXPONENT;
}

size_t rm_scan_nonfinite(const float *x, size_t n)
{
    const words exponent = {EXPONENT, EXPONENT, EXPONENT, EXPONENT};
    words bad = {0, 0, 0, 0};
    size_t whole = n & ~(size_t)7, i = 0;

    for (; i < whole; i += 8) {
        words low = *(const words *)(const void *)(x + i);
        words high = *(const words *)(const void *)(x + i + 4);
        bad |= (words)((low & exponent) == exponent) | (words)((high & exponent) == exponent);
    }
    if (any(&bad))
        i = 0;
    while (i < n && !nonfinite(x[i]))
        i++;
    return i;
}

size_t rm_scan_above(const uint8_t *x, size_t n, uint8_t limit)
{
    bytes limits, bad = {0};
    size_t whole = n & ~(size_t)15, i = 0;

    memset(&limits, limit, sizeof limits);
    for (; i < whole; i += 16)
        bad |= (bytes)(*(const bytes *)(const void *)(x + i) > limits);
    if (any(&bad))
        i = 0;
    while (i < n && x[i] <= limit)
        i++;
    return i;
}

void rm_scan_add(double *sum, uint32_t *count, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sum[i] += (double)x[i];
        count[i]++;
    }
}

void rm_scan_clear(int32_t *to, const uint8_t *flags, uint8_t bits, size_t n)
{
    uint64_t wanted;
    size_t i = 0;

    memset(&wanted, bits, sizeof wanted);
    while (i < n) {
        uint64_t eight = 1;
        if (n - i >= 8) {
            memcpy(&eight, flags + i, 8);
            if (!(eight & wanted)) {
                i += 8;
                continue;
            }
        }
        for (size_t end = n - i >= 8 ? i + 8 : n; i < end; i++)
            if (flags[i] & bits)
                to[i] = 0;
    }
}
