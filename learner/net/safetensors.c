#include "learner/net/safetensors.h"

#include "config/json_memory.h"
#include "shm/base/file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_MAX   (100u << 20) /* as the reference library */
#define METADATA_KEY "__metadata__"

static uint64_t tensor_bytes(const struct rm_tensor *tensor)
{
    uint64_t n = sizeof(float);
    for (uint32_t d = 0; d < tensor->dims; d++)
        n *= tensor->shape[d];
    return n;
}

/* --- writing --------------------------------------------------------------------------------- */

static json_t *describe(const struct rm_tensor *tensor, uint64_t begin)
{
    json_t *shape = json_array();
    for (uint32_t d = 0; d < tensor->dims; d++)
        json_array_append_new(shape, json_integer((json_int_t)tensor->shape[d]));
    const uint64_t end = begin + tensor_bytes(tensor);
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)end);
}

/* The header as text, padded; NULL: no memory. */
static char *make_header(const struct rm_tensor *tensors, size_t count, const json_t *metadata,
                         size_t *length)
{
    const uint64_t mark = rm_json_failures();
    json_t *header = json_object();
    if (metadata)
        json_object_set_new(header, METADATA_KEY, json_deep_copy(metadata));
    uint64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        json_object_set_new(header, tensors[i].name, describe(&tensors[i], at));
        at += tensor_bytes(&tensors[i]);
    }
    header = rm_json_whole(header, mark);
    char *text = rm_json_dump(header, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(header);
    if (!text)
        return NULL;
    const size_t bytes = strlen(text);
    *length = (bytes + 7) / 8 * 8;
    char *padded = malloc(*length + 1);
    if (padded) {
        memcpy(padded, text, bytes);
        memset(padded + bytes, ' ', *length - bytes);
        padded[*length] = '\0';
    }
    free(text);
    return padded;
}

static int write_file(int fd, const char *header, size_t length, const struct rm_tensor *tensors,
                      size_t count)
{
    const uint64_t little = htole64(length);
    int rc = rm_file_write_all(fd, &little, sizeof little);
    if (!rc)
        rc = rm_file_write_all(fd, header, length);
    for (size_t i = 0; i < count && !rc; i++)
        rc = rm_file_write_all(fd, tensors[i].data, tensor_bytes(&tensors[i]));
    if (!rc && fsync(fd))
        rc = -errno;
    return rc;
}

int rm_safetensors_write(const char *path, const struct rm_tensor *tensors, size_t count,
                         const json_t *metadata, struct rm_error *error)
{
    char temporary[PATH_MAX];
    if (snprintf(temporary, sizeof temporary, "%s.tmp", path) >= (int)sizeof temporary)
        return rm_fail(error, -ENAMETOOLONG, "%s: path too long", path);
    size_t length = 0;
    char *header = make_header(tensors, count, metadata, &length);
    if (!header)
        return rm_fail(error, -ENOMEM, "%s: no memory for its header", path);
    const int fd = rm_file_open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0644, error);
    if (fd < 0) {
        free(header);
        return rm_fail_within(error, fd, "cannot write");
    }
    int rc = write_file(fd, header, length, tensors, count);
    if (close(fd) && !rc)
        rc = -errno;
    if (!rc)
        rc = rm_file_rename(temporary, path);
    if (!rc)
        rc = rm_file_sync_above(path, NULL);
    if (rc)
        (void)rm_file_remove(temporary);
    free(header);
    return rc ? rm_fail(error, rc, "%s: cannot write: %s", path, strerror(-rc)) : 0;
}

/* --- reading --------------------------------------------------------------------------------- */

static int load(struct rm_safetensors *file, const char *path, uint64_t *size,
                struct rm_error *error)
{
    FILE *in = fopen(path, "rbe");
    struct stat st;
    if (!in)
        return rm_fail(error, -errno, "%s: %s", path, strerror(errno));
    int rc = fstat(fileno(in), &st) ? -errno : 0;
    if (!rc && !S_ISREG(st.st_mode))
        rc = -EINVAL;
    *size = rc ? 0 : (uint64_t)st.st_size;
    if (!rc && !(file->bytes = malloc(*size ? *size : 1)))
        rc = -ENOMEM;
    if (!rc && fread(file->bytes, 1, *size, in) != *size)
        rc = -EIO;
    fclose(in);
    return rc ? rm_fail(error, rc, "%s: cannot read: %s", path, strerror(-rc)) : 0;
}

static bool whole(const json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

/* Parses one header entry to a tensor; `data` is its offset for now. Returns NULL or an error
 * text. */
static const char *parse_tensor(const char *name, const json_t *entry, uint64_t data_bytes,
                                struct rm_tensor *out, uint64_t *begin, uint64_t *end)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *offsets = json_object_get(entry, "data_offsets");
    memset(out, 0, sizeof *out);
    out->name = name;
    if (!dtype || strcmp(dtype, "F32") != 0)
        return "dtype is not F32";
    if (!json_is_array(shape) || json_array_size(shape) > RM_TENSOR_DIMS)
        return "shape is not an array of at most 4 sizes";
    out->dims = (uint32_t)json_array_size(shape);
    uint64_t elements = 1;
    for (uint32_t d = 0; d < out->dims; d++) {
        if (!whole(json_array_get(shape, d), &out->shape[d]) || out->shape[d] > data_bytes)
            return "shape has an impossible size";
        if (out->shape[d] && elements > data_bytes / out->shape[d])
            return "shape is larger than the file";
        elements *= out->shape[d];
    }
    if (json_array_size(offsets) != 2 || !whole(json_array_get(offsets, 0), begin) ||
        !whole(json_array_get(offsets, 1), end))
        return "data_offsets is not a pair of offsets";
    if (*begin > *end || *end > data_bytes || *end - *begin != elements * sizeof(float))
        return "data_offsets do not match shape and file";
    return NULL;
}

struct placed {
    struct rm_tensor tensor;
    uint64_t begin, end;
};

static int by_begin(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int place(struct rm_safetensors *file, const char *path, uint8_t *data, uint64_t data_bytes,
                 struct rm_error *error)
{
    const size_t most = json_object_size(file->header);
    struct placed *placed = calloc(most + 1, sizeof *placed);
    file->tensors = calloc(most + 1, sizeof *file->tensors);
    if (!placed || !file->tensors) {
        free(placed);
        return rm_fail(error, -ENOMEM, "%s: no memory for %zu tensors", path, most);
    }
    int rc = 0;
    const char *name;
    json_t *entry;
    json_object_foreach(file->header, name, entry)
    {
        if (!strcmp(name, METADATA_KEY))
            continue;
        struct placed *p = &placed[file->count++];
        const char *wrong = parse_tensor(name, entry, data_bytes, &p->tensor, &p->begin, &p->end);
        if (wrong && !rc)
            rc = rm_fail(error, -EPROTO, "%s: tensor %s: %s", path, name, wrong);
    }
    qsort(placed, file->count, sizeof *placed, by_begin);
    uint64_t at = 0;
    for (size_t i = 0; i < file->count && !rc; i++) {
        if (placed[i].begin != at)
            rc = rm_fail(error, -EPROTO, "%s: tensor %s begins at %" PRIu64 ", expected %" PRIu64,
                         path, placed[i].tensor.name, placed[i].begin, at);
        at = placed[i].end;
        file->tensors[i] = placed[i].tensor;
        file->tensors[i].data = (const float *)(void *)(data + placed[i].begin);
    }
    if (!rc && at != data_bytes)
        rc = rm_fail(error, -EPROTO, "%s: tensors end at byte %" PRIu64 " of %" PRIu64, path, at,
                     data_bytes);
    free(placed);
    return rc;
}

static int parse(struct rm_safetensors *file, const char *path, uint64_t size,
                 struct rm_error *error)
{
    uint64_t length;
    if (size < sizeof length)
        return rm_fail(error, -EPROTO, "%s: %" PRIu64 " bytes are not a safetensors file", path,
                       size);
    memcpy(&length, file->bytes, sizeof length);
    length = le64toh(length);
    if (length > HEADER_MAX || length > size - sizeof length || length % sizeof(float))
        return rm_fail(error, -EPROTO, "%s: header of %" PRIu64 " bytes in a file of %" PRIu64,
                       path, length, size);
    json_error_t why;
    file->header =
        json_loadb((const char *)file->bytes + sizeof length, length, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(file->header))
        return rm_fail(error, -EPROTO, "%s: header: %s", path,
                       file->header ? "not an object" : why.text);
    return place(file, path, file->bytes + sizeof length + length, size - sizeof length - length,
                 error);
}

int rm_safetensors_read(struct rm_safetensors *file, const char *path, struct rm_error *error)
{
    uint64_t size = 0;
    memset(file, 0, sizeof *file);
    int rc = load(file, path, &size, error);
    if (!rc)
        rc = parse(file, path, size, error);
    if (rc)
        rm_safetensors_close(file);
    return rc;
}

void rm_safetensors_close(struct rm_safetensors *file)
{
    free(file->bytes);
    free(file->tensors);
    json_decref(file->header);
    memset(file, 0, sizeof *file);
}
