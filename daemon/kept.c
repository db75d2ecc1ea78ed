#include "daemon/kept.h"

#include "config/json_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME "settings.json"

static void place(char *path, size_t size, const char *directory, const char *suffix)
{
    snprintf(path, size, "%.*s/" FILE_NAME "%s", PATH_MAX - 64, directory, suffix);
}

int rm_kept_read(struct rm_kept *kept, const char *directory, struct rm_error *error)
{
    char path[PATH_MAX];
    json_error_t where;

    rm_kept_free(kept);
    place(path, sizeof path, directory, "");
    if (access(path, F_OK) < 0)
        return 0;
    kept->settings = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    if (json_is_object(kept->settings))
        return 0;
    rm_kept_free(kept);
    return rm_fail(error, -EPROTO, "%s is damaged, nothing of it is kept: %s", path, where.text);
}

int rm_kept_write(const struct rm_kept *kept, const char *directory, struct rm_error *error)
{
    char path[PATH_MAX], fresh[PATH_MAX];
    char *text = rm_json_dump(kept->settings, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    int rc = 0;

    place(path, sizeof path, directory, "");
    place(fresh, sizeof fresh, directory, ".new");
    if (!text)
        return rm_fail(error, -ENOMEM, "%s: out of memory", path);
    const size_t bytes = strlen(text);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, bytes) != (ssize_t)bytes)
        rc = errno ? -errno : -EIO;
    if (fd >= 0 && close(fd) < 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(fresh, path) < 0)
        rc = -errno;
    free(text);
    if (rc == 0)
        return 0;
    unlink(fresh);
    return rm_fail(error, rc, "cannot write %s: %s", path, strerror(-rc));
}

void rm_kept_free(struct rm_kept *kept)
{
    json_decref(kept->settings);
    kept->settings = NULL;
}

int rm_kept_note(struct rm_kept *kept, const char *path, const struct rm_kept_setting *s)
{
    if (!kept->settings)
        kept->settings = json_object();
    json_t *setting =
        json_pack("{s:O,s:O,s:b,s:I,s:I}", "value", s->value, "configuration", s->configuration,
                  "keep", s->keep, "user", (json_int_t)s->user, "time", (json_int_t)time(NULL));
    return setting && json_object_set_new(kept->settings, path, setting) == 0 ? 0 : -ENOMEM;
}

void rm_kept_drop(struct rm_kept *kept, const char *path)
{
    json_object_del(kept->settings, path);
}

bool rm_kept_find(const struct rm_kept *kept, const char *path, struct rm_kept_setting *setting)
{
    const json_t *found = json_object_get(kept->settings, path);

    if (!json_object_get(found, "value"))
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
