/* probes: small kernels and sequences of calls, many of them wrong on purpose, that show what the
 * emulation does and finds. Compiled like the plugin, into probes.so; called from C by name.
 *
 * Each returns the error that a program would see (cudaGetLastError, the call, or what waiting for
 * the device gave). `out` has PROBE_OUT floats: what the device computed. */
#ifndef RM_TESTS_CUDA_PROBES_PROBES_H
#define RM_TESTS_CUDA_PROBES_PROBES_H

#define PROBE_OUT 1024

typedef int probe_fn(float *out);

#ifdef __cplusplus
#define PROBE(name) extern "C" __attribute__((visibility("default"))) int probe_##name(float *out)

#include "learner/backend/cuda/launch.h"

#include <stdint.h>

/* Device memory for PROBE_OUT floats, zeroed; what is there when it ends goes to `out`. */
struct probe_memory {
    float *at = nullptr;
    float *out;
    explicit probe_memory(float *to) : out(to)
    {
        cudaMalloc(&at, PROBE_OUT * sizeof(float));
        cudaMemset(at, 0, PROBE_OUT * sizeof(float));
        cudaDeviceSynchronize(); /* streams that are apart from the null stream do not wait */
    }
    /* Waits, fetches, frees: the first error of these, or `before`. */
    int end(int before = 0)
    {
        const int last = cudaGetLastError();
        const int waited = cudaDeviceSynchronize();
        const int copied = cudaMemcpy(out, at, PROBE_OUT * sizeof(float), cudaMemcpyDeviceToHost);
        const int freed = cudaFree(at);
        return before ? before : last ? last : waited ? waited : copied ? copied : freed;
    }
};
#endif
#endif
