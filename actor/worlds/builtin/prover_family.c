#include "actor/worlds/builtin/prover_family.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PEOPLE = 2968, GENERATIONS = 6, CHILDREN = 6, MARRIED_OF_100 = 24 };
enum {
    FACTS = 28176,
    TRAIN = 19845,
    VALID = 2800,
    LINE = 22 /* "daughter(p0001,p0002).\n" less 1 */
};

enum relation {
    AUNT,
    BROTHER,
    DAUGHTER,
    FATHER,
    HUSBAND,
    MOTHER,
    NEPHEW,
    NIECE,
    SISTER,
    SON,
    UNCLE,
    WIFE,
    RELATIONS
};

static const char *const relation_name[RELATIONS] = {"aunt",    "brother", "daughter", "father",
                                                     "husband", "mother",  "nephew",   "niece",
                                                     "sister",  "son",     "uncle",    "wife"};

/* Head (A,B); an atom of the body has the arguments of its two letters. */
static const struct {
    uint8_t head;
    struct {
        uint8_t relation;
        char args[3];
    } body[2];
} family_rules[] = {
    {SON, {{BROTHER, "AH"}, {MOTHER, "BH"}}},
    {NIECE, {{DAUGHTER, "AH"}, {SISTER, "HB"}}},
    {NIECE, {{BROTHER, "BH"}, {DAUGHTER, "AH"}}},
    {DAUGHTER, {{DAUGHTER, "HB"}, {SISTER, "AH"}}},
    {NEPHEW, {{SISTER, "BH"}, {SON, "AH"}}},
    {MOTHER, {{BROTHER, "BH"}, {MOTHER, "AH"}}},
    {SON, {{BROTHER, "AH"}, {DAUGHTER, "HB"}}},
    {AUNT, {{FATHER, "HB"}, {SISTER, "AH"}}},
    {NIECE, {{SISTER, "AH"}, {UNCLE, "BH"}}},
    {NIECE, {{DAUGHTER, "AH"}, {SISTER, "BH"}}},
    {FATHER, {{BROTHER, "BH"}, {FATHER, "AH"}}},
    {AUNT, {{MOTHER, "HB"}, {SISTER, "AH"}}},
    {DAUGHTER, {{MOTHER, "BH"}, {SISTER, "AH"}}},
    {UNCLE, {{BROTHER, "AH"}, {FATHER, "HB"}}},
    {AUNT, {{AUNT, "AH"}, {SISTER, "HB"}}},
    {UNCLE, {{BROTHER, "AH"}, {DAUGHTER, "BH"}}},
    {AUNT, {{AUNT, "AH"}, {BROTHER, "HB"}}},
    {SON, {{BROTHER, "AH"}, {SON, "HB"}}},
    {NIECE, {{NEPHEW, "HB"}, {SISTER, "AH"}}},
    {AUNT, {{AUNT, "AH"}, {BROTHER, "BH"}}},
    {AUNT, {{AUNT, "AH"}, {SISTER, "BH"}}},
    {NEPHEW, {{AUNT, "BH"}, {BROTHER, "AH"}}},
    {DAUGHTER, {{SISTER, "AH"}, {SON, "HB"}}},
    {AUNT, {{SISTER, "AH"}, {SON, "BH"}}},
    {HUSBAND, {{FATHER, "AH"}, {MOTHER, "BH"}}},
    {SISTER, {{BROTHER, "BH"}, {SISTER, "AH"}}},
    {HUSBAND, {{WIFE, "BA"}}},
    {WIFE, {{HUSBAND, "BA"}}},
    {AUNT, {{DAUGHTER, "BH"}, {SISTER, "AH"}}},
    {NEPHEW, {{BROTHER, "HB"}, {SON, "AH"}}},
    {NEPHEW, {{BROTHER, "AH"}, {NEPHEW, "HB"}}},
    {BROTHER, {{BROTHER, "AH"}, {SISTER, "BH"}}},
    {UNCLE, {{BROTHER, "HB"}, {UNCLE, "AH"}}},
    {NEPHEW, {{BROTHER, "AH"}, {NIECE, "HB"}}},
    {UNCLE, {{SISTER, "HB"}, {UNCLE, "AH"}}},
    {UNCLE, {{SISTER, "BH"}, {UNCLE, "AH"}}},
    {UNCLE, {{BROTHER, "BH"}, {UNCLE, "AH"}}},
    {NIECE, {{BROTHER, "HB"}, {DAUGHTER, "AH"}}},
    {UNCLE, {{BROTHER, "AH"}, {SON, "BH"}}},
    {NEPHEW, {{BROTHER, "AH"}, {UNCLE, "BH"}}},
    {NEPHEW, {{BROTHER, "BH"}, {SON, "AH"}}},
    {WIFE, {{FATHER, "BH"}, {MOTHER, "AH"}}},
    {DAUGHTER, {{FATHER, "BH"}, {SISTER, "AH"}}},
    {FATHER, {{BROTHER, "HB"}, {FATHER, "AH"}}},
    {MOTHER, {{BROTHER, "HB"}, {MOTHER, "AH"}}},
    {NIECE, {{AUNT, "BH"}, {SISTER, "AH"}}},
    {FATHER, {{FATHER, "AH"}, {SISTER, "HB"}}},
    {SON, {{BROTHER, "AH"}, {FATHER, "BH"}}},
};
enum { RULES = sizeof family_rules / sizeof family_rules[0] };

/* --- random numbers --------------------------------------------------------------------------- */

/* SplitMix64 (Steele et al., 2014): part of the recipe, so not the random numbers of runs. */
static uint32_t below(uint64_t *state, uint32_t n)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;
    return (uint32_t)(((z >> 32) * n) >> 32);
}

/* --- people ----------------------------------------------------------------------------------- */

enum { MALE, FEMALE, UNBORN = 0xffff };

struct couple {
    uint16_t man, woman;
    uint8_t generation, children;
    uint16_t child[CHILDREN + 1];
};

struct family {
    uint64_t random;
    uint32_t people, couples, last; /* last: couple that had a child, or was founded, last */
    uint8_t sex[PEOPLE];
    uint16_t born[PEOPLE]; /* couple of the parents, or UNBORN: of the founders and those who
                              married in */
    struct couple couple[PEOPLE];
    uint32_t facts;
    struct fact {
        uint8_t relation;
        uint16_t x, y;
    } fact[FACTS];
};

static uint16_t add_person(struct family *f, uint32_t sex, uint16_t born)
{
    f->sex[f->people] = (uint8_t)sex;
    f->born[f->people] = born;
    return (uint16_t)f->people++;
}

static void marry(struct family *f, uint16_t man, uint16_t woman, uint32_t generation)
{
    f->couple[f->couples++] =
        (struct couple){.man = man, .woman = woman, .generation = (uint8_t)generation};
}

static uint16_t add_child(struct family *f, uint32_t c)
{
    const uint16_t child = add_person(f, below(&f->random, 2), (uint16_t)c);
    f->couple[c].child[f->couple[c].children++] = child;
    f->last = c;
    return child;
}

/* Couples wait in a queue, which is the list of couples itself. */
static void add_people(struct family *f)
{
    while (f->people < PEOPLE) {
        if (f->people == PEOPLE - 1) {
            add_child(f, f->last);
            return;
        }
        const uint16_t man = add_person(f, MALE, UNBORN), woman = add_person(f, FEMALE, UNBORN);
        f->last = f->couples;
        marry(f, man, woman, 0);
        for (uint32_t c = f->last; c < f->couples && f->people < PEOPLE; c++) {
            const uint32_t next = f->couple[c].generation + 1u;
            uint32_t children = 1 + below(&f->random, CHILDREN);
            while (children-- > 0 && f->people < PEOPLE) {
                const uint16_t child = add_child(f, c);
                if (next >= GENERATIONS || below(&f->random, 100) >= MARRIED_OF_100 ||
                    f->people >= PEOPLE)
                    continue;
                const uint16_t other = add_person(f, !f->sex[child], UNBORN);
                marry(f, f->sex[child] == MALE ? child : other,
                      f->sex[child] == MALE ? other : child, next);
            }
        }
    }
}

/* --- facts ------------------------------------------------------------------------------------ */

/* x is the relation of y, in the form of x's sex. */
static void add_fact(struct family *f, enum relation male, enum relation female, uint32_t x,
                     uint32_t y)
{
    f->fact[f->facts++] = (struct fact){
        .relation = f->sex[x] == MALE ? male : female, .x = (uint16_t)x, .y = (uint16_t)y};
}

/* x, a child of couple c, and what follows from it: brothers and sisters, and for the children of
 * these uncles and aunts. */
static void add_child_facts(struct family *f, uint32_t c, uint32_t x)
{
    const struct couple *parents = &f->couple[c];
    const uint32_t both[2] = {parents->man, parents->woman};
    for (int i = 0; i < 2; i++) {
        add_fact(f, FATHER, MOTHER, both[i], x);
        add_fact(f, SON, DAUGHTER, x, both[i]);
        if (f->born[both[i]] == UNBORN)
            continue;
        const struct couple *elders = &f->couple[f->born[both[i]]];
        for (uint32_t s = 0; s < elders->children; s++)
            if (elders->child[s] != both[i]) {
                add_fact(f, UNCLE, AUNT, elders->child[s], x);
                add_fact(f, NEPHEW, NIECE, x, elders->child[s]);
            }
    }
    for (uint32_t s = 0; s < parents->children; s++)
        if (parents->child[s] != x)
            add_fact(f, BROTHER, SISTER, x, parents->child[s]);
}

static int compare_facts(const void *left, const void *right)
{
    const struct fact *a = left, *b = right;
    if (a->relation != b->relation)
        return a->relation < b->relation ? -1 : 1;
    if (a->x != b->x)
        return a->x < b->x ? -1 : 1;
    return (a->y > b->y) - (a->y < b->y);
}

static void add_facts(struct family *f)
{
    for (uint32_t c = 0; c < f->couples; c++) {
        const struct couple *couple = &f->couple[c];
        add_fact(f, HUSBAND, HUSBAND, couple->man, couple->woman);
        add_fact(f, WIFE, WIFE, couple->woman, couple->man);
        for (uint32_t i = 0; i < couple->children; i++)
            add_child_facts(f, c, couple->child[i]);
    }
    qsort(f->fact, f->facts, sizeof f->fact[0], compare_facts);
    for (uint32_t i = f->facts - 1; i > 0; i--) {
        const uint32_t j = below(&f->random, i + 1);
        const struct fact swap = f->fact[i];
        f->fact[i] = f->fact[j];
        f->fact[j] = swap;
    }
}

/* Moves what is trained with to the front: each fact with a person who was in none before, then
 * others as they come. The rest keeps its order. */
static int take_training(struct family *f)
{
    bool met[PEOPLE] = {false};
    uint32_t front = 0, back = 0, fill = TRAIN;
    uint8_t *first = calloc(FACTS, 1);
    struct fact *rest = malloc(FACTS * sizeof *rest);
    if (!first || !rest) {
        free(first);
        free(rest);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < f->facts; i++) {
        const struct fact *fact = &f->fact[i];
        first[i] = !met[fact->x] || !met[fact->y];
        met[fact->x] = met[fact->y] = true;
        fill -= first[i];
    }
    for (uint32_t i = 0; i < f->facts; i++) {
        const bool train = first[i] || fill > 0;
        fill -= !first[i] && train;
        if (train)
            f->fact[front++] = f->fact[i];
        else
            rest[back++] = f->fact[i];
    }
    memcpy(f->fact + front, rest, back * sizeof *rest);
    qsort(f->fact, front, sizeof f->fact[0], compare_facts);
    free(first);
    free(rest);
    return 0;
}

/* --- text ------------------------------------------------------------------------------------- */

static char *write_facts(const struct fact *fact, uint32_t count, size_t *bytes)
{
    char *text = malloc((size_t)count * (LINE + 2) + 1);
    *bytes = 0;
    for (uint32_t i = 0; text && i < count; i++)
        *bytes += (size_t)sprintf(text + *bytes, "%s(p%04u,p%04u).\n",
                                  relation_name[fact[i].relation], fact[i].x + 1u, fact[i].y + 1u);
    return text;
}

static char *write_rules(size_t *bytes)
{
    char *text = malloc((size_t)RULES * 64);
    *bytes = 0;
    for (uint32_t r = 0; text && r < RULES; r++) {
        *bytes += (size_t)sprintf(text + *bytes, "%s(A,B)", relation_name[family_rules[r].head]);
        for (int i = 0; i < 2 && family_rules[r].body[i].args[0]; i++) {
            const char *args = family_rules[r].body[i].args;
            *bytes +=
                (size_t)sprintf(text + *bytes, "%s%s(%c,%c)", i ? ", " : " :- ",
                                relation_name[family_rules[r].body[i].relation], args[0], args[1]);
        }
        *bytes += (size_t)sprintf(text + *bytes, ".\n");
    }
    return text;
}

int rm_prover_family_make(char *text[RM_PROVER_FAMILY_COUNT], size_t bytes[RM_PROVER_FAMILY_COUNT])
{
    static const uint32_t at[] = {0, TRAIN, TRAIN + VALID, FACTS};
    struct family *f = calloc(1, sizeof *f);
    for (int t = 0; t < RM_PROVER_FAMILY_COUNT; t++)
        text[t] = NULL;
    if (!f)
        return -ENOMEM;
    f->random = 1;
    add_people(f);
    add_facts(f);
    int rc = take_training(f);
    for (int t = 0; rc == 0 && t < RM_PROVER_FAMILY_COUNT; t++) {
        text[t] = t == RM_PROVER_FAMILY_RULES
                      ? write_rules(&bytes[t])
                      : write_facts(f->fact + at[t], at[t + 1] - at[t], &bytes[t]);
        rc = text[t] ? 0 : -ENOMEM;
    }
    free(f);
    for (int t = 0; rc < 0 && t < RM_PROVER_FAMILY_COUNT; t++) {
        free(text[t]);
        text[t] = NULL;
    }
    return rc;
}
