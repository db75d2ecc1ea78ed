/* safetensors: writes and reads named float32 tensors in one file, in the safetensors format: the
 * header's length as u64 little-endian, a JSON header padded with spaces so that data starts at a
 * multiple of 8, then the tensors' bytes without gaps. The header maps a name to {"dtype", "shape",
 * "data_offsets": [begin, end)}, with offsets from the first byte of data, and "__metadata__" to
 * strings by name. */
#ifndef RM_LEARNER_NET_SAFETENSORS_H
#define RM_LEARNER_NET_SAFETENSORS_H

#include "shm/base/error.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define RM_TENSOR_DIMS 4

struct rm_tensor {
    const char *name;
    uint32_t dims;
    uint64_t shape[RM_TENSOR_DIMS];
    const float *data;
};

/* Writes the complete file or none: writes and syncs a temporary file beside it, renames it to
 * `path`, and syncs the folder. metadata: a JSON object of strings, or NULL. The folder must
 * exist. */
int rm_safetensors_write(const char *path, const struct rm_tensor *tensors, size_t count,
                         const json_t *metadata, struct rm_error *error);

/* A file read into memory. Tensors point into it. */
struct rm_safetensors {
    uint8_t *bytes;
    struct rm_tensor *tensors; /* in the order of their data */
    size_t count;
    json_t *header; /* owns the names; "__metadata__" is in it */
};

/* -EPROTO: the header is too long or not JSON, a dtype is not F32, a name occurs twice, or offsets
 * overlap, leave a gap, do not end at the end of the file or do not match the shape. The message
 * names the reason. */
int rm_safetensors_read(struct rm_safetensors *file, const char *path, struct rm_error *error);
void rm_safetensors_close(struct rm_safetensors *file);

#endif
