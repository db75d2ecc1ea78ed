/* atomics: threads run one at a time here, so they are plain. */
#ifndef RM_TESTS_CUDA_EMULATION_ATOMICS_H
#define RM_TESTS_CUDA_EMULATION_ATOMICS_H

#define RM_ATOMIC(name, type, expression)                                                          \
    static inline type name(type *at, type v)                                                      \
    {                                                                                              \
        const type old = *at;                                                                      \
        *at = (expression);                                                                        \
        return old;                                                                                \
    }
#define RM_ATOMICS_OF_NUMBERS(type)                                                                \
    RM_ATOMIC(atomicAdd, type, old + v)                                                            \
    RM_ATOMIC(atomicExch, type, v)
#define RM_ATOMICS_OF_INTEGERS(type)                                                               \
    RM_ATOMICS_OF_NUMBERS(type)                                                                    \
    RM_ATOMIC(atomicMax, type, old > v ? old : v)                                                  \
    RM_ATOMIC(atomicMin, type, old < v ? old : v)                                                  \
    RM_ATOMIC(atomicAnd, type, old &v)                                                             \
    RM_ATOMIC(atomicOr, type, old | v)                                                             \
    RM_ATOMIC(atomicXor, type, old ^ v)                                                            \
    static inline type atomicCAS(type *at, type expected, type v)                                  \
    {                                                                                              \
        const type old = *at;                                                                      \
        if (old == expected)                                                                       \
            *at = v;                                                                               \
        return old;                                                                                \
    }

RM_ATOMICS_OF_INTEGERS(int)
RM_ATOMICS_OF_INTEGERS(unsigned)
RM_ATOMICS_OF_INTEGERS(unsigned long long)
RM_ATOMICS_OF_NUMBERS(float)
RM_ATOMICS_OF_NUMBERS(double)
RM_ATOMIC(atomicSub, int, old - v)
RM_ATOMIC(atomicSub, unsigned, old - v)
RM_ATOMIC(atomicInc, unsigned, old >= v ? 0 : old + 1)
RM_ATOMIC(atomicDec, unsigned, old == 0 || old > v ? v : old - 1)
#undef RM_ATOMIC
#undef RM_ATOMICS_OF_NUMBERS
#undef RM_ATOMICS_OF_INTEGERS

#endif
