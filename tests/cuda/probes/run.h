/* run: what the tests of the emulation have in common. */
#ifndef RM_TESTS_CUDA_PROBES_RUN_H
#define RM_TESTS_CUDA_PROBES_RUN_H

#include "tests/cuda/probes/probes.h"
#include "tests/cuda/emulation/control.h"

#include <stdbool.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifndef WITH_ASAN
#define WITH_ASAN 0
#endif

/* Numbers of errors, as the runtime has them. */
#define INVALID_VALUE         1
#define OUT_OF_MEMORY         2
#define INVALID_CONFIGURATION 9
#define NOT_READY             600
#define ILLEGAL_ADDRESS       700
#define LAUNCH_FAILURE        719
#define CAPTURE_UNSUPPORTED   900
#define CAPTURE_INVALIDATED   901
#define CAPTURE_UNJOINED      904
#define CAPTURE_ISOLATION     905

/* Controls of probes.so. */
struct probes {
    void *object;
    void (*counts)(struct rm_emulated_counts *out);
    int (*order)(const char *order);
    int (*poison)(uint32_t word);
    int (*fault)(const char *faults);
    const char *(*complaint)(void);
    uint64_t (*reset)(void);
};

extern struct probes probes; /* opened by probes_open(), which ends a program that cannot */
void probes_open(void);

/* Settings that results must not depend on: order of threads and blocks, and what fresh memory has.
 * Sets number i and says what it is; NULL after the last. */
const char *probes_setting(unsigned i);

/* A cmocka setup: forgets all that was, default settings. */
int probes_fresh(void **state);

/* Runs a probe: its error, and what it computed. */
int probe(const char *name, float out[PROBE_OUT]);

/* Runs it in every setting: no error, the same results. */
void probe_everywhere(const char *name, float out[PROBE_OUT]);

/* Whether results depend on the setting, as those of something wrong must. */
bool probe_depends_on_setting(const char *name);

/* It must give this error in every order, and a complaint that has these words. */
void probe_fails(const char *name, int error, const char *words, const char *more);

/* Whether the process that runs it is killed. */
bool probe_kills(const char *name);

#endif
