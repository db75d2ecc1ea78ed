/* station: a part of a run that can limit its speed: phases of the work of actors, learners or the
 * evaluator, or something outside of their work. */
#ifndef RM_SHM_STATION_H
#define RM_SHM_STATION_H

#include "shm/board.h"

enum rm_station {
    RM_STATION_WORLD = 0,  /* stepping worlds */
    RM_STATION_ACTING,     /* choosing actions, writing rows */
    RM_STATION_SAMPLING,   /* choosing and copying batches */
    RM_STATION_UPDATE,     /* forward, backward, optimizer */
    RM_STATION_PUBLISHING, /* weights to the actors */
    RM_STATION_EVALUATION, /* the evaluator, which uses a core during evaluations */
    RM_STATION_DISK,       /* waiting for a checkpoint of all duties' state */
    RM_STATION_HOST,       /* other processes of the host, which use its cores */
    RM_STATION_COUNT,
    RM_STATION_WORK = RM_STATION_DISK /* stations before this one are work of the run's duties */
};
const char *rm_station_name(enum rm_station station);

/* The phases that the station has of the work of this role, a bit each. */
uint32_t rm_station_phases(enum rm_station station, enum rm_role role);

#endif
