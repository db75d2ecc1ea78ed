/* prover: knowledge bases as text. Dialects that mean the same, names of every kind, and what is
 * said of a line that is wrong. */
#include "tests/support/batch.h"
#include "tests/support/prover.h"

#include "actor/worlds/builtin/prover_queries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct file {
    const char *name, *text;
};

static struct rm_prover_kb *open_files(const struct file *files, char *error, size_t error_size)
{
    struct rm_test_prover_folder folder;
    rm_test_prover_folder_make(&folder);
    for (; files->name; files++)
        rm_test_prover_folder_write(&folder, files->name, files->text, strlen(files->text));
    struct rm_prover_kb *kb = rm_prover_kb_open(folder.path, 512, error, error_size);
    rm_test_prover_folder_remove(&folder);
    /* What it says of the folder is not the same twice: from the file on. */
    if (!kb && strncmp(error, folder.path, strlen(folder.path)) == 0)
        memmove(error, error + strlen(folder.path) + 1, strlen(error) - strlen(folder.path));
    return kb;
}

static struct rm_prover_kb *open_good(const struct file *files)
{
    char error[512] = "";
    struct rm_prover_kb *kb = open_files(files, error, sizeof error);
    if (!kb)
        fail_msg("%s", error);
    return kb;
}

static void names_are(const struct rm_prover_names *names, const char *const *expected)
{
    for (uint32_t i = 0; i < names->count; i++)
        assert_string_equal(names->name[i], expected[i]);
    assert_null(expected[names->count]);
}

static void test_ids(void **unused)
{
    (void)unused;
    static const struct file files[] = {
        {"facts.pl", "% people\n"
                     ":- discontiguous q/2.\n"
                     "\n"
                     "  q( Zed , b ) .   % one\n"
                     "'Q'('it''s',\t'\xc3\xa4 (,)').\r\n"
                     "q(00260881,a_B9).\n"
                     "q(Zed,b).\n"
                     "one(b)."},
        {"rules.pl", "'Q'(X,Y) :- q(X,_),q(_,Y), 'Q'(c,_9).\n"},
        {"train.txt", "'Q'(b,b)\n% no query\n'Q'(b,c). 3 % three deep\nq(b,b) -1\n"},
        {NULL, NULL}};
    char text[64];
    /* Zed is a variable without quotes. */
    struct file bad[4];
    memcpy(bad, files, sizeof bad);
    assert_null(open_files(bad, text, sizeof text));
    char facts[256];
    snprintf(facts, sizeof facts, "%s", files[0].text);
    for (char *at = facts; (at = strstr(at, "Zed"));)
        memcpy(at, "zed", 3);
    bad[0].text = facts;
    struct rm_prover_kb *kb = open_good(bad);
    names_are(&kb->constant, (const char *const[]){"00260881", "a_B9", "b", "c", "it's", "zed",
                                                   "\xc3\xa4 (,)", NULL});
    names_are(&kb->predicate, (const char *const[]){"Q", "one", "q", NULL});
    assert_int_equal(kb->facts, 4);                        /* one is there twice */
    assert_int_equal(kb->split[RM_PROVER_TRAIN].count, 2); /* no rule proves q(b,b) */
    assert_true(rm_prover_is_known(kb, rm_prover_atom_of(3, 3, 3)));
    assert_false(rm_prover_is_fact(kb, rm_prover_atom_of(3, 3, 3)));
    assert_true(rm_prover_is_fact(kb, rm_prover_atom_of(2, 3, 0)));
    assert_int_equal(kb->rules, 1);
    assert_int_equal(kb->rule[0].variables, 5); /* _ is another one each time */
    rm_prover_write(kb, rm_prover_atom_of(1, 5, 7), text, sizeof text);
    assert_string_equal(text, "'Q'('it''s','\xc3\xa4 (,)')");
    rm_prover_write(kb, rm_prover_atom_of(3, 1, 9), text, sizeof text);
    assert_string_equal(text, "q('00260881',V2)");
    assert_int_equal(rm_prover_write(kb, rm_prover_atom_of(3, 1, 9), text, 5), 16);
    assert_string_equal(text, "q('0");
    rm_prover_kb_close(kb);
}

/* The first words of a knowledge base: what tests compare. */
static void write_kb(const struct rm_prover_kb *kb, char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t f = 0; f < kb->facts; f++) {
        used += rm_prover_write(kb, kb->all.fact[f], text + used, size - used);
        used += (size_t)snprintf(text + used, size - used, " ");
    }
    for (uint32_t r = 0; r < kb->rules; r++)
        for (uint32_t i = 0; i <= kb->rule[r].bodies; i++) {
            const struct rm_prover_pattern *p = i ? &kb->rule[r].body[i - 1] : &kb->rule[r].head;
            used += (size_t)snprintf(text + used, size - used, "%s(%d,%d) ",
                                     kb->predicate.name[p->pred - 1], p->arg[0], p->arg[1]);
        }
    for (uint32_t q = 0; q < kb->split[RM_PROVER_VALID].count; q++)
        used += rm_prover_write(kb, kb->split[RM_PROVER_VALID].query[q], text + used, size - used);
    assert_true(used < size);
}

static void test_dialects(void **unused)
{
    (void)unused;
    static const struct file prolog[] = {
        {"facts.pl", "'/people/x'(a,'b c').\n'_hyper'('b c',a).\n'%'(a,a).\n"},
        {"rules.pl", "'_hyper'(X,Y) :- '/people/x'(X,Z), '_hyper'(Z,Y).\n"
                     "'_hyper'(X,Y) :- '/people/x'(Y,X).\n"},
        {"train.txt", "'_hyper'(a,a)\n"},
        {"valid.txt", "'/people/x'('b c',a)\n"},
        {NULL, NULL}};
    static const struct file other[] = {
        {"facts.tsv", "a\t/people/x\tb c\nb c\t_hyper\ta\na\t%\ta\n"},
        {"rules.arrow", "r1:0.5:/people/x(x,z), _hyper( z , y) -> _hyper(x,y)\n"
                        "7:1:/people/x(b,A)  ->  _hyper(A,b)\n"},
        {"train.tsv", "a\t_hyper\ta\n"},
        {"valid.tsv", "b c\t/people/x\ta"},
        {NULL, NULL}};
    char text[2][512];
    for (int i = 0; i < 2; i++) {
        struct rm_prover_kb *kb = open_good(i ? other : prolog);
        write_kb(kb, text[i], sizeof text[i]);
        rm_prover_kb_close(kb);
    }
    assert_string_equal(text[0], text[1]);
    assert_string_equal(text[0], "'/people/x'(a,'b c') '_hyper'('b c',a) '%'(a,a) "
                                 "_hyper(-1,-2) /people/x(-1,-3) _hyper(-3,-2) "
                                 "_hyper(-1,-2) /people/x(-2,-1) '/people/x'('b c',a)");
}

/* Facts and rules of a predicate are in file order, however they are spread. */
static void test_order(void **unused)
{
    (void)unused;
    struct rm_prover_kb *kb =
        rm_test_prover_kb("b(y,x).\na(y,x).\nb(x,y).\na(x,x).\nb(y,a).\na(x,y).\n",
                          "b(X,X) :- a(X,X).\na(X,Y) :- b(X,Y).\nb(X,Y) :- a(X,Y).\n", "b(x,x)");
    char text[512];
    write_kb(kb, text, sizeof text);
    assert_string_equal(text, "b(y,x) b(x,y) b(y,a) a(y,x) a(x,x) a(x,y) a(-1,-2) b(-1,-2) "
                              "b(-1,-1) a(-1,-1) b(-1,-2) a(-1,-2) ");
    struct rm_prover_run run = rm_prover_find(&kb->by_first.runs, rm_prover_atom_of(2, 3, 0));
    assert_int_equal(run.count, 2);
    assert_true(kb->by_first.fact[run.first] == rm_prover_atom_of(2, 3, 2));
    assert_true(kb->by_first.fact[run.first + 1] == rm_prover_atom_of(2, 3, 1));
    run = rm_prover_find(&kb->by_second.runs, rm_prover_atom_of(1, 0, 2));
    assert_int_equal(run.count, 2);
    assert_true(kb->by_second.fact[run.first] == rm_prover_atom_of(1, 3, 2));
    assert_int_equal(rm_prover_find(&kb->by_second.runs, rm_prover_atom_of(1, 0, 1)).count, 0);
    rm_prover_kb_close(kb);
}

/* --- bad input -------------------------------------------------------------------------------- */

#define GOOD_FACTS "p(a,b).\n"
#define GOOD_RULES "r(X,Y) :- p(X,Y).\n"
#define GOOD_TRAIN "r(a,b)\n"

static void test_bad_lines(void **unused)
{
    (void)unused;
    static const struct {
        const char *name, *text, *message;
    } known[] = {
        {"facts.pl", "p(a,b).\n\np(a,b,c).\n",
         "facts.pl:3: p has 3 arguments; a predicate has 1 or 2"},
        {"facts.pl", "p(a,X).", "facts.pl:1: p has the variable X; facts and queries have none"},
        {"facts.pl", "p(a,b).\np(a).\n", "facts.pl:2: p has 1 argument here, but 2 before"},
        {"facts.pl", "p(a,b) :- q(a,b).\n",
         "facts.pl:1: p has a body; rules are in a file of their own"},
        {"facts.pl", "p(a,b)\n",
         "facts.pl:1: a clause is one line that ends with a dot; this one, of p, has none"},
        {"facts.pl", "p(a,f(b)).\n",
         "facts.pl:1: an argument of p is the term f(...); arguments are names and variables"},
        {"facts.pl", "p(a,\n", "facts.pl:1: a name is expected at the end of the line"},
        {"facts.pl", "p(a,b). q(a,b).\n",
         "facts.pl:1: a clause is one line that ends with a dot; after p it goes on with '. "
         "q(a,b).'"},
        {"facts.pl", "P(a,b).\n",
         "facts.pl:1: a predicate is called 'P', which is a variable: names begin with a small "
         "letter, or stand in quotes"},
        {"facts.pl", "p.\n", "facts.pl:1: 'p' should be followed by its arguments, as in p(a,b)"},
        {"facts.pl", "p(a,b.\n", "facts.pl:1: the arguments of p should end with ), not with '.'"},
        {"facts.pl", "p(a,-1).\n",
         "facts.pl:1: a name is expected at '-1).'; a name with other characters than letters, "
         "digits and _ needs quotes: 'so'"},
        {"facts.pl", "p(a,'b).\n", "facts.pl:1: a quoted name has no end; it ends with '"},
        {"facts.pl", "p(a,'').\n", "facts.pl:1: a name is empty"},
        {"facts.pl", "", "train.txt:1: no fact and no rule has the constant a"},
        {"rules.pl", "r(a,b).\n", "rules.pl:1: r has no body; facts are in a file of their own"},
        {"rules.pl", "r(X,Y) :- p(X,Y), q(X,Y,Z).\n",
         "rules.pl:1: q has 3 arguments; a predicate has 1 or 2"},
        {"rules.pl", "r(X,Y) :- p(X).\n", "rules.pl:1: p has 1 argument here, but 2 before"},
        {"rules.pl",
         "r(X,Y) :- p(X,Y),p(X,Y),p(X,Y),p(X,Y),p(X,Y),p(X,Y),p(X,Y),p(X,Y),p(X,Y),"
         "p(X,Y),p(X,Y),p(X,Y),p(X,Y),p(X,Y),p(X,Y),p(X,Y),p(X,Y).\n",
         "rules.pl:1: a rule with more than 16 atoms in its body"},
        {"rules.arrow", "r(X,Y) :- p(X,Y).\n",
         "rules.arrow:1: a rule is written id:confidence:b1(x,z), b2(z,y) -> h(x,y), but this line "
         "is not"},
        {"rules.arrow", "1:1:p(x,y) p(y,x) -> r(x,y)\n",
         "rules.arrow:1: a comma is expected between the atoms of a body, not 'p(y,x) '"},
        {"rules.arrow", "1:1:p(x,y,z) -> r(x,y)\n",
         "rules.arrow:1: p has 3 arguments; a predicate has 1 or 2"},
        {"rules.arrow", "1:1:p(x,y) -> r(x,y).\n",
         "rules.arrow:1: a rule ends with its head, but '.' follows"},
        {"facts.tsv", "a\tp\tb\na\tp\n",
         "facts.tsv:2: a line is head, relation and tail with tabs between them, but this line has "
         "2 fields, or an empty one"},
        {"train.txt", "r(a,b)\nr(a,c)\n", "train.txt:2: no fact and no rule has the constant c"},
        {"train.txt", "s(a,b)\n", "train.txt:1: no fact and no rule has the predicate s"},
        {"train.txt", "r(a,b) deep\n",
         "train.txt:1: only a dot, a blank and the depth of its proof (-1: unknown) may follow a "
         "query, not ' deep'"},
        {"train.txt", "p(a,b)\n",
         "FOLDER has no query to train with whose predicate is the head of a rule"},
        {"valid.txt", "r(a,b)\n\n% no\nr(zz,b)\n",
         "valid.txt:4: no fact and no rule has the constant zz"},
        {"domains.txt", "people a zz\n", "domains.txt:1: no fact and no rule has the constant zz"},
        {"domains.txt", "people a\nthings b a\n", "domains.txt:2: a must be in one domain, once"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct file files[] = {{"facts.pl", GOOD_FACTS},
                                     {"rules.pl", GOOD_RULES},
                                     {"train.txt", GOOD_TRAIN},
                                     {known[i].name, known[i].text},
                                     {NULL, NULL}};
        char error[512] = "";
        if (open_files(files, error, sizeof error))
            fail_msg("%s is taken", known[i].text);
        const char *message = known[i].message;
        if (strncmp(message, "FOLDER", 6) == 0) /* the folder was cut off, with what follows it */
            message += 7;
        assert_string_equal(error, message);
    }
}

static void test_bad_files(void **unused)
{
    (void)unused;
    char error[512] = "";
    static const struct file files[] = {
        {"facts.pl", GOOD_FACTS}, {"rules.pl", GOOD_RULES}, {NULL, NULL}};
    assert_null(open_files(files, error, sizeof error));
    assert_string_equal(error, "train.txt cannot be read: No such file or directory");
    assert_null(rm_prover_kb_open("/nowhere/at/all", 512, error, sizeof error));
    assert_string_equal(error,
                        "/nowhere/at/all/facts.pl cannot be read: No such file or directory");
    static const struct file empty[] = {{"facts.pl", "% none\n"},
                                        {"rules.pl", "r(X,Y) :- p(X,a).\n"},
                                        {"train.txt", "r(a,a)\n"},
                                        {NULL, NULL}};
    assert_null(open_files(empty, error, sizeof error));
    assert_string_equal(error, "has no facts");
    struct rm_test_prover_folder folder;
    rm_test_prover_folder_make(&folder);
    rm_test_prover_folder_write(&folder, "facts.pl", "p(a,b).\0p(a,c).", 16);
    assert_null(rm_prover_kb_open(folder.path, 512, error, sizeof error));
    assert_non_null(strstr(error, "facts.pl cannot be read: it has a NUL byte"));
    rm_test_prover_folder_remove(&folder);
}

/* A world says it as the refusal of an experiment. */
static void test_refusal(void **unused)
{
    (void)unused;
    static struct rm_world_config config;
    struct rm_test_prover_folder folder;
    struct rm_world world;
    struct rm_env *env;
    struct rm_error error = {""};
    char text[128], expected[256];
    rm_test_prover_folder_make(&folder);
    rm_test_prover_folder_write(&folder, "facts.pl", "p(a,b,c).\n", 10);
    snprintf(text, sizeof text, "data=\"%s\"", folder.path);
    rm_test_world_config(&config, "prover", text);
    assert_int_equal(rm_world_open(&world, "prover", NULL, &error), 0);
    assert_true(rm_world_create(&world, &config, 1, 0, 1, &env, &error) < 0);
    snprintf(expected, sizeof expected,
             "world 'prover' refuses: %s/facts.pl:1: p has 3 arguments; a predicate has 1 or 2",
             folder.path);
    assert_string_equal(error.text, expected);
    /* Nothing to ask: no queries, or none that can be corrupted. */
    rm_test_prover_folder_write(&folder, "facts.pl", GOOD_FACTS, strlen(GOOD_FACTS));
    rm_test_prover_folder_write(&folder, "rules.pl", GOOD_RULES, strlen(GOOD_RULES));
    rm_test_prover_folder_write(&folder, "train.txt", "r(a,b)\nr(b,b)\nr(a,a)\nr(b,a)\n", 28);
    snprintf(text, sizeof text, "data=\"%s\" split=\"test\"", folder.path);
    rm_test_world_config(&config, "prover", text);
    assert_true(rm_world_create(&world, &config, 1, 0, 1, &env, &error) < 0);
    assert_non_null(strstr(error.text, "the split test of "));
    assert_non_null(strstr(error.text, " has no queries"));
    rm_test_prover_folder_write(&folder, "test.txt", "r(a,a)\n", 7);
    assert_true(rm_world_create(&world, &config, 1, 0, 1, &env, &error) < 0);
    assert_non_null(strstr(error.text, " has no query that can be corrupted"));
    snprintf(text, sizeof text, "data=\"%s\" split=\"test\" labels=\"positive\"", folder.path);
    rm_test_world_config(&config, "prover", text);
    assert_int_equal(rm_world_create(&world, &config, 1, 0, 1, &env, &error), 0);
    world.ops->close(env);
    rm_world_close(&world);
    rm_test_prover_folder_remove(&folder);
}

/* --- questions -------------------------------------------------------------------------------- */

enum { EPISODES = 4000 };

/* Constants of the same domain take each other's place, head and tail in turn, and never make
 * something known. */
static void test_corruption(void **unused)
{
    (void)unused;
    static const struct file files[] = {{"facts.pl", "p(a,b).\np(c,x).\np(d,y).\np(e,z).\n"},
                                        {"rules.pl", GOOD_RULES},
                                        {"train.txt", "r(a,x)\n"},
                                        {"valid.txt", "r(a,y)\n"},
                                        {"test.txt", "r(c,x)\n"},
                                        {"domains.txt", "people a c d e\nthings 'x' y z\n"},
                                        {NULL, NULL}};
    struct rm_prover_kb *kb = open_good(files);
    for (int compat = 0; compat < 2; compat++) {
        const struct rm_prover_asking asking = {.kb = kb, .compat = compat};
        uint32_t head[16] = {0}, tail[16] = {0};
        assert_null(rm_prover_nothing_to_ask(&asking));
        for (uint64_t turn = 0; turn < EPISODES; turn++) {
            struct rm_rng rng = rm_rng_at(5, RM_STREAM_TEST, 0, turn);
            const struct rm_prover_question asked = rm_prover_ask(&asking, turn, &rng);
            assert_int_equal(asked.label, turn % 2 == 0);
            if (asked.label) {
                assert_true(asked.query == rm_test_prover_atom(kb, "r(a,x)"));
                continue;
            }
            assert_false(rm_prover_is_known(kb, asked.query));
            const char *first = kb->constant.name[rm_prover_first(asked.query) - 1];
            const char *second = kb->constant.name[rm_prover_second(asked.query) - 1];
            assert_true(strcmp(first, "a") == 0 || strcmp(second, "x") == 0);
            if (!compat)
                assert_string_equal(turn / 2 % 2 == 0 ? second : first,
                                    turn / 2 % 2 == 0 ? "x" : "a");
            head[*first - 'a']++;
            tail[*second - 'x' + 1]++;
        }
        /* Left are d, e for the head and z for the tail. */
        assert_int_equal(head['c' - 'a'] + tail['y' - 'x' + 1], 0);
        assert_int_equal(head[0] + head[3] + head[4], EPISODES / 2);
        if (compat)
            continue;
        assert_int_equal(head[0], EPISODES / 4);
        assert_int_equal(tail['z' - 'x' + 1], EPISODES / 4);
        assert_in_range(head[3], EPISODES / 8 - 80, EPISODES / 8 + 80);
    }
    rm_prover_kb_close(kb);
}

/* With compat the first, then the second of what is left in the order of ids: small ids. */
static void test_corruption_in_order(void **unused)
{
    (void)unused;
    char facts[4096] = "";
    for (int i = 100; i < 200; i++)
        sprintf(facts + strlen(facts), "p(c%d,c%d).\n", i, i);
    struct rm_prover_kb *kb = rm_test_prover_kb(facts, "r(X,Y) :- p(X,Y).\n", "r(c150,c150)\n");
    double mean[2] = {0, 0};
    const struct rm_prover_asking asking = {
        .kb = kb, .labels = RM_PROVER_CORRUPTED, .compat = true};
    uint32_t heads = 0;
    for (uint64_t turn = 0; turn < EPISODES; turn++) {
        struct rm_rng rng = rm_rng_at(5, RM_STREAM_TEST, 0, turn);
        const struct rm_prover_question asked = rm_prover_ask(&asking, turn, &rng);
        assert_false(asked.label);
        mean[turn % 2] += rm_prover_first(asked.query) / (EPISODES / 2.0);
        heads += rm_prover_first(asked.query) < 51;
    }
    /* Least of three of 100 ids, or own id 51 where all heads are above it. */
    assert_true(mean[0] > 20 && mean[0] < 30 && mean[1] > mean[0] + 5 && mean[1] < 50);
    assert_in_range(heads, EPISODES / 2, EPISODES);
    rm_prover_kb_close(kb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),        cmocka_unit_test(test_dialects),
        cmocka_unit_test(test_order),      cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_bad_files),  cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_corruption), cmocka_unit_test(test_corruption_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
