#include "learner/native_worlds.h"

#include "learner/algo/actor_critic.h"
#include "learner/algo/parallel.h"
#include "shm/base/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- making ---------------------------------------------------------------------------------- */

static int make_parts(struct rm_native_worlds *n, const struct rm_native_worlds_spec *spec,
                      struct rm_error *error)
{
    struct rm_backend *members[RM_DEVICE_MEMBERS] = {spec->backend};
    const uint32_t devices = rm_parallel_devices(spec->backend), all = n->worlds;
    const uint32_t count = devices ? devices : 1;
    int rc = 0;
    if (devices)
        spec->backend->device->collective->members(spec->backend, members);
    for (uint32_t i = 0; i < count && !rc; i++) {
        const uint32_t first = (uint32_t)((uint64_t)all * i / count);
        const struct rm_native_part_spec part = {
            .session = spec->session,
            .policy = spec->policy,
            .seed = spec->seed,
            .backend = members[i],
            .number = i,
            .first = first,
            .worlds = (uint32_t)((uint64_t)all * (i + 1) / count) - first,
        };
        rc = rm_native_part_create(&n->part[n->count++], &part, error);
        n->rows[i] = &n->part[i].rows;
    }
    return rc;
}

int rm_native_worlds_create(struct rm_native_worlds *n, const struct rm_native_worlds_spec *spec,
                            struct rm_error *error)
{
    const uint32_t worlds = spec->session->experiment.actor.worlds;
    size_t bytes = 0;
    *n = (struct rm_native_worlds){.worlds = worlds};
    const int rc = make_parts(n, spec, error);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < n->count; i++)
        bytes += n->part[i].state_bytes;
    n->host = malloc(bytes ? bytes : 1);
    n->scratch = calloc(worlds + 1, 2 * sizeof *n->scratch);
    if (!n->host || !n->scratch)
        return rm_fail(error, -ENOMEM, "no memory for %u worlds", worlds);
    char *host = n->host;
    for (uint32_t i = 0; i < n->count; host += n->part[i++].state_bytes)
        n->part[i].host = host;
    return 0;
}

int rm_native_worlds_join(struct rm_native_worlds *n, struct rm_actor_critic *learner,
                          struct rm_error *error)
{
    int rc = 0;
    for (uint32_t i = 0; i < n->count && !rc; i++)
        rc = rm_native_part_join(&n->part[i], rm_actor_critic_replica(learner, i), error);
    return rc;
}

void rm_native_worlds_destroy(struct rm_native_worlds *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        rm_native_part_destroy(&n->part[i]);
    free(n->host);
    free(n->scratch);
    *n = (struct rm_native_worlds){0};
}

const struct rm_rollout *const *rm_native_worlds_others(const struct rm_native_worlds *n)
{
    return n->count > 1 ? n->rows + 1 : NULL;
}

/* --- acting ---------------------------------------------------------------------------------- */

void rm_native_worlds_make(struct rm_native_worlds *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        rm_native_part_begin(&n->part[i]);
    for (uint32_t t = 0; t < n->rows[0]->steps; t++)
        for (uint32_t i = 0; i < n->count; i++)
            rm_native_part_step(&n->part[i], t);
    for (uint32_t i = 0; i < n->count; i++)
        rm_native_part_end(&n->part[i]);
}

/* --- state ----------------------------------------------------------------------------------- */

static void worlds_state(struct rm_native_worlds *n, struct rm_state *s)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < n->count; i++) {
        bytes += n->part[i].state_bytes;
        if (!rm_state_loading(s))
            rm_native_part_fetch(&n->part[i]);
    }
    rm_state_bytes(s, "worlds", n->host, bytes);
    /* If rm_state_only() leaves the worlds out, their initial state is copied back. */
    for (uint32_t i = 0; i < n->count && rm_state_loading(s); i++) {
        struct rm_error error = {""};
        const int rc = rm_native_part_send(&n->part[i], &error);
        if (rc)
            rm_state_fail(s, rc, "%s", error.text);
    }
}

/* `bytes` on a device to or from the host's `at`: whole words are copied. */
static void copy_words(struct rm_native_worlds *n, struct rm_backend *b, bool loading, void *there,
                       char *at, size_t bytes)
{
    const size_t words = (bytes + 3) / 4;
    if (loading) {
        memcpy(n->scratch, at, bytes);
        b->ops->upload(b, there, n->scratch, words);
        return;
    }
    b->ops->download(b, n->scratch, there, words);
    memcpy(at, n->scratch, bytes);
}

/* The array of a member of struct rm_device_worlds: `each` bytes of every world. */
static void column_state(struct rm_native_worlds *n, struct rm_state *s, const char *name,
                         size_t member, size_t each)
{
    char *at = rm_state_part(s, name, RM_STATE_BYTES, n->worlds * each);
    for (uint32_t i = 0; i < n->count && at; i++) {
        struct rm_native_part *p = &n->part[i];
        const size_t bytes = p->on.worlds * each;
        void *there;
        memcpy(&there, (const char *)&p->on + member, sizeof there);
        copy_words(n, p->backend, rm_state_loading(s), there, at, bytes);
        at += bytes;
    }
}

/* The same on all devices. */
static void stage_state(struct rm_native_worlds *n, struct rm_state *s)
{
    const size_t bytes = offsetof(struct rm_device_stage, row);
    char *at = rm_state_part(s, "stage", RM_STATE_BYTES, bytes);
    const uint32_t count = rm_state_loading(s) ? n->count : 1;
    for (uint32_t i = 0; i < count && at; i++)
        copy_words(n, n->part[i].backend, rm_state_loading(s), n->part[i].on.stage, at, bytes);
}

#define COLUMN(name, each) column_state(n, s, #name, offsetof(struct rm_device_worlds, name), each)

void rm_native_worlds_state(struct rm_native_worlds *n, struct rm_state *s)
{
    rm_state_enter(s, "worlds");
    worlds_state(n, s);
    COLUMN(reward, sizeof(float));
    COLUMN(flags, 1);
    COLUMN(score, sizeof(double));
    stage_state(n, s);
    rm_state_leave(s);
}
