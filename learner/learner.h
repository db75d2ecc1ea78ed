/* learner: the duty that trains one policy. A turn (do_work) is one optimizer step: sample a batch
 * from the policy's rings, update, publish when due. Creating a learner publishes version 1, or
 * continues with the version that a predecessor published. */
#ifndef RM_LEARNER_LEARNER_H
#define RM_LEARNER_LEARNER_H

#include "shm/session/session.h"
#include "shm/duty.h"

struct rm_learner;

/* Returned by rm_learner_create() if a device failed and only a new process can recover
 * (RM_EXIT_CUDA). Not an errno. */
#define RM_LEARNER_DEVICE_FAILED (-0x7ffe)

/* The exit code (enum rm_exit) of a process whose learner could not be created; `rc`: result of
 * rm_learner_create(). */
int rm_learner_exit(int rc, bool resumed);

/* Did do_work() or rm_learner_save() fail because of such a device error? Do not destroy such a
 * learner; end the process. */
bool rm_learner_device_failed(const struct rm_learner *learner);

/* run_directory: folder of checkpoints and the final policy; "" writes no files. */
int rm_learner_create(struct rm_learner **learner, struct rm_session *session, uint32_t policy,
                      const char *run_directory, struct rm_duty *duty, struct rm_error *error);

/* Writes the final policy file, unless the file is up to date. A learner that reaches the end of
 * the run writes the file itself; call this for a learner that is stopped earlier. */
int rm_learner_save(struct rm_learner *learner, struct rm_error *error);

void rm_learner_destroy(struct rm_learner *learner);

/* The learner's state in a checkpoint (shm/base/state.h). Call between two turns, when the learner
 * is settled. rm_learner_create() loads it in a resumed session. */
struct rm_state;
bool rm_learner_settled(const struct rm_learner *learner);
void rm_learner_state(struct rm_learner *learner, struct rm_state *state);

#endif
