/* offline: reads the rows of recordings as a policy's replay (`sample.from`, the folder of one or a
 * pattern of several). The learner fills rings of its own with the rows, one ring for each stream,
 * and its sampler draws from them as from actors' rings. No other code uses these rings.
 * Checkpoints do not contain the rows: a resumed learner reads the recordings again, and compares
 * their hash with the checkpoint's.
 *
 * A new generation begins after lost rows, and at the first row of another writer. No transition
 * crosses the beginning of a generation. Used by the learner's thread. */
#ifndef RM_LEARNER_OFFLINE_H
#define RM_LEARNER_OFFLINE_H

#include "learner/recording.h"
#include "learner/sampler.h"
#include "shm/session/session.h"

#include <glob.h>

struct rm_offline {
    uint32_t count; /* streams of the policy */
    struct rm_ring *ring;
    struct rm_sampler_source *source; /* (count), as the sampler takes them */
    uint64_t rows;                    /* of the longest stream */
    uint32_t lanes;                   /* of all streams */
    uint64_t hash;                    /* of the recordings' chunks */
};

/* Checks that the experiment's recordings have the observations and actions of its policies. Reads
 * no rows. Returns 0, also without a recording; -ENOENT, -EINVAL or -EBADMSG with a message. */
int rm_offline_check(const struct rm_experiment *experiment, const struct rm_plan *plan,
                     struct rm_error *error);

/* Makes the same checks, then reads all rows of a policy, one of whose agents is `agent`. -EBADMSG:
 * a chunk is damaged; the message has its number and position. */
int rm_offline_open(struct rm_offline *offline, const struct rm_experiment *experiment,
                    const struct rm_plan *plan, uint32_t policy, const struct rm_env_agent *agent,
                    struct rm_error *error);
void rm_offline_close(struct rm_offline *offline);

/* --- for all that learns from recordings (histories.h too) ------------------------------------ */

/* The folders that `from` names, in the order of their names. If a folder has exactly this name, it
 * is the only one; otherwise `from` is a pattern. Forget them also after an error. `from` outlives
 * them. */
struct rm_offline_folders {
    size_t count;
    const char *only; /* the folder with this name; NULL: those that the pattern matches */
    glob_t paths;
};
int rm_offline_find(struct rm_offline_folders *folders, const char *from, struct rm_error *error);
const char *rm_offline_folder(const struct rm_offline_folders *folders, size_t number);
void rm_offline_forget(struct rm_offline_folders *folders);

/* Opens a recording of all steps of the experiment's world; any other is refused. */
int rm_offline_recording_open(struct rm_recording *recording, const char *folder,
                              const struct rm_experiment *experiment, struct rm_error *error);

/* Refuses a recording whose streams of the policy do not fit it, or that has none. Sets *count to
 * the number of these streams. */
int rm_offline_recording_check(const struct rm_recording *recording,
                               const struct rm_experiment *experiment,
                               const struct rm_policy_plan *plan, const struct rm_env_agent *agent,
                               uint32_t *count, struct rm_error *error);

/* The experiment whose run made a recording; free(*experiment), also after an error. */
int rm_offline_experiment(const struct rm_recording *recording, struct rm_experiment **experiment,
                          struct rm_error *error);

/* rm_recording_read() of a span's chunk, one entry a row. */
int rm_offline_read(struct rm_recording *recording, const struct rm_recording_span *span,
                    void *columns[RM_RECORDING_COLUMNS], struct rm_error *error);

/* The hash of a recording's chunks, continued from the hash of other recordings or 0. */
uint64_t rm_offline_hash(const struct rm_recording *recording, uint64_t before);

#endif
