/* recorder: the duty that writes the rows of a run to disk (`record`). The recorder reads all
 * actors' rings, as learners do, and copies rows before their writers overwrite them. Actors do not
 * wait for the recorder unless `record.wait` is set: then a ring keeps its rows until they are in a
 * chunk on disk (rm_ring_recorded()).
 *
 * Rows that were overwritten before they were copied, or that could not be written, are missing in
 * the recording. The board counts them (lost_rows of the worker).
 *
 * A restarted recorder continues after the last complete chunk on disk. In a resumed run it
 * continues at the checkpoint's row if that row is earlier. The recorder takes no part in rounds
 * and checkpoints. */
#ifndef RM_LEARNER_RECORDER_H
#define RM_LEARNER_RECORDER_H

#include "shm/duty.h"
#include "shm/session/session.h"

struct rm_recorder;

/* `session` outlives the recorder and has the run directory. */
int rm_recorder_create(struct rm_recorder **recorder, struct rm_session *session,
                       struct rm_duty *duty, struct rm_error *error);

/* Call at the run's end. Waits until the actors have ended, at most half of
 * supervisor.stop_grace_s, then writes all remaining rows. */
void rm_recorder_finish(struct rm_recorder *recorder);
void rm_recorder_destroy(struct rm_recorder *recorder);

#endif
