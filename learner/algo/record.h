/* record: staged updates - one trainer's, or those of several that are one agent's - run once to
 * warm up and then captured, once for each slot of their staging. Libraries choose kernels, load
 * them and connect devices in the first run, which cannot be captured; what it changes is put back
 * to the bit.
 *
 * An update is put on the device in two halves, between which replicas average. */
#ifndef RM_LEARNER_ALGO_RECORD_H
#define RM_LEARNER_ALGO_RECORD_H

#include "learner/algo/updates.h"

/* `graphs` false: warms up only. The trainers are of one kind, on backends that are joined where
 * there are several. */
int rm_record(struct rm_updates *const *all, uint32_t count, bool graphs, struct rm_error *error);

/* Graphs of the same, one for each of the trainers, recorded while put() puts part `part` on all of
 * them; NULL where there is none. On failure as well, what there is is the caller's to destroy. */
typedef void rm_record_put(struct rm_updates *const *all, uint32_t count, uint32_t part);
int rm_record_graph(struct rm_updates *const *all, uint32_t count, rm_record_put *put,
                    uint32_t part, struct rm_device_graph **graph, struct rm_error *error);

/* The averages of the first halves, where there are several. */
void rm_record_mean(struct rm_updates *const *all, uint32_t count);

#endif
