/* device_optimizer: the second half of an update on a device: whether it is made and how long its
 * step is, the step itself, and the target network that follows. All of it reads what it needs from
 * device memory, so it can be captured once and launched for ever.
 *
 * An update ends with norm(), then muon() for matrices that are moved so, then step(). The losses
 * have left last_loss and now_sums in the figures by then. norm() is two launches, step() is one.
 *
 * Equations: learner/algo/optimizer.h. Sums are in double and in an order that depends on the sizes
 * alone. */
#ifndef RM_LEARNER_BACKEND_DEVICE_OPTIMIZER_H
#define RM_LEARNER_BACKEND_DEVICE_OPTIMIZER_H

#include "learner/backend/device.h"

/* A stretch of an arena that is treated alike. Together the chunks of an arena cover it, in order
 * and without gaps. */
#define RM_DEVICE_CHUNK 1024u
enum rm_device_chunk_flag {
    RM_DEVICE_TRAINED = 1, /* part of the norm, and moved */
    RM_DEVICE_DECAYED = 2, /* by weight decay */
    RM_DEVICE_APART = 4,   /* moved by muon(): step() only lets the target follow */
};
struct rm_device_chunk {
    uint64_t at; /* floats into the arena */
    uint32_t n;  /* at most RM_DEVICE_CHUNK */
    uint16_t flags;
    uint16_t group; /* clipped by the norm of all chunks of it; below rm_device_rule.groups */
};

enum rm_device_rule_kind { RM_DEVICE_ADAM = 0, RM_DEVICE_RMSPROP };

/* Numbers that stay for a run. */
struct rm_device_rule {
    enum rm_device_rule_kind kind;
    float beta1, beta2; /* RMSProp: beta2 is alpha */
    float epsilon, weight_decay;
    float momentum;  /* RMSProp, Muon */
    uint32_t groups; /* 1 to RM_DEVICE_GROUPS: how many have norms of their own */
};

/* Everything in device memory. */
struct rm_device_step {
    const struct rm_device_chunk *chunks;
    uint32_t chunk_count;
    float *params;
    const float *grads;
    float *m, *v;  /* m NULL: RMSProp without momentum */
    float *target; /* NULL: none follows */
    const struct rm_update_knobs *knobs;
    struct rm_update_figures *figures;
    struct rm_update_figures *copy; /* of the figures after norm(); NULL: not needed */
    double *partials;               /* (chunk_count) scratch */
};

/* One matrix of the arena that Muon moves; x is made of its gradient and momentum. */
struct rm_device_matrix {
    uint64_t at; /* floats into the arena */
    uint32_t rows, columns;
    uint32_t group;   /* of its chunks */
    float reach;      /* of a step: 0.2 sqrt(max(rows, columns)) */
    float *x;         /* (rows, columns) scratch */
    double *partials; /* (RM_DEVICE_PARTIALS + 1) scratch; the last is the sum */
};
#define RM_DEVICE_PARTIALS 256u

struct rm_device_optimizer_ops {
    /* The norm of the trained part of the gradient, its judgement - skip, scale, counts, sums,
     * bias correction - all in the figures. */
    void (*norm)(struct rm_backend *b, const struct rm_device_rule *rule,
                 const struct rm_device_step *step);
    /* Moves what is trained and not apart, unless skipped; then the target follows by
     * knobs->target_tau, also unless skipped. */
    void (*step)(struct rm_backend *b, const struct rm_device_rule *rule,
                 const struct rm_device_step *step);

    /* Muon (learner/algo/muon.h), around its iteration on x: momentum and Nesterov's look ahead,
     * divided by its norm, in three launches; and the move of the weights along x. */
    void (*muon_begin)(struct rm_backend *b, const struct rm_device_rule *rule,
                       const struct rm_device_step *step, const struct rm_device_matrix *matrix);
    void (*muon_end)(struct rm_backend *b, const struct rm_device_rule *rule,
                     const struct rm_device_step *step, const struct rm_device_matrix *matrix);

    /* out[0] = sum of (x - y)^2, out[1] = sum of y^2; both in device memory, as the scratch
     * (2 * RM_DEVICE_PARTIALS). */
    void (*change)(struct rm_backend *b, const float *x, const float *y, size_t n, double *partials,
                   double out[2]);
};

#endif
