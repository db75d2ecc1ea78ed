/* source: the source of a configuration: the text of a file and the overrides of a command line.
 * Scanning checks the JSON syntax with plain messages and records the position of every key and
 * value; jansson, which builds the values, reports no positions. The text belongs to the caller. */
#ifndef RM_CONFIG_SOURCE_H
#define RM_CONFIG_SOURCE_H

#include "config/utf8.h"
#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RM_SOURCE_BYTES_MAX (256 * 1024) /* of the text */
#define RM_SOURCE_DEPTH_MAX 16           /* objects and lists within one another */
#define RM_SOURCE_KEYS_MAX  256          /* keys of one object */
#define RM_SOURCE_KEY_BYTES 64           /* of one key, as written */

/* Lines and columns count from 1, columns in characters. */
struct rm_text_place {
    uint32_t line, column;
};

/* A value of the text: an object's member or a list's element. */
struct rm_mark {
    int parent;         /* mark of the object or list it is in, -1 = the whole file */
    int before;         /* the member before it in the same object, -1 = none */
    uint32_t key_at;    /* members: where the key's characters begin in the text */
    uint32_t key_bytes; /* members: the key's length */
    uint32_t index;     /* elements: place in the list */
    bool element;       /* of a list, else a member of an object */
    struct rm_text_place key, value;
};

struct rm_source {
    const char *name; /* name of the file in errors; NULL: errors have no position */
    const char *text;
    size_t bytes;
    const struct rm_override *overrides;
    size_t override_count;
    struct rm_mark *marks;
    size_t mark_count, mark_room;
    struct rm_text_place root;
};

/* Scans source->text. -EINVAL with "NAME:LINE:COLUMN: what is wrong" for anything that is not a
 * JSON object in UTF-8 within the limits above; -ENOMEM. Release with rm_source_close() in any
 * case. */
int rm_source_scan(struct rm_source *source, struct rm_error *error);
void rm_source_close(struct rm_source *source);

/* Position of the value (or, with `key`, of the key) at this path; if the text has no such path, of
 * the nearest enclosing object. Returns false when there is no text. */
bool rm_source_find(const struct rm_source *source, const char *path, bool key,
                    struct rm_text_place *place);

#endif
