/* quarantine: GPUs whose errors cost learners their process, by UUID. One that did so
 * learner.device_faults times is put on the board, where learners look before they choose: it is
 * not used for the rest of the run. One thread, the daemon's. */
#ifndef RM_DAEMON_QUARANTINE_H
#define RM_DAEMON_QUARANTINE_H

#include "shm/board.h"

#include <stdbool.h>
#include <stdint.h>

struct rm_quarantine {
    struct {
        char uuid[RM_DEVICE_NAME_MAX];
        uint32_t faults;
    } device[RM_BOARD_QUARANTINED];
    uint32_t count;
};

/* A learner on this device ended with RM_EXIT_CUDA; "" and "cpu" are none. At `most` faults the
 * device goes onto the board; true just then. Returns its faults in *faults, 0 for none. */
bool rm_quarantine_fault(struct rm_quarantine *quarantine, struct rm_board_run *run,
                         const char *uuid, uint32_t most, uint32_t *faults);

#endif
