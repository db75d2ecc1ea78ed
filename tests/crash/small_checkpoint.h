/* small_checkpoint: a checkpoint of a few kilobytes with a file of every kind, written as the
 * daemon, an actor and a learner write theirs. */
#ifndef RM_TESTS_CRASH_SMALL_CHECKPOINT_H
#define RM_TESTS_CRASH_SMALL_CHECKPOINT_H

#include "shm/session/session.h"
#include "daemon/checkpoint_files.h"
#include "learner/state_file.h"
#include "shm/base/state.h"
#include "tests/support/tensors.h"
#include "tests/support/unit.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_ROWS 300
#define SMALL_KEEP 2

/* A folder that is on no slow disk; by its name one sees whether its process still runs. */
static inline int small_folder(char path[64])
{
    snprintf(path, 64, "%s/rm-disk-%d-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
             (int)getpid());
    return mkdtemp(path) ? 0 : -1;
}

/* Something that depends on the number and hardly compresses. */
static inline void small_rows(uint64_t number, float rows[SMALL_ROWS])
{
    for (uint64_t i = 0; i < SMALL_ROWS; i++)
        rows[i] = (float)((number * 2654435761u + i * i * 40503u) % 65521u);
}

static inline struct rm_state *small_state(uint64_t number)
{
    struct rm_state *state;
    float rows[SMALL_ROWS];
    small_rows(number, rows);
    if (rm_state_create(&state, NULL))
        return NULL;
    RM_STATE(state, "number", number);
    rm_state_floats(state, "rows", rows, SMALL_ROWS);
    return state;
}

static inline int small_archive(const char *folder, const char *part, uint64_t number)
{
    char path[RM_SESSION_PATH_MAX];
    struct rm_state *state = small_state(number);
    int rc = rm_session_checkpoint_file(folder, part, 0, "state", path, NULL);
    if (rc == 0)
        rc = rm_state_write(state, path, RM_STATE_ALL, NULL);
    rm_state_destroy(state);
    return rc;
}

static inline int small_learner(const char *folder, uint64_t number)
{
    char path[RM_SESSION_PATH_MAX + 32];
    float rows[SMALL_ROWS];
    struct rm_state *state = small_state(number);
    int rc = rm_learner_state_write(state, folder, 0, NULL);
    rm_state_destroy(state);
    small_rows(number, rows);
    const struct rm_tensor tensor = {
        .name = "weight", .dims = 1, .shape = {SMALL_ROWS}, .data = rows};
    snprintf(path, sizeof path, "%.*s/policies/a.safetensors", RM_SESSION_PATH_MAX, folder);
    return rc ? rc : rm_safetensors_write(path, &tensor, 1, NULL, NULL);
}

/* All of it: what a checkpoint that was made returns is 0. */
static inline int small_make(const char *run, uint64_t number, const json_t *config)
{
    char folder[RM_SESSION_PATH_MAX];
    struct rm_checkpoint_facts facts = {.run = "t",
                                        .number = number,
                                        .step = 100 * number,
                                        .score = (double)number,
                                        .config = json_deep_copy(config)};
    int rc = rm_checkpoint_begin(run, number, NULL);
    if (rc == 0)
        rc = rm_session_checkpoint_folder(run, number, true, folder, NULL);
    if (rc == 0)
        rc = small_archive(folder, "shared", number);
    if (rc == 0)
        rc = small_archive(folder, "actor", number);
    if (rc == 0)
        rc = small_learner(folder, number);
    if (rc == 0)
        rc = rm_checkpoint_seal(run, &facts, NULL, NULL);
    if (rc == 0)
        rm_checkpoint_prune(run, &(struct rm_checkpoints_kept){.newest = SMALL_KEEP, .best = true},
                            NULL);
    else
        rm_checkpoint_abandon(run, number);
    rm_checkpoint_facts_free(&facts);
    return rc;
}

/* --- reading --------------------------------------------------------------------------------- */

static inline bool small_state_is(struct rm_state *state, uint64_t number)
{
    float rows[SMALL_ROWS], read[SMALL_ROWS] = {0};
    uint64_t named = 0;
    small_rows(number, rows);
    rm_state_load(state);
    RM_STATE(state, "number", named);
    rm_state_floats(state, "rows", read, SMALL_ROWS);
    const bool good =
        rm_state_end(state, NULL) == 0 && named == number && memcmp(rows, read, sizeof rows) == 0;
    rm_state_destroy(state);
    return good;
}

static inline bool small_archive_is(const char *folder, const char *part, uint64_t number)
{
    char path[RM_SESSION_PATH_MAX];
    struct rm_state *state;
    return rm_session_checkpoint_file(folder, part, 0, "state", path, NULL) == 0 &&
           rm_state_create(&state, NULL) == 0 && rm_state_read(state, path, NULL) == 0 &&
           small_state_is(state, number);
}

/* Every file of it reads back as what was written for `number`. */
static inline bool small_is(const char *folder, uint64_t number)
{
    char path[RM_SESSION_PATH_MAX + 32];
    struct rm_safetensors file;
    float rows[SMALL_ROWS];
    struct rm_state *state;
    if (!small_archive_is(folder, "shared", number) || !small_archive_is(folder, "actor", number) ||
        rm_state_create(&state, NULL) || rm_learner_state_read(state, folder, 0, NULL) ||
        !small_state_is(state, number))
        return false;
    snprintf(path, sizeof path, "%.*s/policies/a.safetensors", RM_SESSION_PATH_MAX, folder);
    if (rm_safetensors_read(&file, path, NULL))
        return false;
    small_rows(number, rows);
    const struct rm_tensor *tensor = rm_test_tensor(&file, "weight");
    const bool good = tensor && memcmp(tensor->data, rows, sizeof rows) == 0;
    rm_safetensors_close(&file);
    return good;
}

#endif
