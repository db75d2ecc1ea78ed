/* Worlds in Prolog: steps a second of one core, observations, masks and new episodes included, in
 * turn with a bare loop of C over the same predicates (actions, step, observation, a recorded
 * state; no limit of inferences, no checks). Time is the thread's processor time, but for two
 * processes.
 *
 * prolog.step         config/prolog/toy_prover.pl; ceiling: the bare loop
 * prolog.step2        two processes, each with its own; baseline: one
 * prolog.prover       config/prolog/prover.pl on the synthetic family, the stepping alone: no
 *                     automatic advance, two numbers as observation; ceiling: the bare loop
 * prolog.prover2      two processes; baseline: one
 * prolog.prover.full  the world as it is, with its tokens */
#include "actor/worlds/builtin/prover_family.h"
#include "actor/worlds/worlds.h"
#include "scripts/bench/pair.h"
#include "shm/base/rng.h"

#if __has_include(<SWI-Prolog.h>)
#include <SWI-Prolog.h>

#include <string.h>
#include <time.h>

enum { RUNS = 7, RUN_MS = 60, WORLDS = 16, OBS_MAX = 630, ACTIONS_MAX = 20 };

static const char *const names[RM_PROVER_FAMILY_COUNT] = {"facts.pl", "valid.txt", "test.txt",
                                                          "rules.pl"};

/* What is measured, in the processes that measure it. */
struct shared {
    struct rm_pair_gate gate;
    const char *file, *options;
    _Atomic uint32_t members;
    double world[2][RUNS], bare[RUNS];
};

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * RM_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* --- a world ---------------------------------------------------------------------------------- */

struct subject {
    struct rm_world world;
    struct rm_env *env;
    const struct rm_env_agent *agent;
    struct rm_env_buffers out;
    int32_t action[WORLDS];
    struct rm_rng rng;
};

static int open_subject(struct subject *s, const char *file, const char *options)
{
    static struct rm_world_config config = {.name = "bench"};
    struct rm_error error = {""};
    snprintf(config.prolog, sizeof config.prolog, "%s", file);
    snprintf(config.options, sizeof config.options, "%s", options);
    if (!getcwd(config.directory, sizeof config.directory) ||
        rm_world_open_configured(&s->world, &config, &error) < 0 ||
        rm_world_create(&s->world, &config, 1, 0, WORLDS, &s->env, &error) < 0)
        return fprintf(stderr, "%s\n", error.text), 1;
    s->agent = s->world.ops->describe(s->env)->agent;
    const size_t bytes = rm_env_obs_bytes(s->agent);
    s->out = (struct rm_env_buffers){.obs = calloc(WORLDS, bytes),
                                     .obs_stride = (ptrdiff_t)bytes,
                                     .mask = calloc(WORLDS, s->agent->actions),
                                     .mask_stride = (ptrdiff_t)s->agent->actions,
                                     .reward = calloc(WORLDS, sizeof(float)),
                                     .flags = calloc(WORLDS, 1)};
    s->rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    return s->world.ops->reset(s->env, &s->out);
}

/* Steps a second; rows that begin an episode are not counted. */
static double step_world(struct subject *s, clockid_t clock)
{
    const uint64_t start = now_ns(clock);
    uint64_t now, steps = 0;
    do {
        for (uint32_t w = 0; w < WORLDS; w++) {
            const uint8_t *mask = s->out.mask + w * s->agent->actions;
            uint32_t legal = 0;
            while (legal < s->agent->actions && mask[legal])
                legal++;
            s->action[w] = (int32_t)rm_rng_below(&s->rng, legal);
        }
        const int32_t *const actions[] = {s->action};
        if (s->world.ops->step(s->env, 0, actions, &s->out) < 0)
            fprintf(stderr, "%s\n", s->world.ops->last_error(s->env)), exit(1);
        for (uint32_t w = 0; w < WORLDS; w++)
            steps += !(s->out.flags[w] & RM_ENV_FIRST);
        now = now_ns(clock);
    } while (now - start < RUN_MS * RM_NS_PER_MS);
    return (double)steps / ((double)(now - start) * 1e-9);
}

/* --- the bare loop ---------------------------------------------------------------------------- */

struct bare {
    predicate_t reset, actions, step, observation;
    record_t state;
    struct rm_rng rng;
    int numbers[OBS_MAX];
};

static void must(int done)
{
    if (!done)
        fprintf(stderr, "the bare loop failed\n"), exit(1);
}

static void keep(struct bare *b, term_t state)
{
    if (b->state)
        PL_erase(b->state);
    must((b->state = PL_record(state)) != 0);
}

static void observe(struct bare *b, term_t state)
{
    const term_t a = PL_new_term_refs(4), list = a + 2, head = a + 3;
    int n = 0;
    must(PL_put_term(a, state));
    must(PL_call_predicate(NULL, PL_Q_NODEBUG, b->observation, a));
    while (PL_get_list(a + 1, list, a + 1))
        while (PL_get_list(list, head, list))
            must(n < OBS_MAX && PL_get_integer(head, &b->numbers[n++]));
}

static void bare_begin(struct bare *b)
{
    const term_t a = PL_new_term_refs(2);
    must(PL_put_int64(a, (int64_t)rm_rng_u32(&b->rng) << 30 | rm_rng_u32(&b->rng) >> 2));
    must(PL_call_predicate(NULL, PL_Q_NODEBUG, b->reset, a));
    observe(b, a + 1);
    keep(b, a + 1);
}

static void bare_turn(struct bare *b)
{
    const fid_t frame = PL_open_foreign_frame();
    const term_t a = PL_new_term_refs(4), list = PL_new_term_refs(4), head = list + 2;
    size_t count;
    double reward;
    char *status = "";
    must(PL_recorded(b->state, a) && PL_put_term(list, a));
    must(PL_call_predicate(NULL, PL_Q_NODEBUG, b->actions, list));
    must(PL_skip_list(list + 1, list + 3, &count) == PL_LIST);
    for (uint32_t i = 0, chosen = rm_rng_below(&b->rng, (uint32_t)count); i <= chosen; i++)
        must(PL_get_list(list + 1, head, list + 1));
    must(PL_put_term(a + 1, head));
    must(PL_call_predicate(NULL, PL_Q_NODEBUG, b->step, a));
    must(PL_get_arg(1, a + 3, head) && PL_get_float(head, &reward));
    must(PL_get_arg(2, a + 3, head) && PL_get_atom_chars(head, &status));
    if (status[0] == 'r') {
        observe(b, a + 2);
        keep(b, a + 2);
    } else {
        observe(b, a + 2);
        bare_begin(b);
    }
    PL_discard_foreign_frame(frame);
}

static double step_bare(struct bare *b)
{
    const uint64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t now, steps = 0;
    do {
        for (int i = 0; i < WORLDS; i++)
            bare_turn(b);
        steps += WORLDS;
        now = now_ns(CLOCK_THREAD_CPUTIME_ID);
    } while (now - start < RUN_MS * RM_NS_PER_MS);
    return (double)steps / ((double)(now - start) * 1e-9);
}

/* --- processes -------------------------------------------------------------------------------- */

/* A process that measures; the first of one alone takes turns with the bare loop. */
static int member(void *arg)
{
    struct shared *shared = arg;
    static struct subject subject;
    static struct bare bare;
    const uint32_t me = RM_ADD(&shared->members, 1) & 1;
    if (open_subject(&subject, shared->file, shared->options))
        return 1;
    const char *module = subject.world.ops->describe(subject.env)->name;
    bare.reset = PL_predicate("reset", 2, module);
    bare.actions = PL_predicate("actions", 2, module);
    bare.step = PL_predicate("step", 4, module);
    bare.observation = PL_predicate("observation", 2, module);
    bare.rng = rm_rng_at(1, RM_STREAM_TEST, 1, 0);
    const fid_t frame = PL_open_foreign_frame();
    bare_begin(&bare);
    PL_discard_foreign_frame(frame);
    const bool alone = shared->bare[0] >= 0;
    step_world(&subject, CLOCK_MONOTONIC);
    step_bare(&bare);
    rm_pair_wait(&shared->gate);
    for (int run = 0; run < RUNS; run++) {
        shared->world[me][run] =
            step_world(&subject, alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC);
        if (alone)
            shared->bare[run] = step_bare(&bare);
    }
    return 0;
}

/* One process with the bare loop, then two without. */
static void bench(int argc, char **argv, const char *name, const char *file, const char *options)
{
    static int (*const members[])(void *) = {member, member};
    struct shared *shared = rm_pair_memory(sizeof *shared);
    char two[64];
    snprintf(two, sizeof two, "%s2", name);
    if (!rm_bench_wanted(argc, argv, name) && !rm_bench_wanted(argc, argv, two))
        return;
    shared->file = file;
    shared->options = options;
    rm_pair_run(&shared->gate, 1, members, shared);
    const double one = rm_bench_median(shared->world[0], RUNS);
    if (rm_bench_wanted(argc, argv, name))
        rm_bench_report(&(struct rm_bench_result){.name = name,
                                                  .unit = "steps/s",
                                                  .values = shared->world[0],
                                                  .runs = RUNS,
                                                  .ceiling = rm_bench_median(shared->bare, RUNS),
                                                  .note = "16 worlds, random actions"});
    if (!rm_bench_wanted(argc, argv, two))
        return;
    shared->bare[0] = -1;
    shared->members = 0;
    rm_pair_run(&shared->gate, 2, members, shared);
    for (int run = 0; run < RUNS; run++)
        shared->world[0][run] += shared->world[1][run];
    rm_bench_report(&(struct rm_bench_result){.name = two,
                                              .unit = "steps/s",
                                              .values = shared->world[0],
                                              .runs = RUNS,
                                              .baseline = one,
                                              .note = "two processes; baseline: one"});
}

/* The synthetic family as files; its folder, or NULL. */
static const char *write_family(void)
{
    static char folder[] = "/tmp/rm-bench-family-XXXXXX";
    char *text[RM_PROVER_FAMILY_COUNT], path[96];
    size_t bytes[RM_PROVER_FAMILY_COUNT];
    if (rm_prover_family_make(text, bytes) < 0 || !mkdtemp(folder))
        return NULL;
    for (int i = 0; i < RM_PROVER_FAMILY_COUNT; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *file = fopen(path, "w");
        if (!file || fwrite(text[i], 1, bytes[i], file) != bytes[i] || fclose(file) != 0)
            return NULL;
        free(text[i]);
    }
    /* The facts are the queries to train with. */
    char from[96];
    snprintf(from, sizeof from, "%s/facts.pl", folder);
    snprintf(path, sizeof path, "%s/train.txt", folder);
    return link(from, path) == 0 ? folder : NULL;
}

static void remove_family(const char *folder)
{
    char path[96];
    for (int i = 0; i <= RM_PROVER_FAMILY_COUNT; i++) {
        snprintf(path, sizeof path, "%s/%s", folder,
                 i < RM_PROVER_FAMILY_COUNT ? names[i] : "train.txt");
        unlink(path);
    }
    rmdir(folder);
}

int main(int argc, char **argv)
{
    char alone[160], full[160];
    const char *folder;
    bench(argc, argv, "prolog.step", "config/prolog/toy_prover.pl", "{}");
    if (!rm_bench_wanted(argc, argv, "prolog.prover") &&
        !rm_bench_wanted(argc, argv, "prolog.prover2") &&
        !rm_bench_wanted(argc, argv, "prolog.prover.full"))
        return 0;
    if (!(folder = write_family()))
        return 1;
    snprintf(alone, sizeof alone, "{\"data\": \"%s\", \"follow\": 0, \"observe\": \"count\"}",
             folder);
    snprintf(full, sizeof full, "{\"data\": \"%s\"}", folder);
    bench(argc, argv, "prolog.prover", "config/prolog/prover.pl", alone);
    bench(argc, argv, "prolog.prover.full", "config/prolog/prover.pl", full);
    remove_family(folder);
    return 0;
}

#else

int main(void)
{
    puts("prolog.*: built without SWI-Prolog");
    return 77;
}

#endif
