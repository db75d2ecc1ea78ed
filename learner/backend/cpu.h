/* cpu: shared by the files of the CPU backend. */
#ifndef RM_LEARNER_BACKEND_CPU_H
#define RM_LEARNER_BACKEND_CPU_H

#include "learner/backend/backend.h"
#include "learner/backend/direct.h"
#include "learner/backend/kernels.h"
#include "learner/backend/pool.h"

/* Chunks of the flat operations and of sums. Their size is fixed, because it is part of the order
 * of additions. All operations on an arena have the same chunks, so that a thread finds its own
 * results in its cache. */
#define RM_CPU_CHUNK    1024u
#define RM_CPU_PARTIALS 4096u

struct rm_cpu {
    struct rm_backend backend;
    const struct rm_kernels *kernels;
    struct rm_pool *pool;
    float *panels; /* weights that the gradient of an input loads */
    size_t panel_floats;
    bool bf16; /* products as in bf16.h */
    double partials[RM_CPU_PARTIALS];
};

static inline struct rm_cpu *rm_cpu_of(struct rm_backend *b)
{
    return b->self;
}

/* Runs tiles on the pool if the work is worth waking it (that depends on the shape alone), else in
 * the calling thread. `cost`: floats touched, or multiply-adds / 16. */
static inline void rm_cpu_run(struct rm_cpu *cpu, rm_pool_fn fn, void *work, uint32_t tiles,
                              double cost)
{
    if (cost > 32768.0 && tiles > 1) {
        if (cpu->backend.alive)
            cpu->backend.alive(cpu->backend.alive_user);
        rm_pool_run(cpu->pool, fn, work, tiles);
        return;
    }
    for (uint32_t i = 0; i < tiles; i++)
        fn(work, i);
}

/* rm_cpu_NAME() for each operation, with the type of the table's member: cpu_linear.c, cpu_rows.c,
 * cpu_conv.c, cpu_embedding.c, cpu_flat.c, cpu_sequence.c. */
#define RM_CPU_DECLARE(name) __typeof__(*((struct rm_backend_ops *)0)->name) rm_cpu_##name;
RM_OPERATIONS(RM_CPU_DECLARE)
RM_CPU_OPERATIONS(RM_CPU_DECLARE)
#undef RM_CPU_DECLARE

/* Sets the touched rows to zeros and forgets which they were. */
void rm_cpu_clear_touched(struct rm_cpu *cpu, struct rm_touched *touched, float *x);

#endif
