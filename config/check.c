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
    return index < rm_checks_of_supply_count ? &rm_checks_of_supply[index].check : NULL;
}

/* Has none of its keys something wrong on its own? */
static bool keys_are_sound(const struct rm_check *check, const struct rm_findings *findings,
                           size_t own)
{
    for (size_t k = 0; k < RM_CHECK_KEYS && check->keys[k]; k++)
        if (rm_findings_touch(findings, own, check->keys[k]))
            return false;
    return true;
}

void rm_check_all(const struct rm_experiment *experiment, struct rm_findings *findings)
{
    size_t own = findings->count; /* findings of single keys only, so that contradictions do not
                                   * hide each other */
    const struct rm_check *check;
    char text[sizeof(findings->list[0].text)];
    for (size_t i = 0; (check = rm_check_at(i)); i++)
        if (check->wrong && keys_are_sound(check, findings, own) &&
            check->wrong(experiment, text, sizeof(text)))
            rm_find(findings, check->keys[0], false, "%s", text);
    for (size_t i = 0; i < rm_checks_of_supply_count; i++) {
        const struct rm_policy_check *p = &rm_checks_of_supply[i];
        if ((!p->more_agents_help || experiment->policy.map == RM_MAP_INDEPENDENT) &&
            keys_are_sound(&p->check, findings, own) && p->wrong(experiment, 1, text, sizeof(text)))
            rm_find(findings, p->check.keys[0], false, "%s", text);
    }
}

const char *rm_check_policy(const struct rm_experiment *experiment, uint32_t agents, char *text,
                            size_t bytes)
{
    for (size_t i = 0; i < rm_checks_of_supply_count; i++)
        if (rm_checks_of_supply[i].wrong(experiment, agents, text, bytes))
            return rm_checks_of_supply[i].check.keys[0];
    return NULL;
}
