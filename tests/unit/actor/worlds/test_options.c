/* options.c: a world gets numbers, words, paths and lists as its table declares them, and one
 * message has all errors; in this process, and in a confined process that ringctl starts for a file
 * in a folder of its own. */
#include "actor/worlds/options.h"
#include "tests/support/batch.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHOWN = 8 }; /* as data/choosy_world.c has them */

static char folder[64];

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int make(const char *options, float shown[SHOWN], struct rm_error *error)
{
    static struct rm_world_config config;
    struct rm_world world;
    struct rm_env *env;
    float reward;
    uint8_t flags;
    const struct rm_env_buffers out = {
        .obs = shown, .obs_stride = SHOWN * sizeof *shown, .reward = &reward, .flags = &flags};
    if (rm_world_open(&world, "choosy", rm_test_build_path("tests/worlds/choosy.so"), error) < 0)
        fail_msg("%s", error->text);
    config = (struct rm_world_config){.description = NULL};
    snprintf(config.options, sizeof config.options, "%s", options);
    snprintf(config.directory, sizeof config.directory, "%s", folder);
    const int rc = rm_world_create(&world, &config, 1, 0, 1, &env, error);
    if (rc == 0) {
        assert_int_equal(world.ops->reset(env, &out), 0);
        world.ops->close(env);
    }
    rm_world_close(&world);
    return rc;
}

static void every_type_arrives(void **state)
{
    char whole[256];
    snprintf(whole, sizeof whole, "{\"files\": [\"a.txt\", \"%s/sub/b.txt\"]}", folder);
    const struct {
        const char *options;
        float shown[SHOWN];
    } cases[] = {
        {"{}", {1, 0, 0, 0, 0, 0, 0, 2}},
        {"", {1, 0, 0, 0, 0, 0, 0, 2}},
        {"{\"colour\": \"dark-blue\", \"depth\": 9}", {2, 0, 0, 0, 0, 0, 0, 9}},
        {"{\"label\": \"caf\\u00e9 1\", \"depth\": true}", {1, 0, 0, 0, 0, 0, 7, 1}},
        {"{\"level\": \"sub/b.txt\"}", {1, 'B', 0, 0, 0, 0, 0, 2}},
        {whole, {1, 0, 2, 'B', 0, 0, 0, 2}},
        {"{\"files\": \"a.txt\", \"weights\": 0.5}", {1, 0, 1, 'A', 0.5f, 0, 0, 2}},
        {"{\"files\": [], \"weights\": [0.5, -1, 0.25], \"rows\": [\"x\", \"yy\"]}",
         {1, 0, 0, 0, -0.25f, 2, 0, 2}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        float shown[SHOWN] = {0};
        struct rm_error error;
        if (make(cases[i].options, shown, &error) < 0)
            fail_msg("%s: %s", cases[i].options, error.text);
        for (int k = 0; k < SHOWN; k++)
            if (shown[k] != cases[i].shown[k])
                fail_msg("%s: %d: %g, not %g", cases[i].options, k, (double)shown[k],
                         (double)cases[i].shown[k]);
    }
}

static void what_is_wrong_is_said(void **state)
{
    static const struct {
        const char *options;
        int code;
        const char *words;
    } cases[] = {
        {"{\"colour\": \"gren\"}", -EINVAL,
         "world.options.colour is \"gren\", must be one of red, green, dark-blue; the nearest is "
         "'green'"},
        {"{\"colour\": 3}", -EINVAL,
         "world.options.colour should be a text between quotes, but is 3"},
        {"{\"colour\": [\"red\"]}", -EINVAL, "colour should be one word, but is a list"},
        {"{\"color\": \"red\"}", -EINVAL, "no such option; the nearest is 'colour'"},
        {"{\"level\": \"\"}", -EINVAL, "world.options.level is empty, must be the path of a file"},
        {"{\"level\": {\"a\": 1}}", -EINVAL, "level should be a text between quotes, but is an ob"},
        {"{\"level\": \"nowhere.txt\"}", -EINVAL, "/nowhere.txt: cannot be read"},
        {"{\"files\": [\"a\", \"a\", \"a\", \"a\"]}", -ERANGE,
         "world.options.files has 4 values, must have at most 3"},
        {"{\"files\": [\"a.txt\", 3]}", -EINVAL, "world.options.files[1] should be a text"},
        {"{\"weights\": [0.5, 1.5]}", -ERANGE, "world.options.weights[1] is 1.5, must be -1..1"},
        {"{\"weights\": \"heavy\"}", -EINVAL, "weights should be a number, but is \"heavy\""},
        {"{\"depth\": null}", -EINVAL, "depth should be a number, but is null"},
        {"{\"depth\": 10}", -ERANGE, "world.options.depth is 10, must be 0..9 (how deep)"},
        {"[1]", -EINVAL, "world.options: is no object"},
    };
    struct rm_error error;
    float shown[SHOWN];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(make(cases[i].options, shown, &error), cases[i].code);
        if (!strstr(error.text, cases[i].words))
            fail_msg("%s: %s", cases[i].options, error.text);
    }
    assert_int_equal(make("{\"depth\": 10, \"colour\": \"blu\", \"level\": \"a.txt\", "
                          "\"files\": [\"a.txt\", 1], \"lable\": 1}",
                          shown, &error),
                     -ERANGE);
    static const char *const lines[] = {
        "world.options.depth is 10", "\nworld.options.colour is \"blu\"",
        "\nworld.options.files[1] should be a text", "\nworld.options.lable: the world"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (!strstr(error.text, lines[i]))
            fail_msg("\"%s\" does not say \"%s\"", error.text, lines[i]);
    assert_null(strstr(error.text, "level"));
}

/* Appends what an option refuses: a number that is out of range, or no text. */
static void add_bad(char *json, size_t size, const struct rm_env_option_doc *doc)
{
    const size_t used = strlen(json);
    snprintf(json + used, size - used, "%s\"%s\": %s", used > 1 ? ", " : "", doc->key,
             rm_option_is_number(doc) ? "1e300" : "-0.5");
}

/* One message has a line for each option, or says how many more there are. */
static void lists_all(const char *world, const struct rm_env_option_doc *docs, const char *text)
{
    unsigned lines = 1, more = 0, rows = 0, named = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    const char *tail = strstr(text, "\n... and ");
    if (tail) {
        assert_int_equal(sscanf(tail, "\n... and %u more", &more), 1);
        lines--;
    }
    for (; docs && docs[rows].key; rows++) {
        char words[128];
        snprintf(words, sizeof words, "world.options.%s %s", docs[rows].key,
                 rm_option_is_number(&docs[rows]) ? "is " : "should be a text between quotes");
        named += strstr(text, words) != NULL;
    }
    if (lines != named || named + more != rows || (more && strlen(text) < RM_ERROR_TEXT / 2))
        fail_msg("%s: %u of %u options are named, %u more are told of:\n%s", world, named, rows,
                 more, text);
}

/* All options of each built-in world at once. */
static void errors_of_built_in_worlds_come_at_once(void **state)
{
    (void)state;
    for (size_t w = 0; rm_builtin_worlds[w]; w++) {
        const struct rm_env_option_doc *docs = rm_builtin_worlds[w]->options;
        const char *name = rm_builtin_worlds[w]->name;
        static struct rm_world_config config;
        struct rm_world world;
        struct rm_error error = {""};
        struct rm_env *env;
        if (!docs || !docs[0].key)
            continue;
        config = (struct rm_world_config){.options = "{"};
        for (size_t i = 0; docs[i].key; i++)
            add_bad(config.options, sizeof config.options - 1, &docs[i]);
        const size_t used = strlen(config.options);
        snprintf(config.options + used, sizeof config.options - used, "}");
        assert_int_equal(rm_world_open(&world, name, "", &error), 0);
        assert_true(rm_world_create(&world, &config, 1, 0, 1, &env, &error) < 0);
        lists_all(name, docs, error.text);
        rm_world_close(&world);
    }
}

/* --- by ringctl ------------------------------------------------------------------------------- */

/* ringctl's exit code, and all that it prints. */
static int ringctl(const char *arguments, char *text, size_t bytes)
{
    char command[2048];
    snprintf(command, sizeof command, "%s %s 2>&1", rm_test_build_path("bin/ringctl"), arguments);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    text[fread(text, 1, bytes - 1, out)] = '\0';
    const int status = pclose(out);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect(int code, const char *words, const char *format, ...)
{
    char arguments[1800], text[16384];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    const int got = ringctl(arguments, text, sizeof text);
    if (got != code || !strstr(text, words))
        fail_msg("ringctl %s: exit %d, not %d; should say \"%s\":\n%s", arguments, got, code, words,
                 text);
}

static void paths_begin_at_the_file(void **state)
{
    char library[1200];
    (void)state;
    snprintf(library, sizeof library, "%s", rm_test_build_path("tests/worlds/choosy.so"));
    write_file("sub/e.json", "{\"world\": {\"name\": \"choosy\", \"options\": {\"level\": "
                             "\"b.txt\", \"files\": [\"../a.txt\"]}}, "
                             "\"actor\": {\"sandbox\": \"auto\"}}");
    expect(0, "valid", "validate %s/sub/e.json --set world.library=%s", folder, library);
    char directory[128];
    snprintf(directory, sizeof directory, "\"directory\": \"%s/sub\"", folder);
    expect(0, directory, "validate --json %s/sub/e.json --set world.library=%s", folder, library);
    expect(4, "/a.txt: cannot be read",
           "validate %s/sub/e.json --set world.library=%s "
           "--set world.options.level=a.txt",
           folder, library);
    expect(0, "valid",
           "validate %s/sub/e.json --set world.library=%s "
           "--set world.options.level=a.txt --set world.directory=%s "
           "--set 'world.options.files=[\"sub/b.txt\"]'",
           folder, library, folder);
    expect(4, "nearest is 'green'",
           "validate %s/sub/e.json --set world.library=%s --set world.options.colour=gren", folder,
           library);
    expect(0, "choosy: 1 agent in 1 phase",
           "check-world %s --steps 10 --set world.options.level=%s/a.txt", library, folder);
}

static void options_are_shown(void **state)
{
    char library[1200];
    (void)state;
    snprintf(library, sizeof library, "%s", rm_test_build_path("tests/worlds/choosy.so"));
    expect(0, "of the walls: red, green, dark-blue", "envs --library %s choosy", library);
    expect(0, "list of paths", "envs --library %s choosy", library);
    expect(0, "\"takes\": \"word\"", "envs --json --library %s choosy", library);
    expect(0, "\"dark-blue\"", "envs --json --library %s choosy", library);
    expect(0, "list of words", "envs frozenlake");
}

/* FrozenLake with a reward that is none, one out of range, Gymnasium's name for them, and a map
 * that is no list of rows: one run of ringctl says it all, with the file before each. */
static void errors_of_a_file_come_at_once(void **state)
{
    static const char *const lines[] = {
        "reward_goal should be a number, but is \"high\"",
        "reward_hole is 10000000, must be -1000000..1000000 (reward of falling into a hole)",
        "reward_schedule: the world 'frozenlake' has no such option; the nearest is 'reward_hole'",
        "desc[1] should be a text between quotes, but is 1222"};
    (void)state;
    write_file("lake.json",
               "{\"world\": {\"name\": \"frozenlake\", \"options\": {\"reward_goal\": \"high\", "
               "\"reward_hole\": 1e7, \"reward_schedule\": [1, 0, 0], \"reward_ice\": -0.5, "
               "\"desc\": [\"SFFG\", 1222]}}}");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char words[400];
        snprintf(words, sizeof words, "%s/lake.json: world.options.%s\n", folder, lines[i]);
        expect(4, words, "validate %s/lake.json", folder);
    }
}

/* evaluation.options: the same world with others, which must show and take the same. */
static void evaluations_have_their_own(void **state)
{
    char library[1200];
    (void)state;
    snprintf(library, sizeof library, "%s", rm_test_build_path("tests/worlds/choosy.so"));
    write_file("e.json", "{\"world\": {\"name\": \"choosy\", \"options\": {\"depth\": 3}}}");
    expect(0, "valid", "validate %s/e.json --set world.library=%s --set evaluation.options.depth=4",
           folder, library);
    expect(4, "evaluation.options: world 'choosy' has other observations or actions with them",
           "validate %s/e.json --set world.library=%s --set evaluation.options.depth=9", folder,
           library);
    expect(4, "evaluation.options: world.options.depth is 12, must be 0..9",
           "validate %s/e.json --set world.library=%s --set evaluation.options.depth=12", folder,
           library);
    expect(4, "evaluation.options: world 'frozenlake' has other observations or actions with them",
           "validate %s/e.json --set world.name=frozenlake --set 'world.options={}' "
           "--set 'evaluation.options.desc=[\"SG\",\"SG\"]'",
           folder);
}

static int setup(void **state)
{
    char sub[80];
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/ringmaster-options-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(sub, sizeof sub, "%s/sub", folder);
    if (mkdir(sub, 0700) < 0)
        return -1;
    write_file("a.txt", "A file");
    write_file("sub/b.txt", "B file");
    return setenv("RINGMASTER_LIBEXEC", rm_test_build_path("bin"), 1);
}

static int teardown(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_arrives),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(paths_begin_at_the_file),
        cmocka_unit_test(options_are_shown),
        cmocka_unit_test(evaluations_have_their_own),
        cmocka_unit_test(errors_of_built_in_worlds_come_at_once),
        cmocka_unit_test(errors_of_a_file_come_at_once),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
