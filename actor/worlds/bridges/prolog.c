#include "actor/worlds/bridges/prolog.h"

#include "actor/worlds/prolog/plugin.h"
#include "shm/base/plugin_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rm_prolog_open(struct rm_world *world, struct rm_error *error)
{
    char path[PATH_MAX];
    *world = (struct rm_world){0};
    int rc = rm_plugin_find("ringmaster-prolog.so", "RINGMASTER_PROLOG_PLUGIN",
                            "Ringmaster was built without SWI-Prolog; install the package "
                            "swi-prolog-core and build again",
                            path, error);
    if (rc < 0)
        return rm_fail_within(error, rc, "world.prolog");
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return rm_fail(error, -ENOENT,
                       "world.prolog: SWI-Prolog is not here; install the package swi-prolog-core "
                       "(%s)",
                       dlerror());
    rc = rm_world_open(world, "", path, error);
    dlclose(object);
    return rc;
}

/* The row of a table for an option that is this value. */
static struct rm_env_option_doc doc_of(const char *key, const json_t *value)
{
    const json_t *one = json_is_array(value) ? json_array_get(value, 0) : value;
    return (struct rm_env_option_doc){
        .key = key,
        .low = -INFINITY,
        .high = INFINITY,
        .type = json_is_string(one) ? RM_ENV_WORD : RM_ENV_NUMBER,
        .most = json_is_array(value) ? RM_OPTIONS_MAX : 0,
    };
}

int rm_prolog_options(struct rm_options *options, const struct rm_world_config *config,
                      struct rm_error *error)
{
    struct rm_world_config *told = malloc(sizeof *told);
    json_t *json = json_loads(config->options[0] ? config->options : "{}", 0, NULL), *value;
    struct rm_env_option_doc *docs = calloc(json_object_size(json) + 2, sizeof *docs);
    size_t count = 0;
    const char *key;
    char *text = NULL;
    int rc = rm_fail(error, -ENOMEM, "world.options: no memory");

    if (told && docs && json_is_object(json)) {
        json_object_foreach(json, key, value) docs[count++] = doc_of(key, value);
        docs[count] = (struct rm_env_option_doc){.key = RM_PROLOG_FILE, .type = RM_ENV_PATH};
        json_object_set_new(json, RM_PROLOG_FILE, json_string(config->prolog));
        text = json_dumps(json, JSON_COMPACT);
        *told = *config;
        rc = text && strlen(text) < sizeof told->options
                 ? 0
                 : rm_fail(error, -EINVAL, "world.options: too long");
    }
    if (rc == 0) {
        snprintf(told->options, sizeof told->options, "%s", text);
        rc = rm_options_read(options, config->name, docs, told, error);
    }
    json_decref(json);
    free(told);
    free(docs);
    free(text);
    return rc;
}
