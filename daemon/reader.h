/* reader: the command of metrics.exec. It gets every row of metrics as a line of JSON on its
 * standard input: an object with the names of metrics.csv, without those that have no value. What
 * it prints is in the journal.
 *
 * The loop never waits for it: rows that it does not take in time are dropped and counted, and so
 * are all rows after its end. It is confined, and is killed with the run. The event loop's thread
 * only. */
#ifndef RM_DAEMON_READER_H
#define RM_DAEMON_READER_H

#include "config/experiment.h"
#include "daemon/child.h"
#include "daemon/printed.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define RM_READER_QUEUE 1048576 /* most bytes of rows on their way, with what the pipe holds */

struct rm_reader {
    bool started;  /* there is a command */
    bool running;  /* it has not ended */
    bool open;     /* the pipe to it */
    int handles;   /* of the loop, not closed yet */
    uint64_t sent; /* rows that were put on their way */
    uint64_t lost; /* rows that were dropped, or that it did not take before its end */
    uint64_t logged_lost, logged_ns;
    uv_pipe_t pipe;
    struct rm_child child;
    struct rm_printed printed;
    struct rm_log *log;
    char program[RM_PATH_TEXT_MAX];
};

/* Is the first word of metrics.exec a program? -ENOENT with a message. 0 without a command. */
int rm_reader_check(const struct rm_experiment *experiment, struct rm_error *error);

/* Starts the command, if there is one; its folder is reader/ of the run directory. On an error
 * there is no reader, and a message. */
int rm_reader_start(struct rm_reader *reader, const struct rm_experiment *experiment,
                    const char *run_directory, struct rm_printer *printer, struct rm_error *error);

/* Sends a row; takes it. */
void rm_reader_row(struct rm_reader *reader, json_t *row);

/* Ends its input, and waits while the loop runs until it ends too, at most `grace_ns`; then kills
 * it and what it has started. Nothing else of the daemon may need the loop then. */
void rm_reader_end(struct rm_reader *reader, uv_loop_t *loop, uint64_t grace_ns);

/* The process, before the command: `arguments` are its folder, the daemon's process id, the run
 * directory, and the command's words. Returns an exit code if it cannot become the command. */
int rm_reader_main(char **arguments);

#endif
