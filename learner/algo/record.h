/* record: updates of a device's trainer - or of several that are one agent's - run once to warm up
 * and then captured, once for each slot of its staging. Libraries choose kernels, load them and
 * connect devices in the first run, which cannot be captured; what it changes is put back to the
 * bit.
 *
 * An update is put on the device in two halves, between which replicas average. */
#ifndef RM_LEARNER_ALGO_RECORD_H
#define RM_LEARNER_ALGO_RECORD_H

#include "learner/algo/trainer.h"
#include "learner/backend/device.h"

struct rm_recorded_ops {
    /* Copies aside all that an update changes; puts it back and frees the copies, which may be
     * there in part. */
    int (*keep)(struct rm_trainer *trainer, struct rm_error *error);
    void (*put_back)(struct rm_trainer *trainer);
    /* On COMPUTE, for a slot: up to gradient, loss and figures; and from the norm on. */
    void (*put_gradient)(struct rm_trainer *trainer, uint32_t slot);
    void (*put_step)(struct rm_trainer *trainer, uint32_t slot);
    /* What of the first half is averaged, between begin() and end() of device_collective.h. */
    void (*put_mean)(struct rm_trainer *trainer);
    void (*take_graph)(struct rm_trainer *trainer, uint32_t slot, struct rm_device_graph *graph);
    /* Waits; what the first half found. */
    struct rm_trainer_result (*look)(struct rm_trainer *trainer);
};

struct rm_recorded {
    struct rm_trainer *trainer;
    struct rm_backend *backend;
};

/* `graphs` false: warms up only. The trainers are of one kind, on backends that are joined where
 * there are several. */
int rm_record(const struct rm_recorded *all, uint32_t count, bool graphs, struct rm_error *error);

/* The averages, where there are several. */
void rm_record_mean(const struct rm_recorded *all, uint32_t count);

#endif
