#include "config/json_memory.h"

#include <stdlib.h>

static _Thread_local uint64_t failures;

static void *watched_malloc(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p)
        failures++;
    return p;
}

/* Before main(), because jansson requires it before its first allocation. */
__attribute__((constructor)) static void watch(void)
{
    json_set_alloc_funcs(watched_malloc, free);
}

uint64_t rm_json_failures(void)
{
    return failures;
}

json_t *rm_json_whole(json_t *value, uint64_t mark)
{
    if (failures == mark)
        return value;
    json_decref(value);
    return NULL;
}

char *rm_json_dump(const json_t *value, size_t flags)
{
    const uint64_t mark = failures;
    char *text = value ? json_dumps(value, flags) : NULL;
    if (failures == mark)
        return text;
    free(text);
    return NULL;
}
