/* loop_memory: a reserve of memory for libuv, which aborts the process if its table of descriptors
 * cannot grow. The table then moves into the reserve, once. libuv reports its other failed
 * allocations as errors. */
#ifndef RM_DAEMON_LOOP_MEMORY_H
#define RM_DAEMON_LOOP_MEMORY_H

/* Call it before the process has a loop; only one thread may use libuv. Further calls change
 * nothing. */
void rm_loop_memory_reserve(void);

#endif
