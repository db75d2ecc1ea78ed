/* loop_memory: libuv aborts the process when there is no memory for its table of descriptors to
 * grow. Here such a table then goes into a reserve that stands ready, once; what else libuv asks
 * for may be refused, and it says so. */
#ifndef RM_DAEMON_LOOP_MEMORY_H
#define RM_DAEMON_LOOP_MEMORY_H

/* Before the process has a loop. One thread only may use libuv. May be called again. */
void rm_loop_memory_reserve(void);

#endif
