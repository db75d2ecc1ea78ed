#include "config/check_tables.h"

static const struct rm_check_table *const tables[] = {
    &rm_checks_of_processes,
    &rm_checks_of_devices,
    &rm_checks_of_experience,
    &rm_checks_of_learning,
};

const struct rm_check *rm_check_at(size_t index)
{
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        if (index < tables[t]->count)
            return &tables[t]->rows[index];
        index -= tables[t]->count;
    }
    return NULL;
}

void rm_check_all(const struct rm_experiment *experiment, struct rm_findings *findings)
{
    size_t own = findings->count; /* findings of single keys only, so that contradictions do not
                                   * hide each other */
    const struct rm_check *check;
    for (size_t i = 0; (check = rm_check_at(i)); i++) {
        char text[sizeof(findings->list[0].text)];
        bool sound = true;
        for (size_t k = 0; k < RM_CHECK_KEYS && check->keys[k]; k++)
            sound = sound && !rm_findings_touch(findings, own, check->keys[k]);
        if (sound && check->wrong(experiment, text, sizeof(text)))
            rm_find(findings, check->keys[0], false, "%s", text);
    }
}
