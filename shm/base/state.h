/* state: what something is made of, as named parts in memory. Whoever has state describes it once,
 * in a function that names every part; the same function then saves (parts are copied out) and
 * loads (parts are copied in), so the two cannot drift apart:
 *
 *   void pace_state(struct pace *p, struct rm_state *s)
 *   {
 *       RM_STATE(s, "round", p->round);
 *       rm_state_bytes(s, "ages", p->ages, p->lanes * sizeof *p->ages);
 *   }
 *
 * Parts keep their order and may come back in any. Names within rm_state_enter("x") begin with
 * "x.". Numbers are stored as they lie in memory, little-endian. The first thing that goes wrong is
 * kept for rm_state_end(); after it, loading changes nothing more.
 *
 * Belongs to one thread at a time: one may fill it and another write it to a file. */
#ifndef RM_SHM_BASE_STATE_H
#define RM_SHM_BASE_STATE_H

#include "shm/base/archive.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RM_STATE_NAME_MAX RM_ARCHIVE_NAME_MAX

enum rm_state_kind {
    RM_STATE_BYTES = 1,
    RM_STATE_FLOATS, /* an array of float: may be written where tensors are */
};

struct rm_state_part {
    char name[RM_STATE_NAME_MAX];
    enum rm_state_kind kind;
    size_t bytes;
    void *data;
    uint64_t hash; /* of the name */
    bool taken;    /* loading: somebody asked for it */
};

struct rm_state;

/* Empty, and saving until rm_state_load(). */
int rm_state_create(struct rm_state **state, struct rm_error *error);
void rm_state_destroy(struct rm_state *state);

/* From now on parts are copied in. */
void rm_state_load(struct rm_state *state);
bool rm_state_loading(const struct rm_state *state);

/* Loading: of all parts only those are copied in that are called as one of `nouns` (the last is
 * NULL), or stand within one that is: "optimizer" for "replay.optimizer.steps". Whatever else is
 * asked for stays as it is, and nothing is left over. `nouns` stay the caller's. */
void rm_state_only(struct rm_state *state, const char *const *nouns);

/* Names of the parts to come begin with `name` and a dot; to be left again. */
void rm_state_enter(struct rm_state *state, const char *name);
void rm_state_leave(struct rm_state *state);

/* A part of `bytes` at `data`: copied out, or in. NULL data with 0 bytes is a part too. */
void rm_state_bytes(struct rm_state *state, const char *name, void *data, size_t bytes);
void rm_state_floats(struct rm_state *state, const char *name, float *data, size_t count);
#define RM_STATE(state, name, lvalue) rm_state_bytes(state, name, &(lvalue), sizeof(lvalue))

/* The same for what does not lie in plain memory: where the part stands, for the caller to fill
 * (saving) or to take from (loading). NULL after something went wrong. */
void *rm_state_part(struct rm_state *state, const char *name, enum rm_state_kind kind,
                    size_t bytes);

/* Loading: is there such a part, and how large is it (0 where there is none)? */
bool rm_state_has(const struct rm_state *state, const char *name);
size_t rm_state_bytes_of(const struct rm_state *state, const char *name);

/* The state cannot be loaded, or saved, for this reason. */
void rm_state_fail(struct rm_state *state, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What came of it: 0, or the first thing that went wrong. Loading: -EPROTO too when a part was left
 * over, which belongs to something that is not there. */
int rm_state_end(struct rm_state *state, struct rm_error *error);

/* For readers and writers of files. A part that is added is copied; -EEXIST when it is there. */
size_t rm_state_count(const struct rm_state *state);
const struct rm_state_part *rm_state_at(const struct rm_state *state, size_t i);
int rm_state_add(struct rm_state *state, const char *name, enum rm_state_kind kind,
                 const void *data, size_t bytes, struct rm_error *error);

/* All parts of `kinds` (a sum of 1 << kind) to an archive, a stream each, synced. */
#define RM_STATE_ALL (1u << RM_STATE_BYTES | 1u << RM_STATE_FLOATS)
int rm_state_write(const struct rm_state *state, const char *path, unsigned kinds,
                   struct rm_error *error);

/* Adds the parts of an archive. Errors: those of the archive; -EPROTO for lengths that cannot be.
 */
int rm_state_read(struct rm_state *state, const char *path, struct rm_error *error);

#endif
