/* rm_error: an error as a value. Functions return 0 or a negative errno and leave a message that
 * names the object, the value and what would be right. Callers may put context before it.
 * Owned by the caller, usually on its stack; never shared between threads. */
#ifndef RM_SHM_BASE_ERROR_H
#define RM_SHM_BASE_ERROR_H

#include <stdarg.h>

#define RM_ERROR_TEXT 1024

struct rm_error {
    char text[RM_ERROR_TEXT]; /* NUL-terminated, possibly truncated; "" when there was no error */
};

/* Replaces the message. Returns `code` (a negative errno), so that `return rm_fail(...)` reads
 * well. `error` may be NULL: then only the code is passed on. */
int rm_fail(struct rm_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the message that is there. Returns `code`. */
int rm_fail_within(struct rm_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
