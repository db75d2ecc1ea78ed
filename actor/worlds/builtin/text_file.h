/* text_file: reads text files of worlds - knowledge bases, levels - while a world is created, and
 * names them in messages. Internal to actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_TEXT_FILE_H
#define RM_ACTOR_WORLDS_BUILTIN_TEXT_FILE_H

#include <stddef.h>

enum { RM_TEXT_NAME = 164 }; /* bytes of a name in messages */

/* Shortens a path for messages: only the end of a long path. */
void rm_text_file_name(const char *path, char name[RM_TEXT_NAME]);

/* Reads a regular file of at most `most` bytes. *text ends with a NUL; the caller frees it. Returns
 * 0, or a negative errno with a message and *text unchanged; -EILSEQ: the file has a NUL byte. */
int rm_text_file_read(const char *path, size_t most, char **text, size_t *size, char *error,
                      size_t error_size);

#endif
