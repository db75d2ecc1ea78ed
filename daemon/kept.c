#include "daemon/kept.h"

#include "config/json_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME  "settings.jsonl"
#define LINE_BYTES 4096

void rm_kept_init(struct rm_kept *kept)
{
    *kept = (struct rm_kept){.fd = -1};
}

void rm_kept_close(struct rm_kept *kept)
{
    json_decref(kept->settings);
    if (kept->fd >= 0)
        close(kept->fd);
    rm_kept_init(kept);
}

/* --- reading --------------------------------------------------------------------------------- */

/* False when the line says nothing. */
static bool take_line(struct rm_kept *kept, const char *line)
{
    json_t *entry = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    const char *path = json_string_value(json_object_get(entry, "key"));
    bool good = path != NULL;

    if (!kept->settings)
        kept->settings = json_object();
    if (good && json_is_true(json_object_get(entry, "dropped")))
        json_object_del(kept->settings, path);
    else if (good)
        good = json_object_get(entry, "value") && json_object_set(kept->settings, path, entry) == 0;
    json_decref(entry);
    return good;
}

int rm_kept_open(struct rm_kept *kept, const char *directory, struct rm_error *error)
{
    char path[PATH_MAX], line[LINE_BYTES];
    unsigned damaged = 0;

    rm_kept_close(kept);
    snprintf(path, sizeof path, "%.*s/" FILE_NAME, PATH_MAX - 64, directory);
    FILE *in = fopen(path, "re");
    while (in && fgets(line, sizeof line, in))
        damaged += line[0] != '\n' && !take_line(kept, line);
    if (in)
        fclose(in);
    kept->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (kept->fd < 0)
        return rm_fail(error, -errno, "cannot open %s: %s", path, strerror(errno));
    return damaged ? rm_fail(error, -EPROTO, "%s: %u lines are damaged and count as nothing", path,
                             damaged)
                   : 0;
}

/* --- writing --------------------------------------------------------------------------------- */

/* The whole line, or nothing of it. */
static int append(struct rm_kept *kept, const json_t *entry, struct rm_error *error)
{
    char *text = rm_json_dump(entry, JSON_COMPACT | JSON_REAL_PRECISION(17));
    struct stat before;
    int rc = 0;

    if (!text)
        return rm_fail(error, -ENOMEM, FILE_NAME ": out of memory");
    /* Empty lines are none; one before keeps what an earlier daemon left half-written apart. */
    const int bytes =
        kept->fd < 0 || fstat(kept->fd, &before) < 0 ? -1 : dprintf(kept->fd, "\n%s\n", text);
    if (kept->fd >= 0 && bytes != (int)strlen(text) + 2) {
        rc = rm_fail(error, -EIO, FILE_NAME ": cannot be written: %s", strerror(errno));
        if (bytes >= 0 && ftruncate(kept->fd, before.st_size) < 0)
            rc = -EIO;
    }
    free(text);
    return rc;
}

int rm_kept_note(struct rm_kept *kept, const char *path, const struct rm_kept_setting *s,
                 struct rm_error *error)
{
    if (!kept->settings)
        kept->settings = json_object();
    json_t *entry = json_pack("{s:s,s:O,s:O,s:b,s:I,s:I}", "key", path, "value", s->value,
                              "configuration", s->configuration, "keep", s->keep, "user",
                              (json_int_t)s->user, "time", (json_int_t)time(NULL));
    json_t *before = json_incref(json_object_get(kept->settings, path));
    int rc = entry && json_object_set(kept->settings, path, entry) == 0
                 ? 0
                 : rm_fail(error, -ENOMEM, "%s: out of memory", path);
    if (rc == 0 && (rc = append(kept, entry, error)) < 0) {
        if (before)
            json_object_set(kept->settings, path, before); /* there is room: it was there */
        else
            json_object_del(kept->settings, path);
    }
    json_decref(before);
    json_decref(entry);
    return rc;
}

int rm_kept_drop(struct rm_kept *kept, const char *path, struct rm_error *error)
{
    if (!json_object_get(kept->settings, path))
        return 0;
    json_t *entry = json_pack("{s:s,s:b}", "key", path, "dropped", 1);
    const int rc =
        entry ? append(kept, entry, error) : rm_fail(error, -ENOMEM, "%s: out of memory", path);
    json_decref(entry);
    if (rc == 0)
        json_object_del(kept->settings, path);
    return rc;
}

bool rm_kept_find(const struct rm_kept *kept, const char *path, struct rm_kept_setting *setting)
{
    const json_t *found = json_object_get(kept->settings, path);

    if (!found)
        return false;
    *setting = (struct rm_kept_setting){
        .value = json_object_get(found, "value"),
        .configuration = json_object_get(found, "configuration"),
        .keep = json_is_true(json_object_get(found, "keep")),
        .user = (uid_t)json_integer_value(json_object_get(found, "user")),
        .time = json_number_value(json_object_get(found, "time")),
    };
    return true;
}
