/* checkpoint_manifest: the description of a checkpoint, a file beside its other files
 * (checkpoint_files.h).
 *
 * manifest.json: {"manifest": {format, version, run, number, step, updates, round, evaluations,
 * score (or null), made, config, files: [{name, bytes, xxh3}]}, "xxh3": of that object as compact
 * JSON with sorted keys}. Any thread. */
#ifndef RM_DAEMON_CHECKPOINT_MANIFEST_H
#define RM_DAEMON_CHECKPOINT_MANIFEST_H

#include "shm/session/session.h"
#include "shm/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define RM_CHECKPOINT_FORMAT "ringmaster-checkpoint-1"
#define RM_MANIFEST_NAME     "manifest.json"

struct rm_checkpoint_facts {
    char run[RM_NAME_MAX];
    uint64_t number;
    uint64_t step;    /* per agent, over all worlds */
    uint64_t updates; /* of all policies */
    uint64_t round;   /* the current one */
    uint64_t evaluations;
    double score;   /* of the latest evaluation; NaN when there was none */
    json_t *config; /* resolved; owned */
};
void rm_checkpoint_facts_free(struct rm_checkpoint_facts *facts);

/* Lists the files in `folder` and in its folders, each with size and hash, and syncs these folders.
 * The caller frees *files, also after an error. `read_until_ns` as of rm_checkpoint_seal(). */
int rm_manifest_files(const char *folder, const _Atomic uint64_t *read_until_ns, json_t **files,
                      struct rm_error *error);

/* Writes the manifest and syncs it. */
int rm_manifest_write(const char *folder, const struct rm_checkpoint_facts *facts, json_t *files,
                      struct rm_error *error);

/* Sets the score of a finished checkpoint to that of a later evaluation. Replaces the whole
 * manifest; its other members stay. -EBADMSG: the manifest is damaged. */
int rm_manifest_rescore(const char *folder, double score, struct rm_error *error);

/* Reads and checks the manifest; with `whole` checks every file too. If it returns 0, the caller
 * frees *facts. -EBADMSG: the message names what does not match. */
int rm_checkpoint_check(const char *folder, bool whole, struct rm_checkpoint_facts *facts,
                        struct rm_error *error);

#endif
