/* Tensors and metadata of a safetensors file by name; NULL when there is none of that name. */
#ifndef RM_TESTS_SUPPORT_TENSORS_H
#define RM_TESTS_SUPPORT_TENSORS_H

#include "learner/net/safetensors.h"

#include <string.h>

static inline const struct rm_tensor *rm_test_tensor(const struct rm_safetensors *file,
                                                     const char *name)
{
    for (size_t i = 0; i < file->count; i++)
        if (!strcmp(file->tensors[i].name, name))
            return &file->tensors[i];
    return NULL;
}

static inline const char *rm_test_metadata(const struct rm_safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

#endif
