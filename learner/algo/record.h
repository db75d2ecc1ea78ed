/* record: runs a staged update once to warm up, then captures it for each slot of the staging; of
 * one trainer, or of all replicas of an agent. In the first run libraries choose kernels, load them
 * and connect devices, which cannot be captured. The first run is stopped (rm_update_figures), so
 * it trains nothing.
 *
 * An update is put on the device in two halves, between which replicas average. */
#ifndef RM_LEARNER_ALGO_RECORD_H
#define RM_LEARNER_ALGO_RECORD_H

#include "learner/algo/updates.h"

/* `graphs` false: only warms up. Several trainers are of one kind, on joined backends. */
int rm_record(struct rm_updates *const *all, uint32_t count, bool graphs, struct rm_error *error);

/* Records a graph for each trainer while put() puts part `part` on all of them. The caller destroys
 * the graphs, after a failure too; a graph that was not made is NULL. */
typedef void rm_record_put(struct rm_updates *const *all, uint32_t count, uint32_t part);
int rm_record_graph(struct rm_updates *const *all, uint32_t count, rm_record_put *put,
                    uint32_t part, struct rm_device_graph **graph, struct rm_error *error);

/* Averages the results of the first half over the trainers, if there are several. */
void rm_record_mean(struct rm_updates *const *all, uint32_t count);

#endif
