#include "daemon/checkpoint_manifest.h"

#include "config/json_memory.h"
#include "config/json_value.h"
#include "config/utf8.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/fault.h"
#include "shm/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <xxhash.h>

#define HASH_BUFFER  (1u << 18)
#define MANIFEST_MAX (64u << 20)
#define FILES_MAX    4096 /* and folders; no run writes as many */

void rm_checkpoint_facts_free(struct rm_checkpoint_facts *facts)
{
    json_decref(facts->config);
    facts->config = NULL;
}

/* --- hashes ---------------------------------------------------------------------------------- */

/* A world can make a file that takes hours to read. */
static bool is_late(const _Atomic uint64_t *read_until_ns)
{
    const uint64_t until_ns = read_until_ns ? RM_PEEK(read_until_ns) : 0;
    return until_ns && rm_now_ns() >= until_ns;
}

static int late(const char *path, struct rm_error *error)
{
    return rm_fail(error, -ECANCELED, "%s: was still being read at the deadline", path);
}

static int hash_file(const char *path, const _Atomic uint64_t *read_until_ns, uint64_t *bytes,
                     uint64_t *hash, struct rm_error *error)
{
    uint8_t *buffer = malloc(HASH_BUFFER);
    XXH3_state_t *state = XXH3_createState();
    const int fd = rm_file_open(path, O_RDONLY, 0, error); /* nothing that never ends */
    int rc = fd < 0 ? fd : 0;
    *bytes = *hash = 0;
    if (fd >= 0 && (!buffer || !state))
        rc = -ENOMEM;
    else if (fd >= 0)
        XXH3_64bits_reset(state);
    while (rc == 0) {
        const ssize_t n = read(fd, buffer, HASH_BUFFER);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            rc = -errno;
        else if (is_late(read_until_ns))
            rc = -ECANCELED;
        if (n > 0) {
            XXH3_64bits_update(state, buffer, (size_t)n);
            *bytes += (uint64_t)n;
        }
    }
    if (rc == 0)
        *hash = XXH3_64bits_digest(state);
    if (fd >= 0)
        close(fd);
    XXH3_freeState(state);
    free(buffer);
    if (rc == -ECANCELED)
        return late(path, error);
    return rc && fd >= 0 ? rm_fail(error, rc, "%s: %s", path, strerror(-rc)) : rc;
}

static void hex_of(uint64_t hash, char text[17])
{
    snprintf(text, 17, "%016" PRIx64, hash);
}

/* Of the object as compact JSON with sorted keys: the same whatever it is printed like. */
static int hash_json(const json_t *value, char text[17])
{
    char *compact = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (!compact)
        return -ENOMEM;
    hex_of(XXH3_64bits(compact, strlen(compact)), text);
    free(compact);
    return 0;
}

/* --- writing --------------------------------------------------------------------------------- */

/* *seen: how many files and folders it has seen. */
static int note_files(const char *folder, const char *within, const _Atomic uint64_t *read_until_ns,
                      json_t *files, unsigned *seen, struct rm_error *error)
{
    char here[PATH_MAX], path[PATH_MAX], name[NAME_MAX * 2 + 2], hex[17];
    DIR *entries;
    snprintf(here, sizeof here, "%s/%s", folder, within);
    int rc = rm_file_list(here, &entries, error);
    if (rc < 0)
        return rc;
    for (struct dirent *e; rc == 0 && (e = readdir(entries));) {
        struct stat about;
        uint64_t bytes, hash;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(name, sizeof name, "%s%s%s", within, within[0] ? "/" : "", e->d_name);
        if (is_late(read_until_ns))
            rc = late(folder, error);
        else if (++*seen > FILES_MAX)
            rc = rm_fail(error, -E2BIG,
                         "%s: more than %d files and folders; a world made some of them", folder,
                         FILES_MAX);
        else if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path ||
                 fstatat(dirfd(entries), e->d_name, &about, AT_SYMLINK_NOFOLLOW) < 0)
            rc = rm_fail(error, -ENAMETOOLONG, "%s/%s: cannot be read", folder, name);
        else if (S_ISDIR(about.st_mode))
            rc = within[0] ? 0 : note_files(folder, e->d_name, read_until_ns, files, seen, error);
        else if ((rc = hash_file(path, read_until_ns, &bytes, &hash, error)) == 0) {
            hex_of(hash, hex);
            json_array_append_new(files, json_pack("{s:s,s:I,s:s}", "name", name, "bytes",
                                                   (json_int_t)bytes, "xxh3", hex));
        }
    }
    closedir(entries);
    return rc || !within[0] ? rc : rm_file_sync_folder(here, error);
}

int rm_manifest_files(const char *folder, const _Atomic uint64_t *read_until_ns, json_t **files,
                      struct rm_error *error)
{
    unsigned seen = 0;
    *files = json_array();
    return *files ? note_files(folder, "", read_until_ns, *files, &seen, error)
                  : rm_fail(error, -ENOMEM, "%s: no memory to list its files", folder);
}

static json_t *manifest_of(const struct rm_checkpoint_facts *f, json_t *files)
{
    char made[32];
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(made, sizeof made, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:o,s:s,s:O,s:O}", "format",
                     RM_CHECKPOINT_FORMAT, "version", RM_VERSION, "run", f->run, "number",
                     (json_int_t)f->number, "step", (json_int_t)f->step, "updates",
                     (json_int_t)f->updates, "round", (json_int_t)f->round, "evaluations",
                     (json_int_t)f->evaluations, "score", rm_json_finite(f->score), "made", made,
                     "config", f->config, "files", files);
}

static int write_text(const char *path, const char *text, struct rm_error *error)
{
    const int fd = rm_file_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644, error);
    int rc = fd < 0 ? fd : rm_file_write_all(fd, text, strlen(text));
    RM_FAULT("checkpoint.manifest.written");
    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    if (fd >= 0 && close(fd) < 0 && rc == 0)
        rc = -errno;
    return rc ? rm_fail(error, rc, "%s: %s", path, strerror(-rc)) : 0;
}

/* Takes `manifest`, which may be NULL. */
static int write_manifest(const char *path, json_t *manifest, struct rm_error *error)
{
    char hex[17], *text = NULL;
    if (manifest && hash_json(manifest, hex) == 0) {
        json_t *whole = json_pack("{s:O,s:s}", "manifest", manifest, "xxh3", hex);
        text = json_dumps(whole, JSON_INDENT(1));
        json_decref(whole);
    }
    json_decref(manifest);
    const int rc = text ? write_text(path, text, error)
                        : rm_fail(error, -ENOMEM, "%s: no memory to write it", path);
    free(text);
    return rc;
}

int rm_manifest_write(const char *folder, const struct rm_checkpoint_facts *facts, json_t *files,
                      struct rm_error *error)
{
    char path[RM_SESSION_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/" RM_MANIFEST_NAME, folder);
    return write_manifest(path, manifest_of(facts, files), error);
}

/* Not what was written, or not there: damage. What may not be read is none. */
static int unread(int rc, struct rm_error *error)
{
    const bool forbidden = rc == -EACCES || rc == -EPERM || rc == -ELOOP;
    return rm_fail_within(
        error,
        forbidden       ? -EACCES
        : rc == -ENOMEM ? rc
                        : -EBADMSG,
        "%s", rc == -ENOENT ? "a file of the checkpoint was removed" : "cannot be read");
}

/* *outer: the caller's; NULL: it is not JSON. */
static int read_manifest(const char *folder, json_t **outer, struct rm_error *error)
{
    char path[PATH_MAX], *text;
    size_t bytes;
    *outer = NULL;
    snprintf(path, sizeof path, "%s/" RM_MANIFEST_NAME, folder);
    const int rc = rm_file_read(path, MANIFEST_MAX, &text, &bytes, error);
    if (rc)
        return unread(rc, error);
    const uint64_t mark = rm_json_failures();
    *outer = rm_json_whole(json_loadb(text, bytes, 0, NULL), mark);
    free(text);
    return rm_json_failures() == mark ? 0 : rm_fail(error, -ENOMEM, "%s: no memory", path);
}

int rm_manifest_rescore(const char *folder, double score, struct rm_error *error)
{
    char path[RM_SESSION_PATH_MAX + 32], fresh[sizeof path + 8];
    struct rm_checkpoint_facts facts = {0};
    int rc = rm_checkpoint_check(folder, false, &facts, error);
    if (rc < 0)
        return rc;
    rm_checkpoint_facts_free(&facts);
    snprintf(path, sizeof path, "%s/" RM_MANIFEST_NAME, folder);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    json_t *outer;
    rc = read_manifest(folder, &outer, error);
    if (rc)
        return rc;
    json_t *manifest = json_incref(json_object_get(outer, "manifest"));
    json_decref(outer);
    if (json_object_set_new(manifest, "score", rm_json_finite(score)) < 0) {
        json_decref(manifest);
        return rm_fail(error, -ENOMEM, "%s: no memory to write it", path);
    }
    rc = write_manifest(fresh, manifest, error);
    if (rc == 0 && (rc = rm_file_rename(fresh, path)) < 0)
        rm_fail(error, rc, "%s: %s", path, strerror(-rc));
    if (rc < 0)
        (void)rm_file_remove(fresh);
    return rc ? rc : rm_file_sync_folder(folder, error);
}

/* --- checking -------------------------------------------------------------------------------- */

static int damaged(const char *folder, const char *what, struct rm_error *error)
{
    return rm_fail(error, -EBADMSG, "%s: %s", folder, what);
}

/* Relative, and never upwards. */
static bool stands_within(const char *name)
{
    for (const char *part = name;; part = strchr(part, '/') + 1) {
        const size_t n = strcspn(part, "/");
        if (n == 0 || (n <= 2 && strncmp(part, "..", n) == 0))
            return false;
        if (part[n] == '\0')
            return true;
    }
}

/* `whole`: its bytes as well; else it is there, and as long as it was. */
static int check_file(const char *folder, json_t *file, bool whole, struct rm_error *error)
{
    const char *name, *hex;
    char path[PATH_MAX], now[17];
    json_int_t bytes;
    uint64_t have = 0, hash = 0;
    struct stat about;
    int rc;
    if (json_unpack(file, "{s:s,s:I,s:s}", "name", &name, "bytes", &bytes, "xxh3", &hex) < 0)
        return damaged(folder, "its manifest lists a file without name, size or hash", error);
    if (!stands_within(name))
        return damaged(folder, "its manifest lists a file outside of the checkpoint", error);
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return damaged(folder, "its manifest lists a file whose name is too long", error);
    if (!whole) {
        rc = lstat(path, &about) < 0 ? -errno : 0;
        if (rc == 0 && (!S_ISREG(about.st_mode) || about.st_size != bytes))
            return rm_fail(error, -EBADMSG, "%s: is not the file that was written", path);
        return rc ? unread(rm_fail(error, rc, "%s: %s", path, strerror(-rc)), error) : 0;
    }
    /* Without reading on in a file that grew. */
    if (lstat(path, &about) == 0 && S_ISREG(about.st_mode) && about.st_size != bytes)
        return rm_fail(error, -EBADMSG, "%s: is not what was written: %lld bytes; they were %lld",
                       path, (long long)about.st_size, (long long)bytes);
    rc = hash_file(path, NULL, &have, &hash, error);
    if (rc)
        return unread(rc, error);
    hex_of(hash, now);
    return have == (uint64_t)bytes && strcmp(now, hex) == 0
               ? 0
               : rm_fail(error, -EBADMSG,
                         "%s: is not what was written: %" PRIu64 " bytes, XXH3 %s; they were "
                         "%lld, %s",
                         path, have, now, (long long)bytes, hex);
}

static int read_facts(const char *folder, json_t *m, struct rm_checkpoint_facts *facts,
                      struct rm_error *error)
{
    const char *format, *run;
    json_int_t number, step, updates, round, evaluations;
    json_t *score, *config;
    if (json_unpack(m, "{s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:o,s:o}", "format", &format, "run", &run,
                    "number", &number, "step", &step, "updates", &updates, "round", &round,
                    "evaluations", &evaluations, "score", &score, "config", &config) < 0)
        return damaged(folder, "its manifest lacks a member", error);
    if (number < 1 || step < 0 || updates < 0 || round < 0 || evaluations < 0)
        return damaged(folder, "its manifest has impossible numbers", error);
    if (strcmp(format, RM_CHECKPOINT_FORMAT) != 0)
        return rm_fail(error, -EBADMSG, "%s: its format is \"%s\"; this program reads \"%s\"",
                       folder, format, RM_CHECKPOINT_FORMAT);
    *facts = (struct rm_checkpoint_facts){
        .number = (uint64_t)number,
        .step = (uint64_t)step,
        .updates = (uint64_t)updates,
        .round = (uint64_t)round,
        .evaluations = (uint64_t)evaluations,
        .score = rm_json_number(score),
        .config = json_incref(config),
    };
    snprintf(facts->run, sizeof facts->run, "%s", run);
    return 0;
}

int rm_checkpoint_check(const char *folder, bool whole, struct rm_checkpoint_facts *facts,
                        struct rm_error *error)
{
    char hex[17];
    json_t *outer;
    int rc = read_manifest(folder, &outer, error);
    json_t *m = json_object_get(outer, "manifest");
    const char *stated = json_string_value(json_object_get(outer, "xxh3"));
    const json_t *files = json_object_get(m, "files");
    if (rc == 0 && m && hash_json(m, hex))
        rc = rm_fail(error, -ENOMEM, "%s: no memory", folder);
    if (rc == 0 && (!m || !stated || strcmp(hex, stated) != 0))
        rc = damaged(folder, "its manifest is damaged", error);
    else if (rc == 0 && json_array_size(files) == 0)
        rc = damaged(folder, "its manifest lists no files", error);
    else if (rc == 0)
        rc = read_facts(folder, m, facts, error);
    for (size_t i = 0; rc == 0 && i < json_array_size(files); i++) {
        rc = check_file(folder, json_array_get(files, i), whole, error);
        if (rc)
            rm_checkpoint_facts_free(facts);
    }
    json_decref(outer);
    if (rc && error)
        rm_utf8_line(error->text); /* a world may have written what it quotes */
    return rc;
}
