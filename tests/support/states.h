/* What checkpoints have, compared. Asserts; called inside a cmocka test. */
#ifndef RM_TESTS_SUPPORT_STATES_H
#define RM_TESTS_SUPPORT_STATES_H

#include "shm/base/state.h"

/* The same parts of the same bytes; the part that is not is named. */
void rm_test_states_same(const struct rm_state *a, const struct rm_state *b);

#endif
