/* trial: short runs of an experiment that show how fast it is. They are made in a folder of their
 * own, one after the other, and nothing is left of them. */
#ifndef RM_DAEMON_CTL_TRIAL_H
#define RM_DAEMON_CTL_TRIAL_H

#include "daemon/ctl/command.h"
#include "daemon/ctl/explain.h"

#include <limits.h>

#define RM_TRIAL_SETTINGS 16

struct rm_trials {
    const struct rm_ctl_arguments *given; /* their FILE and what it gives by --set */
    char folder[64];                      /* of all of them, below TMPDIR */
    char checkpoint[80];                  /* copy of a run's newest, in `folder`; "": none */
    uint64_t number;                      /* its number */
    bool resume; /* trials resume from it; else they start with its weights, if there is one */
};

/* Makes the folder. The caller watches for interrupts (interrupt.h), so that it can remove it.
 * Returns 0 or, after a message, an enum rm_ctl_exit value. */
int rm_trials_begin(struct rm_trials *trials);

/* Copies the newest checkpoint of a run. Returns like rm_trials_begin(). */
int rm_trials_copy(struct rm_trials *trials, const char *run_directory);

/* Runs for so many seconds with these "KEY=VALUE" settings (at most RM_TRIAL_SETTINGS), and longer
 * until its rows have the rate. `x`, which may be NULL, gets the counters, for the caller to free.
 * Returns agent steps/s; NAN: it did not train, or it was interrupted. */
double rm_trial(const struct rm_trials *trials, char *const *setting, size_t settings,
                double seconds, struct rm_explained *x);

/* After NAN: the last line that the trial printed. */
void rm_trial_said(const struct rm_trials *trials, char *line, size_t size);

/* Removes everything. */
void rm_trials_end(struct rm_trials *trials);

#endif
