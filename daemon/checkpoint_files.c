#include "daemon/checkpoint_files.h"

#include "shm/base/fault.h"

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

#define MANIFEST     "manifest.json"
#define HASH_BUFFER  (1u << 18)
#define MANIFEST_MAX (64u << 20)

void rm_checkpoint_facts_free(struct rm_checkpoint_facts *facts)
{
    json_decref(facts->config);
    facts->config = NULL;
}

/* --- folders --------------------------------------------------------------------------------- */

static int sync_folder(const char *path, struct rm_error *error)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return rc ? rm_fail(error, rc, "%s: %s", path, strerror(-rc)) : 0;
}

/* A folder of files and of folders of files. The manifest goes first: without it there is no
 * checkpoint, whatever else is left of it. */
static void remove_tree(const char *path)
{
    char below[PATH_MAX];
    snprintf(below, sizeof below, "%s/" MANIFEST, path);
    unlink(below);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            snprintf(below, sizeof below, "%s/%s", path, e->d_name) >= (int)sizeof below)
            continue;
        if (unlink(below) < 0 && (errno == EISDIR || errno == EPERM))
            remove_tree(below);
    }
    if (folder)
        closedir(folder);
    rmdir(path);
}

/* "000007", and with `unfinished` "000007.tmp"; 0: neither. */
static uint64_t number_of(const char *name, bool *unfinished)
{
    char *end;
    if (name[0] < '0' || name[0] > '9')
        return 0;
    errno = 0;
    const unsigned long long n = strtoull(name, &end, 10);
    *unfinished = strcmp(end, ".tmp") == 0;
    return errno || (*end && !*unfinished) ? 0 : n;
}

static int newest_first(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static size_t list(const char *run_directory, bool unfinished, uint64_t *numbers, size_t max)
{
    char path[PATH_MAX];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/checkpoints", run_directory);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        bool is_unfinished;
        const uint64_t number = number_of(e->d_name, &is_unfinished);
        if (number && is_unfinished == unfinished && n < max)
            numbers[n++] = number;
    }
    if (folder)
        closedir(folder);
    qsort(numbers, n, sizeof *numbers, newest_first);
    return n;
}

size_t rm_checkpoint_list(const char *run_directory, uint64_t *numbers, size_t max)
{
    return list(run_directory, false, numbers, max);
}

void rm_checkpoint_abandon(const char *run_directory, uint64_t number)
{
    char path[RM_SESSION_PATH_MAX];
    if (rm_session_checkpoint_folder(run_directory, number, true, path, NULL) == 0)
        remove_tree(path);
}

static int make(const char *path, struct rm_error *error)
{
    return mkdir(path, 0755) < 0 && errno != EEXIST
               ? rm_fail(error, -errno, "cannot make %s: %s", path, strerror(errno))
               : 0;
}

int rm_checkpoint_begin(const char *run_directory, uint64_t number, struct rm_error *error)
{
    char path[RM_SESSION_PATH_MAX], policies[RM_SESSION_PATH_MAX];
    snprintf(policies, sizeof policies, "%s/checkpoints", run_directory);
    int rc = make(policies, error);
    if (rc == 0)
        rc = rm_session_checkpoint_folder(run_directory, number, true, path, error);
    if (rc)
        return rc;
    rm_checkpoint_abandon(run_directory, number); /* of one that was killed */
    RM_FAULT("checkpoint.begin.before");
    rc = make(path, error);
    snprintf(policies, sizeof policies, "%.*s/policies", RM_SESSION_DIRECTORY_MAX, path);
    if (rc == 0)
        rc = make(policies, error);
    RM_FAULT("checkpoint.begin.after");
    return rc;
}

/* --- hashes ---------------------------------------------------------------------------------- */

static int hash_file(const char *path, uint64_t *bytes, uint64_t *hash, struct rm_error *error)
{
    uint8_t *buffer = malloc(HASH_BUFFER);
    XXH3_state_t *state = XXH3_createState();
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = fd < 0 ? -errno : 0;
    *bytes = 0;
    if (!buffer || !state)
        rc = -ENOMEM;
    else
        XXH3_64bits_reset(state);
    while (rc == 0) {
        const ssize_t n = read(fd, buffer, HASH_BUFFER);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            rc = -errno;
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
    return rc ? rm_fail(error, rc, "%s: %s", path, strerror(-rc)) : 0;
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

/* --- sealing --------------------------------------------------------------------------------- */

static int note_files(const char *folder, const char *within, json_t *files, struct rm_error *error)
{
    char here[PATH_MAX], path[PATH_MAX], name[NAME_MAX * 2 + 2], hex[17];
    int rc = 0;
    snprintf(here, sizeof here, "%s/%s", folder, within);
    DIR *entries = opendir(here);
    if (!entries)
        return rm_fail(error, -errno, "%s: %s", here, strerror(errno));
    for (struct dirent *e; rc == 0 && (e = readdir(entries));) {
        struct stat about;
        uint64_t bytes, hash;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(name, sizeof name, "%s%s%s", within, within[0] ? "/" : "", e->d_name);
        if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path ||
            stat(path, &about) < 0)
            rc = rm_fail(error, -ENAMETOOLONG, "%s/%s: cannot be looked at", folder, name);
        else if (S_ISDIR(about.st_mode))
            rc = within[0] ? 0 : note_files(folder, e->d_name, files, error);
        else if ((rc = hash_file(path, &bytes, &hash, error)) == 0) {
            hex_of(hash, hex);
            json_array_append_new(files, json_pack("{s:s,s:I,s:s}", "name", name, "bytes",
                                                   (json_int_t)bytes, "xxh3", hex));
        }
    }
    closedir(entries);
    return rc || !within[0] ? rc : sync_folder(here, error);
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
                     (json_int_t)f->evaluations, "score",
                     isfinite(f->score) ? json_real(f->score) : json_null(), "made", made, "config",
                     f->config, "files", files);
}

static int write_text(const char *path, const char *text, struct rm_error *error)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int rc = fd < 0 ? -errno : 0;
    for (size_t at = 0, bytes = strlen(text); rc == 0 && at < bytes;) {
        const ssize_t n = write(fd, text + at, bytes - at);
        if (n > 0)
            at += (size_t)n;
        else if (n == 0 || errno != EINTR)
            rc = n < 0 ? -errno : -EIO;
    }
    RM_FAULT("checkpoint.manifest.written");
    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    if (fd >= 0 && close(fd) < 0 && rc == 0)
        rc = -errno;
    return rc ? rm_fail(error, rc, "%s: %s", path, strerror(-rc)) : 0;
}

static int write_manifest(const char *folder, const struct rm_checkpoint_facts *facts,
                          json_t *files, struct rm_error *error)
{
    char path[RM_SESSION_PATH_MAX + 32], hex[17];
    json_t *manifest = manifest_of(facts, files);
    char *text = NULL;
    if (manifest && hash_json(manifest, hex) == 0) {
        json_t *whole = json_pack("{s:O,s:s}", "manifest", manifest, "xxh3", hex);
        text = json_dumps(whole, JSON_INDENT(1));
        json_decref(whole);
    }
    json_decref(manifest);
    snprintf(path, sizeof path, "%s/" MANIFEST, folder);
    const int rc = text ? write_text(path, text, error)
                        : rm_fail(error, -ENOMEM, "%s: no memory to write it", path);
    free(text);
    return rc;
}

int rm_checkpoint_seal(const char *run_directory, const struct rm_checkpoint_facts *facts,
                       struct rm_error *error)
{
    char from[RM_SESSION_PATH_MAX], to[RM_SESSION_PATH_MAX], above[RM_SESSION_PATH_MAX];
    int rc = rm_session_checkpoint_folder(run_directory, facts->number, true, from, error);
    if (rc == 0)
        rc = rm_session_checkpoint_folder(run_directory, facts->number, false, to, error);
    if (rc)
        return rc;
    json_t *files = json_array();
    RM_FAULT("checkpoint.seal.before");
    rc = note_files(from, "", files, error);
    RM_FAULT("checkpoint.seal.hashed");
    if (rc == 0)
        rc = write_manifest(from, facts, files, error);
    json_decref(files);
    RM_FAULT("checkpoint.seal.manifest");
    if (rc == 0)
        rc = sync_folder(from, error);
    RM_FAULT("checkpoint.seal.synced");
    if (rc == 0 && rename(from, to) < 0)
        rc = rm_fail(error, -errno, "cannot rename %s: %s", from, strerror(errno));
    RM_FAULT("checkpoint.seal.renamed");
    snprintf(above, sizeof above, "%s/checkpoints", run_directory);
    if (rc == 0)
        rc = sync_folder(above, error);
    RM_FAULT("checkpoint.seal.after");
    return rc;
}

/* --- checking -------------------------------------------------------------------------------- */

static int damaged(const char *folder, const char *what, struct rm_error *error)
{
    return rm_fail(error, -EBADMSG, "%s: %s", folder, what);
}

static int check_file(const char *folder, json_t *file, struct rm_error *error)
{
    const char *name, *hex;
    char path[PATH_MAX], now[17];
    json_int_t bytes;
    uint64_t have = 0, hash = 0;
    if (json_unpack(file, "{s:s,s:I,s:s}", "name", &name, "bytes", &bytes, "xxh3", &hex) < 0)
        return damaged(folder, "its manifest lists a file without name, size or hash", error);
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return damaged(folder, "its manifest lists a file of too long a name", error);
    if (hash_file(path, &have, &hash, error))
        return rm_fail_within(error, -EBADMSG, "damaged");
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
        return damaged(folder, "its manifest lacks something", error);
    if (strcmp(format, RM_CHECKPOINT_FORMAT) != 0)
        return rm_fail(error, -EBADMSG, "%s: its format is \"%s\"; this program reads \"%s\"",
                       folder, format, RM_CHECKPOINT_FORMAT);
    *facts = (struct rm_checkpoint_facts){
        .number = (uint64_t)number,
        .step = (uint64_t)step,
        .updates = (uint64_t)updates,
        .round = (uint64_t)round,
        .evaluations = (uint64_t)evaluations,
        .score = json_is_number(score) ? json_number_value(score) : NAN,
        .config = json_incref(config),
    };
    snprintf(facts->run, sizeof facts->run, "%s", run);
    return 0;
}

int rm_checkpoint_check(const char *folder, bool whole, struct rm_checkpoint_facts *facts,
                        struct rm_error *error)
{
    char path[PATH_MAX], hex[17];
    json_error_t where;
    struct stat about;
    snprintf(path, sizeof path, "%s/" MANIFEST, folder);
    if (stat(path, &about) < 0)
        return rm_fail(error, -EBADMSG, "%s: %s", path, strerror(errno));
    json_t *outer = about.st_size <= MANIFEST_MAX ? json_load_file(path, 0, &where) : NULL;
    json_t *m = json_object_get(outer, "manifest");
    const char *stated = json_string_value(json_object_get(outer, "xxh3"));
    int rc = 0;
    if (!m || !stated || hash_json(m, hex) || strcmp(hex, stated) != 0)
        rc = damaged(folder, "its manifest is damaged", error);
    else
        rc = read_facts(folder, m, facts, error);
    const json_t *files = json_object_get(m, "files");
    for (size_t i = 0; rc == 0 && whole && i < json_array_size(files); i++) {
        rc = check_file(folder, json_array_get(files, i), error);
        if (rc)
            rm_checkpoint_facts_free(facts);
    }
    json_decref(outer);
    return rc;
}

/* --- pruning --------------------------------------------------------------------------------- */

static uint64_t best_of(const char *run_directory, const uint64_t *numbers, size_t n)
{
    char folder[RM_SESSION_PATH_MAX];
    struct rm_checkpoint_facts facts = {0};
    double best = -INFINITY;
    uint64_t number = 0;
    for (size_t i = 0; i < n; i++) {
        if (rm_session_checkpoint_folder(run_directory, numbers[i], false, folder, NULL) ||
            rm_checkpoint_check(folder, false, &facts, NULL))
            continue;
        if (facts.score > best) {
            best = facts.score;
            number = numbers[i];
        }
        rm_checkpoint_facts_free(&facts);
    }
    return number;
}

void rm_checkpoint_prune(const char *run_directory, uint32_t keep, bool best)
{
    static const bool kinds[] = {false, true};
    uint64_t *numbers = calloc(RM_CHECKPOINTS_MAX, sizeof *numbers);
    char folder[RM_SESSION_PATH_MAX];
    for (size_t k = 0; numbers && k < 2; k++) {
        const bool unfinished = kinds[k];
        const size_t n = list(run_directory, unfinished, numbers, RM_CHECKPOINTS_MAX);
        const uint64_t spared = best && !unfinished ? best_of(run_directory, numbers, n) : 0;
        for (size_t i = unfinished ? 0 : keep; i < n; i++)
            if (numbers[i] != spared &&
                rm_session_checkpoint_folder(run_directory, numbers[i], unfinished, folder, NULL) ==
                    0) {
                RM_FAULT("checkpoint.prune.before");
                remove_tree(folder);
            }
    }
    free(numbers);
}
