/* tool: a program of others, found on the PATH: what makes films, what converts pictures. */
#ifndef RM_DAEMON_CTL_TOOL_H
#define RM_DAEMON_CTL_TOOL_H

#include <stdbool.h>
#include <sys/types.h>

/* Starts it with `input` as its standard input (-1: none). What it prints on standard output is
 * dropped, and with `quiet` what it prints on standard error. -1: it could not be started. */
pid_t rm_tool_start(const char *const *arguments, int input, bool quiet);

/* Waits for its end. Its exit code, or -1: it was killed, or `pid` is -1. */
int rm_tool_wait(pid_t pid);

/* Starts it without input, quietly, and waits. */
int rm_tool_call(const char *const *arguments);

#endif
