#include "learner/state_file.h"

#include "learner/net/safetensors.h"

#include <errno.h>
#include <stdlib.h>

static int write_tensors(const struct rm_state *state, const char *path, struct rm_error *error)
{
    struct rm_tensor *tensors = calloc(rm_state_count(state) + 1, sizeof *tensors);
    size_t n = 0;
    if (!tensors)
        return rm_fail(error, -ENOMEM, "%s: no memory for its tensors", path);
    for (size_t i = 0; i < rm_state_count(state); i++) {
        const struct rm_state_part *p = rm_state_at(state, i);
        if (p->kind == RM_STATE_FLOATS)
            tensors[n++] = (struct rm_tensor){
                .name = p->name, .dims = 1, .shape = {p->bytes / sizeof(float)}, .data = p->data};
    }
    const int rc = rm_safetensors_write(path, tensors, n, NULL, error);
    free(tensors);
    return rc;
}

static int read_tensors(struct rm_state *state, const char *path, struct rm_error *error)
{
    struct rm_safetensors file;
    int rc = rm_safetensors_read(&file, path, error);
    if (rc)
        return rc;
    for (size_t i = 0; rc == 0 && i < file.count; i++) {
        const struct rm_tensor *t = &file.tensors[i];
        size_t bytes = sizeof(float);
        for (uint32_t d = 0; d < t->dims; d++)
            bytes *= t->shape[d];
        rc = rm_state_add(state, t->name, RM_STATE_FLOATS, t->data, bytes, error);
    }
    rm_safetensors_close(&file);
    return rc;
}

static int names(const char *folder, uint32_t policy, char *tensors, char *rest,
                 struct rm_error *error)
{
    int rc = rm_session_checkpoint_file(folder, "learner", policy, "safetensors", tensors, error);
    return rc ? rc : rm_session_checkpoint_file(folder, "learner", policy, "state", rest, error);
}

int rm_learner_state_write(const struct rm_state *state, const char *folder, uint32_t policy,
                           struct rm_error *error)
{
    char tensors[RM_SESSION_PATH_MAX], rest[RM_SESSION_PATH_MAX];
    int rc = names(folder, policy, tensors, rest, error);
    if (!rc)
        rc = write_tensors(state, tensors, error);
    return rc ? rc : rm_state_write(state, rest, 1u << RM_STATE_BYTES, error);
}

int rm_learner_state_read(struct rm_state *state, const char *folder, uint32_t policy,
                          struct rm_error *error)
{
    char tensors[RM_SESSION_PATH_MAX], rest[RM_SESSION_PATH_MAX];
    int rc = names(folder, policy, tensors, rest, error);
    if (!rc)
        rc = read_tensors(state, tensors, error);
    return rc ? rc : rm_state_read(state, rest, error);
}
