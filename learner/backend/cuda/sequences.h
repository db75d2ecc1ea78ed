/* sequences: the table of sequence_ops.h. */
#ifndef RM_LEARNER_BACKEND_CUDA_SEQUENCES_H
#define RM_LEARNER_BACKEND_CUDA_SEQUENCES_H

#include "learner/backend/cuda/cuda.h"

extern "C" {
#include "learner/backend/sequence_ops.h"
}

extern const struct rm_sequence_ops rm_cuda_sequences;

#endif
