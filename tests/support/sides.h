/* sides: learners from one ring of rows, each with priorities, a sampler and a trainer of its own:
 * one whose draws and updates are the CPU's, and one that draws and learns on a device. Between
 * rm_test_backends_open() and close (backends.h). Helpers assert; they are called inside a cmocka
 * test. */
#ifndef RM_TESTS_SUPPORT_SIDES_H
#define RM_TESTS_SUPPORT_SIDES_H

#include "learner/algo/trainer.h"
#include "learner/feed.h"
#include "learner/sampler.h"

#include <stdbool.h>
#include <stdint.h>

enum { RM_SIDES_UPDATES = 100, RM_SIDES_LANES = 4, RM_SIDES_SLOTS = 50 };

struct rm_test_side {
    struct rm_priorities tree;
    struct rm_sampler *sampler;
    struct rm_feed *feed; /* the device's; NULL: the CPU's */
    struct rm_trainer *trainer;
    struct rm_trainer_report report; /* sums over `made` */
    /* Of all items up to each update; the device's: as far as reported. */
    uint64_t ages[RM_SIDES_UPDATES + 1];
};

struct rm_test_scene {
    struct rm_experiment experiment;
    struct rm_ring ring;
    struct rm_sampler_source source;
};

/* A ring without rows yet, to be closed with rm_ring_close(), and an experiment of three steps and
 * stacks of two. */
void rm_test_scene_open(struct rm_test_scene *s, enum rm_algorithm name, bool plain,
                        bool by_priority);
void rm_test_side_open(struct rm_test_side *side, const struct rm_test_scene *s, bool on_device);
void rm_test_side_close(struct rm_test_side *side);

/* Rows for before update `number`: some, none, and once more than replay holds. */
uint64_t rm_test_sides_rows_before(uint64_t number);
/* Adds rows, drawn by their number alone: episodes of 5 to 8 steps, by lane, that end both ways. */
void rm_test_sides_write(struct rm_ring *ring, uint64_t count);
/* Adds rows that nothing is to be learned from. */
void rm_test_sides_write_dead(struct rm_ring *ring, uint64_t count);

/* One update of the CPU's side. */
void rm_test_side_update_here(struct rm_test_side *side, uint64_t number);
/* One of the device's, with what has come back meanwhile. */
void rm_test_side_update_there(struct rm_test_side *side, uint64_t number);
/* The same in two halves: adds arrived results to `report`, or waits for all of them; and begins an
 * update. */
void rm_test_side_poll(struct rm_test_side *side, bool wait);
void rm_test_side_launch(struct rm_test_side *side, struct rm_batch *b, uint64_t number);

#endif
