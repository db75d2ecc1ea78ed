/* Any bytes as a safetensors file: refused with words, or tensors that lie one after another within
 * it, all of which can be read. The first byte chooses whether the header's length is right. */
#include "tests/fuzz/file.h"
#include "shm/base/float_word.h"
#include "tests/support/tensors.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const struct rm_safetensors *file, const uint8_t *end)
{
    const uint8_t *at = NULL;
    double sum = 0;
    for (size_t i = 0; i < file->count; i++) {
        const struct rm_tensor *tensor = &file->tensors[i];
        uint64_t n = 1;
        demand(tensor->dims <= RM_TENSOR_DIMS, "too many dimensions");
        for (uint32_t d = 0; d < tensor->dims; d++)
            n *= tensor->shape[d];
        demand(!at || (const uint8_t *)tensor->data == at, "tensors do not follow each other");
        at = (const uint8_t *)(tensor->data + n);
        demand(at <= end, "a tensor ends behind the file");
        for (uint64_t k = 0; k < n; k++)
            sum += (uint32_t)rm_word_of_float(tensor->data[k]);
        demand(rm_test_tensor(file, tensor->name) == tensor, "two tensors of one name");
    }
    demand(sum >= 0 && (!at || at == end), "tensors do not fill the file");
    const char *format = rm_test_metadata(file, "format");
    demand(!format || strlen(format) <= (size_t)(end - file->bytes), "metadata of no length");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rm_safetensors file;
    struct rm_error error = {{0}};
    char path[64];
    if (size < 9)
        return 0;
    uint8_t *bytes = malloc(--size);
    demand(bytes != NULL, "no memory");
    memcpy(bytes, data + 1, size);
    if (data[0] & 1) { /* the header ends with the first newline, if it may end there */
        const uint8_t *newline = memchr(bytes + 8, '\n', size - 8);
        const uint64_t length = newline ? (uint64_t)(newline - bytes - 8 + 1) : size - 8;
        memcpy(bytes, &length, sizeof length);
    }
    const int fd = file_of(bytes, size, path);
    if (rm_safetensors_read(&file, path, &error) == 0)
        read_all(&file, file.bytes + size);
    else
        demand(error.text[0] != '\0', "refused without words");
    rm_safetensors_close(&file);
    close(fd);
    free(bytes);
    return 0;
}
