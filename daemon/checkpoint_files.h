/* checkpoint_files: checkpoints on the disk, and nothing of processes. A checkpoint is a folder
 *
 *   RUN/checkpoints/000007/
 *     manifest.json              what it is, and every file with its size and XXH3
 *     shared-0.state             counters, limiters, rounds, settings, weights, rows, priorities
 *     actor-A.state              worlds, episodes and recurrent states of actor A
 *     learner-P.safetensors      parameters and moments of policy P, by name
 *     learner-P.state            the rest of its learner
 *     policies/NAME.safetensors  the policy, for use in other programs
 *
 * that is written under the name 000007.tmp: files, each synced, then the manifest, then the
 * folder, then it is renamed and the folders above synced. So whatever is called 000007 is whole,
 * but for what happens to disks afterwards, which the hashes tell.
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

/* Numbers of the checkpoints of a run, newest first, of at most `max` that are looked at. Returns
 * how many there are. */
#define RM_CHECKPOINTS_MAX 4096 /* more than checkpoint.keep allows */
size_t rm_checkpoint_list(const char *run_directory, uint64_t *numbers, size_t max);

/* Makes the folder that all of them are in, unless it is there. */
int rm_checkpoint_parent(const char *run_directory, struct rm_error *error);

/* Makes the folder that number `number` is written to, empty. */
int rm_checkpoint_begin(const char *run_directory, uint64_t number, struct rm_error *error);

/* All files are there: writes the manifest and gives the folder its name. */
int rm_checkpoint_seal(const char *run_directory, const struct rm_checkpoint_facts *facts,
                       struct rm_error *error);

/* Removes what was begun. */
void rm_checkpoint_abandon(const char *run_directory, uint64_t number);

/* Which checkpoints stay. */
struct rm_checkpoints_kept {
    uint32_t newest; /* so many of the newest */
    bool best;       /* and the one of the highest score */
    /* Those above the first number and up to the second were found damaged, though each of their
     * files may be there and as long as it was. Equal: none was. */
    uint64_t damaged_above, damaged_to;
};

/* Removes all but those that stay, and whatever was begun and not finished. Only those that are
 * whole count: one that lacks a file or is damaged takes the place of none. `missing`, which may be
 * NULL, then has words about the newest that lacks a file. */
void rm_checkpoint_prune(const char *run_directory, const struct rm_checkpoints_kept *kept,
                         struct rm_error *missing);

/* Can the run's checkpoints be looked at? That there are none is fine. */
int rm_checkpoints_readable(const char *run_directory, struct rm_error *error);

#endif
