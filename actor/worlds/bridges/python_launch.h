/* python_launch: the interpreter, environment and confinement with which a Python worker is
 * started. A confined worker can read the interpreter's files, the system's, the working directory
 * and the folders of PYTHONPATH; it can write to a temporary folder. */
#ifndef RM_ACTOR_WORLDS_BRIDGES_PYTHON_LAUNCH_H
#define RM_ACTOR_WORLDS_BRIDGES_PYTHON_LAUNCH_H

#include "actor/worlds/bridges/python_worker.h"

#include <limits.h>
#include <stdbool.h>

struct rm_python_launching {
    struct rm_python_launch launch;
    struct rm_sandbox_program sandbox;
    char interpreter[PATH_MAX];
    char folder[PATH_MAX]; /* temporary, of this batch; removed at the end */
    int held;              /* its descriptor, whose lock says that it has an owner */
    char above[PATH_MAX];  /* the run's folder that contains it; "" if it is in TMPDIR */
    char *arguments[4];
    char **environment; /* ends with NULL; owned */
};

struct rm_python_manner {
    const char *interpreter; /* "": the one of VIRTUAL_ENV, else python3 on the PATH */
    const char *modules;     /* a folder to search for modules, "": none */
    const char *directory;   /* NULL: temporary files are below TMPDIR */
    bool confined, must;     /* must: an error if the worker cannot be confined */
    bool network;
    uint64_t memory_limit;
};

int rm_python_launching_prepare(struct rm_python_launching *launching,
                                const struct rm_python_manner *manner, struct rm_error *error);
void rm_python_launching_free(struct rm_python_launching *launching);

#endif
