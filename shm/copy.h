/* copy: copies of shared memory that somebody else may be writing to, whose result is thrown away
 * when a check afterwards says so (the seqlocks of ring and weights).
 *
 * C11 calls a race of plain accesses undefined, and a compiler may use that: fetch a word twice, or
 * move a load past the check. So these copies are not memcpy. Relaxed atomic loads of 8 bytes would
 * be the letter of the standard, but no compiler joins them into vector moves, and they reach about
 * half of memcpy's speed from cache. On x86-64 the copy is therefore inline assembly, of which the
 * compiler knows only that it reads and writes memory: it can neither repeat nor move it, and the
 * fences of atomic.h on both sides order it as they would the atomics. Elsewhere, and for copies
 * that ThreadSanitizer should see, it is the loop of relaxed atomics. */
#ifndef RM_SHM_COPY_H
#define RM_SHM_COPY_H

#include <stddef.h>

/* Both sides may race, and both use these two: what ThreadSanitizer watches. 8-byte aligned shared
 * side; `bytes` is any number. */
void rm_copy_to_shared(void *shared, const void *from, size_t bytes);
void rm_copy_from_shared(void *to, const void *shared, size_t bytes);

/* Out of a ring's row, which its writer fills with plain stores (the world writes straight into it)
 * and may overwrite meanwhile. Hidden from ThreadSanitizer, which cannot know that the copy is
 * dropped unless rm_ring_intact(). Any alignment. */
void rm_copy_row_out(void *to, const void *row, size_t bytes);

#endif
