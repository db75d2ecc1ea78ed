/* Messages for Python worlds that cannot run: one sentence, with what to do. Each is made as
 * `ringctl validate` makes it: in a worker, and stepped. */
#include "actor/worlds/worlds.h"
#include "tests/support/batch.h"
#include "tests/support/python.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct refused {
    const char *python, *options; /* NULL: none */
    const char *words[3];         /* all of them are in the sentence */
};

static const struct refused cases[] = {
    {"no_such_games:make", NULL, {"there is no module 'no_such_games'", "PYTHONPATH"}},
    {"refusd:raises", NULL, {"there is no module 'refusd' (did you mean 'refused'?): it is"}},
    {"gymnasum:CartPole-v1", NULL, {"there is no module 'gymnasum' (did you mean 'gymnasium'?)"}},
    {"json.decodr:JSONDecoder", NULL, {"'json.decodr' (did you mean 'json.decoder'?)"}},
    {"refused.deep:make", NULL, {"there is no module 'refused.deep'"}},
    {"wanting:make", NULL, {"ModuleNotFoundError: No module named 'a_package_that_is_not_there'"}},
    {"broken:make", NULL, {"SyntaxError", "broken.py"}},
    {"refused:nowhere", NULL, {"module refused has no 'nowhere'"}},
    {"refused:No_Spaces_", NULL, {"has no 'No_Spaces_' (did you mean 'no_spaces'?)"}},
    {"refused:number", NULL, {"'number' of module refused is int: it has to be a function"}},
    {"refused:nothing", NULL, {"'nothing' of module refused returned None"}},
    {"refused:a_class", NULL, {"Corridor is a class", "call it"}},
    {"refused:raises", NULL, {"RuntimeError: no luck today (refused.py:"}},
    {"refused:wants", NULL, {"TypeError", "level"}},
    {"refused:nothing", "{\"level\": 3}", {"unexpected keyword argument 'level'", "world.options"}},
    {"refused:leaves", NULL, {"its process ended with exit code 4"}},
    {"refused:ends", NULL, {"SystemExit: enough"}},
    {"refused:crashes", NULL, {"ended by signal 6 (Aborted)", "Fatal Python error: Aborted"}},
    {"refused:hangs", NULL, {"took longer than allowed"}},
    {"refused:display", NULL, {"No available video device", "xvfb-run"}},
    {"refused:shown", NULL, {"render_mode is \"human\"", "leave render_mode out"}},
    {"refused:no_spaces", NULL, {"Corridor has no observation_space"}},
    {"refused:text", NULL, {"the observation is a space of kind Text", "wrap"}},
    {"refused:sequence", NULL, {"observation['words'] is a space of kind Sequence"}},
    {"refused:strange", NULL, {"the observation space is object, which is not supported"}},
    {"refused:empty", NULL, {"the observation has shape (0,)", "one number at least"}},
    {"refused:whole_box_action", NULL, {"the action space is a Box of int8", "MultiDiscrete"}},
    {"refused:endless_box_action", NULL, {"the action space of ['push'] has no bounds", "range"}},
    {"refused:empty_box_action", NULL, {"the action space has shape (0,)", "one number at least"}},
    {"refused:text_action", NULL, {"the action space of [1] is of kind Text"}},
    {"refused:many_choices", NULL, {"9 choices in one step; 8 are possible"}},
    {"refused:old_reset", NULL, {"reset() returned ndarray", "GymV21Environment-v0"}},
    {"refused:old_step", NULL, {"step() returned 4 values", "GymV21Environment-v0"}},
    {"refused:long_step", NULL, {"step() returned 6 values where (observation, reward,"}},
    {"refused:no_tuple", NULL, {"step() returned NoneType"}},
    {"refused:wrong_shape", NULL, {"the observation has shape (4,); its space says shape (3,)"}},
    {"refused:wrong_first_shape", NULL, {"the observation has shape (3, 1)"}},
    {"refused:words", NULL, {"the observation has dtype <U1, where its space has numbers"}},
    {"refused:objects", NULL, {"the observation"}},
    {"refused:fractions", NULL, {"the observation has dtype float64", "uint8: whole numbers"}},
    {"refused:nan", NULL, {"the observation is nan at (1,)", "finite"}},
    {"refused:outside", NULL, {"the observation is -1.0 at (1,), outside of its space", "0.0 to"}},
    {"refused:outside_discrete", NULL, {"the observation is 7, outside of its space"}},
    {"refused:lacking", NULL, {"the observation lacks ['b']"}},
    {"refused:no_reward", NULL, {"the reward is None, not a number"}},
    {"refused:nan_reward", NULL, {"the reward is nan"}},
    {"refused:no_flag", NULL, {"terminated is 'no', not True or False"}},
    {"refused:no_info", NULL, {"the info that step() returned is NoneType, not a dict"}},
    {"refused:no_first_info", NULL, {"the info that reset() returned is list, not a dict"}},
    {"refused:no_action", NULL, {"the action mask in info leaves no legal action"}},
    {"refused:long_mask", NULL, {"the action mask in info has shape (3,)", "2 actions"}},
    {"refused:late_mask", NULL, {"an action mask with this observation", "none with the first"}},
    {"refused:late_masks", NULL, {"an action mask with this observation", "none with the first"}},
    {"refused:late_mask_of_one", NULL, {"an action mask with this observation of b, but"}},
    {"refused:late_mask_in_turn", NULL, {"an action mask with this observation of x, but"}},
    {"refused:undeclared", NULL, {"metadata[\"autoreset_mode\"]", "NEXT_STEP"}},
    {"refused:no_agents", NULL, {"Nim has no possible_agents"}},
    {"refused:many_agents", NULL, {"65 possible agents; 64"}},
    {"refused:one_for_all", NULL, {"reset() returned list for observations, not a dict by agent"}},
    {"refused:rewards_in_a_row", NULL, {"step() returned list for rewards, not a dict by agent"}},
    {"refused:dones", NULL, {"step() returned 4 values", "PettingZoo before 1.22"}},
    {"refused:unseen", NULL, {"there is no observation for agent 'b', which env.agents has"}},
    {"refused:strangers", NULL, {"agent 'd' is not one of possible_agents"}},
    {"refused:wrong_shape_of_one", NULL, {"the observation of c_c has shape (3,)"}},
    {"refused:outside_of_one", NULL, {"the observation of b is 300.0 at (1,), outside"}},
    {"refused:old_last", NULL, {"last() returned 4 values", "PettingZoo before 1.22"}},
    {"refused:unknown_turn", NULL, {"agent 'z', whose turn it is, is not one of possible_agents"}},
    {"refused:no_move", NULL, {"the action mask in the observation leaves no legal action"}},
    {"refused:few_first", NULL, {"the observation has shape (1, 3); 2 environments give 2"}},
    {"refused:few_seen", NULL, {"the observation has shape (1, 3); 2 environments give 2"}},
    {"refused:few_rewards", NULL, {"rewards has shape (1,); 2 environments give shape (2,)"}},
    {"refused:old", NULL, {"Old is an environment of gym", "GymV26Environment-v0"}},
};

static int make(const struct rm_world_config *config, char *text, size_t size)
{
    struct rm_error error = {""};
    struct rm_world world;
    struct rm_env *env;
    assert_int_equal(rm_world_open_configured(&world, config, &error), 0);
    rm_test_said_begin();
    const int rc = rm_world_create(&world, config, 7, 0, 1, &env, &error);
    rm_test_said_end();
    if (rc == 0)
        world.ops->close(env);
    snprintf(text, size, "%s", error.text);
    return rc;
}

static int wrong; /* failed cases of a table; all are reported */

static void is_refused(const struct rm_world_config *config, const char *const *words, size_t n)
{
    char text[RM_ERROR_TEXT];
    const int rc = make(config, text, sizeof text);
    bool good = rc < 0 && !strchr(text, '\n');
    for (size_t i = 0; i < n && words[i]; i++)
        good = good && strstr(text, words[i]);
    if (!good)
        print_message("%s: rc %d: %s\n", config->python, rc, text);
    wrong += !good;
}

static void what_cannot_be_is_refused(void **state)
{
    static struct rm_world_config config;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct refused *c = &cases[i];
        const bool hangs = strcmp(c->python, "refused:hangs") == 0;
        rm_test_python_place(1, hangs ? 0.4 : 60, RM_SANDBOX_AUTO);
        rm_test_python_config(&config, c->python, c->options);
        is_refused(&config, c->words, 3);
    }
    assert_int_equal(wrong, 0);
}

static void interpreters_that_cannot_be_are_refused(void **state)
{
    wrong = 0;
    static struct rm_world_config config;
    char script[] = "/tmp/rm-python-XXXXXX";
    const int fd = mkstemp(script);
    (void)state;
    assert_true(write(fd, "#!/bin/sh\nexec python3\n", 23) == 23);
    fchmod(fd, 0755);
    close(fd);
    const struct {
        const char *interpreter;
        const char *words[2];
    } each[] = {
        {"/nowhere/python", {"world.interpreter: /nowhere/python: No such file"}},
        {"/etc/passwd", {"world.interpreter: /etc/passwd: Permission denied"}},
        {script, {"is a script that starts an interpreter", "sys.executable"}},
        {"no-such-python", {"there is no no-such-python on the PATH"}},
        {"/bin/true", {"made by /bin/true: its process ended with exit code 0"}},
    };
    rm_test_python_place(1, 60, RM_SANDBOX_AUTO);
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        rm_test_python_config(&config, "games:corridor", NULL);
        snprintf(config.interpreter, sizeof config.interpreter, "%s", each[i].interpreter);
        is_refused(&config, each[i].words, 2);
    }
    unlink(script);
    assert_int_equal(wrong, 0);
}

/* A folder in which numpy cannot be imported comes before the real one. */
static void an_interpreter_without_numpy_is_refused(void **state)
{
    wrong = 0;
    static struct rm_world_config config;
    static const char *const words[] = {"cannot import numpy (not here): pip install numpy",
                                        "world.interpreter"};
    char folder[] = "/tmp/rm-python-XXXXXX", path[64], both[4096];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/numpy.py", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        fail_msg("%s cannot be written", path);
    fputs("raise ImportError('not here')\n", file);
    fclose(file);
    const char *set = getenv("PYTHONPATH");
    char before[2048];
    snprintf(before, sizeof before, "%s", set ? set : "");
    snprintf(both, sizeof both, "%s:%s", folder, before);
    setenv("PYTHONPATH", both, 1);
    rm_test_python_place(1, 60, RM_SANDBOX_AUTO);
    rm_test_python_config(&config, "games:corridor", NULL);
    is_refused(&config, words, 2);
    setenv("PYTHONPATH", before, 1);
    unlink(path);
    rmdir(folder);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(interpreters_that_cannot_be_are_refused),
        cmocka_unit_test(an_interpreter_without_numpy_is_refused),
    };
    if (!rm_test_python()) {
        puts("1..0 # SKIP /usr/bin/python3 has no NumPy");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
