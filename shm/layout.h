/* layout: defines every struct in shared memory, or asserts its size and offsets. Words written by
 * different sides are 128 bytes apart: a cache line, and the one that the prefetcher fetches with
 * it. On the board they are in different pages where one of the sides runs a foreign world.
 * docs/shared-memory.md draws the bytes. Any change of size, order or meaning must raise
 * RM_LAYOUT_VERSION. The layout hash refuses a change of size even without that. */
#ifndef RM_SHM_LAYOUT_H
#define RM_SHM_LAYOUT_H

#include "shm/atomic.h"
#include "shm/board.h"
#include "shm/priorities.h"
#include "shm/region.h"
#include "shm/ring.h"
#include "shm/weights.h"

#include <assert.h>
#include <stddef.h>

#define RM_LINE            128                   /* bytes between words of different writers */
#define RM_LAYOUT_VERSION  13u                   /* never 0: 0 means not yet published */
#define RM_LAYOUT_MAGIC    0x3152454d474e4952ull /* "RINGMER1", little-endian */
#define RM_REGION_NAME_MAX 48

/* First bytes of every region. */
struct rm_region_header {
    _Atomic uint64_t magic;   /* RM_LAYOUT_MAGIC */
    uint64_t layout_hash;     /* rm_layout_hash() of the creator */
    uint64_t bytes;           /* size of the region, header included */
    uint32_t kind;            /* enum rm_region_kind */
    _Atomic uint32_t version; /* RM_LAYOUT_VERSION, stored last */
    char name[RM_REGION_NAME_MAX];
    uint8_t reserved[48];
};
static_assert(sizeof(struct rm_region_header) == RM_LINE, "header");
static_assert(offsetof(struct rm_region_header, layout_hash) == 8, "header");
static_assert(offsetof(struct rm_region_header, bytes) == 16, "header");
static_assert(offsetof(struct rm_region_header, kind) == 24, "header");
static_assert(offsetof(struct rm_region_header, version) == 28, "header");
static_assert(offsetof(struct rm_region_header, name) == 32, "header");

/* A hash of the size of every shared struct, the line size and the build's options: processes of
 * different builds refuse to share. All processes of one build compute the same value. */
uint64_t rm_layout_hash(void);

/* What follows the header in a text region. */
static inline void *rm_region_payload(const struct rm_region *region)
{
    return (uint8_t *)region->base + sizeof(struct rm_region_header);
}

static inline size_t rm_region_payload_bytes(const struct rm_region *region)
{
    return region->bytes - sizeof(struct rm_region_header);
}

/* --- ring ------------------------------------------------------------------------------------ */

struct rm_ring_shared {
    struct rm_region_header header;
    struct rm_ring_spec spec; /* fixed at creation */
    uint64_t row_bytes;       /* stride of rows, for programs that read without this header */
    uint64_t data_at;         /* offset of row 0 in the region */

    /* Written by the writer. On one line, since readers read both. */
    _Alignas(RM_LINE) _Atomic uint64_t reserved; /* rows below this may have been touched */
    _Atomic uint64_t committed;                  /* rows below this are complete */
    _Atomic uint64_t generation;                 /* of the writer: 1 for the first */
    _Atomic uint64_t offered; /* rollout: rows below this are complete except for the action */

    /* Written by the consumer (rollout). */
    _Alignas(RM_LINE) _Atomic uint64_t consumed; /* rows below this may be overwritten */

    /* Written by the recorder. With record_wait rows below this may be overwritten. */
    _Alignas(RM_LINE) _Atomic uint64_t recorded;
};
static_assert(sizeof(struct rm_ring_spec) == 56, "ring spec");
static_assert(offsetof(struct rm_ring_shared, spec) == 128, "ring");
static_assert(offsetof(struct rm_ring_shared, row_bytes) == 184, "ring");
static_assert(offsetof(struct rm_ring_shared, data_at) == 192, "ring");
static_assert(offsetof(struct rm_ring_shared, reserved) == 256, "ring");
static_assert(offsetof(struct rm_ring_shared, committed) == 264, "ring");
static_assert(offsetof(struct rm_ring_shared, generation) == 272, "ring");
static_assert(offsetof(struct rm_ring_shared, offered) == 280, "ring");
static_assert(offsetof(struct rm_ring_shared, consumed) == 384, "ring");
static_assert(offsetof(struct rm_ring_shared, recorded) == 512, "ring");
static_assert(sizeof(struct rm_ring_shared) == 640, "ring");

/* First bytes of every row. */
struct rm_row_head {
    uint64_t policy_version;
    uint64_t generation;
    uint8_t reserved[48];
};
static_assert(sizeof(struct rm_row_head) == 64, "row head");

/* --- weights --------------------------------------------------------------------------------- */

struct rm_weights_slot {
    _Alignas(RM_LINE) _Atomic uint64_t sequence; /* odd while being filled */
    _Atomic uint64_t version, updates, round, time_ns, env_steps;
};
static_assert(sizeof(struct rm_weights_slot) == RM_LINE, "weights slot");
static_assert(offsetof(struct rm_weights_slot, time_ns) == 32, "weights slot");
static_assert(offsetof(struct rm_weights_slot, env_steps) == 40, "weights slot");

struct rm_weights_shared {
    struct rm_region_header header;
    uint64_t count, act_count; /* floats */
    uint64_t slot_bytes;       /* stride between arenas */
    uint64_t data_at;          /* offset of slot 0's arena in the region */
    uint32_t policy;
    _Alignas(RM_LINE) _Atomic uint64_t latest; /* version; its slot is latest % 3 */
    struct rm_weights_slot slot[RM_WEIGHTS_SLOTS];
};
static_assert(offsetof(struct rm_weights_shared, count) == 128, "weights");
static_assert(offsetof(struct rm_weights_shared, act_count) == 136, "weights");
static_assert(offsetof(struct rm_weights_shared, slot_bytes) == 144, "weights");
static_assert(offsetof(struct rm_weights_shared, data_at) == 152, "weights");
static_assert(offsetof(struct rm_weights_shared, policy) == 160, "weights");
static_assert(offsetof(struct rm_weights_shared, latest) == 256, "weights");
static_assert(offsetof(struct rm_weights_shared, slot) == 384, "weights");
static_assert(sizeof(struct rm_weights_shared) == 768, "weights");

/* --- priorities ------------------------------------------------------------------------------ */

struct rm_priorities_shared {
    struct rm_region_header header;
    struct rm_priorities_spec spec;           /* fixed at creation */
    uint64_t tree_at;                         /* offset of the leaves in the region */
    _Alignas(RM_LINE) _Atomic double largest; /* largest priority that any leaf ever had */
};
static_assert(sizeof(struct rm_priorities_spec) == 24, "priorities spec");
static_assert(offsetof(struct rm_priorities_shared, spec) == 128, "priorities");
static_assert(offsetof(struct rm_priorities_shared, tree_at) == 152, "priorities");
static_assert(offsetof(struct rm_priorities_shared, largest) == 256, "priorities");
static_assert(sizeof(struct rm_priorities_shared) == 384, "priorities");

/* --- board ----------------------------------------------------------------------------------- */

static_assert(sizeof(struct rm_wake_word) == RM_LINE, "wake word");
static_assert(offsetof(struct rm_wake_word, signals) == 4, "wake word");
static_assert(offsetof(struct rm_wake_word, threshold) == 8, "wake word");

static_assert(offsetof(struct rm_limiter, samples_per_insert) == RM_LINE, "limiter");
static_assert(offsetof(struct rm_limiter, inserted) == RM_PAGE, "limiter");
static_assert(sizeof(struct rm_limiter) == 2 * RM_PAGE, "limiter");

static_assert(offsetof(struct rm_round, current) == RM_PAGE, "round");
static_assert(offsetof(struct rm_round, arrived) == RM_PAGE + RM_LINE, "round");
static_assert(sizeof(struct rm_round) == 2 * RM_PAGE, "round");

static_assert(sizeof(struct rm_scores) == 896, "scores");
static_assert(offsetof(struct rm_scores, first) == 16, "scores");
static_assert(offsetof(struct rm_scores, last) == 416, "scores");

static_assert(offsetof(struct rm_board_policy, limiter) == RM_PAGE, "board policy");
static_assert(offsetof(struct rm_board_policy, env_steps) == 3 * RM_PAGE, "board policy");
static_assert(offsetof(struct rm_board_policy, updates) == 4 * RM_PAGE, "board policy");
static_assert(offsetof(struct rm_board_policy, rollouts) == 4 * RM_PAGE + 2 * RM_LINE,
              "board policy");
static_assert(offsetof(struct rm_board_policy, eval_seq) == 5 * RM_PAGE, "board policy");
static_assert(sizeof(struct rm_board_policy) == 6 * RM_PAGE, "board policy");

static_assert(offsetof(struct rm_board_agent, scores) == RM_PAGE, "board agent");
static_assert(offsetof(struct rm_board_agent, env_steps) == RM_PAGE + 7 * RM_LINE, "board agent");
static_assert(offsetof(struct rm_board_agent, lengths) == RM_PAGE + 8 * RM_LINE, "board agent");
static_assert(offsetof(struct rm_board_agent, figures) == RM_PAGE + 15 * RM_LINE, "board agent");
static_assert(offsetof(struct rm_board_agent, eval_mean) == 5 * RM_PAGE, "board agent");
static_assert(offsetof(struct rm_board_agent, eval_figures) == 5 * RM_PAGE + 24, "board agent");
static_assert(sizeof(struct rm_board_agent) == 6 * RM_PAGE, "board agent");

static_assert(offsetof(struct rm_board_worker, state) == RM_PAGE, "board worker");
static_assert(offsetof(struct rm_board_worker, heartbeat_ns) == RM_PAGE + 8, "board worker");
static_assert(offsetof(struct rm_board_worker, traced) == 2 * RM_PAGE, "board worker");
static_assert(offsetof(struct rm_board_worker, wake) == 35 * RM_PAGE, "board worker");
static_assert(sizeof(struct rm_board_worker) == 36 * RM_PAGE, "board worker");

static_assert(offsetof(struct rm_board_run, state) == 128, "board run");
static_assert(offsetof(struct rm_board_run, settings) == 152, "board run");
static_assert(sizeof(struct rm_board_figure) == 820, "board figure");
static_assert(offsetof(struct rm_board_run, evaluations) == 4 * RM_PAGE, "board run");
static_assert(offsetof(struct rm_board_run, scores) == 5 * RM_PAGE, "board run");
static_assert(offsetof(struct rm_board_run, lengths) == 5 * RM_PAGE + 7 * RM_LINE, "board run");
static_assert(offsetof(struct rm_board_run, bell_at) == 5 * RM_PAGE + 14 * RM_LINE, "board run");
static_assert(offsetof(struct rm_board_run, stage) == 5 * RM_PAGE + 15 * RM_LINE, "board run");
static_assert(sizeof(struct rm_board_run) == 6 * RM_PAGE, "board run");

/* The region of a board: this, then policies[], agents[], workers[] at the offsets given. */
struct rm_board {
    struct rm_region_header header;
    uint64_t policies_at, agents_at, workers_at; /* offsets in the region */
    uint32_t policies, agents, workers;
    struct rm_board_run run;
    struct rm_round round;
};
static_assert(offsetof(struct rm_board, run) == RM_PAGE, "board");
static_assert(offsetof(struct rm_board, round) == 7 * RM_PAGE, "board");
static_assert(sizeof(struct rm_board) == 9 * RM_PAGE, "board");

#endif
