/* isa_parts: the kernels of one level, declared for the files that are compiled once per level. */
#ifndef RM_LEARNER_BACKEND_ISA_PARTS_H
#define RM_LEARNER_BACKEND_ISA_PARTS_H

#include "learner/backend/isa.h"
#include "learner/backend/kernels.h"

/* Columns of a product's panel, rows of it that the first- or second-level cache holds, and columns
 * at once for a single row. */
#if defined(__AVX512F__)
#define RM_PRODUCT_PANEL 64u
#define RM_PRODUCT_DEPTH 512u
#define RM_PRODUCT_ALONE 128u
#elif defined(__AVX2__)
#define RM_PRODUCT_PANEL 16u
#define RM_PRODUCT_DEPTH 256u
#define RM_PRODUCT_ALONE 64u
#else
#define RM_PRODUCT_PANEL 16u
#define RM_PRODUCT_DEPTH 256u
#define RM_PRODUCT_ALONE 32u
#endif

#define RM_ISA_DECLARE(name) __typeof__(*((struct rm_kernels *)0)->name) RM_ISA_NAME(name);
RM_KERNELS(RM_ISA_DECLARE)
#undef RM_ISA_DECLARE

#endif
