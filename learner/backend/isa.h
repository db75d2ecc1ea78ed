/* isa: what loops of every instruction set have in common (shm/base/isa.h). */
#ifndef RM_LEARNER_BACKEND_ISA_H
#define RM_LEARNER_BACKEND_ISA_H

#include "shm/base/isa.h"

#include <stdint.h>

/* A fused multiply-add if the level has one. It is written out, because the compiler's contraction
 * could round a loop's vector body and its scalar tail differently. */
#ifdef __FMA__
#define RM_FMA(a, b, c)  __builtin_fmaf(a, b, c)
#define RM_FMAD(a, b, c) __builtin_fma(a, b, c)
#else
#define RM_FMA(a, b, c)  ((a) * (b) + (c))
#define RM_FMAD(a, b, c) ((a) * (b) + (c))
#endif

/* Lanes of the explicit reductions: the same on all levels, so the order of additions is, too. */
#define RM_LANES 16

#endif
