/* state_file: a learner's state in two files: its arrays of floats by name in BASE.safetensors, for
 * any tool, and all other parts in BASE.state, an archive (shm/base/archive.h). */
#ifndef RM_LEARNER_STATE_FILE_H
#define RM_LEARNER_STATE_FILE_H

#include "shm/session/session.h"
#include "shm/base/state.h"

int rm_learner_state_write(const struct rm_state *state, const char *folder, uint32_t policy,
                           struct rm_error *error);

/* Adds the parts of both files. Errors: those of files; -EPROTO or -EBADMSG when damaged. */
int rm_learner_state_read(struct rm_state *state, const char *folder, uint32_t policy,
                          struct rm_error *error);

#endif
