/* Shared by the files of session. */
#ifndef RM_SHM_SESSION_SESSION_PRIVATE_H
#define RM_SHM_SESSION_SESSION_PRIVATE_H

#include "shm/session/session.h"

/* An empty session of the right shape: nothing mapped, no descriptor. */
int rm_session_shape(struct rm_session *session, const struct rm_experiment *experiment,
                     const struct rm_plan *plan, struct rm_error *error);

#endif
