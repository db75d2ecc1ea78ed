/* checkpoint_manifest: what a checkpoint says of itself, beside its files (checkpoint_files.h).
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
    uint64_t round;   /* in hand */
    uint64_t evaluations;
    double score;   /* of the latest evaluation; NaN when there was none */
    json_t *config; /* resolved; owned */
};
void rm_checkpoint_facts_free(struct rm_checkpoint_facts *facts);

/* Lists what is in `folder` and in the folders in it, each with its size and hash, and syncs those
 * folders. *files is the caller's in any case. */
int rm_manifest_files(const char *folder, json_t **files, struct rm_error *error);

/* Writes the manifest and syncs it. */
int rm_manifest_write(const char *folder, const struct rm_checkpoint_facts *facts, json_t *files,
                      struct rm_error *error);

/* Gives a checkpoint that is there another score, that of an evaluation which came after it: the
 * manifest is replaced whole, everything else in it stays. -EBADMSG: it is damaged. */
int rm_manifest_rescore(const char *folder, double score, struct rm_error *error);

/* Reads the manifest; with `whole` every file too. The caller frees *facts when it returns 0.
 * Errors: -EBADMSG with what does not match. */
int rm_checkpoint_check(const char *folder, bool whole, struct rm_checkpoint_facts *facts,
                        struct rm_error *error);

#endif
