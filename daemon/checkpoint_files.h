/* checkpoint_files: checkpoints on the disk, and nothing of processes. A checkpoint is a folder
 *
 *   RUN/checkpoints/000007/
 *     manifest.json              what it is, and every file with its size and XXH3
 *     shared-0.state             counters, limiters, rounds, settings, weights, rows, priorities
 *     actor-A.state              worlds, episodes and recurrent states of actor A
 *     learner-P.safetensors      parameters and moments of policy P, by name
 *     learner-P.state            the rest of its learner
 *     policies/NAME.safetensors  the policy, to be used elsewhere
 *
 * that is written under the name 000007.tmp: files, each synced, then the manifest, then the
 * folder, then it is renamed and the folder above synced. So whatever is called 000007 is whole,
 * but for what happens to disks afterwards, which the hashes tell.
 *
 * Manifest: {"manifest": {format, version, run, number, step, updates, round, evaluations, score
 * (or null), made, config, files: [{name, bytes, xxh3}]}, "xxh3": of that object as compact JSON
 * with sorted keys}. Callable from any thread, one at a time per run. */
#ifndef RM_DAEMON_CHECKPOINT_FILES_H
#define RM_DAEMON_CHECKPOINT_FILES_H

#include "config/session.h"
#include "shm/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RM_CHECKPOINT_FORMAT "ringmaster-checkpoint-1"

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

/* Numbers of the checkpoints of a run, newest first, of at most `max` that are looked at. Returns
 * how many there are. */
#define RM_CHECKPOINTS_MAX 4096 /* more than checkpoint.keep allows */
size_t rm_checkpoint_list(const char *run_directory, uint64_t *numbers, size_t max);

/* Makes the folder that number `number` is written to, empty. */
int rm_checkpoint_begin(const char *run_directory, uint64_t number, struct rm_error *error);

/* All files are there: writes the manifest and gives the folder its name. */
int rm_checkpoint_seal(const char *run_directory, const struct rm_checkpoint_facts *facts,
                       struct rm_error *error);

/* Removes what was begun. */
void rm_checkpoint_abandon(const char *run_directory, uint64_t number);

/* Reads the manifest; with `whole` every file too. The caller frees *facts when it returns 0.
 * Errors: -EBADMSG with what does not match. */
int rm_checkpoint_check(const char *folder, bool whole, struct rm_checkpoint_facts *facts,
                        struct rm_error *error);

/* Removes all but the `keep` newest and, with `best`, the one of the highest score, and whatever
 * was begun and not finished. */
void rm_checkpoint_prune(const char *run_directory, uint32_t keep, bool best);

#endif
