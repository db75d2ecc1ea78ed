#include "daemon/heap.h"

#include <malloc.h>

bool rm_heap_share(void)
{
    /* That either bound is set keeps both from being moved. */
    return mallopt(M_ARENA_MAX, 1) && mallopt(M_MMAP_THRESHOLD, RM_HEAP_APART_BYTES) &&
           mallopt(M_TRIM_THRESHOLD, 131072);
}
