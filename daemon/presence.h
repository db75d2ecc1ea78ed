/* presence: how long the daemon was away when it should have been there. Before it waits the loop
 * notes when it will be back at the latest; when it comes back later than that, by more than a busy
 * host explains, or takes so long over a turn, it was stopped, frozen, or on a host that slept. */
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

/* Has `away` called whenever it was. The handles do not keep the loop alive and are closed with the
 * others; *presence must outlive it. */
void rm_presence_open(struct rm_presence *presence, uv_loop_t *loop,
                      void (*away)(void *user, uint64_t away_ns, uint64_t now_ns), void *user);

/* For callbacks that check deadlines: they may be the first to run after an absence. */
void rm_presence_note(struct rm_presence *presence);

#endif
