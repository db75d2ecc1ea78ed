/* vector: a batch of worlds for programs in other languages, which call it through a shared object
 * (python/ringmaster/vector.py does, by ctypes). Functions are looked up by their names.
 *
 * One thread at a time. Buffers are the caller's, one entry a world, and written by
 * rm_vector_reset() and rm_vector_step() as actor/env.h says. */
#ifndef RM_ACTOR_WORLDS_VECTOR_H
#define RM_ACTOR_WORLDS_VECTOR_H

#include <stddef.h>
#include <stdint.h>

#define RM_VECTOR_CALL __attribute__((visibility("default")))

struct rm_vector;

/* `experiment`: an experiment's JSON, of which `world` is used. NULL: error[0..size) says why. */
RM_VECTOR_CALL struct rm_vector *rm_vector_open(const char *experiment, uint64_t seed,
                                                uint32_t worlds, char *error, size_t size);

/* What the world is, as JSON (actor/worlds/described.h). Lives as long as `vector`. */
RM_VECTOR_CALL const char *rm_vector_describe(const struct rm_vector *vector);

/* Bytes of an agent's observation. */
RM_VECTOR_CALL size_t rm_vector_obs_bytes(const struct rm_vector *vector, uint32_t agent);

/* Where an agent's rows go: obs (worlds, obs bytes), mask (worlds, actions) or NULL, reward, flags
 * (worlds), figures (worlds, figures), and where its actions come from, (worlds, choices). */
RM_VECTOR_CALL void rm_vector_bind(struct rm_vector *vector, uint32_t agent, void *obs,
                                   uint8_t *mask, float *reward, uint8_t *flags, double *figures,
                                   const int32_t *actions);

/* 0, or negative: rm_vector_error() says why. */
RM_VECTOR_CALL int rm_vector_reset(struct rm_vector *vector);
RM_VECTOR_CALL int rm_vector_step(struct rm_vector *vector, uint32_t phase);

/* A world's text for people, as much as fits and a NUL. Negative: it has none. */
RM_VECTOR_CALL int rm_vector_text(const struct rm_vector *vector, uint32_t world, char *text,
                                  size_t size);

/* A world's picture, (height, width, 3), as the description says. Negative: it has none. */
RM_VECTOR_CALL int rm_vector_picture(const struct rm_vector *vector, uint32_t world, uint8_t *rgb);

RM_VECTOR_CALL const char *rm_vector_error(const struct rm_vector *vector);
RM_VECTOR_CALL void rm_vector_close(struct rm_vector *vector);

#endif
