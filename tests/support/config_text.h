/* An experiment as the daemon writes it to config.json. Caller frees; NULL without memory. */
#ifndef RM_TESTS_SUPPORT_CONFIG_TEXT_H
#define RM_TESTS_SUPPORT_CONFIG_TEXT_H

#include "config/config.h"
#include "config/print.h"

static inline char *rm_test_config_text(const struct rm_experiment *experiment)
{
    json_t *root = rm_config_to_json(experiment);
    char *text = rm_json_text(root, true);
    json_decref(root);
    return text;
}

#endif
