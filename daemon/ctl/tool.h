/* tool: runs an external program from the PATH, for example one that makes films or converts
 * pictures. */
#ifndef RM_DAEMON_CTL_TOOL_H
#define RM_DAEMON_CTL_TOOL_H

#include <stdbool.h>
#include <sys/types.h>

/* Starts the program with `input` as its standard input (-1: none). Discards its standard output,
 * and with `quiet` its standard error. Returns its process id, or -1 if it cannot be started. */
pid_t rm_tool_start(const char *const *arguments, int input, bool quiet);

/* Waits for the end of the program. Returns its exit code; -1 if it was killed or `pid` is -1. */
int rm_tool_wait(pid_t pid);

/* Runs a program without input, with `quiet`, and returns as rm_tool_wait() does. */
int rm_tool_call(const char *const *arguments);

#endif
