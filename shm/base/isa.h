/* isa: code that is compiled once per instruction set. A *.isa.c file is compiled with RM_ISA = v2,
 * v3, v4 (x86-64 levels). The names of each copy carry the level; rm_isa_level() chooses a copy. */
#ifndef RM_SHM_BASE_ISA_H
#define RM_SHM_BASE_ISA_H

enum rm_isa_level { RM_LEVEL_V2 = 0, RM_LEVEL_V3, RM_LEVEL_V4, RM_LEVEL_COUNT };

/* x86-64-v4 (AVX-512), v3 (AVX2, FMA) or v2, by the features that the psABI lists, as far as
 * libgcc reports them. Cheap enough to ask every time. */
static inline enum rm_isa_level rm_isa_level(void)
{
    __builtin_cpu_init();
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
          __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")))
        return RM_LEVEL_V2;
    if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
          __builtin_cpu_supports("avx512vl")))
        return RM_LEVEL_V3;
    return RM_LEVEL_V4;
}

/* The name of this copy of a symbol: rm_isa_v3_NAME. */
#define RM_ISA_PASTE2(isa, name) rm_isa_##isa##_##name
#define RM_ISA_PASTE(isa, name)  RM_ISA_PASTE2(isa, name)
#define RM_ISA_NAME(name)        RM_ISA_PASTE(RM_ISA, name)

/* Put before a loop whose iterations use different elements of arrays that do not overlap. */
#ifdef __clang__
#define RM_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define RM_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
