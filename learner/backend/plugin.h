/* plugin: backends that are shared objects of their own, so that the same package runs where what
 * they need is missing. Two sides: what such an object exports, and who opens it.
 *
 * ringmaster-cuda.so is looked for in $RINGMASTER_CUDA_PLUGIN (a path; nowhere else then), beside
 * the executable (where `make install` puts it), and in ../lib and ../lib/ringmaster from there. */
#ifndef RM_LEARNER_BACKEND_PLUGIN_H
#define RM_LEARNER_BACKEND_PLUGIN_H

#include "config/compute.h"
#include "learner/backend/backend.h"
#include "learner/backend/device.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Goes up with every change of backend.h or device.h that a plugin can see; the tables' sizes are
 * compared besides. */
#define RM_PLUGIN_API    2u
#define RM_PLUGIN_LAYOUT (sizeof(struct rm_backend_ops) << 16 | sizeof(struct rm_device_ops))
#define RM_PLUGIN_SYMBOL "ringmaster_backend_plugin"

struct rm_device_info {
    uint32_t index;        /* the runtime's */
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
    uint32_t threads; /* of the host, for what runs there */
    bool plain;       /* without what some shapes have kernels of their own for: to compare */
    bool small;       /* convolutions by few blocks and in small pieces, as if images were many: to
                         compare */
};

/* What the object exports under RM_PLUGIN_SYMBOL. */
struct rm_backend_plugin {
    uint32_t api;     /* RM_PLUGIN_API */
    uint32_t backend; /* RM_BACKEND_API */
    size_t layout;    /* RM_PLUGIN_LAYOUT */
    const char *name; /* "cuda 13.0" */

    /* Fills up to `room` devices and says in *count how many there are. 0 with none too; an error
     * with a message if there is no driver or it is too old: -ENODEV, -ENOTSUP. Makes no
     * context. */
    int (*devices)(struct rm_device_info *devices, uint32_t room, uint32_t *count,
                   struct rm_error *error);
    int (*create)(struct rm_backend **backend, const struct rm_device_spec *spec,
                  struct rm_error *error);
};

/* Opens ringmaster-cuda.so, once per process; it stays. -ENOENT where there is none, -ELIBACC where
 * a library that it needs is missing, -EPROTO where it is of another version. */
int rm_plugin_open(const struct rm_backend_plugin **plugin, struct rm_error *error);

#endif
