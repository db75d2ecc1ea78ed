#include "shm/ring.h"

#include "shm/base/fault.h"
#include "shm/base/state.h"
#include "shm/copy.h"
#include "shm/layout.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define COLUMN_ALIGN   64u
#define ROWS_MIN       4u
#define ROWS_MAX       (1u << 30)
#define RING_BYTES_MAX (1ull << 46) /* more than any host has, so that sums do not overflow */

static size_t aligned(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* What is wrong with a spec, or NULL. */
static const char *refusal(const struct rm_ring_spec *spec)
{
    if (spec->mode != RM_RING_REPLAY && spec->mode != RM_RING_ROLLOUT)
        return "its mode is neither replay nor rollout";
    if (spec->rows < ROWS_MIN || spec->rows > ROWS_MAX || (spec->rows & (spec->rows - 1)) != 0)
        return "rows must be a power of two from 4 to 2^30";
    if (spec->lanes == 0)
        return "it needs at least one lane";
    if (spec->obs_bytes == 0 || spec->action_words == 0)
        return "observations and actions must have a size";
    if (((spec->columns & RM_COLUMN_MASK) != 0) != (spec->mask_bytes != 0))
        return "mask_bytes goes with the mask column";
    if (((spec->columns & RM_COLUMN_STATE) != 0) != (spec->state_floats != 0))
        return "state_floats goes with the state column";
    if (spec->record_wait > 1)
        return "record_wait must be 0 or 1";
    if (spec->columns &
        ~(unsigned)(RM_COLUMN_MASK | RM_COLUMN_LOGP | RM_COLUMN_VALUE | RM_COLUMN_STATE))
        return "it has a column that does not exist";
    return NULL;
}

/* Number of slots for states behind the rows: enough for any `rows` consecutive rows, wherever they
 * begin. */
static uint64_t state_slots(const struct rm_ring_spec *spec)
{
    return spec->rows / spec->state_every + 2;
}

/* 0: the states are in the rows. */
static uint64_t states_behind(const struct rm_ring_spec *spec)
{
    return spec->state_floats && spec->state_every > 1 ? state_slots(spec) : 0;
}

/* Computes the offsets of a row's columns. Returns the stride; 0 when rows would be absurdly
 * large. */
static size_t place_columns(struct rm_ring *ring, const struct rm_ring_spec *spec)
{
    const uint64_t lanes = spec->lanes;
    /* Each factor is below 2^32, so a product of two does not overflow; the products below need
     * this bound. */
    if (lanes * spec->action_words > RING_BYTES_MAX || lanes * spec->state_floats > RING_BYTES_MAX)
        return 0;
    const struct {
        size_t *at;
        uint64_t bytes; /* 0: not there */
    } columns[] = {
        {&ring->obs_at, lanes * spec->obs_bytes},
        {&ring->mask_at, lanes * spec->mask_bytes},
        {&ring->reward_at, lanes * sizeof(float)},
        {&ring->flags_at, lanes},
        {&ring->action_at, lanes * (uint64_t)spec->action_words * sizeof(int32_t)},
        {&ring->logp_at, spec->columns & RM_COLUMN_LOGP ? lanes * sizeof(float) : 0},
        {&ring->value_at, spec->columns & RM_COLUMN_VALUE ? lanes * sizeof(float) : 0},
        {&ring->state_at,
         states_behind(spec) ? 0 : lanes * (uint64_t)spec->state_floats * sizeof(float)},
    };
    uint64_t at = sizeof(struct rm_row_head);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        *columns[i].at = columns[i].bytes ? (size_t)at : 0;
        at += aligned(columns[i].bytes, COLUMN_ALIGN);
        if (at > RING_BYTES_MAX)
            return 0;
    }
    return (size_t)at;
}

static size_t ring_bytes(struct rm_ring *ring, const struct rm_ring_spec *spec)
{
    if (refusal(spec))
        return 0;
    ring->row_bytes = place_columns(ring, spec);
    if (ring->row_bytes == 0 || ring->row_bytes > RING_BYTES_MAX / spec->rows)
        return 0;
    const uint64_t states = states_behind(spec), rows = ring->row_bytes * spec->rows;
    ring->state_bytes =
        aligned((uint64_t)spec->lanes * spec->state_floats * sizeof(float), COLUMN_ALIGN);
    if (states && ring->state_bytes > (RING_BYTES_MAX - rows) / states)
        return 0;
    return sizeof(struct rm_ring_shared) + rows + ring->state_bytes * states;
}

size_t rm_ring_bytes(const struct rm_ring_spec *spec)
{
    struct rm_ring scratch;
    return ring_bytes(&scratch, spec);
}

/* Fills the process's view of a mapped ring. */
static void adopt(struct rm_ring *ring, const struct rm_ring_spec *spec)
{
    ring->shared = ring->region.base;
    ring->spec = *spec;
    ring->mask = spec->rows - 1;
    ring->data = (uint8_t *)ring->region.base + sizeof(struct rm_ring_shared);
    ring->states = states_behind(spec) ? ring->data + ring->row_bytes * spec->rows : NULL;
    ring->consumed_seen = RM_PEEK(&ring->shared->consumed);
}

int rm_ring_create(struct rm_ring *ring, const struct rm_ring_spec *spec, struct rm_error *error)
{
    *ring = (struct rm_ring){.region.fd = -1};
    const char *why = refusal(spec);
    if (why)
        return rm_fail(error, -EINVAL,
                       "ring of actor %u, policy %u (rows %u, lanes %u, obs_bytes %u): %s",
                       spec->actor, spec->policy, spec->rows, spec->lanes, spec->obs_bytes, why);
    size_t bytes = ring_bytes(ring, spec);
    if (bytes == 0)
        return rm_fail(error, -EINVAL,
                       "ring of actor %u, policy %u: %u rows of %u lanes of %u bytes are too many",
                       spec->actor, spec->policy, spec->rows, spec->lanes, spec->obs_bytes);
    char name[RM_REGION_NAME_MAX];
    snprintf(name, sizeof name, "rm-ring-a%u-p%u", spec->actor, spec->policy);
    int rc = rm_region_create(&ring->region, RM_REGION_RING, name, bytes, error);
    if (!ring->region.base)
        return rc;

    struct rm_ring_shared *shared = ring->region.base;
    shared->spec = *spec;
    shared->row_bytes = ring->row_bytes;
    shared->data_at = sizeof *shared;
    RM_POKE(&shared->reserved, spec->first_index);
    RM_POKE(&shared->committed, spec->first_index);
    RM_POKE(&shared->offered, spec->first_index);
    RM_POKE(&shared->consumed, spec->first_index);
    adopt(ring, spec);
    rm_region_publish(&ring->region);
    return 0;
}

/* Are these indices possible? No row is below the first index. */
static bool fit(const struct rm_ring_spec *spec, uint64_t reserved, uint64_t committed,
                uint64_t consumed)
{
    const uint64_t in_hand = reserved - committed;
    return in_hand <= 1 && in_hand <= reserved - spec->first_index &&
           (spec->mode != RM_RING_ROLLOUT || committed - consumed <= spec->rows);
}

/* Do the ring's indices fit together? A working writer or consumer may change them between the
 * reads; then the indices differ on a second read and are read again. The order of the reads
 * matters: a row that is reserved has the row before it committed (R0); a row that is committed is
 * reserved (R2) and has its credit (R7). */
static bool indices_fit(const struct rm_ring *ring)
{
    const struct rm_ring_shared *shared = ring->shared;
    for (int look = 0; look < 1000; look++) {
        const uint64_t reserved = RM_SEE(&shared->reserved), consumed = RM_SEE(&shared->consumed);
        const uint64_t committed = RM_SEE(&shared->committed);
        if (fit(&ring->spec, reserved, committed, consumed))
            return true;
        if (RM_SEE(&shared->reserved) == reserved && RM_SEE(&shared->consumed) == consumed)
            return false;
    }
    return true;
}

int rm_ring_attach(struct rm_ring *ring, int fd, bool writable, struct rm_error *error)
{
    *ring = (struct rm_ring){.region.fd = -1};
    int rc = rm_region_attach(&ring->region, fd, RM_REGION_RING, writable, error);
    if (rc != RM_ATTACH_OK)
        return rc;
    if (ring->region.bytes < sizeof(struct rm_ring_shared)) {
        rc = rm_fail(error, -EPROTO,
                     "ring: a region of %zu bytes is too small for the %zu-byte header",
                     ring->region.bytes, sizeof(struct rm_ring_shared));
        rm_ring_close(ring);
        return rc;
    }
    /* A copy, so that the spec cannot change after it was checked. */
    const struct rm_ring_spec spec = ((struct rm_ring_shared *)ring->region.base)->spec;
    size_t bytes = ring_bytes(ring, &spec);
    if (bytes == 0 || bytes != ring->region.bytes) {
        const char *why = refusal(&spec);
        rc = rm_fail(
            error, -EPROTO,
            "ring of actor %u, policy %u: its spec needs %zu bytes, the region has %zu%s%s",
            spec.actor, spec.policy, bytes, ring->region.bytes, why ? ": " : "", why ? why : "");
        rm_ring_close(ring);
        return rc;
    }
    adopt(ring, &spec);
    if (!indices_fit(ring)) {
        rc = rm_fail(error, -EPROTO,
                     "ring of actor %u, policy %u: reserved %llu, committed %llu, consumed %llu of "
                     "%u rows contradict each other",
                     spec.actor, spec.policy, (unsigned long long)RM_PEEK(&ring->shared->reserved),
                     (unsigned long long)RM_PEEK(&ring->shared->committed),
                     (unsigned long long)RM_PEEK(&ring->shared->consumed), spec.rows);
        rm_ring_close(ring);
        return rc;
    }
    return RM_ATTACH_OK;
}

void rm_ring_close(struct rm_ring *ring)
{
    rm_region_close(&ring->region);
    *ring = (struct rm_ring){.region.fd = -1};
}

static float *state_of(const struct rm_ring *ring, uint64_t index, uint8_t *row)
{
    if (!ring->states)
        return ring->state_at ? (float *)(void *)(row + ring->state_at) : NULL;
    const uint64_t since = index - ring->spec.first_index, every = ring->spec.state_every;
    const uint64_t slot = since / every % state_slots(&ring->spec);
    return since % every ? NULL : (float *)(void *)(ring->states + slot * ring->state_bytes);
}

struct rm_row rm_ring_row(const struct rm_ring *ring, uint64_t index)
{
    uint8_t *row = ring->data + (size_t)(index & ring->mask) * ring->row_bytes;
    struct rm_row_head *head = (struct rm_row_head *)row;
    return (struct rm_row){
        .index = index,
        .obs = row + ring->obs_at,
        .mask = ring->mask_at ? row + ring->mask_at : NULL,
        .reward = (float *)(void *)(row + ring->reward_at),
        .flags = row + ring->flags_at,
        .action = (int32_t *)(void *)(row + ring->action_at),
        .logp = ring->logp_at ? (float *)(void *)(row + ring->logp_at) : NULL,
        .value = ring->value_at ? (float *)(void *)(row + ring->value_at) : NULL,
        .state = state_of(ring, index, row),
        .policy_version = &head->policy_version,
        .generation = &head->generation,
    };
}

uint64_t rm_ring_writer_open(struct rm_ring *ring)
{
    struct rm_ring_shared *shared = ring->shared;
    RM_FAULT("ring.open.before");
    RM_ADD_OWN(&shared->generation, 1);
    ring->consumed_seen = rm_atomic_ring_credit(&shared->consumed);
    ring->recorded_seen = rm_atomic_ring_credit(&shared->recorded);
    rm_atomic_ring_offer(&shared->offered, RM_PEEK(&shared->committed));
    RM_FAULT("ring.open.after");
    /* `reserved` stays where the dead writer put it: the dead writer may have overwritten part of
     * the old row there, so readers must still treat that row as overwritten. The next reserve
     * claims the same row again. */
    return RM_PEEK(&shared->reserved) - RM_PEEK(&shared->committed);
}

void rm_ring_writer_resume(struct rm_ring *ring, bool reserved, struct rm_row *row)
{
    struct rm_ring_shared *shared = ring->shared;
    ring->consumed_seen = rm_atomic_ring_credit(&shared->consumed);
    ring->recorded_seen = rm_atomic_ring_credit(&shared->recorded);
    if (reserved)
        *row = rm_ring_row(ring, RM_PEEK(&shared->committed));
}

int rm_ring_reserve(struct rm_ring *ring, struct rm_row *row)
{
    struct rm_ring_shared *shared = ring->shared;
    const uint64_t index = RM_PEEK(&shared->committed);
    RM_FAULT("ring.reserve.before");
    if (ring->spec.mode == RM_RING_ROLLOUT && index - ring->consumed_seen >= ring->spec.rows) {
        /* Read `consumed` only when the known credit is used up, to spare the consumer's cache
         * line. */
        ring->consumed_seen = rm_atomic_ring_credit(&shared->consumed);
        if (index - ring->consumed_seen >= ring->spec.rows)
            return 0;
    }
    if (ring->spec.record_wait && index - ring->recorded_seen >= ring->spec.rows) {
        ring->recorded_seen = rm_atomic_ring_credit(&shared->recorded);
        if (index - ring->recorded_seen >= ring->spec.rows)
            return 0;
    }
    rm_atomic_ring_reserve(&shared->reserved, index + 1);
    RM_FAULT("ring.reserve.reserved");
    *row = rm_ring_row(ring, index);
    *row->generation = RM_PEEK(&shared->generation);
    RM_FAULT("ring.reserve.after");
    return 1;
}

void rm_ring_offer(struct rm_ring *ring)
{
    RM_FAULT("ring.offer.before");
    rm_atomic_ring_offer(&ring->shared->offered, RM_PEEK(&ring->shared->committed) + 1);
    RM_FAULT("ring.offer.after");
}

void rm_ring_commit(struct rm_ring *ring)
{
    struct rm_ring_shared *shared = ring->shared;
    RM_FAULT("ring.commit.before");
    rm_atomic_ring_commit(&shared->committed, RM_PEEK(&shared->committed) + 1);
    RM_FAULT("ring.commit.after");
}

uint64_t rm_ring_committed(const struct rm_ring *ring)
{
    return rm_atomic_ring_committed(&ring->shared->committed);
}

void rm_ring_window(const struct rm_ring *ring, uint64_t *first, uint64_t *end)
{
    const uint64_t origin = ring->spec.first_index;
    *end = rm_atomic_ring_committed(&ring->shared->committed);
    uint64_t reserved = RM_PEEK(&ring->shared->reserved);
    /* Differences, not comparisons: indices wrap. */
    *first = reserved - origin > ring->spec.rows ? reserved - ring->spec.rows : origin;
    /* The writer may have moved on between the two loads. Then no row is certain to be readable. */
    if (*end - origin < *first - origin)
        *first = *end;
    /* Never more rows than the ring has, even if a foreign world damaged the indices. */
    if (*end - *first > ring->spec.rows)
        *first = *end - ring->spec.rows;
}

bool rm_ring_intact(const struct rm_ring *ring, uint64_t index)
{
    return rm_atomic_ring_recheck(&ring->shared->reserved) - index <= ring->spec.rows;
}

void rm_ring_copy_out(void *to, const void *row_data, size_t bytes)
{
    rm_copy_row_out(to, row_data, bytes);
}

uint64_t rm_ring_offered(const struct rm_ring *ring)
{
    return rm_atomic_ring_offered(&ring->shared->offered);
}

uint64_t rm_ring_consumed(const struct rm_ring *ring)
{
    return RM_PEEK(&ring->shared->consumed);
}

void rm_ring_consume(struct rm_ring *ring, uint64_t index)
{
    RM_FAULT("ring.consume.before");
    rm_atomic_ring_consume(&ring->shared->consumed, index);
    RM_FAULT("ring.consume.after");
}

void rm_ring_record(struct rm_ring *ring, uint64_t index)
{
    rm_atomic_ring_consume(&ring->shared->recorded, index);
}

uint64_t rm_ring_recorded(const struct rm_ring *ring)
{
    return RM_PEEK(&ring->shared->recorded);
}

/* Copies rows [end - n, end), oldest first, to or from a contiguous buffer. */
static void transfer_rows(struct rm_ring *ring, uint64_t end, uint64_t n, uint8_t *part, bool load)
{
    for (uint64_t i = 0; i < n; i++) {
        uint8_t *row = ring->data + (size_t)((end - n + i) & ring->mask) * ring->row_bytes;
        uint8_t *kept = part + i * ring->row_bytes;
        memcpy(load ? row : kept, load ? kept : row, ring->row_bytes);
    }
}

/* Refuse indices that no run could have produced: from a file, or written by a world. */
static void check_indices(const struct rm_ring *ring, uint64_t reserved, uint64_t offered,
                          uint64_t committed, uint64_t consumed, struct rm_state *s)
{
    if (!fit(&ring->spec, reserved, committed, consumed) || (int64_t)(offered - committed) > 1)
        rm_state_fail(s, -EPROTO,
                      "ring of actor %u, policy %u: reserved %llu, offered %llu, committed %llu, "
                      "consumed %llu of %u rows contradict each other",
                      ring->spec.actor, ring->spec.policy, (unsigned long long)reserved,
                      (unsigned long long)offered, (unsigned long long)committed,
                      (unsigned long long)consumed, ring->spec.rows);
}

void rm_ring_state(struct rm_ring *ring, struct rm_state *s)
{
    struct rm_ring_shared *shared = ring->shared;
    /* Copies, so that a world cannot change them after they were checked. */
    uint64_t reserved = RM_PEEK(&shared->reserved), committed = RM_PEEK(&shared->committed);
    uint64_t offered = RM_PEEK(&shared->offered), consumed = RM_PEEK(&shared->consumed);
    RM_STATE(s, "reserved", reserved);
    RM_STATE(s, "committed", committed);
    RM_STATE(s, "offered", offered);
    RM_STATE(s, "consumed", consumed);
    RM_STATE(s, "generation", shared->generation);
    check_indices(ring, reserved, offered, committed, consumed, s);
    const uint64_t made = reserved - ring->spec.first_index;
    const uint64_t held = made < ring->spec.rows ? made : ring->spec.rows;
    uint8_t *rows = rm_state_part(s, "rows", RM_STATE_BYTES, held * ring->row_bytes);
    if (!rows)
        return;
    transfer_rows(ring, reserved, held, rows, rm_state_loading(s));
    const size_t behind = states_behind(&ring->spec) * ring->state_bytes;
    uint8_t *states = behind ? rm_state_part(s, "states", RM_STATE_BYTES, behind) : NULL;
    if (states)
        memcpy(rm_state_loading(s) ? ring->states : states,
               rm_state_loading(s) ? states : ring->states, behind);
    if (!rm_state_loading(s))
        return;
    RM_POKE(&shared->reserved, reserved);
    RM_POKE(&shared->committed, committed);
    RM_POKE(&shared->offered, offered);
    RM_POKE(&shared->consumed, consumed);
    RM_POKE(&shared->recorded, committed);
    ring->consumed_seen = consumed;
}
