#include "tests/support/refusals.h"

#include "config/config.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { WORDS = 5 };

static bool is_override(const char *word)
{
    return word[0] == RM_REFUSAL_SET[0];
}

int rm_test_refusal_parse(const struct rm_refusal *c, struct rm_error *error)
{
    struct rm_override set[WORDS];
    struct rm_experiment experiment, untouched;
    size_t count = 0;

    for (size_t i = 0; i < WORDS && c->words[i]; i++)
        if (is_override(c->words[i]))
            set[count++].text = c->words[i] + 1;
    memset(&experiment, 0x5a, sizeof(experiment));
    memset(&untouched, 0x5a, sizeof(untouched));
    error->text[0] = 0;
    const int rc =
        rm_config_parse(&experiment, "t.json", c->text, strlen(c->text), set, count, error);
    if (rc)
        assert_memory_equal(&experiment, &untouched, sizeof(experiment));
    return rc;
}

static bool says_all(const struct rm_refusal *c, const struct rm_error *error)
{
    for (size_t k = 0; k < WORDS && c->words[k]; k++)
        if (!is_override(c->words[k]) && !strstr(error->text, c->words[k]))
            return false;
    return true;
}

void rm_test_refused(const struct rm_refusal *cases, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        struct rm_error error;
        const int rc = rm_test_refusal_parse(&cases[i], &error);
        if (rc == -EINVAL && says_all(&cases[i], &error))
            continue;
        wrong++;
        print_error("case %zu: %s\n  rc %d, says: %s\n", i, cases[i].text, rc, error.text);
        for (size_t k = 0; k < WORDS && cases[i].words[k]; k++)
            print_error("  should say: %s\n", cases[i].words[k]);
    }
    assert_int_equal(wrong, 0);
}
