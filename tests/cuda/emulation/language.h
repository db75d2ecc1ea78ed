/* language: what CUDA C++ has that C++ has not, for kernels compiled by the host's compiler.
 *
 * A block's threads are fibers of the calling thread (block.cc). Threads run one after another,
 * each until it waits: for a barrier, or for the other lanes of its warp. */
#ifndef RM_TESTS_CUDA_EMULATION_LANGUAGE_H
#define RM_TESTS_CUDA_EMULATION_LANGUAGE_H

#include "vectors.h"

#include <string.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
/* Thread-local variables of an object stand in one segment, of templates and inline functions too:
 * that segment is a block's shared memory, filled with a pattern before each block. */
#define __shared__      static __thread
#define __align__(n)    __attribute__((aligned(n)))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
constexpr int warpSize = 32;

/* Of the thread that runs. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace rm_emulated
{
enum wait_kind {
    WAIT_NONE = 0,
    WAIT_BARRIER,
    WAIT_OR,
    WAIT_AND,
    WAIT_COUNT,
    WAIT_WARP,
    WAIT_SHUFFLE,
    WAIT_BALLOT,
    WAIT_MATRIX,
    WAIT_PART,
};

/* Where a wait stands in the source: threads that meet must stand at the same place. */
struct place {
    const char *file;
    unsigned line;
};

/* For all threads of the block. Returns what the kind asks of `value`. */
int barrier(wait_kind kind, int value, place at);

/* For the lanes of `mask`: words[lane] is the word of lane `lane`, valid until this lane waits
 * again. */
const unsigned long long *meet(wait_kind kind, unsigned mask, unsigned long long word, place at);

/* 0 to 31, and how many lanes this warp has. */
unsigned lane();
unsigned lanes();
/* Its number within the block. */
unsigned thread_of_block();

[[noreturn]] void trap(const char *what, place at);

extern unsigned char *dynamic_shared;
} // namespace rm_emulated

#define RM_PLACE unsigned line = __builtin_LINE(), const char *file = __builtin_FILE()

static inline void __syncthreads(RM_PLACE)
{
    rm_emulated::barrier(rm_emulated::WAIT_BARRIER, 0, {file, line});
}
static inline int __syncthreads_or(int v, RM_PLACE)
{
    return rm_emulated::barrier(rm_emulated::WAIT_OR, v, {file, line});
}
static inline int __syncthreads_and(int v, RM_PLACE)
{
    return rm_emulated::barrier(rm_emulated::WAIT_AND, v, {file, line});
}
static inline int __syncthreads_count(int v, RM_PLACE)
{
    return rm_emulated::barrier(rm_emulated::WAIT_COUNT, v, {file, line});
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, RM_PLACE)
{
    rm_emulated::meet(rm_emulated::WAIT_WARP, mask, 0, {file, line});
}
static inline unsigned __activemask()
{
    return rm_emulated::lanes() == 32 ? 0xffffffffu : (1u << rm_emulated::lanes()) - 1u;
}

/* --- votes ------------------------------------------------------------------------------------ */

static inline unsigned __ballot_sync(unsigned mask, int v, RM_PLACE)
{
    const unsigned long long *words =
        rm_emulated::meet(rm_emulated::WAIT_BALLOT, mask, v != 0, {file, line});
    unsigned ballot = 0;
    for (unsigned i = 0; i < rm_emulated::lanes(); i++)
        if (mask >> i & 1)
            ballot |= (unsigned)words[i] << i;
    return ballot;
}
static inline int __any_sync(unsigned mask, int v, RM_PLACE)
{
    return __ballot_sync(mask, v, line, file) != 0;
}
static inline int __all_sync(unsigned mask, int v, RM_PLACE)
{
    return __ballot_sync(mask, !v, line, file) == 0;
}

/* --- shuffles --------------------------------------------------------------------------------- */

namespace rm_emulated
{
template <class T>
T shuffle(unsigned mask, T value, unsigned from, place at)
{
    static_assert(sizeof(T) <= 8, "shuffles move up to 8 bytes");
    unsigned long long word = 0;
    memcpy(&word, &value, sizeof value);
    const unsigned long long *words = meet(WAIT_SHUFFLE, mask, word, at);
    if (from >= lanes() || !(mask >> from & 1))
        trap("shuffle from a lane that takes no part", at);
    memcpy(&value, &words[from], sizeof value);
    return value;
}

/* Whether the lane that is `by` away is in the same part of `width` lanes, else the own one. */
static inline unsigned within(unsigned to, int width)
{
    const unsigned part = lane() & ~((unsigned)width - 1);
    return to >= part && to < part + (unsigned)width ? to : lane();
}
} // namespace rm_emulated

template <class T>
T __shfl_sync(unsigned mask, T v, int from, int width = 32, RM_PLACE)
{
    const unsigned w = (unsigned)width;
    const unsigned lane = (rm_emulated::lane() & ~(w - 1)) + ((unsigned)from & (w - 1));
    return rm_emulated::shuffle(mask, v, lane, {file, line});
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, RM_PLACE)
{
    const unsigned to = rm_emulated::within(rm_emulated::lane() + by, width);
    return rm_emulated::shuffle(mask, v, to, {file, line});
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, RM_PLACE)
{
    const unsigned lane = rm_emulated::lane();
    const unsigned to = rm_emulated::within(by > lane ? lane : lane - by, width);
    return rm_emulated::shuffle(mask, v, to, {file, line});
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32, RM_PLACE)
{
    const unsigned to = rm_emulated::within(rm_emulated::lane() ^ (unsigned)bits, width);
    return rm_emulated::shuffle(mask, v, to, {file, line});
}

static inline void __threadfence()
{
}
static inline void __threadfence_block()
{
}
static inline void __threadfence_system()
{
}
static inline void __trap(RM_PLACE)
{
    rm_emulated::trap("__trap()", {file, line});
}

#include "atomics.h"
#include "device_math.h"

#endif
