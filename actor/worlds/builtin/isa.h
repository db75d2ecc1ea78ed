/* isa: chooses the copy of a .isa.c file's kernel for this processor. The copies differ only in
 * speed: no kernel of a world contracts or reorders floating-point operations, so every copy gives
 * the same bits (tests compare them). */
#ifndef RM_ACTOR_WORLDS_BUILTIN_ISA_H
#define RM_ACTOR_WORLDS_BUILTIN_ISA_H

enum rm_env_isa { RM_ENV_ISA_V2 = 0, RM_ENV_ISA_V3, RM_ENV_ISA_V4, RM_ENV_ISA_COUNT };

/* The best set of this processor: x86-64-v2, v3 (AVX2, FMA, BMI) or v4 (AVX-512). */
static inline enum rm_env_isa rm_env_isa_best(void)
{
    __builtin_cpu_init();
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
          __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")))
        return RM_ENV_ISA_V2;
    if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
          __builtin_cpu_supports("avx512vl")))
        return RM_ENV_ISA_V3;
    return RM_ENV_ISA_V4;
}

/* Put before a loop whose iterations use different elements of arrays that do not overlap. */
#ifdef __clang__
#define RM_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define RM_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Name of this copy of a symbol, inside a .isa.c file. */
#define RM_ISA_JOIN_(name, isa) name##_##isa
#define RM_ISA_JOIN(name, isa)  RM_ISA_JOIN_(name, isa)
#define RM_ISA_NAME(name)       RM_ISA_JOIN(name, RM_ISA)

#endif
