/* A session made in the test's own process from a few lines of JSON, and duties run by hand. */
#ifndef RM_TESTS_SUPPORT_SESSION_H
#define RM_TESTS_SUPPORT_SESSION_H

#include "shm/session/session.h"
#include "shm/duty.h"

/* Parses `json`, makes the plan and the session. On failure prints the message and returns < 0. */
int rm_test_session(struct rm_session *session, const char *json);

/* Loads a shipped experiment by path, with "key=value" overrides (ends with NULL). */
int rm_test_session_file(struct rm_session *session, const char *path, const char *const *set);

/* One turn of a duty as the runner would do it; fails the message to stderr when negative. */
int rm_test_turn(struct rm_duty *duty);

#endif
