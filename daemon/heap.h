/* heap: what a process that runs for months keeps of memory that it has given back to malloc().
 *
 * Left to itself glibc gives every thread that allocates a heap of its own, each of which keeps
 * what its thread ever needed at once, and raises the size from which blocks have a mapping of
 * their own to that of the largest that was freed: then heaps keep twice that much at their ends.
 * With the threads of an event loop, of which any may read a configuration or copy rings for a
 * checkpoint, memory grows until each of them has done all of it once: over hours, by several
 * times. */
#ifndef RM_DAEMON_HEAP_H
#define RM_DAEMON_HEAP_H

#include <stdbool.h>

/* Blocks from this size on which no gap of the heap has room for have a mapping of their own, which
 * goes when they are freed: copies of rings and weights, and clients' buffers of requests. */
#define RM_HEAP_APART_BYTES 65536

/* One heap for all threads, which keeps up to 128 KiB at its end. For the whole process and for
 * good: main calls it, before there are threads. false: the C library would not have it so, and all
 * stays as it does without. */
bool rm_heap_share(void);

#endif
