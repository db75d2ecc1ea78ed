/* staging: copies batches to a device and results back, for up to RM_TRAINER_DEPTH updates at a
 * time. A slot is a block of pinned memory with the batch and the update's knobs. One transfer on
 * the IN queue copies the block to device memory while earlier updates compute. Figures and errors
 * of samples return in the OUT queue.
 *
 * A slot's life: rm_staging_wait() waits for the slot's previous update; the caller draws the batch
 * and fills `host` and the knobs; rm_staging_send() starts the copy; the caller puts the update on
 * COMPUTE; rm_staging_sent() starts the copy of its results. Belongs to one thread; nothing is
 * allocated after create. */
#ifndef RM_LEARNER_ALGO_STAGING_H
#define RM_LEARNER_ALGO_STAGING_H

#include "learner/algo/trainer.h"
#include "learner/backend/device.h"
#include "learner/backend/device_draw.h"
#include "learner/backend/device_feed.h"

struct rm_staging_slot {
    struct rm_batch host;                    /* pinned memory */
    struct rm_update_knobs *knobs;           /* pinned memory */
    const struct rm_update_figures *figures; /* pinned memory: the update's results */
    const struct rm_device_drawn *drawn;     /* pinned memory; NULL: the host draws */
    /* The same in device memory; members that `host` lacks are NULL. If the device draws, only
     * knobs and turn come from the host, and all slots share the buffers of the drawn batch. */
    struct rm_batch device;
    const struct rm_update_knobs *device_knobs;
    struct rm_update_figures *device_figures; /* after this update */
    struct rm_device_drawn *device_drawn;     /* after its draw; NULL: the host draws */

    struct rm_device_graph *graph; /* the caller's, destroyed with the slot; NULL: none */
    uint64_t number;               /* the update's number, */
    double learning_rate;          /* and its learning rate, set by the caller */
    bool has_figures;              /* `figures` has this update's figures, or will have them */
    bool learnable;                /* the errors have arrived, and the caller has not read them */
    /* Private. */
    bool sent;
    uint8_t *pinned, *block; /* to the device: the host's block, the device's */
    uint8_t *back, *result;  /* from the device: the host's block, the device's */
    struct rm_queue_mark *in, *computed, *over;
};

struct rm_staging {
    struct rm_backend *backend;
    struct rm_staging_slot slots[RM_TRAINER_DEPTH];
    struct rm_device_sampler draw; /* .batch 0: the host draws */
    uint8_t *made;                 /* device memory: picks, and the arrays of `drawn` */
    struct rm_batch drawn;         /* by the device; no priorities: without weight, error, leaf */
    size_t bytes_in, bytes_back;
    size_t part_bytes[RM_BATCH_PARTS]; /* of a batch, copied to the device */
    bool errors;                       /* every update returns the errors of its samples */
    uint32_t next;                     /* the next update's slot */
};

struct rm_staging_spec {
    struct rm_batch shape;                /* sizes and codes; arrays are not read */
    const struct rm_device_sampler *draw; /* outlives staging; NULL: the host draws */
    struct rm_update_figures *figures;    /* with draw: whose `stop` a dry draw sets */
    struct rm_batch_extras extras;
};

/* The backend has a device and outlives the staging. After a failure, call rm_staging_destroy(),
 * which accepts a zeroed struct too. */
int rm_staging_create(struct rm_staging *staging, struct rm_backend *backend,
                      const struct rm_staging_spec *spec, struct rm_error *error);
void rm_staging_destroy(struct rm_staging *staging);

/* The slot of the next update. */
struct rm_staging_slot *rm_staging_slot(struct rm_staging *staging);

/* Fills the slot from another batch; does nothing for its own batch. */
void rm_staging_fill(const struct rm_staging *staging, struct rm_staging_slot *slot,
                     const struct rm_batch *batch);

/* Copies the slot to the device; COMPUTE waits for the copy. */
void rm_staging_send(struct rm_staging *staging, struct rm_staging_slot *slot);

/* The first part of an update: if the device draws, draws and gathers the batch. */
void rm_staging_draw(struct rm_staging *staging, const struct rm_staging_slot *slot);

/* The last part: if the device draws by priority, stores the errors as priorities. */
void rm_staging_learned(struct rm_staging *staging, const struct rm_staging_slot *slot);

/* After the slot's update was put on COMPUTE: copies the errors back, and with `figures` the
 * figures. The next slot becomes current. */
void rm_staging_sent(struct rm_staging *staging, struct rm_staging_slot *slot, bool figures);

/* Waits for the slot's update. Returns false if none was in progress. */
bool rm_staging_wait(struct rm_staging *staging, struct rm_staging_slot *slot);

/* Slot i, counted from the slot with the oldest update. */
static inline struct rm_staging_slot *rm_staging_oldest(struct rm_staging *staging, uint32_t i)
{
    return &staging->slots[(staging->next + i) % RM_TRAINER_DEPTH];
}

#endif
