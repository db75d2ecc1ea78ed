/* isa: names for code that is compiled once for each instruction set. A *.isa.c file is compiled
 * with RM_ISA = v2, v3 and v4 (levels of x86-64). The symbols of each copy contain the level, and
 * cpu.c chooses one table. */
#ifndef RM_LEARNER_BACKEND_ISA_H
#define RM_LEARNER_BACKEND_ISA_H

#include <stdint.h>

#define RM_ISA_PASTE2(isa, name) rm_isa_##isa##_##name
#define RM_ISA_PASTE(isa, name)  RM_ISA_PASTE2(isa, name)
#define RM_ISA_NAME(name)        RM_ISA_PASTE(RM_ISA, name)

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
