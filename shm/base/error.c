#include "shm/base/error.h"

#include <stdio.h>
#include <string.h>

int rm_fail(struct rm_error *error, int code, const char *format, ...)
{
    if (error) {
        /* Format into a buffer first: the arguments may point into the old message. */
        char text[RM_ERROR_TEXT];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        memcpy(error->text, text, strlen(text) + 1);
    }
    return code;
}

int rm_fail_within(struct rm_error *error, int code, const char *format, ...)
{
    if (error) {
        char text[RM_ERROR_TEXT];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);

        /* Cut the older, inner message at its end, so that the context in front survives. */
        size_t context = strlen(text);
        if (context + 2 < sizeof text) {
            memcpy(text + context, ": ", 2);
            context += 2;
            size_t inner = strnlen(error->text, sizeof error->text - 1);
            if (inner > sizeof text - 1 - context)
                inner = sizeof text - 1 - context;
            memcpy(text + context, error->text, inner);
            text[context + inner] = '\0';
        }
        memcpy(error->text, text, sizeof text);
    }
    return code;
}
