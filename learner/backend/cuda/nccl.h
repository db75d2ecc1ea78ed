/* nccl: the part of NCCL 2 that is used, declared here. The library is loaded when several devices
 * train one agent; building and everything else do not need it. Numbers are those of its interface,
 * which have not changed since 2.10. */
#ifndef RM_LEARNER_BACKEND_CUDA_NCCL_H
#define RM_LEARNER_BACKEND_CUDA_NCCL_H

#include "learner/backend/cuda/launch.h"

extern "C" {
#include "shm/base/error.h"
}

typedef void *rm_nccl_comm;

enum rm_nccl_result { RM_NCCL_SUCCESS = 0, RM_NCCL_IN_PROGRESS = 7 };
enum rm_nccl_type { RM_NCCL_FLOAT32 = 7, RM_NCCL_FLOAT64 = 8 };
enum rm_nccl_operation { RM_NCCL_SUM = 0, RM_NCCL_AVERAGE = 4 };

#define RM_NCCL_OLDEST 21000 /* the first version with averages and captures of several devices */

struct rm_nccl {
    int (*version)(int *version);
    /* One communicator per device, all used by one thread. */
    int (*init_all)(rm_nccl_comm *comms, int devices, const int *list);
    int (*all_reduce)(const void *from, void *to, size_t count, int type, int operation,
                      rm_nccl_comm comm, cudaStream_t stream);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*destroy)(rm_nccl_comm comm);
    int (*abort)(rm_nccl_comm comm); /* ends waits for other devices */
    int (*async_error)(rm_nccl_comm comm, int *result);
    const char *(*words)(int result);
};

/* Opens libnccl.so.2, or the file that RINGMASTER_NCCL names, once; it stays open. -ELIBACC,
 * -EPROTO. */
int rm_nccl_open(const struct rm_nccl **nccl, struct rm_error *error);

#endif
