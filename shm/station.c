#include "shm/station.h"

#include <assert.h>

const char *rm_station_name(enum rm_station station)
{
    static const char *const names[] = {"world",      "acting",     "sampling", "update",
                                        "publishing", "evaluation", "disk",     "host"};
    static_assert(sizeof names / sizeof names[0] == RM_STATION_COUNT, "a name for each station");
    return (unsigned)station < RM_STATION_COUNT ? names[station] : "unknown";
}

#define PHASE(name) (1u << RM_PHASE_##name)

uint32_t rm_station_phases(enum rm_station station, enum rm_role role)
{
    static const struct {
        enum rm_role role;
        uint32_t phases;
    } work[RM_STATION_WORK] = {
        [RM_STATION_WORLD] = {RM_ROLE_ACTOR, PHASE(ENVIRONMENT)},
        [RM_STATION_ACTING] = {RM_ROLE_ACTOR, PHASE(INFERENCE) | PHASE(RING) | PHASE(OTHER)},
        [RM_STATION_SAMPLING] = {RM_ROLE_LEARNER, PHASE(SAMPLING) | PHASE(UPLOAD)},
        [RM_STATION_UPDATE] = {RM_ROLE_LEARNER,
                               PHASE(FORWARD) | PHASE(BACKWARD) | PHASE(OPTIMIZER) | PHASE(OTHER)},
        [RM_STATION_PUBLISHING] = {RM_ROLE_LEARNER, PHASE(PUBLISH)},
        [RM_STATION_EVALUATION] = {RM_ROLE_EVALUATOR,
                                   UINT32_MAX & ~(PHASE(WAITING) | PHASE(CHECKPOINT))},
    };
    return (unsigned)station < RM_STATION_WORK && work[station].role == role ? work[station].phases
                                                                             : 0;
}
