/* both: code that is written once and runs on both sides, in a process and in a CUDA kernel. Such
 * code is in headers, plain C11 that is C++17 as well: no state but what it is given, no libc but
 * memcpy() and memset(), no tables outside of functions, no compound literals. */
#ifndef RM_SHM_BASE_BOTH_H
#define RM_SHM_BASE_BOTH_H

#ifdef __CUDACC__
#define RM_BOTH static inline __host__ __device__
#else
#define RM_BOTH static inline
#endif

#endif
