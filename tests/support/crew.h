/* crew: several workers of a test, each a forked process; under ThreadSanitizer, which sees nothing
 * across processes, each a thread. And patterns whose every word says where it belongs, so that a
 * torn copy shows. */
#ifndef RM_TESTS_SUPPORT_CREW_H
#define RM_TESTS_SUPPORT_CREW_H

#include "shm/ring.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RM_CREW_MAX 16

/* Returns 0, or a number from 1 to 100 that says what went wrong. */
typedef int rm_crew_role(void *arg, uint32_t who);

struct rm_crew {
    uint32_t n;
    struct rm_crew_member {
        pid_t pid;
        pthread_t thread;
        rm_crew_role *role;
        void *arg;
        uint32_t who;
        int reason; /* what a thread returned */
    } member[RM_CREW_MAX];
};

/* Starts `role` with the next number. A worker that hangs is ended by SIGALRM after a minute and
 * RM_TORTURE_SECONDS. */
void rm_crew_start(struct rm_crew *crew, rm_crew_role *role, void *arg);

/* Waits for all. Returns how many failed, each with its reason on stderr. */
int rm_crew_join(struct rm_crew *crew);

/* Zeroed memory that forked workers share. */
void *rm_crew_memory(size_t bytes);

/* How long a torture test runs: RM_TORTURE_SECONDS, or `otherwise`. */
double rm_torture_seconds(double otherwise);

/* 64 mixed bits. */
uint64_t rm_pattern(uint64_t a, uint64_t b);

/* Fills every column of a reserved row from its index and generation. */
void rm_pattern_row(const struct rm_ring *ring, const struct rm_row *row);

/* Copies row `index` out. False when it was overwritten meanwhile; else *good says whether every
 * byte of every column is what rm_pattern_row() wrote, and *generation which writer that was. */
bool rm_pattern_check(const struct rm_ring *ring, uint64_t index, bool *good, uint64_t *generation);

#endif
