/* learner: the duty that trains one policy. A turn (do_work) is one optimizer step: sample a batch
 * from the policy's rings, update, publish when due. Creating it publishes version 1 (or attaches
 * to what a predecessor published, and goes on from there). */
#ifndef RM_LEARNER_LEARNER_H
#define RM_LEARNER_LEARNER_H

#include "shm/session/session.h"
#include "shm/duty.h"

struct rm_learner;

/* What creating one returns when a device failed in a way that only a new process leaves behind
 * (RM_EXIT_CUDA): no errno. */
#define RM_LEARNER_DEVICE_FAILED (-0x7ffe)

/* The exit code (enum rm_exit) of a process whose learner could not be made, by what
 * rm_learner_create() returned. */
int rm_learner_exit(int rc, bool resumed);

/* Whether that happened since: what do_work() and save() failed of. Such a learner is not to be
 * destroyed, the process is to end. */
bool rm_learner_device_failed(const struct rm_learner *learner);

/* run_directory: where checkpoints and the final policy go; "" writes no files. */
int rm_learner_create(struct rm_learner **learner, struct rm_session *session, uint32_t policy,
                      const char *run_directory, struct rm_duty *duty, struct rm_error *error);

/* Writes the final policy file, unless it stands there as it would be written. A learner that comes
 * to the end of the run has done so itself; this is for one that was stopped. */
int rm_learner_save(struct rm_learner *learner, struct rm_error *error);

void rm_learner_destroy(struct rm_learner *learner);

/* Everything of the learner that a checkpoint keeps (shm/base/state.h), between two turns and when
 * it is settled. Creating a learner of a session that resumes has loaded it. */
struct rm_state;
bool rm_learner_settled(const struct rm_learner *learner);
void rm_learner_state(struct rm_learner *learner, struct rm_state *state);

#endif
