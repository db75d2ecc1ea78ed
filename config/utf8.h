/* utf8: what is text and what is not, and how text of others reaches a terminal. Any thread. */
#ifndef RM_CONFIG_UTF8_H
#define RM_CONFIG_UTF8_H

#include <stddef.h>

/* Length of the well-formed UTF-8 sequence at `text` (RFC 3629), 0 if there is none. */
size_t rm_utf8_length(const char *text, size_t left);

/* Replaces what is not printable UTF-8 by '?', but line breaks: messages quote what they were
 * given, and cut it anywhere. */
void rm_utf8_repair(char *text);

/* The same, and line breaks are replaced by ';': what a world, a worker or a client said is one
 * line, and moves no cursor. */
void rm_utf8_line(char *text);

#endif
