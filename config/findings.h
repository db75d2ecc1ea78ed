/* findings: all errors found in a configuration, in the order of the file. The loading code has one
 * on its stack; nothing is allocated. */
#ifndef RM_CONFIG_FINDINGS_H
#define RM_CONFIG_FINDINGS_H

#include "config/schema.h"
#include "config/source.h"

#define RM_FINDINGS_MAX 48 /* findings kept; further ones are counted */

struct rm_finding {
    uint32_t line, column;      /* 0: unknown; UINT32_MAX: an override, `column` is its index */
    char path[RM_KEY_PATH_MAX]; /* "" = the whole file */
    char text[640];             /* what is wrong; what would be right */
};

struct rm_findings {
    const struct rm_source *source;
    size_t count, total;
    struct rm_finding list[RM_FINDINGS_MAX];
};

/* Adds an error. It points to the value at `path`; with `key`, to the key's name. With `path` NULL
 * it points to no key, and the message has no path. */
void rm_find(struct rm_findings *findings, const char *path, bool key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Is one of the first `count` findings about this path, a path within it, or a path that contains
 * it? */
bool rm_findings_touch(const struct rm_findings *findings, size_t count, const char *path);

/* 0 when nothing was found, else -EINVAL with a line per finding, as many as fit. */
int rm_findings_report(struct rm_findings *findings, struct rm_error *error);

/* Is `path` equal to `other`, or inside of it ("a.b" and "a[0]" are inside of "a")? */
bool rm_path_within(const char *path, const char *other);

#endif
