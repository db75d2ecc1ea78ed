/* copy: copies shared memory that another process may be writing to. The caller checks afterwards
 * and drops the copy when it was torn (the seqlocks of ring and weights).
 *
 * C11 calls a race of plain accesses undefined, and a compiler may use that: fetch a word twice, or
 * move a load past the check. So these copies are not memcpy. Relaxed atomic loads of 8 bytes would
 * conform to the standard, but no compiler joins them into vector moves, and they reach about half
 * of memcpy's speed from cache. On x86-64 the copy is therefore inline assembly, of which the
 * compiler knows only that it reads and writes memory: it can neither repeat nor move it, and the
 * fences of atomic.h on both sides order it as they would the atomics. On other processors, and for
 * copies that ThreadSanitizer should see, the copy is a loop of relaxed atomics. */
#ifndef RM_SHM_COPY_H
#define RM_SHM_COPY_H

#include <stddef.h>

/* For memory that both sides access with these two functions only. ThreadSanitizer watches these
 * copies. The shared side is 8-byte aligned; `bytes` is any number. */
void rm_copy_to_shared(void *shared, const void *from, size_t bytes);
void rm_copy_from_shared(void *to, const void *shared, size_t bytes);

/* Copies out of a ring's row. The writer fills the row with plain stores (the world writes straight
 * into it) and may overwrite it meanwhile. The copy is hidden from ThreadSanitizer, which cannot
 * know that it is dropped unless rm_ring_intact(). Any alignment. */
void rm_copy_row_out(void *to, const void *row, size_t bytes);

#endif
