#include "learner/backend/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "ringmaster-cuda.so"

static char found[PATH_MAX];

/* The directory of the executable, with its slash; "" if it is not known. */
static void own_directory(char out[PATH_MAX])
{
    const ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    out[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(out, '/');
    *(slash ? slash + 1 : out) = '\0';
}

static bool is_there(const char *directory, const char *rest)
{
    const int n = snprintf(found, sizeof found, "%s%s%s", directory, rest, FILE_NAME);
    if (n < (int)sizeof found && access(found, R_OK) == 0)
        return true;
    found[0] = '\0';
    return false;
}

static int find(struct rm_error *error)
{
    static const char *const places[] = {"", "../lib/", "../lib/ringmaster/"};
    const char *given = getenv("RINGMASTER_CUDA_PLUGIN");
    char own[PATH_MAX];
    if (given && *given) {
        if (access(given, R_OK) || strlen(given) >= sizeof found)
            return rm_fail(error, -ENOENT, "RINGMASTER_CUDA_PLUGIN: %s: %s", given,
                           strerror(errno));
        memcpy(found, given, strlen(given) + 1);
        return 0;
    }
    own_directory(own);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (is_there(own, places[i]))
            return 0;
    return rm_fail(error, -ENOENT,
                   "no " FILE_NAME " in %s or %s../lib/ringmaster/: Ringmaster was built "
                   "without CUDA (nvcc), or its GPU package is not installed",
                   own, own);
}

int rm_plugin_open(const struct rm_backend_plugin **plugin, struct rm_error *error)
{
    static const struct rm_backend_plugin *open;
    static void *object; /* never closed: its functions are called until the end */
    *plugin = open;
    if (open)
        return 0;
    const int rc = find(error);
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
