/* device_optimizer: the second half of an update on a device: the norm, which decides whether the
 * update is made and how it is clipped, the step, and the target network's move. All input is in
 * device memory, so the operations are captured once and launched for every update.
 *
 * An update ends with norm(), then muon() for matrices that Muon moves, then step(). The losses
 * have written last_loss and now_sums to the figures before. norm() is two launches, step() is one.
 *
 * The equations are in learner/algo/optimizer.h. Sums are in double and in an order that depends on
 * the sizes alone. */
#ifndef RM_LEARNER_BACKEND_DEVICE_OPTIMIZER_H
#define RM_LEARNER_BACKEND_DEVICE_OPTIMIZER_H

#include "learner/backend/device.h"

/* A range of an arena with one rule. The chunks of an arena cover it, in order and without gaps. */
#define RM_DEVICE_CHUNK 1024u
enum rm_device_chunk_flag {
    RM_DEVICE_TRAINED = 1, /* part of the norm, and moved */
    RM_DEVICE_DECAYED = 2, /* by weight decay */
    RM_DEVICE_APART = 4,   /* moved by muon(): step() only moves the target */
    RM_DEVICE_LAZY = 8,    /* not moved where its gradient is 0 */
};
struct rm_device_chunk {
    uint64_t at; /* floats into the arena */
    uint32_t n;  /* at most RM_DEVICE_CHUNK */
    uint16_t flags;
    uint16_t group; /* clipped by the norm of the group's chunks; below rm_device_rule.groups */
};

enum rm_device_rule_kind { RM_DEVICE_ADAM = 0, RM_DEVICE_RMSPROP };

/* Numbers that do not change in a run. */
struct rm_device_rule {
    enum rm_device_rule_kind kind;
    float beta1, beta2; /* RMSProp: beta2 is alpha */
    float epsilon, weight_decay;
    float momentum;  /* RMSProp, Muon */
    uint32_t groups; /* 1 to RM_DEVICE_GROUPS: groups with norms of their own */
};

/* All pointers are to device memory. */
struct rm_device_step {
    const struct rm_device_chunk *chunks;
    uint32_t chunk_count;
    float *params;
    const float *grads;
    float *m, *v;  /* m NULL: RMSProp without momentum */
    float *target; /* NULL: no target network */
    const struct rm_update_knobs *knobs;
    struct rm_update_figures *figures;
    struct rm_update_figures *copy; /* receives the figures after norm(); NULL: not needed */
    double *partials;               /* (chunk_count) sums of squares: from norm() to step() */
};

/* One matrix of the arena that Muon moves; x is computed from its gradient and momentum. */
struct rm_device_matrix {
    uint64_t at; /* floats into the arena */
    uint32_t rows, columns;
    uint32_t group;   /* of its chunks */
    float reach;      /* factor of a step: 0.2 sqrt(max(rows, columns)) */
    float *x;         /* (rows, columns) scratch */
    double *partials; /* (RM_DEVICE_PARTIALS + 1) scratch; the last is the sum */
};
#define RM_DEVICE_PARTIALS 256u

struct rm_device_optimizer_ops {
    /* Computes the norm of the trained part of the gradient, and from it skip, scale, counts, sums
     * and bias correction, all in the figures. */
    void (*norm)(struct rm_backend *b, const struct rm_device_rule *rule,
                 const struct rm_device_step *step);
    /* Unless the update is skipped: moves trained chunks that are not apart, then the target by
     * knobs->target_tau. */
    void (*step)(struct rm_backend *b, const struct rm_device_rule *rule,
                 const struct rm_device_step *step);

    /* Muon (learner/algo/muon.h) around its iteration on x. muon_begin: momentum and Nesterov's
     * look ahead, divided by the norm, in three launches. muon_end: moves the weights along x. */
    void (*muon_begin)(struct rm_backend *b, const struct rm_device_rule *rule,
                       const struct rm_device_step *step, const struct rm_device_matrix *matrix);
    void (*muon_end)(struct rm_backend *b, const struct rm_device_rule *rule,
                     const struct rm_device_step *step, const struct rm_device_matrix *matrix);
};

#endif
