/* python_worker: one process of a Python interpreter that steps worlds
 * (python/ringmaster/worker.py), and the memory that it shares with the process that started it.
 *
 * The memory is one memfd: a head, room for text, then columns of observations, actions and rewards
 * (laid out by python.c after the worker has described its worlds). The starter requests a call by
 * incrementing a number; the worker answers by storing that number. Two requests may be pending:
 * after the first one the worker takes the second without a wake-up. A side that waits spins for a
 * moment, unless its latest spin did not succeed, then announces its sleep and waits for an
 * eventfd. The starter also waits for the worker's death. While the worker has a second request,
 * the starter sleeps by a timer instead, and looks for the answer when it expects one: to wake a
 * sleeper costs the worker 10 to 100 us.
 *
 * The process that starts a worker does not trust what the worker writes: it bounds numbers,
 * repairs text, and copies columns before it reads them. Its size is sealed, so reading never
 * faults.
 *
 * One thread, and the same one from start to end: the worker dies with the thread that started
 * it. */
#ifndef RM_ACTOR_WORLDS_BRIDGES_PYTHON_WORKER_H
#define RM_ACTOR_WORLDS_BRIDGES_PYTHON_WORKER_H

#include "actor/worlds/sandbox.h"
#include "shm/base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RM_PYTHON_MAGIC      0x59504d52u /* "RMPY" */
#define RM_PYTHON_VERSION    4u
#define RM_PYTHON_HEAD_BYTES 4096u
#define RM_PYTHON_WORKERS    256u /* the most that are waited for together */
#define RM_PYTHON_TEXT_BYTES (256u << 10)
#define RM_PYTHON_COLUMNS_AT                                                                       \
    (RM_PYTHON_HEAD_BYTES + RM_PYTHON_TEXT_BYTES) /* what follows the text */

/* Requests to a worker. */
enum rm_python_command {
    RM_PYTHON_START = 1, /* text: the world to create, as JSON; the answer is its description */
    RM_PYTHON_LAYOUT,    /* text: offsets of its columns, as JSON: create all worlds */
    RM_PYTHON_RESET,     /* begin an episode in every world; write for phase 0 */
    RM_PYTHON_STEP,      /* apply the actions of `phase` of some worlds; write for the next phase */
    RM_PYTHON_STOP,
    RM_PYTHON_SHOW, /* show world `phase`: the answer is its text, or a picture in the columns */
};

/* The head; python/ringmaster/channel.py has the same offsets. */
struct rm_python_head {
    uint32_t magic, version;
    _Atomic uint32_t request; /* incremented after all other words of a request are written */
    _Atomic uint32_t starter_sleeps;
    struct rm_python_request {
        uint32_t command, phase;
        uint32_t first, worlds; /* the worker's worlds to step */
    } asked[2];                 /* request n is asked[n % 2] */
    /* The worker's. */
    _Alignas(128) _Atomic uint32_t reply; /* the latest request with an answer */
    _Atomic uint32_t worker_sleeps;
    uint32_t status[2];  /* of request n at n % 2. 0: done; 1: failed, `text` has the reason: a
                            sentence, then lines of a traceback */
    uint32_t world;      /* the world of this worker whose code runs, or ran last */
    uint32_t text_bytes; /* of the worker's text */
    _Atomic uint64_t answered_ns[2], took_ns[2]; /* request n at n % 2: when it was answered
                                            (CLOCK_MONOTONIC), and for how long it was done */
    _Atomic uint32_t core; /* where the worker answered last; UINT32_MAX: it cannot tell */
};

/* How to start a worker. Valid as long as its workers. */
struct rm_python_launch {
    char *const *arguments, *const *environment;
    const struct rm_sandbox_program *sandbox; /* NULL: not confined, but with a keeper process, so
                                                 that all processes it starts die with it */
    uint64_t memory_limit;                    /* bytes, 0: none */
};

struct rm_python_worker {
    pid_t pid; /* of the process that was started, the interpreter or its keeper; 0: none */
    pid_t interpreter;
    int process;       /* pidfd, or -1 */
    int memory;        /* memfd */
    int ask, answer;   /* eventfds: the worker's and the starter's */
    int report;        /* memfd: standard error before the worker runs, and stacks of a crash */
    uint8_t *base;     /* the mapping */
    size_t bytes;      /* of it */
    uint32_t asked;    /* number of the latest request */
    uint32_t vain;     /* number of following waits without a spin, as the last spin failed */
    uint64_t heard_ns; /* when the latest wait for an answer ended */
};

/* No worker, as rm_python_worker_end() leaves it. */
#define RM_PYTHON_NO_WORKER                                                                        \
    ((struct rm_python_worker){.process = -1, .memory = -1, .ask = -1, .answer = -1, .report = -1})

static inline struct rm_python_head *rm_python_head(const struct rm_python_worker *worker)
{
    return (struct rm_python_head *)(void *)worker->base;
}

/* Starts a worker, whose first request is RM_PYTHON_START with `text`. Returns before the worker
 * answers. Errors: no descriptors, no memory, or the program cannot be run. */
int rm_python_worker_start(struct rm_python_worker *worker, const struct rm_python_launch *launch,
                           const char *text, struct rm_error *error);

/* Makes room for `bytes` of columns after the text, all zero. Call once. */
int rm_python_worker_grow(struct rm_python_worker *worker, size_t bytes, struct rm_error *error);

/* Writes `text` for the worker (NULL: no change) and makes a request, whose number is
 * worker->asked. At most one earlier request may be without an answer. */
void rm_python_worker_ask(struct rm_python_worker *worker, struct rm_python_request request,
                          const char *text);

/* Has the worker answered this request? */
bool rm_python_worker_answered(const struct rm_python_worker *worker, uint32_t request);

/* Waits for the answer to a request, until rm_now_ns() is `until_ns`. 0: done; -EREMOTEIO: the
 * worker reports a failure; -ECHILD: the worker has ended; -ETIMEDOUT. Read answers in order. */
int rm_python_worker_await(struct rm_python_worker *worker, uint32_t request, uint64_t until_ns);

/* Waits until one of `n` workers (1 to RM_PYTHON_WORKERS) has answered its request. -ECHILD: one
 * has ended; -ETIMEDOUT. */
int rm_python_workers_wait(struct rm_python_worker *const *workers, const uint32_t *requests,
                           uint32_t n, uint64_t until_ns);

/* Copies the worker's text, repaired, at most size - 1 bytes. */
void rm_python_worker_text(const struct rm_python_worker *worker, char *text, size_t size);

/* The same for its report: crashes, stacks, and the interpreter's output before the worker ran. */
void rm_python_worker_report(const struct rm_python_worker *worker, char *text, size_t size);

/* Makes a worker that hangs write the stacks of its threads into its report, and waits a moment for
 * it. */
void rm_python_worker_look(struct rm_python_worker *worker);

/* The worker's resident memory in bytes; 0: unknown. */
uint64_t rm_python_worker_resident(const struct rm_python_worker *worker);

/* Processor time of all threads of the interpreter in nanoseconds; 0: unknown. */
uint64_t rm_python_worker_cpu_ns(const struct rm_python_worker *worker);

/* Kills the worker and its process group; for a worker that is not confined, all processes that it
 * has started. Returns the status of waitpid(). */
int rm_python_worker_kill(struct rm_python_worker *worker);

/* The same, and frees all. Does nothing without a worker. */
void rm_python_worker_end(struct rm_python_worker *worker);

#endif
