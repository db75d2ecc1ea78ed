/* quarantine: GPUs whose errors have ended learners' processes, by UUID. After
 * learner.device_faults such errors the GPU is written to the board. Learners read the board before
 * they choose a GPU, so that GPU is not used for the rest of the run. For the daemon's thread. */
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

/* Counts that a learner on this device ended with RM_EXIT_CUDA; "" and "cpu" are not counted. At
 * `most` faults it writes the device to the board and returns true, otherwise false. *faults: the
 * device's faults so far, 0 if it is not counted. */
bool rm_quarantine_fault(struct rm_quarantine *quarantine, struct rm_board_run *run,
                         const char *uuid, uint32_t most, uint32_t *faults);

#endif
