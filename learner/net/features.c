#include "learner/net/features.h"

#include <string.h>

/* One row per enum rm_env_dtype: the width of an element, and the loop that converts n elements to
 * floats. The loops are plain so that the compiler vectorises them. */
typedef void (*decode_fn)(const struct rm_env_agent *agent, const void *from, uint32_t n,
                          float *to);

#define PLAIN_DECODER(name, type)                                                                  \
    static void name(const struct rm_env_agent *agent, const void *from, uint32_t n, float *to)    \
    {                                                                                              \
        const type *x = from;                                                                      \
        (void)agent;                                                                               \
        for (uint32_t i = 0; i < n; i++)                                                           \
            to[i] = (float)x[i];                                                                   \
    }

PLAIN_DECODER(decode_u8, uint8_t)
PLAIN_DECODER(decode_i8, int8_t)
PLAIN_DECODER(decode_i16, int16_t)
PLAIN_DECODER(decode_i32, int32_t)
PLAIN_DECODER(decode_f32, float)

static void decode_code8(const struct rm_env_agent *agent, const void *from, uint32_t n, float *to)
{
    const uint8_t *codes = from;
    const uint32_t channels = agent->channels;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t k = codes[i] < agent->codes ? codes[i] : 0;
        const float *row = agent->codebook + (size_t)k * channels;
        for (uint32_t c = 0; c < channels; c++)
            to[(size_t)c * n + i] = row[c];
    }
}

typedef void (*code_fn)(const void *from, uint32_t n, int32_t *to);

#define CODE_DECODER(name, type)                                                                   \
    static void name(const void *from, uint32_t n, int32_t *to)                                    \
    {                                                                                              \
        const type *x = from;                                                                      \
        for (uint32_t i = 0; i < n; i++)                                                           \
            to[i] = (int32_t)x[i];                                                                 \
    }

CODE_DECODER(codes_u8, uint8_t)
CODE_DECODER(codes_i8, int8_t)
CODE_DECODER(codes_i16, int16_t)
CODE_DECODER(codes_i32, int32_t)

/* Floats are not codes: the plan of the network refuses them. */
static void codes_none(const void *from, uint32_t n, int32_t *to)
{
    (void)from;
    memset(to, 0, n * sizeof *to);
}

static const struct {
    size_t bytes;
    decode_fn decode;
    code_fn codes;
} dtypes[] = {
    [RM_ENV_U8] = {1, decode_u8, codes_u8},     [RM_ENV_I8] = {1, decode_i8, codes_i8},
    [RM_ENV_I16] = {2, decode_i16, codes_i16},  [RM_ENV_I32] = {4, decode_i32, codes_i32},
    [RM_ENV_F32] = {4, decode_f32, codes_none}, [RM_ENV_CODE8] = {1, decode_code8, codes_u8},
};

static bool known(const struct rm_env_agent *agent)
{
    return agent->dtype > 0 && agent->dtype < sizeof dtypes / sizeof *dtypes;
}

uint32_t rm_features_elements(const struct rm_env_agent *agent)
{
    uint32_t elements = 1;
    for (uint32_t d = 0; d < agent->dims; d++)
        elements *= agent->shape[d];
    return elements;
}

size_t rm_features_bytes(const struct rm_env_agent *agent)
{
    return known(agent) ? rm_features_elements(agent) * dtypes[agent->dtype].bytes : 0;
}

uint32_t rm_features_count(const struct rm_env_agent *agent)
{
    if (!known(agent))
        return 0;
    return rm_features_elements(agent) * (agent->dtype == RM_ENV_CODE8 ? agent->channels : 1);
}

uint32_t rm_features_words(const struct rm_env_agent *agent, bool codes)
{
    return codes && known(agent) ? rm_features_elements(agent) : rm_features_count(agent);
}

void rm_features_take(const struct rm_env_agent *agent, bool codes, const uint8_t *obs, void *out)
{
    if (!known(agent))
        return;
    const uint32_t elements = rm_features_elements(agent);
    if (codes)
        dtypes[agent->dtype].codes(obs, elements, out);
    else
        dtypes[agent->dtype].decode(agent, obs, elements, out);
}

void rm_features_take_stack(const struct rm_env_agent *agent, bool codes,
                            const uint8_t *const *frames, uint32_t stack, void *out)
{
    const uint32_t words = rm_features_words(agent, codes);
    char *at = out;
    for (uint32_t i = 0; i < stack; i++, at += words * sizeof(float)) {
        if (frames[i])
            rm_features_take(agent, codes, frames[i], at);
        else
            memset(at, 0, words * sizeof(float));
    }
}
