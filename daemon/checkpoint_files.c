#include "daemon/checkpoint_files.h"

#include "shm/base/fault.h"
#include "shm/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEVELS_MAX 16 /* of folders; a checkpoint has one */

/* --- folders --------------------------------------------------------------------------------- */

/* A folder of files and of folders of files. The manifest goes first: without it there is no
 * checkpoint, whatever else is left of it. A world can make folders deeper than `levels`: they
 * stay, because a thread's stack ends. */
static void remove_tree(const char *path, unsigned levels)
{
    char below[PATH_MAX];
    struct stat about;
    if (lstat(path, &about) < 0 || !S_ISDIR(about.st_mode)) { /* a link may lead to files of another
                                                               * user */
        (void)rm_file_remove(path);
        return;
    }
    snprintf(below, sizeof below, "%s/" RM_MANIFEST_NAME, path);
    (void)rm_file_remove(below);
    DIR *folder;
    (void)rm_file_list(path, &folder, NULL);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            snprintf(below, sizeof below, "%s/%s", path, e->d_name) >= (int)sizeof below)
            continue;
        const int rc = rm_file_remove(below);
        if (levels && (rc == -ENOTEMPTY || rc == -EEXIST))
            remove_tree(below, levels - 1);
    }
    if (folder)
        closedir(folder);
    (void)rm_file_remove(path);
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
    DIR *folder;
    (void)rm_file_list(path, &folder, NULL);
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

int rm_checkpoints_readable(const char *run_directory, struct rm_error *error)
{
    char path[PATH_MAX];
    struct stat about;
    DIR *folder;
    snprintf(path, sizeof path, "%s/checkpoints", run_directory);
    if (lstat(path, &about) < 0 && errno == ENOENT)
        return 0;
    const int rc = rm_file_list(path, &folder, error);
    if (rc < 0)
        return rc;
    closedir(folder);
    if (!S_ISDIR(about.st_mode) || about.st_uid != geteuid())
        return rm_fail(error, -EPERM, "%s: is not a directory of user %u, who runs this process",
                       path, (unsigned)geteuid());
    return 0;
}

size_t rm_checkpoint_list(const char *run_directory, uint64_t *numbers, size_t max)
{
    return list(run_directory, false, numbers, max);
}

void rm_checkpoint_abandon(const char *run_directory, uint64_t number)
{
    char path[RM_SESSION_PATH_MAX];
    if (rm_session_checkpoint_folder(run_directory, number, true, path, NULL) == 0)
        remove_tree(path, LEVELS_MAX);
}

int rm_checkpoint_parent(const char *run_directory, struct rm_error *error)
{
    char path[RM_SESSION_PATH_MAX];
    snprintf(path, sizeof path, "%s/checkpoints", run_directory);
    return rm_file_make_folder(path, error);
}

int rm_checkpoint_begin(const char *run_directory, uint64_t number, struct rm_error *error)
{
    char path[RM_SESSION_PATH_MAX], policies[RM_SESSION_PATH_MAX];
    int rc = rm_checkpoint_parent(run_directory, error);
    if (rc == 0)
        rc = rm_session_checkpoint_folder(run_directory, number, true, path, error);
    if (rc)
        return rc;
    rm_checkpoint_abandon(run_directory, number); /* of one that was killed */
    RM_FAULT("checkpoint.begin.before");
    rc = rm_file_make_folder(path, error);
    snprintf(policies, sizeof policies, "%.*s/policies", RM_SESSION_DIRECTORY_MAX, path);
    if (rc == 0)
        rc = rm_file_make_folder(policies, error);
    RM_FAULT("checkpoint.begin.after");
    return rc;
}

/* --- sealing --------------------------------------------------------------------------------- */

int rm_checkpoint_seal(const char *run_directory, const struct rm_checkpoint_facts *facts,
                       const _Atomic uint64_t *read_until_ns, struct rm_error *error)
{
    char from[RM_SESSION_PATH_MAX], to[RM_SESSION_PATH_MAX], above[RM_SESSION_PATH_MAX];
    int rc = rm_session_checkpoint_folder(run_directory, facts->number, true, from, error);
    if (rc == 0)
        rc = rm_session_checkpoint_folder(run_directory, facts->number, false, to, error);
    if (rc)
        return rc;
    json_t *files;
    RM_FAULT("checkpoint.seal.before");
    rc = rm_manifest_files(from, read_until_ns, &files, error);
    RM_FAULT("checkpoint.seal.hashed");
    if (rc == 0)
        rc = rm_manifest_write(from, facts, files, error);
    json_decref(files);
    RM_FAULT("checkpoint.seal.manifest");
    if (rc == 0)
        rc = rm_file_sync_folder(from, error);
    RM_FAULT("checkpoint.seal.synced");
    if (rc == 0 && (rc = rm_file_rename(from, to)) < 0)
        rm_fail(error, rc, "cannot rename %s: %s", from, strerror(-rc));
    RM_FAULT("checkpoint.seal.renamed");
    snprintf(above, sizeof above, "%s/checkpoints", run_directory);
    if (rc == 0)
        rc = rm_file_sync_folder(above, error);
    if (rc == 0)
        rc = rm_file_sync_folder(run_directory, error); /* the first one made a folder in it */
    RM_FAULT("checkpoint.seal.after");
    return rc;
}

/* --- pruning --------------------------------------------------------------------------------- */

/* Of those that are whole: the one with the best score, 0 = none, and the oldest of the newest that
 * stay, 0 = there are fewer. `missing` has words about the newest that lacks a file. */
static uint64_t look_through(const char *run_directory, const uint64_t *numbers, size_t n,
                             const struct rm_checkpoints_kept *kept, uint64_t *oldest_kept,
                             struct rm_error *missing)
{
    char folder[RM_SESSION_PATH_MAX];
    double best = -INFINITY;
    uint64_t number = 0;
    uint32_t whole = 0;
    *oldest_kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct rm_checkpoint_facts facts = {0};
        struct rm_error why = {""};
        if (numbers[i] > kept->damaged_above && numbers[i] <= kept->damaged_to)
            continue;
        if (rm_session_checkpoint_folder(run_directory, numbers[i], false, folder, NULL) ||
            rm_checkpoint_check(folder, false, &facts, &why)) {
            if (missing && !missing->text[0])
                *missing = why;
            continue;
        }
        if (++whole == kept->newest)
            *oldest_kept = numbers[i];
        if (facts.score > best) {
            best = facts.score;
            number = numbers[i];
        }
        rm_checkpoint_facts_free(&facts);
    }
    return number;
}

void rm_checkpoint_prune(const char *run_directory, const struct rm_checkpoints_kept *kept,
                         struct rm_error *missing)
{
    static const bool kinds[] = {false, true};
    uint64_t *numbers = calloc(RM_CHECKPOINTS_MAX, sizeof *numbers);
    char folder[RM_SESSION_PATH_MAX];
    for (size_t k = 0; numbers && k < 2; k++) {
        const bool unfinished = kinds[k];
        const size_t n = list(run_directory, unfinished, numbers, RM_CHECKPOINTS_MAX);
        uint64_t oldest_kept = UINT64_MAX;
        const uint64_t the_best =
            unfinished ? 0 : look_through(run_directory, numbers, n, kept, &oldest_kept, missing);
        for (size_t i = 0; i < n; i++)
            if (numbers[i] < oldest_kept && !(kept->best && numbers[i] == the_best) &&
                rm_session_checkpoint_folder(run_directory, numbers[i], unfinished, folder, NULL) ==
                    0) {
                RM_FAULT("checkpoint.prune.before");
                remove_tree(folder, LEVELS_MAX);
            }
    }
    free(numbers);
}
