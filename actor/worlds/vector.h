/* vector: a batch of worlds for programs in other languages, which call these functions by name in
 * a shared object, as python/ringmaster/vector.py does with ctypes.
 *
 * One thread at a time. The caller owns the buffers, which have one entry for each world.
 * rm_vector_reset() and rm_vector_step() write to them as specified in actor/env.h. */
#ifndef RM_ACTOR_WORLDS_VECTOR_H
#define RM_ACTOR_WORLDS_VECTOR_H

#include <stddef.h>
#include <stdint.h>

#define RM_VECTOR_CALL __attribute__((visibility("default")))

struct rm_vector;

/* `experiment` is the JSON of an experiment; only `world` is used. NULL after an error, with the
 * message in error[0..size). */
RM_VECTOR_CALL struct rm_vector *rm_vector_open(const char *experiment, uint64_t seed,
                                                uint32_t worlds, char *error, size_t size);

/* The world's description as JSON (actor/worlds/described.h). Valid as long as `vector`. */
RM_VECTOR_CALL const char *rm_vector_describe(const struct rm_vector *vector);

/* Bytes of an agent's observation. */
RM_VECTOR_CALL size_t rm_vector_obs_bytes(const struct rm_vector *vector, uint32_t agent);

/* Sets an agent's buffers: obs (worlds, obs bytes), mask (worlds, actions) or NULL, reward, flags
 * (worlds), figures (worlds, figures); and its actions, (worlds, choices), which are read. */
RM_VECTOR_CALL void rm_vector_bind(struct rm_vector *vector, uint32_t agent, void *obs,
                                   uint8_t *mask, float *reward, uint8_t *flags, double *figures,
                                   const int32_t *actions);

/* 0, or negative with a message in rm_vector_error(). */
RM_VECTOR_CALL int rm_vector_reset(struct rm_vector *vector);
RM_VECTOR_CALL int rm_vector_step(struct rm_vector *vector, uint32_t phase);

/* Shows a world as text, as much as fits and a NUL. Negative: the world has no text. */
RM_VECTOR_CALL int rm_vector_text(const struct rm_vector *vector, uint32_t world, char *text,
                                  size_t size);

/* Shows a world as a picture, (height, width, 3), sizes as in the description. Negative: the world
 * has no picture. */
RM_VECTOR_CALL int rm_vector_picture(const struct rm_vector *vector, uint32_t world, uint8_t *rgb);

RM_VECTOR_CALL const char *rm_vector_error(const struct rm_vector *vector);
RM_VECTOR_CALL void rm_vector_close(struct rm_vector *vector);

#endif
