/* record: captures a staged update for each slot of the staging, for one trainer or for all
 * replicas of a policy. Before that the update runs once to warm up, because libraries choose and
 * load kernels and connect devices in their first run, which cannot be captured. The warm-up has
 * `stop` set (rm_update_figures), so it trains nothing.
 *
 * An update is put on the device in two halves. Between the halves, replicas average their
 * results. */
#ifndef RM_LEARNER_ALGO_RECORD_H
#define RM_LEARNER_ALGO_RECORD_H

#include "learner/algo/updates.h"
#include "learner/backend/device_collective.h"

/* `graphs` false: only warms up. Several trainers must be of one kind, on joined backends. */
int rm_record(struct rm_updates *const *all, uint32_t count, bool graphs, struct rm_error *error);

/* Records a graph for each trainer while put() puts part `part` on all of them. The caller destroys
 * the graphs, after a failure too; a graph that was not made is NULL. */
typedef void rm_record_put(struct rm_updates *const *all, uint32_t count, uint32_t part);
int rm_record_graph(struct rm_updates *const *all, uint32_t count, rm_record_put *put,
                    uint32_t part, struct rm_device_graph **graph, struct rm_error *error);

/* If there are several trainers: put() puts the same sums on each of them, by rm_record_sum(),
 * which adds up n numbers at `at`. */
void rm_record_joined(struct rm_updates *const *all, uint32_t count,
                      void (*put)(struct rm_updates *updates));
void rm_record_sum(struct rm_updates *updates, void *at, size_t n, enum rm_device_number kind);

/* Averages the results of the first half over the trainers, if there are several. */
void rm_record_mean(struct rm_updates *const *all, uint32_t count);

#endif
