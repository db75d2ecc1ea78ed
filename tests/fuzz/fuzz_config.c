/* Any bytes as a configuration file, with overrides behind a zero byte, one a line. Refused with
 * words or loaded; what is loaded reads back as the same experiment. */
#include "config/config.h"
#include "config/source.h"
#include "tests/support/config_text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OVERRIDES_MAX 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int truth, const char *what)
{
    if (!truth) {
        fprintf(stderr, "fuzz_config: %s\n", what);
        abort();
    }
}

/* What jansson takes as an object, the scan takes too, but for limits of its own. */
static void compare_with_jansson(const char *text, size_t bytes)
{
    static const char *const limits[] = {"deep", "of more than", "at most"};
    struct rm_source source = {.name = "f", .text = text, .bytes = bytes};
    struct rm_error error = {{0}};
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    int rc = rm_source_scan(&source, &error);

    if (json_is_object(root) && rc) {
        int limit = 0;
        for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
            limit |= strstr(error.text, limits[i]) != NULL;
        demand(limit, error.text);
    }
    json_decref(root);
    rm_source_close(&source);
}

static void check_loaded(const struct rm_experiment *experiment)
{
    struct rm_experiment again;
    struct rm_error error = {{0}};
    double values[RM_HOT_COUNT];
    char *text = rm_test_config_text(experiment);

    demand(text != NULL, "no text");
    demand(!rm_config_parse(&again, "again", text, strlen(text), NULL, 0, &error), error.text);
    demand(!memcmp(experiment, &again, sizeof(again)), "reads back as another experiment");
    demand(rm_config_diff(experiment, &again, NULL, NULL) == 0, "differs from itself");
    rm_config_hot_values(experiment, values);
    rm_config_apply_hot(&again, values);
    demand(!memcmp(experiment, &again, sizeof(again)), "hot values do not return");
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rm_override overrides[OVERRIDES_MAX];
    struct rm_experiment experiment;
    struct rm_error error = {{0}};
    size_t count = 0;
    /* A copy of exact size, so that reading past the end is seen, and a terminated one of the rest.
     */
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t bytes = zero ? (size_t)(zero - data) : size;
    char *text = malloc(bytes ? bytes : 1), *rest = NULL;

    memcpy(text, data, bytes);
    if (zero) {
        size_t n = size - bytes - 1;
        rest = calloc(1, n + 1);
        memcpy(rest, zero + 1, n);
        char *next = NULL;
        for (char *line = strtok_r(rest, "\n", &next); line && count < OVERRIDES_MAX;
             line = strtok_r(NULL, "\n", &next))
            overrides[count++].text = line;
    }
    compare_with_jansson(text, bytes);
    if (rm_config_parse(&experiment, "f", text, bytes, overrides, count, &error))
        demand(error.text[0] != 0, "refused without words");
    else
        check_loaded(&experiment);
    free(rest);
    free(text);
    return 0;
}
