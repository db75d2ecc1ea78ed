/* staging: batches on their way to a device and what comes back of them, RM_TRAINER_DEPTH of them
 * at a time. A slot is one block of pinned memory, with the batch and the update's knobs, that goes
 * to a block of device memory by one copy on the IN stream while the updates before it compute;
 * figures and errors of samples come back on the OUT stream.
 *
 * A slot's life: rm_staging_slot() waits for its last update to be over; the caller draws the batch
 * and fills `host` and the knobs; rm_staging_send() starts the copy, behind which the update is put
 * on COMPUTE; rm_staging_sent() says that it is there. Belongs to one thread; nothing is allocated
 * after create. */
#ifndef RM_LEARNER_ALGO_STAGING_H
#define RM_LEARNER_ALGO_STAGING_H

#include "learner/algo/trainer.h"
#include "learner/backend/device.h"
#include "learner/backend/device_draw.h"
#include "learner/backend/device_feed.h"

struct rm_staging_slot {
    struct rm_batch host;                    /* pinned memory */
    struct rm_update_knobs *knobs;           /* pinned memory */
    const struct rm_update_figures *figures; /* pinned memory: come back */
    const struct rm_device_drawn *drawn;     /* with them; NULL: the host draws */
    /* The same in device memory. What the host's has not is NULL. With picks, observations and
     * masks are made of them on the device, in buffers that all slots share; where the device draws
     * for itself, so is everything but knobs and turn. */
    struct rm_batch device;
    const struct rm_update_knobs *device_knobs;
    struct rm_update_figures *device_figures; /* as this update leaves them */
    struct rm_device_drawn *device_drawn;     /* as its draw does; NULL: the host draws */

    struct rm_device_graph *graph; /* the user's, destroyed with the slot; NULL: none */
    uint64_t number;               /* of the update */
    double learning_rate;          /* and its learning rate, for the user */
    bool told;                     /* its figures come back, or are there */
    bool learnable;                /* its errors have arrived and were not taken yet */
    /* Private. */
    bool sent;
    const float *weight_in;  /* device: as they came, where the device makes its own */
    uint8_t *pinned, *block; /* what goes in */
    uint8_t *back, *result;  /* what comes back: pinned, device */
    struct rm_device_mark *in, *computed, *over;
};

#define RM_STAGING_PARTS 15u

struct rm_staging {
    struct rm_backend *backend;
    struct rm_staging_slot slots[RM_TRAINER_DEPTH];
    struct rm_device_gather gather; /* .batch 0: none */
    struct rm_device_sampler draw;  /* .batch 0: the host draws */
    uint8_t *made;                  /* device: what it makes */
    float *error;                   /* there, where it draws by priority; else NULL */
    size_t bytes_in, bytes_back;
    size_t part_bytes[RM_STAGING_PARTS];
    bool errors;   /* samples' errors come back from every update */
    uint32_t next; /* slot */
};

struct rm_staging_spec {
    struct rm_batch shape;                 /* sizes, codes, and those of sequences; no arrays */
    const struct rm_device_gather *gather; /* batches are made by it, outlives staging; NULL: they
                                              come whole */
    const struct rm_device_sampler *draw;  /* with gather: the device draws by it; NULL: the host */
    struct rm_update_figures *figures;     /* with draw: those that stop updates */
    bool masks;                            /* with next_mask; sequences: with mask */
    bool own_masks;                        /* transitions: with mask too */
    bool priorities;                       /* with weight, error and leaf */
};

/* The backend, which has a device, outlives it. On failure what was made is left for
 * rm_staging_destroy(), which takes a zeroed one too. */
int rm_staging_create(struct rm_staging *staging, struct rm_backend *backend,
                      const struct rm_staging_spec *spec, struct rm_error *error);
void rm_staging_destroy(struct rm_staging *staging);

/* The slot of the next update, which is over with the one before. */
struct rm_staging_slot *rm_staging_slot(struct rm_staging *staging);

/* Fills the slot from another batch; does nothing for its own batch. */
void rm_staging_fill(const struct rm_staging *staging, struct rm_staging_slot *slot,
                     const struct rm_batch *batch);

/* COMPUTE goes on when the batch has arrived. */
void rm_staging_send(struct rm_staging *staging, struct rm_staging_slot *slot);

/* The first part of an update: draws and makes the batch, where that is done on the device. */
void rm_staging_gather(struct rm_staging *staging, const struct rm_staging_slot *slot);

/* Its last part: where the device draws by priority, the errors become priorities. */
void rm_staging_learned(struct rm_staging *staging, const struct rm_staging_slot *slot);

/* Its update is on COMPUTE: what it leaves comes back, figures only where `tell`. The next slot is
 * in turn. */
void rm_staging_sent(struct rm_staging *staging, struct rm_staging_slot *slot, bool tell);

/* Waits for the slot's update. Returns whether one was under way. */
bool rm_staging_wait(struct rm_staging *staging, struct rm_staging_slot *slot);

/* Slot i from the one whose update is the oldest. */
static inline struct rm_staging_slot *rm_staging_oldest(struct rm_staging *staging, uint32_t i)
{
    return &staging->slots[(staging->next + i) % RM_TRAINER_DEPTH];
}

#endif
