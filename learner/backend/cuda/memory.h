/* memory: device and pinned memory of the CUDA backend, copies, streams, marks and graphs
 * (device.h, backend.h). */
#ifndef RM_LEARNER_BACKEND_CUDA_MEMORY_H
#define RM_LEARNER_BACKEND_CUDA_MEMORY_H

#include "learner/backend/cuda/cuda.h"

/* rm_cuda_NAME() for these members of struct rm_device_ops: memory.cu, then stream.cu. */
/* clang-format off */
#define RM_DEVICE_MEMORY(X) \
    X(register_host) X(unregister_host) X(capture) X(captured) X(instantiate) X(launch) \
    X(graph_destroy)
/* clang-format on */
#define RM_CUDA_DECLARE(name) RM_CUDA_MEMBER(rm_device_ops, name) rm_cuda_##name;
RM_DEVICE_MEMORY(RM_CUDA_DECLARE)
#undef RM_CUDA_DECLARE

/* Of struct rm_backend_ops: memory.cu, stream.cu, plugin.cu. */
#define RM_CUDA_DECLARE(name) RM_CUDA_MEMBER(rm_backend_ops, name) rm_cuda_##name;
RM_QUEUE_OPERATIONS(RM_CUDA_DECLARE)
#undef RM_CUDA_DECLARE
RM_CUDA_MEMBER(rm_backend_ops, alloc) rm_cuda_alloc_floats;
RM_CUDA_MEMBER(rm_backend_ops, release) rm_cuda_release;
RM_CUDA_MEMBER(rm_backend_ops, upload) rm_cuda_upload;
RM_CUDA_MEMBER(rm_backend_ops, download) rm_cuda_download;

/* Releases everything that the graphs refer to; they can no longer be launched. */
void rm_cuda_graphs_drop(struct rm_cuda *c);

#endif
