#include "actor/worlds/builtin/prover_kb.h"
#include "actor/worlds/builtin/prover_family.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- growing lists ---------------------------------------------------------------------------- */

/* Makes room for an entry of `bytes` behind `count` in the list whose pointer is at `list`. False:
 * no memory. */
static bool grow(void *list, uint32_t count, uint32_t *room, size_t bytes)
{
    void *entries;
    if (count < *room)
        return true;
    const uint32_t more = *room ? 2 * *room : 64;
    memcpy(&entries, list, sizeof entries);
    entries = more > *room ? realloc(entries, more * bytes) : NULL;
    if (!entries)
        return false;
    memcpy(list, &entries, sizeof entries);
    *room = more;
    return true;
}

/* --- names ------------------------------------------------------------------------------------ */

static uint32_t hash_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ull;
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 0x100000001b3ull;
    return (uint32_t)rm_prover_mix(hash);
}

/* The slot of a name: where it is, or the free one where it would be. */
static uint32_t *name_slot(const struct rm_prover_names *names, const char *name)
{
    for (uint32_t i = hash_name(name);; i++) {
        uint32_t *slot = &names->slot[i & names->mask];
        if (!*slot || strcmp(names->name[*slot - 1], name) == 0)
            return slot;
    }
}

/* Index of a name, UINT32_MAX if there is none. */
static uint32_t find_name(const struct rm_prover_names *names, const char *name)
{
    const uint32_t found = names->slot ? *name_slot(names, name) : 0;
    return found - 1;
}

static bool rehash(struct rm_prover_names *names)
{
    const uint32_t slots = names->slot ? 2 * (names->mask + 1) : 256;
    uint32_t *slot = calloc(slots, sizeof *slot);
    if (!slot)
        return false;
    free(names->slot);
    names->slot = slot;
    names->mask = slots - 1;
    for (uint32_t i = 0; i < names->count; i++)
        *name_slot(names, names->name[i]) = i + 1;
    return true;
}

/* Index of a name, added if it is new. UINT32_MAX: no memory. */
static uint32_t add_name(struct rm_prover_names *names, const char *name)
{
    const uint32_t found = find_name(names, name);
    if (found != UINT32_MAX)
        return found;
    if ((!names->slot || names->count >= names->mask / 2) && !rehash(names))
        return UINT32_MAX;
    char *copy =
        grow(&names->name, names->count, &names->room, sizeof *names->name) ? strdup(name) : NULL;
    if (!copy)
        return UINT32_MAX;
    names->name[names->count] = copy;
    *name_slot(names, copy) = names->count + 1;
    return names->count++;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Ids from 1 in the order of bytes: *id has that of every old index. */
static bool sort_names(struct rm_prover_names *names, uint32_t **id)
{
    *id = malloc(((size_t)names->count + 1) * sizeof **id);
    char **old = malloc(((size_t)names->count + 1) * sizeof *old);
    if (!*id || !old || (!names->slot && !rehash(names))) {
        free(old);
        return false;
    }
    if (names->count) {
        memcpy(old, names->name, names->count * sizeof *old);
        qsort(names->name, names->count, sizeof *names->name, compare_names);
    }
    memset(names->slot, 0, (names->mask + (size_t)1) * sizeof *names->slot);
    for (uint32_t i = 0; i < names->count; i++)
        *name_slot(names, names->name[i]) = i + 1;
    for (uint32_t i = 0; i < names->count; i++)
        (*id)[i] = find_name(names, old[i]) + 1;
    free(old);
    return true;
}

static void free_names(struct rm_prover_names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    free(names->slot);
    free(names->arity);
}

/* --- runs ------------------------------------------------------------------------------------- */

static bool make_runs(struct rm_prover_runs *runs, size_t keys)
{
    size_t slots = 64;
    while (slots < 2 * keys)
        slots *= 2;
    runs->slot = calloc(slots, sizeof *runs->slot);
    runs->mask = slots - 1;
    return runs->slot != NULL;
}

/* The run of a key, which is added if it is new. */
static struct rm_prover_run *add_run(struct rm_prover_runs *runs, uint64_t key)
{
    for (uint64_t i = rm_prover_mix(key);; i++) {
        struct rm_prover_run *run = &runs->slot[i & runs->mask];
        if (run->key == key || run->key == 0) {
            run->key = key;
            return run;
        }
    }
}

/* Lays the facts out by key, which is the atom without the bits that `wild` has. */
static bool make_index(struct rm_prover_index *index, const rm_prover_atom *fact, uint32_t facts,
                       uint64_t wild)
{
    index->fact = malloc(((size_t)facts + 1) * sizeof *index->fact);
    if (!index->fact || !make_runs(&index->runs, facts))
        return false;
    for (uint32_t f = 0; f < facts; f++)
        add_run(&index->runs, fact[f] & ~wild)->count++;
    uint32_t end = 0;
    for (uint32_t f = 0; f < facts; f++) {
        struct rm_prover_run *run = add_run(&index->runs, fact[f] & ~wild);
        if (run->count) { /* the first of its key */
            run->first = end;
            end += run->count;
            run->count = 0;
        }
    }
    for (uint32_t f = 0; f < facts; f++) {
        struct rm_prover_run *run = add_run(&index->runs, fact[f] & ~wild);
        index->fact[run->first + run->count++] = fact[f];
    }
    return true;
}

/* --- loading ---------------------------------------------------------------------------------- */

enum source { FACTS, RULES, TRAIN, VALID, TEST, DOMAINS, SOURCES };

/* A file of a data set: its name in Prolog's dialect, and in another. */
static const struct {
    const char *name, *other;
    enum rm_prover_dialect dialect, other_dialect;
    bool optional;
} files[SOURCES] = {
    [FACTS] = {"facts.pl", "facts.tsv", RM_PROVER_PROLOG, RM_PROVER_TSV, false},
    [RULES] = {"rules.pl", "rules.arrow", RM_PROVER_PROLOG, RM_PROVER_ARROW, false},
    [TRAIN] = {"train.txt", "train.tsv", RM_PROVER_QUERY, RM_PROVER_TSV, false},
    [VALID] = {"valid.txt", "valid.tsv", RM_PROVER_QUERY, RM_PROVER_TSV, true},
    [TEST] = {"test.txt", "test.tsv", RM_PROVER_QUERY, RM_PROVER_TSV, true},
    [DOMAINS] = {"domains.txt", NULL, RM_PROVER_NAMES, RM_PROVER_NAMES, true},
};

/* Messages are the text's; of what has no line, `error`. */
struct loading {
    struct rm_prover_kb *kb;
    char *error;
    size_t error_size;
    rm_prover_atom *fact;
    uint32_t facts, fact_room, rule_room;
    bool sorted; /* names have ids; before, they have the numbers in which they came */
};

static int no_memory(struct loading *l)
{
    snprintf(l->error, l->error_size, "no memory for the knowledge base");
    return -ENOMEM;
}

/* The number of a predicate: 1 + index. Negative with a message. */
static int load_predicate(struct loading *l, struct rm_prover_text *text,
                          const struct rm_prover_literal *literal, uint32_t *pred)
{
    struct rm_prover_names *names = &l->kb->predicate;
    uint32_t index = find_name(names, literal->name);
    if (index == UINT32_MAX && l->sorted)
        return rm_prover_text_fail(text, "no fact and no rule has the predicate %s", literal->name);
    if (index == UINT32_MAX) {
        if (names->count >= RM_PROVER_PREDICATES_MAX)
            return rm_prover_text_fail(text, "more than %d predicates", RM_PROVER_PREDICATES_MAX);
        index = add_name(names, literal->name);
        if (index == UINT32_MAX)
            return no_memory(l);
        uint8_t *arity = realloc(names->arity, names->count);
        if (!arity)
            return no_memory(l);
        names->arity = arity;
        arity[index] = (uint8_t)literal->arity;
    }
    if (names->arity[index] != literal->arity)
        return rm_prover_text_fail(text, "%s has %u argument%s here, but %u before", literal->name,
                                   literal->arity, literal->arity == 1 ? "" : "s",
                                   names->arity[index]);
    *pred = index + 1;
    return 0;
}

static int load_constant(struct loading *l, struct rm_prover_text *text, const char *name,
                         uint32_t *id)
{
    struct rm_prover_names *names = &l->kb->constant;
    uint32_t index = find_name(names, name);
    if (index == UINT32_MAX && l->sorted)
        return rm_prover_text_fail(text, "no fact and no rule has the constant %s", name);
    if (index == UINT32_MAX) {
        if (names->count >= RM_PROVER_CONSTANTS_MAX - 1)
            return rm_prover_text_fail(text, "more than %d constants", RM_PROVER_CONSTANTS_MAX - 1);
        index = add_name(names, name);
        if (index == UINT32_MAX)
            return no_memory(l);
    }
    *id = index + 1;
    return 0;
}

/* An atom without variables. */
static int load_ground(struct loading *l, struct rm_prover_text *text,
                       const struct rm_prover_clause *clause, rm_prover_atom *atom)
{
    const struct rm_prover_literal *literal = &clause->head;
    uint32_t pred, arg[2] = {0, 0};
    if (clause->bodies)
        return rm_prover_text_fail(text, "%s has a body; rules are in a file of their own",
                                   literal->name);
    int rc = load_predicate(l, text, literal, &pred);
    for (uint32_t i = 0; rc == 0 && i < literal->arity; i++) {
        if (literal->arg[i].variable)
            return rm_prover_text_fail(text, "%s has the variable %s; facts and queries have none",
                                       literal->name, literal->arg[i].text);
        rc = load_constant(l, text, literal->arg[i].text, &arg[i]);
    }
    *atom = rm_prover_atom_of(rc == 0 ? pred : 0, arg[0], arg[1]);
    return rc;
}

/* The variables of a rule, in the order of appearance. */
struct scope {
    const char *name[RM_PROVER_RULE_VARIABLES];
    uint32_t count;
};

static int32_t variable_of(struct scope *scope, const char *name)
{
    uint32_t v = 0;
    while (v < scope->count && (strcmp(name, "_") == 0 || strcmp(scope->name[v], name) != 0))
        v++;
    if (v == scope->count)
        scope->name[scope->count++] = name;
    return -1 - (int32_t)v;
}

static int load_pattern(struct loading *l, struct rm_prover_text *text, struct scope *scope,
                        const struct rm_prover_literal *literal, struct rm_prover_pattern *pattern)
{
    uint32_t id;
    int rc = load_predicate(l, text, literal, &pattern->pred);
    pattern->arg[1] = 0;
    for (uint32_t i = 0; rc == 0 && i < literal->arity; i++) {
        if (literal->arg[i].variable) {
            pattern->arg[i] = variable_of(scope, literal->arg[i].text);
            continue;
        }
        rc = load_constant(l, text, literal->arg[i].text, &id);
        pattern->arg[i] = (int32_t)id;
    }
    return rc;
}

static int load_fact(struct loading *l, struct rm_prover_text *text,
                     const struct rm_prover_clause *clause)
{
    if (!grow(&l->fact, l->facts, &l->fact_room, sizeof *l->fact))
        return no_memory(l);
    return load_ground(l, text, clause, &l->fact[l->facts++]);
}

static int load_rule(struct loading *l, struct rm_prover_text *text,
                     const struct rm_prover_clause *clause)
{
    struct scope scope = {.count = 0};
    struct rm_prover_rule rule = {.bodies = clause->bodies};
    if (!clause->bodies)
        return rm_prover_text_fail(text, "%s has no body; facts are in a file of their own",
                                   clause->head.name);
    int rc = load_pattern(l, text, &scope, &clause->head, &rule.head);
    for (uint32_t i = 0; rc == 0 && i < clause->bodies; i++)
        rc = load_pattern(l, text, &scope, &clause->body[i], &rule.body[i]);
    if (rc < 0)
        return rc;
    rule.variables = scope.count;
    if (!grow(&l->kb->rule, l->kb->rules, &l->rule_room, sizeof rule))
        return no_memory(l);
    l->kb->rule[l->kb->rules++] = rule;
    return 0;
}

static int load_query(struct loading *l, struct rm_prover_text *text,
                      const struct rm_prover_clause *clause, enum rm_prover_split split)
{
    struct rm_prover_queries *q = &l->kb->split[split];
    if (!grow(&q->query, q->count, &q->room, sizeof *q->query))
        return no_memory(l);
    return load_ground(l, text, clause, &q->query[q->count++]);
}

/* A line of domains: its name, and its constants. */
static int load_domain(struct loading *l, struct rm_prover_text *text, char *line,
                       uint32_t *members, uint32_t *member_room, uint32_t *domain_room)
{
    struct rm_prover_kb *kb = l->kb;
    const char *domain, *name;
    uint32_t id = 0;
    int rc = rm_prover_text_name(text, &line, &domain);
    if (!grow(&kb->domain_at, kb->domains + 1, domain_room, sizeof *kb->domain_at))
        return no_memory(l);
    while (rc == 0 && (rc = rm_prover_text_name(text, &line, &name)) == 0 && name) {
        rc = load_constant(l, text, name, &id);
        if (rc < 0)
            break;
        if (kb->domain_of[id])
            return rm_prover_text_fail(text, "%s must be in one domain, once", name);
        if (!grow(&kb->member, *members, member_room, sizeof *kb->member))
            return no_memory(l);
        kb->domain_of[id] = kb->domains;
        kb->member[(*members)++] = id;
    }
    kb->domain_at[++kb->domains] = *members;
    return rc;
}

/* Domain 0: all constants. `text` NULL: there are no others. */
static int load_domains(struct loading *l, struct rm_prover_text *text)
{
    struct rm_prover_kb *kb = l->kb;
    uint32_t members = kb->constants, member_room = members + 1, domain_room = 64;
    char *line;
    int rc = 0;
    kb->domain_of = calloc((size_t)kb->constants + 1, sizeof *kb->domain_of);
    kb->member = malloc(member_room * sizeof *kb->member);
    kb->domain_at = malloc(domain_room * sizeof *kb->domain_at);
    if (!kb->domain_of || !kb->member || !kb->domain_at)
        return no_memory(l);
    for (uint32_t c = 0; c < kb->constants; c++)
        kb->member[c] = c + 1;
    kb->domains = 1;
    kb->domain_at[0] = 0;
    kb->domain_at[1] = members;
    while (rc == 0 && text && rm_prover_text_line(text, &line))
        rc = load_domain(l, text, line, &members, &member_room, &domain_room);
    return rc;
}

static int load_clauses(struct loading *l, struct rm_prover_text *text, enum source source)
{
    struct rm_prover_clause clause;
    int rc;
    while ((rc = rm_prover_text_clause(text, &clause)) == 1) {
        if (source == FACTS)
            rc = load_fact(l, text, &clause);
        else if (source == RULES)
            rc = load_rule(l, text, &clause);
        else
            rc = load_query(l, text, &clause, (enum rm_prover_split)(source - TRAIN));
        if (rc < 0)
            break;
    }
    return rc;
}

/* --- making it whole -------------------------------------------------------------------------- */

static rm_prover_atom with_ids(rm_prover_atom atom, const uint32_t *constant, const uint32_t *pred)
{
    const uint32_t first = rm_prover_first(atom), second = rm_prover_second(atom);
    return rm_prover_atom_of(pred[rm_prover_pred(atom) - 1], constant[first - 1],
                             second ? constant[second - 1] : 0);
}

static void pattern_with_ids(struct rm_prover_pattern *pattern, const uint32_t *constant,
                             const uint32_t *pred)
{
    pattern->pred = pred[pattern->pred - 1];
    for (int i = 0; i < 2; i++)
        if (pattern->arg[i] > 0)
            pattern->arg[i] = (int32_t)constant[pattern->arg[i] - 1];
}

/* All names are there: what was read gets ids in the order of bytes. */
static int give_ids(struct loading *l)
{
    struct rm_prover_kb *kb = l->kb;
    uint32_t *constant = NULL, *pred = NULL;
    int rc = sort_names(&kb->constant, &constant) && sort_names(&kb->predicate, &pred) ? 0 : -1;
    uint8_t *arity = malloc((size_t)kb->predicate.count + 1);
    if (rc < 0 || !arity) {
        rc = no_memory(l);
    } else {
        for (uint32_t p = 0; p < kb->predicate.count; p++)
            arity[pred[p] - 1] = kb->predicate.arity[p];
        free(kb->predicate.arity);
        kb->predicate.arity = arity;
        for (uint32_t f = 0; f < l->facts; f++)
            l->fact[f] = with_ids(l->fact[f], constant, pred);
        for (uint32_t r = 0; r < kb->rules; r++) {
            pattern_with_ids(&kb->rule[r].head, constant, pred);
            for (uint32_t i = 0; i < kb->rule[r].bodies; i++)
                pattern_with_ids(&kb->rule[r].body[i], constant, pred);
        }
        l->sorted = true;
    }
    if (rc < 0)
        free(arity);
    free(constant);
    free(pred);
    kb->constants = kb->constant.count;
    kb->predicates = kb->predicate.count;
    kb->proved = kb->predicates + 1;
    kb->failed = kb->predicates + 2;
    kb->gave_in = kb->predicates + 3;
    return rc;
}

/* Rules by predicate, in file order within. */
static int order_rules(struct loading *l)
{
    struct rm_prover_kb *kb = l->kb;
    struct rm_prover_rule *sorted = malloc(((size_t)kb->rules + 1) * sizeof *sorted);
    kb->rule_at = calloc((size_t)kb->predicates + 2, sizeof *kb->rule_at);
    if (!sorted || !kb->rule_at) {
        free(sorted);
        return no_memory(l);
    }
    for (uint32_t r = 0; r < kb->rules; r++)
        kb->rule_at[kb->rule[r].head.pred + 1]++;
    for (uint32_t p = 1; p <= kb->predicates; p++)
        kb->rule_at[p + 1] += kb->rule_at[p];
    /* rule_at[p] is where the next rule of p goes, and where those of p end in the end. */
    for (uint32_t r = 0; r < kb->rules; r++)
        sorted[kb->rule_at[kb->rule[r].head.pred]++] = kb->rule[r];
    for (uint32_t p = kb->predicates; p > 0; p--)
        kb->rule_at[p + 1] = kb->rule_at[p];
    if (kb->predicates)
        kb->rule_at[1] = 0;
    free(kb->rule);
    kb->rule = sorted;
    return 0;
}

/* What is known, and the facts by what is looked for. A fact that is there twice is one. */
static int index_facts(struct loading *l)
{
    struct rm_prover_kb *kb = l->kb;
    size_t queries = 0;
    for (int s = 0; s < RM_PROVER_SPLIT_COUNT; s++)
        queries += kb->split[s].count;
    if (!make_runs(&kb->known, l->facts + queries))
        return no_memory(l);
    for (uint32_t f = 0; f < l->facts; f++) {
        struct rm_prover_run *run = add_run(&kb->known, l->fact[f]);
        if (!run->count)
            l->fact[kb->facts++] = l->fact[f];
        run->count = 1;
    }
    for (int s = 0; s < RM_PROVER_SPLIT_COUNT; s++)
        for (uint32_t q = 0; q < kb->split[s].count; q++)
            add_run(&kb->known, kb->split[s].query[q]);
    const uint64_t second = 0xffffff, first = second << 24;
    return make_index(&kb->all, l->fact, kb->facts, first | second) &&
                   make_index(&kb->by_first, l->fact, kb->facts, second) &&
                   make_index(&kb->by_second, l->fact, kb->facts, first)
               ? 0
               : no_memory(l);
}

/* Training is with queries that a rule can prove. */
static void drop_hopeless(struct rm_prover_kb *kb)
{
    struct rm_prover_queries *train = &kb->split[RM_PROVER_TRAIN];
    uint32_t left = 0;
    for (uint32_t q = 0; q < train->count; q++) {
        const uint32_t pred = rm_prover_pred(train->query[q]);
        if (kb->rule_at[pred] < kb->rule_at[pred + 1])
            train->query[left++] = train->query[q];
    }
    train->count = left;
}

static int take_family(char *text[SOURCES], size_t bytes[SOURCES])
{
    char *made[RM_PROVER_FAMILY_COUNT];
    size_t size[RM_PROVER_FAMILY_COUNT];
    static const enum source source_of[RM_PROVER_FAMILY_COUNT] = {
        [RM_PROVER_FAMILY_TRAIN] = TRAIN,
        [RM_PROVER_FAMILY_VALID] = VALID,
        [RM_PROVER_FAMILY_TEST] = TEST,
        [RM_PROVER_FAMILY_RULES] = RULES,
    };
    int rc = rm_prover_family_make(made, size);
    for (int t = 0; rc == 0 && t < RM_PROVER_FAMILY_COUNT; t++) {
        text[source_of[t]] = made[t];
        bytes[source_of[t]] = size[t];
    }
    if (rc == 0) { /* the facts are the queries to train with */
        text[FACTS] = malloc(size[RM_PROVER_FAMILY_TRAIN] + 1);
        rc = text[FACTS] ? 0 : -ENOMEM;
    }
    if (rc == 0) {
        memcpy(text[FACTS], text[TRAIN], size[RM_PROVER_FAMILY_TRAIN] + 1);
        bytes[FACTS] = size[RM_PROVER_FAMILY_TRAIN];
    }
    return rc;
}

/* A file of the folder, in the dialect in which it is there. 0: there is none, which may be; 1. */
static int open_file(struct loading *l, struct rm_prover_text *text, const char *folder,
                     enum source source)
{
    char path[PATH_MAX];
    int rc = -ENOENT;
    if (files[source].other) {
        snprintf(path, sizeof path, "%s/%s", folder, files[source].other);
        rc = rm_prover_text_open(text, path, files[source].other_dialect, true, l->error,
                                 l->error_size);
    }
    if (rc == -ENOENT) {
        snprintf(path, sizeof path, "%s/%s", folder, files[source].name);
        rc = rm_prover_text_open(text, path, files[source].dialect, files[source].optional,
                                 l->error, l->error_size);
        if (rc == -ENOENT && files[source].optional)
            return 0;
    }
    return rc < 0 ? rc : 1;
}

static int load_all(struct loading *l, const char *folder)
{
    char *made[SOURCES] = {NULL};
    size_t bytes[SOURCES] = {0};
    int rc = folder ? 0 : take_family(made, bytes);
    if (rc < 0)
        rc = no_memory(l);
    for (enum source source = 0; rc == 0 && source < SOURCES; source++) {
        struct rm_prover_text text = {.bytes = NULL};
        if (folder) {
            rc = open_file(l, &text, folder, source);
        } else if (made[source]) {
            rm_prover_text_hold(&text, made[source], bytes[source], files[source].name,
                                files[source].dialect, l->error, l->error_size);
            made[source] = NULL;
            rc = 1;
        }
        if (rc >= 0 && source == TRAIN && give_ids(l) < 0)
            rc = -ENOMEM;
        if (rc >= 0 && source == DOMAINS)
            rc = load_domains(l, rc ? &text : NULL);
        else if (rc == 1)
            rc = load_clauses(l, &text, source);
        rm_prover_text_close(&text);
    }
    for (int source = 0; source < SOURCES; source++)
        free(made[source]);
    return rc;
}

static int check(struct loading *l, const char *folder)
{
    struct rm_prover_kb *kb = l->kb;
    const struct {
        bool bad;
        const char *what;
    } faults[] = {
        {kb->facts == 0, "no facts"},
        {kb->split[RM_PROVER_TRAIN].count == 0,
         "no query to train with whose predicate is the head of a rule"},
        {kb->constants + kb->variables >= 1u << 24, "too many constants and variables"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (faults[i].bad) {
            snprintf(l->error, l->error_size, "%s has %s", folder ? folder : "the family",
                     faults[i].what);
            return -EINVAL;
        }
    return 0;
}

struct rm_prover_kb *rm_prover_kb_open(const char *folder, uint32_t variables, char *error,
                                       size_t error_size)
{
    struct loading l = {.error = error, .error_size = error_size};
    l.kb = calloc(1, sizeof *l.kb);
    if (!l.kb) {
        no_memory(&l);
        return NULL;
    }
    l.kb->variables = variables;
    int rc = load_all(&l, folder);
    if (rc == 0)
        rc = order_rules(&l);
    if (rc == 0)
        rc = index_facts(&l);
    if (rc == 0) {
        drop_hopeless(l.kb);
        rc = check(&l, folder);
    }
    free(l.fact);
    if (rc < 0) {
        rm_prover_kb_close(l.kb);
        return NULL;
    }
    return l.kb;
}

void rm_prover_kb_close(struct rm_prover_kb *kb)
{
    if (!kb)
        return;
    struct rm_prover_index *indices[] = {&kb->all, &kb->by_first, &kb->by_second};
    for (int i = 0; i < 3; i++) {
        free(indices[i]->fact);
        free(indices[i]->runs.slot);
    }
    for (int s = 0; s < RM_PROVER_SPLIT_COUNT; s++)
        free(kb->split[s].query);
    free_names(&kb->constant);
    free_names(&kb->predicate);
    free(kb->known.slot);
    free(kb->rule);
    free(kb->rule_at);
    free(kb->domain_at);
    free(kb->domain_of);
    free(kb->member);
    free(kb);
}

/* --- atoms as text ---------------------------------------------------------------------------- */

static void append(char *text, size_t size, size_t *used, const char *what)
{
    const size_t left = *used < size ? size - *used : 0;
    *used += rm_prover_text_write(what, left ? text + *used : NULL, left);
}

static void append_sign(char *text, size_t size, size_t *used, const char *sign)
{
    const size_t left = *used < size ? size - *used : 0;
    const int length = snprintf(left ? text + *used : NULL, left, "%s", sign);
    *used += length > 0 ? (size_t)length : 0;
}

size_t rm_prover_write(const struct rm_prover_kb *kb, rm_prover_atom atom, char *text, size_t size)
{
    static const char *const ends[] = {"True", "False", "Endf"};
    const uint32_t pred = rm_prover_pred(atom);
    const uint32_t arg[2] = {rm_prover_first(atom), rm_prover_second(atom)};
    size_t used = 0;
    if (pred > kb->predicates) {
        append_sign(text, size, &used, ends[(pred - kb->predicates - 1) % 3]);
        return used;
    }
    append(text, size, &used, kb->predicate.name[pred - 1]);
    for (int i = 0; i < 2 && arg[i]; i++) {
        char variable[16];
        append_sign(text, size, &used, i ? "," : "(");
        snprintf(variable, sizeof variable, "V%u", arg[i] - kb->constants);
        if (arg[i] > kb->constants)
            append_sign(text, size, &used, variable);
        else
            append(text, size, &used, kb->constant.name[arg[i] - 1]);
    }
    append_sign(text, size, &used, ")");
    return used;
}
