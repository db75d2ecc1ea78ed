/* vectors: CUDA's small vector types, with their sizes and alignments, and dim3. */
#ifndef RM_TESTS_CUDA_EMULATION_VECTORS_H
#define RM_TESTS_CUDA_EMULATION_VECTORS_H

#define RM_VECTORS(name, type)                                                                     \
    struct name##1                                                                                 \
    {                                                                                              \
        type x;                                                                                    \
    };                                                                                             \
    struct alignas(2 * sizeof(type)) name##2                                                       \
    {                                                                                              \
        type x, y;                                                                                 \
    };                                                                                             \
    struct name##3                                                                                 \
    {                                                                                              \
        type x, y, z;                                                                              \
    };                                                                                             \
    struct alignas(sizeof(type) == 8 ? 16 : 4 * sizeof(type)) name##4                              \
    {                                                                                              \
        type x, y, z, w;                                                                           \
    };                                                                                             \
    static inline name##1 make_##name##1(type x)                                                   \
    {                                                                                              \
        return {x};                                                                                \
    }                                                                                              \
    static inline name##2 make_##name##2(type x, type y)                                           \
    {                                                                                              \
        return {x, y};                                                                             \
    }                                                                                              \
    static inline name##3 make_##name##3(type x, type y, type z)                                   \
    {                                                                                              \
        return {x, y, z};                                                                          \
    }                                                                                              \
    static inline name##4 make_##name##4(type x, type y, type z, type w)                           \
    {                                                                                              \
        return {x, y, z, w};                                                                       \
    }

RM_VECTORS(char, signed char)
RM_VECTORS(uchar, unsigned char)
RM_VECTORS(short, short)
RM_VECTORS(ushort, unsigned short)
RM_VECTORS(int, int)
RM_VECTORS(uint, unsigned)
RM_VECTORS(longlong, long long)
RM_VECTORS(ulonglong, unsigned long long)
RM_VECTORS(float, float)
RM_VECTORS(double, double)
#undef RM_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z)
    {
    }
};

#endif
