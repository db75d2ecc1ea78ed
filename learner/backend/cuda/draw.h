/* draw: shared by the draws of draw.cu and the tree of per.cu. */
#ifndef RM_LEARNER_BACKEND_CUDA_DRAW_H
#define RM_LEARNER_BACKEND_CUDA_DRAW_H

#include "learner/backend/cuda/block.h"
#include "learner/backend/cuda/tables.h"

extern "C" {
#include "learner/backend/priority_node.h"
#include "shm/base/draw.h"
}

/* Both use one block: a batch is small, and its steps depend on each other. */
#define RM_DRAW_THREADS 512u

static inline unsigned rm_draw_threads(uint32_t batch)
{
    const unsigned threads = (batch + 31) / 32 * 32;
    return threads < RM_DRAW_THREADS ? threads : RM_DRAW_THREADS;
}

static __device__ inline const struct rm_row_span *rm_draw_spans(const struct rm_device_sampler &d)
{
    return reinterpret_cast<const struct rm_row_span *>(d.turn + 1);
}

/* A lane of a source by its number among all lanes, as rm_sampler_lane(). */
struct rm_draw_lane {
    uint32_t source, lane;
};

static __device__ inline struct rm_draw_lane rm_draw_lane_of(const struct rm_device_sampler &d,
                                                             uint32_t global)
{
    const uint32_t slot = global / d.worlds, world = global % d.worlds;
    const uint32_t source = d.source_of_world[world];
    const struct rm_device_lanes &s = d.sources[source];
    return {source, slot * s.worlds + (world - s.first_world)};
}

static __device__ inline uint32_t rm_draw_global(const struct rm_device_sampler &d,
                                                 const struct rm_device_lanes &s, uint32_t lane)
{
    return lane / s.worlds * d.worlds + s.first_world + lane % s.worlds;
}

static __device__ inline bool rm_draw_look(const struct rm_device_sampler &d, uint32_t source,
                                           uint64_t distance, uint32_t lane,
                                           struct rm_transition_found *found)
{
    return rm_view_look(&d.sources[source].view, &rm_draw_spans(d)[source], distance, lane, &d.rule,
                        found);
}

/* Enters rows that have arrived since the last draw in the tree (per.cu). */
void rm_cuda_enter(struct rm_cuda *c, const struct rm_device_sampler *draw);

/* --- the tree -------------------------------------------------------------------------------- */

static __device__ inline double rm_tree_total(const struct rm_device_tree &t)
{
    return rm_priority_sum(t.level[t.levels - 1]);
}

/* Sets one thread's leaf; its sums are updated later. */
static __device__ inline void rm_tree_put(const struct rm_device_tree &t, uint64_t leaf,
                                          double value)
{
    t.level[0][leaf] = value;
    t.kept_leaves[leaf] = value;
}

/* The node over `at` of level l becomes the sum of its children; returns it. */
static __device__ inline uint64_t rm_tree_climb(const struct rm_device_tree &t, uint32_t l,
                                                uint64_t at)
{
    const uint64_t node = at / RM_PRIORITY_CHILDREN;
    t.level[l + 1][node] = rm_priority_sum(t.level[l] + node * RM_PRIORITY_CHILDREN);
    return node;
}

#endif
