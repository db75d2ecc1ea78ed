#include "learner/backend/isa_sequence.h"

const struct rm_sequence_kernels RM_ISA_NAME(sequence_kernels) = {
    .gru = RM_ISA_NAME(gru),
    .gru_dx = RM_ISA_NAME(gru_dx),
    .lstm = RM_ISA_NAME(lstm),
    .lstm_dx = RM_ISA_NAME(lstm_dx),
    .add = RM_ISA_NAME(add),
    .attention = RM_ISA_NAME(attention),
    .attention_dx = RM_ISA_NAME(attention_dx),
    .mean = RM_ISA_NAME(span_mean),
    .mean_dx = RM_ISA_NAME(span_mean_dx),
    .dots = RM_ISA_NAME(span_dots),
    .dots_dx = RM_ISA_NAME(span_dots_dx),
    .relate = RM_ISA_NAME(relate),
    .relate_dw = RM_ISA_NAME(relate_dw),
};
