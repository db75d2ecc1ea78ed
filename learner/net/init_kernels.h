/* init_kernels: the functions of init.isa.c, one copy for every instruction set. All copies give
 * the same bits: no operation is fused, sums have eight lanes in every copy, and logarithm and
 * cosine consist of basic operations, whose rounding IEEE 754 defines. So initial parameters depend
 * only on seed and network. */
#ifndef RM_LEARNER_NET_INIT_KERNELS_H
#define RM_LEARNER_NET_INIT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* A row's length is a multiple of RM_INIT_LANES; the number of rows is a multiple of
 * RM_INIT_ROWS. */
#define RM_INIT_LANES 8u
#define RM_INIT_ROWS  4u

struct rm_init_kernels {
    /* n standard normals (Box and Muller, 1958) of four random words each: two uniforms of 53 bits,
     * high word first. */
    void (*normals)(const uint32_t *words, uint32_t n, double *out);

    /* x(rows, length) -= (x q^T) q for q(n, length) of orthonormal rows or zeros; rows are `stride`
     * numbers apart. scratch: rows * n. */
    void (*project)(double *x, uint32_t rows, const double *q, uint32_t n, size_t length,
                    size_t stride, double *scratch);

    /* The same for one row each; returns the square of x. */
    void (*project_one)(double *x, const double *q, size_t length);
    double (*square)(const double *x, size_t length);
};

extern const struct rm_init_kernels rm_isa_v2_init, rm_isa_v3_init, rm_isa_v4_init;

/* The table of this processor. */
const struct rm_init_kernels *rm_init_kernels(void);

#endif
