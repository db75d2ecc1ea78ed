#include "config/findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rm_path_within(const char *path, const char *other)
{
    size_t n = strlen(other);
    return !strncmp(path, other, n) && (!path[n] || path[n] == '.' || path[n] == '[' || n == 0);
}

/* The override that set `path`: the last one, which takes effect. -1: none. */
static int override_of(const struct rm_source *source, const char *path)
{
    for (size_t i = source->override_count; i-- > 0;) {
        const char *text = source->overrides[i].text;
        char key[RM_KEY_PATH_MAX];
        size_t n = strcspn(text, "=");
        if (n == 0 || n >= sizeof(key))
            continue;
        memcpy(key, text, n);
        key[n] = 0;
        if (rm_path_within(path, key))
            return (int)i;
    }
    return -1;
}

void rm_find(struct rm_findings *findings, const char *path, bool key, const char *format, ...)
{
    findings->total++;
    if (findings->count == RM_FINDINGS_MAX)
        return;
    struct rm_finding *f = &findings->list[findings->count++];
    struct rm_text_place place = {0, 0};
    int override = path ? override_of(findings->source, path) : -1;

    if (override >= 0)
        place = (struct rm_text_place){UINT32_MAX, (uint32_t) override};
    else if (path)
        rm_source_find(findings->source, path, key, &place);
    f->line = place.line;
    f->column = place.column;
    snprintf(f->path, sizeof(f->path), "%s", path ? path : "");
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof(f->text), format, args);
    va_end(args);
}

bool rm_findings_touch(const struct rm_findings *findings, size_t count, const char *path)
{
    for (size_t i = 0; i < count && i < findings->count; i++)
        if (rm_path_within(findings->list[i].path, path) ||
            rm_path_within(path, findings->list[i].path))
            return true;
    return false;
}

static int by_place(const void *a, const void *b)
{
    const struct rm_finding *x = a, *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    return strcmp(x->path, y->path);
}

int rm_findings_report(struct rm_findings *findings, struct rm_error *error)
{
    if (findings->total == 0)
        return 0;
    qsort(findings->list, findings->count, sizeof(findings->list[0]), by_place);

    char text[RM_ERROR_TEXT], tail[40] = "";
    size_t used = 0, shown = 0;
    for (; shown < findings->count; shown++) {
        const struct rm_finding *f = &findings->list[shown];
        char line[sizeof(f->text) + sizeof(f->path) + 512], place[512] = "";
        if (f->line == UINT32_MAX)
            snprintf(place, sizeof(place),
                     "--set %.200s: ", findings->source->overrides[f->column].text);
        else if (f->line)
            snprintf(place, sizeof(place), "%.400s:%u:%u: ", findings->source->name, f->line,
                     f->column);
        int n = snprintf(line, sizeof(line), "%s%s%s%s%s", shown ? "\n" : "", place, f->path,
                         f->path[0] ? ": " : "", f->text);
        /* Show the first finding even if it has to be cut; later ones leave room for the tail. */
        if (shown > 0 && used + (size_t)n + sizeof(tail) > sizeof(text))
            break;
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", line);
        if (used >= sizeof(text))
            used = sizeof(text) - 1;
    }
    if (shown < findings->total)
        snprintf(tail, sizeof(tail), "\n... and %zu more", findings->total - shown);
    rm_utf8_repair(text);
    return rm_fail(error, -EINVAL, "%s%s", text, tail);
}
