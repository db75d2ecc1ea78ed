/* histories: recordings of the dark room become pairs of regions with the lengths, indices and
 * targets that algorithm distillation has; what is held out, what is left out, and what is refused.
 */
#include "learner/histories.h"

#include "actor/worlds/described.h"
#include "actor/worlds/plan.h"
#include "config/config.h"
#include "learner/algo/trainer.h"
#include "learner/net/features.h"
#include "learner/net/history.h"
#include "learner/prepared.h"
#include "learner/recorded_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { EPISODE = 20, LANES_MOST = 100, ROWS_MOST = 1092, REGION = 80, WIDTH = 12 };

static char folder[64];
static struct rm_experiment experiment, made;
static struct rm_plan plan;
static struct rm_world_spec world;
static struct rm_histories *histories;
static struct rm_error error;

/* What a case learns with; of the others NULL. */
static struct {
    struct rm_backend *backend;
    struct rm_trainer *trainer;
    struct rm_prepared *prepared;
    struct rm_plan plan;
} learning;

/* --- recordings ------------------------------------------------------------------------------- */

/* What a lane does in step t of its history. */
static int32_t action_of(uint32_t lane, uint32_t t)
{
    return (int32_t)((t * 7 + t / 13 + lane * 3) % 5);
}

/* Where it is before step t, and after it. */
static void place_of(uint32_t lane, uint32_t t, bool after, float place[2])
{
    place[0] = place[1] = 4;
    for (uint32_t k = t / EPISODE * EPISODE; k < t + after; k++) {
        const int32_t a = action_of(lane, k);
        float *moved = &place[a / 2];
        if (a < 4)
            *moved = a % 2 ? (*moved > 0 ? *moved - 1 : 0) : (*moved < 8 ? *moved + 1 : 8);
    }
}

static float reward_of(uint32_t lane, uint32_t t)
{
    float place[2];
    place_of(lane, t, true, place);
    return place[0] == 5 && place[1] == 4;
}

/* The columns of rows [first, first + rows) of `lanes` lanes. */
struct columns {
    float obs[LANES_MOST * ROWS_MOST * 2], reward[LANES_MOST * ROWS_MOST];
    uint8_t flags[LANES_MOST * ROWS_MOST];
    int32_t action[LANES_MOST * ROWS_MOST];
    uint64_t version[ROWS_MOST], generation[ROWS_MOST];
};

static struct columns columns;
static bool compat; /* an episode's last observation is the start: the dark room's option */

static void fill(uint32_t lanes, uint64_t first, uint32_t rows, uint64_t generation)
{
    for (uint32_t l = 0, at = 0; l < lanes; l++)
        for (uint32_t i = 0; i < rows; i++, at++) {
            const uint32_t row = (uint32_t)first + i, in = row % (EPISODE + 1);
            const uint32_t t = row / (EPISODE + 1) * EPISODE + in;
            const bool last = in == EPISODE;
            place_of(l, last ? t - 1 : t, last, &columns.obs[2 * (size_t)at]);
            if (last && compat)
                columns.obs[2 * (size_t)at] = columns.obs[2 * (size_t)at + 1] = 4;
            columns.reward[at] = in ? reward_of(l, t - 1) : 0;
            columns.flags[at] = in == 0 ? RM_ENV_FIRST : last ? RM_ENV_TERMINATED : 0;
            columns.action[at] = last ? 77 : action_of(l, t); /* without meaning in a last row */
            columns.version[i] = 0;
            columns.generation[i] = generation;
        }
}

static void describe(struct rm_recording_stream *stream, uint32_t lanes)
{
    memset(stream, 0, sizeof *stream);
    snprintf(stream->name, sizeof stream->name, "actor-0.agent_0");
    snprintf(stream->policy, sizeof stream->policy, "agent_0");
    stream->agents = 1;
    stream->worlds = stream->lanes = lanes;
    stream->actions = 5;
    rm_recorded_columns(stream, &plan.policy[0], &world.spec->agent[0]);
}

static const char *path_of(const char *name, const char *file)
{
    static char path[2][192];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s%s%s", folder, name, file ? "/" : "",
             file ? file : "");
    return path[turn];
}

static struct rm_recording_writer *writer_of(const char *name, struct rm_recording_stream *stream,
                                             int goal)
{
    struct rm_recording_writer *writer = NULL;
    made = experiment;
    snprintf(made.world.options, sizeof made.world.options, "{\"goal\": [%d, %d]}", goal / 9,
             goal % 9);
    made.seed = 100 + (uint64_t)goal;
    json_t *text = rm_config_to_json(&made);
    if (rm_recording_writer_open(&writer, path_of(name, NULL), name, RM_RECORD_STEP, text, stream,
                                 1, &error) != 0)
        fail_msg("%s", error.text);
    json_decref(text);
    return writer;
}

static void put(struct rm_recording_writer *writer, uint32_t lanes, uint64_t first, uint32_t rows,
                uint64_t generation)
{
    fill(lanes, first, rows, generation);
    const void *const parts[] = {columns.obs,    columns.reward,  columns.flags,
                                 columns.action, columns.version, columns.generation};
    if (rm_recording_write(writer, 0, first, rows, rows, parts, &error) != 0)
        fail_msg("%s", error.text);
}

/* A recording of `rows` rows, in chunks of 100. */
static void record(const char *name, int goal, uint32_t lanes, uint32_t rows)
{
    struct rm_recording_stream stream;
    describe(&stream, lanes);
    struct rm_recording_writer *writer = writer_of(name, &stream, goal);
    for (uint32_t at = 0; at < rows; at += 100)
        put(writer, lanes, at, rows - at < 100 ? rows - at : 100, 1);
    rm_recording_writer_close(writer);
}

/* The same rows as those of `of`, of another goal. */
static void record_again(const char *name, int goal, uint32_t lanes, const char *of)
{
    static const char *const files[] = {"chunks", "index"};
    struct rm_recording_stream stream;
    describe(&stream, lanes);
    rm_recording_writer_close(writer_of(name, &stream, goal));
    for (int i = 0; i < 2; i++) {
        unlink(path_of(name, files[i]));
        assert_int_equal(link(path_of(of, files[i]), path_of(name, files[i])), 0);
    }
}

/* --- a data set ------------------------------------------------------------------------------- */

static void parse(const char *settings)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{\"world\": {\"name\": \"darkroom\"}, \"sample\": {\"from\": \"%s/*\"%s%s}}", folder,
             settings[0] ? ", " : "", settings);
    if (rm_config_parse(&experiment, "test", text, strlen(text), NULL, 0, &error) != 0)
        fail_msg("%s", error.text);
}

static int begin(void **unused)
{
    (void)unused;
    snprintf(folder, sizeof folder, "/dev/shm/rm-histories-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    parse("");
    if (rm_plan_make(&plan, &experiment, &error) != 0 ||
        rm_world_spec_open(&world, &experiment.world, 1, &error) != 0)
        fail_msg("%s", error.text);
    plan.policy[0].shape.history.query_codes = 81; /* of a plan to distil */
    return 0;
}

static int removed(const char *path, const struct stat *of, int kind, struct FTW *where)
{
    (void)of;
    (void)kind;
    (void)where;
    return remove(path);
}

static int end(void **unused)
{
    (void)unused;
    rm_prepared_destroy(learning.prepared);
    rm_trainer_destroy(learning.trainer);
    rm_backend_destroy(learning.backend);
    memset(&learning, 0, sizeof learning);
    rm_histories_close(histories);
    histories = NULL;
    rm_world_spec_close(&world);
    return nftw(folder, removed, 8, FTW_DEPTH | FTW_PHYS);
}

static int try_open(void)
{
    rm_histories_close(histories);
    return rm_histories_open(&histories, &experiment, &plan, 0, &world.spec->agent[0], &error);
}

static void open_all(const char *settings)
{
    parse(settings);
    if (try_open() != 0)
        fail_msg("%s", error.text);
}

static void counts(enum rm_histories_part part, uint32_t recordings, uint32_t lanes, uint64_t pairs)
{
    const struct rm_histories_count count = rm_histories_count(histories, part);
    assert_int_equal(count.recordings, recordings);
    assert_int_equal(count.lanes, lanes);
    assert_int_equal(count.pairs, pairs);
}

/* --- a pair ----------------------------------------------------------------------------------- */

static float matrix[(3 * REGION + 2) * WIDTH];
static int32_t action[REGION];

static const float *row(uint32_t place)
{
    return matrix + (size_t)place * WIDTH;
}

static void get(uint64_t pair, uint32_t region)
{
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; i++)
        matrix[i] = -7;
    assert_int_equal(rm_histories_pair(histories, RM_HISTORIES_TRAINED, pair, matrix, action),
                     region);
}

static void is_mark(uint32_t place, enum rm_history_kind kind)
{
    assert_true(row(place)[0] == (float)kind);
    for (uint32_t i = 1; i < WIDTH; i++)
        assert_true(row(place)[i] == 0);
}

static void is_step(uint32_t place, uint32_t lane, uint32_t t)
{
    const float *f = row(place) + RM_HISTORY_FEATURES;
    float from[2], to[2];
    place_of(lane, t, false, from);
    place_of(lane, t, true, to);
    assert_true(row(place)[0] == RM_HISTORY_TRANSITION && row(place)[1] == 0);
    assert_true(f[0] == from[0] && f[1] == from[1] && f[8] == to[0] && f[9] == to[1]);
    for (int32_t a = 0; a < 5; a++)
        assert_true(f[2 + a] == (a == action_of(lane, t)));
    assert_true(f[7] == reward_of(lane, t));
}

static void is_query(uint32_t query, uint32_t lane, uint32_t t)
{
    const float *r = row(2 * REGION + 2 + query);
    float from[2];
    place_of(lane, t, false, from);
    assert_true(r[0] == RM_HISTORY_QUERY && r[1] == 9 * from[0] + from[1]);
    for (uint32_t i = RM_HISTORY_FEATURES; i < WIDTH; i++)
        assert_true(r[i] == 0);
    assert_int_equal(action[query], action_of(lane, t));
    assert_int_equal(rm_history_type(REGION, query), query == REGION - 1 ? 2 : 0);
}

/* Context rows of the pair. */
static uint32_t context(void)
{
    uint32_t rows = 0;
    for (uint32_t p = 0; p < 2 * REGION + 2; p++)
        rows += row(p)[0] != RM_HISTORY_PADDING;
    return rows;
}

/* --- cases ------------------------------------------------------------------------------------ */

static void lengths_indices_and_targets(void **unused)
{
    (void)unused;
    record("a", 49, 2, ROWS_MOST);
    open_all("\"first_steps\": 1000");
    counts(RM_HISTORIES_TRAINED, 1, 2, 24);
    counts(RM_HISTORIES_HELD_OUT, 0, 0, 0);
    for (uint32_t lane = 0; lane < 2; lane++) {
        get(12 * lane, 0); /* no region before it */
        is_mark(0, RM_HISTORY_BEGIN);
        for (uint32_t t = 0; t < REGION - 1; t++)
            is_step(1 + t, lane, t);
        for (uint32_t p = REGION; p < 2 * REGION + 2; p++)
            is_mark(p, RM_HISTORY_PADDING);
        for (uint32_t q = 0; q < REGION; q++)
            is_query(q, lane, q);
        assert_int_equal(context(), 80);
        assert_int_equal(rm_history_seen(80, REGION, 0), 1); /* c = 0: L = 2, query 1 */
        assert_int_equal(rm_history_seen(80, REGION, REGION - 1) + 1, 81); /* c = 79: L = 81 */
        for (uint32_t k = 1; k < 12; k++) {
            get(12 * lane + k, k);
            is_mark(0, RM_HISTORY_BEGIN);
            for (uint32_t t = 0; t < REGION; t++)
                is_step(1 + t, lane, (k - 1) * REGION + t);
            is_mark(81, RM_HISTORY_END);
            is_mark(82, RM_HISTORY_BEGIN);
            for (uint32_t t = 0; t < REGION - 1; t++)
                is_step(83 + t, lane, k * REGION + t);
            for (uint32_t q = 0; q < REGION; q++)
                is_query(q, lane, k * REGION + q);
            assert_int_equal(context(), 162);
        }
    }
    assert_int_equal(rm_history_seen(162, REGION, 0) + 1, 84);
    assert_int_equal(rm_history_seen(162, REGION, REGION - 1), 162); /* L = 163 */
    get(3, 3);
    is_step(1, 0, 160); /* rho = 3, c = 5 */
    is_step(80, 0, 239);
    is_step(83, 0, 240);
    is_step(87, 0, 244);
    is_query(5, 0, 245);
    assert_int_equal(rm_history_seen(162, REGION, 5), 88);
}

/* A query is a state, in the place of a step's first. */
static void queries_are_observations_without_codes(void **unused)
{
    (void)unused;
    record("a", 49, 1, ROWS_MOST);
    plan.policy[0].shape.history.query_codes = 0;
    open_all("\"first_steps\": 1000");
    get(3, 3);
    for (uint32_t q = 0; q < REGION; q++) {
        const float *r = row(2 * REGION + 2 + q), *f = r + RM_HISTORY_FEATURES;
        float from[2];
        place_of(0, 3 * REGION + q, false, from);
        assert_true(r[0] == RM_HISTORY_QUERY && r[1] == 0 && f[0] == from[0] && f[1] == from[1]);
        for (uint32_t i = 2; i < WIDTH - RM_HISTORY_FEATURES; i++)
            assert_true(f[i] == 0);
    }
}

/* (4, 4), action 2, no reward; queries 40 and 80. The last step of an episode ends where it did. */
static void tokens_are_as_they_should_be(void **unused)
{
    (void)unused;
    const struct rm_env_agent *agent = &world.spec->agent[0];
    const float at[2] = {4, 4}, to[2] = {4, 5}, corner[2] = {8, 8}, off[2] = {8, 9},
                half[2] = {0.5f, 0};
    const float want[10] = {4, 4, 0, 0, 1, 0, 0, 0, 4, 5};
    float step[10];
    assert_int_equal(rm_features_step_count(agent), 10);
    rm_features_step(agent, (const uint8_t *)at, 2, 0, (const uint8_t *)to, step);
    assert_memory_equal(step, want, sizeof want);
    assert_int_equal(rm_features_codes(agent), 81);
    assert_int_equal(rm_features_code(agent, at), 40);
    assert_int_equal(rm_features_code(agent, corner), 80);
    assert_int_equal(rm_features_code(agent, off), UINT32_MAX);
    assert_int_equal(rm_features_code(agent, half), UINT32_MAX);
    record("a", 49, 1, ROWS_MOST);
    open_all("");
    get(1, 1);
    is_step(20, 0, 19); /* the first episode's last */
    const float *f = row(20) + RM_HISTORY_FEATURES;
    assert_false(f[8] == 4 && f[9] == 4); /* not where the next begins */
    float from[2];
    place_of(0, 19, false, from);
    compat = true;
    record("b", 50, 1, ROWS_MOST);
    compat = false;
    open_all("");
    get(13 + 1, 1);
    assert_true(f[0] == from[0] && f[1] == from[1] && f[7] == reward_of(0, 19));
    assert_true(f[8] == 4 && f[9] == 4);
    is_step(19, 0, 18);
    is_step(21, 0, 20);
}

static void samples_are_counted(void **unused)
{
    (void)unused;
    uint32_t going_on = 0;
    for (uint32_t query = 0; query < REGION; query++)
        going_on += rm_history_type(REGION, query) == 0;
    assert_int_equal(going_on, 79); /* of 80: how often a head that always says so is right */
    char name[16];
    record("000", 0, LANES_MOST, ROWS_MOST);
    for (int goal = 1; goal < 81; goal++) {
        snprintf(name, sizeof name, "%03d", goal);
        record_again(name, goal, LANES_MOST, "000");
    }
    open_all("\"first_steps\": 1000, \"held_out_lanes\": 1, \"held_out\": {\"world.options.goal\": "
             "[[4, 2], [5, 6], [6, 8], [7, 2], [3, 6], [0, 5], [5, 8], [5, 4]]}");
    counts(RM_HISTORIES_TRAINED, 73, 7300, 7300 * 12);
    counts(RM_HISTORIES_HELD_OUT, 8, 8, 8 * 12);
    assert_int_equal(rm_histories_count(histories, RM_HISTORIES_TRAINED).pairs * REGION, 7008000);
    assert_int_equal(rm_histories_count(histories, RM_HISTORIES_HELD_OUT).pairs * REGION, 7680);
    assert_true(rm_histories_bytes(histories) < 24u << 20); /* 2 bytes a row, and the pairs */
    open_all("\"held_out\": {\"seed\": [100, 101], \"world.name\": [\"darkroom\"]}");
    counts(RM_HISTORIES_TRAINED, 79, 7900, 7900 * 13);
    counts(RM_HISTORIES_HELD_OUT, 2, 200, 200 * 13);
    open_all("\"held_out\": {\"seed\": [100, 101], \"world.options.goal\": [[0, 1], [7, 7]]}");
    counts(RM_HISTORIES_HELD_OUT, 1, 100, 100 * 13); /* one has both */
}

/* Rows of two writers: the step between them is left out. Lost rows end the history. */
static void a_history_ends_where_rows_were_lost(void **unused)
{
    (void)unused;
    struct rm_recording_stream stream;
    describe(&stream, 1);
    struct rm_recording_writer *writer = writer_of("a", &stream, 1);
    put(writer, 1, 0, 95, 1);   /* 4 episodes, and steps 80 to 90, of which 90 has no end */
    put(writer, 1, 95, 200, 2); /* step 91 on */
    put(writer, 1, 400, 200, 2);
    rm_recording_writer_close(writer);
    open_all("");
    counts(RM_HISTORIES_TRAINED, 1, 1, 3); /* 281 steps but one; the rest was lost */
    get(2, 2);
    is_step(10, 0, 89);
    is_step(11, 0, 91);
    is_step(80, 0, 160);
    is_query(0, 0, 161);
}

static void refuses(int code, const char *words, const char *settings)
{
    parse(settings);
    error.text[0] = '\0';
    assert_int_equal(try_open(), code);
    if (!strstr(error.text, words))
        fail_msg("\"%s\" lacks \"%s\"", error.text, words);
}

static void what_does_not_fit_is_refused(void **unused)
{
    (void)unused;
    refuses(-ENOENT, "sample.from: no folder matches", "");
    record("a", 1, 1, 40);
    refuses(-ENODATA, "1 recording to learn from, none with a region of 80 steps", "");
    record("b", 2, 1, ROWS_MOST);
    refuses(-ENODATA, "0 recordings held out", "\"held_out\": {\"seed\": [7]}");
    refuses(-EINVAL, "sample.held_out: ", "\"held_out\": {\"goal\": [7]}");
    refuses(-EINVAL, "sample.held_out: seed should be a list of values",
            "\"held_out\": {\"seed\": 7}");
    open_all("");
    counts(RM_HISTORIES_TRAINED, 2, 1, 13); /* of the short one there is no region */

    FILE *chunks = fopen(path_of("b", "chunks"), "r+");
    fseek(chunks, 100, SEEK_SET);
    const int byte = fgetc(chunks);
    fseek(chunks, 100, SEEK_SET);
    fputc(byte ^ 1, chunks);
    fclose(chunks);
    refuses(-EBADMSG, "/b: chunk 0 (byte 0 of ", "");
    char old[256];
    snprintf(old, sizeof old, "%s", path_of("b", "recording.json"));
    json_t *about = json_load_file(old, 0, NULL);
    json_object_set_new(json_object_get(json_object_get(about, "experiment"), "world"), "name",
                        json_string("cartpole"));
    json_dump_file(about, old, 0);
    refuses(-EINVAL, "it is a recording of world \"cartpole\"; this experiment's is \"darkroom\"",
            "");
    json_object_set_new(json_object_get(json_object_get(about, "experiment"), "world"), "name",
                        json_string("darkroom"));
    json_t *stream = json_array_get(json_object_get(about, "streams"), 0);
    json_t *shape = json_object_get(json_array_get(json_object_get(stream, "columns"), 0), "shape");
    json_array_set_new(shape, 0, json_integer(3));
    json_dump_file(about, old, 0);
    refuses(-EINVAL, "column obs is <f4 (3); this world has <f4 (2)", "");
    json_decref(about);
}

/* --- learning --------------------------------------------------------------------------------- */

#define POST_NORM(width, wide)                                                                     \
    "{\"type\": \"attention\", \"heads\": 4, \"causal\": true, \"dropout\": 0.1, \"xavier\": "     \
    "true}, {\"type\": \"dropout\", \"rate\": 0.1}, {\"type\": \"residual\", \"span\": 2}, "       \
    "{\"type\": \"layer_norm\"}, {\"type\": \"linear\", \"units\": " wide "}, {\"type\": "         \
    "\"gelu\"}, {\"type\": \"dropout\", \"rate\": 0.1}, {\"type\": \"linear\", \"units\": " width  \
    "}, {\"type\": \"dropout\", \"rate\": 0.1}, {\"type\": \"residual\", \"span\": 5}, "           \
    "{\"type\": "                                                                                  \
    "\"layer_norm\"}"
#define OF_64 POST_NORM("64", "256")

static void make_trainer(void)
{
    const struct rm_trainer_spec spec = {.experiment = &experiment,
                                         .backend = learning.backend,
                                         .shape = learning.plan.policy[0].shape,
                                         .name = "agent_0"};
    if (rm_trainer_create(&learning.trainer, &spec, &error) != 0)
        fail_msg("%s", error.text);
}

/* A trainer over recordings of two goals, one held out. */
static void start(const char *sample, const char *layers)
{
    static char text[4096];
    snprintf(text, sizeof text,
             "{\"world\": {\"name\": \"darkroom\"}, \"algorithm\": {\"name\": \"distill\"}, "
             "\"evaluation\": {\"final_episodes\": 0}, \"optimizer\": {\"name\": \"adamw\", "
             "\"learning_rate\": 3e-3, \"grad_clip\": 1}, \"sample\": {\"from\": \"%s/*\", "
             "\"held_out\": {\"world.options.goal\": [[0, 1]]}, %s}, \"network\": {\"layers\": "
             "[%s]}}",
             folder, sample, layers);
    if (rm_config_parse(&experiment, "test", text, strlen(text), NULL, 0, &error) != 0 ||
        rm_plan_make(&learning.plan, &experiment, &error) != 0 || try_open() != 0 ||
        rm_backend_cpu_create(&learning.backend, 2, "auto", &error) != 0)
        fail_msg("%s", error.text);
    const struct rm_prepared_spec prepared = {.histories = histories,
                                              .shape = learning.plan.policy[0].shape,
                                              .batch = experiment.sample.batch,
                                              .seed = experiment.seed};
    if (rm_prepared_create(&learning.prepared, &prepared, &error) != 0)
        fail_msg("%s", error.text);
    make_trainer();
}

static void record_two(uint32_t lanes)
{
    record("a", 1, lanes, ROWS_MOST); /* held out */
    record_again("b", 2, lanes, "a");
}

/* Before it has learned, the dark room's network has losses of about ln 5 and ln 3, mean over
 * seeds; and rm_trainer_measure() says what follows from the network's logits. */
static void a_fresh_network_knows_nothing(void **unused)
{
    (void)unused;
    enum { SEEDS = 8 };
    record_two(4);
    start("\"batch\": 4, \"first_steps\": 1000",
          "{\"type\": \"history\", \"units\": 64, \"codes\": 328}, " OF_64 ", " OF_64 ", " OF_64
          ", " OF_64);
    assert_int_equal(rm_net_param_count(rm_trainer_net(learning.trainer)), 227656);
    struct rm_batch *batch = rm_prepared_held_out(learning.prepared, 44); /* the last of 48 */
    assert_int_equal(batch->size, 4);
    const struct rm_trainer_result r = rm_trainer_measure(learning.trainer, batch);
    double policy_loss = r.policy_loss / SEEDS, type_loss = r.type_loss / SEEDS;
    for (uint64_t seed = 2; seed <= SEEDS; seed++) {
        rm_trainer_destroy(learning.trainer);
        experiment.seed = seed;
        make_trainer();
        const struct rm_trainer_result other = rm_trainer_measure(learning.trainer, batch);
        policy_loss += other.policy_loss / SEEDS;
        type_loss += other.type_loss / SEEDS;
    }
    assert_true(fabs(policy_loss - log(5)) < 0.15 && fabs(type_loss - log(3)) < 0.25);
    rm_trainer_destroy(learning.trainer);
    experiment.seed = 1;
    make_trainer();
    assert_true(fabs(r.loss - (r.policy_loss + 0.1 * r.type_loss)) < 1e-9);

    const struct rm_net *net = rm_trainer_net(learning.trainer);
    struct rm_net_workspace *w;
    assert_int_equal(rm_net_workspace_create(&w, net, learning.backend, 4, 1, RM_NET_INFER, &error),
                     0);
    rm_net_prepare(w, rm_trainer_params(learning.trainer));
    const struct rm_net_input in = {.x = batch->obs, .batch = 4};
    const float *out = rm_net_forward(w, rm_trainer_params(learning.trainer), &in);
    double actions = 0, types = 0;
    for (uint32_t i = 0; i < 4 * REGION; i++, out += 8) {
        double sum[2] = {0, 0};
        for (int k = 0; k < 8; k++)
            sum[k >= 5] += exp((double)out[k]);
        actions += log(sum[0]) - (double)out[batch->action[i]];
        types += log(sum[1]) - (double)out[5 + (i % REGION == REGION - 1 ? 2 : 0)];
    }
    assert_true(fabs(actions / (4 * REGION) - r.policy_loss) < 1e-5);
    assert_true(fabs(types / (4 * REGION) - r.type_loss) < 1e-5);
    rm_net_workspace_destroy(w);
}

/* What the learners do follows from the step's number, which the context tells: the loss falls,
 * also of the histories held out. */
static void what_learners_do_is_learned(void **unused)
{
    (void)unused;
    record_two(6);
    start("\"batch\": 8, \"region\": 10",
          "{\"type\": \"history\", \"units\": 32, \"codes\": 24}, " POST_NORM("32", "64"));
    struct rm_batch *held = rm_prepared_held_out(learning.prepared, 0);
    const struct rm_trainer_result before = rm_trainer_measure(learning.trainer, held);
    for (uint64_t update = 1; update <= 150; update++) {
        const struct rm_trainer_result r = rm_trainer_update(
            learning.trainer, rm_prepared_batch(learning.prepared, update), update, NULL);
        assert_false(r.skipped);
    }
    assert_true(rm_trainer_fixed(learning.trainer) > -1.0 / 3);
    held = rm_prepared_held_out(learning.prepared, 0);
    const struct rm_trainer_result after = rm_trainer_measure(learning.trainer, held);
    assert_true(after.policy_loss < before.policy_loss - 0.4);
    assert_true(after.type_loss < 0.2 && before.type_loss > 0.5);
}

/* The gradient is that of the loss: along it, the loss changes by its squared norm. */
static void the_gradient_is_that_of_the_loss(void **unused)
{
    (void)unused;
    record_two(2);
    start("\"batch\": 3, \"region\": 6",
          "{\"type\": \"history\", \"units\": 8, \"codes\": 24}, {\"type\": \"attention\", "
          "\"heads\": 2, \"causal\": true}, {\"type\": \"residual\", \"span\": 1}");
    struct rm_batch *batch = rm_prepared_batch(learning.prepared, 1);
    const size_t n = rm_net_param_count(rm_trainer_net(learning.trainer));
    float *params = malloc(n * sizeof *params), *moved = malloc(n * sizeof *moved);
    memcpy(params, rm_trainer_params(learning.trainer), n * sizeof *params);
    const struct rm_trainer_result at = rm_trainer_gradient(learning.trainer, batch, 1, NULL);
    double squares = 0; /* by differences of every parameter */
    const float h = 2e-3f;
    for (size_t i = 0; i < n; i++) {
        double side[2];
        for (int k = 0; k < 2; k++) {
            memcpy(moved, params, n * sizeof *moved);
            moved[i] += k ? h : -h;
            rm_trainer_load(learning.trainer, moved);
            side[k] = rm_trainer_measure(learning.trainer, batch).loss;
        }
        squares += (side[1] - side[0]) * (side[1] - side[0]) / (4 * (double)h * (double)h);
    }
    if (fabs(sqrt(squares) / at.grad_norm - 1) > 0.01)
        fail_msg("%g by differences, %g", sqrt(squares), at.grad_norm);
    free(params);
    free(moved);
}

/* A batch depends on its number alone, in whatever order they are asked for. */
static void batches_are_the_same_whenever_they_are_made(void **unused)
{
    (void)unused;
    record_two(3);
    start("\"batch\": 2, \"region\": 10", "{\"type\": \"history\", \"units\": 8, \"codes\": 24}");
    enum { COUNT = 12 };
    const uint32_t floats = learning.plan.policy[0].shape.inputs * 2;
    float *first = malloc((size_t)COUNT * floats * sizeof *first);
    int32_t actions[COUNT][20];
    bool differ = false;
    for (uint64_t k = 0; k < COUNT; k++) {
        const struct rm_batch *b = rm_prepared_batch(learning.prepared, 1 + k);
        memcpy(first + k * floats, b->obs, floats * sizeof *first);
        memcpy(actions[k], b->action, sizeof actions[k]);
        differ |= k && memcmp(first + (k - 1) * floats, b->obs, floats * sizeof *first) != 0;
    }
    assert_true(differ);
    static const uint64_t order[] = {9, 10, 2, 3, 4, 12, 1, 1, 5, 7, 6};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const struct rm_batch *b = rm_prepared_batch(learning.prepared, order[i]);
        const uint64_t k = order[i] - 1;
        assert_memory_equal(b->obs, first + k * floats, floats * sizeof *first);
        assert_memory_equal(b->action, actions[k], sizeof actions[k]);
    }
    free(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lengths_indices_and_targets, begin, end),
        cmocka_unit_test_setup_teardown(queries_are_observations_without_codes, begin, end),
        cmocka_unit_test_setup_teardown(tokens_are_as_they_should_be, begin, end),
        cmocka_unit_test_setup_teardown(samples_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(a_history_ends_where_rows_were_lost, begin, end),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_fresh_network_knows_nothing, begin, end),
        cmocka_unit_test_setup_teardown(what_learners_do_is_learned, begin, end),
        cmocka_unit_test_setup_teardown(the_gradient_is_that_of_the_loss, begin, end),
        cmocka_unit_test_setup_teardown(batches_are_the_same_whenever_they_are_made, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
