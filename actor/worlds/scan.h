/* scan: passes over the columns of a row, 16 bytes at a time on any x86-64. Pure functions. */
#ifndef RM_ACTOR_WORLDS_SCAN_H
#define RM_ACTOR_WORLDS_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* Index of the first of n floats that is infinite or not a number; n when there is none. */
size_t rm_scan_nonfinite(const float *x, size_t n);

/* Index of the first of n bytes above `limit`; n when there is none. */
size_t rm_scan_above(const uint8_t *x, size_t n, uint8_t limit);

/* sum[i] += x[i] and count[i] += 1. */
void rm_scan_add(double *sum, uint32_t *count, const float *x, size_t n);

/* to[i] = 0 wherever flags[i] has one of `bits`. */
void rm_scan_clear(int32_t *to, const uint8_t *flags, uint8_t bits, size_t n);

#endif
