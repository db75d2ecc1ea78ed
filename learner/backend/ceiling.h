/* ceiling: what this core can do at most, measured now in the calling thread by its processor time.
 * A host that is shared runs now faster, now slower: take the best of several. */
#ifndef RM_LEARNER_BACKEND_CEILING_H
#define RM_LEARNER_BACKEND_CEILING_H

#include <stddef.h>

/* Floating-point operations a second of multiply-adds (two operations each) of float32:
 * the best of `tries`, each over 0.1 ms. `isa`: "x86-64-v2", -v3 or -v4; NULL or "auto": the best
 * that the core has; "bf16": products of bf16, if the core has them, else as "auto". 0: the
 * clock is too coarse. */
double rm_ceiling_flops(const char *isa, unsigned tries);

/* Bytes a second that memcpy copies from one block of `bytes` to another: the best of `tries`, each
 * over at least 16 MiB. 0: no memory. */
double rm_ceiling_copy(size_t bytes, unsigned tries);

#endif
