/* heap: limits the freed memory that a process keeps over months.
 *
 * By default glibc gives every thread that allocates a separate heap, and each heap keeps the most
 * memory that its thread ever used. glibc also raises the size from which a block is mapped
 * separately to that of the largest freed block; then heaps keep twice that size at their ends. Any
 * thread of an event loop's pool may read a configuration or copy rings for a checkpoint. So memory
 * grows for hours, by several times, until each thread has done all of that once. */
#ifndef RM_DAEMON_HEAP_H
#define RM_DAEMON_HEAP_H

#include <stdbool.h>

/* A block of at least this size that fits no gap of the heap is mapped separately, and unmapped
 * when it is freed: copies of rings and weights, and clients' request buffers. */
#define RM_HEAP_APART_BYTES 65536

/* Makes all threads use one heap, which keeps up to 128 KiB at its end. main calls it before it
 * creates threads; it cannot be undone. false: the C library refused, and nothing changes. */
bool rm_heap_share(void);

#endif
