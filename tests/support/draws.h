/* Draws that a device makes beside the host's own of the same rows (learner/feed.h): two rings of
 * one and three worlds, a sampler with priorities of its own for either side, and comparisons to
 * the bit. Helpers assert; they are called inside a cmocka test. */
#ifndef RM_TESTS_SUPPORT_DRAWS_H
#define RM_TESTS_SUPPORT_DRAWS_H

#include "learner/backend/device.h"
#include "learner/feed.h"
#include "shm/base/rng.h"

enum {
    RM_DRAWS_WORLDS = 4,
    RM_DRAWS_RINGS = 2,
    RM_DRAWS_RING_ROWS = 64,
    RM_DRAWS_SLOTS = 40,
    RM_DRAWS_BATCH = 48
};

extern struct rm_backend *rm_test_draws_device;

struct rm_test_draws_side {
    struct rm_priorities tree;
    struct rm_sampler *sampler;
};

struct rm_test_draws {
    bool by_priority;
    uint32_t stack;
    struct rm_ring rings[RM_DRAWS_RINGS];
    struct rm_sampler_source sources[RM_DRAWS_RINGS];
    struct rm_test_draws_side host, there;
    struct rm_feed *feed;
    struct rm_device_sampler draw;
    float *error; /* on the device */
    uint32_t written;
};

struct rm_test_drawn {
    struct rm_device_pick picks[RM_DRAWS_BATCH];
    int32_t action[RM_DRAWS_BATCH];
    float ret[RM_DRAWS_BATCH], discount[RM_DRAWS_BATCH], weight[RM_DRAWS_BATCH];
    uint64_t leaf[RM_DRAWS_BATCH];
    struct rm_update_figures figures;
    struct rm_device_drawn drawn;
};

struct rm_test_chosen {
    struct rm_batch batch;
    float error[RM_DRAWS_BATCH];
};

/* For cmocka: opens and closes the device. */
int rm_test_draws_begin(void **state);
int rm_test_draws_end(void **state);

/* Rings, samplers and a feed of this depth of stacks; nothing is written yet. */
void rm_test_draws_open(struct rm_test_draws *draws, bool by_priority, uint32_t stack);
void rm_test_draws_close(struct rm_test_draws *draws);

/* A side's sampler; the device's feed alone, with what it draws into, made and destroyed. */
struct rm_sampler_spec rm_test_draws_spec(struct rm_test_draws *draws,
                                          struct rm_test_draws_side *side);
void rm_test_draws_feed(struct rm_test_draws *draws);
void rm_test_draws_leave(struct rm_test_draws *draws);

/* Rows for both, in which nothing may begin where they are dead. `unseen`: no window knows. */
void rm_test_draws_write(struct rm_test_draws *draws, uint32_t count);
void rm_test_draws_write_dead(struct rm_test_draws *draws, uint32_t count);
void rm_test_draws_write_unseen(struct rm_test_draws *draws, uint32_t count);

/* The draw of one update, by either side; false if the host finds too few rows. `same` compares all
 * numbers, `same_items` only which transitions were drawn. */
bool rm_test_draws_here(struct rm_test_draws *draws, uint64_t update, double beta,
                        struct rm_test_chosen *chosen);
void rm_test_draws_there(struct rm_test_draws *draws, uint64_t update, double beta,
                         struct rm_test_drawn *drawn);
void rm_test_draws_same(const struct rm_test_draws *draws, const struct rm_test_drawn *drawn,
                        const struct rm_test_chosen *chosen);

void rm_test_draws_same_items(const struct rm_test_draws *draws, const struct rm_test_drawn *drawn,
                              const struct rm_test_chosen *chosen);

/* Both learn the same errors, some of them 0. */
void rm_test_draws_learn(struct rm_test_draws *draws, struct rm_test_chosen *chosen,
                         struct rm_rng *rng);
/* All levels, and what stands in shared memory. */
void rm_test_draws_same_trees(struct rm_test_draws *draws);

/* To and from the device, waiting; bytes are a multiple of 4. */
void rm_test_draws_send(void *to, const void *from, size_t bytes);
void rm_test_draws_fetch(void *to, const void *from, size_t bytes);

#endif
