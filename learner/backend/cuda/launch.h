/* launch: how kernels are started and get shared memory, by names that nvcc and the emulation of
 * tests/cuda/emulation both understand. Kernels are written in plain CUDA C++ otherwise; what the
 * emulation has of it stands in its cuda_runtime.h. */
#ifndef RM_LEARNER_BACKEND_CUDA_LAUNCH_H
#define RM_LEARNER_BACKEND_CUDA_LAUNCH_H

#ifdef __CUDACC__
#include <cuda_runtime.h>

/* grid and block: numbers or dim3. */
#define RM_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                  \
    kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)

/* In a kernel: `name` is what the launch gave of shared memory, as an array of `type`. */
#define RM_SHARED(type, name)                                                                      \
    extern __shared__ __align__(16) unsigned char rm_shared_bytes[];                               \
    type *const name = reinterpret_cast<type *>(rm_shared_bytes)
#else
#include "rm_emulated.h"
#endif

#endif
