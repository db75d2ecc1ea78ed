/* state: an object's state as named parts in memory. An object with state has one function that
 * names every part. The same function saves (copies parts out) and loads (copies parts in), so the
 * two always agree:
 *
 *   void pace_state(struct pace *p, struct rm_state *s)
 *   {
 *       RM_STATE(s, "round", p->round);
 *       rm_state_bytes(s, "ages", p->ages, p->lanes * sizeof *p->ages);
 *   }
 *
 * Parts keep their order when saved and may be loaded in any order. Names within
 * rm_state_enter("x") begin with "x.". Numbers are stored as in memory, little-endian.
 * rm_state_end() returns the first error; after an error, loading changes nothing more.
 *
 * Belongs to one thread at a time: one thread may fill it and another write it to a file. */
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
    RM_STATE_FLOATS, /* an array of float: may be written to a tensor file */
};

struct rm_state_part {
    char name[RM_STATE_NAME_MAX];
    enum rm_state_kind kind;
    size_t bytes;
    void *data;
    uint64_t hash; /* of the name */
    bool taken;    /* loading: a caller has read the part */
};

struct rm_state;

/* Creates an empty state in saving mode; rm_state_load() changes the mode. */
int rm_state_create(struct rm_state **state, struct rm_error *error);
void rm_state_destroy(struct rm_state *state);

/* Switches to loading: parts are copied in from now on. */
void rm_state_load(struct rm_state *state);
bool rm_state_loading(const struct rm_state *state);

/* Loading: copies in only parts with one of `nouns` (NULL-terminated) as a component of their name:
 * "optimizer" selects "replay.optimizer.steps". Other requested parts stay unchanged, and unread
 * parts are not an error. `nouns` belongs to the caller. */
void rm_state_only(struct rm_state *state, const char *const *nouns);

/* rm_state_enter(): names of the following parts begin with `name` and a dot, until
 * rm_state_leave(). */
void rm_state_enter(struct rm_state *state, const char *name);
void rm_state_leave(struct rm_state *state);

/* A part of `bytes` at `data`, copied out or in. NULL data with 0 bytes is a part too. */
void rm_state_bytes(struct rm_state *state, const char *name, void *data, size_t bytes);
void rm_state_floats(struct rm_state *state, const char *name, float *data, size_t count);
#define RM_STATE(state, name, lvalue) rm_state_bytes(state, name, &(lvalue), sizeof(lvalue))

/* For data that is not one block of plain memory: returns the part's buffer, which the caller fills
 * (saving) or reads (loading). NULL after an error. */
void *rm_state_part(struct rm_state *state, const char *name, enum rm_state_kind kind,
                    size_t bytes);

/* Loading: does the part exist, and how large is it (0 if it does not exist)? */
bool rm_state_has(const struct rm_state *state, const char *name);
size_t rm_state_bytes_of(const struct rm_state *state, const char *name);

/* Records an error: the state cannot be loaded or saved. */
void rm_state_fail(struct rm_state *state, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Ends saving or loading: 0 or the first error. Loading: -EPROTO also when a part was not read,
 * since it belongs to an object that does not exist. */
int rm_state_end(struct rm_state *state, struct rm_error *error);

/* For readers and writers of files. rm_state_add() copies the data; -EEXIST when the part
 * exists. */
size_t rm_state_count(const struct rm_state *state);
const struct rm_state_part *rm_state_at(const struct rm_state *state, size_t i);
int rm_state_add(struct rm_state *state, const char *name, enum rm_state_kind kind,
                 const void *data, size_t bytes, struct rm_error *error);

/* Writes all parts of `kinds` (a sum of 1 << kind) to an archive, one stream each, and syncs it. */
#define RM_STATE_ALL (1u << RM_STATE_BYTES | 1u << RM_STATE_FLOATS)
int rm_state_write(const struct rm_state *state, const char *path, unsigned kinds,
                   struct rm_error *error);

/* Adds the parts of an archive. Errors: those of the archive; -EPROTO for impossible lengths. */
int rm_state_read(struct rm_state *state, const char *path, struct rm_error *error);

#endif
