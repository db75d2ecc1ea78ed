#include "learner/backend/cuda/nccl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const functions[] = {
    "ncclGetVersion", "ncclCommInitAll",       "ncclAllReduce",
    "ncclGroupStart", "ncclGroupEnd",          "ncclCommDestroy",
    "ncclCommAbort",  "ncclCommGetAsyncError", "ncclGetErrorString",
};
static_assert(sizeof functions / sizeof *functions == sizeof(struct rm_nccl) / sizeof(void *),
              "a name per function");

static int look_up(void *object, const char *path, struct rm_nccl *out, struct rm_error *error)
{
    void *found[sizeof functions / sizeof *functions];
    int version = 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        found[i] = dlsym(object, functions[i]);
        if (!found[i])
            return rm_fail(error, -EPROTO, "%s has no %s: not NCCL, or too old", path,
                           functions[i]);
    }
    memcpy(out, found, sizeof *out);
    const int rc = out->version(&version);
    if (rc != RM_NCCL_SUCCESS || version < RM_NCCL_OLDEST)
        return rm_fail(error, -EPROTO, "%s is NCCL %d.%d; 2.10 or newer is needed", path,
                       version / 10000, version / 100 % 100);
    return 0;
}

int rm_nccl_open(const struct rm_nccl **nccl, struct rm_error *error)
{
    static struct rm_nccl opened;
    static bool open;
    const char *given = getenv("RINGMASTER_NCCL");
    const char *path = given && *given ? given : "libnccl.so.2";
    *nccl = &opened;
    if (open)
        return 0;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return rm_fail(error, -ELIBACC,
                       "several devices for one agent (learner.devices) need NCCL: %s", dlerror());
    const int rc = look_up(object, path, &opened, error);
    if (rc)
        dlclose(object);
    open = !rc;
    return rc;
}
