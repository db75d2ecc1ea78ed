/* How fast the built-in worlds step: whole calls of step(), with random actions drawn beforehand
 * and all that belongs to it (observations, masks, flags, new episodes), on one core. Where there
 * are masks, picking the legal actions is measured too.
 *
 * world.NAME is in agent-steps a second for a batch of 256 worlds; world.cartpole.64 and
 * world.cartpole.1024 are other batches. w2.frames is the platformer, 128 worlds. The baseline of
 * cartpole is the definition written down plainly, one world after the other, with the C library's
 * sin and cos; the baseline of treasurehunt is its definition written down plainly too, with a draw
 * and a look-up for every cell. Both write the same observations, rewards and flags, and run in
 * turn with what they are compared with. The ceiling is copying what a step writes. */
#include "actor/worlds/worlds.h"
#include "scripts/bench/report.h"
#include "shm/base/clock.h"
#include "shm/base/rng.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 7, RUN_MS = 60, ACTION_SETS = 64, AGENTS_MAX = 8, WORLDS_MAX = 1024 };

/* --- the plain worlds ------------------------------------------------------------------------- */

struct plain_pole {
    double s[4];
    int steps, over;
    uint64_t episode;
};

static void plain_pole_begin(struct plain_pole *pole, uint32_t w)
{
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_WORLD, w, pole->episode++);
    for (int i = 0; i < 4; i++)
        pole->s[i] = -0.05 + 0.1 * rm_rng_double(&rng);
    pole->steps = pole->over = 0;
}

static void plain_pole_step(struct plain_pole *pole, uint32_t w, int action, float *obs,
                            float *reward, uint8_t *flags)
{
    double *s = pole->s;
    *flags = RM_ENV_FIRST;
    *reward = 0;
    if (pole->over) {
        plain_pole_begin(pole, w);
    } else {
        double force = action ? 10 : -10, sine = sin(s[2]), cosine = cos(s[2]);
        double push = (force + 0.05 * s[3] * s[3] * sine) / 1.1;
        double turn =
            (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3 - 0.1 * cosine * cosine / 1.1));
        double drive = push - 0.05 * turn * cosine / 1.1;
        s[0] += 0.02 * s[1];
        s[1] += 0.02 * drive;
        s[2] += 0.02 * s[3];
        s[3] += 0.02 * turn;
        int fell = fabs(s[0]) > 2.4 || fabs(s[2]) > 24 * M_PI / 360;
        pole->steps++;
        *flags = fell ? RM_ENV_TERMINATED : pole->steps >= 500 ? RM_ENV_TRUNCATED : 0;
        *reward = 1;
        pole->over = *flags != 0;
    }
    for (int i = 0; i < 4; i++)
        obs[i] = (float)s[i];
}

struct plain_hunt {
    uint8_t cell[10][10]; /* codes */
    int y[5], x[5], turn;
    struct rm_rng rng;
};

static void plain_hunt_spawn(struct plain_hunt *hunt)
{
    for (int y = 1; y < 9; y++)
        for (int x = 1; x < 9; x++)
            if (hunt->cell[y][x] == 0 && rm_rng_float(&hunt->rng) < 0.02f)
                hunt->cell[y][x] = 1;
}

static void plain_hunt_begin(struct plain_hunt *hunt, uint32_t w)
{
    hunt->rng = rm_rng_at(1, RM_STREAM_WORLD, w, (uint64_t)hunt->turn);
    for (int y = 0; y < 10; y++)
        for (int x = 0; x < 10; x++)
            hunt->cell[y][x] = y == 0 || x == 0 || y == 9 || x == 9 ? 3 : 0;
    for (int a = 0; a < 5; a++) {
        do {
            hunt->y[a] = 1 + (int)rm_rng_below(&hunt->rng, 8);
            hunt->x[a] = 1 + (int)rm_rng_below(&hunt->rng, 8);
        } while (hunt->cell[hunt->y[a]][hunt->x[a]]);
        hunt->cell[hunt->y[a]][hunt->x[a]] = 2;
    }
    hunt->turn = 0;
    plain_hunt_spawn(hunt);
}

static void plain_hunt_step(struct plain_hunt *hunt, uint32_t w, int a, int action, uint8_t *obs,
                            float *reward)
{
    static const int dy[4] = {-1, 1, 0, 0}, dx[4] = {0, 0, -1, 1};
    static const float pays[4] = {0, 10, 0, -1};
    int y = hunt->y[a] + dy[action], x = hunt->x[a] + dx[action], code = hunt->cell[y][x];
    *reward = pays[code];
    if (code < 2) {
        hunt->cell[hunt->y[a]][hunt->x[a]] = 0;
        hunt->cell[y][x] = 2;
        hunt->y[a] = y;
        hunt->x[a] = x;
    }
    if (a == 4 && ++hunt->turn == 50)
        plain_hunt_begin(hunt, w);
    else if (a == 4)
        plain_hunt_spawn(hunt);
    int next = (a + 1) % 5;
    for (int r = 0; r < 5; r++)
        for (int k = 0; k < 5; k++) {
            int v = hunt->y[next] - 2 + r, u = hunt->x[next] - 2 + k;
            obs[5 * r + k] = v < 0 || u < 0 || v > 9 || u > 9 ? 4 : hunt->cell[v][u];
        }
}

/* --- running ---------------------------------------------------------------------------------- */

struct subject {
    struct rm_world world;
    struct rm_env *env;
    const struct rm_env_spec *spec;
    uint32_t worlds;
    struct rm_env_buffers out[AGENTS_MAX];
    int32_t *actions[ACTION_SETS]; /* [worlds] */
    int32_t *legal;                /* [worlds] */
    struct plain_pole *pole;
    struct plain_hunt *hunt;
    uint64_t turns; /* steps of the batch so far */
};

static int open_subject(struct subject *s, const char *name, uint32_t worlds)
{
    struct rm_error error = {{0}};
    struct rm_world_config config = {.description = NULL};
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    memset(s, 0, sizeof(*s));
    s->worlds = worlds;
    if (rm_world_open(&s->world, name, "", &error) < 0 ||
        rm_world_create(&s->world, &config, 1, 0, worlds, &s->env, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return -1;
    }
    s->spec = s->world.ops->describe(s->env);
    for (uint32_t a = 0; a < s->spec->agents; a++) {
        size_t bytes = rm_env_obs_bytes(&s->spec->agent[a]);
        uint32_t actions = s->spec->agent[a].actions;
        s->out[a] = (struct rm_env_buffers){.obs = calloc(worlds, bytes),
                                            .obs_stride = (ptrdiff_t)bytes,
                                            .mask = calloc(worlds, actions),
                                            .mask_stride = actions,
                                            .reward = calloc(worlds, sizeof(float)),
                                            .flags = calloc(worlds, 1)};
    }
    for (int set = 0; set < ACTION_SETS; set++) {
        s->actions[set] = calloc(worlds, sizeof(int32_t));
        for (uint32_t w = 0; w < worlds; w++)
            s->actions[set][w] = (int32_t)rm_rng_below(&rng, s->spec->agent[0].actions);
    }
    s->legal = calloc(worlds, sizeof(int32_t));
    s->pole = calloc(worlds, sizeof(*s->pole));
    s->hunt = calloc(worlds, sizeof(*s->hunt));
    for (uint32_t w = 0; w < worlds; w++) {
        plain_pole_begin(&s->pole[w], w);
        plain_hunt_begin(&s->hunt[w], w);
    }
    return s->world.ops->reset(s->env, s->out);
}

static void close_subject(struct subject *s)
{
    for (uint32_t a = 0; a < s->spec->agents; a++) {
        free(s->out[a].obs);
        free(s->out[a].mask);
        free(s->out[a].reward);
        free(s->out[a].flags);
    }
    for (int set = 0; set < ACTION_SETS; set++)
        free(s->actions[set]);
    free(s->legal);
    free(s->pole);
    free(s->hunt);
    s->world.ops->close(s->env);
    rm_world_close(&s->world);
}

/* The drawn actions of agent a, each moved on to the next legal one. */
static const int32_t *legal_actions(struct subject *s, uint32_t a, const int32_t *drawn)
{
    uint32_t actions = s->spec->agent[a].actions;
    if (!s->spec->agent[a].has_mask)
        return drawn;
    for (uint32_t w = 0; w < s->worlds; w++) {
        const uint8_t *mask = s->out[a].mask + (size_t)w * actions;
        uint32_t action = (uint32_t)drawn[w];
        while (!mask[action])
            action = action + 1 < actions ? action + 1 : 0;
        s->legal[w] = (int32_t)action;
    }
    return s->legal;
}

static void step_world(struct subject *s)
{
    for (uint32_t phase = 0; phase < s->spec->phases; phase++) {
        const int32_t *actions[AGENTS_MAX] = {0};
        for (uint32_t a = 0; a < s->spec->agents; a++)
            if (s->spec->agent[a].phase == phase)
                actions[a] = legal_actions(s, a, s->actions[(s->turns * 7 + phase) % ACTION_SETS]);
        if (s->world.ops->step(s->env, phase, actions, s->out) != 0) {
            fprintf(stderr, "%s: %s\n", s->spec->name, s->world.ops->last_error(s->env));
            exit(1);
        }
    }
    s->turns++;
}

static void step_pole(struct subject *s)
{
    const int32_t *actions = s->actions[s->turns++ * 7 % ACTION_SETS];
    for (uint32_t w = 0; w < s->worlds; w++)
        plain_pole_step(&s->pole[w], w, actions[w], (float *)s->out[0].obs + 4 * w,
                        &s->out[0].reward[w], &s->out[0].flags[w]);
}

static void step_hunt(struct subject *s)
{
    for (int a = 0; a < 5; a++) {
        const int32_t *actions = s->actions[(s->turns * 7 + (uint64_t)a) % ACTION_SETS];
        int next = (a + 1) % 5;
        for (uint32_t w = 0; w < s->worlds; w++)
            plain_hunt_step(&s->hunt[w], w, a, actions[w], (uint8_t *)s->out[next].obs + 25 * w,
                            &s->out[next].reward[w]);
    }
    s->turns++;
}

/* Agent-steps a second, over RUN_MS. */
static double measure(struct subject *s, void (*step)(struct subject *))
{
    uint64_t start = rm_now_ns(), now, steps = 0;
    do {
        for (int i = 0; i < 16; i++)
            step(s);
        steps += 16;
        now = rm_now_ns();
    } while (now - start < RUN_MS * RM_NS_PER_MS);
    return (double)steps * s->worlds * s->spec->agents / ((double)(now - start) * 1e-9);
}

static int bench(const char *label, const char *name, uint32_t worlds,
                 void (*plain)(struct subject *))
{
    struct subject subject;
    if (open_subject(&subject, name, worlds) != 0)
        return 1;
    double values[RUNS], baseline[RUNS];
    measure(&subject, step_world); /* warm, and the worlds spread over their episodes */
    for (int run = 0; run < RUNS; run++) {
        values[run] = measure(&subject, step_world);
        baseline[run] = plain ? measure(&subject, plain) : 0;
    }
    size_t row = rm_env_obs_bytes(&subject.spec->agent[0]) + sizeof(float) + 1;
    char note[64];
    snprintf(note, sizeof(note), "%u worlds", worlds);
    struct rm_bench_result result = {
        .name = label,
        .unit = "agent-steps/s",
        .values = values,
        .runs = RUNS,
        .ceiling = rm_bench_memcpy_gbs(row * worlds) * 1e9 / (double)row,
        .baseline = plain ? rm_bench_median(baseline, RUNS) : 0,
        .note = note,
    };
    rm_bench_report(&result);
    close_subject(&subject);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *label, *name;
        uint32_t worlds;
        void (*plain)(struct subject *);
    } benches[] = {
        {"world.cartpole", "cartpole", 256, step_pole},
        {"world.cartpole.64", "cartpole", 64, step_pole},
        {"world.cartpole.1024", "cartpole", WORLDS_MAX, step_pole},
        {"world.treasurehunt", "treasurehunt", 256, step_hunt},
        {"world.acrobot", "acrobot", 256, NULL},
        {"world.mountaincar", "mountaincar", 256, NULL},
        {"world.frozenlake", "frozenlake", 256, NULL},
        {"world.taxi", "taxi", 256, NULL},
        {"world.goodhart", "goodhart", 256, NULL},
        {"world.darkroom", "darkroom", 256, NULL},
        {"world.sokoban", "sokoban", 256, NULL},
        {"world.connect", "connect", 256, NULL},
        {"world.count", "count", 256, NULL},
        {"w2.frames", "platformer", 128, NULL},
    };
    int rc = 0;
    rm_bench_pin(0);
    for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++)
        if (rm_bench_wanted(argc, argv, benches[i].label))
            rc |= bench(benches[i].label, benches[i].name, benches[i].worlds, benches[i].plain);
    return rc;
}
