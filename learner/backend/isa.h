/* isa: names for code compiled once per instruction set. A *.isa.c file is compiled with RM_ISA =
 * v2, v3, v4 (x86-64 levels); each copy carries the level in its symbols and cpu.c picks one table.
 */
#ifndef RM_LEARNER_BACKEND_ISA_H
#define RM_LEARNER_BACKEND_ISA_H

#include <stdint.h>

#define RM_ISA_PASTE2(isa, name) rm_isa_##isa##_##name
#define RM_ISA_PASTE(isa, name)  RM_ISA_PASTE2(isa, name)
#define RM_ISA_NAME(name)        RM_ISA_PASTE(RM_ISA, name)

/* One fused multiply-add where the level has it. Never left to the compiler's contraction, so that
 * a loop's vector body and its scalar tail round alike. */
#ifdef __FMA__
#define RM_FMA(a, b, c)  __builtin_fmaf(a, b, c)
#define RM_FMAD(a, b, c) __builtin_fma(a, b, c)
#else
#define RM_FMA(a, b, c)  ((a) * (b) + (c))
#define RM_FMAD(a, b, c) ((a) * (b) + (c))
#endif

/* Lanes of the explicit reductions: fixed over levels, so the order of additions is too. */
#define RM_LANES 16

#endif
