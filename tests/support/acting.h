/* Weights for tests of acting: published without a learner. */
#ifndef RM_TESTS_SUPPORT_ACTING_H
#define RM_TESTS_SUPPORT_ACTING_H

#include "shm/session/session.h"
#include "learner/net/net.h"

/* The policy's network, compiled; NULL with a message on stderr. */
struct rm_net *rm_test_net(const struct rm_experiment *experiment,
                           const struct rm_policy_plan *policy);

/* The tensor whose name ends in `suffix`, the last of them; fails the test when there is none. */
struct rm_net_tensor rm_test_tensor(const struct rm_net *net, const char *suffix);

/* Publishes freshly initialised parameters for every policy, a pure function of `seed`. */
void rm_test_publish_random(struct rm_session *session, uint64_t seed, uint64_t updates);

/* Publishes parameters for `policy` under which `action` is the best in every state. */
void rm_test_publish_action(struct rm_session *session, uint32_t policy, uint32_t action,
                            uint64_t updates, uint64_t round);

#endif
