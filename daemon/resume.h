/* resume: resumes the latest run of that name from a checkpoint, in its run directory. Takes the
 * newest complete checkpoint; damaged ones are skipped with a warning. A column of the table of
 * keys (config/schema.h) says which keys may differ from the checkpoint's. */
#ifndef RM_DAEMON_RESUME_H
#define RM_DAEMON_RESUME_H

#include "config/experiment.h"
#include "daemon/run_directory.h"
#include "shm/base/error.h"
#include "shm/session/session.h"

enum rm_resume {
    RM_RESUME_NEVER = 0, /* starts a new run */
    RM_RESUME_MAY,       /* resumes a run if there is one */
    RM_RESUME_MUST,      /* resumes a run, and fails if there is none */
};

/* The checkpoint that a run resumes from. The caller sets the first three members. */
struct rm_resumed {
    enum rm_resume when;
    struct rm_run_directory *directory;  /* of the run; set when a checkpoint is found */
    struct rm_run_lock *lock;            /* of that directory, or of the one that is checked */
    char from[RM_SESSION_DIRECTORY_MAX]; /* its folder, "" = none */
    char changes[1024];                  /* keys that differ from its, "" = none */
    bool unread;                         /* policy.from names another file, which is not read */
    uint64_t number;                     /* of that checkpoint */
    uint64_t step;                       /* where it was */
    uint64_t evaluations;                /* of a run that was over, 0 = unknown */
    char passed_over[1024]; /* why the run was not resumed, or which checkpoints were skipped */
};

/* Finds and checks a checkpoint. Sets *resumed and its directory, or changes neither: then a new
 * run is started, and `passed_over` may have the reason. Errors: -EINVAL: the configuration does
 * not match the checkpoint; -EBADMSG: all checkpoints are damaged, and the service manager kept no
 * session; -ENOENT: no checkpoint, but RM_RESUME_MUST; -ENOMEM. */
int rm_resume_find(struct rm_resumed *resumed, const struct rm_experiment *experiment,
                   struct rm_error *error);

/* Loads the shared part into a new session. Errors: those of rm_state_read() and rm_state_end(),
 * and -EPROTO if its step is not the manifest's. The caller then closes the session. */
int rm_resume_load(const struct rm_resumed *resumed, struct rm_session *session,
                   struct rm_error *error);

/* After an error `why` of rm_resume_load(): if the checkpoint is damaged, skips it and finds the
 * one before it, like rm_resume_find(); otherwise returns `why`. */
int rm_resume_go_back(struct rm_resumed *resumed, const struct rm_experiment *experiment, int why,
                      struct rm_error *error);

#endif
