/* rows: synthetic experience in which every row is different. World w's row i (from 0) shows the
 * observation {w, i, episode, step} as int32; what else stands in it is kept in a table that tests
 * compare with. */
#ifndef RM_TESTS_SUPPORT_ROWS_H
#define RM_TESTS_SUPPORT_ROWS_H

#include "actor/env.h"
#include "shm/ring.h"

#include <stdbool.h>
#include <stdint.h>

#define RM_TEST_ROWS     4096
#define RM_TEST_WORLDS   8
#define RM_TEST_ACTIONS  5
#define RM_TEST_FEATURES 4

struct rm_test_cell {
    uint8_t flags;
    float reward;
    int32_t action, episode, step;
    uint64_t generation;
};

struct rm_test_rows {
    uint32_t worlds, rows;
    struct rm_test_cell cell[RM_TEST_WORLDS][RM_TEST_ROWS];
};

/* One agent that observes int32[4], with RM_TEST_ACTIONS actions. */
struct rm_env_agent rm_test_rows_agent(bool masks);

/* Fills the table: world w has episodes of length[w] steps which end with end[w] (RM_FLAG_*). */
void rm_test_rows_fill(struct rm_test_rows *rows, uint32_t worlds, uint32_t count,
                       const uint32_t *length, const uint8_t *end);

/* A ring for worlds [first, first + worlds) whose indices wrap soon. */
int rm_test_rows_ring(struct rm_ring *ring, uint32_t ring_rows, uint32_t worlds, bool masks);

/* Number k of the recurrent state in row i of world w, where a ring has states. */
static inline float rm_test_rows_state(uint32_t w, uint32_t i, uint32_t k)
{
    return (float)(w * 5000 + i + 1) + 0.25f * (float)k;
}

/* Appends rows [from, to) of those worlds. In each row's mask only action (row + world) % actions
 * and its successor are legal. */
void rm_test_rows_write(const struct rm_test_rows *rows, struct rm_ring *ring, uint32_t first,
                        uint32_t from, uint32_t to);

/* What a sampler should give for a transition of at most n steps that starts in row i of world w,
 * when rows below `end` are written. Each cell is judged by itself. */
struct rm_test_transition {
    bool valid;
    uint32_t steps;
    double ret, discount;
    bool terminated;
};
struct rm_test_transition rm_test_rows_expect(const struct rm_test_rows *rows, uint32_t w,
                                              uint32_t i, uint32_t end, uint32_t n, double gamma);

#endif
