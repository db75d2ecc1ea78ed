#include "learner/backend/isa_parts.h"

#define RM_STRING2(x) #x
#define RM_STRING(x)  RM_STRING2(x)

/* clang-format off */
#define ROW(name) .name = RM_ISA_NAME(name),
const struct rm_kernels RM_ISA_NAME(kernels) = {
    .isa = "x86-64-" RM_STRING(RM_ISA),
    .product_columns = RM_PRODUCT_ALONE,
    .product_panel = RM_PRODUCT_PANEL,
    .product_depth = RM_PRODUCT_DEPTH,
    RM_KERNELS(ROW)
};
#undef ROW
/* clang-format on */
