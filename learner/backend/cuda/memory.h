/* memory: device and pinned memory of the CUDA backend, copies, streams, marks and graphs
 * (device.h, backend.h). */
#ifndef RM_LEARNER_BACKEND_CUDA_MEMORY_H
#define RM_LEARNER_BACKEND_CUDA_MEMORY_H

#include "learner/backend/cuda/cuda.h"

float *rm_cuda_alloc_floats(struct rm_backend *b, size_t floats);
void rm_cuda_release(struct rm_backend *b, float *p);
void rm_cuda_upload(struct rm_backend *b, float *to, const float *from, size_t floats);
void rm_cuda_download(struct rm_backend *b, float *to, const float *from, size_t floats);

void *rm_cuda_alloc(struct rm_backend *b, size_t bytes, struct rm_error *error);
void *rm_cuda_alloc_host(struct rm_backend *b, size_t bytes, struct rm_error *error);
void rm_cuda_release_host(struct rm_backend *b, void *p);
int rm_cuda_register_host(struct rm_backend *b, void *at, size_t bytes, bool read_only,
                          void **device, struct rm_error *error);
void rm_cuda_unregister_host(struct rm_backend *b, void *at);
void rm_cuda_copy_in(struct rm_backend *b, enum rm_device_stream stream, void *to, const void *from,
                     size_t bytes);
void rm_cuda_copy_out(struct rm_backend *b, enum rm_device_stream stream, void *to,
                      const void *from, size_t bytes);
void rm_cuda_copy(struct rm_backend *b, enum rm_device_stream stream, void *to, const void *from,
                  size_t bytes);
void rm_cuda_clear(struct rm_backend *b, enum rm_device_stream stream, void *at, size_t bytes);

/* stream.cu */
int rm_cuda_mark_create(struct rm_backend *b, struct rm_device_mark **mark, struct rm_error *error);
void rm_cuda_mark_destroy(struct rm_backend *b, struct rm_device_mark *mark);
void rm_cuda_mark(struct rm_backend *b, enum rm_device_stream stream, struct rm_device_mark *mark);
void rm_cuda_follow(struct rm_backend *b, enum rm_device_stream stream,
                    struct rm_device_mark *mark);
bool rm_cuda_passed(struct rm_backend *b, struct rm_device_mark *mark);
void rm_cuda_wait(struct rm_backend *b, struct rm_device_mark *mark);
void rm_cuda_finish(struct rm_backend *b);
int rm_cuda_capture(struct rm_backend *b, struct rm_error *error);
int rm_cuda_captured(struct rm_backend *b, struct rm_device_graph **graph, struct rm_error *error);
int rm_cuda_instantiate(struct rm_backend *b, struct rm_device_graph *graph,
                        struct rm_error *error);
void rm_cuda_launch(struct rm_backend *b, struct rm_device_graph *graph);
void rm_cuda_graph_destroy(struct rm_backend *b, struct rm_device_graph *graph);
/* Releases everything that the graphs refer to; they can no longer be launched. */
void rm_cuda_graphs_drop(struct rm_cuda *c);

#endif
