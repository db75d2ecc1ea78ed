/* prover: resolution on knowledge bases of a few lines, step by step: what there is to choose from,
 * what it leads to, and how it ends. And what agents are given of it. */
#include "actor/worlds/builtin/prover.h"
#include "actor/worlds/builtin/prover_queries.h"
#include "tests/support/batch.h"
#include "tests/support/prover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define FACTS "p(a,b).\np(b,c).\nq(b,d).\n"
#define RULES                                                                                      \
    "r(A,B) :- p(A,H), q(H,B).\n"                                                                  \
    "r(A,B) :- p(A,H), r(H,B).\n"                                                                  \
    "s(A,B) :- r(B,A).\n"                                                                          \
    "t(A,B) :- t(B,A).\n"                                                                          \
    "u(A,B) :- p(A,B), q(B,H).\n"

/* An episode on one of these. */
struct proof {
    struct rm_prover_kb *kb;
    struct rm_prover_engine *engine;
    struct rm_prover_episode episode;
};

static void open_proof(struct proof *p, const char *facts, const char *rules, const char *query,
                       bool label, bool compat)
{
    char train[64];
    snprintf(train, sizeof train, "%s\n", "r(a,a)");
    if (!strstr(facts, "p(a,b)") || !strstr(rules, "r(A,B)"))
        snprintf(train, sizeof train, "%s\n", query);
    p->kb = rm_test_prover_kb(facts, rules, train);
    p->engine = rm_prover_engine_create(p->kb, compat);
    assert_non_null(p->engine);
    memset(&p->episode, 0xa5, sizeof p->episode);
    rm_prover_begin(p->engine, &p->episode, rm_test_prover_atom(p->kb, query), label);
}

static void close_proof(struct proof *p)
{
    rm_prover_engine_destroy(p->engine);
    rm_prover_kb_close(p->kb);
}

static void choice_is(const struct proof *p, const char *choice)
{
    assert_string_equal(rm_test_prover_choice(p->kb, &p->episode), choice);
}

static void shown_is(const struct proof *p, const char *goals)
{
    assert_string_equal(rm_test_prover_goals(p->kb, p->episode.shown.atom, p->episode.shown.count),
                        goals);
}

static void plays(struct proof *p, uint32_t action, double reward, int end)
{
    float got;
    assert_in_range(action, 0, p->episode.successors - 1);
    assert_int_equal(rm_prover_play(p->engine, &p->episode, action, &got), end);
    assert_true((double)got == reward);
}

enum { OVER = RM_PROVER_TERMINATED, CUT = RM_PROVER_TRUNCATED };
#define R_AD "p(a,V1) q(V1,d) | p(a,V1) r(V1,d) | Endf"

static void test_fact(void **unused)
{
    (void)unused;
    struct proof p;
    open_proof(&p, FACTS, RULES, "p(a,b)", false, false);
    choice_is(&p, "True");
    plays(&p, 0, -1, OVER);
    assert_int_equal(p.episode.proved, 1);
    close_proof(&p);
    /* The query itself is no proof of it. */
    open_proof(&p, FACTS, RULES, "p(a,b)", true, false);
    choice_is(&p, "False");
    plays(&p, 0, -1, OVER);
    assert_int_equal(p.episode.proved, 0);
    close_proof(&p);
}

static void test_rules(void **unused)
{
    (void)unused;
    struct proof p;
    open_proof(&p, FACTS, RULES, "r(a,d)", true, false);
    choice_is(&p, R_AD);
    plays(&p, 0, 0, 0);
    choice_is(&p, "True");
    plays(&p, 0, 1, OVER);
    assert_int_equal(p.episode.proved, 1);
    assert_int_equal(p.episode.depth, 2);
    close_proof(&p);
}

static void test_following(void **unused)
{
    (void)unused;
    struct proof p;
    open_proof(&p, FACTS, RULES, "r(a,d)", true, false);
    plays(&p, 1, 0, 0);
    shown_is(&p, "r(b,d)");
    choice_is(&p, "p(b,V2) q(V2,d) | p(b,V2) r(V2,d) | Endf");
    plays(&p, 0, 0, 0);
    shown_is(&p, "q(c,d)");
    choice_is(&p, "False");
    plays(&p, 0, -1, OVER);
    close_proof(&p);
}

static void test_giving_in(void **unused)
{
    (void)unused;
    for (int label = 0; label < 2; label++) {
        struct proof p;
        open_proof(&p, FACTS, RULES, "r(a,d)", label, false);
        choice_is(&p, R_AD);
        plays(&p, 2, label ? -1 : 1, OVER);
        assert_int_equal(p.episode.proved, 0);
        close_proof(&p);
    }
}

static void test_following_at_the_start(void **unused)
{
    (void)unused;
    for (int compat = 0; compat < 2; compat++) {
        struct proof p;
        open_proof(&p, FACTS, RULES, "s(d,a)", true, compat);
        choice_is(&p, R_AD);
        shown_is(&p, compat ? "s(d,a)" : "r(a,d)");
        close_proof(&p);
    }
}

static void test_visited_states(void **unused)
{
    (void)unused;
    struct proof p;
    open_proof(&p, FACTS, RULES, "t(a,b)", false, false);
    choice_is(&p, "Endf");
    plays(&p, 0, 1, OVER);
    close_proof(&p);
}

/* A goal without variables that is a fact leaves the other goals as they are. */
static void test_ground_goal(void **unused)
{
    (void)unused;
    struct proof p;
    open_proof(&p, FACTS, RULES, "u(a,b)", true, true);
    choice_is(&p, "True");
    shown_is(&p, "u(a,b)");
    close_proof(&p);
    open_proof(&p, FACTS, RULES, "u(a,b)", true, false);
    choice_is(&p, "True");
    shown_is(&p, "q(b,V1)");
    close_proof(&p);
}

static void test_dead_end(void **unused)
{
    (void)unused;
    struct proof p;
    open_proof(&p, FACTS, RULES, "r(c,d)", true, false);
    choice_is(&p, "p(c,V1) q(V1,d) | p(c,V1) r(V1,d) | Endf");
    plays(&p, 0, 0, 0);
    choice_is(&p, "False");
    close_proof(&p);
}

static void test_many_successors(void **unused)
{
    (void)unused;
    char facts[1024] = "z(35,35).\n";
    for (int i = 2; i <= 26; i++)
        sprintf(facts + strlen(facts), "p(1,%d).\n", i);
    struct proof p;
    open_proof(&p, facts, "r(A,B) :- p(A,H), r(H,B).\n", "r(1,35)", true, false);
    assert_int_equal(p.episode.successors, RM_PROVER_ACTIONS);
    /* All are of one length: the first 19, in file order. */
    for (uint32_t i = 0; i < 19; i++) {
        char goal[16];
        snprintf(goal, sizeof goal, "r('%u',", i + 2);
        assert_memory_equal(rm_test_prover_goals(p.kb, p.episode.successor[i], p.episode.size[i]),
                            goal, strlen(goal));
    }
    assert_string_equal(rm_test_prover_goals(p.kb, p.episode.successor[19], 1), "Endf");
    close_proof(&p);
}

/* Twelve of two goals come after ten of one, and seven of them are kept. */
static void test_short_states_first(void **unused)
{
    (void)unused;
    char rules[2048] = "";
    for (int i = 1; i <= 12; i++)
        sprintf(rules + strlen(rules), "r(A,B) :- q(A,c%d), q(B,c%d).\n", i, i);
    for (int i = 1; i <= 11; i++)
        sprintf(rules + strlen(rules), "r(A,B) :- q(A,c%d).\n", i);
    struct proof p;
    open_proof(&p, "p(a,b).\n", rules, "r(a,b)", true, false);
    assert_int_equal(p.episode.successors, RM_PROVER_ACTIONS);
    for (uint32_t i = 0; i < 19; i++)
        assert_int_equal(p.episode.size[i], i < 11 ? 1 : 2);
    assert_string_equal(rm_test_prover_goals(p.kb, p.episode.successor[10], 1), "q(a,c11)");
    assert_string_equal(rm_test_prover_goals(p.kb, p.episode.successor[18], 2), "q(a,c8) q(b,c8)");
    close_proof(&p);
}

static void test_time_limit(void **unused)
{
    (void)unused;
    char facts[1024] = "q(54,55).\n";
    for (int i = 1; i < 41; i++)
        sprintf(facts + strlen(facts), "p(%d,%d).\n", i, i + 1);
    for (int compat = 0; compat < 2; compat++) {
        struct proof p;
        open_proof(&p, facts, RULES, "r(1,55)", true, compat);
        for (int step = 1; step < RM_PROVER_STEPS; step++)
            plays(&p, 1, 0, 0);
        plays(&p, 1, 0, compat ? OVER | CUT : CUT);
        assert_int_equal(p.episode.depth, RM_PROVER_STEPS);
        close_proof(&p);
    }
}

/* Proved in the last step: reward, and with compat no success. */
static void test_proof_in_the_last_step(void **unused)
{
    (void)unused;
    char facts[1024] = "q(20,55).\n";
    for (int i = 1; i < 41; i++)
        sprintf(facts + strlen(facts), "p(%d,%d).\n", i, i + 1);
    for (int compat = 0; compat < 2; compat++) {
        struct proof p;
        open_proof(&p, facts, RULES, "r(1,55)", true, compat);
        for (int step = 1; step < RM_PROVER_STEPS - 1; step++)
            plays(&p, 1, 0, 0);
        plays(&p, 0, 0, 0);
        choice_is(&p, "True");
        plays(&p, 0, 1, compat ? OVER | CUT : OVER);
        assert_int_equal(p.episode.proved, !compat);
        close_proof(&p);
    }
}

static void test_following_ends(void **unused)
{
    (void)unused;
    for (int chain = 20; chain <= 21; chain++) {
        char rules[2048] = "";
        for (int i = 0; i < chain; i++)
            sprintf(rules + strlen(rules), "c%d(A,B) :- c%d(A,B).\n", i, i + 1);
        sprintf(rules + strlen(rules), "c%d(A,B) :- x(A,B).\nc%d(A,B) :- y(A,B).\n", chain, chain);
        struct proof p;
        open_proof(&p, "p(a,b).\n", rules, "c0(a,b)", true, false);
        choice_is(&p, chain == 20 ? "x(a,b) | y(a,b) | Endf" : "False");
        assert_int_equal(p.episode.gave_up, chain == 21);
        close_proof(&p);
    }
}

/* A step into such a chain is cut, not lost. */
static void test_giving_up_truncates(void **unused)
{
    (void)unused;
    char rules[2048] = "r(A,B) :- c0(A,B).\nr(A,B) :- x(A,B).\n";
    for (int i = 0; i < 22; i++)
        sprintf(rules + strlen(rules), "c%d(A,B) :- c%d(A,B).\n", i, i + 1);
    struct proof p;
    open_proof(&p, "p(a,b).\n", rules, "r(a,b)", true, false);
    plays(&p, 0, 0, CUT);
    choice_is(&p, "False");
    close_proof(&p);
}

static void test_order_of_goals(void **unused)
{
    (void)unused;
    static const char *const goals[3] = {"p(A,H)", "p(A,B)", "p(H,K)"};
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int i = 0; i < 6; i++) {
        char rules[256];
        snprintf(rules, sizeof rules, "r(A,B) :- q(A,B).\nw(A,B) :- %s, %s, %s.\n",
                 goals[orders[i][0]], goals[orders[i][1]], goals[orders[i][2]]);
        struct proof p;
        open_proof(&p, FACTS, rules, "w(b,a)", true, false);
        /* p(b,a) is no fact: nothing else was tried. */
        choice_is(&p, "False");
        assert_int_equal(p.episode.shown.count, 3);
        close_proof(&p);
    }
}

/* --- beyond the tiny knowledge base ----------------------------------------------------------- */

/* Constants and repeated variables in heads: unified both ways; compat binds variables alone. */
static void test_heads(void **unused)
{
    (void)unused;
    static const struct {
        const char *rules, *query, *choice, *compat;
    } known[] = {
        {"w(b,B) :- q(B,B).\nw(A,B) :- p(A,B).\n", "w(a,c)", "False", "q(c,c) | p(a,c) | Endf"},
        {"w(X,X) :- q(X,X).\nw(A,B) :- p(B,A).\n", "w(a,c)", "False", "q(c,c) | p(c,a) | Endf"},
        /* p(a,V1), v(V1,V1): V1 is c where a head says so, in all goals. */
        {"w(A,B) :- v(A,H), z(H,B).\nv(X,c) :- q(X,X).\nv(X,Y) :- q(Y,X).\n", "w(a,d)",
         "q(a,a) z(c,d) | q(V1,a) z(V1,d) | Endf", "q(a,a) z(V1,d) | q(V1,a) z(V1,d) | Endf"},
        {"w(A,B) :- v(G,H), z(H,G).\nv(X,X) :- q(X,B).\nv(X,Y) :- q(Y,X).\n", "w(a,d)",
         "q(V1,V3) z(V1,V1) | q(V2,V1) z(V2,V1) | Endf",
         "q(V2,V3) z(V2,V1) | q(V2,V1) z(V2,V1) | Endf"},
        {"w(A,B) :- v(G,H), z(H,G).\nv(a,b) :- q(a,X).\nv(X,Y) :- q(Y,X).\n", "w(a,d)",
         "q(a,V3) z(b,a) | q(V2,V1) z(V2,V1) | Endf",
         "q(a,V3) z(V2,V1) | q(V2,V1) z(V2,V1) | Endf"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        for (int compat = 0; compat < 2; compat++) {
            struct proof p;
            open_proof(&p, FACTS, known[i].rules, known[i].query, true, compat);
            if (i == 0 && !compat) /* the second rule alone, whose goal is no fact */
                shown_is(&p, "p(a,c)");
            choice_is(&p, compat ? known[i].compat : known[i].choice);
            close_proof(&p);
        }
}

static void test_facts(void **unused)
{
    (void)unused;
    static const struct {
        const char *facts, *rules, *query, *choice;
    } known[] = {
        /* a repeated variable wants equal constants */
        {"e(a,b). \ne(c,c).\ne(d,d). % twice\n", "w(A,B) :- e(H,H), z(H,K).\n", "w(a,b)",
         "z(c,V2) | z(d,V2) | Endf"},
        /* goals that became facts go, but for the query itself */
        {"e(a,c).\ne(a,d).\nz(c,b).\nw(a,b).\n", "w(A,B) :- e(A,H), z(H,B), y(H,A).\n", "w(a,b)",
         "y(c,a) | z(d,b) y(d,a) | Endf"},
        {"e(a,c).\ne(a,d).\nw(a,b).\n", "w(A,B) :- e(A,H), y(H,A), w(A,B).\n", "w(a,b)", "Endf"},
        /* one argument */
        {"one(c).\none(d).\ne(a,b).\n", "w(A,B) :- one(H), z(H,B), one(A).\n", "w(c,b)",
         "z(c,b) | z(d,b) | Endf"},
        /* a second variable is found by the first argument, and the other way round */
        {"e(a,c).\ne(b,c).\ne(b,d).\n", "w(A,B) :- e(H,A), z(H,B).\n", "w(c,d)",
         "z(a,d) | z(b,d) | Endf"},
        /* exact repeats are one */
        {"e(a,c).\ne(a,d).\n", "w(A,B) :- e(A,H), z(A,K).\n", "w(a,c)", "z(a,V2) | Endf"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct proof p;
        open_proof(&p, known[i].facts, known[i].rules, known[i].query, true, false);
        choice_is(&p, known[i].choice);
        close_proof(&p);
    }
}

/* States of ten goals are no choice; the only state is followed whatever its size. */
static void test_long_states(void **unused)
{
    (void)unused;
    char rules[2048] = "w(A,B) :- z(A,B).\nw(A,B) :- z(A,a), z(A,b)";
    for (int i = 0; i < 8; i++)
        sprintf(rules + strlen(rules), ", y(A,c%d)", i);
    sprintf(rules + strlen(rules), ".\nv(A,B) :- p(A,B)");
    for (int i = 0; i < 15; i++)
        sprintf(rules + strlen(rules), ", z(A,c%d)", i);
    sprintf(rules + strlen(rules), ".\n");
    struct proof p;
    open_proof(&p, FACTS, rules, "w(a,b)", true, false);
    choice_is(&p, "z(a,b) | Endf");
    close_proof(&p);
    open_proof(&p, FACTS, rules, "v(a,b)", false, false);
    choice_is(&p, "Endf");
    assert_int_equal(p.episode.shown.count, 16);
    close_proof(&p);
}

/* Variables past the last: no such successor. */
static void test_variables_end(void **unused)
{
    (void)unused;
    struct rm_test_prover_folder folder;
    char error[512];
    static const char rules[] = "r(A,B) :- p(A,H), q(H,K).\nr(A,B) :- p(A,B), q(B,H).\n";
    rm_test_prover_folder_make(&folder);
    rm_test_prover_folder_write(&folder, "facts.pl", FACTS, strlen(FACTS));
    rm_test_prover_folder_write(&folder, "rules.pl", rules, strlen(rules));
    rm_test_prover_folder_write(&folder, "train.txt", "r(c,d)\n", 7);
    for (uint32_t variables = 0; variables <= 2; variables++) {
        static const char *const choices[] = {"False", "False",
                                              "p(c,V1) q(V1,V2) | p(c,d) q(d,V1) | Endf"};
        struct proof p;
        p.kb = rm_prover_kb_open(folder.path, variables, error, sizeof error);
        assert_non_null(p.kb);
        p.engine = rm_prover_engine_create(p.kb, false);
        rm_prover_begin(p.engine, &p.episode, rm_test_prover_atom(p.kb, "r(c,d)"), true);
        choice_is(&p, choices[variables]);
        if (variables == 1) /* one successor, which was followed */
            shown_is(&p, "p(c,d) q(d,V1)");
        close_proof(&p);
    }
    rm_test_prover_folder_remove(&folder);
}

/* --- what agents are given -------------------------------------------------------------------- */

static void open_batch(struct rm_test_batch *batch, const char *options, const char *rules,
                       const char *queries)
{
    struct rm_test_prover_folder folder;
    char text[256];
    rm_test_prover_folder_make(&folder);
    rm_test_prover_folder_write(&folder, "facts.pl", FACTS, strlen(FACTS));
    rm_test_prover_folder_write(&folder, "rules.pl", rules, strlen(rules));
    rm_test_prover_folder_write(&folder, "train.txt", queries, strlen(queries));
    snprintf(text, sizeof text, "data=\"%s\" %s", folder.path, options);
    rm_test_batch_open(batch, "prover", NULL, text, 1, 0, 1);
    rm_test_prover_folder_remove(&folder);
    rm_test_batch_reset(batch);
}

static void step_batch(struct rm_test_batch *batch, int32_t action)
{
    batch->actions[0][0] = action;
    rm_test_batch_step(batch, 0);
}

static void test_observation(void **unused)
{
    (void)unused;
    /* constants a b c d 1..4, variables from 5; p q r s t u 1..6, True False Endf 7..9 */
    static const int16_t expected[][3][3] = {
        {{3, 1, 4}},
        {{1, 1, 5}, {2, 5, 4}},
        {{1, 1, 5}, {3, 5, 4}},
        {{9, 0, 0}},
    };
    struct rm_test_batch batch;
    open_batch(&batch, "labels=positive", RULES, "s(d,a)");
    double *figures = batch.out[0].figures;
    figures[0] = figures[1] = figures[2] = -1;
    const struct rm_env_agent *agent = &batch.spec->agent[0];
    assert_int_equal(agent->dtype, RM_ENV_I16);
    assert_int_equal(agent->dims, 3);
    assert_int_equal(agent->shape[0], 21);
    assert_int_equal(agent->shape[1], 10);
    assert_int_equal(agent->shape[2], 3);
    assert_true(agent->high == 4 + 512);
    const int16_t(*obs)[10][3] = rm_test_batch_obs(&batch, 0, 0);
    const uint8_t *mask = rm_test_batch_mask(&batch, 0, 0);
    for (int token = 0; token < 21; token++)
        for (int goal = 0; goal < 10; goal++)
            for (int c = 0; c < 3; c++)
                assert_int_equal(obs[token][goal][c],
                                 token < 4 && goal < 3 ? expected[token][goal][c] : 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(mask[i], i < 3);
    assert_int_equal(batch.out[0].flags[0], RM_ENV_FIRST);
    step_batch(&batch, 0);
    assert_int_equal(mask[0], 1);
    assert_int_equal(mask[1], 0);
    assert_int_equal(obs[1][0][0], 7);
    assert_true(figures[0] == -1);
    step_batch(&batch, 0);
    assert_int_equal(batch.out[0].flags[0], RM_ENV_TERMINATED);
    assert_true(batch.out[0].reward[0] == 1);
    assert_int_equal(obs[0][0][0], 7); /* the end itself, and nothing but it to choose */
    assert_int_equal(mask[0] + mask[1], 1);
    assert_true(figures[0] == 1 && figures[1] == 1 && figures[2] == 2);
    step_batch(&batch, 0);
    assert_int_equal(batch.out[0].flags[0], RM_ENV_FIRST);
    rm_test_batch_guards(&batch);
    rm_test_batch_close(&batch);
}

/* True queries and corrupted ones in turn, or one kind alone; with double_reset every episode takes
 * two turns. */
static void test_labels(void **unused)
{
    (void)unused;
    static const struct {
        const char *options;
        int labels[6];
    } known[] = {
        {"", {1, 0, 1, 0, 1, 0}},
        {"labels=positive", {1, 1, 1, 1, 1, 1}},
        {"labels=corrupted", {0, 0, 0, 0, 0, 0}},
        {"compat=1", {1, 0, 1, 0, 1, 0}},
        {"compat=1 double_reset=1", {1, 1, 1, 1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct rm_test_batch batch;
        open_batch(&batch, known[i].options, RULES, "r(a,d)");
        for (int episode = 0; episode < 6; episode++) {
            while (!(batch.out[0].flags[0] & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED)))
                step_batch(&batch, 0);
            assert_true(batch.out[0].figures[1] == known[i].labels[episode]);
            step_batch(&batch, 0);
        }
        rm_test_batch_close(&batch);
    }
}

static void test_masked_action(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    open_batch(&batch, "labels=positive", RULES, "r(a,d)");
    batch.actions[0][0] = 3;
    assert_true(batch.world.ops->step(batch.env, 0, batch.const_actions, batch.out) < 0);
    assert_string_equal(batch.world.ops->last_error(batch.env),
                        "action 3 in world 0 is masked out");
    rm_test_batch_close(&batch);
}

/* A cut episode shows the state that it would have gone on from; with compat it is over. */
static void test_cut_episode(void **unused)
{
    (void)unused;
    char rules[2048] = "r(A,B) :- c0(A,B).\nr(A,B) :- x(A,B).\n";
    for (int i = 0; i < 22; i++)
        sprintf(rules + strlen(rules), "c%d(A,B) :- c%d(A,B).\n", i, i + 1);
    for (int compat = 0; compat < 2; compat++) {
        struct rm_test_batch batch;
        open_batch(&batch, compat ? "labels=positive compat=1" : "labels=positive", rules,
                   "r(a,b)");
        step_batch(&batch, 0);
        assert_int_equal(batch.out[0].flags[0], compat ? RM_ENV_TERMINATED : RM_ENV_TRUNCATED);
        assert_true(batch.out[0].reward[0] == 0);
        rm_test_batch_close(&batch);
    }
}

/* Wide ids: observations of four bytes. */
static void test_wide_ids(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    open_batch(&batch, "labels=positive variables=40000", RULES, "r(a,d)");
    assert_int_equal(batch.spec->agent[0].dtype, RM_ENV_I32);
    const int32_t(*obs)[10][3] = rm_test_batch_obs(&batch, 0, 0);
    assert_int_equal(obs[1][1][1], 5);
    assert_int_equal(obs[2][1][0], 3);
    assert_int_equal(obs[4][0][0], 0);
    rm_test_batch_close(&batch);
}

static void test_shown(void **unused)
{
    (void)unused;
    char text[512];
    struct rm_test_batch batch;
    open_batch(&batch, "labels=positive", RULES, "s(d,a)");
    const int bytes = batch.world.ops->show_text(batch.env, 0, text, sizeof text);
    assert_int_equal(bytes, strlen(text));
    assert_string_equal(text, "true query after 0 steps: s(d,a)\n"
                              "goals: r(a,d)\n"
                              "    0: p(a,V1) q(V1,d)\n"
                              "    1: p(a,V1) r(V1,d)\n"
                              "    2: Endf\n");
    assert_int_equal(batch.world.ops->show_text(batch.env, 0, text, 20), bytes);
    assert_string_equal(text, "true query after 0 ");
    rm_test_batch_close(&batch);
}

/* States of other worlds, or damaged ones, are refused. */
static void test_damaged_states(void **unused)
{
    (void)unused;
    static struct rm_prover_world good, bad;
    struct rm_test_batch batch;
    open_batch(&batch, "labels=positive", RULES, "r(a,d)");
    assert_int_equal(batch.world.ops->state_size(batch.env), sizeof good);
    batch.world.ops->save_state(batch.env, &good);
    for (int i = 0; i < 8; i++) {
        bad = good;
        if (i == 0)
            bad.episode.successors = 21;
        else if (i == 1)
            bad.episode.size[1] = 10;
        else if (i == 2)
            bad.episode.successor[0][1] = rm_prover_atom_of(10, 1, 1);
        else if (i == 3)
            bad.episode.visits = RM_PROVER_VISITS;
        else if (i == 4)
            bad.episode.shown.atom[0] = rm_prover_atom_of(1, 600, 1);
        else if (i == 5)
            bad.episode.shown.count = RM_PROVER_WIDE + 1;
        else if (i == 6)
            bad.episode.depth = 21;
        else
            bad.episode.size[0] = 0;
        assert_true(batch.world.ops->load_state(batch.env, &bad) < 0);
    }
    assert_int_equal(batch.world.ops->load_state(batch.env, &good), 0);
    rm_test_batch_close(&batch);
}

/* Candidates to rank: the query, then different corruptions of one side each, none of them known;
 * where there are no more, the query again. Four constants: of six pairs of w with b as its tail
 * only w(a,b) is a query, so heads are b, c and d. */
static void test_candidates(void **unused)
{
    (void)unused;
    enum { CORRUPTIONS = 5 };
    struct rm_prover_kb *kb =
        rm_test_prover_kb("p(a,b).\np(c,d).\n", "w(A,B) :- p(A,B).\n", "w(a,b)\nw(c,d)\n");
    const struct rm_prover_asking asking = {.kb = kb};
    const rm_prover_atom query = kb->split[RM_PROVER_TRAIN].query[0];
    for (uint64_t seed = 0; seed < 20; seed++) {
        rm_prover_atom seen[1 + 2 * CORRUPTIONS];
        uint32_t there[2] = {0};
        for (uint32_t c = 0; c <= 2 * CORRUPTIONS; c++) {
            const struct rm_prover_question q =
                rm_prover_candidate(&asking, seed, 0, c, CORRUPTIONS);
            const bool tail = c > CORRUPTIONS;
            seen[c] = q.query;
            assert_int_equal(q.label, q.query == query);
            if (q.label)
                continue;
            assert_false(rm_prover_is_known(kb, q.query));
            assert_int_equal(rm_prover_pred(q.query), rm_prover_pred(query));
            assert_true(tail ? rm_prover_first(q.query) == rm_prover_first(query)
                             : rm_prover_second(q.query) == rm_prover_second(query));
            for (uint32_t before = 0; before < c; before++)
                assert_true(seen[before] != q.query);
            there[tail]++;
        }
        assert_true(seen[0] == query);
        assert_int_equal(there[0], 3);
        assert_int_equal(there[1], 3);
    }
    rm_prover_kb_close(kb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fact),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_following),
        cmocka_unit_test(test_giving_in),
        cmocka_unit_test(test_following_at_the_start),
        cmocka_unit_test(test_visited_states),
        cmocka_unit_test(test_ground_goal),
        cmocka_unit_test(test_dead_end),
        cmocka_unit_test(test_many_successors),
        cmocka_unit_test(test_short_states_first),
        cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_proof_in_the_last_step),
        cmocka_unit_test(test_following_ends),
        cmocka_unit_test(test_giving_up_truncates),
        cmocka_unit_test(test_order_of_goals),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_long_states),
        cmocka_unit_test(test_variables_end),
        cmocka_unit_test(test_observation),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_masked_action),
        cmocka_unit_test(test_cut_episode),
        cmocka_unit_test(test_wide_ids),
        cmocka_unit_test(test_shown),
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_damaged_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
