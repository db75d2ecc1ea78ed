/* play, watch, evaluate, rank: play with policies from files and show the games on the terminal, as
 * a film, or as figures. Frames come from a confined process (actor/player.h) and are not trusted:
 * sizes are checked, and text is made printable. */
#include "daemon/ctl/command.h"

#include "actor/player.h"
#include "actor/worlds/worlds.h"
#include "config/config.h"
#include "config/json_value.h"
#include "config/traits.h"
#include "config/utf8.h"
#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/film.h"
#include "daemon/ctl/find.h"
#include "daemon/ctl/rows.h"
#include "daemon/format.h"
#include "daemon/probe.h"
#include "daemon/table.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FPS_SHOWN     8.0
#define EPISODES_MAX  1000000
#define ASK_AGAIN_NS  50000000
#define ASK_AGAIN_MAX 100

struct show {
    bool terminal;
    double fps; /* 0: as fast as they come */
    const char *record;
    bool rows; /* frames of rows, which are bytes, are expected */
    struct rm_film film;
    struct rm_player_head head;
    char text[RM_PLAYER_TEXT_MAX + 1];
    uint8_t *rgb; /* of the largest picture so far */
    size_t rgb_bytes;
};

/* --- frames ---------------------------------------------------------------------------------- */

/* Reads `bytes` bytes, or fewer if the input ends. Returns their number. */
static size_t read_up_to(int fd, void *to, size_t bytes)
{
    size_t got = 0;
    while (got < bytes) {
        const ssize_t n = read(fd, (char *)to + got, bytes - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    return got;
}

/* What a process says that could not even begin: JSON with an error. */
static int refused_early(struct show *s, int fd, size_t got, struct rm_error *error)
{
    memcpy(s->text, &s->head, got);
    got += read_up_to(fd, s->text + got, RM_PLAYER_TEXT_MAX - got);
    s->text[got] = '\0';
    json_t *words = json_loads(s->text, 0, NULL);
    const char *why = json_string_value(json_object_get(words, "error"));
    const int rc = rm_fail(error, -EINVAL, "%s", why ? why : "the player wrote no valid frame");
    rm_utf8_repair(error->text);
    json_decref(words);
    return rc;
}

/* The next frame: 1; 0: there is no more; negative: it is none, or says why nothing is played. */
static int take_frame(struct show *s, int fd, struct rm_error *error)
{
    struct rm_player_head *h = &s->head;
    const size_t got = read_up_to(fd, h, sizeof *h);
    if (got == 0)
        return 0;
    if (got < sizeof *h || h->magic != RM_PLAYER_MAGIC)
        return refused_early(s, fd, got, error);
    const size_t bytes = (size_t)h->width * h->height * 3;
    if (h->text_bytes > RM_PLAYER_TEXT_MAX || h->width > RM_PLAYER_PICTURE_MAX ||
        h->height > RM_PLAYER_PICTURE_MAX)
        return rm_fail(error, -EPROTO, "a frame of %u bytes of text and %u x %u pixels",
                       h->text_bytes, h->width, h->height);
    if (bytes > s->rgb_bytes) {
        uint8_t *more = realloc(s->rgb, bytes);
        if (!more)
            return rm_fail(error, -ENOMEM, "no memory for a picture");
        s->rgb = more;
        s->rgb_bytes = bytes;
    }
    if (read_up_to(fd, s->text, h->text_bytes) < h->text_bytes ||
        read_up_to(fd, s->rgb, bytes) < bytes)
        return rm_fail(error, -EPROTO, "a frame that is cut short");
    s->text[h->text_bytes] = '\0';
    if (s->rows && h->kind == RM_PLAYER_ROWS)
        return 1;
    rm_utf8_repair(s->text);
    if (h->kind == RM_PLAYER_REFUSED)
        return rm_fail(error, -EINVAL, "%s", s->text);
    return 1;
}

static void wait_a_frame(const struct show *s)
{
    if (s->fps <= 0)
        return;
    const double seconds = 1 / s->fps;
    const struct timespec pause = {(time_t)seconds,
                                   (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

static void draw(const struct show *s, const char *name)
{
    const struct rm_player_head *h = &s->head;
    printf("%s%s  episode %u  step %u  score %s\n%s%s", s->terminal ? "\033[H\033[J" : "", name,
           h->episode, h->step, rm_format_measure(h->score).s, s->text, s->terminal ? "" : "\n");
    fflush(stdout);
    wait_a_frame(s);
}

/* Shows all episodes of a player. */
static int show_all(struct show *s, const char *name, int fd, struct rm_error *error)
{
    int rc;
    while ((rc = take_frame(s, fd, error)) == 1) {
        if (s->head.kind == RM_PLAYER_END)
            printf("episode %u: %u steps, score %s\n", s->head.episode, s->head.step,
                   rm_format_measure(s->head.score).s);
        else if (s->head.kind != RM_PLAYER_FRAME)
            return rm_fail(error, -EPROTO, "a frame of kind %u, which is not shown", s->head.kind);
        else if (!s->record)
            draw(s, name);
        else if ((rc = rm_film_add(&s->film, s->record, s->fps, s->rgb, s->head.width,
                                   s->head.height, error)) < 0)
            break;
    }
    fflush(stdout);
    return rc;
}

static int play(struct show *s, const struct rm_experiment *experiment, const char *name,
                uint32_t episodes, const char *const *files, uint32_t count)
{
    struct rm_probe_player player;
    struct rm_error error = {""}, why = {""};
    int rc = rm_probe_play(&player, experiment, episodes,
                           s->record ? RM_PLAYER_PICTURE : RM_PLAYER_SHOW, files, count, &error);
    if (rc == 0) {
        rc = show_all(s, name, player.frames, &error);
        const int ended = rm_probe_play_end(&player, rc == 0, &why);
        if (rc == 0 && ended < 0) {
            error = why;
            rc = ended;
        }
    }
    return rc < 0 ? rm_ctl_complain(RM_CTL_FAILED, "%s", error.text) : 0;
}

/* --- policies -------------------------------------------------------------------------------- */

struct files {
    char path[RM_BOARD_POLICIES][PATH_MAX];
    const char *list[RM_BOARD_POLICIES];
    uint32_t count;
};

static int add_file(struct files *files, const char *folder, const char *name)
{
    if (files->count == RM_BOARD_POLICIES)
        return rm_ctl_complain(RM_CTL_USAGE, "more than %d policies", RM_BOARD_POLICIES);
    char *to = files->path[files->count];
    snprintf(to, PATH_MAX, "%s%s%s", folder, *folder ? "/" : "", name);
    files->list[files->count++] = to;
    return 0;
}

/* A file, or all policies of a folder. */
static int add_policy(struct files *files, const char *path)
{
    static const char end[] = ".safetensors";
    DIR *folder = opendir(path);
    const uint32_t before = files->count;
    int rc = 0;
    if (!folder)
        return add_file(files, "", path);
    for (struct dirent *d; rc == 0 && (d = readdir(folder));) {
        const size_t n = strlen(d->d_name);
        if (n > sizeof end - 1 && !strcmp(d->d_name + n - (sizeof end - 1), end))
            rc = add_file(files, path, d->d_name);
    }
    closedir(folder);
    if (rc == 0 && files->count == before)
        rc = rm_ctl_complain(RM_CTL_FAILED, "%s: there is no policy in it", path);
    return rc;
}

/* --- the commands ---------------------------------------------------------------------------- */

static int begin_show(const struct rm_ctl_arguments *given, struct show *s, double *episodes)
{
    s->terminal = isatty(STDOUT_FILENO);
    s->fps = s->terminal || rm_ctl_value(given, "record") ? FPS_SHOWN : 0;
    s->film.to = -1;
    const int rc = rm_ctl_number(given, "fps", 0, 240, &s->fps);
    return rc ? rc : rm_ctl_number(given, "episodes", 1, EPISODES_MAX, episodes);
}

/* Those of --policy, or of the latest run. */
static int find_policies(const struct rm_ctl_arguments *given, const struct rm_experiment *e,
                         struct files *files)
{
    char latest[PATH_MAX];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < given->given_count; i++)
        if (!strcmp(given->given[i].option->name, "policy"))
            rc = add_policy(files, given->given[i].value);
    if (rc || files->count)
        return rc;
    snprintf(latest, sizeof latest, "%s/%s/latest/policies", e->run.directory, e->name);
    if (access(latest, R_OK) < 0)
        return rm_ctl_complain(
            RM_CTL_USAGE, "%s needs --policy, because there is no run of %s in %s with policies",
            given->command->name, e->name, e->run.directory);
    return add_policy(files, latest);
}

static int play_files(const struct rm_ctl_arguments *given, struct show *s,
                      struct rm_experiment *experiment, struct files *files, uint32_t episodes)
{
    struct rm_error error = {""};
    int rc = rm_ctl_load(given, NULL, experiment);
    if (rc == 0)
        rc = find_policies(given, experiment, files);
    if (rc)
        return rc;
    s->record = rm_ctl_value(given, "record");
    if (s->record && s->fps <= 0)
        return rm_ctl_complain(RM_CTL_USAGE, "--fps 0: a film needs a value above 0");
    if (s->record && rm_film_check(s->record, &error) < 0)
        return rm_ctl_complain(RM_CTL_FAILED, "%s", error.text);
    rc = play(s, experiment, experiment->name, episodes, files->list, files->count);
    if (rm_film_end(&s->film, &error) < 0 && rc == 0)
        rc = rm_ctl_complain(RM_CTL_FAILED, "%s", error.text);
    return rc;
}

/* A library by a relative path is where the daemon, process `pid`, was started. */
static void place_library(struct rm_world_config *world, json_int_t pid)
{
    char link[64], place[PATH_MAX], whole[sizeof world->library];
    if (!world->library[0] || world->library[0] == '/')
        return;
    snprintf(link, sizeof link, "/proc/%lld/cwd", (long long)pid);
    const ssize_t n = readlink(link, place, sizeof place - 1);
    if (n > 0 &&
        snprintf(whole, sizeof whole, "%.*s/%s", (int)n, place, world->library) < (int)sizeof whole)
        memcpy(world->library, whole, sizeof whole);
}

/* The experiment as it runs. */
static int fetch(struct rm_ctl_client *client, struct rm_experiment *experiment)
{
    struct rm_error error = {""};
    json_t *reply = NULL, *status = NULL;
    int rc = rm_ctl_client_call(client, "get", NULL, &reply, &error);
    if (rc == 0)
        rc = rm_ctl_client_call(client, "status", NULL, &status, &error);
    char *text = rc ? NULL : json_dumps(json_object_get(reply, "value"), JSON_COMPACT);
    if (rc == 0 && !text)
        rc = rm_fail(&error, -EPROTO, "get: the reply has no configuration");
    else if (text)
        rc = rm_config_parse(experiment, "get", text, strlen(text), NULL, 0, &error);
    if (rc == 0)
        place_library(&experiment->world, json_integer_value(json_object_get(status, "pid")));
    free(text);
    json_decref(reply);
    json_decref(status);
    return rc ? rm_ctl_complain(rm_ctl_client_exit_code(rc), "watch: %s", error.text) : 0;
}

/* The newest policies as files. An exit code, after a message. *gone: there is no experiment any
 * more. */
static int ask_for_policies(struct rm_ctl_client *client, struct files *files, bool *gone)
{
    const struct timespec again = {0, ASK_AGAIN_NS};
    struct rm_error error = {""};
    json_t *reply = NULL;
    int rc = rm_ctl_client_call(client, "policies", NULL, &reply, &error);
    for (int tries = 0;
         rc == -EREMOTEIO && strncmp(error.text, "not-now:", 8) == 0 && tries < ASK_AGAIN_MAX;
         tries++) {
        nanosleep(&again, NULL);
        rc = rm_ctl_client_call(client, "policies", NULL, &reply, &error);
    }
    *gone = rc == -ECONNRESET;
    if (*gone)
        return 0;
    if (rc)
        return rm_ctl_complain(rm_ctl_client_exit_code(rc), "policies: %s", error.text);
    const char *directory = json_string_value(json_object_get(reply, "directory"));
    files->count = 0;
    rc = directory ? add_policy(files, directory)
                   : rm_ctl_complain(RM_CTL_FAILED, "policies: the reply names no folder");
    json_decref(reply);
    return rc;
}

static int watch(const struct rm_ctl_arguments *given, struct show *s,
                 struct rm_experiment *experiment, struct files *files, uint32_t episodes)
{
    struct rm_ctl_client client;
    int rc = rm_find_open(&client, given);
    if (rc)
        return rc;
    rc = fetch(&client, experiment);
    bool gone = false;
    for (uint32_t n = 0; rc == 0 && n < episodes; n++) {
        rc = ask_for_policies(&client, files, &gone);
        if (gone)
            break;
        experiment->seed++; /* other episodes than before */
        if (rc == 0)
            rc = play(s, experiment, experiment->name, 1, files->list, files->count);
    }
    rm_ctl_client_close(&client);
    return rc;
}

typedef int (*show_fn)(const struct rm_ctl_arguments *given, struct show *s,
                       struct rm_experiment *experiment, struct files *files, uint32_t episodes);

/* With memory for what they need, and their common options. */
static int with_show(const struct rm_ctl_arguments *given, double episodes, show_fn run)
{
    struct rm_experiment *experiment = calloc(1, sizeof *experiment);
    struct files *files = calloc(1, sizeof *files);
    struct show *s = calloc(1, sizeof *s);
    int rc = RM_CTL_FAILED;
    if (experiment && files && s) {
        rc = begin_show(given, s, &episodes);
        if (rc == 0)
            rc = run(given, s, experiment, files, (uint32_t)episodes);
        free(s->rgb);
    } else {
        rm_ctl_complain(rc, "no memory");
    }
    free(s);
    free(files);
    free(experiment);
    return rc;
}

int rm_ctl_play(const struct rm_ctl_arguments *given)
{
    return with_show(given, 1, play_files);
}

int rm_ctl_watch(const struct rm_ctl_arguments *given)
{
    return with_show(given, EPISODES_MAX, watch);
}

/* --- numbers --------------------------------------------------------------------------------- */

/* The frame behind all rows, which are recorded. */
static int take_rows(struct show *s, int fd, struct rm_evaluation_rows *rows,
                     struct rm_error *error)
{
    int rc;
    s->rows = rows != NULL;
    while ((rc = take_frame(s, fd, error)) == 1 && s->head.kind == RM_PLAYER_ROWS)
        if ((rc = rm_evaluation_rows_add(rows, s->head.episode, s->text, s->head.text_bytes,
                                         error)) < 0)
            return rc;
    return rc;
}

/* The results of all episodes; the caller frees them. `rows`: records them; NULL: not. */
static int take_result(struct show *s, const struct rm_experiment *experiment, uint32_t episodes,
                       enum rm_player_purpose purpose, const struct files *files,
                       struct rm_evaluation_rows *rows, json_t **result)
{
    struct rm_probe_player player;
    struct rm_error error = {""}, why = {""};
    int rc =
        rm_probe_play(&player, experiment, episodes, purpose, files->list, files->count, &error);
    if (rc == 0) {
        rc = take_rows(s, player.frames, rows, &error);
        const bool got = rc == 1;
        const int ended = rm_probe_play_end(&player, rc >= 0, &why);
        if (rc == 0 && ended < 0)
            error = why;
        *result = got && s->head.kind == RM_PLAYER_RESULT ? json_loads(s->text, 0, NULL) : NULL;
        if (rc >= 0 && !*result && !error.text[0])
            rm_fail(&error, -EPROTO, "the player wrote no result");
    }
    return rc < 0 || !*result ? rm_ctl_complain(RM_CTL_FAILED, "%s", error.text) : 0;
}

/* A name that a confined process gives, if it is one. */
static const char *safe(const char *name)
{
    return name && rm_name_valid(name) ? name : "?";
}

static void measure_row(struct rm_table *table, const char *agent, const char *name,
                        const json_t *measure)
{
    rm_table_cell(table, "%s", agent);
    rm_table_cell(table, "%s", name);
    rm_table_cell(table, "%s", rm_format_measure(rm_json_number_at(measure, "mean")).s);
    rm_table_cell(table, "%s", rm_format_measure(rm_json_number_at(measure, "stderr")).s);
}

static void figure_rows(struct rm_table *table, const char *agent, const json_t *figures)
{
    const char *name, *word;
    json_t *value, *share;
    json_object_foreach((json_t *)figures, name, value)
    {
        if (json_object_get(value, "mean")) {
            measure_row(table, agent, safe(name), value);
            continue;
        }
        json_object_foreach(value, word, share)
        {
            char both[2 * RM_NAME_MAX + 2];
            snprintf(both, sizeof both, "%s.%s", safe(name), safe(word));
            measure_row(table, agent, both, share);
        }
    }
}

/* Policies that act in context: what becomes of the score while the worlds play on. */
static void print_tenths(const json_t *tenths)
{
    static const struct rm_column columns[] = {
        {"TENTH", false, 0}, {"SCORE", false, 0}, {"STDERR", false, 0}};
    struct rm_style style = rm_style_of(stdout);
    struct rm_table table;
    size_t i;
    json_t *tenth;
    printf("\nscore in each tenth of a world's episodes, in their order:\n\n");
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(tenths, i, tenth)
    {
        rm_table_cell(&table, "%zu", i + 1);
        rm_table_cell(&table, "%s", rm_format_measure(rm_json_number_at(tenth, "mean")).s);
        rm_table_cell(&table, "%s", rm_format_measure(rm_json_number_at(tenth, "stderr")).s);
    }
    rm_table_end(&table, stdout, &style);
}

static void print_tallies(const struct rm_experiment *experiment, const json_t *result)
{
    static const struct rm_column columns[] = {
        {"AGENT", true, 0}, {"FIGURE", true, 0}, {"MEAN", false, 0}, {"STDERR", false, 0}};
    struct rm_style style = rm_style_of(stdout);
    struct rm_table table;
    size_t i;
    json_t *agent;
    const json_t *score = json_object_get(result, "score");
    printf("%s score %s +- %s over %lld episodes of %s steps\n\n", rm_evaluation_word(experiment),
           rm_format_measure(rm_json_number_at(score, "mean")).s,
           rm_format_measure(rm_json_number_at(score, "stderr")).s,
           (long long)json_integer_value(json_object_get(result, "episodes")),
           rm_format_measure(rm_json_number_at(result, "length.mean")).s);
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(json_object_get(result, "agents"), i, agent)
    {
        const char *name = safe(json_string_value(json_object_get(agent, "name")));
        measure_row(&table, name, "return", json_object_get(agent, "return"));
        measure_row(&table, name, "length", json_object_get(agent, "length"));
        figure_rows(&table, name, json_object_get(agent, "figures"));
    }
    rm_table_end(&table, stdout, &style);
    if (experiment->network.layer_count && experiment->network.layers[0].type == RM_LAYER_HISTORY)
        print_tenths(json_object_get(result, "tenths"));
}

static void print_ranks(const json_t *result)
{
    static const struct rm_column columns[] = {{"SIDE", true, 0},    {"RANKED", false, 0},
                                               {"MRR", false, 0},    {"HITS@1", false, 0},
                                               {"HITS@3", false, 0}, {"HITS@10", false, 0}};
    static const char *const sides[] = {"head", "tail", "both"};
    static const char *const numbers[] = {"mrr", "hits1", "hits3", "hits10"};
    struct rm_style style = rm_style_of(stdout);
    struct rm_table table;
    const json_t *proved = json_object_get(result, "proved"),
                 *mean = json_object_get(result, "return");
    printf("%lld queries, each among %lld corruptions a side\n\n",
           (long long)json_integer_value(json_object_get(result, "queries")),
           (long long)json_integer_value(json_object_get(result, "corruptions")));
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        const json_t *side = json_object_get(result, sides[i]);
        rm_table_cell(&table, "%s", sides[i]);
        rm_table_cell(&table, "%lld",
                      (long long)json_integer_value(json_object_get(side, "ranked")));
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
            rm_table_cell(&table, "%.3f", rm_json_number_at(side, numbers[n]));
    }
    rm_table_end(&table, stdout, &style);
    printf("\nproved: %.3f of the true queries, %.3f of the corrupted ones; return %s +- %s\n",
           rm_json_number_at(proved, "true"), rm_json_number_at(proved, "corrupted"),
           rm_format_measure(rm_json_number_at(mean, "mean")).s,
           rm_format_measure(rm_json_number_at(mean, "stderr")).s);
}

static void print_result(const struct rm_ctl_arguments *given,
                         const struct rm_experiment *experiment, enum rm_player_purpose purpose,
                         const json_t *result)
{
    if (rm_ctl_flag(given, "json")) {
        json_dumpf(result, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
        putchar('\n');
    } else if (purpose == RM_PLAYER_RANK) {
        print_ranks(result);
    } else {
        print_tallies(experiment, result);
    }
}

static int take_tallies(const struct rm_ctl_arguments *given, struct show *s,
                        struct rm_experiment *experiment, uint32_t episodes,
                        const struct files *files, json_t **result)
{
    const char *folder = rm_ctl_value(given, "record");
    struct rm_error error = {""};
    struct rm_evaluation_rows *rows;
    if (!folder)
        return take_result(s, experiment, episodes, RM_PLAYER_TALLY, files, NULL, result);
    int rc = rm_evaluation_rows_create(&rows, experiment, rm_player_worlds(experiment, episodes),
                                       folder, &error) < 0
                 ? rm_ctl_complain(RM_CTL_FAILED, "%s", error.text)
                 : take_result(s, experiment, episodes, RM_PLAYER_ROWS_TOO, files, rows, result);
    if (rm_evaluation_rows_end(rows, rc == 0, &error) < 0)
        rc = rm_ctl_complain(RM_CTL_FAILED, "%s", error.text);
    return rc;
}

static int evaluate_files(const struct rm_ctl_arguments *given, struct show *s,
                          struct rm_experiment *experiment, struct files *files, uint32_t episodes)
{
    json_t *result = NULL;
    int rc = given->argument[0]
                 ? rm_ctl_load(given, NULL, experiment)
                 : rm_ctl_complain(RM_CTL_USAGE, "evaluate --policy: needs an experiment's FILE");
    if (rc == 0)
        rc = find_policies(given, experiment, files);
    if (rc == 0 && !rm_ctl_value(given, "episodes") && experiment->evaluation.final_episodes)
        episodes = experiment->evaluation.final_episodes;
    if (rc == 0)
        rc = take_tallies(given, s, experiment, episodes, files, &result);
    if (result)
        print_result(given, experiment, RM_PLAYER_TALLY, result);
    json_decref(result);
    return rc;
}

#define CORRUPTIONS     100
#define CORRUPTIONS_MAX 100000

/* Of a built-in world it is known before it is made. Worlds in Prolog have no figures of their own.
 */
static int has_queries(const struct rm_experiment *experiment)
{
    if (experiment->world.prolog[0])
        return rm_ctl_complain(RM_CTL_FAILED,
                               "worlds in Prolog have no queries to rank; the world 'prover' has");
    for (size_t i = 0; rm_builtin_worlds[i]; i++) {
        const struct rm_env_option_doc *option = rm_builtin_worlds[i]->options;
        if (strcmp(rm_builtin_worlds[i]->name, experiment->world.name) != 0)
            continue;
        while (option && option->key && strcmp(option->key, "ranking") != 0)
            option++;
        if (!option || !option->key)
            return rm_ctl_complain(RM_CTL_FAILED,
                                   "world '%s' has no queries to rank; the world 'prover' has",
                                   experiment->world.name);
    }
    return 0;
}

static int rank_files(const struct rm_ctl_arguments *given, struct show *s,
                      struct rm_experiment *experiment, struct files *files, uint32_t episodes)
{
    double corruptions = CORRUPTIONS, queries = 0;
    char ranking[64];
    json_t *result = NULL;
    (void)episodes;
    int rc = rm_ctl_number(given, "corruptions", 1, CORRUPTIONS_MAX, &corruptions);
    if (rc == 0)
        rc = rm_ctl_number(given, "queries", 1, INT_MAX, &queries);
    snprintf(ranking, sizeof ranking, "world.options.ranking=%.0f", corruptions);
    if (rc == 0)
        rc = rm_ctl_load(given, ranking, experiment);
    if (rc == 0)
        rc = has_queries(experiment);
    if (rc == 0)
        rc = find_policies(given, experiment, files);
    if (rc == 0)
        rc = take_result(s, experiment, (uint32_t)queries, RM_PLAYER_RANK, files, NULL, &result);
    if (rc == 0)
        print_result(given, experiment, RM_PLAYER_RANK, result);
    json_decref(result);
    return rc;
}

int rm_ctl_evaluate_files(const struct rm_ctl_arguments *given)
{
    return with_show(given, 100, evaluate_files);
}

int rm_ctl_rank(const struct rm_ctl_arguments *given)
{
    return with_show(given, 1, rank_files);
}
