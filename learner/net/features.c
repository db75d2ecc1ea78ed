#include "learner/net/features.h"

#include "learner/net/history.h"

#include <math.h>
#include <string.h>

/* One row per enum rm_env_dtype: the width of an element, and the loop that converts n elements to
 * floats. The loops are plain so that the compiler vectorises them. */
typedef void (*decode_fn)(const struct rm_env_observation *of, const void *from, uint32_t n,
                          float *to);

typedef void (*code_fn)(const void *from, uint32_t n, int32_t *to);

#define PLAIN_DECODER(name, type)                                                                  \
    static void decode_##name(const struct rm_env_observation *of, const void *from, uint32_t n,   \
                              float *to)                                                           \
    {                                                                                              \
        const type *x = from;                                                                      \
        (void)of;                                                                                  \
        for (uint32_t i = 0; i < n; i++)                                                           \
            to[i] = (float)x[i];                                                                   \
    }
#define DECODERS(name, type)                                                                       \
    PLAIN_DECODER(name, type)                                                                      \
    static void codes_##name(const void *from, uint32_t n, int32_t *to)                            \
    {                                                                                              \
        const type *x = from;                                                                      \
        for (uint32_t i = 0; i < n; i++)                                                           \
            to[i] = (int32_t)x[i];                                                                 \
    }

DECODERS(u8, uint8_t)
DECODERS(i8, int8_t)
DECODERS(i16, int16_t)
DECODERS(i32, int32_t)
PLAIN_DECODER(f32, float)

static void decode_code8(const struct rm_env_observation *of, const void *from, uint32_t n,
                         float *to)
{
    const uint8_t *codes = from;
    const uint32_t channels = of->channels, elements = rm_observation_elements(of);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t k = codes[i] < of->codes ? codes[i] : 0;
        const float *row = of->codebook + (size_t)k * channels;
        for (uint32_t c = 0; c < channels; c++)
            to[(size_t)c * elements + i] = row[c];
    }
}

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

size_t rm_dtype_bytes(uint32_t dtype)
{
    return dtype < sizeof dtypes / sizeof *dtypes ? dtypes[dtype].bytes : 0;
}

uint32_t rm_observation_elements(const struct rm_env_observation *of)
{
    uint32_t elements = 1;
    for (uint32_t d = 0; d < of->dims; d++)
        elements *= of->shape[d];
    return elements;
}

uint32_t rm_observation_item(const struct rm_env_observation *of)
{
    return of->dims && of->shape[0] ? rm_observation_elements(of) / of->shape[0] : 1;
}

uint32_t rm_observation_there(const struct rm_env_observation *of, const uint8_t *elements)
{
    uint32_t count;
    if (!of->counted)
        return rm_observation_elements(of);
    memcpy(&count, elements - sizeof count, sizeof count);
    return (count < of->shape[0] ? count : of->shape[0]) * rm_observation_item(of);
}

uint32_t rm_features_observations(const struct rm_env_agent *agent)
{
    return agent->observations ? agent->observations : 1;
}

struct rm_env_observation rm_features_observation(const struct rm_env_agent *agent, uint32_t i)
{
    if (agent->observations)
        return agent->observation[i];
    struct rm_env_observation one = {
        .dtype = agent->dtype,
        .dims = agent->dims,
        .low = agent->low,
        .high = agent->high,
        .codes = agent->codes,
        .channels = agent->channels,
        .codebook = agent->codebook,
    };
    memcpy(one.shape, agent->shape, sizeof one.shape);
    return one;
}

/* What an observation adds to the place of the one before it. */
static struct rm_observation_place after(const struct rm_observation_place *before, size_t *end,
                                         const struct rm_env_observation *of, bool codes)
{
    const uint32_t elements = rm_observation_elements(of), count = of->counted ? 1 : 0;
    const size_t at = (*end + 3) / 4 * 4 + count * sizeof(uint32_t),
                 bytes = rm_dtype_bytes(of->dtype);
    *end = at + elements * bytes;
    return (struct rm_observation_place){
        .at = at,
        .words_at = before->words_at + before->words + before->count,
        .words = bytes == 0                            ? 0
                 : of->dtype == RM_ENV_CODE8 && !codes ? elements * of->channels
                                                       : elements,
        .count = count,
        .codes = codes,
    };
}

static struct rm_observation_place place_of(const struct rm_env_agent *agent, uint32_t codes,
                                            uint32_t last, size_t *end)
{
    struct rm_observation_place place = {.at = 0};
    *end = 0;
    for (uint32_t i = 0; i <= last; i++) {
        const struct rm_env_observation of = rm_features_observation(agent, i);
        place = after(&place, end, &of, codes >> i & 1);
    }
    return place;
}

struct rm_observation_place rm_features_place(const struct rm_env_agent *agent, uint32_t codes,
                                              uint32_t i)
{
    size_t end;
    return place_of(agent, codes, i, &end);
}

size_t rm_features_bytes(const struct rm_env_agent *agent)
{
    size_t end;
    place_of(agent, 0, rm_features_observations(agent) - 1, &end);
    return agent->observations ? (end + 3) / 4 * 4 : end;
}

uint32_t rm_features_count(const struct rm_env_agent *agent)
{
    return rm_features_words(agent, 0);
}

uint32_t rm_features_words(const struct rm_env_agent *agent, uint32_t codes)
{
    const struct rm_observation_place last =
        rm_features_place(agent, codes, rm_features_observations(agent) - 1);
    return last.words_at + last.words + last.count;
}

bool rm_features_in_place(const struct rm_env_agent *agent, uint32_t codes)
{
    bool same = true;
    for (uint32_t i = 0; i < rm_features_observations(agent); i++) {
        const struct rm_env_observation of = rm_features_observation(agent, i);
        same =
            same && !of.counted && of.dtype == (codes >> i & 1 ? (uint32_t)RM_ENV_I32 : RM_ENV_F32);
    }
    return same;
}

/* Converts the elements of a frame to words; missing elements become zeros. */
static void decode(const struct rm_env_observation *of, const struct rm_observation_place *place,
                   const uint8_t *elements, float *words)
{
    const uint32_t there = rm_observation_there(of, elements);
    if (there < rm_observation_elements(of))
        memset(words, 0, place->words * sizeof *words);
    if (place->codes)
        dtypes[of->dtype].codes(elements, there, (int32_t *)(void *)words);
    else
        dtypes[of->dtype].decode(of, elements, there, words);
}

static void take_count(const struct rm_env_observation *of,
                       const struct rm_observation_place *place, const uint8_t *elements,
                       float *word)
{
    const uint32_t count = rm_observation_there(of, elements) / rm_observation_item(of);
    const int32_t code = (int32_t)count;
    *word = (float)count;
    if (place->codes)
        memcpy(word, &code, sizeof code);
}

void rm_features_take_stack(const struct rm_env_agent *agent, uint32_t codes,
                            const uint8_t *const *frames, uint32_t stack, void *out)
{
    struct rm_observation_place place = {.at = 0};
    size_t end = 0;
    float *words = out;
    for (uint32_t i = 0; i < rm_features_observations(agent); i++) {
        const struct rm_env_observation of = rm_features_observation(agent, i);
        place = after(&place, &end, &of, codes >> i & 1);
        if (place.words == 0)
            return;
        float *counts = words;
        words += stack * place.count;
        for (uint32_t f = 0; f < stack; f++, words += place.words) {
            if (frames[f])
                decode(&of, &place, frames[f] + place.at, words);
            else
                memset(words, 0, place.words * sizeof *words);
            if (place.count && frames[f])
                take_count(&of, &place, frames[f] + place.at, &counts[f]);
            else if (place.count)
                counts[f] = 0;
        }
    }
}

void rm_features_take(const struct rm_env_agent *agent, uint32_t codes, const uint8_t *obs,
                      void *out)
{
    rm_features_take_stack(agent, codes, &obs, 1, out);
}

/* --- in histories ----------------------------------------------------------------------------- */

#define CODES_MAX (1u << 24) /* a float has all of these */

/* Values of each element of an observation; 0: they are no whole numbers within bounds. */
static uint32_t values_of(const struct rm_env_observation *of)
{
    const double values = of->high - of->low + 1;
    return !of->counted && of->dtype != RM_ENV_CODE8 && floor(of->low) == of->low &&
                   floor(values) == values && values >= 1 && values <= CODES_MAX
               ? (uint32_t)values
               : 0;
}

uint32_t rm_features_codes(const struct rm_env_agent *agent)
{
    double codes = 1;
    for (uint32_t i = 0; i < rm_features_observations(agent); i++) {
        const struct rm_env_observation of = rm_features_observation(agent, i);
        codes *= pow(values_of(&of), rm_observation_elements(&of));
    }
    return codes <= CODES_MAX ? (uint32_t)codes : 0;
}

uint32_t rm_features_code(const struct rm_env_agent *agent, const float *floats)
{
    uint32_t code = 0;
    for (uint32_t i = 0; i < rm_features_observations(agent); i++) {
        const struct rm_env_observation of = rm_features_observation(agent, i);
        const uint32_t values = values_of(&of);
        for (uint32_t j = 0; j < rm_observation_elements(&of); j++) {
            const double digit = *floats++ - of.low;
            if (!(digit >= 0 && digit < values && floor(digit) == digit))
                return UINT32_MAX;
            code = code * values + (uint32_t)digit;
        }
    }
    return code;
}

uint32_t rm_features_step_count(const struct rm_env_agent *agent)
{
    return 2 * rm_features_words(agent, 0) + agent->actions + 1;
}

void rm_features_step(const struct rm_env_agent *agent, const uint8_t *obs, uint32_t action,
                      float reward, const uint8_t *next_obs, float *out)
{
    rm_features_take(agent, 0, obs, out);
    out += rm_features_words(agent, 0);
    memset(out, 0, agent->actions * sizeof *out);
    out[action] = 1;
    out += agent->actions;
    *out = reward;
    rm_features_take(agent, 0, next_obs, out + 1);
}

bool rm_features_query(const struct rm_env_agent *agent, uint32_t query_codes, const uint8_t *obs,
                       float *row)
{
    float *floats = row + RM_HISTORY_FEATURES;
    rm_history_put(row, RM_HISTORY_QUERY, 0, NULL, rm_features_step_count(agent));
    rm_features_take(agent, 0, obs, floats);
    if (query_codes == 0)
        return true;
    const uint32_t code = rm_features_code(agent, floats);
    row[1] = (float)code;
    memset(floats, 0, rm_features_words(agent, 0) * sizeof *floats);
    return code != UINT32_MAX;
}
