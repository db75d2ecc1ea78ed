/* Workers that only pretend: they attach to the board, count steps and updates at their own pace,
 * and misbehave on request. A test program becomes one when it is started under a worker's name, so
 * that the daemon can be tested with nothing else than itself.
 *
 * RM_FAKE in the environment is a list, separated by commas, of how workers behave:
 *   ROLE:hang       busy without a heartbeat
 *   ROLE:exit=N     exits with N before doing anything
 *   ROLE:never      exits with 125 and a reason on the board
 *   ROLE:deaf       ignores SIGTERM and the stop request
 *   evaluator:short the first evaluation is of one episode, whatever was asked for
 *   ROLE:once       misbehaves only in its first generation; may stand beside the above
 * with ROLE one of actor, learner, evaluator. */
#ifndef RM_TESTS_SUPPORT_FAKE_WORKER_H
#define RM_TESTS_SUPPORT_FAKE_WORKER_H

/* Returns the exit code if this program was started as a worker, else -1. */
int rm_test_fake_worker(int argc, char **argv);

#endif
