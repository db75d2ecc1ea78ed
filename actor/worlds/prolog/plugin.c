/* plugin: worlds in Prolog, stepped by SWI-Prolog's library; what ringmaster-prolog.so exports is
 * one world of actor/env.h, which actor/worlds/bridges/prolog.h opens. host.pl is its Prolog side.
 *
 * A batch has an engine of its own. Between calls the host keeps each world's state with the list
 * of its actions as a recorded term. An action that goes wrong (a goal fails, throws, takes too
 * many inferences or returns what it should not) truncates the episode, with an observation that is
 * void; the goal is then played again, slowly, to find the line. A saved state is an episode's
 * number and its actions: the world is asked for them once more. */
#include "actor/env.h"
#include "actor/worlds/prolog/plugin.h"
#include "shm/base/draw.h"
#include "shm/base/severity.h"

#include <SWI-Prolog.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MODULE_TEXT = 128,
    WHY_TEXT = 900,
    SAVED_STEPS = 65536 /* of the longest episodes that a saved state can hold */
};

#define LAST (RM_ENV_TERMINATED | RM_ENV_TRUNCATED)

/* host.pl */
extern const char _binary_host_pl_start[], _binary_host_pl_end[];

struct world {
    record_t turn; /* State-Actions; 0: the episode has ended, or none has begun */
    uint64_t episode;
    uint32_t step, actions;
    uint32_t last; /* flags of the row that ended the episode, else 0 */
    bool failed;
    int32_t *played; /* [max_steps], NULL: too many */
};

/* A world in a saved state; its actions follow, as many as an episode has at most. */
struct saved {
    uint64_t episode;
    uint32_t step, last;
};

struct rm_env {
    struct rm_env_spec spec;
    struct rm_env_agent agent;
    struct rm_env_observation *observation;
    char (*names)[MODULE_TEXT]; /* [observations] */
    char file[PATH_MAX], module[MODULE_TEXT], name[MODULE_TEXT];
    uint32_t numbers; /* of all observations */
    uint64_t seed, first_world, max_inferences, errors, max_errors;
    uint32_t worlds;
    struct world *world;
    PL_engine_t engine, callers;
    predicate_t begin, turn;
    char why[WHY_TEXT]; /* what was wrong with what a goal returned; "": the goal itself was */
    char error[WHY_TEXT + 320];
};

static struct {
    bool done;
    functor_t pair, result;
    atom_t running, terminated, truncated, exceeded;
    predicate_t load, why, show;
} prolog;

/* --- the process ----------------------------------------------------------------------------- */

/* The text of a term in `text`. */
static void text_of(term_t t, char *text, size_t size)
{
    char *s;
    size_t n;
    if (!PL_get_nchars(t, &n, &s, CVT_ALL | CVT_WRITE | REP_UTF8 | BUF_DISCARDABLE))
        n = 0, s = "";
    snprintf(text, size, "%.*s", (int)n, s);
}

/* The message of an exception: refused(Text), or any. */
static void exception_text(term_t exception, char *text, size_t size)
{
    term_t argument = PL_new_term_ref();
    if (PL_is_functor(exception, PL_new_functor(PL_new_atom("refused"), 1)) &&
        PL_get_arg(1, exception, argument))
        text_of(argument, text, size);
    else
        text_of(exception, text, size);
}

/* Calls once, bindings stay. 1; 0: it failed, or threw `text`. */
static int call(predicate_t predicate, term_t arguments, char *text, size_t size)
{
    /* Exceptions that are not hidden from debuggers are shown to the host's hook. */
    const int hidden = predicate == prolog.why ? 0 : PL_Q_NODEBUG;
    const qid_t query = PL_open_query(NULL, hidden | PL_Q_CATCH_EXCEPTION, predicate, arguments);
    const int rc = PL_next_solution(query);
    const term_t exception = rc ? 0 : PL_exception(query);
    if (text && !rc) {
        if (exception)
            exception_text(exception, text, size);
        else
            snprintf(text, size, "a goal of the host failed");
    }
    PL_cut_query(query);
    return rc;
}

/* Loads host.pl from memory. */
static int load_host(char *error, size_t size)
{
    const fid_t frame = PL_open_foreign_frame();
    const term_t text = PL_new_term_refs(2);
    const size_t bytes = (uintptr_t)_binary_host_pl_end - (uintptr_t)_binary_host_pl_start;
    int rc = PL_put_string_nchars(text, bytes, _binary_host_pl_start) &&
             call(PL_predicate("open_string", 2, "system"), text, error, size);
    if (rc) {
        const term_t load = PL_new_term_refs(2), options = load + 1;
        rc = PL_put_atom_chars(load, "ringmaster") &&
             PL_unify_term(options, PL_LIST, 2, PL_FUNCTOR_CHARS, "stream", 1, PL_TERM, text + 1,
                           PL_FUNCTOR_CHARS, "silent", 1, PL_BOOL, 1) &&
             call(PL_predicate("load_files", 2, "system"), load, error, size);
    }
    PL_discard_foreign_frame(frame);
    return rc;
}

/* Once in a process. */
static int start(char *error, size_t size)
{
    static char *arguments[] = {"ringmaster", "-q", "-f", "none", "--no-signals", "--no-tty", NULL};
    if (prolog.done)
        return 1;
    if (!PL_initialise(6, arguments)) {
        snprintf(error, size, "SWI-Prolog cannot start; reinstall the package swi-prolog-core");
        return 0;
    }
    /* Libraries of SWI-Prolog that are in C look for its functions among all that is loaded. */
    int (*function)(int, char **) = PL_initialise;
    Dl_info own;
    if (dladdr(*(void **)&function, &own)) {
        static void *shared; /* stays */
        shared = dlopen(own.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
        if (!shared)
            fprintf(stderr, RM_SEVERITY_WARNING "libraries of SWI-Prolog in C may not load: %s\n",
                    dlerror());
    }
    PL_set_prolog_flag("gc_thread", PL_BOOL, 0);
    PL_set_prolog_flag("debug_on_error", PL_BOOL, 0);
    PL_set_prolog_flag("report_error", PL_BOOL, 0);
    PL_set_prolog_flag("encoding", PL_ATOM, "utf8");
    prolog.pair = PL_new_functor(PL_new_atom("-"), 2);
    prolog.result = PL_new_functor(PL_new_atom("result"), 2);
    prolog.running = PL_new_atom("running");
    prolog.terminated = PL_new_atom("terminated");
    prolog.truncated = PL_new_atom("truncated");
    prolog.exceeded = PL_new_atom("inference_limit_exceeded");
    if (!load_host(error, size))
        return 0;
    prolog.load = PL_predicate("load_world", 6, "ringmaster");
    prolog.why = PL_predicate("why", 5, "ringmaster");
    prolog.show = PL_predicate("show", 2, "ringmaster");
    return prolog.done = true;
}

static void enter(struct rm_env *env)
{
    PL_set_engine(env->engine, &env->callers);
}

static void leave(struct rm_env *env)
{
    PL_set_engine(env->callers, NULL);
}

/* --- what a goal returned -------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool complain(struct rm_env *env, const char *format,
                                                           ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(env->why, sizeof env->why, format, args);
    va_end(args);
    return false;
}

static bool wrong_number(struct rm_env *env, term_t number, const char *type, uint32_t o,
                         uint32_t place)
{
    char text[80];
    text_of(number, text, sizeof text);
    return complain(env, "observation/2: number %u of %s is %s, must be %s", place, env->names[o],
                    text, type);
}

/* A flat list of `count` numbers. */
static bool take_numbers(struct rm_env *env, uint32_t o, term_t list, term_t head, uint32_t *out)
{
    const struct rm_env_observation *of = &env->observation[o];
    uint32_t count = 1, i = 0;
    for (uint32_t d = 0; d < of->dims; d++)
        count *= of->shape[d];
    if (of->dtype == RM_ENV_I32) {
        for (; i < count && PL_get_list(list, head, list); i++)
            if (!PL_get_integer(head, (int *)&out[i]))
                return wrong_number(env, head, "an int32", o, i + 1);
    } else {
        for (; i < count && PL_get_list(list, head, list); i++) {
            double value;
            if (!PL_get_float(head, &value))
                return wrong_number(env, head, "a number", o, i + 1);
            const float narrow = (float)value;
            memcpy(&out[i], &narrow, sizeof narrow);
        }
    }
    if (i == count && PL_get_nil(list))
        return true;
    size_t more = 0;
    const term_t tail = PL_new_term_ref();
    if (PL_skip_list(list, tail, &more) != PL_LIST)
        return complain(env, "observation/2: %s must be a list of numbers", env->names[o]);
    return complain(env,
                    "observation/2: %s has %zu numbers, must have %u, the product of its shape",
                    env->names[o], i + more, count);
}

static bool take_observation(struct rm_env *env, term_t lists, void *out)
{
    const term_t tail = PL_new_term_refs(3), list = tail + 1, head = tail + 2;
    uint32_t *at = out;
    if (!PL_put_term(tail, lists))
        return complain(env, "no memory");
    for (uint32_t o = 0; o < env->agent.observations; o++) {
        const struct rm_env_observation *of = &env->observation[o];
        uint32_t count = 1;
        for (uint32_t d = 0; d < of->dims; d++)
            count *= of->shape[d];
        if (!PL_get_list(tail, list, tail))
            return complain(env, "observation/2: has no list for %s: one for each obs of env_spec",
                            env->names[o]);
        if (!take_numbers(env, o, list, head, at))
            return false;
        at += count;
    }
    return PL_get_nil(tail) ||
           complain(env, "observation/2: more lists than the %u obs of env_spec",
                    env->agent.observations);
}

/* State-Actions is kept, and how many actions there are. */
static bool keep(struct rm_env *env, struct world *world, term_t state, term_t actions)
{
    const term_t pair = PL_new_term_refs(2), tail = pair + 1;
    size_t count = 0;
    if (PL_skip_list(actions, tail, &count) != PL_LIST)
        return complain(env, "actions/2: the actions must be a list");
    if (count < 1 || count > env->agent.actions)
        return complain(env, "actions/2: a list of %zu actions, must be 1 to %u (actions(%u))",
                        count, env->agent.actions, env->agent.actions);
    const record_t turn =
        PL_cons_functor(pair, prolog.pair, state, actions) ? PL_record(pair) : (record_t)0;
    if (!turn)
        return complain(env,
                        "the state cannot be kept: it has attributed variables, or is too large");
    if (world->turn)
        PL_erase(world->turn);
    world->turn = turn;
    world->actions = (uint32_t)count;
    return true;
}

static void drop(struct world *world)
{
    if (world->turn)
        PL_erase(world->turn);
    world->turn = 0;
    world->actions = 1;
}

/* --- what went wrong ------------------------------------------------------------------------- */

/* Where the predicate begins: the line of its first clause, else 1. */
static int64_t line_of(const char *module, const char *name, size_t length, int arity)
{
    int64_t line = 1;
    const term_t at = PL_new_term_refs(4);
    if (PL_put_atom_chars(at, module) && PL_put_atom_nchars(at + 1, length, name) &&
        PL_put_int64(at + 2, arity) && call(PL_predicate("at_line", 4, "ringmaster"), at, NULL, 0))
        (void)!PL_get_int64(at + 3, &line);
    return line;
}

/* Why the goal `again` (begin(Rand) or turn(State, Action)) went wrong, with file and line. */
static void find_why(struct rm_env *env, term_t again, char *text, size_t size)
{
    const term_t a = PL_new_term_refs(5);
    char found[WHY_TEXT] = "";
    if (PL_put_atom_chars(a, env->module) &&
        PL_unify_chars(a + 1, PL_ATOM | REP_UTF8, (size_t)-1, env->file) &&
        PL_put_int64(a + 2, (int64_t)env->max_inferences) && PL_put_term(a + 3, again) &&
        call(prolog.why, a, found, sizeof found))
        text_of(a + 4, found, sizeof found);
    if (found[0]) {
        snprintf(text, size, "%s", found);
    } else if (env->why[0]) {
        /* "step/4: ...": the line is the predicate's. */
        const char *slash = strchr(env->why, '/');
        snprintf(text, size, "%s:%" PRId64 ": %s", env->file,
                 slash ? line_of(env->module, env->why, (size_t)(slash - env->why), atoi(slash + 1))
                       : 1,
                 env->why);
    } else {
        snprintf(text, size,
                 "%s: a goal failed, but succeeded when it was repeated: it depends on more than "
                 "its arguments",
                 env->file);
    }
}

/* Counts and prints an error. false: there were too many. */
static bool report_error(struct rm_env *env, uint32_t w, const int32_t *action, term_t again)
{
    const struct world *world = &env->world[w];
    char why[WHY_TEXT], chosen[32] = "";
    find_why(env, again, why, sizeof why);
    if (action)
        snprintf(chosen, sizeof chosen, ", action %d", *action);
    fprintf(stderr,
            RM_SEVERITY_ERROR "world %" PRIu64 " (%s), seed %" PRIu64 ", episode %" PRIu64
                              ", step %u%s: %s\n",
            env->first_world + w, env->spec.name, env->seed, world->episode, world->step, chosen,
            why);
    if (++env->errors <= env->max_errors)
        return true;
    /* File and line first: the last words of a process are cut off behind 255 characters. */
    snprintf(env->error, sizeof env->error,
             "%s (%" PRIu64 " errors, more than world.options.max_errors)", why, env->errors);
    return false;
}

/* --- episodes -------------------------------------------------------------------------------- */

static uint8_t *row(const struct rm_env_buffers *out, uint32_t w)
{
    return (uint8_t *)out->obs + (ptrdiff_t)w * out->obs_stride;
}

/* The only random number of an episode: 62 bits. */
static int64_t rand_of(const struct rm_env *env, uint32_t w)
{
    struct rm_rng rng;
    rm_draw_world(&rng, env->seed, env->first_world + w, env->world[w].episode);
    const uint64_t high = rm_draw_u32(&rng);
    return (int64_t)((high << 32 | rm_draw_u32(&rng)) >> 2);
}

/* Did the goals of a call succeed within their inferences? */
static bool went_well(predicate_t predicate, term_t arguments, term_t outcome)
{
    atom_t how;
    return call(predicate, arguments, NULL, 0) &&
           !(PL_get_atom(outcome, &how) && how == prolog.exceeded);
}

/* Begins the world's episode. An episode that cannot begin is an error, and the next one begins
 * instead. 1; 0: too many errors. */
static int begin(struct rm_env *env, uint32_t w, void *obs)
{
    struct world *world = &env->world[w];
    world->last = world->step = 0;
    world->failed = false;
    for (;; world->episode++) {
        const fid_t frame = PL_open_foreign_frame();
        const term_t a = PL_new_term_refs(5), again = PL_new_term_ref();
        int told = 1;
        env->why[0] = '\0';
        const bool well = PL_put_int64(a, rand_of(env, w)) && went_well(env->begin, a, a + 4) &&
                          keep(env, world, a + 1, a + 2) && take_observation(env, a + 3, obs);
        if (!well)
            told = PL_put_int64(a, rand_of(env, w)) &&
                   PL_cons_functor(again, PL_new_functor(PL_new_atom("begin"), 1), a) &&
                   report_error(env, w, NULL, again);
        PL_discard_foreign_frame(frame);
        if (well || !told)
            return well;
    }
}

/* The `action`-th of the list, from 0. */
static bool pick(term_t actions, int32_t action, term_t picked)
{
    const term_t tail = PL_new_term_ref();
    bool there = PL_put_term(tail, actions);
    for (int32_t i = 0; there && i <= action; i++)
        there = PL_get_list(tail, picked, tail);
    return there;
}

/* Reads result(Reward, Status). */
static bool take_result(struct rm_env *env, term_t result, float *reward, uint32_t *flags)
{
    const term_t argument = PL_new_term_ref();
    double value = 0;
    atom_t status = 0;
    char text[80];
    if (!PL_is_functor(result, prolog.result)) {
        text_of(result, text, sizeof text);
        return complain(env, "step/4: the last argument is %s, must be result(Reward, Status)",
                        text);
    }
    if (!PL_get_arg(1, result, argument) || !PL_get_float(argument, &value) || !isfinite(value)) {
        text_of(argument, text, sizeof text);
        return complain(env, "step/4: the reward is %s, must be a number", text);
    }
    *reward = (float)value;
    if (PL_get_arg(2, result, argument) && PL_get_atom(argument, &status) &&
        (status == prolog.running || status == prolog.terminated || status == prolog.truncated)) {
        *flags = status == prolog.running      ? 0
                 : status == prolog.terminated ? RM_ENV_TERMINATED
                                               : RM_ENV_TRUNCATED;
        return true;
    }
    text_of(argument, text, sizeof text);
    return complain(env, "step/4: the status is %s, must be running, terminated or truncated",
                    text);
}

/* A step of one world. 1, 0: too many errors, -1: no such action. */
static int play(struct rm_env *env, uint32_t w, int32_t action, void *obs, float *reward)
{
    struct world *world = &env->world[w];
    if (action < 0 || (uint32_t)action >= world->actions) {
        snprintf(env->error, sizeof env->error, "world %" PRIu64 ": action %d, must be below %u",
                 env->first_world + w, action, world->actions);
        return -1;
    }
    const fid_t frame = PL_open_foreign_frame();
    const term_t a = PL_new_term_refs(7), pair = PL_new_term_refs(3), list = pair + 1,
                 again = pair + 2;
    uint32_t flags = 0;
    int told = 1;
    env->why[0] = '\0';
    bool well = PL_recorded(world->turn, pair) && PL_get_arg(1, pair, a) &&
                PL_get_arg(2, pair, list) && pick(list, action, a + 1) &&
                went_well(env->turn, a, a + 6) && take_result(env, a + 3, reward, &flags) &&
                take_observation(env, a + 5, obs);
    world->step++;
    if (well && !flags && world->step >= env->spec.max_steps)
        flags = RM_ENV_TRUNCATED;
    if (well && !flags)
        well = keep(env, world, a + 2, a + 4);
    if (!well) {
        /* Bindings of what went wrong are undone. */
        told = PL_recorded(world->turn, pair) && PL_get_arg(1, pair, a) &&
               PL_get_arg(2, pair, list) && pick(list, action, a + 1) &&
               PL_cons_functor(again, PL_new_functor(PL_new_atom("turn"), 2), a, a + 1) &&
               report_error(env, w, &action, again);
        memset(obs, 0, sizeof(uint32_t) * env->numbers);
        flags = RM_ENV_TRUNCATED | RM_ENV_VOID;
        *reward = 0;
    }
    PL_discard_foreign_frame(frame);
    if (world->played)
        world->played[world->step - 1] = action;
    world->failed = !well;
    world->last = flags;
    if (flags)
        drop(world);
    return told;
}

static void write_row(const struct rm_env *env, uint32_t w, const struct rm_env_buffers *out,
                      float reward, uint32_t flags)
{
    const struct world *world = &env->world[w];
    uint8_t *mask = out->mask + (ptrdiff_t)w * out->mask_stride;
    out->reward[w] = reward;
    out->flags[w] = (uint8_t)flags;
    memset(mask, 1, world->actions);
    memset(mask + world->actions, 0, env->agent.actions - world->actions);
    if (flags & LAST && out->figures)
        out->figures[w] = world->failed;
}

static int reset_env(struct rm_env *env, const struct rm_env_buffers *out)
{
    int rc = 1;
    enter(env);
    for (uint32_t w = 0; rc > 0 && w < env->worlds; w++) {
        env->world[w].episode = 0;
        if ((rc = begin(env, w, row(out, w))) > 0)
            write_row(env, w, out, 0, RM_ENV_FIRST);
    }
    leave(env);
    return rc > 0 ? 0 : -EPROTO;
}

static int step_env(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                    const struct rm_env_buffers *out)
{
    int rc = 1;
    (void)phase;
    enter(env);
    for (uint32_t w = 0; rc > 0 && w < env->worlds; w++) {
        struct world *world = &env->world[w];
        float reward = 0;
        if (world->last) {
            world->episode++;
            if ((rc = begin(env, w, row(out, w))) > 0)
                write_row(env, w, out, 0, RM_ENV_FIRST);
        } else if ((rc = play(env, w, actions[0][w], row(out, w), &reward)) > 0) {
            write_row(env, w, out, reward, world->last);
        }
    }
    leave(env);
    return rc > 0 ? 0 : rc < 0 ? -EINVAL : -EPROTO;
}

/* --- saved states ---------------------------------------------------------------------------- */

static size_t saved_bytes(const struct rm_env *env)
{
    return sizeof(struct saved) + (env->spec.max_steps * sizeof(int32_t) + 7) / 8 * 8;
}

static size_t state_size(const struct rm_env *env)
{
    return env->spec.max_steps <= SAVED_STEPS ? env->worlds * saved_bytes(env) : 0;
}

static int save_state(const struct rm_env *env, void *state)
{
    memset(state, 0, state_size(env));
    for (uint32_t w = 0; w < env->worlds; w++) {
        const struct world *world = &env->world[w];
        uint8_t *to = (uint8_t *)state + w * saved_bytes(env);
        const struct saved head = {world->episode, world->step, world->last};
        memcpy(to, &head, sizeof head);
        memcpy(to + sizeof head, world->played, world->step * sizeof *world->played);
    }
    return 0;
}

/* Plays a world's actions again. */
static int load_world(struct rm_env *env, uint32_t w, const uint8_t *from, void *obs)
{
    struct world *world = &env->world[w];
    struct saved head;
    float reward;
    memcpy(&head, from, sizeof head);
    if (head.step > env->spec.max_steps || (head.last & ~(uint32_t)(LAST | RM_ENV_VOID)))
        return snprintf(env->error, sizeof env->error, "state of world %u: it is malformed", w),
               -EINVAL;
    world->episode = head.episode;
    int rc = 1;
    if (head.last) {
        drop(world);
        memcpy(world->played, from + sizeof head, head.step * sizeof *world->played);
        world->step = head.step;
        world->last = head.last;
        return 0;
    }
    rc = begin(env, w, obs);
    for (uint32_t i = 0; rc > 0 && !world->last && i < head.step; i++) {
        int32_t action;
        memcpy(&action, from + sizeof head + i * sizeof action, sizeof action);
        rc = play(env, w, action, obs, &reward);
    }
    if (rc <= 0 || world->last || world->episode != head.episode || world->step != head.step) {
        snprintf(env->error, sizeof env->error,
                 "state of world %u: its recorded actions lead to a different episode: %s has "
                 "changed, or depends on more than its arguments",
                 w, env->file);
        return -EINVAL;
    }
    return 0;
}

static int load_state(struct rm_env *env, const void *state)
{
    int rc = 0;
    void *obs = malloc(sizeof(uint32_t) * env->numbers);
    enter(env);
    for (uint32_t w = 0; obs && rc == 0 && w < env->worlds; w++)
        rc = load_world(env, w, (const uint8_t *)state + w * saved_bytes(env), obs);
    leave(env);
    free(obs);
    return obs ? rc : -ENOMEM;
}

/* --- a batch --------------------------------------------------------------------------------- */

static void close_env(struct rm_env *env)
{
    if (!env)
        return;
    for (uint32_t w = 0; env->world && w < env->worlds; w++) {
        drop(&env->world[w]);
        free(env->world[w].played);
    }
    if (env->engine)
        PL_destroy_engine(env->engine);
    free(env->world);
    free(env->observation);
    free(env->names);
    free(env);
}

static const struct rm_env_spec *describe(const struct rm_env *env)
{
    return &env->spec;
}

static const char *last_error(const struct rm_env *env)
{
    return env->error;
}

static bool put_number(term_t t, double value)
{
    return value == trunc(value) && fabs(value) < 9e15 ? PL_put_int64(t, (int64_t)value)
                                                       : PL_put_float(t, value);
}

static bool put_atom(term_t t, const char *text)
{
    return PL_put_variable(t) && PL_unify_chars(t, PL_ATOM | REP_UTF8, (size_t)-1, text);
}

/* Key-Value of an option. */
static bool put_option(term_t t, const struct rm_env_option *option)
{
    const term_t key = PL_new_term_refs(3), value = key + 1, one = key + 2;
    bool rc = put_atom(key, option->key);
    if (option->values || option->texts) {
        PL_put_nil(value);
        for (uint32_t i = option->count; rc && i-- > 0;)
            rc = (option->values ? put_number(one, option->values[i])
                                 : put_atom(one, option->texts[i])) &&
                 PL_cons_list(value, one, value);
    } else {
        rc =
            rc && (option->text ? put_atom(value, option->text) : put_number(value, option->value));
    }
    return rc && PL_cons_functor(t, prolog.pair, key, value);
}

static bool get_name(term_t compound, int place, char *text, size_t size)
{
    const term_t argument = PL_new_term_ref();
    if (!PL_get_arg(place, compound, argument))
        return false;
    text_of(argument, text, size);
    return true;
}

/* obs(Name, Type, Shape, Low, High), which the host has looked at. */
static bool take_obs(struct rm_env *env, uint32_t o, term_t obs)
{
    struct rm_env_observation *of = &env->observation[o];
    const term_t argument = PL_new_term_refs(2), head = argument + 1;
    char type[16];
    int64_t extent;
    uint64_t count = 1;
    if (!get_name(obs, 1, env->names[o], MODULE_TEXT) || !get_name(obs, 2, type, sizeof type) ||
        !PL_get_arg(3, obs, argument))
        return false;
    of->name = env->names[o];
    of->dtype = type[0] == 'i' ? RM_ENV_I32 : RM_ENV_F32;
    while (of->dims < RM_ENV_MAX_DIMS && PL_get_list(argument, head, argument)) {
        if (!PL_get_int64(head, &extent) || extent > 1 << 24)
            return false;
        of->shape[of->dims++] = (uint32_t)extent;
        count *= (uint64_t)extent;
        if (count > 1 << 24)
            return false;
    }
    env->numbers += (uint32_t)count;
    return PL_get_arg(4, obs, argument) && PL_get_float(argument, &of->low) &&
           PL_get_arg(5, obs, argument) && PL_get_float(argument, &of->high);
}

/* spec(Actions, MaxSteps, Observations) */
static bool take_spec(struct rm_env *env, term_t spec, char *error, size_t size)
{
    const term_t list = PL_new_term_refs(3), head = list + 1, tail = list + 2;
    int64_t actions, steps;
    size_t count = 0;
    if (!PL_get_arg(1, spec, list) || !PL_get_int64(list, &actions) || !PL_get_arg(2, spec, list) ||
        !PL_get_int64(list, &steps) || !PL_get_arg(3, spec, list) ||
        PL_skip_list(list, tail, &count) != PL_LIST)
        return false;
    if (count > RM_ENV_MAX_OBSERVATIONS) {
        snprintf(error, size, "%s:%" PRId64 ": env_spec/1 has %zu obs, must be at most %d",
                 env->file, line_of(env->module, "env_spec", strlen("env_spec"), 1), count,
                 RM_ENV_MAX_OBSERVATIONS);
        return false;
    }
    env->observation = calloc(count, sizeof *env->observation);
    env->names = calloc(count, sizeof *env->names);
    if (!env->observation || !env->names)
        return false;
    for (uint32_t o = 0; o < count; o++)
        if (!PL_get_list(list, head, list) || !take_obs(env, o, head)) {
            snprintf(error, size,
                     "%s:%" PRId64 ": env_spec/1: obs %u has a shape of more than 2^24 numbers",
                     env->file, line_of(env->module, "env_spec", strlen("env_spec"), 1), o + 1);
            return false;
        }
    env->agent.actions = (uint32_t)actions;
    env->agent.observations = (uint32_t)count;
    env->spec.max_steps = (uint32_t)steps;
    return true;
}

/* Options that the host takes for itself, of any world. */
static const struct rm_env_option_doc own_options[] = {
    {.key = "max_inferences",
     .fallback = 1000000,
     .low = 100,
     .high = 1e12,
     .doc = "inferences that a step may take, with its actions and its observation",
     .type = RM_ENV_WHOLE},
    {.key = "max_errors",
     .fallback = 100,
     .high = 1e9,
     .doc = "steps of an actor that may go wrong; one more ends the run",
     .type = RM_ENV_WHOLE},
    {.key = NULL},
};

static const struct rm_env_option_doc *find_own(const char *key)
{
    const struct rm_env_option_doc *doc = own_options;
    while (doc->key && strcmp(doc->key, key) != 0)
        doc++;
    return doc->key ? doc : NULL;
}

static const struct rm_env_option *given(const struct rm_env_config *config, const char *key)
{
    for (uint32_t i = 0; i < config->option_count; i++)
        if (strcmp(config->options[i].key, key) == 0)
            return &config->options[i];
    return NULL;
}

static bool own_number(const struct rm_env_config *config, const char *key, uint64_t *number,
                       char *error, size_t size)
{
    const struct rm_env_option_doc *doc = find_own(key);
    const struct rm_env_option *option = given(config, key);
    const double value = !option                          ? doc->fallback
                         : option->text || option->values ? NAN
                                                          : option->value;
    *number = (uint64_t)value;
    if (value >= doc->low && value <= doc->high && value == trunc(value))
        return true;
    snprintf(error, size, "world.options.%s must be a whole number, %.0f to %.0f: %s", key,
             doc->low, doc->high, doc->doc);
    return false;
}

/* Loads the file and takes what it says of itself. */
static bool load(struct rm_env *env, const struct rm_env_config *config, char *error, size_t size)
{
    const term_t a = PL_new_term_refs(6), one = PL_new_term_ref();
    char host[2 * MODULE_TEXT];
    bool rc = put_atom(a, env->file);
    PL_put_nil(a + 1);
    for (uint32_t i = config->option_count; rc && i-- > 0;)
        if (strcmp(config->options[i].key, RM_PROLOG_FILE) != 0 &&
            !find_own(config->options[i].key))
            rc = put_option(one, &config->options[i]) && PL_cons_list(a + 1, one, a + 1);
    rc = rc && PL_put_int64(a + 2, (int64_t)env->max_inferences);
    if (!rc || !call(prolog.load, a, error, size))
        return false;
    text_of(a + 3, env->module, sizeof env->module);
    if (!take_spec(env, a + 5, error, size))
        return false;
    text_of(a + 4, host, sizeof host);
    /* toy#2 is the module toy once more, with other options. */
    snprintf(env->name, sizeof env->name, "%.*s", (int)strcspn(env->module, "#"), env->module);
    env->begin = PL_predicate("begin", 5, host);
    env->turn = PL_predicate("turn", 7, host);
    return true;
}

static const struct rm_env_figure figures[] = {
    {"error", "1: the episode was cut because a goal went wrong", NULL}};

static void fill_spec(struct rm_env *env)
{
    env->agent.name = "agent_0";
    env->agent.has_mask = 1;
    env->agent.observation = env->observation;
    env->spec = (struct rm_env_spec){
        .abi_version = RM_ENV_ABI_VERSION,
        .struct_size = sizeof(struct rm_env_spec),
        .name = env->name,
        .doc = "a world in Prolog",
        .agents = 1,
        .phases = 1,
        .agent = &env->agent,
        .max_steps = env->spec.max_steps,
        .score_low = NAN,
        .score_high = NAN,
        .score_random = NAN,
        .score_solved = NAN,
        .figures = 1,
        .figure = figures,
    };
}

static bool make_worlds(struct rm_env *env)
{
    env->world = calloc(env->worlds, sizeof *env->world);
    for (uint32_t w = 0; env->world && w < env->worlds; w++) {
        env->world[w].actions = 1;
        if (env->spec.max_steps <= SAVED_STEPS &&
            !(env->world[w].played = calloc(env->spec.max_steps, sizeof(int32_t))))
            return false;
    }
    return env->world != NULL;
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t size)
{
    const struct rm_env_option *file = given(config, RM_PROLOG_FILE);
    struct rm_env *env = file && start(error, size) ? calloc(1, sizeof *env) : NULL;
    if (!file)
        snprintf(error, size, "a Prolog world needs world.prolog, the path of its file");
    if (!env)
        return NULL;
    snprintf(env->file, sizeof env->file, "%s", file->text);
    env->seed = config->seed;
    env->first_world = config->first_world;
    env->worlds = config->worlds;
    bool made = own_number(config, "max_inferences", &env->max_inferences, error, size) &&
                own_number(config, "max_errors", &env->max_errors, error, size) &&
                (env->engine = PL_create_engine(NULL));
    if (made) {
        enter(env);
        const fid_t frame = PL_open_foreign_frame();
        made = load(env, config, error, size) && make_worlds(env);
        PL_discard_foreign_frame(frame);
        leave(env);
    }
    if (!made) {
        close_env(env);
        return NULL;
    }
    fill_spec(env);
    return env;
}

static int show_text(const struct rm_env *env, uint32_t w, char *text, size_t size)
{
    struct rm_env *own = (struct rm_env *)env;
    int rc = -EIO;
    if (!env->world[w].turn)
        return snprintf(text, size, "the episode has ended\n");
    enter(own);
    const fid_t frame = PL_open_foreign_frame();
    const term_t a = PL_new_term_refs(2);
    char *shown;
    size_t bytes;
    if (PL_recorded(env->world[w].turn, a) && call(prolog.show, a, own->error, sizeof own->error) &&
        PL_get_nchars(a + 1, &bytes, &shown, CVT_STRING | REP_UTF8 | BUF_DISCARDABLE))
        rc = snprintf(text, size, "%s", shown);
    PL_discard_foreign_frame(frame);
    leave(own);
    return rc;
}

static const struct rm_env_ops ops = {
    .abi_version = RM_ENV_ABI_VERSION,
    .struct_size = sizeof(struct rm_env_ops),
    .name = "prolog",
    .options = own_options,
    .create = create,
    .describe = describe,
    .reset = reset_env,
    .step = step_env,
    .state_size = state_size,
    .save_state = save_state,
    .load_state = load_state,
    .close = close_env,
    .last_error = last_error,
    .show_text = show_text,
};

__attribute__((visibility("default"))) const struct rm_env_ops *rm_env_entry(void);

const struct rm_env_ops *rm_env_entry(void)
{
    return &ops;
}
