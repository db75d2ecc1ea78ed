/* treasurehunt: agents collect gems in one small walled grid and act one after the other in a turn.
 *
 * Coordinates are (y, x), y grows downward. Rows and columns 0 and size-1 are wall; inside, a cell
 * is empty, holds a gem, or holds an agent. The cells inside are numbered row-major from 0: (y-1) *
 * (size-2) + (x-1).
 *
 * A turn: every empty cell becomes a gem with probability `spawn` (if its uniform is below
 * `spawn`). Then agents 0, 1, 2 ... each observe, move and get a reward: wall -1, gem +10, else 0.
 * An agent that moves into a wall or another agent stays where it is. After `turns` turns the
 * episode is truncated.
 *
 * Every agent gets one last row with the reward of its last move. By default the row is VOID: it
 * shows the world at the end of the turn, which is not a true next observation. With
 * final_observation it shows the world after the next spawn, before any move, and is not VOID. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_TREASUREHUNT_H
#define RM_ACTOR_WORLDS_BUILTIN_TREASUREHUNT_H

#include <stdint.h>

#define RM_TREASUREHUNT_AGENTS_MAX 8
#define RM_TREASUREHUNT_SIZE_MAX   10 /* cells inside fit one 64-bit mask */
#define RM_TREASUREHUNT_VIEW       5  /* side of the window an agent sees */

/* Codes of an observation, (5, 5) row-major. */
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
    uint8_t last;     /* 1: the agents' last rows are being written */
    uint8_t agents;   /* equal to the batch's */
    uint8_t zero[2];
    uint8_t y[RM_TREASUREHUNT_AGENTS_MAX], x[RM_TREASUREHUNT_AGENTS_MAX];
    int32_t reward[RM_TREASUREHUNT_AGENTS_MAX]; /* of each agent's last move */
    uint32_t collected[RM_TREASUREHUNT_AGENTS_MAX], bumps[RM_TREASUREHUNT_AGENTS_MAX];
};

/* A spawn in parts. A uniform of 24 bits spawns a gem if it is below `spawn`: (word >> 8) <
 * threshold. Bit d of the hits: draw d spawns. There are 64 draws, the largest number of empty
 * cells: turn t of an episode, from 0, uses the words from 64 (t + 1) of the episode's stream. */
uint32_t rm_treasurehunt_threshold(double spawn);
uint64_t rm_treasurehunt_hits(const uint32_t words[64], uint32_t threshold);

/* The cells that spawn: draw d is for the d-th empty cell in row-major order. */
uint64_t rm_treasurehunt_spawn(uint64_t empty, uint64_t hits);

/* Position of the n-th set bit, n from 0 and below their number. */
static inline uint32_t rm_treasurehunt_nth_bit(uint64_t mask, uint32_t n)
{
    while (n--)
        mask &= mask - 1;
    return (uint32_t)__builtin_ctzll(mask);
}

#endif
