/* evidence: figures beside the model of a run's speed: how many operations products reach of those
 * that cores can compute, how many bytes the optimizer moves of those that memory can move, and
 * what waits between actors and learners. */
#ifndef RM_DAEMON_CTL_EVIDENCE_H
#define RM_DAEMON_CTL_EVIDENCE_H

#include "config/experiment.h"
#include "daemon/ctl/window.h"

#include <jansson.h>
#include <stddef.h>

/* NAN: not known. */
struct rm_evidence {
    double core_flops; /* most operations of products a second, of a core, as this run makes them */
    double bf16_speed; /* how many times as many it can do in bf16 as in float32; 0: none */
    double update_flops; /* reached in forward and backward passes of updates, by all threads */
    double update_share; /* of what the threads' cores allow */
    double update_fixed; /* part of these passes' time that does not depend on the number of rows */
    double acting_flops, acting_share; /* the same of actors, in an actor's forward passes */
    double copy_bytes;                 /* most bytes a second that a core copies in memory; NAN:
                                        * parameters fit into caches */
    double optimizer_bytes;            /* reached by the optimizer's passes, read and written */
    bool memory_bound;                 /* memory takes most of the optimizer's time, and the
                                        * optimizer most of an update's */
    double due;                        /* mean of what waits between actors and learner 0: updates
                                        * that the steps so far allow, or rollouts that were not
                                        * learned from, with the one that is being filled */
    double due_min, due_max;           /* bounds of the limiter, in updates */
};

void rm_evidence_read(struct rm_evidence *evidence, const struct rm_run_window *window,
                      const struct rm_experiment *experiment, const struct rm_run_duty *duty,
                      uint32_t duties);

/* The lines of text for people; empty if nothing is known. */
#define RM_EVIDENCE_MAX 512
void rm_evidence_text(const struct rm_evidence *evidence, const struct rm_experiment *experiment,
                      char *text, size_t size);
json_t *rm_evidence_json(const struct rm_evidence *evidence);

#endif
