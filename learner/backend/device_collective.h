/* device_collective: sums and averages over several devices of one process that train one agent
 * together, each from its own rows (NCCL). backend->device->collective.
 *
 * Members belong to one thread, which puts the same sums on all of them, in the same order:
 *
 *   begin(any member);
 *   sum(each member, its numbers);
 *   end(any member);
 *
 * The result is the same on all members, to the bit. A sum is put on COMPUTE and waits there for
 * the other members. So between begin() and end() all members must make the same call, and a
 * captured sum must be launched on all members before the host waits for any. During a sum either
 * all members are captured or none. Before a capture, make one sum of the same size: its set-up
 * cannot be captured.
 *
 * ERRORS of one member are errors of all (device.h: failed()), since all others would wait for it;
 * the message names the member that failed. */
#ifndef RM_LEARNER_BACKEND_DEVICE_COLLECTIVE_H
#define RM_LEARNER_BACKEND_DEVICE_COLLECTIVE_H

#include "learner/backend/device.h"

#define RM_DEVICE_MEMBERS 16u

enum rm_device_number { RM_DEVICE_FLOAT = 0, RM_DEVICE_DOUBLE };

struct rm_device_collective_ops {
    /* Joins 2 to RM_DEVICE_MEMBERS backends, each of its own device and not yet joined, until the
     * first of them is destroyed. -ELIBACC: no NCCL; -EPROTO: NCCL is too old; -EIO: NCCL
     * refuses. */
    int (*join)(struct rm_backend *const *members, uint32_t count, struct rm_error *error);

    /* The members in the order of join(). Returns their number; 0: b is not joined. */
    uint32_t (*members)(struct rm_backend *b, struct rm_backend *members[RM_DEVICE_MEMBERS]);

    void (*begin)(struct rm_backend *b);
    /* at(n) = mean, or sum, over members of at(n), on b's device. The sum of a number that is 0 on
     * all members but one is that member's number. */
    void (*mean)(struct rm_backend *b, void *at, size_t n, enum rm_device_number kind);
    void (*sum)(struct rm_backend *b, void *at, size_t n, enum rm_device_number kind);
    void (*end)(struct rm_backend *b);

    /* The number of the member that had the error of failed(). */
    uint32_t (*failing_device)(struct rm_backend *b);
};

#endif
