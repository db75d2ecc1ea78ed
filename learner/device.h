/* device: which backend a learner computes with, by learner.device, and why. */
#ifndef RM_LEARNER_DEVICE_H
#define RM_LEARNER_DEVICE_H

#include "shm/session/session.h"
#include "learner/backend/backend.h"
#include "learner/backend/device_collective.h"
#include "learner/backend/plugin.h"
#include "shm/base/error.h"

#define RM_DEVICES_MAX 64

/* An update below so many floating-point operations is left to the CPU by "auto": its kernels are
 * too short for what it takes to launch them. Not yet measured on a GPU. */
#define RM_DEVICE_WORTH_FLOPS 2e7

struct rm_device_wish {
    const char *device; /* learner.device */
    enum rm_compute compute;
    const char *isa;
    uint32_t threads;
    uint32_t policy;                /* spreads policies over GPUs */
    uint32_t devices;               /* learner.devices; 0 counts as 1 */
    uint32_t batch;                 /* that they share evenly; 0: in any parts */
    const char *alone;              /* why it is one all the same, NULL: it need not be */
    const char *cannot;             /* why no GPU can be used, NULL: one can */
    double flops;                   /* of an update */
    const struct rm_board_run *run; /* GPUs in quarantine; NULL: none */
};

struct rm_device_choice {
    bool device;    /* a GPU; else the CPU */
    bool asked_for; /* by name: nothing else will do */
    uint32_t count; /* of GPUs; they train together where there are several */
    struct rm_device_info info[RM_DEVICE_MEMBERS];
    char why[512]; /* in words: "cpu: ..." or "cuda:0 NVIDIA ...: ..." */
};

/* Chooses, and makes nothing. Errors, all in words: a device asked for by name is missing (-ENODEV,
 * -ENOENT, -ENOTSUP, -ELIBACC, -EPROTO) or in quarantine (-EHOSTDOWN). */
int rm_device_choose(struct rm_device_choice *choice, const struct rm_device_wish *wish,
                     struct rm_error *error);

/* The wish of the learner of `policy`. */
struct rm_device_wish rm_device_wish_of(const struct rm_session *session, uint32_t policy);

/* The backend that was chosen: of several, joined, the first. It goes with rm_device_close(). */
int rm_device_open(struct rm_backend **backend, const struct rm_device_choice *choice,
                   const struct rm_device_wish *wish, struct rm_error *error);

void rm_device_close(struct rm_backend *backend);

/* Puts a device on the learner's slot of the board, which is what the supervisor tallies faults by:
 * of several the first, and when they have failed the one that did. */
void rm_device_tell(struct rm_board_worker *slot, const struct rm_device_choice *choice,
                    uint32_t which);
uint32_t rm_device_culprit(struct rm_backend *backend);

/* What the last allocation that failed asked for, and what was free, "" if none did; of several
 * devices, of which. */
const char *rm_device_shortage(struct rm_backend *backend, uint32_t *which);

/* Whether starting the learner anew cannot mend this error of the functions above. */
bool rm_device_hopeless(int code);

#endif
