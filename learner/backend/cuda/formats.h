/* formats: numbers of matrix products, by learner.compute: float32 (fp32, tf32), or 16 bits. */
#ifndef RM_LEARNER_BACKEND_CUDA_FORMATS_H
#define RM_LEARNER_BACKEND_CUDA_FORMATS_H

#include "config/experiment.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdint.h>

struct rm_in_fp32 {
    typedef float type;
    static __device__ float to_float(float x)
    {
        return x;
    }
    static __device__ float from_float(float x)
    {
        return x;
    }
};

struct rm_in_bf16 {
    typedef uint16_t type;
    static __device__ float to_float(uint16_t x)
    {
        return __bfloat162float(__ushort_as_bfloat16(x));
    }
    static __device__ uint16_t from_float(float x)
    {
        return __bfloat16_as_ushort(__float2bfloat16_rn(x));
    }
};

struct rm_in_fp16 {
    typedef uint16_t type;
    static __device__ float to_float(uint16_t x)
    {
        return __half2float(__ushort_as_half(x));
    }
    static __device__ uint16_t from_float(float x)
    {
        return __half_as_ushort(__float2half_rn(x));
    }
};

/* Calls with(format) for the format of products in `compute`; the second, for one of 16 bits. */
template <class With>
static inline void rm_in_halves(enum rm_compute compute, const With &with)
{
    if (compute == RM_COMPUTE_BF16)
        with(rm_in_bf16());
    else
        with(rm_in_fp16());
}

template <class With>
static inline void rm_in_format(enum rm_compute compute, const With &with)
{
    if (compute == RM_COMPUTE_BF16 || compute == RM_COMPUTE_FP16)
        rm_in_halves(compute, with);
    else
        with(rm_in_fp32());
}

#endif
