/* presence: detects that the daemon did not run for a while: it was stopped, frozen, or its host
 * slept. Before each wait the loop records the latest time at which it will run again. The daemon
 * was away if the loop runs later than that by more than a busy host explains, or if a turn takes
 * that long. */
#ifndef RM_DAEMON_PRESENCE_H
#define RM_DAEMON_PRESENCE_H

#include <stdint.h>
#include <uv.h>

struct rm_presence {
    uv_prepare_t before;
    uv_check_t after;
    uint64_t expected_ns; /* when the loop is back at the latest; 0 = unknown */
    void (*away)(void *user, uint64_t away_ns, uint64_t now_ns);
    void *user;
};

/* Calls `away` after each absence. The handles do not keep the loop alive and are closed with the
 * others; *presence must outlive the loop. */
void rm_presence_open(struct rm_presence *presence, uv_loop_t *loop,
                      void (*away)(void *user, uint64_t away_ns, uint64_t now_ns), void *user);

/* For callbacks that check deadlines: they may be the first to run after an absence. */
void rm_presence_note(struct rm_presence *presence);

#endif
