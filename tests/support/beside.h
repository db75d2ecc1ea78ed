/* beside: a trainer on a device beside one on the CPU, both of which learn from the same batches.
 * Between rm_test_backends_open() and close (backends.h). Helpers assert; they are called inside a
 * cmocka test. */
#ifndef RM_TESTS_SUPPORT_BESIDE_H
#define RM_TESTS_SUPPORT_BESIDE_H

#include "learner/algo/updates.h"

enum { RM_BESIDE_UPDATES = 100, RM_BESIDE_BATCH = 24 }; /* at most */

struct rm_test_beside {
    struct rm_trainer *there, *here; /* on the device, on the CPU */
    uint64_t updates;
    /* Errors by update, the CPU's; and how many of the device's batches have come out. */
    float errors[RM_BESIDE_UPDATES + 1][RM_BESIDE_BATCH];
    uint64_t batches;
    struct rm_trainer_result sum_there, sum_here;
    uint64_t made; /* by the device, as far as reported */
};

/* Both trainers from `spec`; its backend does not count. */
void rm_test_beside_open(struct rm_test_beside *p, struct rm_trainer_spec spec);
void rm_test_beside_close(struct rm_test_beside *p);

/* Update `number`, counted from 1, of both. */
void rm_test_beside_update(struct rm_test_beside *p, struct rm_batch *b, uint64_t number);
/* Waits for the device, then compares the means of what updates report and, where batches have
 * `priorities`, that as many of them have come out, with the CPU's errors. */
void rm_test_beside_end(struct rm_test_beside *p, bool priorities);

/* The two arenas, of as many parameters as the network has, are less than 1e-4 apart. */
void rm_test_beside_compare(const struct rm_test_beside *p, const char *what, const float *there,
                            const float *here);

#endif
