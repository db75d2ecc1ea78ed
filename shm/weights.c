#include "shm/weights.h"

#include "shm/base/clock.h"
#include "shm/base/fault.h"
#include "shm/base/state.h"
#include "shm/copy.h"
#include "shm/layout.h"

#include <errno.h>
#include <stdio.h>

#define ARENA_ALIGN 4096u
#define COUNT_MAX   (1ull << 40)

static uint64_t arena_bytes(uint64_t count)
{
    return (count * sizeof(float) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

static uint64_t data_at(void)
{
    return (sizeof(struct rm_weights_shared) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

int rm_weights_create(struct rm_weights *weights, uint32_t policy, uint64_t count,
                      uint64_t act_count, struct rm_error *error)
{
    *weights = (struct rm_weights){.region.fd = -1};
    if (count == 0 || count > COUNT_MAX || act_count > count)
        return rm_fail(error, -EINVAL,
                       "weights of policy %u: %llu floats, %llu of them to act; the number of "
                       "floats must be 1 to 2^40, and of those to act not larger",
                       policy, (unsigned long long)count, (unsigned long long)act_count);
    char name[RM_REGION_NAME_MAX];
    snprintf(name, sizeof name, "rm-weights-p%u", policy);
    uint64_t bytes = data_at() + RM_WEIGHTS_SLOTS * arena_bytes(count);
    int rc = rm_region_create(&weights->region, RM_REGION_WEIGHTS, name, bytes, error);
    if (!weights->region.base)
        return rc;
    weights->shared = weights->region.base;
    weights->shared->count = weights->count = count;
    weights->shared->act_count = weights->act_count = act_count;
    weights->shared->slot_bytes = arena_bytes(count);
    weights->shared->data_at = data_at();
    weights->shared->policy = policy;
    rm_region_publish(&weights->region);
    return 0;
}

/* The latest version and the one before are in their slots, even if a writer died while it filled
 * the third. May also be false while a writer publishes two more versions; a caller that then reads
 * `latest` again sees it changed, by W0 and, as its version comes after W1, by RM_SEE(). */
static bool versions_stand(const struct rm_weights_shared *shared, uint64_t latest)
{
    for (uint64_t version = latest; version > 0 && latest - version < 2; version--) {
        const struct rm_weights_slot *slot = &shared->slot[version % RM_WEIGHTS_SLOTS];
        if ((rm_atomic_weights_sequence(&slot->sequence) & 1) || RM_SEE(&slot->version) != version)
            return false;
    }
    return true;
}

static bool versions_fit(const struct rm_weights_shared *shared)
{
    for (int look = 0; look < 1000; look++) {
        const uint64_t latest = rm_atomic_weights_named(&shared->latest);
        if (versions_stand(shared, latest))
            return true;
        if (rm_atomic_weights_named(&shared->latest) == latest)
            return false;
    }
    return true;
}

int rm_weights_attach(struct rm_weights *weights, int fd, bool writable, struct rm_error *error)
{
    *weights = (struct rm_weights){.region.fd = -1};
    int rc = rm_region_attach(&weights->region, fd, RM_REGION_WEIGHTS, writable, error);
    if (rc != RM_ATTACH_OK)
        return rc;
    struct rm_weights_shared *shared = weights->region.base;
    uint64_t count = 0, act_count = 0, bytes = 0;
    if (weights->region.bytes >= data_at()) {
        count = shared->count;
        act_count = shared->act_count;
        bytes = data_at() + RM_WEIGHTS_SLOTS * arena_bytes(count);
    }
    if (count == 0 || count > COUNT_MAX || act_count > count || bytes != weights->region.bytes) {
        rc = rm_fail(
            error, -EPROTO,
            "weights: %llu floats, %llu of them to act, need %llu bytes, the region has %zu",
            (unsigned long long)count, (unsigned long long)act_count, (unsigned long long)bytes,
            weights->region.bytes);
        rm_weights_close(weights);
        return rc;
    }
    if (!versions_fit(shared)) {
        rc = rm_fail(error, -EPROTO,
                     "weights: `latest` names version %llu, but the slots have other versions",
                     (unsigned long long)RM_PEEK(&shared->latest));
        rm_weights_close(weights);
        return rc;
    }
    weights->shared = shared;
    weights->count = count;
    weights->act_count = act_count;
    return RM_ATTACH_OK;
}

void rm_weights_close(struct rm_weights *weights)
{
    rm_region_close(&weights->region);
    *weights = (struct rm_weights){.region.fd = -1};
}

static struct rm_weights_slot *slot_of(const struct rm_weights *weights, uint64_t version)
{
    return &weights->shared->slot[version % RM_WEIGHTS_SLOTS];
}

static void *arena_of(const struct rm_weights *weights, uint64_t version)
{
    return (uint8_t *)weights->region.base + data_at() +
           (version % RM_WEIGHTS_SLOTS) * arena_bytes(weights->count);
}

uint64_t rm_weights_publish(struct rm_weights *weights, const float *params,
                            struct rm_weights_stamp stamp)
{
    /* After a writer died, `latest` still names the last complete version, and the slot after it
     * may be torn. This call fills that slot. */
    const uint64_t version = RM_PEEK(&weights->shared->latest) + 1;
    struct rm_weights_slot *slot = slot_of(weights, version);
    uint8_t *arena = arena_of(weights, version);
    const size_t bytes = weights->count * sizeof(float), half = bytes / 16 * 8;

    RM_FAULT("weights.publish.before");
    uint64_t odd = rm_atomic_weights_begin(&slot->sequence);
    RM_FAULT("weights.publish.begun");
    RM_POKE(&slot->version, version);
    RM_POKE(&slot->updates, stamp.updates);
    RM_POKE(&slot->round, stamp.round);
    RM_POKE(&slot->time_ns, stamp.time_ns ? stamp.time_ns : rm_now_ns());
    RM_POKE(&slot->env_steps, stamp.env_steps);
    RM_FAULT("weights.publish.stamped");
    rm_copy_to_shared(arena, params, half);
    RM_FAULT("weights.publish.half");
    rm_copy_to_shared(arena + half, (const uint8_t *)params + half, bytes - half);
    RM_FAULT("weights.publish.filled");
    rm_atomic_weights_end(&slot->sequence, odd);
    RM_FAULT("weights.publish.sealed");
    rm_atomic_weights_name(&weights->shared->latest, version);
    RM_FAULT("weights.publish.after");
    return version;
}

/* Copies version `version` and its stamp. False when its slot has another version, is being filled,
 * or was filled during the copy. */
static bool read_version(const struct rm_weights *weights, uint64_t version, float *params,
                         uint64_t n, struct rm_weights_stamp *stamp)
{
    const struct rm_weights_slot *slot = slot_of(weights, version);
    uint64_t sequence = rm_atomic_weights_sequence(&slot->sequence);
    if ((sequence & 1) || RM_PEEK(&slot->version) != version)
        return false;
    struct rm_weights_stamp seen = {
        .version = version,
        .updates = RM_PEEK(&slot->updates),
        .round = RM_PEEK(&slot->round),
        .time_ns = RM_PEEK(&slot->time_ns),
        .env_steps = RM_PEEK(&slot->env_steps),
    };
    if (n > 0)
        rm_copy_from_shared(params, arena_of(weights, version), n * sizeof(float));
    if (rm_atomic_weights_recheck(&slot->sequence) != sequence)
        return false;
    *stamp = seen;
    return true;
}

int rm_weights_read(const struct rm_weights *weights, float *params, uint64_t n,
                    struct rm_weights_stamp *stamp, uint64_t *retries)
{
    if (n > weights->count)
        n = weights->count;
    for (;;) {
        uint64_t version = rm_atomic_weights_named(&weights->shared->latest);
        if (version == 0) {
            *stamp = (struct rm_weights_stamp){0};
            return 0;
        }
        if (read_version(weights, version, params, n, stamp))
            return 1;
        if (retries)
            ++*retries;
    }
}

struct rm_weights_stamp rm_weights_latest(const struct rm_weights *weights)
{
    struct rm_weights_stamp stamp;
    rm_weights_read(weights, NULL, 0, &stamp, NULL);
    return stamp;
}

int rm_weights_read_version(const struct rm_weights *weights, uint64_t version, float *params,
                            uint64_t n, struct rm_weights_stamp *stamp)
{
    if (n > weights->count)
        n = weights->count;
    return version > 0 && version <= rm_atomic_weights_named(&weights->shared->latest) &&
           read_version(weights, version, params, n, stamp);
}

int rm_weights_read_before(const struct rm_weights *weights, uint64_t round, float *params,
                           uint64_t n, struct rm_weights_stamp *stamp)
{
    if (n > weights->count)
        n = weights->count;
    for (;;) {
        uint64_t latest = rm_atomic_weights_named(&weights->shared->latest);
        uint64_t oldest = latest >= RM_WEIGHTS_SLOTS ? latest - RM_WEIGHTS_SLOTS + 1 : 1;
        uint64_t version = latest;
        for (; version >= oldest; version--) {
            struct rm_weights_stamp seen;
            if (!read_version(weights, version, NULL, 0, &seen))
                break;
            if (seen.round >= round)
                continue;
            if (read_version(weights, version, params, n, stamp))
                return 1;
            break;
        }
        if (version < oldest || latest - version == RM_WEIGHTS_SLOTS - 1) {
            /* All kept versions are of this round or later, or the oldest, which may be of an
             * earlier round, is being overwritten. The newer two are not overwritten unless
             * `latest` moved. */
            *stamp = (struct rm_weights_stamp){0};
            return 0;
        }
    }
}

static void slot_state(struct rm_weights *weights, uint32_t i, struct rm_state *s)
{
    static const char *const names[RM_WEIGHTS_SLOTS] = {"slot0", "slot1", "slot2"};
    struct rm_weights_slot *slot = &weights->shared->slot[i];
    rm_state_enter(s, names[i]);
    RM_STATE(s, "version", slot->version);
    RM_STATE(s, "updates", slot->updates);
    RM_STATE(s, "round", slot->round);
    RM_STATE(s, "env_steps", slot->env_steps);
    if (RM_PEEK(&slot->version) > 0)
        rm_state_floats(s, "params", arena_of(weights, i), weights->count);
    rm_state_leave(s);
    if (rm_state_loading(s))
        RM_POKE(&slot->time_ns, rm_now_ns()); /* the saved time may be of another boot */
}

void rm_weights_state(struct rm_weights *weights, struct rm_state *s)
{
    for (uint32_t i = 0; i < RM_WEIGHTS_SLOTS; i++)
        slot_state(weights, i, s);
    RM_STATE(s, "latest", weights->shared->latest);
    if (rm_state_loading(s) && !versions_stand(weights->shared, RM_PEEK(&weights->shared->latest)))
        rm_state_fail(s, -EPROTO, "the latest version is %llu, but the slots have other versions",
                      (unsigned long long)RM_PEEK(&weights->shared->latest));
}
