/* isa_level: the level of this processor, which selects a kernel's copy from a .isa.c file, for
 * kernels outside of a backend. */
#ifndef RM_LEARNER_BACKEND_ISA_LEVEL_H
#define RM_LEARNER_BACKEND_ISA_LEVEL_H

enum rm_isa_level { RM_LEVEL_V2 = 0, RM_LEVEL_V3, RM_LEVEL_V4, RM_LEVEL_COUNT };

/* x86-64-v4 (AVX-512), v3 (AVX2, FMA) or v2. Cheap enough to ask every time. */
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

#endif
