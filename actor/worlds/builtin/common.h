/* common: random streams, options and messages of the built-in worlds. Internal to
 * actor/worlds/builtin; a user's world needs only actor/env.h. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_COMMON_H
#define RM_ACTOR_WORLDS_BUILTIN_COMMON_H

#include "actor/env.h"
#include "shm/base/draw.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define RM_ENV_ERROR_TEXT 256

/* Every world of every batch draws from (seed, world id, episode) alone. */
static inline struct rm_rng rm_env_rng(uint64_t seed, uint64_t world, uint64_t episode)
{
    struct rm_rng rng;
    rm_draw_world(&rng, seed, world, episode);
    return rng;
}

/* Rows of a table of options. */
#define RM_OPTION_OF(type_, key_, fallback_, low_, high_, doc_)                                    \
    {                                                                                              \
        .key = (key_), .fallback = (fallback_), .low = (low_), .high = (high_), .doc = (doc_),     \
        .type = (type_)                                                                            \
    }
#define RM_OPTION_WHOLE(...)  RM_OPTION_OF(RM_ENV_WHOLE, __VA_ARGS__)
#define RM_OPTION_NUMBER(...) RM_OPTION_OF(RM_ENV_NUMBER, __VA_ARGS__)

/* The configured option `key`; NULL: it is not configured. */
static inline const struct rm_env_option *rm_env_find_option(const struct rm_env_config *config,
                                                             const char *key)
{
    for (uint32_t i = 0; i < config->option_count; i++)
        if (strcmp(config->options[i].key, key) == 0)
            return &config->options[i];
    return NULL;
}

/* The value of option `key`: the configured one, else the table's default. */
static inline double rm_env_option(const struct rm_env_config *config,
                                   const struct rm_env_option_doc *docs, const char *key)
{
    const struct rm_env_option *option = rm_env_find_option(config, key);
    if (option)
        return option->value;
    for (; docs->key; docs++)
        if (strcmp(docs->key, key) == 0)
            return docs->fallback;
    return 0;
}

static inline uint32_t rm_env_option_u32(const struct rm_env_config *config,
                                         const struct rm_env_option_doc *docs, const char *key)
{
    return (uint32_t)rm_env_option(config, docs, key);
}

/* Entry w of a strided buffer. */
static inline void *rm_env_at(void *base, ptrdiff_t stride, uint32_t w)
{
    return (char *)base + (ptrdiff_t)w * stride;
}

/* Leaves a message and returns `code`, for `return rm_env_fail(...)`. */
__attribute__((format(printf, 3, 4))) static inline int rm_env_fail(char *text, int code,
                                                                    const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(text, RM_ENV_ERROR_TEXT, format, args);
    va_end(args);
    return code;
}

#endif
