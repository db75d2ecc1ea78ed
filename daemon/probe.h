/* probe: a world of a shared object is tried in a process of its own, confined as an actor is,
 * before a program that is to live on loads it. */
#ifndef RM_DAEMON_PROBE_H
#define RM_DAEMON_PROBE_H

#include "config/experiment.h"
#include "shm/base/error.h"

#define RM_PROBE_PATIENCE_S 60.0 /* for a world to be made */

/* Does nothing for built-in worlds. 0: a process made the world, or the world refused in words that
 * it will use again. -EPROTO: it crashed, hung for `patience_s`, or ended the process; `error` says
 * in which call. Other errors: it could not be tried. */
int rm_probe_world(const struct rm_experiment *experiment, double patience_s,
                   struct rm_error *error);

#endif
