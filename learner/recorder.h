/* recorder: the duty that writes the rows of a run to disk (`record`). It reads all actors' rings
 * beside the learners, and copies rows before their writers overwrite them. Actors never wait for
 * it, but with `record.wait`: then a ring's rows are kept until they are in a chunk on disk
 * (rm_ring_recorded()).
 *
 * Rows that were overwritten before they were copied, or that could not be written, are counted on
 * the board (rows_lost of the worker) and are missing between two chunks.
 *
 * A restarted recorder goes on behind the last whole chunk on disk; one of a resumed run at the
 * row of the checkpoint, if that is before. It takes no part in rounds and checkpoints. */
#ifndef RM_LEARNER_RECORDER_H
#define RM_LEARNER_RECORDER_H

#include "shm/duty.h"
#include "shm/session/session.h"

struct rm_recorder;

/* `session` outlives the recorder and has the run's directory. */
int rm_recorder_create(struct rm_recorder **recorder, struct rm_session *session,
                       struct rm_duty *duty, struct rm_error *error);

/* At the run's end: waits until the actors have ended, at most half of supervisor.stop_grace_s,
 * then writes all that there is. */
void rm_recorder_finish(struct rm_recorder *recorder);
void rm_recorder_destroy(struct rm_recorder *recorder);

#endif
