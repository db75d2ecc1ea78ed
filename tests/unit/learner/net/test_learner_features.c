/* Observations as network inputs: every type, and stacks that begin with zeros. */
#include "learner/net/features.h"
#include "tests/support/unit.h"

#include <string.h>

static const float codebook[] = {0, 1, 2, 3, 4, 5}; /* three codes of two channels */

static struct rm_env_agent agent_of(uint32_t dtype, uint32_t rows, uint32_t columns)
{
    return (struct rm_env_agent){.dtype = dtype,
                                 .dims = 2,
                                 .shape = {rows, columns},
                                 .codes = 3,
                                 .channels = 2,
                                 .codebook = codebook};
}

static void expect(const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_true(got[i] == want[i]);
}

static void every_type_keeps_its_values(void **state)
{
    (void)state;
    static const uint8_t u8[] = {0, 1, 200, 255};
    static const int8_t i8[] = {-128, -1, 0, 127};
    static const int16_t i16[] = {-32768, -1, 255, 32767};
    static const int32_t i32[] = {-16777216, -1, 65536, 16777215};
    static const float f32[] = {-1.5f, 0, 1e-30f, 3e30f};
    static const struct {
        uint32_t dtype;
        const void *obs;
        size_t bytes;
        float want[4];
    } types[] = {
        {RM_ENV_U8, u8, sizeof u8, {0, 1, 200, 255}},
        {RM_ENV_I8, i8, sizeof i8, {-128, -1, 0, 127}},
        {RM_ENV_I16, i16, sizeof i16, {-32768, -1, 255, 32767}},
        {RM_ENV_I32, i32, sizeof i32, {-16777216, -1, 65536, 16777215}},
        {RM_ENV_F32, f32, sizeof f32, {-1.5f, 0, 1e-30f, 3e30f}},
    };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const struct rm_env_agent agent = agent_of(types[t].dtype, 2, 2);
        float out[5] = {0, 0, 0, 0, 42};
        assert_int_equal(rm_features_bytes(&agent), types[t].bytes);
        assert_int_equal(rm_features_count(&agent), 4);
        rm_features_take(&agent, false, types[t].obs, out);
        expect(out, types[t].want, 4);
        assert_true(out[4] == 42);
    }
}

static void codes_become_channels(void **state)
{
    (void)state;
    const struct rm_env_agent agent = agent_of(RM_ENV_CODE8, 1, 4);
    const uint8_t codes[] = {2, 0, 1, 9}; /* 9 is beyond the codebook: as 0 */
    const float want[] = {4, 0, 2, 0, 5, 1, 3, 1};
    float out[8];
    assert_int_equal(rm_features_bytes(&agent), 4);
    assert_int_equal(rm_features_count(&agent), 8);
    rm_features_take(&agent, false, codes, out);
    expect(out, want, 8);
}

static void stacks_begin_with_zeros(void **state)
{
    (void)state;
    const struct rm_env_agent agent = agent_of(RM_ENV_U8, 1, 2);
    const uint8_t episode[][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
    float stacked[6];
    memset(stacked, 0x55, sizeof stacked); /* what the episode before left there */
    for (int t = 0; t < 4; t++) {
        const uint8_t *frames[3];
        for (int k = 0; k < 3; k++)
            frames[k] = t - 2 + k >= 0 ? episode[t - 2 + k] : NULL;
        rm_features_take_stack(&agent, false, frames, 3, stacked);
        for (int k = 0; k < 6; k++) {
            const uint8_t *frame = frames[k / 2];
            assert_true(stacked[k] == (frame ? (float)frame[k % 2] : 0));
        }
    }
}

/* For an embedding: the numbers themselves, of CODE8 the codes; no channels. */
static void whole_numbers_stay_whole(void **state)
{
    (void)state;
    const struct {
        uint32_t dtype;
        const void *from;
        int32_t want[3];
    } cases[] = {
        {RM_ENV_U8, (const uint8_t[]){0, 200, 255}, {0, 200, 255}},
        {RM_ENV_I8, (const int8_t[]){-128, 0, 127}, {-128, 0, 127}},
        {RM_ENV_I16, (const int16_t[]){-30000, 1, 30000}, {-30000, 1, 30000}},
        {RM_ENV_I32, (const int32_t[]){-2000000001, 1, 16777217}, {-2000000001, 1, 16777217}},
        {RM_ENV_CODE8, (const uint8_t[]){2, 0, 1}, {2, 0, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rm_env_agent agent = agent_of(cases[i].dtype, 1, 3);
        const uint8_t *frames[2] = {NULL, cases[i].from};
        int32_t one[3], two[6];
        assert_int_equal(rm_features_words(&agent, true), 3);
        rm_features_take(&agent, true, cases[i].from, one);
        assert_memory_equal(one, cases[i].want, sizeof one);
        memset(two, 0x55, sizeof two);
        rm_features_take_stack(&agent, true, frames, 2, two);
        for (int k = 0; k < 3; k++)
            assert_int_equal(two[k], 0);
        assert_memory_equal(two + 3, cases[i].want, sizeof one);
    }
}

/* Three observations in one entry: 3 bytes, then 2 and 1 of at most 2 pairs of codes, then a float:
 * every one at a multiple of 4 bytes. */
static const struct rm_env_observation list[] = {
    {.name = "bytes", .dtype = RM_ENV_I8, .dims = 1, .shape = {3}},
    {.name = "pairs",
     .dtype = RM_ENV_CODE8,
     .dims = 2,
     .shape = {2, 2},
     .codes = 3,
     .channels = 2,
     .codebook = codebook,
     .counted = 1},
    {.name = "share", .dtype = RM_ENV_F32, .dims = 1, .shape = {1}},
};
static const struct rm_env_agent several = {.observations = 3, .observation = list};

struct entry {
    int8_t bytes[3];
    uint32_t count;
    uint8_t pairs[4];
    float share;
};
static const struct entry entries[2] = {{{-1, 2, 3}, 1, {2, 1, 1, 1}, 0.5f},
                                        {{4, 5, -6}, 9, {0, 1, 2, 9}, -2}};

static void several_stand_side_by_side(void **state)
{
    (void)state;
    /* Of the first entry one pair counts; of the second two, since there are no more. Codes become
     * channels before their own shape. */
    const float want[2][13] = {{-1, 2, 3, 1, 4, 2, 0, 0, 5, 3, 0, 0, 0.5f},
                               {4, 5, -6, 2, 0, 2, 4, 0, 1, 3, 5, 1, -2}};
    assert_int_equal(sizeof(struct entry), rm_features_bytes(&several));
    assert_int_equal(rm_features_count(&several), 13);
    assert_int_equal(rm_features_place(&several, 0, 1).at, offsetof(struct entry, pairs));
    assert_int_equal(rm_features_place(&several, 0, 2).at, offsetof(struct entry, share));
    assert_false(rm_features_in_place(&several, 0));
    for (int e = 0; e < 2; e++) {
        float out[13];
        memset(out, 0x55, sizeof out);
        rm_features_take(&several, 0, (const uint8_t *)&entries[e], out);
        expect(out, want[e], 13);
    }
}

/* Each on its own: its counts, oldest first, then its frames. */
static void several_stack_one_by_one(void **state)
{
    (void)state;
    const uint8_t *frames[3] = {NULL, (const uint8_t *)&entries[0], (const uint8_t *)&entries[1]};
    const float want[39] = {0, 0,    0, -1, 2, 3, 4, 5, -6, /* bytes */
                            0, 1,    2,                     /* counts of pairs */
                            0, 0,    0, 0,  0, 0, 0, 0,     /* pairs */
                            4, 2,    0, 0,  5, 3, 0, 0, 0,  2, 4, 0, 1, 3, 5, 1, /* theirs */
                            0, 0.5f, -2};
    float out[39];
    memset(out, 0x55, sizeof out);
    rm_features_take_stack(&several, 0, frames, 3, out);
    expect(out, want, 39);
}

/* Some as codes, others as floats: counts are of the type of what they count. */
static void some_of_several_are_codes(void **state)
{
    (void)state;
    const int32_t pairs[5] = {1, 2, 1, 0, 0};
    float out[9];
    assert_int_equal(rm_features_words(&several, 2), 9);
    memset(out, 0x55, sizeof out);
    rm_features_take(&several, 2, (const uint8_t *)&entries[0], out);
    expect(out, (const float[]){-1, 2, 3}, 3);
    assert_memory_equal(out + 3, pairs, sizeof pairs);
    assert_true(out[8] == 0.5f);
}

static void floats_alone_need_no_decoding(void **state)
{
    (void)state;
    struct rm_env_observation two[] = {
        {.name = "a", .dtype = RM_ENV_F32, .dims = 1, .shape = {3}},
        {.name = "b", .dtype = RM_ENV_F32, .dims = 1, .shape = {2}},
    };
    const struct rm_env_agent agent = {.observations = 2, .observation = two};
    assert_true(rm_features_in_place(&agent, 0));
    two[1].counted = 1;
    assert_false(rm_features_in_place(&agent, 0));
    two[1].counted = 0;
    two[1].dtype = RM_ENV_I32;
    assert_false(rm_features_in_place(&agent, 0));
    assert_true(rm_features_in_place(&agent, 2));
}

static void an_unknown_type_has_no_size(void **state)
{
    (void)state;
    const struct rm_env_agent agent = agent_of(77, 2, 2);
    assert_int_equal(rm_features_bytes(&agent), 0);
    assert_int_equal(rm_features_count(&agent), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_keeps_its_values),
        cmocka_unit_test(codes_become_channels),
        cmocka_unit_test(stacks_begin_with_zeros),
        cmocka_unit_test(whole_numbers_stay_whole),
        cmocka_unit_test(several_stand_side_by_side),
        cmocka_unit_test(several_stack_one_by_one),
        cmocka_unit_test(some_of_several_are_codes),
        cmocka_unit_test(floats_alone_need_no_decoding),
        cmocka_unit_test(an_unknown_type_has_no_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
