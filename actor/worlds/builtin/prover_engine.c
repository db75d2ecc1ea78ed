#include "actor/worlds/builtin/prover_engine.h"

#include <stdlib.h>
#include <string.h>

/* States that a step of resolution gives, one after another in `atom`: `size` atoms from `start`
 * on. */
struct found {
    uint32_t start, size;
};

struct rm_prover_engine {
    const struct rm_prover_kb *kb;
    bool compat;
    uint32_t count, used;
    struct found *found;
    rm_prover_atom *atom;
    rm_prover_atom sorted[RM_PROVER_WIDE]; /* the goals of the step being made */
};

/* A goal has at most the facts and rules of its predicate as successors. */
struct rm_prover_engine *rm_prover_engine_create(const struct rm_prover_kb *kb, bool compat)
{
    size_t most = 1;
    for (uint32_t pred = 1; pred <= kb->predicates; pred++) {
        const size_t facts = rm_prover_find(&kb->all.runs, rm_prover_atom_of(pred, 0, 0)).count;
        const size_t rules = kb->rule_at[pred + 1] - kb->rule_at[pred];
        most = facts + rules > most ? facts + rules : most;
    }
    struct rm_prover_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return NULL;
    engine->kb = kb;
    engine->compat = compat;
    engine->found = malloc(most * sizeof *engine->found);
    engine->atom = malloc(most * RM_PROVER_WIDE * sizeof *engine->atom);
    if (!engine->found || !engine->atom) {
        rm_prover_engine_destroy(engine);
        return NULL;
    }
    return engine;
}

void rm_prover_engine_destroy(struct rm_prover_engine *engine)
{
    if (!engine)
        return;
    free(engine->found);
    free(engine->atom);
    free(engine);
}

/* --- what is found ---------------------------------------------------------------------------- */

static void clear(struct rm_prover_engine *e)
{
    e->count = e->used = 0;
}

/* Where the atoms of one more successor go. */
static rm_prover_atom *room(struct rm_prover_engine *e)
{
    return e->atom + e->used;
}

static void add(struct rm_prover_engine *e, uint32_t size)
{
    e->found[e->count++] = (struct found){.start = e->used, .size = size};
    e->used += size;
}

/* Nothing but this end. */
static void find_only(struct rm_prover_engine *e, uint32_t pred)
{
    clear(e);
    *room(e) = rm_prover_atom_of(pred, 0, 0);
    add(e, 1);
}

static const rm_prover_atom *found_atoms(const struct rm_prover_engine *e, uint32_t i)
{
    return e->atom + e->found[i].start;
}

static bool found_end(const struct rm_prover_engine *e, uint32_t i)
{
    return rm_prover_is_end(e->kb, *found_atoms(e, i));
}

/* --- one step of resolution ------------------------------------------------------------------- */

static uint32_t variables_of(const struct rm_prover_kb *kb, rm_prover_atom atom)
{
    return rm_prover_is_variable(kb, rm_prover_first(atom)) +
           rm_prover_is_variable(kb, rm_prover_second(atom));
}

/* Goals with fewer variables come first; else they keep their order. */
static void sort_goals(const struct rm_prover_kb *kb, const struct rm_prover_goals *goals,
                       rm_prover_atom *sorted)
{
    uint32_t n = 0;
    for (uint32_t variables = 0; variables <= 2; variables++)
        for (uint32_t i = 0; i < goals->count; i++)
            if (variables_of(kb, goals->atom[i]) == variables)
                sorted[n++] = goals->atom[i];
}

/* At most two variables of a goal stand for something else. */
struct binding {
    uint32_t variable[2], value[2];
};

static uint32_t bound(const struct binding *b, uint32_t id)
{
    id = id == b->variable[0] ? b->value[0] : id;
    return id == b->variable[1] ? b->value[1] : id;
}

static rm_prover_atom bound_atom(const struct binding *b, rm_prover_atom atom)
{
    return rm_prover_atom_of(rm_prover_pred(atom), bound(b, rm_prover_first(atom)),
                             bound(b, rm_prover_second(atom)));
}

/* A step being made: the first goal, and the others in their order. */
struct step {
    rm_prover_atom goal, excluded;
    const rm_prover_atom *rest;
    uint32_t rests, next_variable, end_variable;
};

/* A fact that the goal is, once its variables stand for constants. True: it proves all. */
static bool use_fact(struct rm_prover_engine *e, const struct step *s, rm_prover_atom fact)
{
    const struct rm_prover_kb *kb = e->kb;
    const struct binding b = {
        .variable = {rm_prover_first(s->goal), rm_prover_second(s->goal)},
        .value = {rm_prover_first(fact), rm_prover_second(fact)},
    };
    rm_prover_atom *out = room(e);
    uint32_t left = 0;
    for (uint32_t i = 0; i < s->rests; i++) {
        const rm_prover_atom atom = bound_atom(&b, s->rest[i]);
        if (variables_of(kb, atom) != 0 || atom == s->excluded || !rm_prover_is_fact(kb, atom))
            out[left++] = atom;
    }
    if (left == 0)
        return true;
    add(e, left);
    return false;
}

static struct rm_prover_run candidates(const struct rm_prover_kb *kb, rm_prover_atom goal,
                                       const rm_prover_atom **facts)
{
    const uint32_t pred = rm_prover_pred(goal);
    const uint32_t first = rm_prover_first(goal), second = rm_prover_second(goal);
    const bool open = rm_prover_is_variable(kb, first);
    const struct rm_prover_index *index = !open    ? &kb->by_first
                                          : second ? &kb->by_second
                                                   : &kb->all;
    uint64_t key = rm_prover_atom_of(pred, open ? 0 : first, open ? second : 0);
    if (open && rm_prover_is_variable(kb, second)) {
        index = &kb->all;
        key = rm_prover_atom_of(pred, 0, 0);
    }
    *facts = index->fact;
    return rm_prover_find(&index->runs, key);
}

/* The facts that the goal may be, in file order. True: one of them proves all. */
static bool use_facts(struct rm_prover_engine *e, const struct step *s)
{
    const uint32_t first = rm_prover_first(s->goal), second = rm_prover_second(s->goal);
    if (variables_of(e->kb, s->goal) == 0) {
        if (s->goal == s->excluded || !rm_prover_is_fact(e->kb, s->goal))
            return false;
        memcpy(room(e), s->rest, s->rests * sizeof *s->rest);
        if (s->rests)
            add(e, s->rests);
        return s->rests == 0;
    }
    const rm_prover_atom *facts;
    const struct rm_prover_run run = candidates(e->kb, s->goal, &facts);
    for (uint32_t f = run.first; f < run.first + run.count; f++) {
        if (facts[f] == s->excluded ||
            (first == second && rm_prover_first(facts[f]) != rm_prover_second(facts[f])))
            continue;
        if (s->rests == 0 || use_fact(e, s, facts[f]))
            return true;
    }
    return false;
}

/* Makes the rule's head the goal: `own` has what each variable of the rule stands for (0: nothing
 * yet), `b` what variables of the goal do. False: it cannot be. */
static bool unify(const struct rm_prover_engine *e, const struct rm_prover_rule *rule,
                  rm_prover_atom goal, uint32_t *own, struct binding *b)
{
    const uint32_t arg[2] = {rm_prover_first(goal), rm_prover_second(goal)};
    uint32_t bindings = 0;
    for (int i = 0; i < 2; i++) {
        const int32_t pattern = rule->head.arg[i];
        uint32_t *variable = pattern < 0 ? &own[-1 - pattern] : NULL;
        if (e->compat || (variable && !*variable)) { /* compat: constants match anything */
            if (variable)
                *variable = arg[i];
            continue;
        }
        uint32_t mine = bound(b, variable ? *variable : (uint32_t)pattern);
        uint32_t other = bound(b, arg[i]);
        if (mine == other)
            continue;
        if (!rm_prover_is_variable(e->kb, other)) {
            const uint32_t swap = mine;
            mine = other;
            other = swap;
        }
        if (!rm_prover_is_variable(e->kb, other))
            return false;
        b->variable[bindings] = other;
        b->value[bindings++] = mine;
    }
    return true;
}

/* The goal by a rule: its body, then the other goals. */
static void use_rule(struct rm_prover_engine *e, struct step *s, const struct rm_prover_rule *rule)
{
    const struct rm_prover_kb *kb = e->kb;
    uint32_t own[RM_PROVER_RULE_VARIABLES] = {0}, largest = 0;
    struct binding b = {{0, 0}, {0, 0}};
    rm_prover_atom *out = room(e);
    if (!unify(e, rule, s->goal, own, &b))
        return;
    for (uint32_t i = 0; i < s->rests; i++) {
        const rm_prover_atom atom = bound_atom(&b, s->rest[i]);
        const uint32_t first = rm_prover_first(atom), second = rm_prover_second(atom);
        largest = first > largest ? first : largest;
        largest = second > largest ? second : largest;
        out[rule->bodies + i] = atom;
    }
    for (uint32_t i = 0; i < rule->bodies; i++)
        for (int a = 0; a < 2; a++) {
            const int32_t pattern = rule->body[i].arg[a];
            uint32_t *variable = pattern < 0 ? &own[-1 - pattern] : NULL;
            if (variable && *variable) {
                *variable = bound(&b, *variable);
                largest = *variable > largest ? *variable : largest;
            }
        }
    uint32_t next = s->next_variable > largest ? s->next_variable : largest + 1;
    for (uint32_t i = 0; i < rule->bodies; i++) {
        uint32_t arg[2];
        for (int a = 0; a < 2; a++) {
            const int32_t pattern = rule->body[i].arg[a];
            uint32_t *variable = pattern < 0 ? &own[-1 - pattern] : NULL;
            if (variable && !*variable)
                *variable = next++;
            arg[a] = variable ? *variable : (uint32_t)pattern;
        }
        out[i] = rm_prover_atom_of(rule->body[i].pred, arg[0], arg[1]);
    }
    if (next > kb->constants + kb->variables + 1) /* it needs a variable that there is not */
        return;
    s->end_variable = next > s->end_variable ? next : s->end_variable;
    add(e, rule->bodies + s->rests);
}

/* All states that one step gives, in order: by facts, then by rules. */
static void expand(struct rm_prover_engine *e, struct rm_prover_episode *episode,
                   const struct rm_prover_goals *goals)
{
    const struct rm_prover_kb *kb = e->kb;
    sort_goals(kb, goals, e->sorted);
    struct step step = {
        .goal = e->sorted[0],
        .excluded = episode->excluded,
        .rest = e->sorted + 1,
        .rests = goals->count - 1,
        .next_variable = episode->next_variable,
        .end_variable = episode->next_variable,
    };
    clear(e);
    if (use_facts(e, &step)) {
        find_only(e, kb->proved);
        return;
    }
    const uint32_t pred = rm_prover_pred(step.goal);
    for (uint32_t r = kb->rule_at[pred]; r < kb->rule_at[pred + 1]; r++)
        use_rule(e, &step, &kb->rule[r]);
    episode->next_variable = step.end_variable;
    if (e->count == 0)
        find_only(e, kb->failed);
}

/* --- states that were there already ----------------------------------------------------------- */

/* Stands for the set of a state's goals: the same whatever their order, and with repeats. */
static uint64_t key_of(const rm_prover_atom *atom, uint32_t count)
{
    uint64_t key = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = 0;
        while (j < i && atom[j] != atom[i])
            j++;
        key += j == i ? rm_prover_mix(atom[i] * 0x9e3779b97f4a7c15ull) : 0;
    }
    return key;
}

static bool visited(const struct rm_prover_episode *episode, uint64_t key)
{
    for (uint32_t v = 0; v < episode->visits; v++)
        if (episode->visited[v] == key)
            return true;
    return false;
}

static void visit(struct rm_prover_episode *episode, const struct rm_prover_goals *goals)
{
    episode->visited[episode->visits++] = key_of(goals->atom, goals->count);
}

/* Drops states that were visited, and those with too many goals. */
static void drop(struct rm_prover_engine *e, const struct rm_prover_episode *episode)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < e->count; i++)
        if (found_end(e, i) || (e->found[i].size < RM_PROVER_GOALS &&
                                !visited(episode, key_of(found_atoms(e, i), e->found[i].size))))
            e->found[left++] = e->found[i];
    e->count = left;
}

/* --- the states to choose from ---------------------------------------------------------------- */

static void offer(struct rm_prover_episode *episode, const rm_prover_atom *atom, uint32_t size)
{
    memcpy(episode->successor[episode->successors], atom, size * sizeof *atom);
    episode->size[episode->successors++] = (uint8_t)size;
}

static bool is_offered(const struct rm_prover_episode *episode, const rm_prover_atom *atom,
                       uint32_t size)
{
    for (uint32_t i = 0; i < episode->successors; i++)
        if (episode->size[i] == size &&
            memcmp(episode->successor[i], atom, size * sizeof *atom) == 0)
            return true;
    return false;
}

/* Offers what was found, of one size (0: of all). False: not all fits. Exact repeats are offered
 * once, but with compat. */
static bool offer_found(const struct rm_prover_engine *e, struct rm_prover_episode *episode,
                        uint32_t size)
{
    for (uint32_t i = 0; i < e->count; i++) {
        const rm_prover_atom *atom = found_atoms(e, i);
        if ((size && e->found[i].size != size) ||
            (!e->compat && is_offered(episode, atom, e->found[i].size)))
            continue;
        if (episode->successors == RM_PROVER_ACTIONS - 1)
            return false;
        offer(episode, atom, e->found[i].size);
    }
    return true;
}

/* At most ACTIONS - 1 of them, the shortest, and giving in where nothing else ends the episode. */
static void choose(const struct rm_prover_engine *e, struct rm_prover_episode *episode)
{
    const rm_prover_atom give_in = rm_prover_atom_of(e->kb->gave_in, 0, 0);
    episode->successors = 0;
    if (!offer_found(e, episode, 0)) {
        episode->successors = 0;
        for (uint32_t size = 1; size < RM_PROVER_GOALS && offer_found(e, episode, size);)
            size++;
    }
    /* An end is always found alone. */
    if (episode->successors == 0 || !rm_prover_is_end(e->kb, episode->successor[0][0]))
        offer(episode, &give_in, 1);
}

/* What follows from a state: states without a choice are followed. */
static void next(struct rm_prover_engine *e, struct rm_prover_episode *episode,
                 const struct rm_prover_goals *from)
{
    struct rm_prover_goals now = *from;
    episode->gave_up = 0;
    if (rm_prover_is_end(e->kb, from->atom[0])) {
        episode->shown = now;
        episode->successors = 0;
        offer(episode, from->atom, 1);
        return;
    }
    expand(e, episode, &now);
    for (uint32_t n = 1; e->count == 1 && !found_end(e, 0); n++) {
        now.count = e->found[0].size;
        memcpy(now.atom, found_atoms(e, 0), now.count * sizeof now.atom[0]);
        expand(e, episode, &now);
        visit(episode, &now);
        drop(e, episode);
        if (n > RM_PROVER_FOLLOW) {
            episode->gave_up = 1;
            find_only(e, e->kb->failed);
        }
    }
    visit(episode, from);
    drop(e, episode);
    choose(e, episode);
    episode->shown = e->compat ? *from : now;
}

/* --- episodes --------------------------------------------------------------------------------- */

void rm_prover_begin(struct rm_prover_engine *engine, struct rm_prover_episode *episode,
                     rm_prover_atom query, bool label)
{
    const struct rm_prover_goals goals = {.count = 1, .atom = {query}};
    episode->query = query;
    episode->label = label;
    episode->excluded = label ? query : 0;
    episode->depth = episode->proved = episode->visits = 0;
    episode->next_variable = engine->kb->constants + 1;
    visit(episode, &goals);
    next(engine, episode, &goals);
}

int rm_prover_play(struct rm_prover_engine *engine, struct rm_prover_episode *episode,
                   uint32_t action, float *reward)
{
    struct rm_prover_goals goals = {.count = episode->size[action]};
    memcpy(goals.atom, episode->successor[action], goals.count * sizeof goals.atom[0]);
    const bool end = rm_prover_is_end(engine->kb, goals.atom[0]);
    const bool proved = rm_prover_pred(goals.atom[0]) == engine->kb->proved;
    *reward = !end ? 0.0f : proved == (episode->label == 1) ? 1.0f : -1.0f;
    next(engine, episode, &goals);
    episode->depth++;
    const bool late = episode->depth >= RM_PROVER_STEPS || episode->gave_up;
    episode->proved = proved && !(engine->compat && episode->depth >= RM_PROVER_STEPS);
    if (engine->compat)
        return (end || late ? RM_PROVER_TERMINATED : 0) | (late ? RM_PROVER_TRUNCATED : 0);
    return end ? RM_PROVER_TERMINATED : late ? RM_PROVER_TRUNCATED : 0;
}
