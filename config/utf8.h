/* utf8: checks text, and makes text from other processes safe for a terminal. Any thread. */
#ifndef RM_CONFIG_UTF8_H
#define RM_CONFIG_UTF8_H

#include <stddef.h>

/* Length of the well-formed UTF-8 sequence at `text` (RFC 3629), 0 if there is none. */
size_t rm_utf8_length(const char *text, size_t left);

/* Replaces everything except printable UTF-8 and line breaks by '?': messages quote other texts and
 * cut them anywhere. */
void rm_utf8_repair(char *text);

/* The same, and replaces line breaks by ';': text of a world, a worker or a client becomes one line
 * without control characters. */
void rm_utf8_line(char *text);

#endif
