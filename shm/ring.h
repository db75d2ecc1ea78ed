/* ring: experience from one actor for one policy. Single producer, any number of readers (replay
 * mode) or one consumer (rollout mode). A power-of-two number of rows.
 *
 * A ROW IS ONE VECTOR STEP: for every lane (an agent of a world, this actor's, this policy's)
 * what arrived - observation, legal-action mask, reward, flags - and what was answered - action,
 * and where the algorithm needs them the behaviour log-probability and value. Once per row: the
 * policy version that acted and the writer's generation. The world writes straight into the row.
 *
 * Lane order inside a row: lane = agent_slot * worlds + world.
 *
 * Episodes: the first row of an episode has RM_FLAG_FIRST (its reward is 0 and ignored). The last
 * observation of an episode is a row of its own, with RM_FLAG_TERMINATED or RM_FLAG_TRUNCATED; its
 * action is ignored. So the transition (s, a, r, s') is rows t, t+1: obs[t], action[t],
 * reward[t+1], obs[t+1], and truncation bootstraps from the true final observation. The row after a
 * last row is the first row of the next episode.
 *
 * Indices are 64-bit and run free: row i lives at i & (rows - 1). */
#ifndef RM_SHM_RING_H
#define RM_SHM_RING_H

#include "shm/base/error.h"
#include "shm/region.h"

#include <stdint.h>

enum rm_lane_flag {
    RM_FLAG_FIRST = 1,      /* first row of an episode: reward is meaningless */
    RM_FLAG_TERMINATED = 2, /* last row: the episode ended by the world's rules, value 0 beyond */
    RM_FLAG_TRUNCATED = 4,  /* last row: cut off; value beyond is that of this observation */
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
    RM_COLUMN_STATE = 8, /* f32[state_floats] per lane: the recurrent state before the answer */
};

struct rm_ring_spec {
    enum rm_ring_mode mode;
    uint32_t rows;         /* power of two, 4 .. 2^30 */
    uint32_t lanes;        /* >= 1 */
    uint32_t obs_bytes;    /* bytes of one lane's observation in the world's compact type */
    uint32_t mask_bytes;   /* number of actions when RM_COLUMN_MASK, else 0 */
    uint32_t action_words; /* int32 words per action, 1 for a discrete action */
    uint32_t columns;      /* RM_COLUMN_* */
    uint32_t actor;        /* who writes */
    uint32_t policy;       /* for whom */
    uint32_t state_floats; /* recurrent state of a lane when RM_COLUMN_STATE, else 0 */
    uint32_t state_every;  /* rows from one that has a state to the next, from the first on: where
                              rollouts begin. 0, 1: all have one */
    uint32_t unused;       /* 0 */
    uint64_t first_index;  /* where indices start; tests start just below a wrap */
};

/* Pointers to the columns of one row. [lanes] unless said. Aligned to 64 bytes each. */
struct rm_row {
    uint64_t index;
    uint8_t *obs;             /* (lanes, obs_bytes) */
    uint8_t *mask;            /* (lanes, mask_bytes) or NULL */
    float *reward;            /* (lanes) received on arriving in this row */
    uint8_t *flags;           /* (lanes) RM_FLAG_* */
    int32_t *action;          /* (lanes, action_words) */
    float *logp;              /* (lanes) or NULL */
    float *value;             /* (lanes) or NULL */
    float *state;             /* (lanes, state_floats) or NULL, also in rows that have none */
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
    uint8_t *states;        /* with state_every: they stand behind the rows, in turn; else NULL */
    size_t state_bytes;     /* stride between these */
    uint64_t consumed_seen; /* writer: the consumer's index when it was last looked at */
};

/* Bytes a ring of this spec takes, header included. 0 when the spec is out of range. */
size_t rm_ring_bytes(const struct rm_ring_spec *spec);

int rm_ring_create(struct rm_ring *ring, const struct rm_ring_spec *spec, struct rm_error *error);
int rm_ring_attach(struct rm_ring *ring, int fd, bool writable, struct rm_error *error);
void rm_ring_close(struct rm_ring *ring);

/* Column pointers of row `index` (no check that it is there: see below). */
struct rm_row rm_ring_row(const struct rm_ring *ring, uint64_t index);

/* --- writer ------------------------------------------------------------------------------- */

/* A new writer process takes over, in a generation of its own: abandons a row reserved but not
 * committed by a dead one. Returns how many rows that were, 0 or 1 (and the same one again to
 * whoever opens before it is reserved anew). */
uint64_t rm_ring_writer_open(struct rm_ring *ring);

/* The writer of a ring that was loaded whole goes on as if it had never gone: in the same
 * generation. `reserved`: it had a row in hand, which is *row again. */
void rm_ring_writer_resume(struct rm_ring *ring, bool reserved, struct rm_row *row);

/* Claims the next row and returns its columns; the writer may fill them in any order over any time,
 * then commits. Returns 1, or 0 when in rollout mode there is no credit (nothing was claimed). */
int rm_ring_reserve(struct rm_ring *ring, struct rm_row *row);

/* What arrived is complete in the reserved row: observation, mask, reward, flags. Its answer is not
 * yet: rollout consumers take the value of its observation while the writer waits for weights. */
void rm_ring_offer(struct rm_ring *ring);

/* Makes the reserved row readable. */
void rm_ring_commit(struct rm_ring *ring);

/* The writer's own committed rows, e.g. for frame stacks while acting: no check needed. */
uint64_t rm_ring_committed(const struct rm_ring *ring);

/* --- readers ------------------------------------------------------------------------------ */

/* Replay: the window of readable rows [*first, *end). Rows near *first may be overwritten while
 * they are copied, so check with rm_ring_intact() afterwards. */
void rm_ring_window(const struct rm_ring *ring, uint64_t *first, uint64_t *end);

/* After copying from rows >= index: true when none of them was overwritten meanwhile. */
bool rm_ring_intact(const struct rm_ring *ring, uint64_t index);

/* Copies out of a row that the writer may overwrite meanwhile (any part of any column): as fast as
 * memcpy, and unlike it defined when it races. What was copied counts only if rm_ring_intact() says
 * so afterwards. */
void rm_ring_copy_out(void *to, const void *row_data, size_t bytes);

/* Rollout: rows committed and not yet consumed are [consumed, committed). Gives back credit for
 * all rows below `index`. */
uint64_t rm_ring_consumed(const struct rm_ring *ring);

/* Rollout: rows below this may be read for what arrived in them. At most one more than committed;
 * not less, but for the moment between a commit and the next offer. */
uint64_t rm_ring_offered(const struct rm_ring *ring);
void rm_ring_consume(struct rm_ring *ring, uint64_t index);

/* All rows it holds, the one in the writer's hand included, and where writer and consumer stand,
 * for checkpoints (shm/base/state.h). Nobody else may use the ring meanwhile. */
struct rm_state;
void rm_ring_state(struct rm_ring *ring, struct rm_state *state);

#endif
