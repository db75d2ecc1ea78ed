/* op_cases: every operation of backend.h, once on the CPU and once on a device or on the CPU in
 * another way, with operands drawn alike. One table for the tests that run it on the CPU and
 * emulated and for the program that runs it on a GPU. */
#ifndef RM_TESTS_SUPPORT_OP_CASES_H
#define RM_TESTS_SUPPORT_OP_CASES_H

#include "learner/backend/backend.h"
#include "learner/backend/plugin.h"
#include "shm/base/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OP_ARRAYS 24

/* What one run of a case works with, on one backend. Two runs with equal seeds ask for the same
 * numbers in the same order. */
struct op_run {
    struct rm_backend *b;
    struct rm_rng rng;
    size_t most; /* elements that an array should have at most, about */
    bool failed; /* no memory */
    uint32_t array_count;
    struct {
        void *memory;
        size_t words;
        double scale; /* of an output: 0 where the array is none */
    } arrays[OP_ARRAYS];
};

struct op_case {
    const char *name;
    bool product; /* computed as learner.compute says: see op_tolerance() */
    void (*run)(struct op_run *r);
};

extern const struct op_case op_cases[], op_sequence_cases[];
extern const size_t op_case_count, op_sequence_case_count;

/* --- for cases ------------------------------------------------------------------------------- */

/* 1 .. most, often at the edge of a warp, a block or a tile. */
uint32_t op_size(struct op_run *r, uint32_t most);
uint32_t op_below(struct op_run *r, uint32_t n);
/* Normals of deviation `scale` in the backend's memory; words as they are. */
float *op_in(struct op_run *r, size_t n, float scale);
void *op_words(struct op_run *r, const void *from, size_t words);
/* What is compared: relative to `scale`, or to the largest number of it where that is more. op_out:
 * zeros on the CPU and no numbers on a device. */
float *op_out(struct op_run *r, size_t n, double scale);
float *op_inout(struct op_run *r, size_t n, float scale);
/* Another output of what is there. */
void op_compare(struct op_run *r, float *x, double scale);

/* --- for who runs them ----------------------------------------------------------------------- */

struct op_result {
    double deviation; /* the largest of all draws; infinite where one has no number */
    uint64_t bits;    /* a hash of all that the device wrote */
    bool failed;      /* no memory, or the device's error */
};

/* Deviations that a case may show. */
double op_tolerance(const struct op_case *c, enum rm_compute compute);
/* `draws` times, numbers from `seed` on. */
struct op_result op_check(const struct op_case *c, struct rm_backend *cpu,
                          struct rm_backend *device, uint32_t draws, size_t most, uint64_t seed);

#endif
