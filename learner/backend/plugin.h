/* plugin: backends in shared objects, so that one package runs on hosts that lack a backend's
 * libraries. This header has the object's symbol and the functions that open it.
 *
 * ringmaster-cuda.so is searched in $RINGMASTER_CUDA_PLUGIN (a path; then nowhere else), beside the
 * executable (where `make install` puts it), and in ../lib and ../lib/ringmaster from there. */
#ifndef RM_LEARNER_BACKEND_PLUGIN_H
#define RM_LEARNER_BACKEND_PLUGIN_H

#include "config/compute.h"
#include "learner/backend/backend.h"
#include "learner/backend/device.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Increase it with every change of backend.h or device.h that a plugin can see; the sizes of the
 * tables are compared too. */
#define RM_PLUGIN_API    2u
#define RM_PLUGIN_LAYOUT (sizeof(struct rm_backend_ops) << 16 | sizeof(struct rm_device_ops))
#define RM_PLUGIN_SYMBOL "ringmaster_backend_plugin"

struct rm_device_info {
    uint32_t index;        /* the runtime's number */
    char name[128];        /* "NVIDIA H100" */
    char uuid[48];         /* "GPU-1a2b..." */
    uint32_t major, minor; /* compute capability */
    uint64_t memory, free; /* bytes */
    uint32_t processors;   /* streaming multiprocessors */
    bool mps;              /* whether other processes share it through MPS */
};

struct rm_device_spec {
    uint32_t index;
    enum rm_compute compute;
    uint32_t threads; /* of the host, for work there */
    bool plain;       /* without the special kernels of some shapes, for comparison */
    bool
        small; /* convolutions in few blocks and small pieces, as for many images, for comparison */
};

/* The object exports this as RM_PLUGIN_SYMBOL. */
struct rm_backend_plugin {
    uint32_t api;     /* RM_PLUGIN_API */
    uint32_t backend; /* RM_BACKEND_API */
    size_t layout;    /* RM_PLUGIN_LAYOUT */
    const char *name; /* "cuda 13.0" */

    /* Fills up to `room` devices; *count is their number, which may be 0. -ENODEV or -ENOTSUP with
     * a message: no driver, or it is too old. Creates no context. */
    int (*devices)(struct rm_device_info *devices, uint32_t room, uint32_t *count,
                   struct rm_error *error);
    int (*create)(struct rm_backend **backend, const struct rm_device_spec *spec,
                  struct rm_error *error);
};

/* Opens ringmaster-cuda.so, once per process. -ENOENT: no such file, -ELIBACC: a library that it
 * needs is missing, -EPROTO: it has another version. */
int rm_plugin_open(const struct rm_backend_plugin **plugin, struct rm_error *error);

#endif
