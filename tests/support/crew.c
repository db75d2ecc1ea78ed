#include "tests/support/crew.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREADS 1
#endif
#endif
#ifndef THREADS
#define THREADS 0
#endif

double rm_torture_seconds(double otherwise)
{
    const char *text = getenv("RM_TORTURE_SECONDS");
    double seconds = text ? strtod(text, NULL) : 0;
    return seconds > 0 ? seconds : otherwise;
}

static void guard(void)
{
    alarm(600 + (unsigned)rm_torture_seconds(0));
}

static void *thread_main(void *arg)
{
    struct rm_crew_member *member = arg;
    member->reason = member->role(member->arg, member->who);
    return NULL;
}

void rm_crew_start(struct rm_crew *crew, rm_crew_role *role, void *arg)
{
    struct rm_crew_member *member = &crew->member[crew->n];
    *member = (struct rm_crew_member){.role = role, .arg = arg, .who = crew->n++};
    guard();
    if (THREADS) {
        if (pthread_create(&member->thread, NULL, thread_main, member) != 0)
            abort();
        return;
    }
    fflush(NULL);
    member->pid = fork();
    if (member->pid < 0)
        abort();
    if (member->pid == 0) {
        guard(); /* fork clears it */
        _exit(role(arg, member->who));
    }
}

int rm_crew_join(struct rm_crew *crew)
{
    int failed = 0;
    for (uint32_t i = 0; i < crew->n; i++) {
        int reason = 0;
        if (THREADS) {
            pthread_join(crew->member[i].thread, NULL);
            reason = crew->member[i].reason;
        } else {
            int status;
            while (waitpid(crew->member[i].pid, &status, 0) < 0)
                ;
            reason = WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
        }
        if (reason) {
            fprintf(stderr, "worker %u failed: %d%s\n", i, reason,
                    reason == 1000 + SIGALRM ? " (hung)" : "");
            failed++;
        }
    }
    crew->n = 0;
    alarm(0);
    return failed;
}

void *rm_crew_memory(size_t bytes)
{
    /* cppcheck-suppress invalidFunctionArg */
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        abort();
    return memory;
}

uint64_t rm_pattern(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15ull ^ (b + 1) * 0xd6e8feb86659fd93ull;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
    return x ^ (x >> 32);
}

/* The columns of a row with their sizes; NULL and 0 where there is none. */
struct column {
    uint8_t *at;
    size_t bytes;
};
#define COLUMNS 8

static void columns_of(const struct rm_ring *ring, const struct rm_row *row, struct column c[])
{
    const size_t lanes = ring->spec.lanes;
    c[0] = (struct column){row->obs, lanes * ring->spec.obs_bytes};
    c[1] = (struct column){row->mask, row->mask ? lanes * ring->spec.mask_bytes : 0};
    c[2] = (struct column){(uint8_t *)row->reward, lanes * 4};
    c[3] = (struct column){row->flags, lanes};
    c[4] = (struct column){(uint8_t *)row->action, lanes * 4 * ring->spec.action_words};
    c[5] = (struct column){(uint8_t *)row->logp, row->logp ? lanes * 4 : 0};
    c[6] = (struct column){(uint8_t *)row->value, row->value ? lanes * 4 : 0};
    c[7] = (struct column){(uint8_t *)row->policy_version, 8};
}

/* The bytes of one column: the mixed seed, counted up word by word. */
static uint64_t word_at(uint64_t seed, size_t k)
{
    return seed + k * 0x9e3779b97f4a7c15ull;
}

void rm_pattern_row(const struct rm_ring *ring, const struct rm_row *row)
{
    struct column columns[COLUMNS];
    columns_of(ring, row, columns);
    for (int c = 0; c < COLUMNS; c++) {
        uint64_t seed = rm_pattern(row->index, *row->generation * COLUMNS + (unsigned)c);
        for (size_t i = 0; i < columns[c].bytes; i += 8) {
            uint64_t word = word_at(seed, i / 8);
            size_t n = columns[c].bytes - i < 8 ? columns[c].bytes - i : 8;
            memcpy(columns[c].at + i, &word, n);
        }
    }
}

bool rm_pattern_check(const struct rm_ring *ring, uint64_t index, bool *good, uint64_t *generation)
{
    static _Thread_local uint8_t copy[1 << 16];
    struct column columns[COLUMNS];
    struct rm_row row = rm_ring_row(ring, index);
    columns_of(ring, &row, columns);
    uint8_t *to = copy;
    rm_ring_copy_out(generation, row.generation, 8);
    for (int c = 0; c < COLUMNS; c++) {
        if (to + columns[c].bytes > copy + sizeof copy)
            abort();
        rm_ring_copy_out(to, columns[c].at, columns[c].bytes);
        to += columns[c].bytes;
    }
    if (!rm_ring_intact(ring, index))
        return false;

    const uint8_t *from = copy;
    *good = true;
    for (int c = 0; c < COLUMNS; c++) {
        uint64_t seed = rm_pattern(index, *generation * COLUMNS + (unsigned)c);
        for (size_t i = 0; i < columns[c].bytes; i += 8) {
            uint64_t word = word_at(seed, i / 8);
            size_t n = columns[c].bytes - i < 8 ? columns[c].bytes - i : 8;
            *good &= memcmp(from + i, &word, n) == 0;
        }
        from += columns[c].bytes;
    }
    return true;
}
