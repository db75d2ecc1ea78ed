/* both: marks code that is compiled twice, for processes and for CUDA kernels. Such code is in
 * headers and is both C11 and C++20: no state besides its arguments, no libc besides memcpy(),
 * memset() and math.h, no tables outside of functions, no compound literals. */
#ifndef RM_SHM_BASE_BOTH_H
#define RM_SHM_BASE_BOTH_H

#ifdef __CUDACC__
#define RM_BOTH static inline __host__ __device__
#else
#define RM_BOTH static inline
#endif

#endif
