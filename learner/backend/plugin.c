#include "learner/backend/plugin.h"

#include "shm/base/plugin_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "ringmaster-cuda.so"

int rm_plugin_open(const struct rm_backend_plugin **plugin, struct rm_error *error)
{
    static const struct rm_backend_plugin *open;
    static char found[PATH_MAX];
    static void *object; /* never closed: its functions are called until the end */
    *plugin = open;
    if (open)
        return 0;
    const int rc = rm_plugin_find(FILE_NAME, "RINGMASTER_CUDA_PLUGIN",
                                  "Ringmaster was built without CUDA (nvcc), or its GPU package is "
                                  "not installed",
                                  found, error);
    if (rc)
        return rc;
    object = dlopen(found, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return rm_fail(error, -ELIBACC, "%s", dlerror());
    const struct rm_backend_plugin *p = dlsym(object, RM_PLUGIN_SYMBOL);
    if (!p || p->api != RM_PLUGIN_API || p->backend != RM_BACKEND_API ||
        p->layout != RM_PLUGIN_LAYOUT) {
        rm_fail(error, -EPROTO, "%s is not of this version of Ringmaster: install both together",
                found);
        dlclose(object);
        return -EPROTO;
    }
    *plugin = open = p;
    return 0;
}
