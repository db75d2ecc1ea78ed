/* collective: the table of device_collective.h, and what the rest must know of members: that they
 * fail together, and that waiting for one may be waiting for another that has failed. */
#ifndef RM_LEARNER_BACKEND_CUDA_COLLECTIVE_H
#define RM_LEARNER_BACKEND_CUDA_COLLECTIVE_H

#include "learner/backend/cuda/cuda.h"

extern "C" {
#include "learner/backend/device_collective.h"
}

extern const struct rm_device_collective_ops rm_cuda_collective;

/* The host waits for a stream or event of c, and ends waiting when another member has failed. */
void rm_cuda_await_stream(struct rm_cuda *c, enum rm_device_stream stream);
void rm_cuda_await_event(struct rm_cuda *c, cudaEvent_t event);

/* c has had its first error: all members have it from now on. */
void rm_cuda_members_fail(struct rm_cuda *c);

/* Looks whether NCCL has had an error meanwhile. */
void rm_cuda_members_look(struct rm_cuda *c);

/* Whose error it is: c itself where it is alone. */
const struct rm_cuda *rm_cuda_failing(const struct rm_cuda *c);

/* Before something of c is taken down: after an error, what waits for other members ends. */
void rm_cuda_abandon(struct rm_cuda *c);

/* c will be destroyed: no device averages any more. */
void rm_cuda_leave(struct rm_cuda *c);

#endif
