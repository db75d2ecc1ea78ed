/* cuda_fp16: __half, 11 bits of mantissa and 5 of exponent. */
#ifndef RM_TESTS_CUDA_EMULATION_CUDA_FP16_H
#define RM_TESTS_CUDA_EMULATION_CUDA_FP16_H

#include "cuda_runtime.h"
#include "half.h"

RM_HALF_TYPE(__half, __half2, half, rm_emulated::to_fp16, rm_emulated::from_fp16)
typedef __half half;
typedef __half2 half2;

#endif
