/* collectives: a rank of collectives over the double of NCCL (tests/cuda/nccl). */
#ifndef RM_TESTS_CUDA_PROBES_COLLECTIVES_H
#define RM_TESTS_CUDA_PROBES_COLLECTIVES_H

#include "tests/cuda/probes/probes.h"

#define COLLECTIVE_ID 128

/* path: of libnccl.so.2. id: what ncclGetUniqueId gave, the same for all ranks. wrong: ranks ask
 * for different things. 0, or an error of the library's or the runtime's. */
typedef int collective_fn(const char *path, const char *id, int ranks, int rank, int wrong,
                          float *out);

#endif
