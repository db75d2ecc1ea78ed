/* checkpoint_files: writes, checks and removes checkpoints on the disk, without any knowledge of
 * processes. A checkpoint is a folder
 *
 *   RUN/checkpoints/000007/
 *     manifest.json              what it is, and every file with its size and XXH3
 *     shared-0.state             counters, limiters, rounds, settings, weights, rows, priorities
 *     actor-A.state              worlds, episodes and recurrent states of actor A
 *     learner-P.safetensors      parameters and moments of policy P, by name
 *     learner-P.state            the rest of its learner
 *     policies/NAME.safetensors  the policy, for use in other programs
 *
 * The folder is written under the name 000007.tmp. First every file is written and synced, then the
 * manifest, then the folder is synced; at last it is renamed, and the folders above it are synced.
 * So a folder with the name 000007 is complete. The hashes show whether the disk has damaged it
 * since.
 *
 * Callable from any thread, one at a time per run. */
#ifndef RM_DAEMON_CHECKPOINT_FILES_H
#define RM_DAEMON_CHECKPOINT_FILES_H

#include "shm/session/session.h"
#include "daemon/checkpoint_manifest.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes the numbers of a run's checkpoints, newest first, at most `max` of them. Returns how many
 * it wrote. */
#define RM_CHECKPOINTS_MAX 4096 /* more than checkpoint.keep allows */
size_t rm_checkpoint_list(const char *run_directory, uint64_t *numbers, size_t max);

/* Creates the folder of all checkpoints if it is missing. */
int rm_checkpoint_parent(const char *run_directory, struct rm_error *error);

/* Creates the empty folder to which checkpoint `number` is written. */
int rm_checkpoint_begin(const char *run_directory, uint64_t number, struct rm_error *error);

/* Writes the manifest and renames the folder. Call it when all other files are there. -ECANCELED:
 * files were still being read at *read_until_ns (NULL or 0: no limit), which may change meanwhile.
 */
int rm_checkpoint_seal(const char *run_directory, const struct rm_checkpoint_facts *facts,
                       const _Atomic uint64_t *read_until_ns, struct rm_error *error);

/* Removes an unfinished checkpoint. */
void rm_checkpoint_abandon(const char *run_directory, uint64_t number);

/* The checkpoints that are kept. */
struct rm_checkpoints_kept {
    uint32_t newest; /* number of the newest ones to keep */
    bool best;       /* whether to keep the one with the highest score too */
    /* Numbers above the first and up to the second are of damaged checkpoints, even if all their
     * files are there with the right lengths. Equal numbers: none is damaged. */
    uint64_t damaged_above, damaged_to;
};

/* Removes all checkpoints except those that are kept, and all unfinished ones. A checkpoint that is
 * damaged or lacks a file does not count among the newest. `missing` (may be NULL) gets a message
 * about the newest one that lacks a file. */
void rm_checkpoint_prune(const char *run_directory, const struct rm_checkpoints_kept *kept,
                         struct rm_error *missing);

/* Can the run's checkpoints be read? A run without checkpoints is not an error. */
int rm_checkpoints_readable(const char *run_directory, struct rm_error *error);

#endif
