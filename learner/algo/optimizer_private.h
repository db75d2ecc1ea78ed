/* Private to the optimizer's files. */
#ifndef RM_LEARNER_ALGO_OPTIMIZER_PRIVATE_H
#define RM_LEARNER_ALGO_OPTIMIZER_PRIVATE_H

#include "learner/algo/muon.h"
#include "learner/algo/optimizer.h"
#include "learner/backend/device_optimizer.h"

/* A range of the arena with one rule: neighbouring tensors, or for Muon one matrix. With
 * optimizer.sparse a table is a range, cut into pieces: its rows, or where they are longer than
 * RM_DEVICE_CHUNK, parts of them. */
struct rm_optimizer_range {
    size_t at, n;
    uint32_t rows, columns; /* shape of a single matrix; else 0 */
    uint32_t piece;         /* floats of a piece; 0: it is moved as a whole */
    uint32_t first_piece;   /* of this range in `touched` */
    bool decayed;
    uint32_t group; /* clipped by its norm */
};

/* Tables and scratch in device memory. */
struct rm_optimizer_device {
    struct rm_device_rule rule;
    struct rm_device_chunk *chunks;
    uint32_t chunk_count;
    double *partials;        /* (chunk_count) */
    double *matrix_partials; /* (RM_DEVICE_PARTIALS + 1) */
};

struct rm_optimizer {
    const struct rm_experiment *experiment;
    const struct rm_optimizer_method *kind;
    struct rm_backend *backend;
    double learning_rate, grad_clip;
    double squares[RM_OPTIMIZER_GROUPS]; /* of the gradient, by the last rm_optimizer_norm() */
    bool by_group;                       /* each group is clipped by its own norm */
    size_t count;                        /* floats of the arena */
    float *m, *v;                        /* (count); NULL: the kind has none */
    struct rm_optimizer_range *ranges;
    uint32_t range_count;
    bool *touched; /* [pieces]: does the piece have a gradient, in the last rm_optimizer_norm()?
                      NULL: there are no pieces */
    const struct rm_net_workspace *followed; /* NULL: none */
    const struct rm_touched *listed;         /* rows of the tables from `listed_at` on, in the last
                                                rm_optimizer_norm(); NULL: not known */
    size_t listed_at;
    struct rm_muon muon;
    struct rm_update_figures *figures; /* the backend's memory */
    void (*put)(struct rm_optimizer *o,
                const struct rm_optimizer_put *put); /* NULL: the step is made at once */
    struct rm_optimizer_device device;               /* zeros on the CPU */
};

/* optimizer_device.c; call after the ranges, moments and Muon's buffers are made. On a device sets
 * `put`; else they do nothing. */
int rm_optimizer_device_create(struct rm_optimizer *o, struct rm_error *error);
void rm_optimizer_device_destroy(struct rm_optimizer *o);

#endif
