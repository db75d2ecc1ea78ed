/* pair: processes of a benchmark that start together, each on a core of its own, and stop at a set
 * time. */
#ifndef RM_SCRIPTS_BENCH_PAIR_H
#define RM_SCRIPTS_BENCH_PAIR_H

#include "scripts/bench/report.h"

#include "shm/atomic.h"
#include "shm/base/clock.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RM_PAIR_MAX 8

/* In shared memory. */
struct rm_pair_gate {
    _Atomic uint32_t ready;
    _Alignas(128) _Atomic uint64_t start_ns; /* 0: not yet */
};

static inline void *rm_pair_memory(size_t bytes)
{
    /* cppcheck-suppress invalidFunctionArg */
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

/* A member calls this when it is warm; returns the common start. */
static inline uint64_t rm_pair_wait(struct rm_pair_gate *gate)
{
    RM_ADD(&gate->ready, 1);
    uint64_t start;
    while ((start = RM_SEE(&gate->start_ns)) == 0)
        usleep(50);
    while (rm_now_ns() < start)
        ;
    return start;
}

/* Takes leave of a member that has ended, if there is one (WNOHANG: now). Returns whether there
 * was. After a failure the others may wait for that member for good: they are killed, and the
 * benchmark ends. */
static inline bool rm_pair_reap(pid_t *pids, unsigned n, int options)
{
    int status = 0;
    const pid_t pid = waitpid(-1, &status, options);
    if (pid == 0)
        return false;
    for (unsigned i = 0; i < n; i++)
        if (pids[i] == pid)
            pids[i] = 0;
    if (pid > 0 && status == 0)
        return true;
    fprintf(stderr, "a process of the benchmark failed (%d)\n", status);
    for (unsigned i = 0; i < n; i++)
        if (pids[i])
            kill(pids[i], SIGKILL);
    exit(1);
}

/* Runs n members, member i on core i modulo the cores there are. Exits when one fails. */
static inline void rm_pair_run(struct rm_pair_gate *gate, unsigned n, int (*const member[])(void *),
                               void *arg)
{
    pid_t pids[RM_PAIR_MAX];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    RM_POKE(&gate->ready, 0);
    RM_POKE(&gate->start_ns, 0);
    fflush(NULL);
    for (unsigned i = 0; i < n; i++) {
        pids[i] = fork();
        if (pids[i] < 0) {
            perror("fork");
            exit(1);
        }
        if (pids[i] == 0) {
            rm_bench_pin((int)(i % (unsigned)cores));
            alarm(60);
            _exit(member[i](arg));
        }
    }
    unsigned left = n;
    for (; RM_SEE(&gate->ready) < n && left; usleep(50))
        left -= rm_pair_reap(pids, n, WNOHANG);
    RM_RAISE(&gate->start_ns, rm_now_ns() + 2 * RM_NS_PER_MS);
    while (left)
        left -= rm_pair_reap(pids, n, 0);
}

#endif
