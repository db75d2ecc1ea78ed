/* device_choice: chooses a learner's backend by learner.device, with a reason for the log. */
#ifndef RM_LEARNER_DEVICE_CHOICE_H
#define RM_LEARNER_DEVICE_CHOICE_H

#include "shm/session/session.h"
#include "learner/backend/backend.h"
#include "learner/backend/device_collective.h"
#include "learner/backend/plugin.h"
#include "shm/base/error.h"

#define RM_DEVICES_MAX 64

/* With "auto", an update with fewer floating-point operations runs on the CPU, because launching
 * its kernels would take longer than running them. Not yet measured on a GPU. */
#define RM_DEVICE_WORTH_FLOPS 2e7

struct rm_device_request {
    const char *device; /* learner.device */
    enum rm_compute compute;
    const char *isa;
    uint32_t threads;
    uint32_t policy;    /* index of the policy, which spreads policies over GPUs */
    uint32_t devices;   /* learner.devices; 0 counts as 1 */
    uint32_t batch;     /* rows that the devices must divide evenly; 0: parts may differ */
    const char *alone;  /* reason why only one device can be used; NULL: several can */
    const char *cannot; /* reason why no GPU can be used; NULL: a GPU can */
    double flops;       /* of an update */
    const struct rm_board_run *run; /* has the GPUs in quarantine; NULL: none */
};

struct rm_device_choice {
    bool device;    /* true: a GPU; false: the CPU */
    bool asked_for; /* true: by name, so no other device may be used */
    uint32_t count; /* number of GPUs; several train together */
    struct rm_device_info info[RM_DEVICE_MEMBERS];
    char why[512]; /* reason for the log: "cpu: ..." or "cuda:0 NVIDIA ...: ..." */
};

/* Chooses a device without opening it. Errors: a device given by name is missing (-ENODEV, -ENOENT,
 * -ENOTSUP, -ELIBACC, -EPROTO) or in quarantine (-EHOSTDOWN). */
int rm_device_choose(struct rm_device_choice *choice, const struct rm_device_request *request,
                     struct rm_error *error);

/* The request of the learner of `policy`. */
struct rm_device_request rm_device_request_of(const struct rm_session *session, uint32_t policy);

/* Opens the chosen backend. If several are joined, returns the first. Close it with
 * rm_device_close(). */
int rm_device_open(struct rm_backend **backend, const struct rm_device_choice *choice,
                   const struct rm_device_request *request, struct rm_error *error);

void rm_device_close(struct rm_backend *backend);

/* rm_device_report() writes the name of a device to the learner's slot on the board, for the
 * supervisor, which counts faults by device: the first of several, and after a failure the failing
 * device, whose index rm_device_failing() returns. */
void rm_device_report(struct rm_board_worker *slot, const struct rm_device_choice *choice,
                      uint32_t which);
uint32_t rm_device_failing(struct rm_backend *backend);

/* Requested and free size of the last failed allocation, "" if none failed; *which: the device, if
 * there are several. */
const char *rm_device_shortage(struct rm_backend *backend, uint32_t *which);

/* True if restarting the learner cannot repair this error of the functions above. */
bool rm_device_hopeless(int code);

#endif
