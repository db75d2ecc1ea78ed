/* format: numbers as text for people. Each function returns its text by value, so that calls fit
 * into an argument list. NAN (unknown) gives "-". */
#ifndef RM_DAEMON_FORMAT_H
#define RM_DAEMON_FORMAT_H

#include <stddef.h>

#define RM_FORMAT_MAX 32
struct rm_text {
    char s[RM_FORMAT_MAX];
};

struct rm_text rm_format_count(double value);  /* 950, 12.3k, 4.57M */
struct rm_text rm_format_number(double value); /* four significant digits */
struct rm_text
rm_format_measure(double value);              /* the same with trailing zeros, so that rows align */
struct rm_text rm_format_bytes(double value); /* 512 B, 1.5 MiB */
struct rm_text rm_format_duration(double value); /* seconds: 0:42, 12:03, 3:04:05, 2d 03:04 */
struct rm_text rm_format_percent(double share);  /* 0..1: 12.3% */

#endif
