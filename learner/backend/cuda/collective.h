/* collective: functions for members, which fail together: a wait for one may be a wait for another
 * that has failed. */
#ifndef RM_LEARNER_BACKEND_CUDA_COLLECTIVE_H
#define RM_LEARNER_BACKEND_CUDA_COLLECTIVE_H

#include "learner/backend/cuda/tables.h"

/* The host waits for a stream or event of c, until another member fails. */
void rm_cuda_await_stream(struct rm_cuda *c, enum rm_queue stream);
void rm_cuda_await_event(struct rm_cuda *c, cudaEvent_t event);

/* After c's first error: gives it to all members. */
void rm_cuda_members_fail(struct rm_cuda *c);

/* Checks NCCL for errors. */
void rm_cuda_members_look(struct rm_cuda *c);

/* The member that had the error; c if it is alone. */
const struct rm_cuda *rm_cuda_failing(const struct rm_cuda *c);

/* Call before destroying parts of c: after an error, ends all waits for other members. */
void rm_cuda_abandon(struct rm_cuda *c);

/* Call before c is destroyed: afterwards no device averages. */
void rm_cuda_leave(struct rm_cuda *c);

#endif
