/* control: what a test may read from the emulated plugin and set in it; symbols of the .so, found
 * with dlsym. C and C++.
 *
 * ENVIRONMENT, read once when the plugin is first called:
 *   RM_EMULATED_ORDER    forward (default), reverse, or random[:SEED]: the order of a block's
 * threads and of a grid's blocks; with random, streams interleave at random as well
 *   RM_EMULATED_DEVICES  how many devices there are (1)
 *   RM_EMULATED_CAPABILITY  their compute capability, tenfold (90)
 *   RM_EMULATED_MEMORY   bytes of each (4294967296)
 *   RM_EMULATED_POISON   hexadecimal word that fresh memory is filled with (7fc0dead, a NaN)
 *   RM_EMULATED_GUARD    0: the host may touch the device's memory (it gets SIGSEGV else)
 *   RM_EMULATED_FAULT    errors to give: CALL:CODE@N[,...]: the Nth CALL gives CODE; N+ is from the
 *                        Nth on. CALL: a function's name, `launch` for kernels, or `any`. */
#ifndef RM_TESTS_CUDA_EMULATION_CONTROL_H
#define RM_TESTS_CUDA_EMULATION_CONTROL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rm_emulated_counts {
    uint64_t allocations, frees;           /* device memory */
    uint64_t host_allocations, host_frees; /* pinned memory */
    uint64_t device_bytes, host_bytes;     /* in use */
    uint64_t registrations;                /* of host memory, in force */
    uint64_t synchronizations;             /* calls that waited for the device */
    uint64_t launches;                     /* of kernels, outside of graphs */
    uint64_t products;                     /* of cublasLt, outside of graphs */
    uint64_t graph_launches, graph_nodes;  /* nodes: run as part of graphs */
    uint64_t copies, bytes_in, bytes_out;  /* host to device, device to host */
    uint64_t pageable;                     /* copies from or to memory that is not pinned */
    uint64_t waiting;                      /* operations on streams that have not run yet */
    uint64_t streams, events, graphs;      /* that exist */
};

void rm_emulated_counts(struct rm_emulated_counts *out);

/* As the variables of the environment, from now on; NULL or "" is the default. Work that is queued
 * runs before. Returns 0 or -EINVAL. */
int rm_emulated_order(const char *order);
int rm_emulated_poison(uint32_t word);
int rm_emulated_fault(const char *faults);

/* What the device found wrong, in words: kernel, block, thread; "" if nothing. */
const char *rm_emulated_complaint(void);

/* A new process as far as the device goes: errors, faults, complaints, counts, and work that waits
 * are forgotten, memory, streams, events and graphs freed. Returns how many of these were left. */
uint64_t rm_emulated_reset(void);

/* For doubles of other libraries (tests/cuda/nccl). Puts run(data) on the stream, or into the graph
 * that it is captured into; 0 or the runtime's error. In a graph, kept(data, 1) is called, and
 * kept(data, -1) when it and all that was made of it are gone. */
int rm_emulated_enqueue(void *stream, void (*run)(void *), void *data,
                        void (*kept)(void *data, int by));
/* Within such a function: what is wrong with `bytes` at p as memory of the stream's device; NULL if
 * nothing. Valid until the next call. */
const char *rm_emulated_wrong(void *stream, const void *p, uint64_t bytes);
/* Within such a function: returns when waiting(data) is false; other streams and threads go on
 * meanwhile. Nonzero after a minute. */
int rm_emulated_while(int (*waiting)(void *), void *data);
/* The device that the calling thread has chosen. */
int rm_emulated_device(void);
/* The error that this call of a function of that name is to give (RM_EMULATED_FAULT); 0: none. */
int rm_emulated_injected(const char *name);
/* Within such a function: the context is lost, with this error. */
void rm_emulated_lose(int error, const char *why);

#ifdef __cplusplus
}
#endif
#endif
