#include "daemon/kept.h"

#include "config/json_memory.h"
#include "shm/base/file.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    const int there = rm_file_open(path, O_RDONLY, 0, NULL);
    FILE *in = there < 0 ? NULL : fdopen(there, "r");
    while (in && fgets(line, sizeof line, in))
        damaged += line[0] != '\n' && !take_line(kept, line);
    if (in)
        fclose(in);
    kept->fd = rm_file_open(path, O_RDWR | O_CREAT | O_APPEND, 0644, error);
    if (kept->fd < 0)
        return rm_fail_within(error, kept->fd, "cannot open");
    return damaged ? rm_fail(error, -EPROTO, "%s: %u damaged %s ignored", path, damaged,
                             rm_plural(damaged, "line is", "lines are"))
                   : 0;
}

/* --- changes --------------------------------------------------------------------------------- */

int rm_kept_begin(const struct rm_kept *kept, struct rm_kept_change *change, struct rm_error *error)
{
    const uint64_t mark = rm_json_failures();
    json_t *settings = kept->settings ? json_copy(kept->settings) : json_object();

    *change = (struct rm_kept_change){.settings = rm_json_whole(settings, mark)};
    return change->settings ? 0 : rm_fail(error, -ENOMEM, FILE_NAME ": out of memory");
}

void rm_kept_forget(struct rm_kept_change *change)
{
    json_decref(change->settings);
    free(change->text);
    *change = (struct rm_kept_change){.settings = NULL};
}

/* Takes `entry`, which may be NULL. Empty lines are none; one before each keeps what an earlier
 * daemon left half-written apart. */
static int add_line(struct rm_kept_change *change, const char *path, json_t *entry,
                    struct rm_error *error)
{
    char *line = rm_json_dump(entry, JSON_COMPACT | JSON_REAL_PRECISION(17));
    const size_t more = line ? strlen(line) + 2 : 0;
    int rc = line ? 0 : -ENOMEM;

    json_decref(entry);
    if (rc == 0 && change->bytes + more + 1 > change->room) {
        const size_t room = (change->bytes + more + 1) * 2;
        char *wider = realloc(change->text, room);
        rc = wider ? 0 : -ENOMEM;
        if (wider) {
            change->text = wider;
            change->room = room;
        }
    }
    if (rc == 0) {
        snprintf(change->text + change->bytes, more + 1, "\n%s\n", line);
        change->bytes += more;
    }
    free(line);
    return rc ? rm_fail(error, rc, "%s: out of memory", path) : 0;
}

int rm_kept_note(struct rm_kept_change *change, const char *path, const struct rm_kept_setting *s,
                 struct rm_error *error)
{
    json_t *entry = json_pack("{s:s,s:O,s:O,s:b,s:I,s:I}", "key", path, "value", s->value,
                              "configuration", s->configuration, "keep", s->keep, "user",
                              (json_int_t)s->user, "time", (json_int_t)time(NULL));

    if (!entry || json_object_set(change->settings, path, entry) < 0) {
        json_decref(entry);
        return rm_fail(error, -ENOMEM, "%s: out of memory", path);
    }
    return add_line(change, path, entry, error);
}

int rm_kept_drop(struct rm_kept_change *change, const char *path, uid_t user,
                 struct rm_error *error)
{
    if (!json_object_get(change->settings, path))
        return 0;
    json_object_del(change->settings, path);
    return add_line(change, path,
                    json_pack("{s:s,s:b,s:I,s:I}", "key", path, "dropped", 1, "user",
                              (json_int_t)user, "time", (json_int_t)time(NULL)),
                    error);
}

int rm_kept_write(const struct rm_kept *kept, struct rm_writer *files,
                  const struct rm_kept_change *change, struct rm_write *write,
                  struct rm_error *error)
{
    if (kept->fd < 0 || change->bytes == 0)
        return 0;
    const rm_write_fn how = write ? rm_write_durably : rm_write_append;
    const int rc = rm_writer_put(files, how, kept->fd, change->text, change->bytes, write);
    return rc < 0 ? rm_fail(error, rc, FILE_NAME ": cannot be written: %s", strerror(-rc)) : rc;
}

void rm_kept_take(struct rm_kept *kept, struct rm_kept_change *change)
{
    json_decref(kept->settings);
    kept->settings = change->settings;
    change->settings = NULL;
    rm_kept_forget(change);
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
