#include "daemon/quarantine.h"

#include "shm/atomic.h"

#include <stdio.h>
#include <string.h>

bool rm_quarantine_fault(struct rm_quarantine *q, struct rm_board_run *run, const char *uuid,
                         uint32_t most, uint32_t *faults)
{
    uint32_t i = 0;
    *faults = 0;
    if (!uuid[0] || strcmp(uuid, "cpu") == 0)
        return false;
    while (i < q->count && strcmp(q->device[i].uuid, uuid) != 0)
        i++;
    if (i == RM_BOARD_QUARANTINED)
        return false; /* more GPUs than any host has */
    if (i == q->count) {
        snprintf(q->device[i].uuid, sizeof q->device[i].uuid, "%s", uuid);
        q->count++;
    }
    *faults = ++q->device[i].faults;
    if (*faults != most)
        return false;
    const uint32_t n = RM_PEEK(&run->quarantined);
    snprintf(run->quarantine[n], sizeof run->quarantine[n], "%s", uuid);
    RM_RAISE(&run->quarantined, n + 1);
    return true;
}
