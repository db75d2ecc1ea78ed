/* ring: experience from one actor for one policy. Single producer, any number of readers (replay
 * mode) or one consumer (rollout mode). A power-of-two number of rows.
 *
 * A ROW IS ONE VECTOR STEP: for every lane (an agent of a world, this actor's, this policy's) what
 * arrived (observation, legal-action mask, reward, flags) and the answer (action, and where the
 * algorithm needs them the behaviour log-probability and value). Once per row: the policy version
 * that acted and the writer's generation. The world writes straight into the row.
 *
 * Lane order inside a row: lane = agent_slot * worlds + world.
 *
 * Episodes: the first row of an episode has RM_FLAG_FIRST (its reward is 0 and ignored). The last
 * observation of an episode is a row of its own, with RM_FLAG_TERMINATED or RM_FLAG_TRUNCATED; the
 * row's action is ignored. So the transition (s, a, r, s') is rows t, t+1: obs[t], action[t],
 * reward[t+1], obs[t+1], and truncation bootstraps from the true final observation. The row after a
 * last row is the first row of the next episode.
 *
 * Indices are 64-bit and never reduced: row i lives at i & (rows - 1). */
#ifndef RM_SHM_RING_H
#define RM_SHM_RING_H

#include "shm/base/error.h"
#include "shm/region.h"

#include <stdint.h>

enum rm_lane_flag {
    RM_FLAG_FIRST = 1,      /* first row of an episode: reward is meaningless */
    RM_FLAG_TERMINATED = 2, /* last row: the episode ended by the world's rules; the value beyond is
                             * 0 */
    RM_FLAG_TRUNCATED = 4,  /* last row: cut off; the value beyond is that of this observation */
    RM_FLAG_VOID = 8,       /* with TRUNCATED: no true final observation exists, so nothing may
                               bootstrap from this row; transitions end one row earlier */
    RM_FLAG_DEAD = 16,      /* the agent is not in play: row is padding, never sampled */
};
#define RM_FLAG_LAST (RM_FLAG_TERMINATED | RM_FLAG_TRUNCATED)

enum rm_ring_mode {
    RM_RING_REPLAY = 0, /* the writer overwrites the oldest row and never waits */
    RM_RING_ROLLOUT,    /* each row is consumed once; the writer needs credit */
};

/* Which optional columns a ring has. */
enum rm_ring_column {
    RM_COLUMN_MASK = 1,  /* u8[mask_bytes] per lane: action a legal iff byte a is 1 */
    RM_COLUMN_LOGP = 2,  /* f32 per lane: behaviour log-probability of the action */
    RM_COLUMN_VALUE = 4, /* f32 per lane: behaviour value estimate */
    RM_COLUMN_STATE = 8, /* f32[state_floats] per lane: the recurrent state before the action */
};

struct rm_ring_spec {
    enum rm_ring_mode mode;
    uint32_t rows;         /* power of two, 4 .. 2^30 */
    uint32_t lanes;        /* >= 1 */
    uint32_t obs_bytes;    /* bytes of one lane's observation in the world's compact type */
    uint32_t mask_bytes;   /* number of actions when RM_COLUMN_MASK, else 0 */
    uint32_t action_words; /* int32 words per action, 1 for a discrete action */
    uint32_t columns;      /* RM_COLUMN_* */
    uint32_t actor;        /* the writer */
    uint32_t policy;       /* the policy that trains on it */
    uint32_t state_floats; /* recurrent state of a lane when RM_COLUMN_STATE, else 0 */
    uint32_t state_every;  /* every state_every-th row from the first on has a state: where rollouts
                            * begin. 0, 1: all rows */
    uint32_t record_wait;  /* 1: the writer also needs the recorder's credit, else 0 */
    uint64_t first_index;  /* where indices start; tests start just below a wrap */
};

/* Pointers to the columns of one row. [lanes] unless a comment has another shape. Each column is
 * aligned to 64 bytes. */
struct rm_row {
    uint64_t index;
    uint8_t *obs;             /* (lanes, obs_bytes) */
    uint8_t *mask;            /* (lanes, mask_bytes) or NULL */
    float *reward;            /* (lanes) received on arriving in this row */
    uint8_t *flags;           /* (lanes) RM_FLAG_* */
    int32_t *action;          /* (lanes, action_words) */
    float *logp;              /* (lanes) or NULL */
    float *value;             /* (lanes) or NULL */
    float *state;             /* (lanes, state_floats) or NULL; not NULL in rows without a state */
    uint64_t *policy_version; /* one per row: updates of the policy that acted */
    uint64_t *generation;     /* one per row: the writer's generation; rows of different
                                 generations are never joined */
};

/* A process's view of a ring. Offsets are computed once at attach. */
struct rm_ring {
    struct rm_region region;
    struct rm_ring_shared *shared; /* layout.h */
    struct rm_ring_spec spec;
    uint64_t mask;    /* rows - 1 */
    size_t row_bytes; /* stride between rows, multiple of 64 */
    size_t obs_at, mask_at, reward_at, flags_at, action_at, logp_at, value_at, state_at;
    uint8_t *data;          /* row 0 */
    uint8_t *states;        /* with state_every: the states, behind the rows, in order; else NULL */
    size_t state_bytes;     /* stride between states */
    uint64_t consumed_seen; /* writer: `consumed` when it was last read */
    uint64_t recorded_seen; /* writer: `recorded` when it was last read */
};

/* Bytes of a ring of this spec, header included. 0 when the spec is out of range. */
size_t rm_ring_bytes(const struct rm_ring_spec *spec);

int rm_ring_create(struct rm_ring *ring, const struct rm_ring_spec *spec, struct rm_error *error);
int rm_ring_attach(struct rm_ring *ring, int fd, bool writable, struct rm_error *error);
void rm_ring_close(struct rm_ring *ring);

/* Column pointers of row `index`. Does not check that the row is readable: see rm_ring_window(). */
struct rm_row rm_ring_row(const struct rm_ring *ring, uint64_t index);

/* --- writer ------------------------------------------------------------------------------- */

/* A new writer process takes over, with the next generation, and abandons the row that a dead
 * writer reserved but did not commit. Returns the number of such rows, 0 or 1. A writer that opens
 * the ring before that row is reserved again gets the same number. */
uint64_t rm_ring_writer_open(struct rm_ring *ring);

/* For the writer of a ring loaded from a checkpoint: continues in the same generation. `reserved`:
 * the writer had a reserved row, which is returned in *row. */
void rm_ring_writer_resume(struct rm_ring *ring, bool reserved, struct rm_row *row);

/* Reserves the next row and returns its columns. The writer fills them in any order, without a time
 * limit, then commits. Returns 1. Returns 0, and reserves nothing, if there is no credit: in
 * rollout mode the consumer gives it, with record_wait the recorder. */
int rm_ring_reserve(struct rm_ring *ring, struct rm_row *row);

/* Observation, mask, reward and flags of the reserved row are complete; its action is not. Rollout
 * consumers compute the value of its observation while the writer waits for weights. */
void rm_ring_offer(struct rm_ring *ring);

/* Makes the reserved row readable. */
void rm_ring_commit(struct rm_ring *ring);

/* The writer's own committed rows, for example for frame stacks while acting. They need no
 * check. */
uint64_t rm_ring_committed(const struct rm_ring *ring);

/* --- readers ------------------------------------------------------------------------------ */

/* Replay: the window of readable rows [*first, *end). Rows near *first may be overwritten during a
 * copy: check with rm_ring_intact() after it. */
void rm_ring_window(const struct rm_ring *ring, uint64_t *first, uint64_t *end);

/* After a copy from rows >= index: true when none of them was overwritten during the copy. */
bool rm_ring_intact(const struct rm_ring *ring, uint64_t index);

/* Copies part of a column out of a row that the writer may overwrite meanwhile. As fast as memcpy,
 * and defined behaviour in a race. Use the copy only if rm_ring_intact() is true after it. */
void rm_ring_copy_out(void *to, const void *row_data, size_t bytes);

/* Rollout: rows [consumed, committed) are committed and not yet consumed. rm_ring_consume() returns
 * the credit of all rows below `index` to the writer. */
uint64_t rm_ring_consumed(const struct rm_ring *ring);

/* Rollout: in rows below this, observation, mask, reward and flags may be read. The index is the
 * number of committed rows or one more; between a commit and the next offer it may be less. */
uint64_t rm_ring_offered(const struct rm_ring *ring);
void rm_ring_consume(struct rm_ring *ring, uint64_t index);

/* Rows below `index` are recorded: with record_wait the writer may overwrite them. All committed
 * rows of a ring that was loaded from a checkpoint count as recorded. Only the recorder calls
 * rm_ring_record(). */
void rm_ring_record(struct rm_ring *ring, uint64_t index);
uint64_t rm_ring_recorded(const struct rm_ring *ring);

/* All rows of the ring, the reserved one included, and the indices of writer and consumer, for
 * checkpoints (shm/base/state.h). No other process may use the ring during the call. */
struct rm_state;
void rm_ring_state(struct rm_ring *ring, struct rm_state *state);

#endif
