/* state_file: writes and reads a learner's state as two files. BASE.safetensors has the arrays of
 * floats, by name, and any tool can read it. BASE.state, an archive (shm/base/archive.h), has all
 * other parts. */
#ifndef RM_LEARNER_STATE_FILE_H
#define RM_LEARNER_STATE_FILE_H

#include "shm/session/session.h"
#include "shm/base/state.h"

int rm_learner_state_write(const struct rm_state *state, const char *folder, uint32_t policy,
                           struct rm_error *error);

/* Adds the parts in both files to `state`. Errors: those of reading files; -EPROTO or -EBADMSG: a
 * file is damaged. */
int rm_learner_state_read(struct rm_state *state, const char *folder, uint32_t policy,
                          struct rm_error *error);

#endif
