/* launch: launches of kernels and their shared memory, by names that both nvcc and the emulation of
 * tests/cuda/emulation have. Kernels are otherwise plain CUDA C++; the emulation's cuda_runtime.h
 * has the part of CUDA that they use. */
#ifndef RM_LEARNER_BACKEND_CUDA_LAUNCH_H
#define RM_LEARNER_BACKEND_CUDA_LAUNCH_H

#ifdef __CUDACC__
#include <cuda_runtime.h>

/* grid and block: numbers or dim3. */
#define RM_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                  \
    kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)

/* In a kernel: `name` is the launch's shared memory, as an array of `type`. */
#define RM_SHARED(type, name)                                                                      \
    extern __shared__ __align__(16) unsigned char rm_shared_bytes[];                               \
    type *const name = reinterpret_cast<type *>(rm_shared_bytes)
#else
#include "rm_emulated.h"
#endif

#endif
