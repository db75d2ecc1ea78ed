/* running: one running experiment. The state of ringmasterd in one struct, for the files that run
 * it: daemon.c, which makes and destroys it, and those below, whose functions this header declares.
 * All others have structs of their own. Used by the event loop's thread only. */
#ifndef RM_DAEMON_RUNNING_H
#define RM_DAEMON_RUNNING_H

#include "config/config.h"
#include "shm/session/session.h"
#include "daemon/presence.h"
#include "daemon/checkpoint.h"
#include "daemon/console.h"
#include "daemon/control.h"
#include "daemon/fdstore.h"
#include "daemon/groups.h"
#include "daemon/inspect.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/notify.h"
#include "daemon/place.h"
#include "daemon/policies.h"
#include "daemon/printed.h"
#include "daemon/progress.h"
#include "daemon/quarantine.h"
#include "daemon/reader.h"
#include "daemon/resume.h"
#include "daemon/run_directory.h"
#include "daemon/run_lock.h"
#include "daemon/settings.h"
#include "daemon/stall.h"
#include "daemon/standstill.h"
#include "daemon/supervisor.h"
#include "daemon/sweeper.h"
#include "daemon/unwritten.h"
#include "daemon/world_facts.h"
#include "daemon/writer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

/* The session of a killed daemon. */
struct rm_adoption {
    bool done;          /* the session was taken over */
    uint64_t left_rows; /* rows of replay by the killed daemon's last count */
    uint64_t rows;      /* rows found, before this daemon's workers started */
    uint64_t step;
    char refused[512]; /* why it could not be taken over, "" = there was none */
};

/* What lifecycle.c remembers of the run. No other file uses it. */
struct rm_course {
    struct rm_standstill standstill;
    uint64_t stage_seen; /* the board's word */
    uint64_t evaluations_seen;
    uint64_t final_before; /* evaluations finished when the final one was requested */
    uint64_t notified_ns;  /* when the last status was sent to the service manager */
    /* Per worker: since when it waits although it was woken; 0: it does not. */
    uint64_t woken_ns[RM_BOARD_WORKERS];
};

/* What signals.c remembers. No other file uses it. */
struct rm_signals {
    uv_signal_t handle[4];
    uint32_t interrupts;     /* SIGINT and SIGTERM so far, without the preempting one */
    uint64_t interrupted_ns; /* the latest of them; 0 = none */
    int preempted;           /* the signal after which a job waits to be killed; 0 = none */
};

struct rm_daemon_options; /* daemon.h */

struct rm_daemon {
    const struct rm_daemon_options *options;
    struct rm_session session; /* its experiment's hot keys are kept current */
    struct rm_world_facts world;
    struct rm_place place;
    struct rm_run_directory directory;
    struct rm_run_lock run_lock; /* of that directory, or of the one that is being checked */
    struct rm_log log;
    struct rm_writer files;  /* of the run directory, except checkpoints */
    struct rm_writer echoes; /* standard output and error, or the journal */
    struct rm_unwritten unwritten;
    struct rm_printer printer;
    struct rm_supervisor supervisor;
    struct rm_quarantine quarantine;
    struct rm_metrics metrics;
    struct rm_reader reader;
    struct rm_checkpointer checkpoint;
    struct rm_settings settings;
    struct rm_resumed resumed;   /* the checkpoint that the run resumes from */
    struct rm_adoption adoption; /* the session of a killed daemon */
    struct rm_console console;
    struct rm_control *control;
    struct rm_policies policies;
    struct rm_sweeper sweeper;
    struct rm_groups groups;
    struct rm_inspector inspector;
    char libexec[RM_PATH_TEXT_MAX]; /* where the workers' executables are */

    uv_loop_t loop;
    uv_timer_t tick, due, sample;
    uv_poll_t bell; /* rung by workers */
    struct rm_signals signals;
    struct rm_stall stall;       /* duration of the loop's turns */
    struct rm_presence presence; /* absences of the daemon */

    struct rm_progress progress;
    struct rm_course course;
    bool finished; /* the budget is spent and all is done */
    bool failed;
    char failure[512]; /* why */
    bool lost;         /* another daemon has the run directory */
};

/* --- open_session.c -------------------------------------------------------------------------- */

/* Takes over the session that the service manager kept, if it matches; otherwise creates one. */
int rm_daemon_open_session(struct rm_daemon *daemon, const struct rm_experiment *experiment,
                           const struct rm_plan *plan, struct rm_error *error);
/* Logs what was resumed or taken over, and gives the session to the service manager to keep. */
void rm_daemon_keep_session(struct rm_daemon *daemon);

/* --- lifecycle.c: events and transitions ----------------------------------------------------- */

extern const struct rm_supervisor_ops rm_daemon_supervisor_ops;
extern const struct rm_settings_ops rm_daemon_settings_ops;
void rm_daemon_start_workers(struct rm_daemon *daemon);
void rm_daemon_away(void *daemon, uint64_t away_ns, uint64_t now_ns); /* for presence.h */
/* An evaluation or a worker's share is finished, or a row of metrics is due. */
void rm_daemon_rung(struct rm_daemon *daemon);
/* Writes a row of metrics, with or without the numbers of an evaluation that has just finished. */
void rm_daemon_write_row(struct rm_daemon *daemon, bool evaluation);
void rm_daemon_stop(struct rm_daemon *daemon, const char *why);
/* The same after a checkpoint is made (checkpoint.h). */
void rm_daemon_stop_after_checkpoint(struct rm_daemon *daemon, const char *why);
void rm_daemon_open_checkpoints(struct rm_daemon *daemon);
void rm_daemon_pause(struct rm_daemon *daemon, bool pause);
void rm_daemon_request_evaluation(struct rm_daemon *daemon, uint32_t episodes);
/* Sets timers for the current state: none when paused without clients. `daemon` is the daemon. */
void rm_daemon_arm(void *daemon);
/* Answers a client later; takes `reply`, which may be NULL. `daemon` is the daemon. */
void rm_daemon_answer(void *daemon, uint64_t client, enum rm_refusal refusal, json_t *reply,
                      const struct rm_error *error);

/* --- spawn.c: processes ---------------------------------------------------------------------- */

/* For struct rm_supervisor_ops; `user` is the daemon. */
int rm_daemon_spawn(void *user, uint32_t index, uint64_t generation, struct rm_error *error);
void rm_daemon_signal(void *user, uint32_t index, int pid, int signal);

/* --- signals.c ------------------------------------------------------------------------------- */

int rm_daemon_take_signals(struct rm_daemon *daemon, struct rm_error *error);
/* The exit code of a run that signals ended, with a message; RM_DAEMON_OK: they did not. */
int rm_daemon_interrupted(const struct rm_daemon *daemon, struct rm_error *error);

/* --- status.c -------------------------------------------------------------------------------- */

/* The whole state as one object (see status.c for its members). */
json_t *rm_daemon_status(struct rm_daemon *daemon);

/* An agent's figures per episode, as in status. */
json_t *rm_daemon_figures(const struct rm_daemon *daemon, uint32_t agent, bool evaluated);
json_t *rm_daemon_metrics(struct rm_daemon *daemon, bool describe);
/* Where these numbers are in the memory of the board. */
json_t *rm_daemon_counters(const struct rm_daemon *daemon);

/* --- commands.c ------------------------------------------------------------------------------ */

extern const struct rm_command rm_commands[];
extern const size_t rm_command_count;
extern const struct rm_control_ops rm_daemon_control_ops;

#endif
