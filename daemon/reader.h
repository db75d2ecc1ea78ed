/* reader: runs the command of metrics.exec and writes every row of metrics to the command's
 * standard input. A row is one line of JSON: an object with the column names of metrics.csv,
 * without columns that have no value in this row. The command's output goes to the journal.
 *
 * The event loop never waits for the command. Rows that the command does not read in time are
 * dropped and counted, and so are all rows after its end. The command is confined, and the daemon
 * kills it at the end of the run. Only the event loop's thread may call these functions. */
#ifndef RM_DAEMON_READER_H
#define RM_DAEMON_READER_H

#include "config/experiment.h"
#include "daemon/child.h"
#include "daemon/printed.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define RM_READER_QUEUE 1048576 /* most bytes of rows that are queued or in the pipe */

struct rm_reader {
    bool started;  /* metrics.exec names a command */
    bool running;  /* the command has not ended */
    bool open;     /* the pipe to the command is open */
    int handles;   /* number of libuv handles that are not closed yet */
    uint64_t sent; /* rows that were queued */
    uint64_t lost; /* rows that were dropped, or not read before the command's end */
    uint64_t logged_lost, logged_ns;
    uv_pipe_t pipe;
    struct rm_child child;
    struct rm_printed printed;
    struct rm_log *log;
    char program[RM_PATH_TEXT_MAX];
};

/* Checks that the first word of metrics.exec is a program. Returns 0, also without a command; or
 * -ENOENT with a message. */
int rm_reader_check(const struct rm_experiment *experiment, struct rm_error *error);

/* Starts the command, if there is one, in the folder reader/ of the run directory. After an error
 * no command runs; the message gives the reason. */
int rm_reader_start(struct rm_reader *reader, const struct rm_experiment *experiment,
                    const char *run_directory, struct rm_printer *printer, struct rm_error *error);

/* Sends a row. Takes over the reference to `row`. */
void rm_reader_row(struct rm_reader *reader, json_t *row);

/* Closes the command's input and runs the loop until the command ends, at most `grace_ns`
 * nanoseconds. Then kills the command and the processes that it has started. Call when no other
 * part of the daemon needs the loop. */
void rm_reader_end(struct rm_reader *reader, uv_loop_t *loop, uint64_t grace_ns);

/* The main function of the child process: confines the process and executes the command.
 * `arguments` are the command's folder, the daemon's process id, the run directory, and the words
 * of the command. Returns only if the command cannot be executed, with an exit code. */
int rm_reader_main(char **arguments);

#endif
