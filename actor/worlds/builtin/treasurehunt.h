/* treasurehunt: agents that collect gems in one small walled grid, acting in order within a turn.
 *
 * Coordinates are (y, x), y grows downward. Rows and columns 0 and size-1 are wall; inside, a cell
 * is empty, holds a gem, or holds an agent. The cells inside are numbered row-major from 0: (y-1) *
 * (size-2) + (x-1).
 *
 * A turn: every cell that is empty becomes a gem with probability `spawn` (strictly: its uniform is
 * below it), then agents 0, 1, 2 ... each observe, move and are rewarded: wall -1, gem +10, else 0.
 * A move into a wall or an agent leaves the mover where it is. After `turns` turns the episode is
 * truncated.
 *
 * Every agent gets one last row, which carries the reward of its last move. By default it is VOID:
 * the world stands as the turn left it, which no agent would have seen next. With final_observation
 * it is what all agents would see after the next spawn, before any agent moves, and not VOID. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_TREASUREHUNT_H
#define RM_ACTOR_WORLDS_BUILTIN_TREASUREHUNT_H

#include <stdint.h>

#define RM_TREASUREHUNT_AGENTS_MAX 8
#define RM_TREASUREHUNT_SIZE_MAX   10 /* cells inside fit one 64-bit mask */
#define RM_TREASUREHUNT_VIEW       5  /* side of the window an agent sees */

/* What a cell looks like: the codes of an observation, (5, 5) row-major. */
enum rm_treasurehunt_code {
    RM_TREASUREHUNT_SAND = 0,
    RM_TREASUREHUNT_GEM,
    RM_TREASUREHUNT_AGENT,
    RM_TREASUREHUNT_WALL2, /* border of the map, wall on both layers */
    RM_TREASUREHUNT_WALL1, /* outside the map */
    RM_TREASUREHUNT_CODES
};
enum { RM_TREASUREHUNT_UP = 0, RM_TREASUREHUNT_DOWN, RM_TREASUREHUNT_LEFT, RM_TREASUREHUNT_RIGHT };

/* One world between steps, before agent 0 acts: save_state() and load_state() use an array of
 * these, one per world of the batch. */
struct rm_treasurehunt_state {
    uint64_t episode; /* from 0 */
    uint64_t gems;    /* bit per cell inside */
    uint32_t turn;    /* turns done in this episode */
    uint8_t last;     /* 1: the agents are being given their last row */
    uint8_t agents;   /* must be the batch's */
    uint8_t zero[2];
    uint8_t y[RM_TREASUREHUNT_AGENTS_MAX], x[RM_TREASUREHUNT_AGENTS_MAX];
    int32_t reward[RM_TREASUREHUNT_AGENTS_MAX]; /* of each agent's last move */
    uint32_t collected[RM_TREASUREHUNT_AGENTS_MAX], bumps[RM_TREASUREHUNT_AGENTS_MAX];
};

/* The pieces of a spawn. Uniforms have 24 bits; one spawns a gem iff it is below `spawn`, which is
 * (word >> 8) < threshold. Bit d of the hits: draw d spawns. 64 draws, as many as there can be
 * empty cells: turn t, from 0, of an episode draws the words 64 (t + 1) .. of the episode's stream.
 */
uint32_t rm_treasurehunt_threshold(double spawn);
uint64_t rm_treasurehunt_hits(const uint32_t words[64], uint32_t threshold);

/* The d-th empty cell, in row-major order, has draw d: cells that spawn. */
uint64_t rm_treasurehunt_spawn(uint64_t empty, uint64_t hits);

/* Position of the n-th set bit, n from 0 and below their number. */
static inline uint32_t rm_treasurehunt_nth_bit(uint64_t mask, uint32_t n)
{
    while (n--)
        mask &= mask - 1;
    return (uint32_t)__builtin_ctzll(mask);
}

#endif
