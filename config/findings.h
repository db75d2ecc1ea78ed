/* findings: everything found wrong with a configuration, in the order of the file. One lives on the
 * stack of whoever loads; nothing is allocated. */
#ifndef RM_CONFIG_FINDINGS_H
#define RM_CONFIG_FINDINGS_H

#include "config/schema.h"
#include "config/source.h"

#define RM_FINDINGS_MAX 48 /* kept; more are counted */

struct rm_finding {
    uint32_t line, column;      /* 0: no place; UINT32_MAX: an override, `column` says which */
    char path[RM_KEY_PATH_MAX]; /* "" = the whole file */
    char text[640];             /* what is wrong; what would be right */
};

struct rm_findings {
    const struct rm_source *source;
    size_t count, total;
    struct rm_finding list[RM_FINDINGS_MAX];
};

/* Notes something wrong with the value (or, with `key`, the key) at `path`. NULL: with no key, so
 * that the words stand alone. */
void rm_find(struct rm_findings *findings, const char *path, bool key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Is one of the first `count` findings about this path, or within it, or around it? */
bool rm_findings_touch(const struct rm_findings *findings, size_t count, const char *path);

/* 0 when nothing was found, else -EINVAL with a line per finding, as many as fit. */
int rm_findings_report(struct rm_findings *findings, struct rm_error *error);

/* Is `path` equal to `other`, or inside of it ("a.b" and "a[0]" are inside of "a")? */
bool rm_path_within(const char *path, const char *other);

#endif
