/* cuda_bf16: __nv_bfloat16, a float with 8 bits of mantissa. */
#ifndef RM_TESTS_CUDA_EMULATION_CUDA_BF16_H
#define RM_TESTS_CUDA_EMULATION_CUDA_BF16_H

#include "cuda_runtime.h"
#include "half.h"

RM_HALF_TYPE(__nv_bfloat16, __nv_bfloat162, bfloat16, rm_emulated::to_bf16, rm_emulated::from_bf16)
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#endif
