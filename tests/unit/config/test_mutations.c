/* Shipped experiments with random damage: never a crash, never an experiment that does not read
 * back, always a message with a place. The damage is seeded, so a failure comes back. */
#include "config/config.h"
#include "shm/base/rng.h"
#include "tests/support/config_text.h"
#include "tests/support/effort.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROUNDS   rm_test_effort(1500, 200) /* per file */
#define TEXT_MAX 8192

static const char *const scraps[] = {
    "{",        "}",
    "[",        "]",
    ",",        ":",
    "\"",       "\\u0000",
    "\\",       "null",
    "true",     "-1",
    "1e9",      "1e99",
    "0.5",      "NaN",
    "\"iqn\"",  "\"//\"",
    "\"a\":1",  "\xff",
    "\xc3",     "[[[[",
    "{{{{",     "//",
    "0",        "00",
    "1e-400",   "9999999999999999999999",
    "\"free\"", "\"units\": 7,",
    "\n",       "\xe2\x82\xac",
};

static size_t damage(char *text, size_t bytes, struct rm_rng *rng)
{
    size_t at = rm_rng_below(rng, (uint32_t)bytes), n, from;
    const char *scrap = scraps[rm_rng_below(rng, sizeof(scraps) / sizeof(scraps[0]))];
    switch (rm_rng_below(rng, 6)) {
    case 0: /* a byte becomes another */
        text[at] = (char)rm_rng_u32(rng);
        return bytes;
    case 1: /* a scrap is put in */
        n = strlen(scrap);
        memmove(text + at + n, text + at, bytes - at);
        memcpy(text + at, scrap, n);
        return bytes + n;
    case 2: /* something is cut out */
        n = rm_rng_below(rng, 20) + 1;
        n = n < bytes - at ? n : bytes - at;
        memmove(text + at, text + at + n, bytes - at - n);
        return bytes - n;
    case 3: /* a piece is written again in another place */
        n = rm_rng_below(rng, 40) + 1;
        from = rm_rng_below(rng, (uint32_t)bytes);
        n = n < bytes - from ? n : bytes - from;
        n = n < bytes - at ? n : bytes - at;
        memmove(text + at, text + from, n);
        return bytes;
    case 4: /* the end is lost */
        return at;
    default: /* a digit becomes another: mostly still JSON */
        for (size_t i = 0; i < bytes; i++) {
            char *c = &text[(at + i) % bytes];
            if (*c >= '0' && *c <= '9') {
                *c = (char)('0' + rm_rng_below(rng, 10));
                break;
            }
        }
        return bytes;
    }
}

static void check(const char *text, size_t bytes, size_t *sound)
{
    struct rm_experiment experiment, again;
    struct rm_error error = {{0}};
    int rc = rm_config_parse(&experiment, "t.json", text, bytes, NULL, 0, &error);

    if (rc) {
        if (strncmp(error.text, "t.json:", 7) != 0)
            fail_msg("a message without a place: %s", error.text);
        return;
    }
    ++*sound;
    char *written = rm_test_config_text(&experiment);
    assert_non_null(written);
    if (rm_config_parse(&again, "again", written, strlen(written), NULL, 0, &error))
        fail_msg("does not read back: %s\n%s", error.text, written);
    assert_memory_equal(&experiment, &again, sizeof(again));
    free(written);
}

static void damaged_files_do_no_harm(void **state)
{
    static char whole[TEXT_MAX], text[TEXT_MAX + 256];
    size_t sound = 0, total = 0;
    glob_t files;
    (void)state;

    assert_int_equal(glob("config/*.json", 0, NULL, &files), 0);
    for (uint32_t f = 0; f < files.gl_pathc; f++) {
        FILE *in = fopen(files.gl_pathv[f], "r");
        assert_non_null(in);
        size_t whole_bytes = fread(whole, 1, sizeof(whole), in);
        assert_in_range(whole_bytes, 10, sizeof(whole) - 1);
        fclose(in);
        for (uint32_t round = 0; round < ROUNDS; round++, total++) {
            struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, f, round);
            uint32_t times = rm_rng_below(&rng, 3) + 1;
            size_t bytes = whole_bytes;
            memcpy(text, whole, bytes);
            while (times-- && bytes)
                bytes = damage(text, bytes, &rng);
            check(text, bytes, &sound);
        }
    }
    globfree(&files);
    /* Some of it must have been harmless and most of it not, or the damage tests nothing. */
    assert_in_range(sound, total / 100, total * 3 / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_files_do_no_harm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
