/* text_file: the texts that worlds are made from - knowledge bases, levels - read whole while a
 * world is created, and how messages name them. Internal to actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_TEXT_FILE_H
#define RM_ACTOR_WORLDS_BUILTIN_TEXT_FILE_H

#include <stddef.h>

enum { RM_TEXT_NAME = 164 }; /* bytes of a name in messages */

/* A path as messages show it: its end, if it is long. */
void rm_text_file_name(const char *path, char name[RM_TEXT_NAME]);

/* Reads a regular file of at most `most` bytes. *text is the caller's to free, ends with a NUL and
 * is not set by an error. 0, or a negative errno with a message; -EILSEQ: it has a NUL byte. */
int rm_text_file_read(const char *path, size_t most, char **text, size_t *size, char *error,
                      size_t error_size);

#endif
