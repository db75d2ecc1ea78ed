#include "actor/worlds/bridges/python.h"

#include "actor/worlds/bridges/python_launch.h"
#include "actor/worlds/bridges/python_spec.h"
#include "actor/worlds/watch.h"
#include "actor/worlds/worlds.h"
#include "config/utf8.h"
#include "shm/base/clock.h"
#include "shm/base/float_word.h"
#include "shm/base/rng.h"
#include "shm/base/severity.h"
#include "shm/station.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define LAST           (RM_ENV_TERMINATED | RM_ENV_TRUNCATED)
#define MAKING_TIMES   10 /* as long as a step may take, worlds may take to be made */
#define DEATHS_MAX     64 /* of which times are kept */
#define TRACEBACK_MAX  16384
#define WEIGH_NS       RM_NS_PER_S        /* between looks at a worker's memory */
#define COUNT_NS       (RM_NS_PER_S / 50) /* between looks at its processor time */
#define GROUPS_MOST    RM_WORLD_GROUPS_MAX
#define TIMER_SLACK_NS 1000 /* a step of some worlds takes less than the usual 50 us */
#define ALIGNED(n)     (((n) + 63) & ~(size_t)63)

/* Where an agent's columns are in a worker's memory, from RM_PYTHON_COLUMNS_AT. */
struct columns {
    size_t obs, mask, reward, flags, figures, actions;
};

/* A worker and its share of the worlds. */
struct share {
    struct rm_python_worker worker;
    uint32_t first, count;             /* worlds of the batch */
    uint32_t due[RM_WORLD_GROUPS_MAX]; /* the request that a group waits for */
    bool acts;                         /* `actions` of the columns are of the step that is made */
    struct columns *columns;           /* (agents) */
    size_t seeds, picture, bytes;      /* of the columns, as above; picture: of one world */
    uint64_t weighed_ns;               /* when its worker's memory was looked at last */
    uint64_t counted_ns, cpu_ns;       /* when its processor time was, and what it was */
    bool lost; /* its worker is no more; once no episode is open it is replaced */
};

/* Worlds that are asked together, of one worker or of several. */
struct group {
    struct rm_world_group worlds;
    uint32_t first, end; /* shares */
    bool asked;
};

struct rm_env {
    struct rm_world_config world;
    struct rm_python_launching launching;
    struct rm_python_spec *described;
    const struct rm_env_spec *spec;
    char *said; /* what the first worker said of its world */
    uint64_t seed, first_world;
    uint32_t worlds, shares, groups;
    struct share *share;
    struct group group[RM_WORLD_GROUPS_MAX];
    uint64_t until_ns; /* when the workers that are waited for have to have answered; 0: none is */
    uint8_t *playing;  /* (agents, worlds) 1 from a first row to a last one */
    uint32_t *live;    /* (worlds) agents in play */
    uint64_t *episode; /* (worlds) begun so far */
    uint64_t *step;    /* (worlds) steps of the episode */
    uint32_t *reset_seed; /* (worlds) of the episode that is open */
    uint32_t phase;       /* of the step that is made */
    uint64_t deaths[DEATHS_MAX];
    uint32_t death_count;
    char error[1100];
};

/* --- the place ------------------------------------------------------------------------------- */

static struct {
    uint32_t workers, deaths_max;
    uint64_t recycle_bytes; /* 0: never */
    const char *show;       /* "picture", "text" or NULL */
    double lengthen_by, deadline_s, deaths_window_s;
    struct rm_python_manner manner;
    char directory[PATH_MAX];
} place = {.workers = 1,
           .deaths_max = 5,
           .deadline_s = 60,
           .deaths_window_s = 60,
           .manner = {.confined = true}};

void rm_python_place(const struct rm_experiment *e, const char *directory)
{
    place.workers = e->actor.python_workers;
    place.deaths_max = e->supervisor.deaths_max;
    place.deaths_window_s = e->supervisor.deaths_window_s;
    place.deadline_s = e->actor.step_deadline_s;
    place.recycle_bytes = (uint64_t)e->actor.recycle_mb << 20;
    snprintf(place.directory, sizeof place.directory, "%s", directory ? directory : "");
    place.manner = (struct rm_python_manner){
        .directory = place.directory[0] ? place.directory : NULL,
        .confined = e->actor.sandbox != RM_SANDBOX_OFF,
        .must = e->actor.sandbox == RM_SANDBOX_ON,
        .network = e->actor.network,
        .memory_limit = e->actor.memory_limit,
    };
}

void rm_python_show(bool picture)
{
    place.show = picture ? "picture" : "text";
}

void rm_python_lengthen(const struct rm_experiment *e)
{
    place.lengthen_by = e->debug.lengthen == RM_STATION_WORLD ? e->debug.lengthen_by : 0;
}

static uint64_t deadline(double times)
{
    return rm_now_ns() + (uint64_t)(place.deadline_s * (1 + place.lengthen_by) * times * 1e9);
}

/* --- numbers --------------------------------------------------------------------------------- */

static uint32_t choices_of(const struct rm_env_agent *agent)
{
    return agent->choices > 1 ? agent->choices : agent->actions > 0;
}

static uint32_t words_of(const struct rm_env_agent *agent)
{
    return choices_of(agent) + rm_env_reals(agent);
}

/* reset(seed=) of an episode: of the run's seed, the world's id and the episode, nothing else. */
static uint32_t seed_of(const struct rm_env *env, uint32_t w, uint64_t episode)
{
    struct rm_rng rng =
        rm_rng_at(env->seed, RM_STREAM_WORLD, (uint32_t)(env->first_world + w), episode);
    return rm_rng_u32(&rng) >> 1;
}

static uint8_t *column(const struct share *share, size_t at)
{
    return share->worker.base + RM_PYTHON_COLUMNS_AT + at;
}

/* The worker has the seed of every world's next episode. */
static void offer_seed(struct rm_env *env, struct share *share, uint32_t w)
{
    const uint32_t seed = seed_of(env, w, env->episode[w]);
    memcpy(column(share, share->seeds) + (w - share->first) * sizeof seed, &seed, sizeof seed);
}

/* --- what went wrong ------------------------------------------------------------------------- */

/* "world 3 (CartPole-v1), seed 7, reset seed 1234, episode 2, step 17, action 1" */
static void place_of(const struct rm_env *env, const struct share *share, char *text, size_t size)
{
    uint32_t w = rm_python_head(&share->worker)->world;
    w = share->first + (w < share->count ? w : 0);
    const uint64_t begun = env->episode[w];
    int used = snprintf(text, size,
                        "world %" PRIu64 " (%s), seed %" PRIu64 ", reset seed %u, episode %" PRIu64
                        ", step %" PRIu64,
                        env->first_world + w, env->world.name, env->seed,
                        env->live[w] ? env->reset_seed[w] : seed_of(env, w, begun),
                        env->live[w] ? begun - 1 : begun, env->live[w] ? env->step[w] : 0);
    for (uint32_t a = 0; share->acts && env->live[w] && a < env->spec->agents; a++) {
        const struct rm_env_agent *agent = &env->spec->agent[a];
        if (agent->phase != env->phase || !env->playing[(size_t)a * env->worlds + w])
            continue;
        const uint32_t choices = choices_of(agent), words = words_of(agent);
        for (uint32_t c = 0; c < words && used < (int)size - 32; c++) {
            int32_t word;
            memcpy(&word,
                   column(share, share->columns[a].actions) +
                       ((size_t)(w - share->first) * words + c) * sizeof word,
                   sizeof word);
            used += snprintf(text + used, size - (size_t)used, "%s", c ? " " : ", action ");
            used += c < choices ? snprintf(text + used, size - (size_t)used, "%d", word)
                                : snprintf(text + used, size - (size_t)used, "%g",
                                           (double)rm_float_of_word(word));
        }
    }
}

/* The first line of a text, and what follows it. */
static char *cut_line(char *text)
{
    char *end = strchr(text, '\n');
    if (!end)
        return text + strlen(text);
    *end = '\0';
    return end + 1;
}

/* Prints an error and the lines that explain it. */
static void print_error(const char *what, char *lines)
{
    fprintf(stderr, RM_SEVERITY_ERROR "%s\n", what);
    for (char *rest = NULL, *line = strtok_r(lines, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest))
        fprintf(stderr, RM_SEVERITY_ERROR "  %s\n", line);
}

/* Ends a worker that did not answer as it should (`rc`: of rm_python_worker_await), and says why: a
 * sentence, and what there is to see in lines. */
static void end_worker(struct share *share, int rc, char *sentence, size_t size, char *lines,
                       size_t room)
{
    if (rc == -EREMOTEIO) {
        rm_python_worker_text(&share->worker, lines, room);
        char *rest = cut_line(lines);
        snprintf(sentence, size, "%s", lines);
        memmove(lines, rest, strlen(rest) + 1);
        rm_python_worker_end(&share->worker);
        return;
    }
    if (rc == -ETIMEDOUT)
        rm_python_worker_look(&share->worker);
    const int status = rm_python_worker_kill(&share->worker);
    rm_python_worker_report(&share->worker, lines, room);
    if (rc == -ETIMEDOUT)
        snprintf(sentence, size, "took longer than allowed (actor.step_deadline_s %g)",
                 place.deadline_s);
    else if (WIFSIGNALED(status))
        snprintf(sentence, size, "its process was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(sentence, size, "its process ended with exit code %d", WEXITSTATUS(status));
    rm_python_worker_end(&share->worker);
}

/* Adds what the worker has used since the last look. */
static void count_cpu(struct share *share)
{
    const uint64_t cpu = rm_python_worker_cpu_ns(&share->worker);
    if (cpu > share->cpu_ns) {
        rm_watch_add_world_cpu(cpu - share->cpu_ns);
        share->cpu_ns = cpu;
    }
}

/* A worker is lost while it stepped worlds. Its episodes end void, in the rows that come next. */
static void lose(struct rm_env *env, struct share *share, int rc)
{
    char where[512], sentence[512], what[sizeof where + sizeof sentence + 8];
    static char lines[TRACEBACK_MAX];

    place_of(env, share, where, sizeof where);
    count_cpu(share);
    end_worker(share, rc, sentence, sizeof sentence, lines, sizeof lines);
    snprintf(what, sizeof what, "%s: %s", where, sentence);
    print_error(what, lines);
    snprintf(env->error, sizeof env->error, "%s", what);
    share->lost = true;
}

/* It happens as often as actors may die: no replacement mends it. */
static bool too_often(struct rm_env *env)
{
    const uint64_t now = rm_now_ns(), window = (uint64_t)(place.deaths_window_s * 1e9);
    const uint32_t most = place.deaths_max < DEATHS_MAX ? place.deaths_max : DEATHS_MAX;
    uint32_t recent = 0;
    env->deaths[env->death_count++ % DEATHS_MAX] = now;
    for (uint32_t i = 0; i < DEATHS_MAX && i < env->death_count; i++)
        recent += now - env->deaths[i] < window;
    return recent >= most;
}

/* --- starting -------------------------------------------------------------------------------- */

/* Names of figures that are known, so that no worker looks for them again: of the description, or
 * of what the first worker said. NULL: none are. */
static json_t *known_figures(const struct rm_env *env)
{
    const char *text = env->said ? env->said : env->world.description;
    json_t *all = text ? json_loads(text, 0, NULL) : NULL;
    json_t *figures = json_object_get(all, "figures"), *names = figures ? json_array() : NULL, *one;
    size_t i;
    json_array_foreach(figures, i, one)
    {
        json_t *name = json_object_get(one, "name");
        json_array_append(names, name ? name : one);
    }
    json_decref(all);
    return names;
}

/* What a worker is to make, as JSON. */
static char *order_of(const struct rm_env *env, const struct share *share)
{
    json_t *options = json_loads(env->world.options[0] ? env->world.options : "{}", 0, NULL);
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, env->seed);
    json_t *order = json_pack(
        "{s:s, s:s, s:o, s:i, s:I, s:s, s:I, s:o*, s:s*, s:f}", "python", env->world.python, "name",
        env->world.name, "options", options, "worlds", (int)share->count, "first_world",
        (json_int_t)env->first_world + (json_int_t)share->first, "run_seed", seed, "seed",
        (json_int_t)seed_of(env, share->first, 0), "figures", known_figures(env), "show",
        place.show, "lengthen_by", place.lengthen_by);
    char *text = order ? json_dumps(order, JSON_COMPACT) : NULL;
    json_decref(order);
    return text;
}

static int start(struct rm_env *env, struct share *share, struct rm_error *error)
{
    char *order = order_of(env, share);
    if (!order)
        return rm_fail(error, -ENOMEM, "world.python: no memory for the columns of a worker");
    int rc = strlen(order) >= RM_PYTHON_TEXT_BYTES
                 ? rm_fail(error, -EINVAL, "world.options: too long")
                 : rm_python_worker_start(&share->worker, &env->launching.launch, order, error);
    free(order);
    share->cpu_ns = 0;
    return rc;
}

/* Waits for an answer while worlds are made. Errors: why there are none. */
static int hear_making(struct rm_env *env, struct share *share, struct rm_error *error)
{
    char sentence[768];
    static char lines[TRACEBACK_MAX];
    const int rc =
        rm_python_worker_await(&share->worker, share->worker.asked, deadline(MAKING_TIMES));
    if (rc == 0)
        return 0;
    end_worker(share, rc, sentence, sizeof sentence, lines, sizeof lines);
    if (rc == -EREMOTEIO) {
        fputs(lines, stderr); /* the traceback, for the log */
        return rm_fail(error, -EINVAL, "world.python: \"%s\": %s", env->world.python, sentence);
    }
    lines[strcspn(lines, "\n")] = '\0';
    return rm_fail(error, -EINVAL, "world.python: \"%s\", made by %s: %s%s%s", env->world.python,
                   env->launching.interpreter, sentence, lines[0] ? ": " : "", lines);
}

/* What the worker says of its world is what the first one said. */
static int take_description(struct rm_env *env, struct share *share, struct rm_error *error)
{
    char *text = malloc(RM_PYTHON_TEXT_BYTES + 1);
    int rc = 0;
    if (!text)
        return rm_fail(error, -ENOMEM, "world.python: no memory for a description");
    rm_python_worker_text(&share->worker, text, RM_PYTHON_TEXT_BYTES + 1);
    if (!env->said) {
        rc = rm_python_spec_read(&env->described, env->world.name, text, error);
        if (rc < 0)
            rm_fail_within(error, rc, "world.python: \"%s\"", env->world.python);
        else
            env->spec = rm_python_spec(env->described);
        env->said = text;
        return rc;
    }
    if (strcmp(env->said, text) != 0)
        rc = rm_fail(error, -EINVAL,
                     "world.python: \"%s\": its spaces differ in another process; they must not "
                     "depend on chance or on the process",
                     env->world.python);
    free(text);
    return rc;
}

static size_t picture_bytes(const struct rm_env_spec *spec)
{
    return (size_t)spec->picture_width * spec->picture_height * 3;
}

/* Places for the columns of a share. */
static int lay_out(struct rm_env *env, struct share *share, struct rm_error *error)
{
    const struct rm_env_spec *spec = env->spec;
    const size_t n = share->count;
    size_t at = 0;
    if (!share->columns)
        share->columns = calloc(spec->agents, sizeof *share->columns);
    if (!share->columns)
        return rm_fail(error, -ENOMEM, "world.python: no memory for %zu worlds", n);
    for (uint32_t a = 0; a < spec->agents; a++) {
        const struct rm_env_agent *agent = &spec->agent[a];
        struct columns *c = &share->columns[a];
        c->obs = at;
        at = ALIGNED(at + rm_env_obs_bytes(agent) * n);
        c->mask = at;
        at = ALIGNED(at + (agent->has_mask ? agent->actions * n : 0));
        c->reward = at;
        at = ALIGNED(at + sizeof(float) * n);
        c->flags = at;
        at = ALIGNED(at + n);
        c->figures = at;
        at = ALIGNED(at + sizeof(double) * spec->figures * n);
        c->actions = at;
        at = ALIGNED(at + sizeof(int32_t) * words_of(agent) * n);
    }
    share->seeds = at;
    share->picture = ALIGNED(at + sizeof(uint32_t) * n);
    share->bytes = ALIGNED(share->picture + picture_bytes(spec));
    return 0;
}

static char *layout_text(const struct rm_env *env, const struct share *share)
{
    json_t *agents = json_array();
    for (uint32_t a = 0; a < env->spec->agents; a++) {
        const struct columns *c = &share->columns[a];
        json_array_append_new(
            agents, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "obs", (json_int_t)c->obs, "mask",
                              (json_int_t)c->mask, "reward", (json_int_t)c->reward, "flags",
                              (json_int_t)c->flags, "figures", (json_int_t)c->figures, "actions",
                              (json_int_t)c->actions));
    }
    json_t *all =
        json_pack("{s:o, s:I, s:I, s:I}", "agents", agents, "seeds", (json_int_t)share->seeds,
                  "picture", (json_int_t)share->picture, "bytes", (json_int_t)share->bytes);
    char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return text;
}

static int ask_layout(struct rm_env *env, struct share *share, struct rm_error *error)
{
    int rc = lay_out(env, share, error);
    if (rc == 0)
        rc = rm_python_worker_grow(&share->worker, share->bytes, error);
    for (uint32_t w = 0; rc == 0 && w < share->count; w++)
        offer_seed(env, share, share->first + w);
    char *text = rc == 0 ? layout_text(env, share) : NULL;
    if (rc == 0 && !text)
        rc = rm_fail(error, -ENOMEM, "world.python: no memory for a layout");
    if (rc == 0)
        rm_python_worker_ask(&share->worker,
                             (struct rm_python_request){.command = RM_PYTHON_LAYOUT}, text);
    free(text);
    return rc;
}

/* Starts the workers of all shares that have none, side by side, until their worlds are made. */
static int start_shares(struct rm_env *env, struct rm_error *error)
{
    int rc = 0;
    bool started = false;
    for (uint32_t i = 0; rc == 0 && i < env->shares; i++)
        if (env->share[i].worker.pid == 0)
            rc = start(env, &env->share[i], error), started = true;
    if (!started)
        return 0;
    for (uint32_t i = 0; rc == 0 && i < env->shares; i++) {
        struct share *share = &env->share[i];
        if (share->worker.asked > RM_PYTHON_START)
            continue;
        if ((rc = hear_making(env, share, error)) == 0 &&
            (rc = take_description(env, share, error)) == 0)
            rc = ask_layout(env, share, error);
    }
    for (uint32_t i = 0; rc == 0 && i < env->shares; i++) {
        struct share *share = &env->share[i];
        if (share->worker.asked != RM_PYTHON_LAYOUT)
            continue;
        rc = hear_making(env, share, error);
    }
    return rc;
}

static void close_env(struct rm_env *env)
{
    if (!env)
        return;
    for (uint32_t i = 0; i < env->shares; i++) {
        rm_python_worker_end(&env->share[i].worker);
        free(env->share[i].columns);
    }
    free(env->share);
    free(env->playing);
    free(env->live);
    free(env->episode);
    free(env->step);
    free(env->reset_seed);
    free(env->said);
    rm_python_spec_free(env->described);
    rm_python_launching_free(&env->launching);
    free(env);
}

static int allocate_worlds(struct rm_env *env, struct rm_error *error)
{
    const size_t lanes = (size_t)env->spec->agents * env->worlds;
    env->playing = calloc(lanes, sizeof *env->playing);
    return env->playing ? 0
                        : rm_fail(error, -ENOMEM, "world.python: no memory for %zu lanes", lanes);
}

static int create_shares(struct rm_env *env, struct rm_error *error)
{
    env->shares = place.workers < env->worlds ? place.workers : env->worlds;
    env->share = calloc(env->shares, sizeof *env->share);
    env->live = calloc(env->worlds, sizeof *env->live);
    env->episode = calloc(env->worlds, sizeof *env->episode);
    env->step = calloc(env->worlds, sizeof *env->step);
    env->reset_seed = calloc(env->worlds, sizeof *env->reset_seed);
    if (!env->share || !env->live || !env->episode || !env->step || !env->reset_seed) {
        env->shares = env->share ? env->shares : 0;
        return rm_fail(error, -ENOMEM, "world.python: no memory for %u worlds", env->worlds);
    }
    for (uint32_t i = 0, first = 0; i < env->shares; i++) {
        const uint32_t count = env->worlds / env->shares + (i < env->worlds % env->shares);
        env->share[i] =
            (struct share){.worker = RM_PYTHON_NO_WORKER, .first = first, .count = count};
        first += count;
    }
    return 0;
}

static void create_groups(struct rm_env *env)
{
    const bool apart = rm_python_spec_apart(env->described);
    env->groups = !apart || env->worlds == 1  ? 1
                  : env->shares == 1          ? 2
                  : env->shares < GROUPS_MOST ? env->shares
                                              : GROUPS_MOST;
    for (uint32_t g = 0; g < env->groups; g++) {
        struct group *group = &env->group[g];
        if (env->shares == 1) {
            const uint32_t half = (env->worlds + 1) / 2;
            *group = (struct group){.end = 1, .worlds = {g * half, g ? env->worlds - half : half}};
            if (env->groups == 1)
                group->worlds.worlds = env->worlds;
            continue;
        }
        group->first = env->shares * g / env->groups;
        group->end = env->shares * (g + 1) / env->groups;
        group->worlds.first = env->share[group->first].first;
        for (uint32_t i = group->first; i < group->end; i++)
            group->worlds.worlds += env->share[i].count;
    }
}

/* One line in the log of a run, by who has its first worlds. */
static void tell_versions(const struct rm_env *env)
{
    char versions[256];
    if (!place.directory[0] || env->first_world != 0)
        return;
    snprintf(versions, sizeof versions, "%s", rm_python_spec_versions(env->described));
    rm_utf8_line(versions);
    fprintf(stderr, "%s is stepped by %s: %s\n", env->world.python, env->launching.interpreter,
            versions);
}

int rm_python_create(const struct rm_world_config *config, uint64_t seed, uint64_t first_world,
                     uint32_t worlds, struct rm_env **made, struct rm_error *error)
{
    struct rm_env *env = calloc(1, sizeof *env);
    struct rm_python_manner manner = place.manner;

    *made = NULL;
    if (!env)
        return rm_fail(error, -ENOMEM, "world.python: no memory");
    env->world = *config;
    env->launching.sandbox.rules = -1;
    env->seed = seed;
    env->first_world = first_world;
    env->worlds = worlds;
    manner.interpreter = env->world.interpreter;
    manner.modules = env->world.directory;
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    int rc = create_shares(env, error);
    if (rc == 0)
        rc = rm_python_launching_prepare(&env->launching, &manner, error);
    if (rc == 0)
        rc = start_shares(env, error);
    env->world.description = NULL; /* the caller's */
    if (rc == 0)
        rc = allocate_worlds(env, error);
    if (rc == 0) {
        create_groups(env);
        tell_versions(env);
    }
    if (rc < 0)
        close_env(env);
    else
        *made = env;
    return rc;
}

/* --- rows ------------------------------------------------------------------------------------ */

/* Follows an agent's part of an episode. true: an episode of its world begins. */
static bool take_flags(struct rm_env *env, uint32_t a, uint32_t w, uint8_t flags)
{
    uint8_t *playing = &env->playing[(size_t)a * env->worlds + w];
    if (flags & RM_ENV_FIRST && !*playing) {
        *playing = 1;
        if (env->live[w]++ == 0) {
            env->reset_seed[w] = seed_of(env, w, env->episode[w]);
            env->episode[w]++;
            env->step[w] = 0;
            return true;
        }
    } else if (flags & LAST && *playing) {
        *playing = 0;
        env->live[w]--;
    }
    return false;
}

static size_t figure_bytes(const struct rm_env *env)
{
    return sizeof(double) * env->spec->figures;
}

/* Writes the figures of an agent's episode; values NULL: unknown. */
static void take_figures(const struct rm_env *env, const struct rm_env_buffers *out, uint32_t w,
                         const void *values)
{
    double *to = out->figures ? out->figures + (size_t)w * env->spec->figures : NULL;
    if (to && values)
        memcpy(to, values, figure_bytes(env));
    for (uint32_t f = 0; to && f < env->spec->figures; f++)
        if (!values || !isfinite(to[f]))
            to[f] = NAN;
}

/* The worlds of a share that are in a group. */
static struct rm_world_group part_of(const struct share *share, const struct group *group)
{
    const uint32_t share_end = share->first + share->count;
    const uint32_t group_end = group->worlds.first + group->worlds.worlds;
    const uint32_t first = share->first > group->worlds.first ? share->first : group->worlds.first;
    return (struct rm_world_group){first, (share_end < group_end ? share_end : group_end) - first};
}

/* One agent's rows of a part of a share, out of what its worker wrote. */
static void take_rows(struct rm_env *env, struct share *share, struct rm_world_group part,
                      uint32_t a, const struct rm_env_buffers *out)
{
    const struct rm_env_agent *agent = &env->spec->agent[a];
    const struct columns *c = &share->columns[a];
    const size_t bytes = rm_env_obs_bytes(agent), own = part.first - share->first;
    const uint32_t first = part.first, n = part.worlds;
    const uint8_t *obs = column(share, c->obs) + own * bytes;
    const uint8_t *mask = column(share, c->mask) + own * agent->actions;

    memcpy(out->reward + first, column(share, c->reward) + own * sizeof(float), n * sizeof(float));
    memcpy(out->flags + first, column(share, c->flags) + own, n);
    for (uint32_t w = 0; w < n; w++)
        memcpy((uint8_t *)out->obs + (ptrdiff_t)(first + w) * out->obs_stride, obs + w * bytes,
               bytes);
    for (uint32_t w = 0; out->mask && w < n; w++)
        memcpy(out->mask + (ptrdiff_t)(first + w) * out->mask_stride, mask + w * agent->actions,
               agent->actions);
    for (uint32_t w = first; w < first + n; w++) {
        if (out->flags[w] & LAST)
            take_figures(env, out, w,
                         column(share, c->figures) + (w - share->first) * figure_bytes(env));
        if (out->flags[w] && take_flags(env, a, w, out->flags[w]))
            offer_seed(env, share, w);
    }
}

/* Rows in place of those that a lost worker owes. */
static void void_rows(struct rm_env *env, struct rm_world_group part, uint32_t a,
                      const struct rm_env_buffers *out)
{
    const struct rm_env_agent *agent = &env->spec->agent[a];
    for (uint32_t w = part.first; w < part.first + part.worlds; w++) {
        const bool open = env->playing[(size_t)a * env->worlds + w];
        memset((uint8_t *)out->obs + (ptrdiff_t)w * out->obs_stride, 0, rm_env_obs_bytes(agent));
        if (out->mask)
            memset(out->mask + (ptrdiff_t)w * out->mask_stride, 1, agent->actions);
        out->reward[w] = 0;
        out->flags[w] = open ? RM_ENV_TRUNCATED | RM_ENV_VOID : RM_ENV_DEAD;
        if (open)
            take_figures(env, out, w, NULL);
        take_flags(env, a, w, out->flags[w]);
    }
}

static void put_actions(const struct rm_env *env, struct share *share, struct rm_world_group part,
                        uint32_t phase, const int32_t *const *actions)
{
    for (uint32_t a = 0; a < env->spec->agents; a++) {
        const size_t bytes = words_of(&env->spec->agent[a]) * sizeof **actions;
        if (env->spec->agent[a].phase == phase)
            memcpy(column(share, share->columns[a].actions) + (part.first - share->first) * bytes,
                   (const uint8_t *)actions[a] + part.first * bytes, part.worlds * bytes);
    }
}

static bool anybody_plays(const struct rm_env *env, const struct share *share)
{
    for (uint32_t w = share->first; w < share->first + share->count; w++)
        if (env->live[w])
            return true;
    return false;
}

/* A worker that has grown too large is ended when an episode is: it is replaced as if lost. */
static void recycle(struct rm_env *env, struct share *share, struct rm_world_group part,
                    const struct rm_env_buffers *out)
{
    const uint64_t now = rm_now_ns();
    bool ended = false;
    for (uint32_t w = part.first; w < part.first + part.worlds; w++)
        ended |= (out->flags[w] & LAST) != 0;
    if (!ended || now - share->weighed_ns < WEIGH_NS)
        return;
    share->weighed_ns = now;
    const uint64_t bytes = rm_python_worker_resident(&share->worker);
    if (bytes <= place.recycle_bytes)
        return;
    fprintf(stderr,
            RM_SEVERITY_NOTICE "the Python process of worlds %" PRIu64 " to %" PRIu64
                               " takes %" PRIu64 " MiB (actor.recycle_mb %" PRIu64 "): replaced\n",
            env->first_world + share->first, env->first_world + share->first + share->count - 1,
            bytes >> 20, place.recycle_bytes >> 20);
    rm_python_worker_end(&share->worker);
    share->lost = true;
}

/* Every share of a group whose worker is asked answers, or is lost; rows for the agents of phase
 * `next`. */
static int gather(struct rm_env *env, uint32_t g, uint32_t next, const struct rm_env_buffers *out)
{
    struct group *group = &env->group[g];
    const uint64_t until = env->until_ns ? env->until_ns : deadline(1), now = rm_now_ns();
    bool failed = false;
    for (uint32_t i = group->first; i < group->end; i++) {
        struct share *share = &env->share[i];
        const struct rm_world_group part = part_of(share, group);
        if (!share->lost) {
            const int rc = rm_python_worker_await(&share->worker, share->due[g], until);
            if (rc < 0) {
                lose(env, share, rc);
                failed |= too_often(env);
            } else if (now - share->counted_ns >= COUNT_NS) {
                count_cpu(share);
                share->counted_ns = now;
            }
        }
        for (uint32_t a = 0; a < env->spec->agents; a++) {
            if (env->spec->agent[a].phase != next)
                continue;
            if (share->lost)
                void_rows(env, part, a, &out[a]);
            else
                take_rows(env, share, part, a, &out[a]);
            if (place.recycle_bytes && !share->lost)
                recycle(env, share, part, &out[a]);
        }
    }
    group->asked = false;
    env->until_ns = 0;
    return failed ? -EIO : 0;
}

static void ask_reset(const struct rm_env *env, struct share *share)
{
    rm_python_worker_ask(&share->worker, (struct rm_python_request){.command = RM_PYTHON_RESET},
                         NULL);
    share->acts = false;
    for (uint32_t g = 0; g < env->groups; g++)
        share->due[g] = share->worker.asked;
}

/* New workers for shares of group g and of none after it that lost theirs, once their episodes are
 * over: they begin in this step. */
static int replace_lost(struct rm_env *env, uint32_t g)
{
    const struct group *group = &env->group[g];
    struct rm_error error = {""};
    bool any = false;
    for (uint32_t i = group->first; i < group->end; i++) {
        struct share *share = &env->share[i];
        if (!share->lost || anybody_plays(env, share) ||
            (g + 1 < env->groups && env->group[g + 1].first == i))
            continue;
        share->lost = false;
        any = true;
    }
    if (any && start_shares(env, &error) < 0) {
        snprintf(env->error, sizeof env->error, "%s", error.text);
        return -EIO;
    }
    return 0;
}

/* Has the worlds of a group make a step. */
static int ask_group(struct rm_env *env, uint32_t g, uint32_t phase, const int32_t *const *actions)
{
    struct group *group = &env->group[g];
    const struct rm_world_group worlds = group->worlds;
    env->phase = phase;
    for (uint32_t w = worlds.first; phase == 0 && w < worlds.first + worlds.worlds; w++)
        env->step[w] += env->live[w] > 0;
    for (uint32_t i = group->first; i < group->end; i++) {
        struct share *share = &env->share[i];
        if (share->lost)
            continue;
        const struct rm_world_group part = part_of(share, group);
        put_actions(env, share, part, phase, actions);
        rm_python_worker_ask(&share->worker,
                             (struct rm_python_request){.command = RM_PYTHON_STEP,
                                                        .phase = phase,
                                                        .first = part.first - share->first,
                                                        .worlds = part.worlds},
                             NULL);
        share->acts = true;
        share->due[g] = share->worker.asked;
    }
    group->asked = true;
    if ((phase + 1) % env->spec->phases != 0)
        return 0;
    const int rc = replace_lost(env, g); /* others step meanwhile */
    for (uint32_t i = group->first; rc == 0 && i < group->end; i++)
        if (env->share[i].worker.asked == RM_PYTHON_LAYOUT)
            ask_reset(env, &env->share[i]);
    return rc;
}

static int reset_env(struct rm_env *env, const struct rm_env_buffers *out)
{
    int rc = 0;
    for (uint32_t g = 0; g < env->groups && rc == 0; g++)
        if (env->group[g].asked)
            rc = gather(env, g, 0, out); /* of a step that is given up */
    memset(env->playing, 0, (size_t)env->spec->agents * env->worlds);
    memset(env->live, 0, env->worlds * sizeof *env->live);
    memset(env->episode, 0, env->worlds * sizeof *env->episode);
    memset(env->step, 0, env->worlds * sizeof *env->step);
    for (uint32_t g = 0; g < env->groups && rc == 0; g++)
        rc = replace_lost(env, g);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < env->shares; i++) {
        for (uint32_t w = 0; w < env->share[i].count; w++)
            offer_seed(env, &env->share[i], env->share[i].first + w);
        ask_reset(env, &env->share[i]);
    }
    for (uint32_t g = 0; g < env->groups && rc == 0; g++)
        rc = gather(env, g, 0, out);
    return rc;
}

static int step_env(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                    const struct rm_env_buffers *out)
{
    int rc = 0;
    for (uint32_t g = 0; g < env->groups && rc == 0; g++)
        rc = ask_group(env, g, phase, actions);
    env->until_ns = deadline(1);
    for (uint32_t g = 0; g < env->groups && rc == 0; g++)
        rc = gather(env, g, (phase + 1) % env->spec->phases, out);
    return rc;
}

/* --- groups ---------------------------------------------------------------------------------- */

static uint32_t count_groups(const struct rm_env *env)
{
    return env->groups;
}

static struct rm_world_group group_of(const struct rm_env *env, uint32_t g)
{
    return env->group[g].worlds;
}

static int ask(struct rm_env *env, uint32_t g, const int32_t *const *actions)
{
    return ask_group(env, g, 0, actions);
}

static uint32_t first_group(struct rm_env *env, uint32_t groups)
{
    struct rm_python_worker *workers[RM_PYTHON_WORKERS];
    uint32_t requests[RM_PYTHON_WORKERS];
    env->until_ns = deadline(1);
    for (;;) {
        uint32_t n = 0;
        for (uint32_t g = 0; g < env->groups; g++) {
            const struct group *group = &env->group[g];
            const uint32_t before = n;
            if (!(groups & 1u << g))
                continue;
            for (uint32_t i = group->first; group->asked && i < group->end; i++) {
                struct share *share = &env->share[i];
                if (share->lost || rm_python_worker_answered(&share->worker, share->due[g]))
                    continue;
                workers[n] = &share->worker;
                requests[n++] = share->due[g];
            }
            if (n == before)
                return g;
            if (env->shares == 1)
                return g; /* one after the other */
        }
        if (rm_python_workers_wait(workers, requests, n, env->until_ns) < 0)
            return (uint32_t)__builtin_ctz(groups); /* its end is reported by receive() */
    }
}

static int receive(struct rm_env *env, uint32_t g, const struct rm_env_buffers *out)
{
    return env->group[g].asked ? gather(env, g, 0, out) : 0;
}

const struct rm_world_groups rm_python_groups = {
    .count = count_groups, .group = group_of, .ask = ask, .first = first_group, .receive = receive};

/* --- the table ------------------------------------------------------------------------------- */

static const struct rm_env_spec *describe(const struct rm_env *env)
{
    return env->spec;
}

static size_t state_size(const struct rm_env *env)
{
    (void)env;
    return 0;
}

static int save_state(const struct rm_env *env, void *state)
{
    (void)env, (void)state;
    return -ENOTSUP;
}

static int load_state(struct rm_env *env, const void *state)
{
    (void)env, (void)state;
    return -ENOTSUP;
}

static const char *last_error(const struct rm_env *env)
{
    return env->error;
}

/* --- showing --------------------------------------------------------------------------------- */

static struct share *share_of(const struct rm_env *env, uint32_t world)
{
    uint32_t i = 0;
    while (world >= env->share[i].first + env->share[i].count)
        i++;
    return &env->share[i];
}

/* The worker of a world shows it. NULL: it could not, and last_error() says why. */
static struct share *ask_show(const struct rm_env *env, uint32_t world)
{
    struct share *share = share_of(env, world);
    char *why = ((struct rm_env *)env)->error;
    int rc = -ECHILD;
    if (!share->lost) {
        rm_python_worker_ask(
            &share->worker,
            (struct rm_python_request){.command = RM_PYTHON_SHOW, .phase = world - share->first},
            NULL);
        rc = rm_python_worker_await(&share->worker, share->worker.asked, deadline(1));
    }
    if (rc == -EREMOTEIO) {
        rm_python_worker_text(&share->worker, why, sizeof env->error);
        cut_line(why);
    } else if (rc < 0) {
        snprintf(why, sizeof env->error, "its Python process %s",
                 rc == -ETIMEDOUT ? "took too long to draw a picture" : "has ended");
    }
    return rc < 0 ? NULL : share;
}

static int show_text(const struct rm_env *env, uint32_t world, char *text, size_t size)
{
    const struct share *share = ask_show(env, world);
    if (!share)
        return -EIO;
    rm_python_worker_text(&share->worker, text, size);
    return (int)strlen(text);
}

static int show_picture(const struct rm_env *env, uint32_t world, uint8_t *rgb)
{
    const struct share *share = ask_show(env, world);
    if (!share)
        return -EIO;
    memcpy(rgb, column(share, share->picture), picture_bytes(env->spec));
    return 0;
}

static struct rm_env *create_env(const struct rm_env_config *config, char *error, size_t size)
{
    (void)config;
    snprintf(error, size,
             "a Python world needs world.python: \"gymnasium:ID\" or \"module:function\"");
    return NULL;
}

const struct rm_env_ops rm_python_ops = {
    .abi_version = RM_ENV_ABI_VERSION,
    .struct_size = sizeof(struct rm_env_ops),
    .name = "python",
    .create = create_env,
    .describe = describe,
    .reset = reset_env,
    .step = step_env,
    .state_size = state_size,
    .save_state = save_state,
    .load_state = load_state,
    .close = close_env,
    .last_error = last_error,
    .show_text = show_text,
    .show_picture = show_picture,
};
