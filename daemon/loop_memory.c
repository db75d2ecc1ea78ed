#include "daemon/loop_memory.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define RESERVE_BYTES 65536 /* a table of 8190 descriptors */

static _Alignas(64) unsigned char reserve[RESERVE_BYTES];
static bool in_use;

static void *out_of_reserve(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p)
        return bytes <= RESERVE_BYTES ? reserve : NULL;
    memcpy(p, reserve, bytes < RESERVE_BYTES ? bytes : RESERVE_BYTES);
    in_use = false;
    return p;
}

static void *resize(void *p, size_t bytes)
{
    if (p == reserve)
        return out_of_reserve(bytes);
    void *moved = realloc(p, bytes);
    if (moved || bytes == 0 || in_use || bytes > RESERVE_BYTES)
        return moved;
    if (p) {
        const size_t held = malloc_usable_size(p);
        memcpy(reserve, p, held < bytes ? held : bytes);
        free(p);
    }
    in_use = true;
    return reserve;
}

static void release(void *p)
{
    if (p == reserve)
        in_use = false;
    else
        free(p);
}

void rm_loop_memory_reserve(void)
{
    uv_replace_allocator(malloc, resize, calloc, release);
}
