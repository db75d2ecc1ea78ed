/* device: functions of a backend whose memory is not the host's, beside the operations of
 * backend.h: captured updates, and the parts of an update that on the CPU the host computes.
 * `backend->device` is NULL for the CPU.
 *
 * CAPTURE. Between capture() and captured() all work put on COMPUTE is recorded instead of run;
 * instantiate() prepares the record for launch(), which runs it. So a captured update must read
 * everything that changes between updates from device memory: batches from fixed buffers, numbers
 * from struct rm_update_knobs. Marks of other queues must not be recorded or followed inside.
 *
 * ERRORS. Functions do not return device errors. The first error is kept (it is sticky: the context
 * is lost), later work does nothing, and failed() reports the error. The caller then ends the
 * process (RM_EXIT_CUDA), because only a new process gets a new context.
 *
 * Belongs to one thread. */
#ifndef RM_LEARNER_BACKEND_DEVICE_H
#define RM_LEARNER_BACKEND_DEVICE_H

#include "shm/base/both.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_backend;
struct rm_device_graph;
struct rm_value_ops;             /* value_ops.h */
struct rm_sequence_ops;          /* sequence_ops.h */
struct rm_soft_ops;              /* soft_ops.h */
struct rm_policy_ops;            /* policy_ops.h */
struct rm_device_optimizer_ops;  /* device_optimizer.h */
struct rm_device_feed_ops;       /* device_feed.h */
struct rm_device_collective_ops; /* device_collective.h */
struct rm_device_world_ops;      /* device_worlds.h */

struct rm_device_counts {
    uint64_t bytes_in, bytes_out; /* host to device, device to host */
    uint64_t allocations;         /* of device or pinned memory, since creation */
    uint64_t synchronizations;    /* times the host waited for the device */
    uint64_t launches;            /* of kernels and products outside of graphs */
    uint64_t graph_launches;
};

/* The host's input to an update, in the backend's memory. For a device it is copied from pinned
 * memory ahead of each launch, and read by the operations of a captured update. */
struct rm_update_knobs {
    uint64_t before;            /* updates attempted before this one: keys its draws */
    double learning_rate;       /* of this update: by the schedule */
    double entropy_coefficient; /* actor-critic */
    float grad_clip;            /* 0: none */
    float target_tau; /* target += tau (params - target) after this update; 0: no change, 1: an
                         exact copy */
    uint32_t afresh;  /* 1: sums of the figures restart with this update */
    uint32_t unused;
};

/* Number of groups of parameters with separate norms for clipping. */
#define RM_DEVICE_GROUPS 3u

/* Results of updates, in the backend's memory: sums since the last restart, fetched once per
 * report. A skipped update adds to `skipped` and `skipped_in_row` only. */
struct rm_update_figures {
    uint64_t made, skipped;  /* updates; not cleared */
    uint64_t skipped_in_row; /* up to the latest update; not cleared */
    uint64_t steps;          /* of the optimizer: for bias correction; not cleared */
    uint64_t reports;        /* updates in the sums below */
    double loss, grad_norm;  /* sums over these */
    double sums[8];          /* the losses' own sums: see value_ops.h, policy_ops.h */
    double samples;          /* number of samples in sums[] */
    double last_loss;        /* of the latest update, skipped or not; its loss sets it */
    double last_grad_norm;   /* of the latest update; norm() of device_optimizer.h sets it */
    /* Sums of the current update: its loss sets them, norm() adds them to the sums above. */
    double now_sums[8], now_samples;
    uint32_t skip; /* 1: this update changes nothing (set by norm()) */
    uint32_t
        stop; /* 1: updates do nothing and are not counted, until it is cleared (KL, dry draws) */
    float scale[RM_DEVICE_GROUPS]; /* of the gradient, by the norm of each group */
    float adam_step;               /* learning rate / (1 - beta1^steps) */
    float adam_root;               /* 1 / sqrt(1 - beta2^steps) */
    float adam_decay;              /* learning rate * weight decay */
    /* fp16: losses multiply their gradients by loss_scale (0: by 1) and norm() divides by it, so
     * that small gradients survive 16 bits. Too large a scale makes the gradient infinite: such an
     * update is skipped, does not count as `in a row`, and the scale is halved; after
     * RM_DEVICE_SCALE_PATIENCE finite updates it is doubled (Micikevicius 2018, section 3.2). */
    float loss_scale;
    uint32_t loss_scale_good; /* updates since it changed */
};

/* The factor of the losses' gradients. */
RM_BOTH float rm_figures_scale(const struct rm_update_figures *f)
{
    return f->loss_scale > 0.0f ? f->loss_scale : 1.0f;
}

/* Begins the sums of the current update; its loss adds its own. */
RM_BOTH void rm_figures_begin(struct rm_update_figures *f, double loss, double samples)
{
    f->last_loss = loss;
    for (uint32_t i = 0; i < sizeof f->now_sums / sizeof *f->now_sums; i++)
        f->now_sums[i] = 0;
    f->now_samples = samples;
}

/* Restarts the sums of the report. */
RM_BOTH void rm_figures_clear(struct rm_update_figures *f)
{
    f->reports = 0;
    f->loss = f->grad_norm = f->samples = 0;
    for (uint32_t i = 0; i < sizeof f->sums / sizeof *f->sums; i++)
        f->sums[i] = 0;
}

/* Counts a finite update, and adds its numbers to the sums. */
RM_BOTH void rm_figures_add(struct rm_update_figures *f)
{
    f->made++;
    f->skipped_in_row = 0;
    f->reports++;
    f->loss += f->last_loss;
    f->grad_norm += f->last_grad_norm;
    for (uint32_t i = 0; i < sizeof f->sums / sizeof *f->sums; i++)
        f->sums[i] += f->now_sums[i];
    f->samples += f->now_samples;
}

#define RM_DEVICE_SCALE_FIRST    65536.0f
#define RM_DEVICE_SCALE_MOST     16777216.0f
#define RM_DEVICE_SCALE_PATIENCE 2000u

struct rm_device_ops {
    /* Makes a mapping of the host readable by the device. *device is its address there. Returns 0,
     * or -ENOTSUP with the reason if this host or mapping cannot be registered. */
    int (*register_host)(struct rm_backend *b, void *at, size_t bytes, bool read_only,
                         void **device, struct rm_error *error);
    void (*unregister_host)(struct rm_backend *b, void *at);

    int (*capture)(struct rm_backend *b, struct rm_error *error);
    int (*captured)(struct rm_backend *b, struct rm_device_graph **graph, struct rm_error *error);
    /* Prepares the graph for launch(); no capture of this thread may be open, on any device. */
    int (*instantiate)(struct rm_backend *b, struct rm_device_graph *graph, struct rm_error *error);
    void (*launch)(struct rm_backend *b, struct rm_device_graph *graph);
    void (*graph_destroy)(struct rm_backend *b, struct rm_device_graph *graph);

    /* The size that the last failed allocation requested, and the free memory; "" if none
     * failed. */
    const char *(*shortage)(struct rm_backend *b);
    void (*counts)(struct rm_backend *b, struct rm_device_counts *counts);

    const struct rm_value_ops *values;
    const struct rm_sequence_ops *sequences;
    const struct rm_soft_ops *soft;
    const struct rm_policy_ops *policies;
    const struct rm_device_optimizer_ops *optimizer;
    const struct rm_device_feed_ops *feed;
    const struct rm_device_world_ops *worlds;
    const struct rm_device_collective_ops *collective;
};

#endif
